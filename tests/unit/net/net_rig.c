/* SPDX-License-Identifier: MIT */
#include "net/net_rig.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "fixture/graph/await.h"
#include "net/bind.h"
#include "net/listen.h"
#include "net/net_server.h"

struct rig rig;

/* ---- the record ---- */

__attribute__((format(printf, 1, 2))) static void record(const char *form, ...)
{
	size_t left = sizeof(rig.record) - (size_t)rig.said;
	va_list args;

	va_start(args, form);
	int n = vsnprintf(rig.record + rig.said, left, form, args);
	va_end(args);
	CU_ASSERT_FATAL(n >= 0 && (size_t)n < left);
	rig.said += n;
}

bool rig_did(const char *expected)
{
	size_t n = strlen(expected);
	bool same = (size_t)rig.said == n + (n > 0) && memcmp(rig.record, expected, n) == 0;

	if (!same)
		fprintf(stderr, "expected '%s', the calls were '%s'\n", expected, rig.record);
	rig.said = 0;
	rig.record[0] = '\0';
	return same;
}

static void record_conn(const char *what, const struct net_conn *c)
{
	record("%s:%c ", what, ((const struct rig_conn *)c)->name);
}

/* ---- the protocol ---- */

static void touch(struct net_io *io)
{
	(void)io;
}

static struct rig_conn *conn_new(struct net_io *io, int fd, bool refused)
{
	struct rig_conn *c = calloc(1, sizeof(*c));

	CU_ASSERT_PTR_NOT_NULL_FATAL(c);
	c->io = io;
	c->name = '?';
	c->net.watch.fd = fd;
	c->net.refused = refused;
	c->net.wait.since_ns = c->net.wait.progress_ns = rig.now_ns;
	CU_ASSERT_EQUAL_FATAL(weir_loop_add(io->loop, &c->net.watch, EPOLLIN), 0);
	net_conn_enter(io, &c->net);
	return c;
}

void rig_close(struct rig_conn *c)
{
	c->io->n_conns--;
	close(net_conn_detach(c->io, &c->net));
	free(c);
}

static void on_open(
    struct net_io *io, int fd, const struct sockaddr_storage *addr, uint64_t key, int over)
{
	struct rig_conn *c = conn_new(io, fd, over >= 0);

	CU_ASSERT_EQUAL(addr->ss_family, AF_INET);
	if (over >= 0) {
		record("open!%d ", over);
		clients_leave(io->srv->clients, key);
		net_list_join(io, &c->net, LIST_REFUSED);
	} else {
		record("open ");
		c->net.client.key = key;
		net_list_join(io, &c->net, LIST_BEHIND);
	}
}

static void on_turn_away(struct net_io *io, int fd, enum net_limit over, bool tell)
{
	(void)io;
	record("away!%d%s ", (int)over, tell ? "+" : "");
	close(fd);
}

static bool is_slow(struct net_conn *c)
{
	return ((struct rig_conn *)c)->slow;
}

static void on_evict(struct net_conn *c)
{
	record_conn("evict", c);
	rig_close((struct rig_conn *)c);
}

static bool is_between(const struct net_conn *c)
{
	return !((const struct rig_conn *)c)->slow;
}

static void on_resume(struct net_conn *c)
{
	CU_ASSERT_FALSE(((struct rig_conn *)c)->io->pause.on);
	record_conn("resume", c);
}

static void on_settle(struct net_conn *c)
{
	record_conn("settle", c);
}

static void on_end_idle(struct net_conn *c)
{
	record_conn("idle", c);
}

static void on_end_late(struct net_conn *c)
{
	record_conn("late", c);
}

static bool on_hand_over(struct net_conn *c)
{
	record_conn("leave", c);
	return false;
}

static void on_handed_on(struct net_handed *h, struct net_server *to)
{
	(void)h;
	CU_ASSERT_PTR_NOT_NULL(to);
}

static bool handed_is_idle(const struct net_handed *h)
{
	return ((const struct rig_handed *)h)->idle;
}

static bool on_adopt(struct net_io *io, struct net_handed *h)
{
	(void)io;
	if (!rig.adopts)
		return false;
	record("adopt:%c ", ((struct rig_handed *)h)->name);
	free(h);
	return true;
}

static void on_handed_waits(struct net_server *srv, int n)
{
	(void)srv;
	rig.waits += n;
}

static void on_handed_drop(struct net_io *io, struct net_handed *h, bool late)
{
	(void)io;
	record("drop:%c%s ", ((struct rig_handed *)h)->name, late ? "+" : "");
	free(h);
}

static const struct net_calls calls = {
    .metric = {[NET_CONNECTIONS] = NET_CONNECTIONS,
	[NET_ACCEPT_FAILURES] = NET_ACCEPT_FAILURES,
	[NET_REFUSED_HANDED] = NET_REFUSED_HANDED},
    .touch = touch,
    .open = on_open,
    .turn_away = on_turn_away,
    .is_slow = is_slow,
    .evict = on_evict,
    .is_between = is_between,
    .resume = on_resume,
    .settle = on_settle,
    .end_idle = on_end_idle,
    .end_late = on_end_late,
    .hand_over = on_hand_over,
    .handed_on = on_handed_on,
    .handed_is_idle = handed_is_idle,
    .adopt = on_adopt,
    .handed_waits = on_handed_waits,
    .handed_drop = on_handed_drop,
};

/* ---- the server ---- */

void rig_begin(int n)
{
	memset(&rig, 0, sizeof(rig));
	weir_log_set_fd(-1);
	rig.stage.name = "rig";
	rig.srv.stage = &rig.stage;
	rig.srv.calls = &calls;
	rig.srv.clients = clients_new();
	rig.srv.n_io = n;
	rig.srv.n_loops = n;
	rig.adopts = true;
	rig.conf = (struct net_conf){.max_connections = 1000, .backlog = 8};
	pthread_mutex_init(&rig.srv.lock, NULL);
	pthread_cond_init(&rig.srv.reported, NULL);
	for (int i = 0; i < n; i++) {
		struct net_io *io = &rig.io[i];
		net_io_init(io, &rig.srv, i, &rig.conf, rig.count[i]);
		CU_ASSERT_EQUAL_FATAL(loop_new(&rig.stage, NULL, io, &io->loop), 0);
		rig.srv.io[i] = io;
	}
	rig.now_ns = rig.io[0].loop->now_ns;
	rig_wait(3600 * 1000000000LL);
}

void rig_finish(void)
{
	for (int i = 0; i < rig.srv.n_io; i++) {
		struct net_io *io = &rig.io[i];
		while (io->conns)
			rig_close((struct rig_conn *)io->conns);
		CU_ASSERT_EQUAL(rig.count[i][NET_CONNECTIONS], 0);
		net_io_stop(io);
		weir_timer_cancel(io->loop, &io->handover.timer);
		loop_free(io->loop);
		io->loop = NULL;
		free(io->listener);
	}
	CU_ASSERT_EQUAL(atomic_load(&rig.srv.connections), 0);
	CU_ASSERT_EQUAL(atomic_load(&rig.srv.refusing), 0);
	CU_ASSERT_EQUAL(clients_count(rig.srv.clients, RIG_KEY), 0);
	CU_ASSERT_EQUAL(rig_clients(), 0);
	clients_free(rig.srv.clients);
	pthread_cond_destroy(&rig.srv.reported);
	pthread_mutex_destroy(&rig.srv.lock);
}

void rig_wait(int64_t ns)
{
	rig.now_ns += ns;
	for (int i = 0; i < rig.srv.n_io; i++)
		rig.io[i].loop->now_ns = rig.now_ns;
}

void rig_fire(int i)
{
	timer_wheel_run(&rig.io[i].loop->timers, rig.now_ns, rig.io[i].loop);
}

int rig_wakes(int i)
{
	uint64_t n = 0;

	return TEMP_FAILURE_RETRY(read(rig.io[i].loop->wake.fd, &n, sizeof(n))) == sizeof(n)
		   ? (int)n
		   : 0;
}

/* ---- connections ---- */

struct rig_conn *rig_conn(int i, char name, enum net_list_id id, int64_t waited_ns)
{
	struct net_io *io = &rig.io[i];
	struct rig_conn *c = conn_new(io, eventfd(0, EFD_CLOEXEC), id == LIST_REFUSED);

	c->name = name;
	if (id == LIST_IDLE) { /* since its handshake */
		c->net.wait.since_ns = 0;
		c->net.wait.progress_ns = rig.now_ns - waited_ns;
	} else {
		c->net.wait.since_ns = rig.now_ns - waited_ns;
	}
	net_list_join(io, &c->net, id);
	if (id != LIST_REFUSED)
		rig_move(c, RIG_KEY);
	return c;
}

void rig_move(struct rig_conn *c, uint64_t key)
{
	if (c->net.client.key != 0)
		clients_leave(rig.srv.clients, c->net.client.key);
	c->net.client.key = key;
	CU_ASSERT(clients_enter(rig.srv.clients, key) > 0);
}

struct net_handed *rig_handed(char name, bool idle)
{
	struct rig_handed *h = calloc(1, sizeof(*h));

	CU_ASSERT_PTR_NOT_NULL_FATAL(h);
	h->name = name;
	h->idle = idle;
	return &h->net;
}

void rig_listen(int i)
{
	struct net_io *io = &rig.io[i];
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	CU_ASSERT_EQUAL_FATAL(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	CU_ASSERT_EQUAL_FATAL(listen(fd, 1024), 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(listen_add(io, fd));
	CU_ASSERT_EQUAL_FATAL(net_io_start(io), 0);
}

static struct tcp_info info_of(int fd)
{
	struct tcp_info info = {0};
	socklen_t n = sizeof(info);

	CU_ASSERT_EQUAL_FATAL(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &n), 0);
	return info;
}

int rig_dial(int i)
{
	int listener = rig.io[i].listener[0].watch.fd, fd;
	unsigned before = info_of(listener).tcpi_unacked; /* of a listener, its backlog */
	struct sockaddr_in a;
	socklen_t n = sizeof(a);

	CU_ASSERT_EQUAL_FATAL(getsockname(listener, (struct sockaddr *)&a, &n), 0);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CU_ASSERT_EQUAL_FATAL(TEMP_FAILURE_RETRY(connect(fd, (struct sockaddr *)&a, n)), 0);
	FIXTURE_AWAIT(info_of(listener).tcpi_unacked == before + 1);
	return fd;
}

void rig_dial_and_leave(int i)
{
	int fd = rig_dial(i);

	shutdown(fd, SHUT_WR);
	FIXTURE_AWAIT(info_of(fd).tcpi_state == TCP_FIN_WAIT2);
	close(fd);
}

int64_t rig_clients(void)
{
	struct sockaddr_storage addr = {.ss_family = AF_INET};

	((struct sockaddr_in *)&addr)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return clients_count(rig.srv.clients, clients_key(&addr));
}
