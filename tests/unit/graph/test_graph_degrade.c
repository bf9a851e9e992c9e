/* SPDX-License-Identifier: MIT */
/* Stages that degrade: how pressure is computed, how the level follows it, what is journaled, and
 * which settings are refused. The graph is not started; the test acts as the control thread. */
#include "fixture/graph/probes.h"

#include "graph/graph.h"

#define MS 1000000LL

/* A graph with one stage "a", whose objective is 100 ms. It degrades above 50 % and recovers below
 * 20 %. */
static struct weir_graph *build(void)
{
	struct weir_spec *spec = weir_spec_new("degrade");
	struct weir_stage_spec *s = fixture_stage(spec, "a", "t.end", NULL);

	fixture_set(s, "slo", "100ms");
	fixture_set(s, "degrade.above", "50%");
	fixture_set(s, "degrade.below", "20%");
	fixture_set(s, "degrade.step", "100ms");
	return fixture_build(spec);
}

static void press(struct weir_stage *st, int64_t wait_ns)
{
	atomic_store(&st->sink.wait_ns, wait_ns);
}

static void test_pressure(void)
{
	struct weir_graph *g = build();
	struct weir_stage *st = weir_graph_stage(g, "a");

	CU_ASSERT_EQUAL(weir_pressure(st), 0);
	press(st, 10 * MS); /* relative to half of 100 ms */
	CU_ASSERT_DOUBLE_EQUAL(weir_pressure(st), 0.2, 1e-9);
	press(st, 5000 * MS);
	CU_ASSERT_EQUAL(weir_pressure(st), 1);
	weir_graph_free(g);
}

static void test_level_and_journal(void)
{
	struct weir_graph *g = build();
	struct weir_stage *st = weir_graph_stage(g, "a");
	struct weir_decision d[8];
	int64_t now_ns = 1;

	press(st, 40 * MS);
	graph_degrade(g, now_ns);
	CU_ASSERT_DOUBLE_EQUAL(weir_degradation(st), 0.1, 1e-9);
	graph_degrade(g, now_ns += 99 * MS); /* not due */
	CU_ASSERT_DOUBLE_EQUAL(stage_view(g, "a").degradation, 0.1, 1e-9);
	for (int i = 0; i < 12; i++)
		graph_degrade(g, now_ns += 100 * MS);
	CU_ASSERT_EQUAL(weir_degradation(st), 1);
	for (int round = 0; round < 3; round++) { /* a small change and back: not journaled */
		press(st, 0);
		while (st->degrade.tenths == DEGRADE_TENTHS)
			graph_degrade(g, now_ns += 100 * MS);
		press(st, 40 * MS);
		while (st->degrade.tenths < DEGRADE_TENTHS)
			graph_degrade(g, now_ns += 100 * MS);
	}
	press(st, 0);
	for (int i = 0; i < 20; i++)
		graph_degrade(g, now_ns += 100 * MS);
	CU_ASSERT_EQUAL(weir_degradation(st), 0);
	CU_ASSERT_EQUAL_FATAL(weir_graph_decisions(g, d, 8), 3); /* newest first */
	CU_ASSERT_STRING_EQUAL(d[2].action, "degrade");
	CU_ASSERT_STRING_EQUAL(d[2].rule, "pressure 80 % over 50 %");
	CU_ASSERT_STRING_EQUAL(d[2].inputs, "pressure=0.80 level=0.1");
	CU_ASSERT_STRING_EQUAL(d[1].action, "degrade");
	CU_ASSERT(d[1].limit[0] != '\0');
	CU_ASSERT_STRING_EQUAL(d[0].action, "restore");
	CU_ASSERT_STRING_EQUAL(d[0].stage, "a");
	weir_graph_free(g);
}

static void test_live_knobs(void)
{
	struct weir_graph *g = build();
	struct weir_stage *st = weir_graph_stage(g, "a");
	char why[256];

	press(st, 40 * MS);
	graph_degrade(g, 1);
	CU_ASSERT_EQUAL(weir_graph_set(g, "a", "degrade.above", "20%", why, sizeof(why)),
	    WEIR_EINVAL); /* not above `below` */
	CU_ASSERT_PTR_NOT_NULL(strstr(why, "degrade.below"));
	CU_ASSERT_EQUAL(weir_graph_set(g, "a", "degrade.above", "90%", why, sizeof(why)), 0);
	graph_degrade(g, 1001 * MS);
	CU_ASSERT_DOUBLE_EQUAL(weir_degradation(st), 0.1, 1e-9); /* 80 % is not above 90 % */
	CU_ASSERT_EQUAL(weir_graph_set(g, "a", "degrade.above", "100%", why, sizeof(why)), 0);
	graph_degrade(g, 2001 * MS);
	CU_ASSERT_EQUAL(weir_degradation(st), 0); /* off: quality returns under any load */
	weir_graph_free(g);
}

/* Check a spec whose stage has these two values. Returns the text of the first error, "" if
 * valid. */
static const char *refused(const char *above, const char *below, bool inlined)
{
	static char text[256];
	struct weir_spec *spec = weir_spec_new("bad");
	struct weir_stage_spec *s = fixture_stage(spec, "a", "t.end", NULL);
	struct weir_errs *errs = calloc(1, sizeof(*errs));

	fixture_set(s, "degrade.above", above);
	fixture_set(s, "degrade.below", below);
	s->inlined = inlined;
	int rc = weir_spec_check(spec, errs);
	snprintf(text, sizeof(text), "%s", rc ? errs->err[0].text : "");
	free(errs);
	weir_spec_free(spec);
	return text;
}

static void test_what_is_refused(void)
{
	CU_ASSERT_STRING_EQUAL(refused("50%", "20%", false), "");
	CU_ASSERT_STRING_EQUAL(refused("100%", "20%", true), "");
	CU_ASSERT_PTR_NOT_NULL(
	    strstr(refused("50%", "50%", false), "it must be less than 'above'"));
	CU_ASSERT_PTR_NOT_NULL(strstr(refused("50%", "20%", true), "has no queue"));
}

static void setup(void)
{
	fixture_register(&end_ops);
	test_pressure();
}

CUNIT_MAIN("graph degrade", {"pressure", setup}, {"level and journal", test_level_and_journal},
    {"live knobs", test_live_knobs}, {"what is refused", test_what_is_refused})
