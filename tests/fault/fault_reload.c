/* SPDX-License-Identifier: MIT */
/*
 * The n-th allocation, then the n-th thread creation and epoll_ctl, fails while one graph follows another and the old one drains, and while
 * live knobs take their new configured values.
 *
 * Whatever fails, either the new graph serves and the old one ends, or all is as it was: clients are answered over the
 * connections that they have, one that is idle and one that has sent half a request, acts are taken again, and
 * nothing crashes, hangs or leaks.
 */
#include "scenario/http_fixture.h"

#include "config.h"
#include "fault/fault_inject.h"

/* New clients after each reload: the kernel picks one of at most two sockets for each. */
#define NEWCOMERS 8

/* The last three: an I/O thread more or less, and live values. */
static const char yaml[] = "weir: 1\n"
			   "name: fault\n"
			   "stages:\n"
			   "  web: { use: http.server, with: { listen: \"127.0.0.1:0\", threads: "
			   "%d }, to: { request: cache } }\n"
			   "  cache: { use: file.cache, to: { miss: site } }\n"
			   "  site: { use: respond, with: { body: hello }, threads: { min: 1, max: "
			   "%d }, queue: { limit: %d } }\n";

static struct weir_graph *build(int io_threads, int max, int limit)
{
	static struct weir_errs errs;
	struct weir_spec *spec = NULL;
	struct weir_graph *g = NULL;
	char text[sizeof(yaml) + 64];
	int n = snprintf(text, sizeof(text), yaml, io_threads, max, limit);

	memset(&errs, 0, sizeof(errs));
	CU_ASSERT_EQUAL_FATAL(config_load_text(text, (size_t)n, "fault.yaml", &spec, &errs), 0);
	CU_ASSERT_EQUAL_FATAL(weir_graph_build(spec, &g, &errs), 0);
	return g;
}

static bool ask(int fd)
{
	struct answer a = {0};
	bool ok = client_say(fd, GET("/x")) && answer_read(fd, &a) && answer_is(&a, 200, "hello");

	answer_free(&a);
	return ok;
}

/* The rest of what begin_half has sent. */
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

/* Half a request, which `g` has read. */
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

/* One reload with the n-th call failing; returns whether it fired. *running serves, fd[] are clients of it. */
static bool reload(struct weir_graph **running, const int fd[2], atomic_long *which, long n)
{
	static int turn; /* one I/O thread and two, by turns */
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

/* I/O threads do their part of a reload on their own: a call of theirs may come when nobody looks any more. */
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

/* A listener that can not be watched at once is watched later: its clients do not wait for ever. */
static void test_watches(void)
{
	sweep(&fault_epoll_in, 4);
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
    {"every allocation of new live values", test_configure})
