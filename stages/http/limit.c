/* SPDX-License-Identifier: MIT */
/*
 * Limits; see limit.h.
 *
 * Who makes room when connections are too many: the one that has waited longest without a request, else one with bytes
 * under way that moves more slowly than min_body_rate or min_send_rate asks for, without the grace that those give. Both
 * must have waited for a moment. The search is short, whatever the number of connections; who is found healthy goes to
 * the end of the list of those under way, so that all come up in turn. Of those who wait the first in the list has waited longest,
 * so for anybody's sake one look is enough; for an address's sake its own may lie behind others, and its newcomer is refused.
 * Who was refused and lingers gives back a descriptor, but no place: it has none, and is in a list of its own.
 *
 * Each list is in the order in which connections joined it, which is that of their waits but for two: who goes on waiting for his
 * handshake, or with half a head when the answer in front of it has left, joins at the end, at most header_timeout later than
 * his wait began. Those who are idle behind a handshake or an answer are strictly eldest first, and so are those who linger.
 *
 * An I/O thread sees its own connections alone. Where it has nobody who waits it asks another one that has (room.h); but for an
 * address's sake, of which the others do not know where its connections are.
 */
#include "http/limit.h"

#include <stddef.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/conn.h"
#include "http/crowd.h"

/* Connections looked at for one that makes room: at 50 ns each less than the accept costs. */
#define EVICT_SCAN 64
/* max_per_address: auto is at least this, so that a small max_connections is no smaller for one client: a guess. */
#define PER_ADDRESS_MIN 64
/* Descriptors for all that is not a client: listeners, files, logs, plug-ins. A guess. */
#define FDS_APART 128

static const struct row {
	int metric, status;
	const char *code, *text;
} rows[] = {
#define LIMIT_ROW(id, metric, status, code, text) {SERVER_##metric, status, code, text},
    LIMITS(LIMIT_ROW)
#undef LIMIT_ROW
};

/* ---- refusing ---- */

void limit_count(struct http_io *io, enum limit l)
{
	io->count[rows[l].metric]++;
}

static void refuse(struct conn *c, enum limit l, const char *why)
{
	struct http_req **last;

	limit_count(c->io, l);
	conn_refuse(c, rows[l].status, why);
	last = c->last;
	if (conn_is_open(c) && c->first) /* else there was no memory to say so */
		weir_http_add_field(
		    &((struct http_req *)((char *)last - offsetof(struct http_req, next)))->pub,
		    "X-Weir-Limit", rows[l].code);
}

void limit_refuse(struct conn *c, enum limit l)
{
	refuse(c, l, rows[l].text);
}

void limit_refuse_parsed(struct conn *c, int status, const char *why)
{
	switch (status) {
	case 413:
		refuse(c, LIMIT_BODY, why);
		return;
	case 414:
		refuse(c, LIMIT_TARGET, why);
		return;
	case 431:
		refuse(c, LIMIT_HEAD, why);
		return;
	case 503:
		refuse(c, LIMIT_MEMORY, why);
		return;
	default:
		conn_refuse(c, status, why);
	}
}

void limit_tell(struct http_io *io, int fd)
{
	static const char text[] = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\n"
				   "Content-Length: 0\r\nConnection: close\r\n\r\n";

	if (!io->srv->tls)
		(void)!send(fd, text, sizeof(text) - 1, MSG_NOSIGNAL);
	shutdown(fd, SHUT_WR);
	/* What is there unread would make the end a reset. */
	(void)!recv(fd, io->out, sizeof(io->out), MSG_DONTWAIT);
	close(fd);
}

/* ---- making room ---- */

/* Do the bytes that are under way move too slowly? An answer also when none of it was taken for a moment: what the client's
 * kernel took at first counts for long. */
static bool is_slow(struct conn *c, int64_t now_ns)
{
	const struct http_conf *conf = &c->io->conf;
	double rate = c->wait == WAIT_BODY ? conf->min_body_rate : conf->min_send_rate;

	if (c->wait == WAIT_WRITE && rate > 0 && !conn_look(c) &&
	    now_ns - c->progress_ns >= LIMIT_EVICT_AFTER_NS)
		return true;
	return (double)c->moved_bytes < rate * (double)(now_ns - c->since_ns) / 1e9;
}

/* Since when `c`, which is in list `id`, is idle or slow. The wait of one with TLS began when it came, for header_timeout; it is
 * idle since its handshake was done. */
static int64_t eligible_since_ns(const struct conn *c, enum conn_list_id id)
{
	return id == CONN_IDLE ? c->progress_ns : c->since_ns;
}

static int64_t head_since_ns(const struct http_io *io, enum conn_list_id id)
{
	const struct conn *c = io->list[id].first;

	return c ? eligible_since_ns(c, id) : INT64_MAX;
}

/* Close one of the list, of the address `key` unless that is 0. Returns whether there was one. */
static bool evict_from(struct http_io *io, enum conn_list_id id, uint64_t key)
{
	int64_t now_ns = weir_loop_now_ns(io->loop);
	struct conn *c = io->list[id].first, *next;

	for (int i = 0; c && i < EVICT_SCAN; i++, c = next) {
		int64_t waited_ns = now_ns - eligible_since_ns(c, id);
		next = c->wait_next;
		if ((key == 0 || c->peer_key == key) && !c->ready &&
		    waited_ns >= LIMIT_EVICT_AFTER_NS && (id != CONN_SLOW || is_slow(c, now_ns))) {
			io->count[SERVER_EVICTED]++;
			if (c->wait == WAIT_WRITE)
				conn_abort(c);
			else
				conn_close(c);
			return true;
		}
		if (id == CONN_SLOW)
			conn_list_rotate(c);
	}
	return false;
}

/* The one of these lists (bits) whose first has waited longest. */
static enum conn_list_id eldest(const struct http_io *io, unsigned lists)
{
	enum conn_list_id best = CONN_LISTS;

	for (int id = 0; id < CONN_LISTS; id++)
		if ((lists & 1u << id) &&
		    (best == CONN_LISTS ||
			head_since_ns(io, (enum conn_list_id)id) < head_since_ns(io, best)))
			best = (enum conn_list_id)id;
	return best;
}

/* Those without a request, that have had their last answer, too. */
#define WAITING            (1u << CONN_IDLE | 1u << CONN_HALF | 1u << CONN_LINGER)
#define WAITING_OR_REFUSED (WAITING | 1u << CONN_REFUSED)

/* Who has waited longest in one of these lists. */
static bool evict_waiting(struct http_io *io, unsigned lists, uint64_t key)
{
	while (lists != 0) {
		enum conn_list_id id = eldest(io, lists);
		if (evict_from(io, id, key))
			return true;
		lists &= ~(1u << id);
	}
	return false;
}

static bool evict(struct http_io *io, uint64_t key)
{
	return evict_waiting(io, WAITING | 1u << CONN_AWAY, key) || evict_from(io, CONN_SLOW, key);
}

static bool has_places(const struct http_io *io, int n)
{
	return atomic_load_explicit(&io->srv->connections, memory_order_relaxed) <=
	       io->conf.max_connections - n;
}

bool limit_has_place(const struct http_io *io)
{
	return has_places(io, 1);
}

bool limit_make_places(struct http_io *io, int n, bool waiting)
{
	for (int i = 0; i < LIMIT_EVICT_RUN && !has_places(io, n); i++)
		if (!(waiting ? evict_waiting(io, WAITING, 0) : evict(io, 0)))
			return false;
	return has_places(io, n);
}

int64_t limit_idle_since_ns(const struct http_io *io, bool place)
{
	unsigned lists = place ? WAITING : WAITING_OR_REFUSED;

	return head_since_ns(io, eldest(io, lists));
}

bool limit_make_room(struct http_io *io)
{
	/* Who is with his handshake's stage gives his descriptor back when he is home, which may be late. */
	return evict_waiting(io, WAITING_OR_REFUSED, 0);
}

bool limit_evict_reader(struct http_io *io)
{
	struct conn_list *slow = &io->list[CONN_SLOW];
	int64_t now_ns = weir_loop_now_ns(io->loop);

	for (int i = 0; i < EVICT_SCAN && i < slow->n; i++) {
		struct conn *c = slow->first;
		if (c->wait == WAIT_WRITE && now_ns - c->since_ns >= LIMIT_EVICT_AFTER_NS &&
		    is_slow(c, now_ns)) {
			io->count[SERVER_EVICTED]++;
			conn_abort(c);
			return true;
		}
		conn_list_rotate(c);
	}
	return false;
}

int64_t limit_per_address(const struct http_conf *conf)
{
	int64_t quarter = conf->max_connections / 4;

	if (conf->max_per_address == 0)
		return INT64_MAX;
	if (conf->max_per_address > 0)
		return conf->max_per_address;
	return quarter > PER_ADDRESS_MIN ? quarter : PER_ADDRESS_MIN;
}

/* As with places (limit.h): what is beyond the limit of the address, its newcomer included, goes. Of those who came at once to other
 * threads the later one has more to make room for, unless the earlier one, or another's going, has done so meanwhile. */
static bool has_own_place(struct http_io *io, uint64_t key, int64_t n)
{
	int64_t most = limit_per_address(&io->conf), over = n - most;

	for (int i = 0; i < LIMIT_EVICT_RUN && over > 0; i++) {
		if (crowd_count(io->srv->crowd, key) <= most)
			return true;
		if (!evict(io, key))
			return false;
		over--;
	}
	return over <= 0;
}

int limit_of_newcomer(struct http_io *io, uint64_t key, int64_t n)
{
	const struct http_conf *conf = &io->conf;

	if (conf->accept_rate > 0 &&
	    !crowd_may_open(io->srv->crowd, key, conf->accept_rate, weir_loop_now_ns(io->loop)))
		return LIMIT_RATE;
	return has_own_place(io, key, n) ? -1 : LIMIT_ADDRESS;
}

/* ---- descriptors ---- */

void limit_raise_fds(const struct weir_stage *st, int64_t max_connections)
{
	rlim_t need = (rlim_t)max_connections + FDS_APART;
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) == -1 || r.rlim_cur >= need)
		return;
	r.rlim_cur = r.rlim_max < need ? r.rlim_max : need;
	if (setrlimit(RLIMIT_NOFILE, &r) == -1 || r.rlim_cur < need)
		weir_log(WEIR_LOG_WARN,
		    "%s: max_connections is %lld, but the process may open %llu files (ulimit "
		    "-Hn); "
		    "clients beyond that wait",
		    weir_stage_name(st), (long long)max_connections,
		    (unsigned long long)r.rlim_cur);
}
