/* SPDX-License-Identifier: MIT */
/* What stages need and give, on every way from the sources; and fields of payloads. */
#include "fixture/graph/payloads.h"

#include "cunit_main.h"

static struct weir_errs errs;

/* Check `spec`, which is freed. The first error must contain `want`; NULL: there must be none. */
static void check(struct weir_spec *spec, const char *want)
{
	memset(&errs, 0, sizeof(errs));
	int rc = weir_spec_check(spec, &errs);
	bool good = want ? rc != 0 && strstr(errs.err[0].text, want) : rc == 0;

	CU_ASSERT_TRUE(good);
	if (!good)
		fprintf(stderr, "wanted: %s\ngot: %s\n", want ? want : "no error",
		    errs.n ? errs.err[0].text : "no error");
	weir_spec_free(spec);
}

static struct weir_stage_spec *stage(
    struct weir_spec *spec, const char *name, const char *use, const char *to)
{
	return fixture_stage(spec, name, use, to);
}

/* A spec with a source called "web" that leads to `first`. */
static struct weir_spec *web(const char *source, const char *first)
{
	struct weir_spec *spec = weir_spec_new("payloads");

	stage(spec, "web", source, first);
	return spec;
}

static void test_given(void)
{
	struct weir_spec *spec = web("t.plain", "decode");

	stage(spec, "decode", "t.decode", "scale");
	stage(spec, "scale", "t.scale", "again");
	stage(spec, "again", "t.scale", NULL);
	check(spec, NULL);
}

static void test_missing(void)
{
	struct weir_spec *spec = web("t.plain", "scale");

	stage(spec, "scale", "t.scale", NULL);
	check(spec, "'scale' needs image; on the way web > scale no stage gives it");
	CU_ASSERT_STRING_EQUAL(errs.err[0].hint,
	    "put a stage before it that gives it: t.bare, t.decode, t.five, t.imager");
	CU_ASSERT_EQUAL(errs.total, 1);
}

/* An outlet on which the stage gives nothing. */
static void test_outlet(void)
{
	struct weir_spec *spec = web("t.plain", "decode");
	struct weir_stage_spec *decode = stage(spec, "decode", "t.decode", "scale");

	weir_spec_link(decode, "bad", "rest", false);
	stage(spec, "scale", "t.scale", NULL);
	stage(spec, "rest", "t.scale", NULL);
	check(spec, "'rest' needs image; on the way web > decode > rest no stage gives it");
	CU_ASSERT_EQUAL(errs.total, 1);
}

static void test_diamond(void)
{
	for (int both = 0; both < 2; both++) {
		struct weir_spec *spec = web("t.plain", "route");
		struct weir_stage_spec *route = weir_spec_add_stage(spec, "route", "t.route");
		weir_spec_link(route, "a", "left", false);
		weir_spec_link(route, "b", "right", false);
		stage(spec, "left", "t.decode", "scale");
		stage(spec, "right", both ? "t.decode" : "t.final-pass", "scale");
		stage(spec, "scale", "t.scale", NULL);
		check(spec, both ? NULL
				 : "'scale' needs image; on the way web > route > right > scale no "
				   "stage gives it");
	}
}

static void test_taken(void)
{
	struct weir_spec *spec = web("t.plain", "decode");

	stage(spec, "decode", "t.decode", "store");
	stage(spec, "store", "t.store", "scale");
	stage(spec, "scale", "t.scale", NULL);
	check(
	    spec, "'scale' needs image; on the way web > decode > store > scale 'store' takes it");
}

/* The stage that took it last is named. */
static void test_taken_twice(void)
{
	struct weir_spec *spec = web("t.plain", "decode");

	stage(spec, "decode", "t.decode", "store");
	stage(spec, "store", "t.store", "decode2");
	stage(spec, "decode2", "t.decode", "store2");
	stage(spec, "store2", "t.store", "scale");
	stage(spec, "scale", "t.scale", NULL);
	check(spec, "decode2 > store2 > scale 'store2' takes it");
}

/* A loop to the first stage, on which nothing changes. */
static void test_round(void)
{
	struct weir_spec *spec = web("t.plain", "route");
	struct weir_stage_spec *route = weir_spec_add_stage(spec, "route", "t.route");

	weir_spec_link(route, "a", "route", true);
	weir_spec_link(route, "b", "scale", false);
	stage(spec, "scale", "t.scale", NULL);
	check(spec, "'scale' needs image; on the way web > route > scale no stage gives it");
}

/* A source that sends any type has no payload to keep. A type is suggested once. */
static void test_any_source(void)
{
	struct weir_spec *spec = web("t.any-source", "reads");

	stage(spec, "reads", "t.reads", NULL);
	check(spec, "'reads' needs note; on the way web > reads no stage gives it");
	const char *once = strstr(errs.err[0].hint, "t.notes");
	CU_ASSERT(once && !strstr(once + 1, "t.notes"));
}

/* On the second round the image is gone. */
static void test_loop(void)
{
	struct weir_spec *spec = web("t.plain", "decode");
	struct weir_stage_spec *store;

	stage(spec, "decode", "t.decode", "scale");
	stage(spec, "scale", "t.scale", "store");
	store = weir_spec_add_stage(spec, "store", "t.store");
	weir_spec_link(store, "out", "scale", true);
	check(spec, "on the way web > decode > scale > store > scale 'store' takes it");

	spec = web("t.plain", "decode");
	stage(spec, "decode", "t.decode", "scale");
	stage(spec, "scale", "t.scale", "store");
	store = weir_spec_add_stage(spec, "store", "t.store");
	weir_spec_link(store, "out", "decode", true);
	check(spec, NULL);
}

/* Each source begins a way. */
static void test_sources(void)
{
	struct weir_spec *spec = web("t.plain", "decode");

	stage(spec, "decode", "t.decode", "scale");
	stage(spec, "direct", "t.plain", "scale");
	stage(spec, "scale", "t.scale", NULL);
	check(spec, "on the way direct > scale no stage gives it");
}

/* A program that offers events itself may put payloads on them. */
static void test_no_source(void)
{
	struct weir_spec *spec = weir_spec_new("payloads");

	stage(spec, "scale", "t.scale", NULL);
	check(spec, NULL);
}

/* An event of another type is a new one. */
static void test_new_events(void)
{
	struct weir_spec *spec = web("t.lader", "split");

	stage(spec, "split", "t.split", "reads");
	stage(spec, "reads", "t.reads", NULL);
	check(
	    spec, "'reads' needs note; on the way web > split > reads 'split' sends another event");

	spec = web("t.lader", "split");
	struct weir_stage_spec *split = weir_spec_add_stage(spec, "split", "t.split");
	weir_spec_link(split, "whole", "reads", false);
	stage(spec, "reads", "t.reads", NULL);
	check(spec, NULL);
}

/* A child is a new event, too, even if it has the type of its parent. */
static void test_children(void)
{
	struct weir_spec *spec = web("t.twig-source", "tree");
	struct weir_stage_spec *tree = weir_spec_add_stage(spec, "tree", "t.tree");

	weir_spec_link(tree, "twig", "reads", false);
	stage(spec, "reads", "t.reads", NULL);
	check(spec, "'reads' needs note; on the way web > tree > reads 'tree' sends another event");

	spec = web("t.twig-source", "tree");
	tree = weir_spec_add_stage(spec, "tree", "t.tree");
	weir_spec_link(tree, "out", "reads", false);
	stage(spec, "reads", "t.reads", NULL);
	check(spec, NULL);
}

static void test_long_way(void)
{
	char name[8][WEIR_NAME_MAX + 1];
	struct weir_spec *spec = web("t.plain", "stage0-of-a-name-that-is-long-enough");

	for (int i = 0; i < 8; i++)
		snprintf(name[i], sizeof(name[i]), "stage%d-of-a-name-that-is-long-enough", i);
	for (int i = 0; i < 7; i++)
		stage(spec, name[i], "t.final-pass", name[i + 1]);
	stage(spec, name[7], "t.scale", NULL);
	check(spec, "on the way web > ... > stage5-of-a-name-that-is-long-enough > "
		    "stage6-of-a-name-that-is-long-enough > "
		    "stage7-of-a-name-that-is-long-enough no stage gives it");
	for (int length = 2; length < 55; length++) { /* the last name is never cut */
		char want[120];
		spec = web("t.plain", "a");
		snprintf(want, sizeof(want), " > z%0*d no stage gives it", length, 0);
		for (int i = 0; i < 4; i++)
			snprintf(
			    name[i], sizeof(name[i]), "%c%0*d", i < 3 ? 'b' + i : 'z', length, 0);
		stage(spec, "a", "t.final-pass", name[0]);
		for (int i = 0; i < 4; i++)
			stage(spec, name[i], i < 3 ? "t.final-pass" : "t.scale",
			    i < 3 ? name[i + 1] : NULL);
		check(spec, want);
	}
}

static void test_tables(void)
{
	struct weir_spec *spec = web("t.plain", "bare");

	stage(spec, "bare", "t.bare", "end");
	stage(spec, "end", "t.end", NULL);
	check(spec, "'bare' gives image, but events of type probe have no payloads");
}

/* t.notes gives a note on one outlet, t.sides on all. Links to events without a table are refused only
 * where a note is given. */
static void test_some_outlets(void)
{
	for (int all = 0; all < 2; all++)
		for (int linked = 0; linked < 2; linked++) {
			struct weir_spec *spec = web("t.plain", "notes");
			struct weir_stage_spec *notes =
			    weir_spec_add_stage(spec, "notes", all ? "t.sides" : "t.notes");
			weir_spec_link(notes, "one", "reads", false);
			if (linked)
				weir_spec_link(notes, "bare", "end", false);
			stage(spec, "reads", "t.reads", NULL);
			if (linked)
				stage(spec, "end", "t.end", NULL);
			check(spec, all && linked ? "'notes' gives note, but events of type probe "
						    "have no payloads"
						  : NULL);
		}
}

static void test_same_name(void)
{
	struct weir_spec *spec = web("t.plain", "decode");

	stage(spec, "decode", "t.decode", "other");
	stage(spec, "other", "t.other-scale", NULL);
	check(spec, "stage 'other' (t.other-scale) uses another payload type called 'image'");

	spec = web("t.plain", "decode");
	stage(spec, "decode", "t.decode", "other");
	stage(spec, "other", "t.other-gives", "end");
	stage(spec, "end", "t.final", NULL);
	check(spec, "stage 'other' (t.other-gives) uses another payload type called 'image'");
}

/* Children are new events, also if they have the type of their parent. */
static void test_children_alike(void)
{
	struct weir_spec *spec = web("t.lader", "parent");
	struct weir_stage_spec *parent = weir_spec_add_stage(spec, "parent", "t.parent");

	weir_spec_link(parent, "on", "reads", false);
	weir_spec_link(parent, "child", "reads2", false);
	stage(spec, "reads", "t.reads", NULL);
	stage(spec, "reads2", "t.reads", NULL);
	check(spec, "'reads2' needs note; on the way web > parent > reads2 'parent' sends "
		    "another event");
	CU_ASSERT_EQUAL(errs.total, 1);
}

/* ---- too many ---- */

/* web, with a note, > decode, which gives an image, > three and four; `last` gets what is left. */
static struct weir_spec *laden_way(const char *last, const char *use)
{
	struct weir_spec *spec = web("t.lader", "decode");

	stage(spec, "decode", "t.decode", "three");
	stage(spec, "three", "t.third", "four");
	stage(spec, "four", "t.fourth", last);
	stage(spec, last, use, "end");
	stage(spec, "end", "t.final", NULL);
	return spec;
}

static void test_fifth(void)
{
	check(laden_way("five", "t.fifth"),
	    "'five' gives fifth; on the way web > decode > three > four > five the event has note, "
	    "image, third, fourth already, and an event has at most 4 payloads");
	CU_ASSERT_EQUAL(errs.total, 1);
	check(laden_way("again", "t.fourth"), NULL); /* no fifth one */
	check(laden_way("swap", "t.swap"), NULL);    /* takes one and gives another */
}

/* One of two ways is too much, and only at the second round of a loop. */
static void test_fifth_way(void)
{
	struct weir_spec *spec = laden_way("store", "t.store");
	struct weir_stage_spec *end = &spec->stages[5];

	CU_ASSERT_STRING_EQUAL(end->name, "end");
	free(end->use);
	end->use = strdup("t.route");
	weir_spec_link(end, "more", "five", false);
	stage(spec, "five", "t.fifth", "last");
	stage(spec, "last", "t.final", NULL);
	check(spec, NULL); /* `store` has taken the image */

	spec = laden_way("store", "t.store");
	end = &spec->stages[5];
	free(end->use);
	end->use = strdup("t.route");
	weir_spec_link(end, "more", "five", false);
	struct weir_stage_spec *five = stage(spec, "five", "t.fifth", NULL);
	weir_spec_link(five, "out", "decode", true);
	check(spec, "'decode' gives image; on the way web > decode > three > four > store > end > "
		    "five > decode the event has note, third, fourth, fifth already");
	CU_ASSERT_EQUAL(errs.total, 1);
}

/* A source that gives five at once, and events of another type, which have none. */
static void test_fifth_source(void)
{
	struct weir_spec *spec = web("t.five", "split");
	struct weir_stage_spec *split = weir_spec_add_stage(spec, "split", "t.split");

	weir_spec_link(split, "whole", "final", false);
	stage(spec, "final", "t.final", NULL);
	check(spec, "'web' gives image, note, third, fourth, fifth; on the way web the event has "
		    "none already");

	spec = web("t.lader", "parent");
	split = weir_spec_add_stage(spec, "parent", "t.parent");
	weir_spec_link(split, "on", "three", false);
	weir_spec_link(split, "child", "three", false);
	stage(spec, "three", "t.third", "four");
	stage(spec, "four", "t.fourth", "five");
	stage(spec, "five", "t.fifth", "decode");
	stage(spec, "decode", "t.decode", "end");
	stage(spec, "end", "t.final", NULL);
	check(spec, "'decode' gives image; on the way web > parent > three > four > five > decode");
	CU_ASSERT_EQUAL(errs.total, 1);
}

/* ---- fields ---- */

static struct weir_spec *keyed(const char *use, const char *knob, const char *field)
{
	struct weir_spec *spec = web("t.plain", "first");

	stage(spec, "first", use, "work");
	struct weir_stage_spec *work = stage(spec, "work", "t.final", NULL);
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
		check(keyed("t.decode", knobs[i], "image.width"), NULL);
		check(keyed("t.decode", knobs[i], "image.name"), NULL);
		snprintf(want, sizeof(want),
		    "'%s' of 'work' is image.width; on the way web > first > work no stage gives "
		    "it",
		    names[i]);
		check(keyed("t.final-pass", knobs[i], "image.width"), want);
		check(keyed("t.decode", knobs[i], "image.height"), "image.height");
		CU_ASSERT_STRING_EQUAL(
		    errs.err[0].hint, "payload 'image' has the fields image.width, image.name");
		check(keyed("t.decode", knobs[i], "nothing.width"), "nothing.width");
		snprintf(want, sizeof(want), "'%s' of 'work' is vars.user; on the way", names[i]);
		check(keyed("t.decode", knobs[i], "vars.user"), want);
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
	check(serial("t.decode"), NULL);
	check(serial("t.final-pass"), "'serial' of 'work' is image.width; on the way");
}

static struct weir_spec *classed(const char *source, const char *field, const char *pattern)
{
	struct weir_spec *spec = web(source, "end");
	struct weir_class_spec *class = weir_spec_add_class(spec, "some");

	stage(spec, "end", "t.final", NULL);
	class_match(class, field, pattern);
	weir_spec_add_class(spec, "rest");
	return spec;
}

static void test_classes(void)
{
	check(classed("t.lader", "note.text", "abc*"), NULL);
	check(classed("t.plain", "note.text", "abc"),
	    "class 'some' matches 'note.text', but no source gives note");
	check(classed("t.lader", "image.width", "7"), "but no source gives image");
	check(classed("t.imager", "image.width", "7*"), NULL);
	check(classed("t.imager", "image.width", "wide"), "'image.width' is a number");
	check(classed("t.lader", "note.length", "7"), "matches 'note.length'");
	check(classed("t.imager", "vars.user", "7"), "but no source gives vars");

	/* a stage behind the source gives it too late */
	struct weir_spec *spec = web("t.plain", "decode");
	stage(spec, "decode", "t.decode", "end");
	stage(spec, "end", "t.final", NULL);
	class_match(weir_spec_add_class(spec, "some"), "image.width", "7");
	weir_spec_add_class(spec, "rest");
	check(spec, "but no source gives image");
}

/* ---- stage types of this test ---- */

static int no_start(struct weir_stage *st, struct weir_err *err)
{
	(void)st, (void)err;
	return 0;
}

static const struct weir_outlet bare_outlets[] = {{"out", &probe_type, false, ""}, {.name = NULL}};
static const struct weir_payload_at bare_gives[] = {{&image_type, NULL}, {.type = NULL}};
static const struct weir_stage_ops bare_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.bare",
    .summary = "gives on events without a table",
    .accepts = &laden_type,
    .outlets = bare_outlets,
    .handle = end_handle,
    .gives = bare_gives};

static const struct weir_outlet laden_outlets[] = {{"out", &laden_type, true, ""}, {.name = NULL}};
static const struct weir_stage_ops pass_on_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.final-pass",
    .summary = "passes on",
    .accepts = &laden_type,
    .outlets = laden_outlets,
    .handle = pass_handle};

static const struct weir_payload_type *const reads_needs[] = {&note_type, NULL};
static const struct weir_stage_ops reads_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.reads",
    .summary = "needs a note",
    .handle = end_handle,
    .needs = reads_needs};

static const struct weir_payload_at imager_gives[] = {
    {&image_type, "out"}, {&note_type, NULL}, {.type = NULL}};
static const struct weir_stage_ops imager_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.imager",
    .summary = "gives an image",
    .flags = WEIR_STAGE_SOURCE,
    .outlets = laden_outlets,
    .start = no_start,
    .gives = imager_gives};

static const struct weir_outlet any_outlets[] = {{"out", WEIR_ANY_EVENT, true, ""}, {.name = NULL}};
static const struct weir_stage_ops any_source_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.any-source",
    .summary = "sends events of any type",
    .flags = WEIR_STAGE_SOURCE,
    .outlets = any_outlets,
    .start = no_start};
static const struct weir_outlet notes_outlets[] = {{"one", &laden_type, true, ""},
    {"two", &laden_type, true, ""}, {"bare", &probe_type, true, ""}, {.name = NULL}};
static const struct weir_payload_at notes_gives[] = {
    {&note_type, "one"}, {&note_type, "two"}, {.type = NULL}};
static const struct weir_stage_ops notes_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.notes",
    .summary = "gives notes on two outlets",
    .accepts = &laden_type,
    .outlets = notes_outlets,
    .handle = pass_handle,
    .gives = notes_gives};
static const struct weir_payload_at sides_gives[] = {{&note_type, NULL}, {.type = NULL}};
static const struct weir_stage_ops sides_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.sides",
    .summary = "gives notes on all outlets",
    .accepts = &laden_type,
    .outlets = notes_outlets,
    .handle = pass_handle,
    .gives = sides_gives};
static const struct weir_payload_type other_image = {.name = "image", .size = 1};
static const struct weir_payload_at other_gives[] = {{&other_image, NULL}, {.type = NULL}};
static const struct weir_stage_ops other_gives_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.other-gives",
    .summary = "gives another image",
    .accepts = &laden_type,
    .outlets = laden_outlets,
    .handle = pass_handle,
    .gives = other_gives};
struct twig {
	struct weir_event ev;
	struct weir_op op;
	struct weir_payloads payloads;
};
static const struct weir_event_type twig_type = {.name = "t.twig",
    .size = sizeof(struct twig),
    .op = offsetof(struct twig, op),
    .payloads = offsetof(struct twig, payloads)};
static const struct weir_outlet twig_outlets[] = {
    {"twig", &twig_type, true, ""}, {"out", &twig_type, true, ""}, {.name = NULL}};
static const struct weir_payload_at twig_gives[] = {{&note_type, NULL}, {.type = NULL}};
static const struct weir_stage_ops twig_source_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.twig-source",
    .summary = "gives twigs with notes",
    .flags = WEIR_STAGE_SOURCE,
    .outlets = twig_outlets,
    .start = no_start,
    .gives = twig_gives};
static const struct weir_stage_ops tree_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.tree",
    .summary = "awaits twigs, and passes its own event on",
    .accepts = &twig_type,
    .outlets = twig_outlets,
    .children = 1,
    .handle = pass_handle};
static const struct weir_payload_type *const vars_needs[] = {&weir_vars_type, NULL};
static const struct weir_stage_ops vars_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.vars",
    .summary = "needs variables",
    .handle = end_handle,
    .needs = vars_needs};

/* The outlets `on` and `child` are of the same type; children leave by the second one. */
static const struct weir_outlet parent_outlets[] = {
    {"on", &laden_type, true, ""}, {"child", &laden_type, true, ""}, {.name = NULL}};
static const struct weir_stage_ops parent_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.parent",
    .summary = "has children",
    .accepts = &laden_type,
    .outlets = parent_outlets,
    .handle = end_handle,
    .children = 2};

static const struct weir_payload_at third_gives[] = {{&third_type, NULL}, {.type = NULL}};
static const struct weir_payload_at fourth_gives[] = {{&fourth_type, NULL}, {.type = NULL}};
static const struct weir_payload_at fifth_gives[] = {{&fifth_type, NULL}, {.type = NULL}};
static const struct weir_payload_at five_gives[] = {{&image_type, NULL}, {&note_type, NULL},
    {&third_type, NULL}, {&fourth_type, NULL}, {&fifth_type, NULL}, {.type = NULL}};
static struct weir_stage_ops third_ops, fourth_ops, fifth_ops, swap_ops, five_ops;

static void give(struct weir_stage_ops *ops, const struct weir_stage_ops *like, const char *name,
    const struct weir_payload_at *gives)
{
	*ops = *like;
	ops->name = name;
	ops->gives = gives;
}

static void test_register(void)
{
	const struct weir_stage_ops *const ops[] = {&end_ops, &bare_ops, &pass_on_ops, &reads_ops,
	    &imager_ops, &vars_ops, &twig_source_ops, &tree_ops, &any_source_ops, &notes_ops,
	    &sides_ops, &other_gives_ops, &parent_ops, &third_ops, &fourth_ops, &fifth_ops,
	    &swap_ops, &five_ops};

	give(&third_ops, &pass_on_ops, "t.third", third_gives);
	give(&fourth_ops, &pass_on_ops, "t.fourth", fourth_gives);
	give(&fifth_ops, &pass_on_ops, "t.fifth", fifth_gives);
	give(&swap_ops, &pass_on_ops, "t.swap", fifth_gives);
	swap_ops.takes = third_gives;
	give(&five_ops, &imager_ops, "t.five", five_gives);

	payloads_register();
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		fixture_register(ops[i]);
}

CUNIT_MAIN("plan_payloads", {"register", test_register}, {"given", test_given},
    {"missing", test_missing}, {"per outlet", test_outlet}, {"diamond", test_diamond},
    {"taken", test_taken}, {"taken twice", test_taken_twice}, {"a round", test_round},
    {"any source", test_any_source}, {"some outlets", test_some_outlets}, {"loop", test_loop},
    {"several sources", test_sources}, {"no source", test_no_source},
    {"new events", test_new_events}, {"children", test_children},
    {"children of their parent's type", test_children_alike}, {"a fifth", test_fifth},
    {"a fifth on one way", test_fifth_way}, {"a fifth at a source", test_fifth_source},
    {"a long way", test_long_way}, {"events without a table", test_tables},
    {"same name", test_same_name}, {"fields", test_fields}, {"serial", test_serial},
    {"classes", test_classes})
