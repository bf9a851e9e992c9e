/* SPDX-License-Identifier: MIT */
/* Specs built by hand: defaults, growth, setting by path, ownership (under ASan). */
#include <weir/spec.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cunit_main.h"

static void test_defaults(void)
{
	struct weir_spec *spec = weir_spec_new("shop");

	CU_ASSERT_PTR_NOT_NULL_FATAL(spec);
	CU_ASSERT_STRING_EQUAL(spec->name, "shop");
	CU_ASSERT_STRING_EQUAL(spec->admin.listen, "");
	CU_ASSERT_EQUAL(spec->grace_ns, 10000000000);
	struct weir_stage_spec *s = weir_spec_add_stage(spec, "w", "echo");
	CU_ASSERT_PTR_NOT_NULL_FATAL(s);
	CU_ASSERT_TRUE(s->threads.min == 1 && s->threads.max == -1 && s->threads.start == -1);
	CU_ASSERT_TRUE(s->threads.spin_ns == -1 && !s->threads.pinned && !s->inlined);
	CU_ASSERT_STRING_EQUAL(s->threads.policy, "weir");
	CU_ASSERT_EQUAL(s->queue.limit, 4096);
	CU_ASSERT_TRUE(s->cohort.max == 64 && s->cohort.linger_ns == 0);
	CU_ASSERT_STRING_EQUAL(s->cohort.by, "");
	CU_ASSERT_STRING_EQUAL(s->admission.policy, "auto");
	CU_ASSERT_STRING_EQUAL(weir_spec_admission(s, true), "weir");
	CU_ASSERT_STRING_EQUAL(weir_spec_admission(s, false), "none");
	CU_ASSERT_EQUAL(s->admission.mode, WEIR_ADMISSION_ENFORCE);
	CU_ASSERT_TRUE(s->admission.threshold == -1 && s->admission.rate == 0);
	CU_ASSERT_TRUE(s->mode == WEIR_MODE_SHARED && s->slo_ns == -1);
	CU_ASSERT_EQUAL(weir_spec_slo_ns(spec, s), 500000000);
	CU_ASSERT_TRUE(s->key[0] == '\0' && s->group[0] == '\0' && s->with == NULL);
	struct weir_group_spec *g = weir_spec_add_group(spec, "g");
	CU_ASSERT_TRUE(g && g->threads.min == 1 && strcmp(g->schedule, "shared") == 0);
	struct weir_class_spec *c = weir_spec_add_class(spec, "c");
	CU_ASSERT_TRUE(c && c->slo_ns == 500000000 && c->n_match == 0);
	c->slo_ns = 700000000;
	CU_ASSERT_EQUAL(weir_spec_slo_ns(spec, s), 700000000); /* the shortest of the classes */
	c = weir_spec_add_class(spec, "d");
	CU_ASSERT_PTR_NOT_NULL_FATAL(c);
	CU_ASSERT_EQUAL(weir_spec_slo_ns(spec, s), 500000000);
	s->slo_ns = 40;
	CU_ASSERT_EQUAL(weir_spec_slo_ns(spec, s), 40);
	CU_ASSERT_STRING_EQUAL(weir_spec_admission(s, true), "weir");
	CU_ASSERT_EQUAL(weir_spec_text(&s->admission.policy, "rate"), 0);
	CU_ASSERT_STRING_EQUAL(weir_spec_admission(s, false), "rate");
	weir_spec_free(spec);
	weir_spec_free(NULL);
}

static void test_growth(void)
{
	struct weir_spec *spec = weir_spec_new("shop");
	char name[16];

	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "s%d", i);
		struct weir_stage_spec *s = weir_spec_add_stage(spec, name, "echo");
		CU_ASSERT_EQUAL(weir_spec_link(s, "next", "s0", i == 7), 0);
		CU_ASSERT_EQUAL(weir_spec_link(s, "", "s1", false), 0);
	}
	CU_ASSERT_EQUAL(spec->n_stages, 100);
	CU_ASSERT_STRING_EQUAL(spec->stages[42].name, "s42");
	CU_ASSERT_EQUAL(spec->stages[42].n_to, 2);
	CU_ASSERT_STRING_EQUAL(spec->stages[42].to[0].stage, "s0");
	CU_ASSERT_STRING_EQUAL(spec->stages[42].to[1].outlet, "");
	CU_ASSERT_TRUE(spec->stages[7].to[0].loop && !spec->stages[8].to[0].loop);
	weir_spec_free(spec);
}

static struct weir_stage_spec *one_stage(struct weir_spec **spec)
{
	*spec = weir_spec_new("shop");
	return weir_spec_add_stage(*spec, "w", "echo");
}

static const char *set(struct weir_stage_spec *s, const char *path, const char *value)
{
	static char why[200];

	snprintf(why, sizeof(why), "?");
	int rc = weir_stage_spec_set(s, path, value, why, sizeof(why));
	return rc == 0 ? "" : why;
}

static void test_set_rows(void)
{
	struct weir_spec *spec;
	struct weir_stage_spec *s = one_stage(&spec);

	CU_ASSERT_STRING_EQUAL(set(s, "threads.max", "8"), "");
	CU_ASSERT_STRING_EQUAL(set(s, "queue.limit", "20k"), "");
	CU_ASSERT_STRING_EQUAL(set(s, "admission.policy", "rate"), "");
	CU_ASSERT_STRING_EQUAL(set(s, "mode", "exclusive"), "");
	CU_ASSERT_STRING_EQUAL(set(s, "slo", "1s"), "");
	CU_ASSERT_TRUE(s->threads.max == 8 && s->queue.limit == 20000 && s->slo_ns == 1000000000);
	CU_ASSERT_STRING_EQUAL(s->admission.policy, "rate");
	CU_ASSERT_EQUAL(s->mode, WEIR_MODE_EXCLUSIVE);
	CU_ASSERT_STRING_EQUAL(set(s, "queue.limit", "0"), "'0' is too small: at least 1");
	CU_ASSERT_STRING_EQUAL(
	    set(s, "queue.limt", "1"), "stage 'w' has no knob 'queue.limt': did you mean 'limit'?");
	CU_ASSERT_STRING_EQUAL(
	    set(s, "slo.x", "1"), "stage 'w' has no knob 'slo.x': did you mean 'slo'?");
	CU_ASSERT_STRING_EQUAL(set(s, "nothing", "1"), "stage 'w' has no knob 'nothing'");
	CU_ASSERT_STRING_EQUAL(set(s, "", "1"), "'' is not the path of a knob");
	CU_ASSERT_STRING_EQUAL(set(s, "queue.", "1"), "'queue.' is not the path of a knob");
	CU_ASSERT_STRING_EQUAL(set(s, ".queue", "1"), "'.queue' is not the path of a knob");
	CU_ASSERT_STRING_EQUAL(set(s, "queue", "1"), "'queue' takes a map, not a single string");
	CU_ASSERT_EQUAL(s->queue.limit, 20000);
	weir_spec_free(spec);
}

static void test_set_threads(void)
{
	struct weir_spec *spec;
	struct weir_stage_spec *s = one_stage(&spec);

	CU_ASSERT_STRING_EQUAL(set(s, "threads", "inline"), "");
	CU_ASSERT_TRUE(s->inlined);
	CU_ASSERT_STRING_EQUAL(set(s, "threads", "4"), "");
	CU_ASSERT_TRUE(!s->inlined && s->threads.min == 4 && s->threads.max == 4);
	CU_ASSERT_STRING_EQUAL(set(s, "threads", "many"),
	    "'many' is not a number of threads from 1 to 1024: write "
	    "such a number, 'inline', or a map");
	CU_ASSERT_EQUAL(s->threads.min, 4);
	set(s, "threads", "inline");
	CU_ASSERT_STRING_EQUAL(set(s, "threads.min", "x"), "'x' is not a whole number");
	CU_ASSERT_TRUE(s->inlined);
	CU_ASSERT_STRING_EQUAL(set(s, "threads.min", "2"), "");
	CU_ASSERT_FALSE(s->inlined);
	weir_spec_free(spec);
}

static void test_set_with(void)
{
	struct weir_spec *spec;
	struct weir_stage_spec *s = one_stage(&spec);

	CU_ASSERT_STRING_EQUAL(set(s, "with.body", "one"), "");
	CU_ASSERT_STRING_EQUAL(set(s, "with.body", ""), "");
	CU_ASSERT_STRING_EQUAL(set(s, "with.limit.rate", "5"), "");
	CU_ASSERT_STRING_EQUAL(set(s, "with.limit.burst", "6"), "");
	CU_ASSERT_EQUAL(s->with->n, 2);
	CU_ASSERT_STRING_EQUAL(weir_node_get(s->with, "body")->text, "");
	CU_ASSERT_TRUE(weir_node_get(s->with, "body")->quoted);
	const struct weir_node *limit = weir_node_get(s->with, "limit");
	CU_ASSERT_STRING_EQUAL(weir_node_get(limit, "burst")->text, "6");
	/* A map in place of a value, and vice versa. */
	CU_ASSERT_STRING_EQUAL(set(s, "with.body.x", "1"), "");
	CU_ASSERT_EQUAL(weir_node_get(s->with, "body")->kind, WEIR_NODE_MAP);
	CU_ASSERT_STRING_EQUAL(set(s, "with.limit", "7"), "");
	CU_ASSERT_STRING_EQUAL(weir_node_get(s->with, "limit")->text, "7");
	CU_ASSERT_STRING_EQUAL(set(s, "with.", "7"), "'with.' is not the path of a knob");
	weir_spec_free(spec);
}

/* The tables themselves: every row can be found and has help, and only scalars are live. */
static void check_rows(const struct weir_knob *table)
{
	for (const struct weir_knob *row = table; row->name; row++) {
		CU_ASSERT_PTR_EQUAL(weir_knob_find(table, row->name), row);
		CU_ASSERT_TRUE(
		    row->help && row->help[0] && row->help[strlen(row->help) - 1] != '.');
		CU_ASSERT_TRUE(row->type < WEIR_KNOB_STRINGS || !(row->flags & WEIR_KNOB_LIVE));
		if (row->type == WEIR_KNOB_MAP)
			check_rows(row->fields);
	}
}

static bool is_live(const struct weir_knob *table, const char *name)
{
	return weir_knob_find(table, name)->flags & WEIR_KNOB_LIVE;
}

static void test_tables(void)
{
	check_rows(weir_stage_knobs);
	check_rows(weir_group_knobs);
	CU_ASSERT_TRUE(is_live(weir_threads_knobs, "min") && is_live(weir_threads_knobs, "max"));
	CU_ASSERT_FALSE(
	    is_live(weir_threads_knobs, "pin") || is_live(weir_threads_knobs, "policy"));
	CU_ASSERT_TRUE(is_live(weir_queue_knobs, "limit"));
	CU_ASSERT_TRUE(is_live(weir_cohort_knobs, "max") && is_live(weir_cohort_knobs, "linger"));
	CU_ASSERT_FALSE(is_live(weir_cohort_knobs, "by"));
	CU_ASSERT_TRUE(
	    is_live(weir_admission_knobs, "mode") && is_live(weir_admission_knobs, "rate"));
	CU_ASSERT_FALSE(is_live(weir_admission_knobs, "policy"));
}

static void test_text(void)
{
	char *member = NULL;
	struct weir_spec *spec = weir_spec_new("a");

	CU_ASSERT_EQUAL(weir_spec_text(&member, "one"), 0);
	CU_ASSERT_EQUAL(weir_spec_text(&member, member), 0); /* a copy of itself */
	CU_ASSERT_STRING_EQUAL(member, "one");
	CU_ASSERT_EQUAL(weir_spec_text(&spec->name, "b"), 0);
	CU_ASSERT_STRING_EQUAL(spec->name, "b");
	weir_spec_free(spec);
	weir_spec_text(&member, "");
	CU_ASSERT_STRING_EQUAL(member, "");
	free(member);
}

/* Resolved priorities and guarantees as text, "0:0 1:0.02". */
static const char *shares(const struct weir_spec *spec)
{
	static char text[200];
	int priority[WEIR_CLASSES_MAX];
	double guarantee[WEIR_CLASSES_MAX];
	int n = 0;

	weir_spec_shares(spec, priority, guarantee);
	text[0] = '\0';
	for (int c = 0; c < spec->n_classes && c < WEIR_CLASSES_MAX; c++)
		n += snprintf(text + n, sizeof(text) - (size_t)n, "%s%d:%.4g", c ? " " : "",
		    priority[c], guarantee[c]);
	return text;
}

static void test_shares(void)
{
	struct weir_spec *spec = weir_spec_new("shop");
	struct weir_class_spec *c[4];

	CU_ASSERT_STRING_EQUAL(shares(spec), "");
	for (int i = 0; i < 4; i++)
		weir_spec_add_class(spec, "c");
	for (int i = 0; i < 4; i++)
		c[i] = &spec->classes[i];
	CU_ASSERT_TRUE(c[3]->priority == -1 && c[3]->guarantee == -1);
	CU_ASSERT_STRING_EQUAL(shares(spec), "0:0 1:0.02 2:0.02 3:0.02");
	c[1]->priority = 0; /* as high as the first: no guarantee either */
	CU_ASSERT_STRING_EQUAL(shares(spec), "0:0 0:0 1:0.02 2:0.02");
	c[0]->priority = 2;
	c[1]->priority = 5;
	c[2]->priority = 5;
	CU_ASSERT_STRING_EQUAL(shares(spec), "2:0 5:0.02 5:0.02 6:0.02");
	c[0]->guarantee = 0.1;
	c[1]->guarantee = 0;
	CU_ASSERT_STRING_EQUAL(shares(spec), "2:0.1 5:0 5:0.02 6:0.02");
	for (int i = 0; i < 10; i++)
		weir_spec_add_class(spec, "more");
	CU_ASSERT_STRING_EQUAL(
	    shares(spec), "2:0.1 5:0 5:0.02 6:0.02 7:0.02 8:0.02 9:0.02 10:0.02");
	weir_spec_free(spec);
}

/* A copy of the alerts owns its rules for single stages. */
static void test_alerts_copy(void)
{
	char name[] = "a";
	struct weir_alert_stage_spec one = {.stage = name};
	struct weir_alerts_spec from = {.stages = &one, .n_stages = 1}, to;

	CU_ASSERT_EQUAL_FATAL(weir_alerts_copy(&from, &to), 0);
	CU_ASSERT_EQUAL(to.n_stages, 1);
	CU_ASSERT_PTR_NOT_EQUAL_FATAL(to.stages, from.stages);
	CU_ASSERT_PTR_NOT_EQUAL(to.stages[0].stage, one.stage);
	CU_ASSERT_STRING_EQUAL(to.stages[0].stage, "a");
	weir_alerts_free(&to);
	CU_ASSERT_PTR_NULL(to.stages);
}

CUNIT_MAIN("spec", {"defaults", test_defaults}, {"growth", test_growth},
    {"set rows", test_set_rows}, {"set threads", test_set_threads}, {"set with", test_set_with},
    {"tables", test_tables}, {"text", test_text}, {"shares", test_shares},
    {"alerts copy", test_alerts_copy})
