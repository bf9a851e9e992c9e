/* SPDX-License-Identifier: MIT */
/*
 * Handing over; see heir.h.
 *
 * A connection travels as a parcel on a list per I/O thread of the heir: pushed by any leaver's thread, taken whole by
 * its owner (Treiber 1986; taking all at once has no ABA problem). Only the push onto an empty list wakes the owner.
 */
#include "http/heir.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "http/conn.h"
#include "http/limit.h"
#include "http/tls_conn.h"

/* Without memory: tried again after this. Half of the 0.1 s that recovery may take, as in listen.c. */
#define AGAIN_NS 50000000LL
/* For so long: as long as a head may take (header_timeout unless it is set). What is not over by then is no moment's need. */
#define KEPT_NS 10000000000LL

/** A connection between two I/O threads. */
struct parcel {
	struct parcel *next;
	int fd;
	struct conn_past past;
	int64_t since_ns; /* when its present owner had to keep it first; 0: it is new there */
	size_t n;         /* bytes read and not yet used */
	char data[];
};

/* ---- listening sockets ---- */

static struct http_server *predecessor(const struct http_server *srv)
{
	struct weir_stage *st = weir_predecessor(srv->stage, NULL);

	return st ? weir_state(st) : NULL;
}

struct tls_site *heir_site(const struct http_server *srv)
{
	const struct http_server *old = predecessor(srv);

	return old ? old->tls : NULL;
}

void heir_begin(const struct http_server *srv)
{
	const struct http_server *old = predecessor(srv);

	for (int i = 0; old && i < old->n_io; i++)
		for (int k = 0; k < old->io[i]->n_listeners; k++)
			old->io[i]->listener[k].shared = false;
}

/* Those of `old` at its address number `k`, at most `max`, into list[]. Returns how many. */
static int sockets_at(const struct http_server *old, int k, struct listener **list, int max)
{
	int n = 0;

	for (int i = 0; i < old->n_io; i++)
		for (int m = 0; m < old->io[i]->n_listeners && n < max; m++) {
			struct listener *l = &old->io[i]->listener[m];
			if (l->address == k && l->watch.fd != -1)
				list[n++] = l;
		}
	return n;
}

/* The sockets of `old` at `a` which are not yet taken: the configuration may name an address twice, as port 0. */
static int find_sockets(
    const struct http_server *old, const struct address *a, struct listener **list, int max)
{
	const struct http_conf *conf = weir_conf(old->stage);
	struct weir_err ignored;
	struct address b;

	for (int k = 0; k < old->n_addresses && k < conf->listen.n; k++) {
		bool same = http_address_parse(conf->listen.items[k], &b, &ignored) == 0 &&
			    a->n == b.n && memcmp(&a->addr, &b.addr, a->n) == 0;
		int n = same ? sockets_at(old, k, list, max) : 0;
		if (n > 0 && !list[0]->shared)
			return n;
	}
	return 0;
}

int heir_sockets(
    const struct http_server *srv, const struct address *a, int fd[SERVER_IO_MAX], bool *passed)
{
	const struct http_server *old = predecessor(srv);
	struct listener *list[SERVER_IO_MAX];
	int n = old ? find_sockets(old, a, list, SERVER_IO_MAX) : 0, i = 0;

	for (; i < n; i++) {
		fd[i] = fcntl(list[i]->watch.fd, F_DUPFD_CLOEXEC, 0);
		if (fd[i] == -1)
			break;
		*passed = list[i]->passed;
	}
	if (i < n) {
		while (i-- > 0)
			close(fd[i]);
		return WEIR_ESYS;
	}
	while (i-- > 0)
		list[i]->shared = true; /* its thread looks when it stops */
	return n;
}

/* ---- the leaver ---- */

static void push(struct http_io *to, struct parcel *p)
{
	struct parcel *head = atomic_load_explicit(&to->handed, memory_order_relaxed);

	do
		p->next = head;
	while (!atomic_compare_exchange_weak_explicit(&to->handed, &head, p, memory_order_release,
	    memory_order_relaxed)); /* partner: heir_adopt */
	if (!head)
		weir_loop_wake(to->loop);
}

static void hand_over(const struct http_io *from, struct parcel *p)
{
	p->since_ns = 0;
	push(from->heir->io[from->index % from->heir->n_io], p);
}

static bool between_requests(const struct conn *c)
{
	return conn_is_open(c) && c->in_flight == 0 && !c->no_more && !c->lingering &&
	       !c->blocked && !c->part && !c->stream.filling && c->stream.phase != STREAM_SKIP &&
	       !(c->tls && tls_is_away(c->tls));
}

/* The turn that this makes takes in what is kept. */
static void again(struct weir_loop *loop, struct weir_timer *t)
{
	struct http_io *io = weir_loop_data(loop);
	struct conn *next;

	(void)t;
	io_touch(io);
	for (struct conn *c = heir_leaving(io) ? io->conns : NULL; c; c = next) {
		next = c->next;
		heir_take_leave(c);
	}
}

static void try_again(struct http_io *io)
{
	io->heir_timer.fire = again;
	weir_timer_set(io->loop, &io->heir_timer, weir_loop_now_ns(io->loop) + AGAIN_NS);
}

bool heir_take_leave(struct conn *c)
{
	const struct stream *s = &c->stream;
	size_t n = s->in ? s->end - s->start : 0;
	struct parcel *p;

	if (!between_requests(c))
		return false;
	p = malloc(sizeof(*p) + n);
	if (!p) {
		try_again(c->io);
		return false;
	}
	p->n = n;
	if (n > 0)
		memcpy(p->data, s->in->data + s->start, n);
	conn_past(c, &p->past);
	p->fd = conn_detach(c);
	tls_conn_set(c, NULL); /* the parcel's */
	hand_over(c->io, p);
	return true;
}

void heir_leave(struct http_io *io, struct http_server *heir)
{
	struct conn *next;

	io->heir = heir;
	for (struct conn *c = io->conns; c; c = next) {
		next = c->next;
		heir_take_leave(c);
	}
}

/* ---- the heir ---- */

/* Put what was read into the stream. The bytes came out of a buffer of the same sizes, so they find room, at the
 * latest when the requests among them have been parsed. */
static void refill(struct conn *c, const struct parcel *p)
{
	size_t at = 0;

	while (at < p->n && !c->no_more) {
		char *room;
		size_t n = stream_room(&c->stream, &c->io->pool, &room);
		if (n == 0 && c->stream.phase != STREAM_ENDED) {
			size_t rest = c->stream.end - c->stream.start;
			conn_parse(c);
			if (c->stream.end - c->stream.start < rest)
				continue;
		}
		if (n == 0) {
			conn_refuse(c, 503, "there is no memory for the request");
			return;
		}
		n = n < p->n - at ? n : p->n - at;
		memcpy(room, p->data + at, n);
		stream_got(&c->stream, n);
		at += n;
	}
	conn_parse(c);
}

/* Close what nobody takes. */
static void drop(const struct parcel *p)
{
	if (p->past.tls) {
		tls_conn_close(p->past.tls, p->fd);
		tls_conn_free(p->past.tls);
		return;
	}
	close(p->fd);
}

/* Has its client said something that nobody has answered? It may have done so at the last moment. */
static bool has_begun(const struct parcel *p)
{
	char byte;

	return p->n > 0 || (!p->past.tls && recv(p->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1);
}

/* Close it; who has begun to speak is told. */
static void turn_away(struct http_io *io, const struct parcel *p)
{
	if (has_begun(p) && !p->past.tls)
		limit_tell(io, p->fd);
	else
		drop(p);
}

/* It could not be taken in for too long. */
static void give_up(struct http_io *io, const struct parcel *p)
{
	static atomic_bool logged;

	io->count[SERVER_REFUSED_HANDED]++;
	if (weir_log_first(&logged))
		weir_log(WEIR_LOG_WARN,
		    "%s: connections of the server before this one could not be taken over for "
		    "%lld s, "
		    "and were closed (memory, or fs.epoll.max_user_watches; logged once)",
		    weir_stage_name(io->stage), KEPT_NS / 1000000000LL);
	turn_away(io, p);
}

/* The server that it came to has ended itself: as in drain.c. */
static void end_late(struct http_io *io, const struct parcel *p)
{
	io->count[SERVER_REFUSED_LATE] += has_begun(p);
	turn_away(io, p);
}

/* A server that ends itself still answers a request that has begun; who is idle would be closed by now. */
static bool is_late(const struct http_io *io, const struct parcel *p)
{
	return io->phase == SERVER_CLOSED || io->drained ||
	       (io->phase == SERVER_DRAINING && !has_begun(p));
}

/* They are kept, from now on if they are new. */
static void keep(struct http_io *io)
{
	for (struct parcel *p = io->kept; p; p = p->next)
		if (p->since_ns == 0)
			p->since_ns = weir_loop_now_ns(io->loop);
	try_again(io);
}

/* False: there is no memory for it now. */
static bool adopt(struct http_io *io, struct parcel *p)
{
	bool late = is_late(io, p);
	struct conn *c = late ? NULL : conn_adopt(io, p->fd, &p->past);

	if (!c && !late && (p->since_ns == 0 || weir_loop_now_ns(io->loop) - p->since_ns < KEPT_NS))
		return false;
	if (late) {
		end_late(io, p);
	} else if (!c) {
		give_up(io, p);
	} else {
		refill(c, p);
		conn_settle(c);
	}
	free(p);
	return true;
}

/* Take in those of the list, or hand them on, until memory is out. Returns those that are left. */
static struct parcel *take_in(struct http_io *io, struct parcel *p)
{
	struct parcel *next;

	for (; p; p = next) {
		next = p->next;
		if (heir_leaving(io))
			hand_over(io, p);
		else if (!adopt(io, p))
			break;
	}
	return p;
}

void heir_adopt(struct http_io *io)
{
	if (WEIR_LIKELY(!atomic_load_explicit(&io->handed, memory_order_relaxed) && !io->kept))
		return;
	io_touch(io);
	/* Partner: push. */
	struct parcel *p = atomic_exchange_explicit(&io->handed, NULL, memory_order_acquire);
	struct parcel **tail = &io->kept;
	while (*tail)
		tail = &(*tail)->next;
	*tail = p;
	io->kept = take_in(io, io->kept);
	if (io->kept)
		keep(io);
}

static void end_all(struct http_io *io, struct parcel *p)
{
	struct parcel *next;

	for (; p; p = next) {
		next = p->next;
		end_late(io, p);
		free(p);
	}
}

void heir_fini(struct http_io *io)
{
	end_all(io, io->kept);
	io->kept = NULL;
	end_all(io, atomic_exchange(&io->handed, NULL));
}
