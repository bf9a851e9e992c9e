/* SPDX-License-Identifier: MIT */
/* Reloads as clients see them: connections stay open, requests are answered by the server that
 * began them, bytes already read are not lost, no connection is refused, and nothing is left
 * behind. */
#include <limits.h>
#include <sys/epoll.h>
#include <sys/syscall.h>

#include "fixture/graph/descriptors.h"
#include "fixture/http/server.h"

#include "graph/graph.h"

/* A reload in its own thread, for tests whose old server waits for a request. */
struct reload {
	struct server *from;
	struct weir_drain_report report;
	pthread_t thread;
};

/* Number of loops that may still be created in this program. */
static atomic_int loops_left = INT_MAX;

int epoll_create1(int flags)
{
	if (atomic_fetch_sub(&loops_left, 1) > 0)
		return (int)syscall(SYS_epoll_create1, flags);
	errno = EMFILE;
	return -1;
}

/* A second server like the first, for the same address. */
static struct server server_like(const char *io_threads)
{
	struct server s = server_new("t.reply");

	fixture_set(s.web, "with.threads", io_threads);
	fixture_set(s.app, "threads.max", "2");
	fixture_set(s.app, "cohort.max", "1");
	return s;
}

static struct weir_graph *build(struct weir_spec *spec)
{
	struct weir_errs errs = {0};
	struct weir_graph *g = NULL;

	CU_ASSERT_EQUAL_FATAL(weir_graph_build(spec, &g, &errs), 0);
	return g;
}

/* Let `next`, whose graph is built here, replace `s`. The old graph keeps running. */
static void succeed(struct server *s, struct server *next)
{
	struct weir_errs errs = {0};

	next->graph = build(next->spec);
	int rc = weir_graph_succeed(next->graph, s->graph, &errs);
	if (rc != 0)
		fprintf(stderr, "%s\n", errs.err[0].text);
	CU_ASSERT_EQUAL_FATAL(rc, 0);
	next->port = weir_http_port(weir_graph_stage(next->graph, "web"), 0);
}

static void *retire_main(void *arg)
{
	struct reload *r = arg;

	weir_graph_drain(r->from->graph, 10000000000LL, &r->report);
	return NULL;
}

static void retire_begin(struct reload *r, struct server *from)
{
	*r = (struct reload){.from = from};
	pthread_create(&r->thread, NULL, retire_main, r);
}

/* Call retire_begin for a server with one I/O thread and an idle connection, and wait until that
 * connection has been handed over to `next`. From then on every connection leaves the old server
 * after its requests in flight. */
static void retire_begin_leaving(struct reload *r, struct server *from, const struct server *next)
{
	retire_begin(r, from);
	AWAIT_METRIC(next, "http_connections", ==, 1);
}

static void retire_end(struct reload *r)
{
	pthread_join(r->thread, NULL);
	CU_ASSERT_EQUAL(r->report.law_error, 0);
	CU_ASSERT_EQUAL(r->report.closed, 0);
	weir_graph_free(r->from->graph);
}

static struct server start(const char *io_threads)
{
	struct server s = server_like(io_threads);

	server_start(&s);
	return s;
}

/* Events offered to stage "app" in the graph of `s` alone; its view includes those of the graphs
 * before it. */
static uint64_t own_offered(const struct server *s)
{
	struct book book = {0};

	graph_sum(s->graph, weir_graph_stage(s->graph, "app")->id, &book, NULL, NULL, NULL, NULL);
	return book_read(&book.class_book[0].offered);
}

static bool ask(int fd, const char *text, const char *body)
{
	struct answer a = {0};
	bool ok =
	    client_say(fd, text) && answer_read(fd, &a) && answer_is(&a, 200, body) && !a.close;

	answer_free(&a);
	return ok;
}

static void test_idle_stay(void)
{
	struct server s = start("1"), next = server_like("1");
	int fd = client_open(s.port), silent = client_open(s.port);
	struct reload r;

	CU_ASSERT(ask(fd, GET("/old"), "GET /old\n"));
	succeed(&s, &next);
	CU_ASSERT_EQUAL(next.port, s.port);
	retire_begin(&r, &s);
	retire_end(&r);
	CU_ASSERT(ask(fd, GET("/new"), "GET /new\n"));
	CU_ASSERT(ask(silent, GET("/first"), "GET /first\n"));
	CU_ASSERT_EQUAL(own_offered(&next), 2);
	CU_ASSERT_EQUAL(server_offered(&next), 3);
	AWAIT_METRIC(&next, "http_connections", ==, 2);
	CU_ASSERT_EQUAL(server_metric(&next, "http_accepted_total"), 2); /* by the old server */
	close(fd);
	close(silent);
	AWAIT_METRIC(&next, "http_connections", ==, 0);
	server_stop(&next);
}

/* Requests read before the reload are answered by the old server, in order; later ones by the new
 * server. */
static void test_in_flight(void)
{
	struct server s = start("1"), next = server_like("1");
	struct answer a = {0};
	struct reload r;
	int fd = client_open(s.port);

	CU_ASSERT(client_say(fd, GET("/wait/one") GET("/two")));
	FIXTURE_AWAIT(server_offered(&s) == 2);
	gate_await(1);
	succeed(&s, &next);
	retire_begin(&r, &s);
	/* Until the old server has closed its port, either of them may answer. */
	int other = client_open(next.port);
	CU_ASSERT(ask(other, GET("/other"), "GET /other\n"));
	CU_ASSERT(client_say(fd, GET("/three")));
	gate_open("one");
	CU_ASSERT(answer_read(fd, &a) && answer_is(&a, 200, "GET /wait/one\n"));
	CU_ASSERT(answer_read(fd, &a) && answer_is(&a, 200, "GET /two\n"));
	CU_ASSERT(answer_read(fd, &a) && answer_is(&a, 200, "GET /three\n"));
	CU_ASSERT_FALSE(a.close);
	retire_end(&r);
	CU_ASSERT(ask(fd, GET("/four"), "GET /four\n"));
	close(fd);
	close(other);
	server_stop(&next);
	answer_free(&a);
}

/* A head and a body, half of which is sent before the reload. */
static void test_halves(void)
{
	struct server s = start("1"), next = server_like("1");
	struct answer a = {0};
	struct reload r;
	int head = client_open(s.port), body = client_open(s.port);

	CU_ASSERT(client_say(head, "GET /head HTTP/1.1\r\nHo"));
	CU_ASSERT(
	    client_say(body, "POST /body HTTP/1.1\r\nHost: t\r\nContent-Length: 8\r\n\r\nhalf"));
	AWAIT_METRIC(&s, "http_received_bytes_total", ==, 22 + 55);
	succeed(&s, &next);
	retire_begin(&r, &s);
	AWAIT_METRIC(&next, "http_connections", ==, 1); /* the half head */
	CU_ASSERT(client_say(head, "st: t\r\n\r\n"));
	CU_ASSERT(answer_read(head, &a) && answer_is(&a, 200, "GET /head\n"));
	CU_ASSERT(client_say(body, "done"));
	CU_ASSERT(answer_read(body, &a) && answer_is(&a, 200, "POST /body\nhalfdone"));
	retire_end(&r);
	CU_ASSERT_EQUAL(own_offered(&next), 1);
	CU_ASSERT(ask(body, GET("/again"), "GET /again\n"));
	close(head);
	close(body);
	server_stop(&next);
	answer_free(&a);
}

/* More requests than may be in the graph at once: those that were read but not started are handed
 * over. */
static void test_pipeline(void)
{
	enum { N = 200 };
	struct server s = server_like("1"), next = server_like("1");
	struct answer a = {0};
	struct reload r;

	fixture_set(s.web, "with.pipeline", "2");
	server_start(&s);
	int fd = client_open(s.port), idle = client_open(s.port);
	CU_ASSERT(client_say(fd, GET("/wait/one")));
	for (int i = 0; i < N; i++)
		CU_ASSERT(client_say(fd, GET("/more")));
	gate_await(1);
	FIXTURE_AWAIT(server_offered(&s) == 2);
	AWAIT_METRIC(&s, "http_connections", ==, 2);
	succeed(&s, &next);
	retire_begin_leaving(&r, &s, &next);
	gate_open("one");
	CU_ASSERT(answer_read(fd, &a) && answer_is(&a, 200, "GET /wait/one\n"));
	for (int i = 0; i < N; i++)
		CU_ASSERT(answer_read(fd, &a) && answer_is(&a, 200, "GET /more\n"));
	retire_end(&r);
	CU_ASSERT_EQUAL(own_offered(&next), N - 1);
	close(fd);
	close(idle);
	server_stop(&next);
	answer_free(&a);
}

/* ---- many, under load ---- */

struct asker {
	pthread_t thread;
	int port;
	bool fresh; /* a connection for each request */
	atomic_bool stop;
	_Atomic uint64_t answers;
	uint64_t failures;
};

static void *ask_main(void *arg)
{
	struct asker *k = arg;
	int fd = client_open(k->port);

	while (!atomic_load(&k->stop)) {
		if (!ask(fd, GET("/x"), "GET /x\n"))
			k->failures++;
		else
			atomic_fetch_add(&k->answers, 1);
		if (k->fresh || k->failures) {
			close(fd);
			fd = client_open(k->port);
		}
		if (k->failures > 3)
			break;
	}
	close(fd);
	return NULL;
}

/* A graph that fails to start: its second source wants a port that is in use. */
static void try_bad(struct server *s)
{
	struct server bad = server_like("1");
	struct weir_errs errs = {0};
	char taken[64];
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CU_ASSERT_EQUAL_FATAL(bind(fd, (struct sockaddr *)&a, n), 0);
	CU_ASSERT_EQUAL_FATAL(listen(fd, 1), 0);
	getsockname(fd, (struct sockaddr *)&a, &n);
	snprintf(taken, sizeof(taken), "127.0.0.1:%d", ntohs(a.sin_port));
	weir_spec_add_stage(bad.spec, "zz", "http.server");
	struct weir_stage_spec *zz = &bad.spec->stages[2];
	fixture_set(zz, "with.listen", taken);
	weir_spec_link(zz, "", "app", false);
	struct weir_graph *g = build(bad.spec);
	CU_ASSERT_EQUAL(weir_graph_succeed(g, s->graph, &errs), WEIR_EBUSY);
	CU_ASSERT_PTR_NOT_NULL(strstr(errs.err[0].text, "in use"));
	weir_graph_free(g);
	close(fd);
}

static struct server follow(struct server *s, int i)
{
	static const char *const io_threads[] = {"1", "2", "3"};
	struct server next = server_like(io_threads[i % 3]);
	struct reload r;

	succeed(s, &next);
	retire_begin(&r, s);
	retire_end(&r);
	return next;
}

static void test_under_load(void)
{
	enum { N = 6, RELOADS = 60, BAD_EVERY = 5 };
	struct server s = start("1");
	struct asker k[N];
	int port = s.port, fds, threads;

	for (int i = 0; i < N; i++) {
		k[i] = (struct asker){.port = port, .fresh = i == 0};
		pthread_create(&k[i].thread, NULL, ask_main, &k[i]);
	}
	s = follow(&s, 0); /* one-time initialisation is done: locale, resolver */
	for (int i = 0; i < N; i++)
		FIXTURE_AWAIT(atomic_load(&k[i].answers) > 0); /* all are connected */
	fds = entries_in(DESCRIPTORS);
	threads = entries_in(THREADS);
	for (int i = 1; i <= RELOADS; i++) {
		uint64_t before = atomic_load(&k[i % N].answers);
		if (i % BAD_EVERY == 0)
			try_bad(&s);
		s = follow(&s, i);
		CU_ASSERT_EQUAL(s.port, port);
		FIXTURE_AWAIT(atomic_load(&k[i % N].answers) > before);
	}
	for (int i = 0; i < N; i++) {
		atomic_store(&k[i].stop, true);
		pthread_join(k[i].thread, NULL);
		CU_ASSERT_EQUAL(k[i].failures, 0);
	}
	AWAIT_METRIC(&s, "http_connections", ==, 0);
	CU_ASSERT(entries_in(THREADS) <= threads - N);
	/* The asker with fresh connections may have been between two of them. */
	CU_ASSERT(entries_in(DESCRIPTORS) <= fds - N + 1);
	server_stop(&s);
}

/* ---- successors ---- */

static void test_renamed(void)
{
	struct server s = start("2"), next = server_like("1");
	int fd = client_open(s.port);
	struct reload r;

	CU_ASSERT(ask(fd, GET("/old"), "GET /old\n"));
	CU_ASSERT_EQUAL_FATAL(weir_spec_text(&next.web->name, "front"), 0);
	struct weir_errs errs = {0};
	next.graph = build(next.spec);
	CU_ASSERT_EQUAL_FATAL(weir_graph_succeed(next.graph, s.graph, &errs), 0);
	CU_ASSERT_EQUAL(weir_http_port(weir_graph_stage(next.graph, "front"), 0), s.port);
	retire_begin(&r, &s);
	retire_end(&r);
	CU_ASSERT(ask(fd, GET("/new"), "GET /new\n"));
	close(fd);
	server_stop(&next);
}

/* Two reloads while the first server still answers a request: its connection passes through the
 * second server. */
static void test_overtaken(void)
{
	struct server s = start("1"), second = server_like("2"), third = server_like("1");
	struct answer a = {0};
	struct reload r, q;
	int fd = client_open(s.port), idle = client_open(s.port);

	CU_ASSERT(client_say(fd, GET("/wait/one")));
	gate_await(1);
	AWAIT_METRIC(&s, "http_connections", ==, 2);
	succeed(&s, &second);
	retire_begin_leaving(&r, &s, &second);
	succeed(&second, &third);
	retire_begin(&q, &second);
	pthread_join(q.thread, NULL); /* waits for nothing; freed after the first server */
	CU_ASSERT_EQUAL(q.report.law_error, 0);
	gate_open("one");
	CU_ASSERT(answer_read(fd, &a) && answer_is(&a, 200, "GET /wait/one\n"));
	CU_ASSERT(ask(fd, GET("/third"), "GET /third\n"));
	retire_end(&r);
	weir_graph_free(second.graph);
	CU_ASSERT_EQUAL(own_offered(&third), 1);
	close(fd);
	close(idle);
	server_stop(&third);
	answer_free(&a);
}

/* A paused source stays paused, and requests sent meanwhile are answered when it is resumed. */
static void test_paused(void)
{
	struct server s = start("1"), next = server_like("1");
	struct answer a = {0};
	char why[200];
	struct reload r;
	int fd = client_open(s.port);

	CU_ASSERT(ask(fd, GET("/old"), "GET /old\n"));
	CU_ASSERT_EQUAL(weir_graph_steer(s.graph, "web", WEIR_STEER_PAUSE, why, sizeof(why)), 0);
	CU_ASSERT(client_say(fd, GET("/meanwhile")));
	succeed(&s, &next);
	CU_ASSERT_EQUAL(
	    weir_graph_steer(s.graph, "web", WEIR_STEER_RUN, why, sizeof(why)), WEIR_EBUSY);
	retire_begin(&r, &s);
	retire_end(&r);
	CU_ASSERT_EQUAL(own_offered(&next), 0);
	CU_ASSERT_EQUAL(weir_graph_steer(next.graph, "web", WEIR_STEER_RUN, why, sizeof(why)), 0);
	CU_ASSERT(answer_read(fd, &a) && answer_is(&a, 200, "GET /meanwhile\n"));
	CU_ASSERT_EQUAL(own_offered(&next), 1);
	close(fd);
	server_stop(&next);
	answer_free(&a);
}

/* Half a body was read before the source was paused: it belongs to the old server, where the source
 * could not be resumed any more. */
static void test_paused_half(void)
{
	struct server s = start("1"), next = server_like("1");
	struct answer a = {0};
	char why[200];
	struct reload r;
	int fd = client_open(s.port);

	CU_ASSERT(
	    client_say(fd, "POST /body HTTP/1.1\r\nHost: t\r\nContent-Length: 8\r\n\r\nhalf"));
	AWAIT_METRIC(&s, "http_received_bytes_total", ==, 55);
	CU_ASSERT_EQUAL(weir_graph_steer(s.graph, "web", WEIR_STEER_PAUSE, why, sizeof(why)), 0);
	succeed(&s, &next);
	retire_begin(&r, &s);
	CU_ASSERT(client_say(fd, "done" GET("/next")));
	CU_ASSERT(answer_read(fd, &a) && answer_is(&a, 200, "POST /body\nhalfdone"));
	retire_end(&r);
	CU_ASSERT_EQUAL(own_offered(&next), 0);
	CU_ASSERT_EQUAL(weir_graph_steer(next.graph, "web", WEIR_STEER_RUN, why, sizeof(why)), 0);
	CU_ASSERT(answer_read(fd, &a) && answer_is(&a, 200, "GET /next\n"));
	CU_ASSERT_EQUAL(own_offered(&next), 1);
	close(fd);
	server_stop(&next);
	answer_free(&a);
}

/* A server that cannot start leaves the connections in the backlog, which it shares by then, to the
 * running one. */
static void test_failed_start(void)
{
	struct server s = start("2"), next = server_like("2");
	struct weir_errs errs = {0};
	char why[200];

	CU_ASSERT_EQUAL(weir_graph_steer(s.graph, "web", WEIR_STEER_PAUSE, why, sizeof(why)), 0);
	int fd = client_open(s.port);
	CU_ASSERT(client_say(fd, GET("/waits")));
	next.graph = build(next.spec);
	loops_left = 1;
	CU_ASSERT_NOT_EQUAL(weir_graph_succeed(next.graph, s.graph, &errs), 0);
	loops_left = INT_MAX;
	weir_graph_free(next.graph);
	CU_ASSERT_EQUAL(weir_graph_steer(s.graph, "web", WEIR_STEER_RUN, why, sizeof(why)), 0);
	CU_ASSERT(ask(fd, "", "GET /waits\n"));
	close(fd);
	server_stop(&s);
}

/* A connection waiting at an address that the next server does not have is handed over all the
 * same, and delays nothing. */
static void test_other_address(void)
{
	struct server s = server_like("1"), next = server_like("1");
	char why[200];
	struct reload r;

	fixture_set(s.web, "with.linger", "60s");
	fixture_set(next.web, "with.listen", "127.0.0.2:0");
	server_start(&s);
	CU_ASSERT_EQUAL(weir_graph_steer(s.graph, "web", WEIR_STEER_PAUSE, why, sizeof(why)), 0);
	int fd = client_open(s.port);
	succeed(&s, &next);
	weir_graph_drain(s.graph, 100000000000LL, &r.report);
	CU_ASSERT_EQUAL(r.report.law_error, 0);
	CU_ASSERT(r.report.took_ns < 50000000000LL);
	weir_graph_free(s.graph);
	CU_ASSERT_EQUAL(weir_graph_steer(next.graph, "web", WEIR_STEER_RUN, why, sizeof(why)), 0);
	CU_ASSERT(ask(fd, GET("/new"), "GET /new\n"));
	close(fd);
	server_stop(&next);
}

CUNIT_MAIN("http reload", {"idle connections stay open", test_idle_stay},
    {"requests in flight end where they began", test_in_flight},
    {"half a head, half a body", test_halves}, {"pipelined requests go over", test_pipeline},
    {"a source that was renamed", test_renamed}, {"a reload overtaken by the next", test_overtaken},
    {"a paused source stays paused", test_paused},
    {"half a body at a paused source", test_paused_half}, {"a start that fails", test_failed_start},
    {"another address", test_other_address}, {"sixty in a row under load", test_under_load})
