/* SPDX-License-Identifier: MIT */
/*
 * Frees slots, descriptors and memory by eviction; see slot.h.
 *
 * When there are too many connections, the one that has waited longest without a request is
 * evicted. If no connection waits, one is evicted whose transfer is too slow for the protocol
 * (net_calls.is_slow). In either case the connection must have waited for NET_EVICT_AFTER_NS.
 *
 * The search is short, however many connections there are. In LIST_SLOW it checks at most
 * NET_EVICT_SCAN connections, and moves healthy ones to the end of the list, so that all are
 * checked in turn. In the other lists the first connection has waited longest, so checking it is
 * enough. A search for a connection of one given address may miss one that is beyond the first
 * NET_EVICT_SCAN; the new connection is then refused. Evicting a refused connection that lingers
 * frees a descriptor but no slot, since it has none; these connections have their own list.
 *
 * All lists but LIST_SLOW are in the order in which connections joined them. That is the order in
 * which their waits began, with two exceptions: a connection that resumes waiting for its
 * handshake, and one with part of a request that joins again after a response was sent. Both join
 * at the end of the list, although their waits began earlier, by at most the time limit of the
 * wait. Connections that are idle after a handshake or a response are strictly in the order of
 * their waits, and so are lingering ones.
 *
 * An I/O thread sees only its own connections. If none of them waits, it requests an eviction from
 * another thread that has a waiting one (evict.h). It sends no such request for max_per_address,
 * since it does not know which threads have connections of the address.
 */
#include "net/slot.h"

#include <sys/resource.h>

#include "net/clients.h"
#include "net/net_conn.h"

/* Minimum value of `max_per_address: auto`, so that a small max_connections does not restrict one
 * client too much. 64 is a guess. */
#define PER_ADDRESS_MIN 64
/* Descriptors reserved for everything but clients and I/O threads: files, logs, plug-ins. 128 is a
 * guess. */
#define FDS_APART 128

/* ---- eviction ---- */

/* When `c`, which is in list `id`, became idle or slow. A connection with TLS has been idle since
 * its handshake ended (progress_ns), but since_ns, from which the time limit counts, is the time at
 * which it was accepted. */
static int64_t eligible_since_ns(const struct net_conn *c, enum net_list_id id)
{
	return id == LIST_IDLE ? c->wait.progress_ns : c->wait.since_ns;
}

static int64_t head_since_ns(const struct net_io *io, enum net_list_id id)
{
	const struct net_conn *c = io->list[id].first;

	return c ? eligible_since_ns(c, id) : INT64_MAX;
}

/* Close one connection of list `id`, of any address if `key` is 0, else only of that address.
 * Returns false if none could be closed. */
static bool evict_from(struct net_io *io, enum net_list_id id, uint64_t key)
{
	int64_t now_ns = weir_loop_now_ns(io->loop);
	struct net_conn *c = io->list[id].first, *next;

	for (int i = 0; c && i < NET_EVICT_SCAN; i++, c = next) {
		int64_t waited_ns = now_ns - eligible_since_ns(c, id);
		next = c->wait.next;
		if ((key == 0 || c->client.key == key) && !c->ready &&
		    waited_ns >= NET_EVICT_AFTER_NS &&
		    (id != LIST_SLOW || io->srv->calls->is_slow(c))) {
			io->srv->calls->evict(c);
			return true;
		}
		if (id == LIST_SLOW)
			net_list_rotate(io, c);
	}
	return false;
}

/* Return the list, of those in `lists` (bits), whose first connection has waited longest. */
static enum net_list_id eldest(const struct net_io *io, unsigned lists)
{
	enum net_list_id best = NET_LISTS;

	for (int id = 0; id < NET_LISTS; id++)
		if ((lists & 1u << id) &&
		    (best == NET_LISTS ||
			head_since_ns(io, (enum net_list_id)id) < head_since_ns(io, best)))
			best = (enum net_list_id)id;
	return best;
}

/* Lists of connections without a complete request, including those that linger after their last
 * response. */
#define WAITING            (1u << LIST_IDLE | 1u << LIST_HALF | 1u << LIST_LINGER)
#define WAITING_OR_REFUSED (WAITING | 1u << LIST_REFUSED)

/* Evict the longest-waiting connection of `lists` (bits). */
static bool evict_waiting(struct net_io *io, unsigned lists, uint64_t key)
{
	while (lists != 0) {
		enum net_list_id id = eldest(io, lists);
		if (evict_from(io, id, key))
			return true;
		lists &= ~(1u << id);
	}
	return false;
}

static bool evict(struct net_io *io, uint64_t key)
{
	return evict_waiting(io, WAITING | 1u << LIST_AWAY, key) || evict_from(io, LIST_SLOW, key);
}

static bool has_slots(const struct net_io *io, int n)
{
	return atomic_load_explicit(&io->srv->connections, memory_order_relaxed) <=
	       io->conf->max_connections - n;
}

bool slot_is_free(const struct net_io *io)
{
	return has_slots(io, 1);
}

bool slot_make_free(struct net_io *io, int n, bool waiting)
{
	for (int i = 0; i < SLOT_EVICT_RUN && !has_slots(io, n); i++)
		if (!(waiting ? evict_waiting(io, WAITING, 0) : evict(io, 0)))
			return false;
	return has_slots(io, n);
}

int64_t slot_idle_since_ns(const struct net_io *io, bool place)
{
	unsigned lists = place ? WAITING : WAITING_OR_REFUSED;

	return head_since_ns(io, eldest(io, lists));
}

bool slot_evict(struct net_io *io)
{
	/* Not LIST_AWAY: a connection whose handshake is being done by its stage frees its
	 * descriptor only when the handshake's event returns, which may take long. */
	return evict_waiting(io, WAITING_OR_REFUSED, 0);
}

int64_t slot_per_address(const struct net_conf *conf)
{
	int64_t quarter = conf->max_connections / 4;

	if (conf->max_per_address == 0)
		return INT64_MAX;
	if (conf->max_per_address > 0)
		return conf->max_per_address;
	return quarter > PER_ADDRESS_MIN ? quarter : PER_ADDRESS_MIN;
}

/* Close other connections of the address of a new connection until the address is within its limit
 * (as slot_make_free does for slots). `n` is the number of its connections, including the new one.
 * Returns whether the address is within the limit. When connections arrive at several threads at
 * the same time, the later thread must evict more, unless others have been closed in the
 * meantime. */
static bool has_own_slot(struct net_io *io, uint64_t key, int64_t n)
{
	int64_t most = slot_per_address(io->conf), over = n - most;

	for (int i = 0; i < SLOT_EVICT_RUN && over > 0; i++) {
		if (clients_count(io->srv->clients, key) <= most)
			return true;
		if (!evict(io, key))
			return false;
		over--;
	}
	return over <= 0;
}

int slot_check_address(struct net_io *io, uint64_t key, int64_t n)
{
	const struct net_conf *conf = io->conf;

	if (conf->accept_rate > 0 &&
	    !clients_may_open(io->srv->clients, key, conf->accept_rate, weir_loop_now_ns(io->loop)))
		return NET_LIMIT_RATE;
	return has_own_slot(io, key, n) ? -1 : NET_LIMIT_ADDRESS;
}

/* ---- descriptors ---- */

void slot_raise_fds(
    const struct weir_stage *st, int64_t max_connections, int threads, int addresses)
{
	/* of a thread: its epoll, its eventfd, its reserve, its listeners */
	rlim_t need =
	    (rlim_t)max_connections + FDS_APART + (rlim_t)threads * (3 + (rlim_t)addresses);
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) == -1 || r.rlim_cur >= need)
		return;
	r.rlim_cur = r.rlim_max < need ? r.rlim_max : need;
	if (setrlimit(RLIMIT_NOFILE, &r) == -1 || r.rlim_cur < need)
		weir_log(WEIR_LOG_WARN,
		    "%s: max_connections is %lld, but the process may open only %llu files (ulimit "
		    "-Hn); clients beyond that wait",
		    weir_stage_name(st), (long long)max_connections,
		    (unsigned long long)r.rlim_cur);
}
