/* SPDX-License-Identifier: MIT */
/* hold with a timeout: which events expire, and where they end. Times have lower bounds only. */
#include "base/clock.h"
#include "fixture/graph/probes.h"

#define EVENTS 300

static struct weir_graph *g;
static int64_t start_ns;

/* hold, with these settings (a list that ends with NULL), and `drop` for what has expired. */
static void start(const char *const *with, bool linked)
{
	struct weir_spec *spec = weir_spec_new("hold");
	struct weir_stage_spec *s = weir_spec_add_stage(spec, "hold", "hold");

	prepare(EVENTS);
	fixture_set(s, "slo", "1h");
	fixture_set(s, "width.policy", "static");
	for (; *with; with += 2)
		fixture_set(s, with[0], with[1]);
	if (linked)
		weir_spec_link(s, "expired", "late", false);
	weir_spec_add_stage(spec, "late", "drop");
	g = fixture_start(spec);
	CU_ASSERT_EQUAL_FATAL(weir_thread_attach(g, "test"), 0);
	start_ns = clock_now_ns();
	fixture_offer_all(weir_graph_stage(g, "hold"), probes, EVENTS, 50);
}

static void end(void)
{
	FIXTURE_AWAIT(fixture_ended() == EVENTS);
	check_each_once(EVENTS);
	weir_thread_detach();
	finish_graph(g, 0);
}

static void test_passes_on(void)
{
	static const char *const with[] = {"with.time", "20ms", NULL};

	start(with, false);
	end();
	CU_ASSERT(clock_now_ns() - start_ns >= 20 * NS_PER_MS);
	CU_ASSERT_EQUAL(atomic_load(&fixture_done), EVENTS);
}

static void test_capacity(void)
{
	static const char *const with[] = {"with.time", "1ms", "with.capacity", "5", NULL};

	start(with, false);
	end();
	CU_ASSERT(clock_now_ns() - start_ns >= EVENTS / 5 * NS_PER_MS);
	CU_ASSERT_EQUAL(atomic_load(&fixture_done), EVENTS);
}

/* What is in work expires, and so does what waits for capacity. */
static void check_timeout(bool linked, const char *capacity)
{
	const char *const with[] = {
	    "with.time", "60s", "with.timeout", "20ms", "with.capacity", capacity, NULL};

	start(with, linked);
	FIXTURE_AWAIT(fixture_ended() == EVENTS);
	CU_ASSERT(clock_now_ns() - start_ns >= 20 * NS_PER_MS);
	CU_ASSERT_EQUAL(atomic_load(&fixture_done), linked ? EVENTS : 0);
	CU_ASSERT_EQUAL(probes[0].status, linked ? WEIR_OK : WEIR_EDEADLINE);
	CU_ASSERT_EQUAL(stage_view(g, "late").class_view[0].offered, linked ? EVENTS : 0);
	end(); /* although the other side still works on them */
}

static void test_timeout(void)
{
	check_timeout(false, "0");
	check_timeout(true, "0");
	check_timeout(false, "3");
	check_timeout(true, "3");
}

/* Some answers come before the deadline, some after it, and some events expire while they wait. */
static void test_some(void)
{
	static const char *const with[] = {"with.time", "3ms", "with.dist", "exp", "with.timeout",
	    "12ms", "with.capacity", "40", NULL};

	start(with, false);
	end();
	CU_ASSERT_EQUAL(atomic_load(&fixture_done) + atomic_load(&fixture_shed), EVENTS);
}

/* A drain does not wait for the other side. */
static void test_drain(void)
{
	static const char *const with[] = {
	    "with.time", "60s", "with.capacity", "7", "with.timeout", "1h", NULL};

	start(with, false);
	FIXTURE_AWAIT(stage_view(g, "hold").held == EVENTS);
	weir_thread_detach();
	finish_graph(g, 0);
	check_each_once(EVENTS);
	CU_ASSERT_EQUAL(atomic_load(&fixture_done), EVENTS);
}

CUNIT_MAIN("hold with a timeout", {"passes on", test_passes_on}, {"capacity", test_capacity},
    {"timeout", test_timeout}, {"some", test_some}, {"drain", test_drain})
