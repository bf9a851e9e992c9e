/* SPDX-License-Identifier: MIT */
/* Which stage limits the server, since when, and how that is worded; and the alerts that follow. */
#include "admin/metrics/bottleneck.h"

#include <math.h>
#include <string.h>

#include "admin/metrics/alerts.h"
#include "cunit_main.h"

#define S 1000000000LL
#define N 4

enum { WEB, WORK, PARSE, REPLY }; /* a source, a pool, and two stages of a group */

static struct weir_stage_view stage[N];
static struct weir_graph_view view;
static struct sample sample[N];
static struct bottleneck b;
static struct alerts alerts;
static struct alert told[64];
static int n_told;
static bool history_fails;

static void setup(void)
{
	static const char *const name[N] = {"web", "work", "parse", "reply"};
	static const char *const placement[N] = {"source", "pool", "group", "group"};

	memset(sample, 0, sizeof(sample));
	memset(stage, 0, sizeof(stage));
	b = (struct bottleneck){0};
	alerts_fini(&alerts);
	n_told = 0;
	history_fails = false;
	view = (struct weir_graph_view){.wall_ns = 1700000000 * S,
	    .n_stages = N,
	    .stages = stage,
	    .n_classes = 2,
	    .class_name = {"vip", "bulk"}};
	for (int i = 0; i < N; i++) {
		stage[i].name = name[i];
		stage[i].placement = placement[i];
		stage[i].group = i == WEB ? "" : i == WORK ? "work" : "pair";
		stage[i].threads_now = i == WEB ? 0 : 4;
		stage[i].threads_max = 8;
		sample[i].known = true;
	}
	sample[WEB].v[SAMPLE_BUSY] = 1; /* a source has no pool that could be full */
}

static void busy(int i, double share, double done)
{
	sample[i].v[SAMPLE_BUSY] = share;
	sample[i].v[SAMPLE_DONE] = done;
}

static void tell(void *arg, const struct alert *alert)
{
	(void)arg;
	told[n_told++] = *alert;
}

/* Let seconds pass. */
static void pass(int seconds)
{
	const struct alerts_about about = {.bottleneck = &b, .history_fails = history_fails};

	for (; seconds > 0; seconds--) {
		view.wall_ns += S;
		bottleneck_feed(&b, &view, sample);
		alerts_feed(&alerts, &about, &view, sample, tell, NULL);
	}
}

static const char *sentence(void)
{
	static char text[320];

	bottleneck_sentence(&b, text, sizeof(text));
	return text;
}

/* Large numbers are written out: 46,840/s, not 4.684e+04/s. */
static void test_large_numbers(void)
{
	setup();
	busy(WORK, 0.95, 46840);
	stage[WORK].threads_max = 4;
	sample[WORK].class_v[0][SAMPLE_CLASS_SHED] = 123456;
	pass(1);
	stage[WORK].stuck = 1;
	stage[WORK].longest_running_ns = 1234 * S;
	CU_ASSERT_STRING_EQUAL(sentence(),
	    "work limits the server: its 4 threads are 95 % used, 46,840/s of 49,305/s.");
	json_t *json = bottleneck_json(&b);
	CU_ASSERT_PTR_NOT_NULL(strstr(json_string_value(json_object_get(json, "formula")),
	    "49,305/s at most; 46,840/s x 0.0811 ms"));
	json_decref(json);
	pass(1);
	CU_ASSERT_EQUAL_FATAL(n_told, 2);
	CU_ASSERT_PTR_NOT_NULL(strstr(told[0].text, "123,456/s of the highest class"));
	CU_ASSERT_PTR_NOT_NULL(strstr(told[1].text, "running for 1234 s"));
}

static void test_nothing(void)
{
	setup();
	json_t *json = bottleneck_json(&b);
	CU_ASSERT_TRUE(json_is_null(json));
	json_decref(json);
	busy(WORK, 0.849, 100);
	pass(1);
	CU_ASSERT_TRUE(b.known && !b.limits);
	CU_ASSERT_STRING_EQUAL(sentence(),
	    "Nothing limits the server: work is the busiest stage, its threads are 85 % used.");
	for (int i = 0; i < N; i++)
		sample[i].known = false;
	pass(1);
	CU_ASSERT_FALSE(b.known);
	CU_ASSERT_STRING_EQUAL(sentence(), "No stage with a pool or a width has been measured.");
	json = bottleneck_json(NULL);
	CU_ASSERT_TRUE(json_is_null(json));
	json_decref(json);
}

/* 4 threads at 95 % and 380/s: 10 ms per event, 400/s at most. */
static void test_pool(void)
{
	setup();
	busy(WORK, 0.95, 380);
	pass(1);
	CU_ASSERT_TRUE(b.limits);
	CU_ASSERT_STRING_EQUAL(b.stage, "work");
	CU_ASSERT_DOUBLE_EQUAL(b.ceiling_per_s, 400, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(b.service_s, 0.01, 1e-9);
	CU_ASSERT_STRING_EQUAL(sentence(), "work limits the server: its 4 threads are 95 % used, "
					   "380/s of 400/s; the pool may still grow.");
	stage[WORK].threads_max = 4;
	pass(7);
	CU_ASSERT_STRING_EQUAL(sentence(), "work limits the server: its 4 threads are 95 % used, "
					   "380/s of 400/s, for 7 s.");
	json_t *json = bottleneck_json(&b);
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(json, "formula")),
	    "4 threads / 10 ms = 400/s at most; 380/s x 10 ms keep 3.8 of them busy");
	CU_ASSERT_DOUBLE_EQUAL(json_number_value(json_object_get(json, "since")), 1700000001, 1e-3);
	CU_ASSERT_TRUE(json_is_true(json_object_get(json, "limits")));
	CU_ASSERT_TRUE(json_is_false(json_object_get(json, "chronic")));
	json_decref(json);
	busy(WORK, 1, 0); /* one call that takes longer than a second */
	pass(1);
	CU_ASSERT_TRUE(b.limits && b.ceiling_per_s == 0);
	CU_ASSERT_STRING_EQUAL(
	    sentence(), "work limits the server: its 4 threads are 100 % used, for 8 s.");
	json = bottleneck_json(&b);
	CU_ASSERT_TRUE(json_is_null(json_object_get(json, "ceiling")));
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(json, "formula")), "");
	json_decref(json);
}

/* Neither stage is busy by itself, but their pool is. The one that uses most of it is named. */
static void test_group(void)
{
	setup();
	busy(PARSE, 0.3, 600);
	busy(REPLY, 0.6, 600);
	busy(WORK, 0.7, 600);
	pass(1);
	CU_ASSERT_STRING_EQUAL(b.stage, "reply");
	CU_ASSERT_TRUE(b.limits);
	CU_ASSERT_DOUBLE_EQUAL(b.used, 0.9, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(b.ceiling_per_s, 600 / 0.9, 1e-9);
	json_t *json = bottleneck_json(&b);
	CU_ASSERT_PTR_NOT_NULL(strstr(
	    json_string_value(json_object_get(json, "formula")), "of the 4 threads of 'pair'"));
	json_decref(json);
}

/* Swings around the threshold do not restart the time. Another stage takes over when it leads
 * clearly. */
static void test_hysteresis(void)
{
	setup();
	busy(WORK, 0.9, 100);
	pass(1);
	int64_t since_ns = b.since_ns;
	busy(WORK, 0.76, 100);
	pass(1);
	CU_ASSERT_TRUE(b.limits && b.since_ns == since_ns);
	busy(REPLY, 0.8, 100); /* 0.04 more */
	pass(1);
	CU_ASSERT_STRING_EQUAL(b.stage, "work");
	CU_ASSERT_EQUAL(b.since_ns, since_ns);
	busy(REPLY, 0.86, 100);
	pass(1);
	CU_ASSERT_STRING_EQUAL(b.stage, "reply");
	CU_ASSERT_EQUAL(b.since_ns, view.wall_ns);
	busy(REPLY, 0.74, 100), busy(WORK, 0.74, 100);
	pass(1);
	CU_ASSERT_TRUE(!b.limits && b.since_ns == 0);
}

/* ---- alerts ---- */

static void test_chronic(void)
{
	setup();
	busy(WORK, 0.95, 380);
	pass(BOTTLENECK_CHRONIC_S);
	CU_ASSERT_EQUAL(n_told, 0);
	/* the condition holds, but the alert is not raised yet */
	json_t *yet = alerts_json(&alerts);
	CU_ASSERT_EQUAL(json_array_size(json_object_get(yet, "active")), 0);
	json_decref(yet);
	pass(2);
	CU_ASSERT_EQUAL_FATAL(n_told, 1);
	CU_ASSERT_STRING_EQUAL(told[0].name, "bottleneck_chronic");
	CU_ASSERT_STRING_EQUAL(told[0].stage, "work");
	CU_ASSERT_EQUAL(told[0].until_ns, 0);
	CU_ASSERT_EQUAL(told[0].since_ns, b.since_ns);
	json_t *json = alerts_json(&alerts);
	CU_ASSERT_EQUAL(json_array_size(json_object_get(json, "active")), 1);
	json_decref(json);
	busy(WORK, 0.1, 380);
	pass(1);
	CU_ASSERT_EQUAL_FATAL(n_told, 2);
	CU_ASSERT_EQUAL(told[1].id, told[0].id);
	CU_ASSERT_EQUAL(told[1].until_ns, view.wall_ns);
	json = alerts_json(&alerts);
	CU_ASSERT_EQUAL(json_array_size(json_object_get(json, "active")), 0);
	CU_ASSERT_EQUAL(json_array_size(json_object_get(json, "past")), 1);
	json_decref(json);
}

static void test_shed(void)
{
	setup();
	sample[WORK].class_v[1][SAMPLE_CLASS_SHED] = 50;
	pass(3);
	CU_ASSERT_EQUAL(n_told, 0); /* that class is meant to be shed */
	sample[WORK].class_v[0][SAMPLE_CLASS_SHED] = 5.12345;
	pass(1);
	CU_ASSERT_EQUAL_FATAL(n_told, 1);
	CU_ASSERT_STRING_EQUAL(told[0].name, "top_class_shed");
	CU_ASSERT(strncmp(told[0].text, "5.123/s of the highest class 'vip'", 34) == 0);
	sample[WORK].class_v[0][SAMPLE_CLASS_SHED] = 0;
	pass(9); /* the alert lingers for 10 s */
	CU_ASSERT_EQUAL(n_told, 1);
	pass(1);
	CU_ASSERT_EQUAL_FATAL(n_told, 2);
	CU_ASSERT(strncmp(told[1].text, "5.123/s of the highest class 'vip' were shed", 44) == 0);
	view.n_classes = 1;
	sample[WORK].class_v[0][SAMPLE_CLASS_SHED] = 5;
	pass(1);
	CU_ASSERT_EQUAL_FATAL(n_told, 3);
	CU_ASSERT_TRUE(told[2].id > told[1].id);
	CU_ASSERT_PTR_NOT_NULL(strstr(told[2].text, "the only class"));
}

static void test_stuck(void)
{
	setup();
	stage[WORK].stuck = 7; /* before the first sample */
	stage[WORK].longest_running_ns = S;
	pass(1);
	CU_ASSERT_EQUAL(n_told, 0);
	stage[WORK].stuck = 8;
	for (int i = 2; i < 6; i++) {
		stage[WORK].longest_running_ns = i * S;
		pass(1);
	}
	CU_ASSERT_EQUAL_FATAL(n_told, 1);
	CU_ASSERT_STRING_EQUAL(told[0].name, "stage_stuck");
	CU_ASSERT_STRING_EQUAL(told[0].stage, "work");
	CU_ASSERT_PTR_NOT_NULL(strstr(alerts.active[0].text, "running for 5 s"));
	stage[WORK].longest_running_ns = S / 1000; /* the stuck call has ended */
	pass(1);
	CU_ASSERT_EQUAL(n_told, 2);
	pass(1);
	CU_ASSERT_EQUAL(n_told, 2);
}

static void test_history_file(void)
{
	setup();
	history_fails = true;
	pass(3);
	CU_ASSERT_EQUAL_FATAL(n_told, 1);
	CU_ASSERT_STRING_EQUAL(told[0].name, "history_file");
	history_fails = false;
	pass(1);
	CU_ASSERT_EQUAL(n_told, 2);
}

/* More past alerts than are kept: the newest stay, and ids continue. */
static void test_past(void)
{
	setup();
	for (int i = 0; i < ALERTS_PAST + 5; i++) {
		n_told = 0;
		history_fails = true;
		pass(1);
		history_fails = false;
		pass(1);
	}
	json_t *json = alerts_json(&alerts);
	const json_t *past = json_object_get(json, "past");
	CU_ASSERT_EQUAL(json_array_size(past), ALERTS_PAST);
	CU_ASSERT_EQUAL(
	    json_integer_value(json_object_get(json_array_get(past, 0), "id")), ALERTS_PAST + 5);
	json_decref(json);
	json = alerts_json(NULL);
	CU_ASSERT_EQUAL(json_array_size(json_object_get(json, "past")), 0);
	json_decref(json);
	alerts_fini(&alerts);
}

static void test_one_thread(void)
{
	setup();
	stage[WORK].threads_now = stage[WORK].threads_max = 1;
	busy(WORK, 0.95, 95);
	pass(1);
	CU_ASSERT_PTR_NOT_NULL(strstr(sentence(), "its 1 thread is 95 % used"));
	json_t *json = bottleneck_json(&b);
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(json, "formula")),
	    "1 thread / 10 ms = 100/s at most; 95/s x 10 ms keep 0.95 of them busy");
	json_decref(json);
}

/* ---- rules ---- */

static struct weir_alerts_spec rules;

static void rule(void)
{
	struct weir_alerts_spec copy;

	CU_ASSERT_EQUAL_FATAL(weir_alerts_copy(&rules, &copy), 0);
	alerts_rule(&alerts, &copy);
}

/* `above`, `for` and `linger` of the server-wide rule. */
static void test_rule_shed(void)
{
	struct weir_alert_rule *r = &rules.rule[WEIR_ALERT_TOP_CLASS_SHED];

	setup();
	rules = weir_alerts_default();
	r->above_per_s = 5;
	r->for_ns = 3 * S;
	r->linger_ns = 2 * S;
	rule();
	sample[WORK].class_v[0][SAMPLE_CLASS_SHED] = 5;
	pass(10);
	CU_ASSERT_EQUAL(n_told, 0);
	sample[WORK].class_v[0][SAMPLE_CLASS_SHED] = 6;
	pass(3);
	CU_ASSERT_EQUAL(n_told, 0);
	sample[WORK].class_v[0][SAMPLE_CLASS_SHED] = 5; /* the time starts again */
	pass(1);
	sample[WORK].class_v[0][SAMPLE_CLASS_SHED] = 6;
	int64_t began_ns = view.wall_ns + S;
	pass(3);
	CU_ASSERT_EQUAL(n_told, 0);
	pass(1);
	CU_ASSERT_EQUAL_FATAL(n_told, 1);
	CU_ASSERT_EQUAL(told[0].since_ns, began_ns);
	CU_ASSERT_EQUAL(told[0].id, 1);
	sample[WORK].class_v[0][SAMPLE_CLASS_SHED] = 0;
	pass(1);
	CU_ASSERT_EQUAL(n_told, 1);
	pass(1);
	CU_ASSERT_EQUAL(n_told, 2);
	CU_ASSERT_TRUE(told[1].until_ns > 0);
	weir_alerts_free(&rules);
}

/* An operator that drains a stage orders refusals. They are not a lack of capacity. */
static void test_drained_by_an_operator(void)
{
	setup();
	sample[WORK].class_v[0][SAMPLE_CLASS_SHED] = 50;
	sample[WORK].ordered[0] = 50;
	pass(5);
	CU_ASSERT_EQUAL(n_told, 0);
	sample[WORK].class_v[0][SAMPLE_CLASS_SHED] = 52;
	pass(1);
	CU_ASSERT_EQUAL_FATAL(n_told, 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(told[0].text, "2/s of the highest class"));
}

static struct weir_alert_rule *rule_for(enum weir_alert_kind kind, const char *name)
{
	struct weir_spec *spec = weir_spec_new("tested");

	CU_ASSERT_PTR_NOT_NULL_FATAL(spec);
	spec->alerts.rule[kind] = rules.rule[kind];
	CU_ASSERT_PTR_NOT_NULL_FATAL(weir_spec_add_alert_stage(spec, kind, name));
	CU_ASSERT_EQUAL_FATAL(weir_alerts_copy(&spec->alerts, &rules), 0);
	weir_spec_free(spec);
	return &rules.stages[0].rule;
}

/* Events shed by one stage are ignored, or only they count. */
static void test_rule_shed_stage(void)
{
	setup();
	rules = weir_alerts_default();
	rule_for(WEIR_ALERT_TOP_CLASS_SHED, "work")->enabled = false;
	rule();
	sample[WORK].class_v[0][SAMPLE_CLASS_SHED] = 50;
	pass(2);
	CU_ASSERT_EQUAL(n_told, 0);
	sample[PARSE].class_v[0][SAMPLE_CLASS_SHED] = 2;
	pass(1);
	CU_ASSERT_EQUAL_FATAL(n_told, 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(told[0].text, "2/s of the highest class"));
	rules.rule[WEIR_ALERT_TOP_CLASS_SHED].enabled = false;
	rules.stages[0].rule.enabled = true;
	rule();
	pass(1);
	CU_ASSERT_EQUAL_FATAL(n_told, 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(alerts.active[0].text, "50/s of the highest class"));
	rules.stages[0].rule.enabled = false;
	rules.rule[WEIR_ALERT_TOP_CLASS_SHED].linger_ns = 0;
	rule();
	pass(1);
	CU_ASSERT_EQUAL(n_told, 2);
	weir_alerts_free(&rules);
}

/* A stage can have its own times. An alert that is switched off ends, even while its condition
 * holds. */
static void test_rule_stage(void)
{
	setup();
	rules = weir_alerts_default();
	rules.rule[WEIR_ALERT_BOTTLENECK_CHRONIC].for_ns = 3 * S;
	rule_for(WEIR_ALERT_BOTTLENECK_CHRONIC, "work")->for_ns = 6 * S;
	rule();
	busy(WORK, 0.95, 380);
	pass(6);
	CU_ASSERT_EQUAL(n_told, 0);
	pass(1);
	CU_ASSERT_EQUAL_FATAL(n_told, 1);
	rules.stages[0].rule.enabled = false;
	rules.stages[0].rule.linger_ns = 100 * S;
	rule();
	pass(1);
	CU_ASSERT_EQUAL_FATAL(n_told, 2);
	CU_ASSERT_TRUE(told[1].until_ns > 0);
	json_t *json = alerts_json(&alerts);
	const json_t *list = json_object_get(json, "rules");
	CU_ASSERT_EQUAL(json_array_size(list), WEIR_ALERTS);
	const json_t *r = json_array_get(list, WEIR_ALERT_BOTTLENECK_CHRONIC);
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(r, "name")), "bottleneck_chronic");
	CU_ASSERT_EQUAL(json_real_value(json_object_get(r, "for")), 3);
	CU_ASSERT_TRUE(json_is_true(json_object_get(r, "enabled")));
	r = json_array_get(json_object_get(r, "stages"), 0);
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(r, "stage")), "work");
	CU_ASSERT_TRUE(json_is_false(json_object_get(r, "enabled")));
	json_decref(json);
	weir_alerts_free(&rules);
	alerts_fini(&alerts);
}

/* A call may count as stuck before the rule's `for` has passed; then the alert comes later. */
static void test_rule_stuck(void)
{
	setup();
	rules = weir_alerts_default();
	rules.rule[WEIR_ALERT_STAGE_STUCK].for_ns = 4 * S;
	rule();
	pass(1);
	stage[WORK].stuck = 1;
	for (int i = 2; i < 6; i++) {
		stage[WORK].longest_running_ns = i * S;
		pass(1);
	}
	CU_ASSERT_EQUAL(n_told, 0);
	stage[WORK].longest_running_ns = 6 * S;
	pass(1);
	CU_ASSERT_EQUAL(n_told, 1);
	weir_alerts_free(&rules);
	alerts_fini(&alerts);
}

CUNIT_MAIN("bottleneck and alerts", {"nothing limits", test_nothing}, {"a pool limits", test_pool},
    {"a group limits", test_group}, {"hysteresis", test_hysteresis}, {"chronic", test_chronic},
    {"the highest class is shed", test_shed}, {"a stage is stuck", test_stuck},
    {"the history's file fails", test_history_file}, {"what is past", test_past},
    {"a rule for what is shed", test_rule_shed},
    {"drained by an operator", test_drained_by_an_operator}, {"one thread", test_one_thread},
    {"stages that count", test_rule_shed_stage}, {"a rule for a stage", test_rule_stage},
    {"a rule for what is stuck", test_rule_stuck}, {"large numbers", test_large_numbers})
