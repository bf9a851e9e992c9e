/* SPDX-License-Identifier: MIT */
/* What stages need and give, on every way from the sources; and fields of payloads. */
#include "payload_ways.h"

static void test_given(void)
{
	struct weir_spec *spec = ways_web("t.plain", "decode");

	ways_stage(spec, "decode", "t.decode", "scale");
	ways_stage(spec, "scale", "t.scale", "again");
	ways_stage(spec, "again", "t.scale", NULL);
	ways_check(spec, NULL);
}

static void test_missing(void)
{
	struct weir_spec *spec = ways_web("t.plain", "scale");

	ways_stage(spec, "scale", "t.scale", NULL);
	ways_check(spec, "'scale' needs image; on the way web > scale no stage gives it");
	CU_ASSERT_STRING_EQUAL(ways_errs.err[0].hint,
	    "put a stage before it that gives it: t.bare, t.decode, t.five, t.imager");
	CU_ASSERT_EQUAL(ways_errs.total, 1);
}

/* An outlet on which the stage gives nothing. */
static void test_outlet(void)
{
	struct weir_spec *spec = ways_web("t.plain", "decode");
	struct weir_stage_spec *decode = ways_stage(spec, "decode", "t.decode", "scale");

	weir_spec_link(decode, "bad", "rest", false);
	ways_stage(spec, "scale", "t.scale", NULL);
	ways_stage(spec, "rest", "t.scale", NULL);
	ways_check(spec, "'rest' needs image; on the way web > decode > rest no stage gives it");
	CU_ASSERT_EQUAL(ways_errs.total, 1);
}

static void test_diamond(void)
{
	for (int both = 0; both < 2; both++) {
		struct weir_spec *spec = ways_web("t.plain", "route");
		struct weir_stage_spec *route = weir_spec_add_stage(spec, "route", "t.route");
		weir_spec_link(route, "a", "left", false);
		weir_spec_link(route, "b", "right", false);
		ways_stage(spec, "left", "t.decode", "scale");
		ways_stage(spec, "right", both ? "t.decode" : "t.final-pass", "scale");
		ways_stage(spec, "scale", "t.scale", NULL);
		ways_check(
		    spec, both ? NULL
			       : "'scale' needs image; on the way web > route > right > scale no "
				 "stage gives it");
	}
}

static void test_taken(void)
{
	struct weir_spec *spec = ways_web("t.plain", "decode");

	ways_stage(spec, "decode", "t.decode", "store");
	ways_stage(spec, "store", "t.store", "scale");
	ways_stage(spec, "scale", "t.scale", NULL);
	ways_check(
	    spec, "'scale' needs image; on the way web > decode > store > scale 'store' takes it");
}

/* The stage that took it last is named. */
static void test_taken_twice(void)
{
	struct weir_spec *spec = ways_web("t.plain", "decode");

	ways_stage(spec, "decode", "t.decode", "store");
	ways_stage(spec, "store", "t.store", "decode2");
	ways_stage(spec, "decode2", "t.decode", "store2");
	ways_stage(spec, "store2", "t.store", "scale");
	ways_stage(spec, "scale", "t.scale", NULL);
	ways_check(spec, "decode2 > store2 > scale 'store2' takes it");
}

/* A loop to the first stage, on which nothing changes. */
static void test_round(void)
{
	struct weir_spec *spec = ways_web("t.plain", "route");
	struct weir_stage_spec *route = weir_spec_add_stage(spec, "route", "t.route");

	weir_spec_link(route, "a", "route", true);
	weir_spec_link(route, "b", "scale", false);
	ways_stage(spec, "scale", "t.scale", NULL);
	ways_check(spec, "'scale' needs image; on the way web > route > scale no stage gives it");
}

/* A source that sends any type has no payload to keep. A type is suggested once. */
static void test_any_source(void)
{
	struct weir_spec *spec = ways_web("t.any-source", "reads");

	ways_stage(spec, "reads", "t.reads", NULL);
	ways_check(spec, "'reads' needs note; on the way web > reads no stage gives it");
	const char *once = strstr(ways_errs.err[0].hint, "t.notes");
	CU_ASSERT(once && !strstr(once + 1, "t.notes"));
}

/* On the second round the image is gone. */
static void test_loop(void)
{
	struct weir_spec *spec = ways_web("t.plain", "decode");
	struct weir_stage_spec *store;

	ways_stage(spec, "decode", "t.decode", "scale");
	ways_stage(spec, "scale", "t.scale", "store");
	store = weir_spec_add_stage(spec, "store", "t.store");
	weir_spec_link(store, "out", "scale", true);
	ways_check(spec, "on the way web > decode > scale > store > scale 'store' takes it");

	spec = ways_web("t.plain", "decode");
	ways_stage(spec, "decode", "t.decode", "scale");
	ways_stage(spec, "scale", "t.scale", "store");
	store = weir_spec_add_stage(spec, "store", "t.store");
	weir_spec_link(store, "out", "decode", true);
	ways_check(spec, NULL);
}

/* Each source begins a way. */
static void test_sources(void)
{
	struct weir_spec *spec = ways_web("t.plain", "decode");

	ways_stage(spec, "decode", "t.decode", "scale");
	ways_stage(spec, "direct", "t.plain", "scale");
	ways_stage(spec, "scale", "t.scale", NULL);
	ways_check(spec, "on the way direct > scale no stage gives it");
}

/* A program that offers events itself may put payloads on them. */
static void test_no_source(void)
{
	struct weir_spec *spec = weir_spec_new("payloads");

	ways_stage(spec, "scale", "t.scale", NULL);
	ways_check(spec, NULL);
}

/* An event of another type is a new one. */
static void test_new_events(void)
{
	struct weir_spec *spec = ways_web("t.lader", "split");

	ways_stage(spec, "split", "t.split", "reads");
	ways_stage(spec, "reads", "t.reads", NULL);
	ways_check(
	    spec, "'reads' needs note; on the way web > split > reads 'split' sends another event");

	spec = ways_web("t.lader", "split");
	struct weir_stage_spec *split = weir_spec_add_stage(spec, "split", "t.split");
	weir_spec_link(split, "whole", "reads", false);
	ways_stage(spec, "reads", "t.reads", NULL);
	ways_check(spec, NULL);
}

/* A child is a new event, too, even if it has the type of its parent. */
static void test_children(void)
{
	struct weir_spec *spec = ways_web("t.twig-source", "tree");
	struct weir_stage_spec *tree = weir_spec_add_stage(spec, "tree", "t.tree");

	weir_spec_link(tree, "twig", "reads", false);
	ways_stage(spec, "reads", "t.reads", NULL);
	ways_check(
	    spec, "'reads' needs note; on the way web > tree > reads 'tree' sends another event");

	spec = ways_web("t.twig-source", "tree");
	tree = weir_spec_add_stage(spec, "tree", "t.tree");
	weir_spec_link(tree, "out", "reads", false);
	ways_stage(spec, "reads", "t.reads", NULL);
	ways_check(spec, NULL);
}

static void test_long_way(void)
{
	char name[8][WEIR_NAME_MAX + 1];
	struct weir_spec *spec = ways_web("t.plain", "stage0-of-a-name-that-is-long-enough");

	for (int i = 0; i < 8; i++)
		snprintf(name[i], sizeof(name[i]), "stage%d-of-a-name-that-is-long-enough", i);
	for (int i = 0; i < 7; i++)
		ways_stage(spec, name[i], "t.final-pass", name[i + 1]);
	ways_stage(spec, name[7], "t.scale", NULL);
	ways_check(spec, "on the way web > ... > stage5-of-a-name-that-is-long-enough > "
			 "stage6-of-a-name-that-is-long-enough > "
			 "stage7-of-a-name-that-is-long-enough no stage gives it");
	for (int length = 2; length < 55; length++) { /* the last name is never cut */
		char want[120];
		spec = ways_web("t.plain", "a");
		snprintf(want, sizeof(want), " > z%0*d no stage gives it", length, 0);
		for (int i = 0; i < 4; i++)
			snprintf(
			    name[i], sizeof(name[i]), "%c%0*d", i < 3 ? 'b' + i : 'z', length, 0);
		ways_stage(spec, "a", "t.final-pass", name[0]);
		for (int i = 0; i < 4; i++)
			ways_stage(spec, name[i], i < 3 ? "t.final-pass" : "t.scale",
			    i < 3 ? name[i + 1] : NULL);
		ways_check(spec, want);
	}
}

static void test_tables(void)
{
	struct weir_spec *spec = ways_web("t.plain", "bare");

	ways_stage(spec, "bare", "t.bare", "end");
	ways_stage(spec, "end", "t.end", NULL);
	ways_check(spec, "'bare' gives image, but events of type probe have no payloads");
}

/* t.notes gives a note on one outlet, t.sides on all. Links to events without a table are refused only
 * where a note is given. */
static void test_some_outlets(void)
{
	for (int all = 0; all < 2; all++)
		for (int linked = 0; linked < 2; linked++) {
			struct weir_spec *spec = ways_web("t.plain", "notes");
			struct weir_stage_spec *notes =
			    weir_spec_add_stage(spec, "notes", all ? "t.sides" : "t.notes");
			weir_spec_link(notes, "one", "reads", false);
			if (linked)
				weir_spec_link(notes, "bare", "end", false);
			ways_stage(spec, "reads", "t.reads", NULL);
			if (linked)
				ways_stage(spec, "end", "t.end", NULL);
			ways_check(spec, all && linked
					     ? "'notes' gives note, but events of type probe "
					       "have no payloads"
					     : NULL);
		}
}

static void test_same_name(void)
{
	struct weir_spec *spec = ways_web("t.plain", "decode");

	ways_stage(spec, "decode", "t.decode", "other");
	ways_stage(spec, "other", "t.other-scale", NULL);
	ways_check(spec, "stage 'other' (t.other-scale) uses another payload type called 'image'");

	spec = ways_web("t.plain", "decode");
	ways_stage(spec, "decode", "t.decode", "other");
	ways_stage(spec, "other", "t.other-gives", "end");
	ways_stage(spec, "end", "t.final", NULL);
	ways_check(spec, "stage 'other' (t.other-gives) uses another payload type called 'image'");
}

/* Children are new events, also if they have the type of their parent. */
static void test_children_alike(void)
{
	struct weir_spec *spec = ways_web("t.lader", "parent");
	struct weir_stage_spec *parent = weir_spec_add_stage(spec, "parent", "t.parent");

	weir_spec_link(parent, "on", "reads", false);
	weir_spec_link(parent, "child", "reads2", false);
	ways_stage(spec, "reads", "t.reads", NULL);
	ways_stage(spec, "reads2", "t.reads", NULL);
	ways_check(spec, "'reads2' needs note; on the way web > parent > reads2 'parent' sends "
			 "another event");
	CU_ASSERT_EQUAL(ways_errs.total, 1);
}

/* ---- fields ---- */

static struct weir_spec *keyed(const char *use, const char *knob, const char *field)
{
	struct weir_spec *spec = ways_web("t.plain", "first");

	ways_stage(spec, "first", use, "work");
	struct weir_stage_spec *work = ways_stage(spec, "work", "t.final", NULL);
	if (strcmp(knob, "key") == 0)
		fixture_set(work, "mode", "partitioned");
	if (strcmp(knob, "queue.by") == 0)
		fixture_set(work, "queue.discipline", "shortest");
	fixture_set(work, knob, field);
	return spec;
}

static void test_fields(void)
{
	static const char *const knobs[] = {"key", "cohort.by", "queue.by"};
	static const char *const names[] = {"key", "by", "queue.by"};
	char want[120];

	for (int i = 0; i < 3; i++) {
		ways_check(keyed("t.decode", knobs[i], "image.width"), NULL);
		ways_check(keyed("t.decode", knobs[i], "image.name"), NULL);
		snprintf(want, sizeof(want),
		    "'%s' of 'work' is image.width; on the way web > first > work no stage gives "
		    "it",
		    names[i]);
		ways_check(keyed("t.final-pass", knobs[i], "image.width"), want);
		ways_check(keyed("t.decode", knobs[i], "image.height"), "image.height");
		CU_ASSERT_STRING_EQUAL(ways_errs.err[0].hint,
		    "payload 'image' has the fields image.width, image.name");
		ways_check(keyed("t.decode", knobs[i], "nothing.width"), "nothing.width");
		snprintf(want, sizeof(want), "'%s' of 'work' is vars.user; on the way", names[i]);
		ways_check(keyed("t.decode", knobs[i], "vars.user"), want);
	}
}

static struct weir_spec *serial(const char *use)
{
	struct weir_spec *spec = keyed(use, "slo", "1s");
	struct weir_group_spec *gs = weir_spec_add_group(spec, "core");

	weir_spec_text(&gs->schedule, "fifo");
	weir_spec_text(&gs->cores, "1");
	weir_spec_text(&gs->serial, "image.width");
	weir_spec_text(&spec->stages[2].group, "core");
	return spec;
}

static void test_serial(void)
{
	ways_check(serial("t.decode"), NULL);
	ways_check(serial("t.final-pass"), "'serial' of 'work' is image.width; on the way");
}

static struct weir_spec *classed(const char *source, const char *field, const char *pattern)
{
	struct weir_spec *spec = ways_web(source, "end");
	struct weir_class_spec *class = weir_spec_add_class(spec, "some");

	ways_stage(spec, "end", "t.final", NULL);
	class_match(class, field, pattern);
	weir_spec_add_class(spec, "rest");
	return spec;
}

static void test_classes(void)
{
	ways_check(classed("t.lader", "note.text", "abc*"), NULL);
	ways_check(classed("t.plain", "note.text", "abc"),
	    "class 'some' matches 'note.text', but no source gives note");
	ways_check(classed("t.lader", "image.width", "7"), "but no source gives image");
	ways_check(classed("t.imager", "image.width", "7*"), NULL);
	ways_check(classed("t.imager", "image.width", "wide"), "'image.width' is a number");
	ways_check(classed("t.lader", "note.length", "7"), "matches 'note.length'");
	ways_check(classed("t.imager", "vars.user", "7"), "but no source gives vars");

	/* a stage behind the source gives it too late */
	struct weir_spec *spec = ways_web("t.plain", "decode");
	ways_stage(spec, "decode", "t.decode", "end");
	ways_stage(spec, "end", "t.final", NULL);
	class_match(weir_spec_add_class(spec, "some"), "image.width", "7");
	weir_spec_add_class(spec, "rest");
	ways_check(spec, "but no source gives image");
}

static void test_register(void)
{
	ways_register();
}

CUNIT_MAIN("plan_payloads", {"register", test_register}, {"given", test_given},
    {"missing", test_missing}, {"per outlet", test_outlet}, {"diamond", test_diamond},
    {"taken", test_taken}, {"taken twice", test_taken_twice}, {"a round", test_round},
    {"any source", test_any_source}, {"some outlets", test_some_outlets}, {"loop", test_loop},
    {"several sources", test_sources}, {"no source", test_no_source},
    {"new events", test_new_events}, {"children", test_children},
    {"children of their parent's type", test_children_alike}, {"a long way", test_long_way},
    {"events without a table", test_tables}, {"same name", test_same_name}, {"fields", test_fields},
    {"serial", test_serial}, {"classes", test_classes})
