/* SPDX-License-Identifier: MIT */
#include "unit/config/full_type.h"

#include "cunit_main.h"
#include "unit/config/types.h"

static bool size_option(int i, struct weir_option *option)
{
	static const struct weir_option all[] = {{"small", "a few"}, {"large", "many of them"}};

	if (i >= 2)
		return false;
	*option = all[i];
	return true;
}

static const struct weir_knob part_knobs[] = {
    {.name = "path", .type = WEIR_KNOB_STRING, .flags = WEIR_KNOB_REQUIRED, .help = "where"},
    {.name = "depth", .type = WEIR_KNOB_INT, .def = "3", .offset = 8}, {.name = NULL}};

static const struct weir_knob full_knobs[] = {{.name = "size",
						  .type = WEIR_KNOB_STRING,
						  .def = "small",
						  .option = size_option,
						  .help = "how many"},
    {.name = "parts",
	.type = WEIR_KNOB_RECORDS,
	.offset = 8,
	.fields = part_knobs,
	.record_size = 16,
	.flags = WEIR_KNOB_REQUIRED,
	.help = "what it has"},
    {.name = "part",
	.type = WEIR_KNOB_MAP,
	.offset = 24,
	.fields = part_knobs,
	.flags = WEIR_KNOB_REQUIRED,
	.help = "its own"},
    {.name = "wait",
	.type = WEIR_KNOB_DURATION,
	.offset = 40,
	.def = "auto",
	.max = 1e9,
	.flags = WEIR_KNOB_AUTO | WEIR_KNOB_LIVE,
	.help = "how long"},
    {.name = "least",
	.type = WEIR_KNOB_INT,
	.offset = 48,
	.def = "0",
	.min = -5,
	.flags = WEIR_KNOB_AUTO,
	.help = "at least"},
    {.name = "empty", .type = WEIR_KNOB_STRINGS, .offset = 56, .def = "", .help = "none"},
    {.name = "text", .type = WEIR_KNOB_STRING, .offset = 72, .def = "", .help = "any"},
    {.name = "on", .type = WEIR_KNOB_BOOL, .offset = 80, .help = "without a default"},
    {.name = NULL}};

static const struct weir_field item_fields[] = {
    {.name = "owner", .help = "whose it is"}, {.name = "label."}, {0}};
static const struct weir_event_type item_type = {.name = "t.item", .fields = item_fields};
static const struct weir_event_type bare_type = {.name = "t.bare"};

static const struct weir_outlet full_outlets[] = {{"done", &item_type, false, "what is complete"},
    {"rest", &bare_type, true, "all else"}, {"last", WEIR_ANY_EVENT, false, NULL}, {.name = NULL}};

static const struct weir_metric full_metrics[] = {
    {"full_items_total", WEIR_METRIC_COUNTER, "items", "items that were seen"},
    {"full_depth", WEIR_METRIC_GAUGE, "levels", "levels in use"}, {.name = NULL}};

static const struct weir_stage_ops full = {.abi = WEIR_STAGE_ABI,
    .name = "t.full",
    .summary = "has everything",
    .flags = WEIR_STAGE_ANY_OUTLETS | WEIR_STAGE_IN_PARTS,
    .accepts = &item_type,
    .outlets = full_outlets,
    .knobs = full_knobs,
    .conf_size = 88,
    .metrics = full_metrics,
    .handle = types_handle};

static int full_start(struct weir_stage *st, struct weir_err *err)
{
	(void)st;
	(void)err;
	return 0;
}

/* A source without a `with:`. */
static const struct weir_stage_ops full_source = {.abi = WEIR_STAGE_ABI,
    .name = "t.full_source",
    .summary = "makes items",
    .flags = WEIR_STAGE_SOURCE,
    .outlets = full_outlets,
    .start = full_start};

/* A router: it has no outlets of its own, only those of its `to:`. */
static const struct weir_stage_ops full_router = {.abi = WEIR_STAGE_ABI,
    .name = "t.full_router",
    .summary = "sends items anywhere",
    .flags = WEIR_STAGE_ANY_OUTLETS | WEIR_STAGE_BLOCKS,
    .accepts = &bare_type,
    .handle = types_handle};

void full_type_register(void)
{
	const struct weir_stage_ops *all[] = {&full, &full_source, &full_router};
	struct weir_err err = {0};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (!weir_stage_type_find(all[i]->name))
			CU_ASSERT_EQUAL(weir_stage_register(all[i], &err), 0);
}
