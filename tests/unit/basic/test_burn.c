/* SPDX-License-Identifier: MIT */
/*
 * burn, delay and drop: their effect on events and their times. Times have lower bounds only, which
 * hold under any load.
 */
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "cunit_main.h"
#include "fixture/graph/graph.h"

#define EVENTS 20

static struct probe probes[EVENTS];

/* While set, the CPU clock of threads moves by 4 ns a reading: the calibration of burn then
 * concludes that the host is very fast, and even a short burn takes many rounds. */
static atomic_bool slow_clock;
static atomic_long readings;

int clock_gettime(clockid_t id, struct timespec *ts)
{
	if (id != CLOCK_THREAD_CPUTIME_ID || !atomic_load(&slow_clock))
		return (int)syscall(SYS_clock_gettime, id, ts);
	*ts = (struct timespec){.tv_nsec = 4 * atomic_fetch_add(&readings, 1)};
	return 0;
}

static int64_t clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

/* Start a graph with a stage of type `use`, followed by another when `linked`. */
static struct weir_graph *start(const char *use, const char *knob, const char *value, bool linked)
{
	struct weir_spec *spec = weir_spec_new("basic");
	struct weir_stage_spec *s = weir_spec_add_stage(spec, "first", use);

	fixture_reset();
	memset(probes, 0, sizeof(probes));
	fixture_set(s, knob, value);
	if (linked) {
		weir_spec_link(s, "out", "last", false);
		weir_spec_add_stage(spec, "last", "drop");
	}
	return fixture_start(spec);
}

static void offer(struct weir_graph *g, unsigned n)
{
	CU_ASSERT_EQUAL_FATAL(weir_thread_attach(g, "test"), 0);
	fixture_offer_all(weir_graph_stage(g, "first"), probes, (int)n, (int)n);
	FIXTURE_AWAIT(fixture_ended() == n);
	weir_thread_detach();
}

static void finish(struct weir_graph *g)
{
	struct weir_drain_report report;
	struct weir_graph_view *view = NULL;

	weir_graph_drain(g, 10000000000, &report);
	CU_ASSERT_EQUAL(report.law_error, 0);
	CU_ASSERT_EQUAL(weir_graph_view(g, &view), 0);
	CU_ASSERT_EQUAL(view->stages[0].class_view[0].completed, atomic_load(&fixture_done));
	weir_graph_view_free(view);
	weir_graph_free(g);
}

/* Send EVENTS through a graph, and drain it. */
static void run(const char *use, const char *knob, const char *value, bool linked)
{
	struct weir_graph *g = start(use, knob, value, linked);

	offer(g, EVENTS);
	finish(g);
}

static void test_burn_takes_cpu(void)
{
	int64_t start_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);

	run("burn", "with.time", "1ms", true);
	CU_ASSERT(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - start_ns >= EVENTS * 990000LL);
	CU_ASSERT_EQUAL(atomic_load(&fixture_done), EVENTS);
}

static void test_burn_little(void)
{
	int64_t start_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);

	run("burn", "with.time", "300us", false);
	CU_ASSERT(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - start_ns >= EVENTS * 290000LL);
	run("burn", "with.time", "500ns", false);
	run("burn", "with.time", "0s", false);
	CU_ASSERT_EQUAL(atomic_load(&fixture_done), EVENTS);
}

/* A burn of 400 ns does not look at the clock while it runs. With the slow clock, burn takes 2^18
 * rounds for one ns. Each round has at least 3 cycles, so the burn takes at least 50 ms on any
 * host. */
static void test_burn_without_clock(void)
{
	int64_t start_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);

	atomic_store(&slow_clock, true);
	struct weir_graph *g = start("burn", "with.time", "400ns", false);
	offer(g, 1);
	atomic_store(&slow_clock, false);
	finish(g);
	CU_ASSERT(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - start_ns >= 50000000);
}

static void test_delay_takes_time(void)
{
	int64_t start_ns = clock_ns(CLOCK_MONOTONIC);

	run("delay", "with.time", "2ms", true); /* in at most two threads */
	CU_ASSERT(clock_ns(CLOCK_MONOTONIC) - start_ns >= 2000000);
	CU_ASSERT_EQUAL(atomic_load(&fixture_done), EVENTS);
	run("delay", "with.time", "0s", false);
	CU_ASSERT_EQUAL(atomic_load(&fixture_done), EVENTS);
}

static void test_drop(void)
{
	run("drop", "with.status", "ok", false);
	CU_ASSERT_EQUAL(atomic_load(&fixture_done), EVENTS);
	run("drop", "with.status", "failed", false);
	CU_ASSERT_EQUAL(atomic_load(&fixture_failed), EVENTS);
	CU_ASSERT_EQUAL(probes[0].status, WEIR_EFAILED);
}

static void test_all_distributions(void)
{
	static const char *const kinds[] = {"const", "exp", "bimodal", "lognormal"};

	for (int i = 0; i < 4; i++) {
		struct weir_spec *spec = weir_spec_new("dist");
		struct weir_stage_spec *s = weir_spec_add_stage(spec, "burn", "burn");
		fixture_set(s, "with.time", "1us");
		fixture_set(s, "with.slow", "5us");
		fixture_set(s, "with.slow_share", "10%");
		fixture_set(s, "with.sigma", "1.5");
		fixture_set(s, "with.dist", kinds[i]);
		fixture_set(s, "with.seed", "42");
		weir_graph_free(fixture_build(spec));
	}
}

/* The service time derived from the configuration is the mean of the distribution. */
static void test_service_time(void)
{
	static const char *const use[] = {"burn", "delay"};
	static const char *const word[][2] = {
	    {"time", "2ms"}, {"dist", "bimodal"}, {"slow", "10ms"}, {"slow_share", "25%"}};
	char why[200];

	for (int i = 0; i < 2; i++) {
		const struct weir_stage_ops *ops = weir_stage_type_find(use[i]);
		void *conf = calloc(1, ops->conf_size);
		CU_ASSERT_EQUAL_FATAL(weir_knobs_init(ops->knobs, conf), 0);
		CU_ASSERT_EQUAL(ops->service_ns(conf), 1000000);
		for (int k = 0; k < 4; k++)
			CU_ASSERT_EQUAL(weir_knob_parse(weir_knob_find(ops->knobs, word[k][0]),
					    word[k][1], conf, why, sizeof(why)),
			    0);
		CU_ASSERT_EQUAL(ops->service_ns(conf), 4000000);
		weir_knobs_fini(ops->knobs, conf);
		free(conf);
	}
	CU_ASSERT_PTR_NULL(weir_stage_type_find("drop")->service_ns);
}

CUNIT_MAIN("burn, delay, drop", {"burn takes CPU", test_burn_takes_cpu},
    {"burn little", test_burn_little}, {"burn without clock", test_burn_without_clock},
    {"delay takes time", test_delay_takes_time}, {"drop", test_drop},
    {"all distributions", test_all_distributions}, {"service time", test_service_time})
