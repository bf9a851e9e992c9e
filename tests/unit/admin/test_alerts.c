/* SPDX-License-Identifier: MIT */
/* Alerts of stages whose names have the maximum length: each is raised once and names its stage. No
 * alert of a stage that may block. test_bottleneck.c tests the conditions of alerts. */
#include "admin/metrics/alerts.h"

#include <string.h>

#include "cunit_main.h"

#define S     1000000000LL
#define BEGIN "a.name.of.64.bytes.0123456789.0123456789.0123456789.0123456789."

static int n_told;
static struct alert told[64];

static void tell(void *arg, const struct alert *alert)
{
	(void)arg;
	if (n_told < 64)
		told[n_told++] = *alert;
}

/* Two stages whose names differ in the last byte; both are stuck. */
static void test_names_of_64_bytes(void)
{
	struct weir_stage_view stage[2] = {
	    {.name = BEGIN "a", .placement = "pool", .group = BEGIN "a"},
	    {.name = BEGIN "b", .placement = "pool", .group = BEGIN "b"}};
	struct weir_graph_view view = {.wall_ns = 1700000000 * S, .n_stages = 2, .stages = stage};
	struct alerts alerts = {0};
	struct bottleneck b = {0};
	const struct alerts_about about = {.bottleneck = &b};

	n_told = 0;
	for (int i = 0; i < 10; i++, view.wall_ns += S) {
		for (int k = 0; k < 2; k++) {
			stage[k].stuck = i > 0;
			stage[k].longest_running_ns = (i + 1) * S;
		}
		alerts_feed(&alerts, &about, &view, NULL, tell, NULL);
	}
	CU_ASSERT_EQUAL(alerts.n_active, 2);
	CU_ASSERT_EQUAL_FATAL(n_told, 2);
	for (int k = 0; k < 2; k++)
		CU_ASSERT_STRING_EQUAL(told[k].stage, stage[k].name);
	alerts_fini(&alerts);
}

/* An inline stage that may block, since only the client of the call waits: no alert, however
 * long. */
static void test_blocks_alone(void)
{
	struct weir_stage_view stage = {.name = "app", .placement = "inline", .group = ""};
	struct weir_graph_view view = {.wall_ns = 1700000000 * S, .n_stages = 1, .stages = &stage};
	struct alerts alerts = {0};
	const struct alerts_about about = {0};

	for (int alone = 1; alone >= 0; alone--) {
		n_told = 0;
		stage.blocks_alone = alone;
		for (int i = 0; i < 10; i++, view.wall_ns += S) {
			stage.stuck += i % 2;
			stage.longest_running_ns = (i + 1) * S;
			alerts_feed(&alerts, &about, &view, NULL, tell, NULL);
		}
		CU_ASSERT_EQUAL(n_told, alone ? 0 : 1);
	}
	alerts_fini(&alerts);
}

static void test_bottleneck_has_all_of_the_name(void)
{
	struct weir_stage_view stage = {.name = BEGIN "a",
	    .placement = "group",
	    .group = BEGIN "g",
	    .threads_now = 1,
	    .threads_max = 1};
	struct weir_graph_view view = {.wall_ns = 1700000000 * S, .n_stages = 1, .stages = &stage};
	struct sample sample = {.known = true};
	struct bottleneck b = {0};

	sample.v[SAMPLE_BUSY] = 0.95;
	sample.v[SAMPLE_DONE] = 10;
	bottleneck_feed(&b, &view, &sample);
	int64_t since_ns = b.since_ns;
	view.wall_ns += S;
	bottleneck_feed(&b, &view, &sample);
	CU_ASSERT_TRUE(b.limits);
	CU_ASSERT_EQUAL(b.since_ns, since_ns); /* the bottleneck is the same as before */
	CU_ASSERT_STRING_EQUAL(b.stage, stage.name);
	CU_ASSERT_STRING_EQUAL(b.pool, stage.group);
}

static struct sample sample;

/* Run for `seconds`; `vip` and `bulk` are what the stage sheds per second, of 100 bulk that arrive. */
static void shed(
    struct alerts *alerts, struct weir_graph_view *view, int seconds, double vip, double bulk)
{
	const struct alerts_about about = {0};

	sample.known = true;
	sample.class_v[0][SAMPLE_CLASS_SHED] = vip;
	sample.class_v[1][SAMPLE_CLASS_IN] = 100;
	sample.class_v[1][SAMPLE_CLASS_SHED] = bulk;
	for (int i = 0; i < seconds; i++, view->wall_ns += S)
		alerts_feed(alerts, &about, view, &sample, tell, NULL);
}

/* While lower classes are let in at the stage, admission may still be at work: no alert for 30 s, and then
 * a warning that says so. It becomes an alarm once no lower class is let in. */
static void test_shed_while_bulk_is_let_in(void)
{
	struct weir_stage_view stage = {.name = "work", .placement = "pool", .group = "work"};
	struct weir_graph_view view = {.wall_ns = 1700000000 * S,
	    .n_classes = 2,
	    .class_name = {"vip", "bulk"},
	    .n_stages = 1,
	    .stages = &stage};
	struct alerts alerts = {0};

	n_told = 0;
	shed(&alerts, &view, 30, 0, 100); /* bulk alone: never an alert */
	shed(&alerts, &view, 30, 5, 99);
	CU_ASSERT_EQUAL(n_told, 0);
	CU_ASSERT_PTR_NULL(alerts_top_shed(&alerts));
	shed(&alerts, &view, 1, 0, 99); /* the time starts again */
	shed(&alerts, &view, 30, 5, 99);
	CU_ASSERT_EQUAL(n_told, 0);
	shed(&alerts, &view, 1, 5, 99);
	CU_ASSERT_EQUAL_FATAL(n_told, 1);
	CU_ASSERT_STRING_EQUAL(told[0].level, "warn");
	CU_ASSERT_PTR_NOT_NULL(strstr(told[0].text, "while lower classes are let in"));
	CU_ASSERT_PTR_NULL(alerts_top_shed(&alerts));
	shed(&alerts, &view, 1, 5, 100);
	const struct alert *top = alerts_top_shed(&alerts);
	CU_ASSERT_PTR_NOT_NULL_FATAL(top);
	CU_ASSERT_STRING_EQUAL(top->level, "bad");
	CU_ASSERT_PTR_NULL(strstr(top->text, "let in"));
	CU_ASSERT_EQUAL(n_told, 1);
	alerts_fini(&alerts);
}

/* A source that turns away connections for ten seconds, because of two of its limits. */
static void test_source_refuses(void)
{
	static const struct weir_metric metrics[] = {
	    {"http_open", WEIR_METRIC_GAUGE, "connections", "Open ones"},
	    {"http_refused_total", WEIR_METRIC_TURNED_AWAY, "connections", "Over max_connections"},
	    {"http_refused_rate_total", WEIR_METRIC_TURNED_AWAY, "connections", "Over a rate"},
	    {0}};
	struct weir_stage_view stage = {
	    .name = "web", .placement = "source", .group = "", .metrics = metrics, .n_metrics = 3};
	struct weir_graph_view view = {.wall_ns = 1700000000 * S, .n_stages = 1, .stages = &stage};
	struct alerts alerts = {0};
	const struct alerts_about about = {0};

	n_told = 0;
	stage.metric[1] = 1000; /* long ago */
	for (int i = 0; i < 40; i++, view.wall_ns += S) {
		stage.metric[0] += 1000;
		stage.metric[1] += i >= 2 && i < 20 ? 7 : 0;
		stage.metric[2] += i >= 2 && i < 20 ? 3 : 1;
		alerts_feed(&alerts, &about, &view, NULL, tell, NULL);
		CU_ASSERT_EQUAL(n_told, i < 12 ? 0 : i < 29 ? 1 : 2);
	}
	CU_ASSERT_STRING_EQUAL(told[0].name, "source_refuses");
	CU_ASSERT_STRING_EQUAL(told[0].stage, "web");
	CU_ASSERT_STRING_EQUAL(told[0].level, "warn");
	CU_ASSERT_STRING_EQUAL(told[0].text,
	    "web turns away 10/s because of its limits, most of them counted by "
	    "weir_http_refused_total: Over max_connections");
	CU_ASSERT_PTR_NOT_NULL(strstr(told[1].text, "web turned away 10/s"));
	alerts_fini(&alerts);
}

/* A class that misses its objective; test_burn.c has the windows. */
static void test_slo_burn(void)
{
	struct weir_answer_view answers[2] = {0};
	struct weir_stage_view stage = {
	    .name = "web", .placement = "source", .group = "", .answers = answers};
	struct weir_graph_view view = {.now_ns = S,
	    .wall_ns = 1700000000 * S,
	    .n_classes = 2,
	    .class_name = {"vip", "bulk"},
	    .class_slo_ns = {S / 10, S},
	    .n_stages = 1,
	    .stages = &stage};
	struct alerts alerts = {0};
	const struct alerts_about about = {0};

	n_told = 0;
	for (int i = 0; i < 900; i++, view.wall_ns += S, view.now_ns += S) {
		answers[0].by[WEIR_OUTCOME_DONE].count[weir_hist_bucket(S / 2)] += i < 20;
		answers[0].by[WEIR_OUTCOME_DONE].count[weir_hist_bucket(S / 20)] += 10;
		answers[1].by[WEIR_OUTCOME_SHED].count[weir_hist_bucket(S / 20)] += 100;
		answers[1].by[WEIR_OUTCOME_DONE].count[weir_hist_bucket(S / 2)] += 1;
		alerts_feed(&alerts, &about, &view, NULL, tell, NULL);
	}
	CU_ASSERT_EQUAL_FATAL(n_told, 0); /* less than the budget, and bulk is shed only */
	for (int i = 0; i < 1300; i++, view.wall_ns += S, view.now_ns += S) {
		answers[0].by[WEIR_OUTCOME_FAILED].count[weir_hist_bucket(S / 20)] +=
		    i < 400 ? 10 : 0;
		answers[0].by[WEIR_OUTCOME_DONE].count[weir_hist_bucket(S / 20)] += 10;
		alerts_feed(&alerts, &about, &view, NULL, tell, NULL);
	}
	CU_ASSERT_TRUE_FATAL(n_told >= 1);
	CU_ASSERT_STRING_EQUAL(told[0].name, "slo_burn");
	CU_ASSERT_STRING_EQUAL(told[0].of_class, "vip");
	CU_ASSERT_STRING_EQUAL(told[0].level, "bad");
	CU_ASSERT_PTR_NOT_NULL(
	    strstr(told[0].text, "requests of class 'vip' miss their objective of 0.1 s: "));
	alerts_fini(&alerts);
}

CUNIT_MAIN("alerts", {"shed while bulk is let in", test_shed_while_bulk_is_let_in},
    {"a source refuses", test_source_refuses}, {"a budget is used up", test_slo_burn},
    {"names of 64 bytes", test_names_of_64_bytes}, {"blocks alone", test_blocks_alone},
    {"a bottleneck has all of the name", test_bottleneck_has_all_of_the_name})
