/* SPDX-License-Identifier: MIT */
/* What the admin thread does each second and each quarter of a second, without the thread: runs at
 * times that the test chooses, on a made-up server. */
#include "admin/stream/ticker.h"

#include <sys/socket.h>
#include <unistd.h>

#include <weir/clock.h>
#include <weir/log.h>

#include "cunit_main.h"
#include "made_up.h"

#define S  1000000000LL
#define MS 1000000LL

static struct made_up made_up;
static struct admin_source source;
static struct ticker ticker;
static int64_t now_ns;
static int n_looks; /* snapshots taken */
static struct weir_change change[4];
static int n_changes;

static int look(void *arg, struct weir_graph_view **view)
{
	n_looks++;
	return made_up_view(arg, view);
}

static int changes(void *arg, struct weir_change *out, int n)
{
	(void)arg;
	for (int i = 0; i < n && i < n_changes; i++)
		out[i] = change[i];
	return n < n_changes ? n : n_changes;
}

static void setup(void)
{
	weir_log_set_fd(-1);
	made_up_init(&made_up);
	source = made_up_source(&made_up);
	source.view = look;
	source.changes = changes;
	n_changes = n_looks = 0;
	CU_ASSERT_EQUAL_FATAL(ticker_init(&ticker, &source, NULL), 0);
	/* the ticker plans its runs by the real clock, so the clock of the test begins there */
	now_ns = weir_clock_ns(CLOCK_MONOTONIC);
}

static void teardown(void)
{
	ticker_fini(&ticker);
	CU_ASSERT_EQUAL(made_up.n_views, 0);
}

/* Connect a watcher. Returns the test's end of the connection. */
static int watch(const char *query)
{
	char request[100];
	int fd[2];
	int n = snprintf(request, sizeof(request),
	    "GET /events%s HTTP/1.1\r\nHost: 127.0.0.1:9900\r\n\r\n", query);

	CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
	sse_add(ticker.sse, fd[1], request, (size_t)n, NULL, now_ns);
	return fd[0];
}

/* The events that have arrived, as "tick decision:2 act:7 ". */
static const char *events(int fd)
{
	static char text[1 << 18], line[1000];
	size_t used = 0;

	sse_run(ticker.sse, now_ns);
	ssize_t n = recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT);
	text[n > 0 ? n : 0] = '\0';
	line[0] = '\0';
	for (const char *p = text; (p = strstr(p, "\nevent: ")); p++) {
		const char *name = p + strlen("\nevent: "), *data = strstr(name, "\ndata: ");
		const char *id = strstr(data, "{\"id\":");
		int length = (int)strcspn(name, "\n");
		used += (size_t)snprintf(line + used, sizeof(line) - used, "%.*s", length, name);
		if (id == data + strlen("\ndata: "))
			used += (size_t)snprintf(
			    line + used, sizeof(line) - used, ":%d", atoi(id + strlen("{\"id\":")));
		used += (size_t)snprintf(line + used, sizeof(line) - used, " ");
	}
	return line;
}

/* Run when the next second or quarter is due; the graph has that time, too. */
static void run_at(int64_t ns)
{
	now_ns = ns;
	made_up.view.now_ns = ns;
	ticker_run(&ticker, now_ns);
}

/* The next second is due: time passes on the wall clock of the graph. */
static void second(void)
{
	made_up.view.wall_ns += S;
	run_at(ticker.second_ns > now_ns ? ticker.second_ns : now_ns + 1);
}

static void test_due(void)
{
	setup();
	second();
	CU_ASSERT_EQUAL(n_looks, 1);
	/* the next run is at most a second away */
	CU_ASSERT_TRUE(ticker.second_ns <= weir_clock_ns(CLOCK_MONOTONIC) + S);
	int64_t due_ns = ticker.second_ns = now_ns + S;
	run_at(due_ns - 1);
	CU_ASSERT_EQUAL(n_looks, 1);
	run_at(due_ns);
	CU_ASSERT_EQUAL(n_looks, 2);
	/* without memory for a snapshot, the run is skipped, not repeated at once */
	made_up.no_memory = true;
	ticker.second_ns = now_ns;
	run_at(now_ns + 1);
	CU_ASSERT_EQUAL(n_looks, 3);
	CU_ASSERT_TRUE(ticker.second_ns != now_ns - 1);
	teardown();
}

static void test_timeout(void)
{
	setup();
	ticker.second_ns = 5 * S;
	ticker.quarter_ns = 2 * S;
	CU_ASSERT_EQUAL(ticker_timeout_ms(&ticker, 1 * S), 4001);
	CU_ASSERT_EQUAL(ticker_timeout_ms(&ticker, 5 * S - 1), 1);
	CU_ASSERT_EQUAL(ticker_timeout_ms(&ticker, 5 * S), 0);
	CU_ASSERT_EQUAL(ticker_timeout_ms(&ticker, 9 * S), 0);
	int one = watch("?hz=1"), four = watch("?hz=4");
	CU_ASSERT_EQUAL(ticker_timeout_ms(&ticker, 1 * S), 1001);
	ticker.quarter_ns = 6 * S;
	CU_ASSERT_EQUAL(ticker_timeout_ms(&ticker, 1 * S), 4001);
	close(one), close(four);
	teardown();
}

/* Ticks of a rate are made only for its watchers. The first quarter has no totals to compare
 * with. */
static void test_ticks(void)
{
	setup();
	int one = watch("?hz=1"), four = watch("?hz=4"), none = watch("?hz=0");
	events(one), events(four), events(none);
	made_up.view.decisions_total = 0;
	ticker.quarter_ns = INT64_MAX; /* seconds alone */
	second();
	CU_ASSERT_STRING_EQUAL(events(one), "tick ");
	CU_ASSERT_STRING_EQUAL(events(four), "");
	run_at(ticker.second_ns = now_ns + 1); /* the same second of the graph's wall clock */
	CU_ASSERT_STRING_EQUAL(events(one), "");
	ticker.second_ns = INT64_MAX; /* quarters alone */
	for (int i = 0; i < 3; i++) {
		ticker.quarter_ns = now_ns + S / 4;
		run_at(ticker.quarter_ns - 1);
		CU_ASSERT_STRING_EQUAL(events(four), "");
		run_at(ticker.quarter_ns);
		CU_ASSERT_STRING_EQUAL(events(four), i > 0 ? "tick " : "");
		CU_ASSERT_STRING_EQUAL(events(one), "");
		CU_ASSERT_TRUE(ticker.quarter_ns <= weir_clock_ns(CLOCK_MONOTONIC) + S / 4);
	}
	CU_ASSERT_PTR_NOT_NULL(ticker.fine);
	close(four);
	sse_run(ticker.sse, now_ns);
	run_at(now_ns + 1);
	CU_ASSERT_PTR_NULL(ticker.fine); /* without watchers, no memory */
	CU_ASSERT_STRING_EQUAL(events(none), "");
	close(one), close(none);
	teardown();
}

/* Each decision is reported once, the oldest first; after a restart of the journal, all again. */
static void test_decisions(void)
{
	setup();
	int fd = watch("?hz=0");
	events(fd);
	second();
	CU_ASSERT_STRING_EQUAL(events(fd), "decision:1 decision:2 ");
	second();
	CU_ASSERT_STRING_EQUAL(events(fd), "");
	made_up.decision[2] = made_up.decision[1];
	made_up.decision[1] = made_up.decision[0];
	made_up.decision[0].id = 3;
	made_up.view.decisions_total = 3;
	second();
	CU_ASSERT_STRING_EQUAL(events(fd), "decision:3 ");
	made_up.decision[0].id = 1;
	made_up.view.decisions_total = 1;
	second();
	CU_ASSERT_STRING_EQUAL(events(fd), "decision:1 ");
	close(fd);
	teardown();
}

static void test_changes(void)
{
	setup();
	int fd = watch("?hz=0");
	made_up.view.decisions_total = 0;
	events(fd);
	for (int i = 0; i < 3; i++)
		change[i] = (struct weir_change){.id = (uint64_t)(7 - i), .what = "set"};
	n_changes = 2;
	second();
	CU_ASSERT_STRING_EQUAL(events(fd), "act:6 act:7 ");
	second();
	CU_ASSERT_STRING_EQUAL(events(fd), "");
	change[1] = change[0];
	change[0].id = 9;
	second();
	CU_ASSERT_STRING_EQUAL(events(fd), "act:9 ");
	source.changes = NULL;
	second();
	CU_ASSERT_STRING_EQUAL(events(fd), "");
	close(fd);
	teardown();
}

/* The samples of a second are judged once: the history, the bottleneck and the alerts follow. */
static void test_second(void)
{
	setup();
	int fd = watch("?hz=0");
	made_up.view.decisions_total = 0;
	events(fd);
	ticker.unfiled = true; /* the file of the history cannot be used */
	for (int i = 0; i < 3; i++) {
		made_up.view.stages[MADE_DISK].busy_ns += 5 * (uint64_t)S;
		second();
	}
	CU_ASSERT_STRING_EQUAL(events(fd), "alert:1 ");
	CU_ASSERT_EQUAL(history_newest(ticker.history, HISTORY_1S), made_up.view.wall_ns / S);
	CU_ASSERT_TRUE(ticker.bottleneck.known && ticker.bottleneck.limits);
	CU_ASSERT_STRING_EQUAL(ticker.bottleneck.stage, "disk");
	ticker.unfiled = false;
	second();
	CU_ASSERT_STRING_EQUAL(events(fd), "alert:1 "); /* the alert is over */
	close(fd);
	teardown();
}

CUNIT_MAIN("ticker", {"when it runs", test_due}, {"timeout", test_timeout}, {"ticks", test_ticks},
    {"decisions", test_decisions}, {"changes", test_changes}, {"a second", test_second})
