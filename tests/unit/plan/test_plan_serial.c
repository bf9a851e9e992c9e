/* SPDX-License-Identifier: MIT */
/* What weir_spec_check refuses of serial keys. */
#include "fixture/graph/probes.h"
#include "plan_types.h"

#include "event/local.h"
#include "plan/plan.h"

static struct weir_errs errs;

/* The check fails with one error, which contains `text`, and says how to mend it. */
static void refuses(struct weir_spec *spec, const char *text)
{
	memset(&errs, 0, sizeof(errs));
	CU_ASSERT_NOT_EQUAL(weir_spec_check(spec, &errs), 0);
	CU_ASSERT_EQUAL(errs.total, 1);
	CU_ASSERT_TRUE(errs.n > 0 && strstr(errs.err[0].text, text) && errs.err[0].hint[0]);
	for (int i = 0; i < errs.n; i++)
		if (errs.total != 1 || !strstr(errs.err[i].text, text))
			fprintf(stderr, "  said: %s\n", errs.err[i].text);
	weir_spec_free(spec);
}

static void accepts(struct weir_spec *spec)
{
	memset(&errs, 0, sizeof(errs));
	CU_ASSERT_EQUAL(weir_spec_check(spec, &errs), 0);
	for (int i = 0; i < errs.n; i++)
		fprintf(stderr, "  said: %s\n", errs.err[i].text);
	weir_spec_free(spec);
}

/* A source, and the stages a and b in a group with this serial key. */
static struct weir_spec *chain(const char *serial)
{
	struct weir_spec *spec = weir_spec_new("plan");
	struct weir_group_spec *g = weir_spec_add_group(spec, "core");

	weir_spec_text(&g->schedule, "fifo");
	weir_spec_text(&g->serial, serial);
	fixture_stage(spec, "src", "t.source", "a");
	weir_spec_text(&fixture_stage(spec, "a", "t.pass", "b")->group, "core");
	weir_spec_text(&fixture_stage(spec, "b", "t.end", NULL)->group, "core");
	return spec;
}

static struct weir_spec *with_b(const char *serial, const char *own)
{
	struct weir_spec *spec = chain(serial);

	weir_spec_text(&spec->stages[2].serial, own);
	return spec;
}

static void test_types(void)
{
	fixture_register(&plan_source_ops);
	fixture_register(&plan_single_ops);
	fixture_register(&pass_ops);
	fixture_register(&end_ops);
}

static void test_fields(void)
{
	static const char *const good[] = {"", "producer", "event", "class"};

	for (int i = 0; i < 4; i++)
		accepts(chain(good[i]));
	accepts(with_b("producer", "none"));
	accepts(with_b("producer", "class"));
	accepts(with_b("", "producer"));
	refuses(with_b("", "user"),
	    "stage 'b': events of type probe have no field 'user' for 'serial'");
	refuses(with_b("producer", "user"), "have no field 'user'");
}

/* The keys of the stages. */
static void test_keys(void)
{
	struct weir_spec *spec = with_b("class", "none");
	struct plan plan;

	memset(&errs, 0, sizeof(errs));
	CU_ASSERT_EQUAL_FATAL(plan_make(spec, &plan, &errs), 0);
	CU_ASSERT_TRUE(plan.stages[1].serial && plan.stages[1].key.kind == KEY_CLASS);
	CU_ASSERT_TRUE(!plan.stages[2].serial && plan.stages[2].key.kind == KEY_NONE);
	CU_ASSERT_FALSE(plan.stages[0].serial);
	plan_free(&plan);
	weir_spec_free(spec);
}

static void test_outside(void)
{
	struct weir_spec *spec = chain("producer");

	weir_spec_text(&spec->groups[0].schedule, "shared");
	refuses(spec, "group 'core': 'serial' needs a schedule per core, not 'shared'");
	spec = with_b("", "producer");
	weir_spec_text(&spec->stages[2].group, "");
	refuses(spec, "stage 'b': 'serial' needs a group with a schedule per core");
}

static void test_against(void)
{
	struct weir_spec *spec = chain("producer");

	spec->stages[2].mode = WEIR_MODE_PARTITIONED;
	weir_spec_text(&spec->stages[2].key, "producer");
	refuses(spec, "stage 'b' has both the serial key 'producer' and 'mode: partitioned'");
	spec = with_b("producer", "none");
	spec->stages[2].mode = WEIR_MODE_EXCLUSIVE;
	accepts(spec);
	spec = chain("producer");
	spec->stages[1].mode = WEIR_MODE_EXCLUSIVE;
	refuses(spec, "stage 'a' has both the serial key 'producer' and 'mode: exclusive'");
	spec = chain("producer");
	weir_spec_text(&spec->stages[2].use, "t.single");
	refuses(spec, "one thread at a time");
	spec = chain("producer");
	weir_spec_text(&spec->stages[1].cohort.by, "producer");
	refuses(spec, "'cohort.by'");
	spec = chain("producer");
	fixture_set(&spec->stages[1], "queue.discipline", "priority");
	refuses(spec, "'discipline'");
	spec = chain("producer");
	fixture_set(&spec->stages[1], "queue.discipline", "fifo");
	accepts(spec);
	spec = with_b("", "producer");
	spec->groups[0].order = WEIR_ORDER_NEWEST;
	refuses(spec, "'order: newest'");
}

CUNIT_MAIN("plans with serial keys", {"types", test_types}, {"fields", test_fields},
    {"keys", test_keys}, {"outside", test_outside}, {"excluded", test_against})
