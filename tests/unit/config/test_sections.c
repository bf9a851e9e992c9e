/* SPDX-License-Identifier: MIT */
/* What each section puts into the spec: stages and their shorthands, defaults, classes, groups, the
 * rest. */
#include "loading.h"

#include "base/clock.h"

#define HEAD "weir: 1\nstages:\n  web: { use: t.source, with: { listen: a }, to: w }\n"

static void test_server(void)
{
	struct weir_spec *spec = load_good("weir: 1\n"
					   "name: shop\n"
					   "admin: { listen: \"\" }\n"
					   "drain: { grace: 2m, old: 1h }\n"
					   "payloads: { memory: 64MiB, family_memory: 3MiB }\n"
					   "x-anything: [1, { a: b }]\n"
					   "stages: {}\n");

	CU_ASSERT_STRING_EQUAL(spec->name, "shop");
	CU_ASSERT_STRING_EQUAL(spec->admin.listen, "");
	CU_ASSERT_EQUAL(spec->grace_ns, 120000000000);
	CU_ASSERT_EQUAL(spec->old_ns, 3600000000000);
	CU_ASSERT_EQUAL(spec->payload_bytes, 64 << 20);
	CU_ASSERT_EQUAL(spec->family_bytes, 3 << 20);
	CU_ASSERT_EQUAL(spec->n_stages + spec->n_classes + spec->n_groups, 0);
	weir_spec_free(spec);
	spec = load_good("weir: 1\nadmin: { listen: 127.0.0.1:1 }\nstages: {}\n");
	CU_ASSERT_STRING_EQUAL(spec->name, "t");
	CU_ASSERT_EQUAL(spec->grace_ns, 10000000000);
	CU_ASSERT_EQUAL(spec->old_ns, 600000000000);
	CU_ASSERT_EQUAL(spec->payload_bytes, 1 << 30);
	CU_ASSERT_EQUAL(spec->family_bytes, 256 << 20);
	CU_ASSERT_EQUAL(spec->admin.mark.col, 18);
	weir_spec_free(spec);
}

static void test_stage(void)
{
	struct weir_spec *spec =
	    load_good(HEAD "  w:\n"
			   "    use: t.work\n"
			   "    with: { size: 1MB, limit: { rate: 5 } }\n"
			   "    queue: { limit: 7 }\n"
			   "    cohort: { max: 3, linger: 1ms, by: path }\n"
			   "    admission: { policy: rate, mode: shadow, rate: 2k }\n"
			   "    mode: partitioned\n"
			   "    key: header.x-user\n"
			   "    group: g\n"
			   "    slo: 2s\n"
			   "    x-note: mine\n"
			   "groups: { g: {} }\n");
	const struct weir_stage_spec *w = stage_of(spec, "w");

	CU_ASSERT_STRING_EQUAL(w->use, "t.work");
	CU_ASSERT_TRUE(w->mark.line == 4 && w->mark.col == 3 && w->mark.len == 1);
	CU_ASSERT_TRUE(w->use_mark.line == 5 && w->use_mark.col == 10);
	CU_ASSERT_STRING_EQUAL(weir_node_get(w->with, "size")->text, "1MB");
	CU_ASSERT_EQUAL(w->queue.limit, 7);
	CU_ASSERT_EQUAL(w->cohort.max, 3);
	CU_ASSERT_EQUAL(w->cohort.linger_ns, 1000000);
	CU_ASSERT_STRING_EQUAL(w->cohort.by, "path");
	CU_ASSERT_STRING_EQUAL(w->admission.policy, "rate");
	CU_ASSERT_EQUAL(w->admission.mode, WEIR_ADMISSION_SHADOW);
	CU_ASSERT_EQUAL(w->admission.rate, 2000);
	CU_ASSERT_EQUAL(w->mode, WEIR_MODE_PARTITIONED);
	CU_ASSERT_STRING_EQUAL(w->key, "header.x-user");
	CU_ASSERT_STRING_EQUAL(w->group, "g");
	CU_ASSERT_EQUAL(w->slo_ns, 2000000000);
	weir_spec_free(spec);
}

static void test_threads(void)
{
	struct weir_spec *spec = load_good(HEAD "  w: { use: t.work, threads: inline }\n"
						"  a: { use: t.work, threads: 4 }\n"
						"  b: { use: t.work, threads: auto }\n"
						"  c: { use: t.work, threads: { min: 2 } }\n"
						"  d: { use: t.work }\n");

	CU_ASSERT_TRUE(stage_of(spec, "w")->inlined);
	const struct weir_threads_spec *t = &stage_of(spec, "a")->threads;
	CU_ASSERT_TRUE(t->min == 4 && t->max == 4 && t->start == -1);
	t = &stage_of(spec, "b")->threads;
	CU_ASSERT_TRUE(t->min == -1 && t->max == -1);
	t = &stage_of(spec, "c")->threads;
	CU_ASSERT_TRUE(t->min == 2 && t->max == -1);
	t = &stage_of(spec, "d")->threads;
	CU_ASSERT_TRUE(t->min == 1 && t->max == -1 && !stage_of(spec, "d")->inlined);
	weir_spec_free(spec);
}

static void test_links(void)
{
	struct weir_spec *spec =
	    load_good(HEAD "  w: { use: t.work, to: { next: a, miss: { stage: w, loop: true } } }\n"
			   "  a: { use: t.work, to: { next: { stage: w } } }\n");
	const struct weir_stage_spec *w = stage_of(spec, "w"), *a = stage_of(spec, "a");

	CU_ASSERT_EQUAL(stage_of(spec, "web")->n_to, 1);
	CU_ASSERT_STRING_EQUAL(stage_of(spec, "web")->to[0].outlet, "");
	CU_ASSERT_STRING_EQUAL(stage_of(spec, "web")->to[0].stage, "w");
	CU_ASSERT_EQUAL_FATAL(w->n_to, 2);
	CU_ASSERT_STRING_EQUAL(w->to[0].outlet, "next");
	CU_ASSERT_FALSE(w->to[0].loop);
	/* The location covers both names, since either may be wrong. */
	CU_ASSERT_TRUE(w->to[0].mark.col == 27 && w->to[0].mark.len == 7);
	CU_ASSERT_STRING_EQUAL(w->to[1].stage, "w");
	CU_ASSERT_TRUE(w->to[1].loop);
	CU_ASSERT_TRUE(a->n_to == 1 && !a->to[0].loop);
	weir_spec_free(spec);
}

static void test_defaults(void)
{
	struct weir_spec *spec =
	    load_good(HEAD "  w: { use: t.work }\n"
			   "  a: { use: t.work, threads: { min: 2 }, slo: 3s }\n"
			   "  b: { use: t.work, threads: inline }\n"
			   "  c: { use: t.work, queue: { limit: 5 } }\n"
			   "defaults:\n"
			   "  threads: { min: 3, max: 9 }\n"
			   "  queue: { limit: 11 }\n"
			   "  cohort: { max: 5 }\n"
			   "  admission: { policy: threshold }\n"
			   "  slo: 1s\n");
	const struct weir_stage_spec *w = stage_of(spec, "w"), *web = stage_of(spec, "web");

	CU_ASSERT_TRUE(w->threads.min == 3 && w->threads.max == 9 && w->queue.limit == 11);
	CU_ASSERT_TRUE(w->cohort.max == 5 && w->slo_ns == 1000000000);
	CU_ASSERT_STRING_EQUAL(w->admission.policy, "threshold");
	CU_ASSERT_TRUE(stage_of(spec, "a")->threads.min == 2);
	CU_ASSERT_TRUE(stage_of(spec, "a")->threads.max == 9);
	CU_ASSERT_TRUE(stage_of(spec, "a")->slo_ns == 3000000000);
	CU_ASSERT_TRUE(stage_of(spec, "b")->inlined);
	CU_ASSERT_TRUE(stage_of(spec, "c")->queue.limit == 5);
	/* The defaults of queues and pools do not apply to a source, which has neither. */
	CU_ASSERT_TRUE(web->queue.limit == 4096 && web->threads.min == 1);
	weir_spec_free(spec);
}

static void test_defaults_inline(void)
{
	struct weir_spec *spec = load_good(HEAD "  w: { use: t.work }\n"
						"  a: { use: t.work, threads: { max: 2 } }\n"
						"defaults: { threads: inline }\n");

	CU_ASSERT_TRUE(stage_of(spec, "w")->inlined);
	CU_ASSERT_FALSE(stage_of(spec, "a")->inlined);
	CU_ASSERT_FALSE(stage_of(spec, "web")->inlined);
	weir_spec_free(spec);
}

static void test_classes(void)
{
	struct weir_spec *spec = load_good(
	    "weir: 1\nstages: {}\nclasses:\n"
	    "  vip: { match: { path: /vip/*, header.x-plan: gold, method: GET }, slo: 10ms }\n"
	    "  rest: {}\n");

	CU_ASSERT_EQUAL_FATAL(spec->n_classes, 2);
	const struct weir_class_spec *vip = &spec->classes[0];
	CU_ASSERT_STRING_EQUAL(vip->name, "vip");
	CU_ASSERT_EQUAL_FATAL(vip->n_match, 3);
	CU_ASSERT_STRING_EQUAL(vip->match[1].field, "header.x-plan");
	CU_ASSERT_STRING_EQUAL(vip->match[1].pattern, "gold");
	CU_ASSERT_EQUAL(vip->slo_ns, 10000000);
	CU_ASSERT_TRUE(vip->mark.line == 4 && vip->mark.col == 3);
	CU_ASSERT_TRUE(spec->classes[1].n_match == 0 && spec->classes[1].slo_ns == 500000000);
	weir_spec_free(spec);
}

static void test_groups(void)
{
	struct weir_spec *spec = load_good("weir: 1\nstages: {}\ngroups:\n"
					   "  a: { threads: 2, schedule: shared }\n"
					   "  b: { threads: { min: 1, max: 3, pin: true } }\n"
					   "  c: {}\n");

	CU_ASSERT_EQUAL_FATAL(spec->n_groups, 3);
	CU_ASSERT_TRUE(spec->groups[0].threads.min == 2 && spec->groups[0].threads.max == 2);
	CU_ASSERT_STRING_EQUAL(spec->groups[0].schedule, "shared");
	CU_ASSERT_TRUE(spec->groups[1].threads.max == 3 && spec->groups[1].threads.pinned);
	CU_ASSERT_TRUE(spec->groups[2].threads.min == 1 && spec->groups[2].threads.max == -1);
	weir_spec_free(spec);
}

/* The `with:` of an unknown type is kept unchecked; a graph may reject it later. */
static void test_unknown_type(void)
{
	struct weir_spec *spec =
	    load_good("weir: 1\nstages: { w: { use: no.such, with: { any: [thing] } } }\n");

	CU_ASSERT_EQUAL(weir_node_get(spec->stages[0].with, "any")->kind, WEIR_NODE_LIST);
	weir_spec_free(spec);
}

/* The spec owns its data: trees and texts live until it is freed, and marks point into them. */
static void test_ownership(void)
{
	char *text = strdup("weir: 1\nstages: { w: { use: t.work, with: { root: here } } }\n");
	struct weir_spec *spec = load_good(text);

	memset(text, 'x', strlen(text));
	free(text);
	CU_ASSERT_STRING_EQUAL(spec->stages[0].mark.file, "t.yaml");
	CU_ASSERT_STRING_EQUAL(weir_node_get(spec->stages[0].with, "root")->mark.excerpt,
	    "stages: { w: { use: t.work, with: { root: here } } }");
	weir_spec_free(spec);
}

static void test_shares(void)
{
	struct weir_spec *spec = load_good("weir: 1\nstages: {}\noverload: { mode: off }\n"
					   "classes:\n"
					   "  a: { priority: 3, guarantee: 12.5% }\n"
					   "  b: { slo: 1s, priority: auto, guarantee: auto }\n"
					   "  c: {}\n");

	CU_ASSERT_EQUAL(spec->overload_mode, WEIR_ADMISSION_OFF);
	const struct weir_class_spec *c = spec->classes;
	CU_ASSERT_TRUE(c[0].priority == 3 && c[0].guarantee == 0.125);
	CU_ASSERT_TRUE(c[1].priority == -1 && c[1].guarantee == -1);
	CU_ASSERT_TRUE(c[2].priority == -1 && c[2].guarantee == -1);
	CU_ASSERT_TRUE(c[0].priority_mark.line == 5 && c[0].guarantee_mark.line == 5);
	CU_ASSERT_TRUE(c[1].slo_mark.line == 6 && c[1].slo_mark.col == 13);
	CU_ASSERT_TRUE(!c[2].slo_mark.file && !c[2].priority_mark.file);
	weir_spec_free(spec);
	spec = load_good("weir: 1\nstages: {}\n");
	CU_ASSERT_EQUAL(spec->overload_mode, WEIR_ADMISSION_ENFORCE);
	weir_spec_free(spec);
}

/* Each stage that is not a map is reported. */
static void test_stages_that_are_no_maps(void)
{
	CU_ASSERT_STRING_EQUAL(
	    load_bad("weir: 1\nstages:\n  a: 1\n  b: [x]\n  c: { use: t.sink }\n"),
	    "stage 'a' must be a map, not a single value");
	CU_ASSERT_EQUAL(loading_errs.n, 2);
}

/* A mistake in a key of a stage does not hide those in later keys and stages. */
static void test_mistakes_side_by_side(void)
{
	static const int lines[] = {3, 3, 4, 4, 4, 5, 5, 6, 6, 7, 7};

	load_bad("weir: 1\nstages:\n"
		 "  a: { use: t.work, to: [x], queue: 1 }\n"
		 "  b: { use: t.work, to: { next: [y], miss: {} }, queue: 2 }\n"
		 "  c: { use: t.work, to: '', queue: 3 }\n"
		 "  d: { use: [t], queue: 4 }\n"
		 "  e: { use: t.work, threads: [], queue: 5 }\n");
	CU_ASSERT_EQUAL_FATAL(loading_errs.n, 11);
	for (int i = 0; i < loading_errs.n; i++)
		CU_ASSERT_EQUAL(loading_errs.err[i].line, lines[i]);
}

static void test_alerts(void)
{
	struct weir_spec *spec = load_good(
	    "weir: 1\n"
	    "alerts:\n"
	    "  top_class_shed:     { above: 5, for: 30s, stages: { b: { enabled: false } } }\n"
	    "  bottleneck_chronic: { stages: { a: { for: 5m } }, for: 2m, linger: 1s }\n"
	    "  history_file:       { enabled: false }\n"
	    "  slo_burn:           { objective: 99.9% }\n"
	    "  source_refuses:     { above: 3, stages: { a: { enabled: false } } }\n"
	    "stages: { a: { use: t.work }, b: { use: t.work } }\n");
	const struct weir_alerts_spec *a = &spec->alerts;
	const struct weir_alert_rule *shed = &a->rule[WEIR_ALERT_TOP_CLASS_SHED];
	const enum weir_alert_kind chronic = WEIR_ALERT_BOTTLENECK_CHRONIC;

	CU_ASSERT_TRUE(shed->above_per_s == 5 && shed->for_ns == 30 * NS_PER_S && shed->enabled);
	CU_ASSERT_EQUAL(shed->linger_ns, 10 * NS_PER_S); /* the built-in default */
	CU_ASSERT_TRUE(weir_alert_rule(a, WEIR_ALERT_TOP_CLASS_SHED, "a")->enabled);
	CU_ASSERT_FALSE(weir_alert_rule(a, WEIR_ALERT_TOP_CLASS_SHED, "b")->enabled);
	CU_ASSERT_DOUBLE_EQUAL(a->rule[WEIR_ALERT_SLO_BURN].objective, 0.999, 1e-9);
	CU_ASSERT_EQUAL(a->rule[WEIR_ALERT_SOURCE_REFUSES].above_per_s, 3);
	CU_ASSERT_EQUAL(a->rule[WEIR_ALERT_SOURCE_REFUSES].for_ns, 10 * NS_PER_S);
	CU_ASSERT_FALSE(weir_alert_rule(a, WEIR_ALERT_SOURCE_REFUSES, "a")->enabled);
	CU_ASSERT_EQUAL(weir_alert_rule(a, chronic, "a")->for_ns, 300 * NS_PER_S);
	CU_ASSERT_EQUAL(weir_alert_rule(a, chronic, "a")->linger_ns, NS_PER_S);
	CU_ASSERT_EQUAL(weir_alert_rule(a, chronic, "b")->for_ns, 120 * NS_PER_S);
	CU_ASSERT_FALSE(a->rule[WEIR_ALERT_HISTORY_FILE].enabled);
	CU_ASSERT_TRUE(a->rule[WEIR_ALERT_STAGE_STUCK].enabled);
	char *values = config_values_text(spec);
	CU_ASSERT_PTR_NOT_NULL(strstr(values, "\nalerts.top_class_shed.above 5\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(values, "\nalerts.bottleneck_chronic.stages.a.for 5m\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(values, "\nalerts.top_class_shed.stages.b.enabled false\n"));
	CU_ASSERT_PTR_NULL(strstr(values, "alerts.top_class_shed.stages.b.for"));
	free(values);
	weir_spec_free(spec);
}

CUNIT_MAIN("sections", {"server", test_server}, {"stage", test_stage}, {"threads", test_threads},
    {"links", test_links}, {"defaults", test_defaults}, {"defaults inline", test_defaults_inline},
    {"classes", test_classes}, {"groups", test_groups}, {"unknown type", test_unknown_type},
    {"ownership", test_ownership}, {"shares", test_shares}, {"alerts", test_alerts},
    {"mistakes side by side", test_mistakes_side_by_side},
    {"stages that are no maps", test_stages_that_are_no_maps})
