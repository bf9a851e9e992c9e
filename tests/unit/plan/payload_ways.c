/* SPDX-License-Identifier: MIT */
#include "payload_ways.h"

struct weir_errs ways_errs;

/* Check `spec`, which is freed. The first error must contain `want`; NULL: there must be none. */
void ways_check(struct weir_spec *spec, const char *want)
{
	memset(&ways_errs, 0, sizeof(ways_errs));
	int rc = weir_spec_check(spec, &ways_errs);
	bool good = want ? rc != 0 && strstr(ways_errs.err[0].text, want) : rc == 0;

	CU_ASSERT_TRUE(good);
	if (!good)
		fprintf(stderr, "wanted: %s\ngot: %s\n", want ? want : "no error",
		    ways_errs.n ? ways_errs.err[0].text : "no error");
	weir_spec_free(spec);
}

struct weir_stage_spec *ways_stage(
    struct weir_spec *spec, const char *name, const char *use, const char *to)
{
	return fixture_stage(spec, name, use, to);
}

/* A spec with a source called "web" that leads to `first`. */
struct weir_spec *ways_web(const char *source, const char *first)
{
	struct weir_spec *spec = weir_spec_new("payloads");

	ways_stage(spec, "web", source, first);
	return spec;
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

void ways_register(void)
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
