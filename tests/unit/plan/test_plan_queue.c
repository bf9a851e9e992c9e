/* SPDX-License-Identifier: MIT */
/* Checks of `queue:` with discipline `shortest`. */
#include "fixture/graph/graph.h"

#include "cunit_main.h"

static struct weir_slice get(const struct weir_event *ev, const char *arg)
{
	(void)ev;
	(void)arg;
	return (struct weir_slice){NULL, 0};
}

static const struct weir_field fields[] = {
    {"size", get, ""}, {"header.", get, ""}, {"path", get, ""}, {.name = NULL}};

/* A path begins with a slash. */
static bool may_match(const struct weir_field *field, const char *pattern, size_t n, bool prefix,
    char *hint, size_t size)
{
	(void)n;
	(void)prefix;
	snprintf(hint, size, "write a path");
	return strcmp(field->name, "path") != 0 || pattern[0] == '/';
}

static const struct weir_event_type mail_type = {
    .name = "mail", .size = sizeof(struct weir_event), .fields = fields, .may_match = may_match};

static void handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	weir_event_finish_run(ev, n, WEIR_OK);
}

static const struct weir_stage_ops mail_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.mail",
    .summary = "x",
    .accepts = &mail_type,
    .handle = handle};

static struct weir_spec *one(const char *use, const char *discipline, const char *by)
{
	struct weir_spec *spec = weir_spec_new("queue");
	struct weir_stage_spec *s = fixture_stage(spec, "a", use, NULL);

	fixture_set(s, "queue.discipline", discipline);
	fixture_set(s, "queue.by", by);
	return spec;
}

static void check(struct weir_spec *spec, const char *want)
{
	struct weir_errs *errs = calloc(1, sizeof(*errs));
	bool found = want == NULL && weir_spec_check(spec, errs) == 0;

	if (want)
		CU_ASSERT_NOT_EQUAL(weir_spec_check(spec, errs), 0);
	for (int i = 0; want && i < errs->n; i++)
		found |= strstr(errs->err[i].text, want) != NULL;
	CU_ASSERT_TRUE(found);
	if (!found)
		fprintf(stderr, "%s: %s\n", want ? want : "fine", errs->n ? errs->err[0].text : "");
	weir_spec_free(spec);
	free(errs);
}

static void test_by(void)
{
	check(one("t.mail", "shortest", "size"), NULL);
	check(one("t.mail", "shortest", "header.x-size"), NULL);
	check(one("t.mail", "shortest", "weight"), "no such field");
	check(one("t.mail", "shortest", "path"), "never a number");
	check(one("t.mail", "shortest", ""), "do not say how much work");
	check(one("t.end", "shortest", ""), NULL); /* probes have a hint */
}

static void test_other_disciplines(void)
{
	check(one("t.mail", "fifo", ""), NULL);
	check(one("t.mail", "fifo", "size"), "'by' of 'queue' is for");
	struct weir_spec *spec = one("t.mail", "auto", "");
	fixture_set(&spec->stages[0], "queue.starve", "0");
	check(spec, "'starve' of 'queue' is for");
}

static void test_starve(void)
{
	struct weir_spec *spec = one("t.mail", "shortest", "size");

	fixture_set(&spec->stages[0], "slo", "20ms");
	fixture_set(&spec->stages[0], "queue.starve", "20ms");
	check(spec, NULL);
	spec = one("t.mail", "shortest", "size");
	fixture_set(&spec->stages[0], "slo", "20ms");
	fixture_set(&spec->stages[0], "queue.starve", "21ms");
	check(spec, "act too late");
}

static struct weir_spec *in_cores(void)
{
	struct weir_spec *spec = one("t.mail", "shortest", "size");
	struct weir_group_spec *g = weir_spec_add_group(spec, "g");

	weir_spec_text(&g->schedule, "fifo");
	weir_spec_text(&g->cores, "1");
	weir_spec_text(&spec->stages[0].group, "g");
	return spec;
}

static void test_places(void)
{
	struct weir_spec *spec = in_cores();

	check(spec, NULL);
	spec = in_cores();
	spec->groups[0].order = WEIR_ORDER_NEWEST;
	check(spec, "contradicts 'order: newest'");
	spec = in_cores();
	spec->stages[0].local = WEIR_LOCAL_ALWAYS;
	check(spec, "'local: always' means nothing");
	spec = one("t.mail", "shortest", "size");
	spec->stages[0].inlined = true;
	check(spec, "has no queue");
	spec = one("t.mail", "shortest", "size");
	spec->stages[0].mode = WEIR_MODE_PARTITIONED;
	weir_spec_text(&spec->stages[0].key, "event");
	check(spec, NULL);
}

static void test_types(void)
{
	fixture_register(&mail_ops);
	fixture_register(&end_ops);
}

CUNIT_MAIN("plan queue", {"types are known", test_types}, {"by", test_by},
    {"other disciplines", test_other_disciplines}, {"starve", test_starve}, {"places", test_places})
