/* SPDX-License-Identifier: MIT */
/* burn at lower quality: what the response reports, and what is counted. The test sets the level of
 * degradation; the control thread only writes it when its own level changes, which stays 0. */
#include "cunit_main.h"
#include "file/http_call.h"
#include "stage/degrade.h"
#include "stage/stage.h"

static struct weir_graph *graph;

static void set_up(const char *least)
{
	struct weir_spec *spec = weir_spec_new("burn");
	struct weir_stage_spec *s = weir_spec_add_stage(spec, "burn", "burn");

	fixture_set(s, "with.time", "1us");
	fixture_set(s, "with.least", least);
	graph = fixture_start(spec);
	CU_ASSERT_EQUAL_FATAL(weir_thread_attach(graph, "test"), 0);
}

/* Returns how many events were counted as degraded. */
static int64_t tear_down(void)
{
	struct weir_drain_report report;

	weir_thread_detach();
	weir_graph_drain(graph, 10000000000, &report);
	CU_ASSERT_EQUAL(report.law_error, 0);
	int64_t n = metric_of(graph, "burn", 0);
	weir_graph_free(graph);
	return n;
}

/* Send a request at this level of degradation. */
static struct call *ask(int tenths)
{
	struct weir_stage *st = weir_graph_stage(graph, "burn");
	struct call *c = call_new("/");

	atomic_store(&st->degraded, tenths);
	call_send(c, st);
	call_await(c);
	CU_ASSERT_EQUAL(c->outcome, WEIR_OK);
	return c;
}

static void test_quality(void)
{
	static const struct {
		int tenths;
		const char *field;
	} step[] = {{0, "X-Quality: 1.00\r\n"}, {5, "X-Quality: 0.70\r\n"},
	    {DEGRADE_TENTHS, "X-Quality: 0.40\r\n"}, {5, "X-Quality: 0.70\r\n"}};
	struct call *c[4];

	set_up("40%");
	for (int i = 0; i < 4; i++) {
		c[i] = ask(step[i].tenths);
		CU_ASSERT_TRUE(call_has_field(c[i], step[i].field));
	}
	CU_ASSERT_EQUAL(tear_down(), 3);
	for (int i = 0; i < 4; i++)
		call_free(c[i]);
}

/* Without `least` there is one quality only, and the level changes nothing. */
static void test_one_quality(void)
{
	set_up("100%");
	struct call *c = ask(DEGRADE_TENTHS);
	CU_ASSERT_FALSE(call_has_field(c, "X-Quality"));
	CU_ASSERT_EQUAL(tear_down(), 0);
	call_free(c);
}

/* Events that are not requests have no response to report it in. */
static void test_other_event(void)
{
	static struct probe probe;

	fixture_reset();
	set_up("40%");
	atomic_store(&weir_graph_stage(graph, "burn")->degraded, DEGRADE_TENTHS);
	fixture_offer_all(weir_graph_stage(graph, "burn"), &probe, 1, 1);
	FIXTURE_AWAIT(fixture_ended() == 1);
	CU_ASSERT_EQUAL(atomic_load(&fixture_done), 1);
	CU_ASSERT_EQUAL(tear_down(), 1);
}

CUNIT_MAIN("burn quality", {"quality", test_quality}, {"one quality", test_one_quality},
    {"another event", test_other_event})
