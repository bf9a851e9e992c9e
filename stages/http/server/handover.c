/* SPDX-License-Identifier: MIT */
/*
 * Hands connections over between servers; see handover.h.
 *
 * A connection is handed over as a struct handed_conn, on a list per I/O thread of the new server.
 * Any thread of the old server pushes to the list; the owner removes the whole list at once
 * (Treiber 1986; this has no ABA problem). Only a push onto an empty list wakes the owner.
 */
#include "http/server/handover.h"

#include <fcntl.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "http/conn/conn.h"
#include "http/conn/limit.h"
#include "http/conn/tls_conn.h"
#include "http/server/handed.h"
#include "http/server/handed_file.h"

/* Delay before the next attempt when memory was short: half of the 0.1 s that recovery may take, as
 * in listen.c. */
#define AGAIN_NS 50000000LL
/* Time after which an attempt to take a connection over is abandoned. It is the default of
 * header_timeout, since a shortage that lasts longer than that is not momentary. */
#define KEPT_NS 10000000000LL

/** A connection being handed over between two I/O threads. */
struct handed_conn {
	struct handed_conn *next;
	int fd;
	struct conn_past past;
	struct handed *answer; /* the rest of the response that it was sending; may be NULL */
	/* when its current owner first failed to take it over; 0 if it has not failed */
	int64_t since_ns;
	size_t n; /* bytes read but not used yet */
	char data[];
};

/* ---- listening sockets ---- */

static struct http_server *predecessor(const struct http_server *srv)
{
	struct weir_stage *st = weir_predecessor(srv->stage, NULL);

	return st ? weir_state(st) : NULL;
}

struct tls_site *handover_site(const struct http_server *srv)
{
	const struct http_server *old = predecessor(srv);

	return old ? old->tls : NULL;
}

void handover_begin(const struct http_server *srv)
{
	const struct http_server *old = predecessor(srv);

	for (int i = 0; old && i < old->n_io; i++)
		for (int k = 0; k < old->io[i]->accept.n_listeners; k++)
			old->io[i]->listener[k].shared = false;
}

/* List up to `max` sockets of `old` at its address number `k`. Returns their number. */
static int sockets_at(const struct http_server *old, int k, struct listener **list, int max)
{
	int n = 0;

	for (int i = 0; i < old->n_io; i++)
		for (int m = 0; m < old->io[i]->accept.n_listeners && n < max; m++) {
			struct listener *l = &old->io[i]->listener[m];
			if (l->address == k && l->watch.fd != -1)
				list[n++] = l;
		}
	return n;
}

/* Find the sockets of `old` at `a` that are not shared yet. If the configuration names an address
 * twice, such as one with port 0, each entry gets different sockets. */
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

/* Like handover_sockets; the caller holds the lock of `old`. */
static int share_sockets(
    const struct http_server *old, const struct address *a, int fd[SERVER_IO_MAX], bool *passed)
{
	struct listener *list[SERVER_IO_MAX];
	int n = find_sockets(old, a, list, SERVER_IO_MAX), i = 0;

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
		list[i]->shared = true; /* the thread of the listener checks this when it stops */
	return n;
}

int handover_sockets(
    const struct http_server *srv, const struct address *a, int fd[SERVER_IO_MAX], bool *passed)
{
	struct http_server *old = predecessor(srv);
	int n = 0;

	if (!old)
		return 0;
	/* The threads of `old` close the sockets under its lock when it stops, which may happen
	 * while we start (weir_graph_stay). */
	pthread_mutex_lock(&old->lock);
	n = share_sockets(old, a, fd, passed);
	pthread_mutex_unlock(&old->lock);
	return n;
}

/* ---- handing over ---- */

static void push(struct http_io *to, struct handed_conn *p)
{
	struct handed_conn *head = atomic_load_explicit(&to->handover.handed, memory_order_relaxed);

	do
		p->next = head;
	while (!atomic_compare_exchange_weak_explicit(&to->handover.handed, &head, p,
	    memory_order_release, memory_order_relaxed)); /* partner: handover_adopt */
	if (!head)
		weir_loop_wake(to->loop);
}

static void hand_over(const struct http_io *from, struct handed_conn *p)
{
	p->since_ns = 0;
	handed_on(p->answer, from->handover.to);
	push(from->handover.to->io[from->index % from->handover.to->n_io], p);
}

static bool between_requests(const struct conn *c)
{
	return c->phase == CONN_OPEN && c->in_flight == 0 && c->input == INPUT_OPEN &&
	       !c->socket.blocked && !c->part.begun && !c->stream.filling &&
	       c->stream.phase != STREAM_SKIP && !(c->tls && tls_is_away(c->tls));
}

/* Timer callback: repeat failed attempts to hand connections over. Attempts to take over those in
 * handover.kept are repeated at the end of the same iteration (handover_adopt). */
static void again(struct weir_loop *loop, struct weir_timer *t)
{
	struct http_io *io = weir_loop_data(loop);
	struct conn *next;

	(void)t;
	io_touch(io);
	for (struct conn *c = io_is_leaving(io) ? io->conns : NULL; c; c = next) {
		next = c->next;
		handover_take_leave(c);
	}
}

static void try_again(struct http_io *io)
{
	io->handover.timer.fire = again;
	weir_timer_set(io->loop, &io->handover.timer, weir_loop_now_ns(io->loop) + AGAIN_NS);
}

/* Whether `c` only sends a response that can be handed over. The receiving server must be running:
 * one that is itself stopping has no more time for the response than this one. */
static bool only_sends(const struct conn *c)
{
	return handed_fits(c) && atomic_load(&c->io->handover.to->phase) == SERVER_RUNNING;
}

bool handover_take_leave(struct conn *c)
{
	const struct stream *s = &c->stream;
	size_t n = s->in ? s->end - s->start : 0;
	bool sends = only_sends(c);
	struct handed_conn *p;

	if (!sends && !between_requests(c))
		return false;
	p = malloc(sizeof(*p) + n);
	if (p)
		p->answer = sends ? handed_take(c) : NULL;
	if (!p || (sends && !p->answer)) {
		free(p);
		try_again(c->io);
		return false;
	}
	p->n = n;
	if (n > 0)
		memcpy(p->data, s->in->data + s->start, n);
	conn_past(c, &p->past);
	p->fd = conn_detach(c);
	tls_conn_set(c, NULL); /* `p` owns the TLS state now */
	hand_over(c->io, p);
	return true;
}

void handover_leave(struct http_io *io, struct http_server *successor)
{
	struct conn *next;

	io->handover.to = successor;
	for (struct conn *c = io->conns; c; c = next) {
		next = c->next;
		handover_take_leave(c);
	}
}

/* ---- taking over ---- */

/* Put into the stream the bytes that the old server had read. They were in a buffer of the same
 * size, so what cannot be parsed yet fits. */
static enum conn_next refill(struct conn *c, const struct handed_conn *p)
{
	size_t at = 0;

	while (at < p->n && c->input == INPUT_OPEN) {
		char *room;
		size_t n = stream_room(&c->stream, &c->io->pool, &room);
		enum conn_next next;
		if (n == 0 && stream_full(&c->stream, &c->io->pool) == STREAM_TORN) {
			conn_tear_part(c, WEIR_EGONE, 503);
			return CONN_WAIT;
		}
		if (n == 0)
			return conn_refuse(c, 503, "no memory for the request");
		n = n < p->n - at ? n : p->n - at;
		memcpy(room, p->data + at, n);
		stream_got(&c->stream, n);
		at += n;
		next = conn_parse(c);
		if (next != CONN_WAIT)
			return next;
	}
	return CONN_WAIT;
}

/* Close a connection that is not taken over. */
static void drop(const struct handed_conn *p)
{
	handed_free(p->answer);
	if (p->past.tls) {
		tls_conn_close(p->past.tls, p->fd);
		tls_conn_free(p->past.tls);
		return;
	}
	close(p->fd);
}

/* Whether the client has sent something that is not answered yet, which may not have been read
 * yet. */
static bool has_begun(const struct handed_conn *p)
{
	char byte;

	return p->n > 0 || (!p->past.tls && TEMP_FAILURE_RETRY(recv(
						p->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT)) == 1);
}

/* Close a connection that is not taken over. If its client has begun a request, a 503 is sent
 * first, unless the connection uses TLS or was being answered. */
static void turn_away(struct http_io *io, const struct handed_conn *p)
{
	if (!p->answer && has_begun(p) && !p->past.tls)
		limit_tell(io, p->fd);
	else
		drop(p);
}

/* Count and close a connection that could not be taken over within KEPT_NS. */
static void give_up(struct http_io *io, const struct handed_conn *p)
{
	static atomic_bool logged;

	io->count[SERVER_REFUSED_HANDED]++;
	io->count[SERVER_UNDELIVERED] += p->answer != NULL;
	if (weir_log_first(&logged))
		weir_log(WEIR_LOG_WARN,
		    "%s: connections of the previous server could not be taken over within %lld s "
		    "and were closed (memory, or fs.epoll.max_user_watches; logged once)",
		    weir_stage_name(io->stage), KEPT_NS / 1000000000LL);
	turn_away(io, p);
}

/* Close a connection whose new server has itself stopped, and count it as drain.c does. */
static void end_late(struct http_io *io, const struct handed_conn *p)
{
	io->count[SERVER_REFUSED_LATE] += !p->answer && has_begun(p);
	io->count[SERVER_UNDELIVERED] += p->answer != NULL;
	turn_away(io, p);
}

/* Whether it is too late to take the connection over. A server that is draining still answers a
 * request that has begun, but would have closed an idle connection by now. */
static bool is_late(const struct http_io *io, const struct handed_conn *p)
{
	return io->drain.phase == SERVER_CLOSED || io->drain.done ||
	       (io->drain.phase == SERVER_DRAINING && !p->answer && !has_begun(p));
}

/* Arrange another attempt for the connections that could not be taken over, and record when each
 * first failed. */
static void keep(struct http_io *io)
{
	for (struct handed_conn *p = io->handover.kept; p; p = p->next)
		if (p->since_ns == 0)
			p->since_ns = weir_loop_now_ns(io->loop);
	try_again(io);
}

/* Open the connection of `p`, with the response that it was sending. Returns NULL, with nothing
 * changed, if out of memory. */
static struct conn *open_handed(struct http_io *io, struct handed_conn *p)
{
	struct http_req *r = p->answer ? handed_request(io) : NULL;
	struct conn *c = p->answer && !r ? NULL : conn_adopt(io, p->fd, &p->past);

	if (r && c)
		handed_begin(c, r, p->answer);
	else if (r)
		pool_req_drop(&io->pool, r);
	if (c)
		p->answer = NULL;
	return c;
}

/* Take `p` over, or close it if it is too late. Returns false if there is no memory for it now, so
 * that it must be stored. */
static bool adopt(struct http_io *io, struct handed_conn *p)
{
	bool late = is_late(io, p);
	struct conn *c = late ? NULL : open_handed(io, p);

	if (!c && !late && (p->since_ns == 0 || weir_loop_now_ns(io->loop) - p->since_ns < KEPT_NS))
		return false;
	if (late) {
		end_late(io, p);
	} else if (!c) {
		give_up(io, p);
	} else {
		conn_act(c, refill(c, p));
	}
	free(p);
	return true;
}

/* Take over the connections in the list, until memory runs out, or pass them on if this server is
 * itself handing over. Returns the remaining ones. */
static struct handed_conn *take_in(struct http_io *io, struct handed_conn *p)
{
	struct handed_conn *next;

	for (; p; p = next) {
		next = p->next;
		if (io_is_leaving(io))
			hand_over(io, p);
		else if (!adopt(io, p))
			break;
	}
	return p;
}

void handover_adopt(struct http_io *io)
{
	if (WEIR_LIKELY(!atomic_load_explicit(&io->handover.handed, memory_order_relaxed) &&
			!io->handover.kept))
		return;
	io_touch(io);
	/* Partner: push. */
	struct handed_conn *p =
	    atomic_exchange_explicit(&io->handover.handed, NULL, memory_order_acquire);
	struct handed_conn **tail = &io->handover.kept;
	while (*tail)
		tail = &(*tail)->next;
	*tail = p;
	io->handover.kept = take_in(io, io->handover.kept);
	if (io->handover.kept)
		keep(io);
}

static void end_all(struct http_io *io, struct handed_conn *p)
{
	struct handed_conn *next;

	for (; p; p = next) {
		next = p->next;
		end_late(io, p);
		free(p);
	}
}

void handover_fini(struct http_io *io)
{
	end_all(io, io->handover.kept);
	io->handover.kept = NULL;
	end_all(io, atomic_exchange(&io->handover.handed, NULL));
	handed_files_forget(&io->handover.files);
}
