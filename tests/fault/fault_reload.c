/* SPDX-License-Identifier: MIT */
/*
 * The n-th allocation, then the n-th thread creation and epoll_ctl, fails while one graph replaces
 * another and the old one drains, and while live knobs get their newly configured values.
 *
 * Whatever fails, either the new graph serves and the old one ends, or nothing has changed. Clients
 * are answered on their existing connections, one idle and one that has sent half a request.
 * Changes are accepted again, and nothing crashes, hangs or leaks.
 */
#include "fixture/http/server.h"

#include "config.h"
#include "fault/inject.h"

/* New clients after each reload: for each the kernel picks one of at most two sockets. */
#define NEWCOMERS 8

/* A server with three values to fill in: the number of I/O threads, and two live values. */
static const char yaml[] = "weir: 1\n"
			   "name: fault\n"
			   "stages:\n"
			   "  web: { use: http.server, with: { listen: \"127.0.0.1:0\", threads: "
			   "%d }, to: { request: cache } }\n"
			   "  cache: { use: file.cache, to: { miss: site } }\n"
			   "  site: { use: respond, with: { body: hello }, threads: { min: 1, max: "
			   "%d }, queue: { limit: %d } }\n";

/* Responses of any length, allocated per request. */
static const char download_yaml[] = "weir: 1\n"
				    "name: fault\n"
				    "stages:\n"
				    "  web: { use: http.server, with: { listen: \"127.0.0.1:0\", "
				    "threads: 1 }, to: { request: app } }\n"
				    "  app: { use: t.reply, threads: { min: 1, max: %d } }\n";

static struct weir_graph *build_text(const char *text)
{
	static struct weir_errs errs;
	struct weir_spec *spec = NULL;
	struct weir_graph *g = NULL;

	memset(&errs, 0, sizeof(errs));
	CU_ASSERT_EQUAL_FATAL(config_load_text(text, strlen(text), "fault.yaml", &spec, &errs), 0);
	CU_ASSERT_EQUAL_FATAL(weir_graph_build(spec, &g, &errs), 0);
	return g;
}

static struct weir_graph *build(int io_threads, int max, int limit)
{
	char text[sizeof(yaml) + 64];

	snprintf(text, sizeof(text), yaml, io_threads, max, limit);
	return build_text(text);
}

static bool ask(int fd)
{
	struct answer a = {0};
	bool ok = client_say(fd, GET("/x")) && answer_read(fd, &a) && answer_is(&a, 200, "hello");

	answer_free(&a);
	return ok;
}

/* Send the rest of a request begun by begin_half. */
static bool end_half(int fd)
{
	struct answer a = {0};
	bool ok = client_say(fd, ".1\r\nHost: t\r\n\r\n") && answer_read(fd, &a) &&
		  answer_is(&a, 200, "hello");

	answer_free(&a);
	return ok;
}

static int64_t received(struct weir_graph *g)
{
	struct server s = {.graph = g};

	return server_metric(&s, "http_received_bytes_total");
}

/* Send half a request, and wait until `g` has read it. */
static void begin_half(int fd, struct weir_graph *g)
{
	static const char text[] = "GET /x HTTP/1";
	int64_t n = received(g) + (int64_t)strlen(text);

	CU_ASSERT(client_say(fd, text));
	FIXTURE_AWAIT(received(g) == n);
}

static int port_of(struct weir_graph *g)
{
	return weir_http_port(weir_graph_stage(g, "web"), 0);
}

static void begin(struct weir_graph *g)
{
	static struct weir_errs errs;
	char why[200];

	CU_ASSERT_EQUAL_FATAL(weir_graph_start(g, &errs), 0);
	CU_ASSERT_EQUAL(weir_graph_set(g, "site", "queue.limit", "77", why, sizeof(why)), 0);
	CU_ASSERT_EQUAL(weir_graph_set(g, "site", "threads.max", "3", why, sizeof(why)), 0);
}

static void end(struct weir_graph *g)
{
	struct weir_drain_report r = {0};

	weir_graph_drain(g, 5000000000LL, &r);
	CU_ASSERT_EQUAL(r.law_error, 0);
	CU_ASSERT_EQUAL(r.closed, 0);
	weir_graph_free(g);
}

static bool has(struct weir_graph *g, const char *stage, const char *knob, const char *value)
{
	char text[64] = "";

	return weir_graph_get(g, stage, knob, text, sizeof(text)) == 0 && strcmp(text, value) == 0;
}

/* One reload in which the n-th call fails. Returns whether that call was reached. *running serves,
 * and fd[] are clients of it. */
static bool reload(struct weir_graph **running, const int fd[2], atomic_long *which, long n)
{
	static int turn; /* alternates between one and two I/O threads */
	struct weir_graph *next = build(1 + turn++ % 2, 4, 100);
	static struct weir_errs errs;
	char why[200];

	memset(&errs, 0, sizeof(errs));
	begin_half(fd[1], *running);
	atomic_store(&fault_fired, 0);
	atomic_store(which, n);
	int rc = weir_graph_succeed(next, *running, &errs);
	if (rc == 0) {
		end(*running);
		*running = next;
	}
	atomic_store(which, -1);
	bool fired = atomic_load(&fault_fired) > 0;
	if (rc != 0) {
		CU_ASSERT(fired && errs.total > 0);
		weir_graph_free(next);
	}
	CU_ASSERT_FATAL(ask(fd[0]));
	CU_ASSERT_FATAL(end_half(fd[1]));
	for (int i = 0; i < NEWCOMERS; i++) {
		int other = client_open(port_of(*running));
		CU_ASSERT(ask(other));
		close(other);
	}
	CU_ASSERT(fired || has(*running, "site", "queue.limit", "77"));
	CU_ASSERT_EQUAL(weir_graph_set(*running, "site", "queue.limit", "77", why, sizeof(why)), 0);
	CU_ASSERT_EQUAL(weir_graph_set(*running, "site", "threads.max", "3", why, sizeof(why)), 0);
	return fired;
}

/* I/O threads do their part of a reload asynchronously: one of their calls may come after the test
 * has stopped counting. */
#define TRIES 8

static void sweep(atomic_long *which, long at_least)
{
	struct weir_graph *g = build(1, 4, 100);
	long n = 0;

	begin(g);
	int fd[2] = {client_open(port_of(g)), client_open(port_of(g))};
	CU_ASSERT(ask(fd[0]) && ask(fd[1]));
	for (int try = 0; try < TRIES; try++)
		if (reload(&g, fd, which, n)) {
			n++;
			try = -1;
		}
	printf("(%ld failures) ", n);
	CU_ASSERT(n >= at_least);
	close(fd[0]);
	close(fd[1]);
	end(g);
}

static void test_allocations(void)
{
	sweep(&fault_alloc_in, 30);
}

static void test_threads(void)
{
	sweep(&fault_thread_in, 3);
}

/* A listener that cannot be added to epoll at once is added later: its clients do not wait for
 * ever. */
static void test_watches(void)
{
	sweep(&fault_epoll_in, 4);
}

/* ---- a client that reads nothing of its response ---- */

/* Longer than the socket buffers of both sides: at most 4 MiB, and the size that the client
 * sets. */
#define DOWNLOAD "8000000"

static struct weir_graph *build_download(void)
{
	static int turn;
	char text[sizeof(download_yaml) + 32];

	snprintf(text, sizeof(text), download_yaml, 2 + turn++ % 2);
	return build_text(text);
}

/* One reload during the download, in which the n-th allocation fails. Returns whether that call was
 * reached. The old graph ends before the client has finished; the client gets all bytes. */
static bool reload_download(struct weir_graph **running, long n)
{
	struct weir_graph *next = build_download();
	static struct weir_errs errs;
	struct answer a = {0};
	int fd = client_open(port_of(*running));
	char first;

	memset(&errs, 0, sizeof(errs));
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &(int){65536}, sizeof(int));
	CU_ASSERT_FATAL(client_say(fd, GET("/big/" DOWNLOAD)));
	/* Wait until the response has begun. The byte counters do not show that, since they may
	 * include those of the previous client. */
	FIXTURE_AWAIT(recv(fd, &first, 1, MSG_PEEK | MSG_DONTWAIT) == 1);
	atomic_store(&fault_fired, 0);
	atomic_store(&fault_alloc_in, n);
	int rc = weir_graph_succeed(next, *running, &errs);
	if (rc == 0) {
		end(*running);
		*running = next;
	}
	atomic_store(&fault_alloc_in, -1);
	if (rc != 0)
		weir_graph_free(next);
	CU_ASSERT_FATAL(answer_read(fd, &a));
	CU_ASSERT_EQUAL(a.n, (size_t)atol(DOWNLOAD));
	for (size_t i = 0; i < a.n; i += 997)
		if (a.body[i] != (char)('a' + i % 26))
			CU_FAIL_FATAL("another byte");
	answer_free(&a);
	close(fd);
	return atomic_load(&fault_fired) > 0;
}

static void test_downloads(void)
{
	long n = 0;

	fixture_register(&reply_ops);
	struct weir_graph *g = build_download();
	static struct weir_errs errs;
	CU_ASSERT_EQUAL_FATAL(weir_graph_start(g, &errs), 0);
	for (int try = 0; try < TRIES; try++)
		if (reload_download(&g, n)) {
			n++;
			try = -1;
		}
	printf("(%ld failures) ", n);
	CU_ASSERT(n >= 30);
	end(g);
}

/* All or nothing: the limit is overridden, the number of threads is not. */
static void test_configure(void)
{
	struct weir_graph *g = build(1, 4, 100);
	long n = 0;
	bool fired = true;

	begin(g);
	char why[200];
	CU_ASSERT_EQUAL(weir_graph_unset(g, "site", "threads.max", why, sizeof(why)), 0);
	for (; fired; n++) {
		struct weir_graph *wanted = build(1, n % 2 ? 4 : 5, 200);
		char now[16], then[16];
		snprintf(then, sizeof(then), "%d", n % 2 ? 4 : 5);
		weir_graph_get(g, "site", "threads.max", now, sizeof(now));
		atomic_store(&fault_fired, 0);
		atomic_store(&fault_alloc_in, n);
		int rc = weir_graph_configure(g, wanted, NULL);
		atomic_store(&fault_alloc_in, -1);
		fired = atomic_load(&fault_fired) > 0;
		CU_ASSERT(rc == 0 || fired);
		CU_ASSERT(has(g, "site", "threads.max", rc == 0 ? then : now));
		CU_ASSERT(has(g, "site", "queue.limit", "77"));
		weir_graph_free(wanted);
	}
	printf("(%ld failures) ", n);
	CU_ASSERT(n > 5);
	end(g);
}

CUNIT_MAIN("faults of a reload", {"every allocation", test_allocations},
    {"every thread", test_threads}, {"every watched descriptor", test_watches},
    {"every allocation while a client downloads", test_downloads},
    {"every allocation of new live values", test_configure})
