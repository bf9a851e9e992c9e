/* SPDX-License-Identifier: MIT */
/*
 * torture_per_thread [clients=8] [seconds=1] [seed=1]
 *
 * I/O threads with at most 1 or 4 connections each, or without a limit, whose handlers block. Clients
 * open connections to several addresses, send requests one by one, in runs and in parts, wait for
 * answers, and leave in the middle. Operators pause the source. Servers with other numbers of threads
 * replace each other, and drain with and without time. Afterwards:
 * - no handler has run in a thread that had more connections than it may have;
 * - each client that waited has got an answer or the end of its connection within WAIT_MS, so no
 *   client was stranded while a thread had room;
 * - the law holds exactly.
 */
#include <poll.h>

#include "fixture/http/server.h"
#include "net/net.h"

#include "base/clock.h"

#define MAX_CLIENTS 64
#define ADDRESSES   2

static atomic_int port[ADDRESSES];
static atomic_bool over;
static atomic_ullong answers, ends, faults, dialled;

static void fault(const char *what, int64_t a, int64_t b)
{
	if (atomic_fetch_add(&faults, 1) < 10)
		fprintf(stderr, "%s: %lld, %lld\n", what, (long long)a, (long long)b);
}

/* ---- the stage ---- */

static void alone_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	static atomic_ullong calls;
	const struct net_io *io = weir_loop_data(weir_loop_here());
	int64_t most = io->srv->per_thread;
	uint64_t r = atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed) * 2654435761u;

	(void)st;
	if (most > 0 && io->n_conns > most)
		fault("a thread has too many connections", io->n_conns, most);
	if (r % 16 == 0) /* block */
		nanosleep(&(struct timespec){.tv_nsec = (long)(r >> 8) % 2000000}, NULL);
	for (int i = 0; i < n; i++) {
		weir_http_respond_copy(
		    weir_http_request(ev[i]), 200, "text/plain", (struct weir_slice){"ok\n", 3});
		weir_event_finish(&ev[i], WEIR_OK);
	}
}

static const struct weir_stage_ops alone_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.alone",
    .summary = "answers, sometimes after a while",
    .accepts = &weir_http_request_type,
    .handle = alone_handle};

/* ---- clients ---- */

/* Whether something arrives, or the end, while the client waits. */
static bool comes(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int n = TEMP_FAILURE_RETRY(poll(&p, 1, WAIT_MS));

	if (n == 0)
		fault("a client was stranded", fd, 0);
	return n > 0;
}

/* Send 1 to 3 requests and read their answers. Returns false if the connection has ended. */
static bool talk(int fd, unsigned *rnd)
{
	struct answer a = {0};
	int n = 1 + rand_r(rnd) % 3;
	bool open = true;

	for (int i = 0; i < n && open; i++)
		open = client_say(fd, GET("/x"));
	for (int got = 0; got < n && open; got++) {
		open = comes(fd) && answer_read(fd, &a);
		if (open && a.status != 200 && a.status != 408 && a.status != 503)
			fault("an answer with another status", a.status, 0);
		atomic_fetch_add(open ? &answers : &ends, 1);
		open = open && !a.close;
	}
	answer_free(&a);
	return open;
}

static void leave_abruptly(int fd)
{
	struct linger reset = {.l_onoff = 1};

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
}

/* One thing that a client does. Returns whether the connection stays. */
static bool act(int fd, unsigned *rnd)
{
	switch (rand_r(rnd) % 16) {
	case 0: /* part of a request, and then nothing: the server ends it */
		return client_say(fd, "GET /half HTTP/1.1\r\nHo") && comes(fd) && false;
	case 1:
		client_say(fd, "GET /half HTTP/1.1\r\nHo");
		leave_abruptly(fd);
		return false;
	case 2: /* does not wait for the answer */
		client_say(fd, GET("/x"));
		leave_abruptly(fd);
		return false;
	case 3:
		client_say(fd, GET("/x") GET("/y"));
		shutdown(fd, SHUT_WR);
		return comes(fd) && false;
	case 4: /* stays idle for too long */
		return comes(fd) && false;
	case 5:
		return false;
	default:
		return talk(fd, rnd) && rand_r(rnd) % 4 != 0;
	}
}

static void *client(void *arg)
{
	unsigned rnd = (unsigned)(intptr_t)arg;

	while (!atomic_load(&over)) {
		int fd = client_connect(atomic_load(&port[rand_r(&rnd) % ADDRESSES]));
		if (fd == -1)
			continue;
		atomic_fetch_add(&dialled, 1);
		while (act(fd, &rnd) && !atomic_load(&over))
			continue;
		close(fd);
	}
	return NULL;
}

/* ---- rounds ---- */

static void set_number(struct weir_stage_spec *s, const char *key, int n)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", n);
	fixture_set(s, key, text);
}

static struct server made(unsigned *rnd)
{
	struct server s = server_new("t.alone");
	int most = rand_r(rnd) % 8 == 0 ? 0 : rand_r(rnd) % 2 ? 1 : 4;
	int threads = most == 0 ? 3 : 1 << rand_r(rnd) % 7;

	server_listen_twice(&s);
	set_number(s.web, "with.threads", threads);
	set_number(s.web, "with.per_thread", most);
	fixture_set(s.web, "with.linger", "20ms");
	fixture_set(s.web, "with.idle_timeout", "20ms");
	fixture_set(s.web, "with.header_timeout", "20ms");
	fixture_set(s.web, "with.max_per_address", "0");
	if (rand_r(rnd) % 8 == 0)
		set_number(s.web, "with.max_connections", 4 + rand_r(rnd) % 8);
	s.app->inlined = true;
	s.app->threads.stuck_ns = rand_r(rnd) % 2 ? 1000000 : NS_PER_S;
	return s;
}

static void drain(struct weir_graph *old, int64_t grace_ns)
{
	struct weir_drain_report r;

	weir_graph_drain(old, grace_ns, &r);
	if (r.law_error != 0 || r.left != 0)
		fault("the law is broken after the drain", llabs(r.law_error), (int64_t)r.closed);
	weir_graph_free(old);
}

static struct weir_graph *replace(struct weir_graph *old, unsigned *rnd)
{
	struct server s = made(rnd);
	struct weir_errs errs = {0};

	if (!old) {
		s.graph = fixture_start(s.spec);
	} else {
		s.graph = fixture_build(s.spec);
		if (weir_graph_succeed(s.graph, old, &errs) != 0)
			fault("a graph could not take over", 0, 0);
	}
	for (int i = 0; i < ADDRESSES; i++)
		atomic_store(&port[i], weir_http_port(weir_graph_stage(s.graph, "web"), i));
	if (old)
		drain(old, rand_r(rnd) % 2 ? 0 : NS_PER_S);
	return s.graph;
}

static void pause_or_wait(struct weir_graph *g, unsigned *rnd)
{
	struct timespec ts = {.tv_nsec = (long)(rand_r(rnd) % 10000) * 1000};
	bool pauses = rand_r(rnd) % 4 == 0;
	char why[256];

	if (pauses)
		weir_graph_steer(g, "web", WEIR_STEER_PAUSE, why, sizeof(why));
	nanosleep(&ts, NULL);
	if (pauses)
		weir_graph_steer(g, "web", WEIR_STEER_RUN, why, sizeof(why));
}

int main(int argc, char **argv)
{
	int clients = argc > 1 ? atoi(argv[1]) : 8, rounds = 0;
	double seconds = argc > 2 ? atof(argv[2]) : 1;
	unsigned rnd = argc > 3 ? (unsigned)atoi(argv[3]) : 1;
	struct weir_graph *g = NULL;
	pthread_t c[MAX_CLIENTS];

	if (clients < 1 || clients > MAX_CLIENTS) {
		fprintf(stderr, "1 to %d clients\n", MAX_CLIENTS);
		return 2;
	}
	fixture_register(&alone_ops);
	weir_log_set_fd(-1);
	int64_t end_ns = clock_now_ns() + (int64_t)(seconds * NS_PER_S);
	while (clock_now_ns() < end_ns && atomic_load(&faults) == 0) {
		g = replace(g, &rnd);
		for (int i = 0; rounds == 0 && i < clients; i++)
			pthread_create(&c[i], NULL, client, (void *)(intptr_t)rand_r(&rnd));
		rounds++;
		for (int i = rand_r(&rnd) % 20; i > 0; i--)
			pause_or_wait(g, &rnd);
	}
	atomic_store(&over, true);
	for (int i = 0; i < clients; i++)
		pthread_join(c[i], NULL);
	drain(g, 0);
	printf("rounds %d connections %llu answers %llu ends %llu faults %llu\n", rounds,
	    (unsigned long long)atomic_load(&dialled), (unsigned long long)atomic_load(&answers),
	    (unsigned long long)atomic_load(&ends), (unsigned long long)atomic_load(&faults));
	return atomic_load(&faults) ? 1 : 0;
}
