/* SPDX-License-Identifier: MIT */
/*
 * A source of a protocol other than HTTP, for tests of stages/net: it sends every byte back. A
 * client that is refused gets "full". Header-only.
 */
#ifndef WEIR_TESTS_ECHO_SOURCE_H
#define WEIR_TESTS_ECHO_SOURCE_H

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "cunit_main.h"
#include "fixture/graph/graph.h"

#include "net/clients.h"
#include "net/drain.h"
#include "net/handover.h"
#include "net/net_conn.h"
#include "net/net_server.h"
#include "net/pause.h"
#include "net/tls/tls_conn.h"

/** The outlet to a stage that does handshakes. */
#define ECHO_HANDSHAKE 1

/* ---- the protocol ---- */

struct echo_conf {
	struct net_conf net;
};

struct echo_io {
	struct net_io net; /* first member */
	struct echo_conf conf;
	int64_t count[NET_METRICS];
};

struct echo_conn {
	struct net_conn net; /* first member */
	struct echo_io *io;
};

struct echo_handed {
	struct net_handed net; /* first member */
	struct net_client client;
	int fd;
};

/* Clients refused, by limit. */
static atomic_int echo_refused[NET_LIMIT_MEMORY + 1];
static atomic_int echo_evicted, echo_adopted;
/* New connections count as busy, so they are not evicted. */
static atomic_bool echo_busy;

static inline void echo_close_conn(struct echo_conn *c)
{
	struct echo_io *io = c->io;

	close(net_conn_detach(&io->net, &c->net));
	io->net.n_conns--;
	free(c);
}

static inline void echo_on_ready(struct weir_loop *loop, struct weir_watch *w, uint32_t events)
{
	struct echo_conn *c = (struct echo_conn *)w;
	char bytes[512];
	ssize_t n;

	(void)events;
	net_touch(&c->io->net);
	if (c->io->net.pause.on)
		return;
	n = TEMP_FAILURE_RETRY(recv(w->fd, bytes, sizeof(bytes), MSG_DONTWAIT));
	if (n == 0 || (n < 0 && errno != EAGAIN)) {
		echo_close_conn(c);
		return;
	}
	if (n > 0)
		(void)!TEMP_FAILURE_RETRY(send(w->fd, bytes, (size_t)n, MSG_NOSIGNAL));
	c->net.wait.since_ns = c->net.wait.progress_ns = weir_loop_now_ns(loop);
	if (c->net.wait.prev)
		net_list_rotate(&c->io->net, &c->net);
}

static inline struct echo_conn *echo_conn_new(struct net_io *io, int fd)
{
	struct echo_conn *c = calloc(1, sizeof(*c));

	c->io = (struct echo_io *)io;
	c->net.watch = (struct weir_watch){.ready = echo_on_ready, .fd = fd};
	c->net.wait.since_ns = c->net.wait.progress_ns = weir_loop_now_ns(io->loop);
	CU_ASSERT_EQUAL_FATAL(weir_loop_add(io->loop, &c->net.watch, EPOLLIN), 0);
	net_conn_enter(io, &c->net);
	net_list_join(io, &c->net, atomic_load(&echo_busy) ? LIST_BEHIND : LIST_IDLE);
	return c;
}

static inline void echo_touch(struct net_io *io)
{
	((struct echo_io *)io)->conf = *(const struct echo_conf *)weir_conf(io->stage);
}

static inline struct net_io *echo_io_new(struct net_server *srv, int index)
{
	struct echo_io *io = calloc(1, sizeof(*io));

	net_io_init(&io->net, srv, index, &io->conf.net, io->count);
	return &io->net;
}

static inline void echo_io_free(struct net_io *io)
{
	free(io);
}

static inline void echo_turn_away(struct net_io *io, int fd, enum net_limit over, bool tell)
{
	(void)io;
	atomic_fetch_add(&echo_refused[over], 1);
	if (tell)
		(void)!TEMP_FAILURE_RETRY(send(fd, "full", 4, MSG_NOSIGNAL));
	close(fd);
}

static inline void echo_open_conn(
    struct net_io *io, int fd, const struct sockaddr_storage *addr, uint64_t key, int over)
{
	struct echo_conn *c;

	if (over >= 0) {
		clients_leave(io->srv->clients, key);
		echo_turn_away(io, fd, (enum net_limit)over, true);
		return;
	}
	c = echo_conn_new(io, fd);
	c->net.client.key = key;
	net_conn_name(&c->net, addr);
	CU_ASSERT_STRING_EQUAL(c->net.client.address, "127.0.0.1");
}

static inline bool echo_is_slow(struct net_conn *c)
{
	(void)c;
	return false;
}

static inline void echo_evict(struct net_conn *c)
{
	atomic_fetch_add(&echo_evicted, 1);
	echo_close_conn((struct echo_conn *)c);
}

static inline void echo_nothing(struct net_conn *c)
{
	(void)c;
}

static inline void echo_end(struct net_conn *c)
{
	echo_close_conn((struct echo_conn *)c);
}

static inline bool echo_hand_over(struct net_conn *conn)
{
	struct echo_conn *c = (struct echo_conn *)conn;
	struct echo_handed *h = calloc(1, sizeof(*h));
	struct echo_io *io = c->io;

	h->client = c->net.client;
	h->fd = net_conn_detach(&io->net, &c->net);
	io->net.n_conns--;
	free(c);
	handover_send(&io->net, &h->net);
	return true;
}

static inline void echo_handed_on(struct net_handed *h, struct net_server *to)
{
	(void)h;
	CU_ASSERT_PTR_NOT_NULL(to);
}

static inline bool echo_handed_is_idle(const struct net_handed *h)
{
	(void)h;
	return true;
}

static inline bool echo_adopt(struct net_io *io, struct net_handed *h)
{
	struct echo_handed *e = (struct echo_handed *)h;
	struct echo_conn *c = echo_conn_new(io, e->fd);

	c->net.client = e->client;
	CU_ASSERT(clients_enter(io->srv->clients, c->net.client.key) > 0);
	atomic_fetch_add(&echo_adopted, 1);
	free(e);
	return true;
}

static inline bool echo_is_between(const struct net_conn *c)
{
	(void)c;
	return true;
}

static inline void echo_handed_waits(struct net_server *srv, int n)
{
	(void)srv;
	(void)n;
}

static inline void echo_handed_drop(struct net_io *io, struct net_handed *h, bool late)
{
	(void)io;
	(void)late;
	close(((struct echo_handed *)h)->fd);
	free(h);
}

static const struct net_calls echo_calls = {
    .metric = {[NET_CONNECTIONS] = NET_CONNECTIONS,
	[NET_ACCEPT_FAILURES] = NET_ACCEPT_FAILURES,
	[NET_REFUSED_HANDED] = NET_REFUSED_HANDED},
    .touch = echo_touch,
    .io_new = echo_io_new,
    .io_free = echo_io_free,
    .open = echo_open_conn,
    .turn_away = echo_turn_away,
    .is_slow = echo_is_slow,
    .evict = echo_evict,
    .is_between = echo_is_between,
    .resume = echo_nothing,
    .settle = echo_nothing,
    .end_idle = echo_end,
    .end_late = echo_end,
    .hand_over = echo_hand_over,
    .handed_on = echo_handed_on,
    .handed_is_idle = echo_handed_is_idle,
    .adopt = echo_adopt,
    .handed_waits = echo_handed_waits,
    .handed_drop = echo_handed_drop,
};

/* ---- the source ---- */

static inline int echo_on_start(struct weir_loop *loop)
{
	struct net_io *io = weir_loop_data(loop);

	io->loop = loop;
	net_touch(io);
	return net_io_start(io);
}

static inline void echo_on_turn_end(struct weir_loop *loop)
{
	struct net_io *io = weir_loop_data(loop);

	net_io_follow(io);
	net_io_report(io);
}

static inline void echo_on_mail(struct weir_loop *loop, struct weir_event *list)
{
	(void)loop;
	CU_ASSERT_PTR_NULL(list);
}

static inline void echo_on_stop(struct weir_loop *loop)
{
	struct net_io *io = weir_loop_data(loop);

	net_io_stop(io);
	while (io->conns)
		echo_end(io->conns);
	CU_ASSERT_EQUAL(((struct echo_io *)io)->count[NET_CONNECTIONS], 0);
	drain_gone(io);
}

static const struct weir_loop_ops echo_loop_ops = {.start = echo_on_start,
    .stop = echo_on_stop,
    .mail = echo_on_mail,
    .turn_end = echo_on_turn_end};

static inline int echo_init(struct weir_stage *st, struct weir_err *err)
{
	int rc = net_conf_check(st, weir_conf(st), err);

	return rc != 0 ? rc : net_server_init(st, &echo_calls, ECHO_HANDSHAKE, err);
}

static inline int echo_start(struct weir_stage *st, struct weir_err *err)
{
	return net_server_start(st, &echo_loop_ops, err);
}

#define ROW(member) offsetof(struct echo_conf, net.member)

static const struct weir_knob echo_knobs[] = {
    {.name = "listen",
	.type = WEIR_KNOB_STRINGS,
	.offset = ROW(listen),
	.def = "127.0.0.1:0",
	.help = "addresses"},
    {.name = "threads",
	.type = WEIR_KNOB_INT,
	.offset = ROW(threads),
	.def = "2",
	.min = 1,
	.max = NET_IO_MAX,
	.help = "I/O threads"},
    {.name = "max_connections",
	.type = WEIR_KNOB_INT,
	.offset = ROW(max_connections),
	.def = "100",
	.min = 1,
	.max = 1e6,
	.help = "limit of connections"},
    {.name = "max_per_address",
	.type = WEIR_KNOB_INT,
	.offset = ROW(max_per_address),
	.def = "0",
	.min = 0,
	.max = 1e6,
	.help = "limit per address"},
    {.name = "backlog",
	.type = WEIR_KNOB_INT,
	.offset = ROW(backlog),
	.def = "16",
	.min = 1,
	.max = 1024,
	.help = "clients that wait"},
    {.name = "linger",
	.type = WEIR_KNOB_DURATION,
	.offset = ROW(linger_ns),
	.def = "10ms",
	.min = 0,
	.max = 1e9,
	.help = "time for a last request"},
    {.name = "tls",
	.type = WEIR_KNOB_MAP,
	.offset = ROW(tls),
	.fields = tls_knobs,
	.help = "certificates"},
    {.name = NULL},
};

static const struct weir_outlet echo_outlets[] = {
    {"out", &probe_type, false, "echo_nothing"},
    [ECHO_HANDSHAKE] = {"handshake", &tls_handshake_type, true, "handshakes"},
    {.name = NULL},
};

static const struct weir_stage_ops echo_ops = {.abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_SOURCE,
    .name = "t.echo",
    .summary = "sends back what it gets",
    .outlets = echo_outlets,
    .knobs = echo_knobs,
    .conf_size = sizeof(struct echo_conf),
    .state_size = sizeof(struct net_server),
    .init = echo_init,
    .start = echo_start,
    .stop = net_server_stop,
    .fini = net_server_fini,
    .pause = pause_server};

#endif
