/* SPDX-License-Identifier: MIT */
#include "unit/config/types.h"

#define TYPES_MEMBER(member) .offset = offsetof(struct types_conf, member)

static const struct weir_knob types_limit_knobs[] = {
    {.name = "path",
	.type = WEIR_KNOB_STRING,
	.offset = offsetof(struct types_limit, path),
	.flags = WEIR_KNOB_REQUIRED,
	.help = "what it is for"},
    {.name = "rate",
	.type = WEIR_KNOB_RATE,
	.offset = offsetof(struct types_limit, rate),
	.def = "100",
	.help = "how often"},
    {.name = NULL}};

static const struct weir_knob types_source_knobs[] = {{.name = "listen",
							  .type = WEIR_KNOB_STRING,
							  TYPES_MEMBER(listen),
							  .flags = WEIR_KNOB_REQUIRED,
							  .help = "address and port"},
    {.name = "max_connections",
	.type = WEIR_KNOB_INT,
	TYPES_MEMBER(connections),
	.def = "1000",
	.min = 1,
	.max = 1e6,
	.help = "most connections at once"},
    {.name = NULL}};

static const struct weir_knob types_work_knobs[] = {
    {.name = "root", .type = WEIR_KNOB_STRING, TYPES_MEMBER(root), .def = ".", .help = "folder"},
    {.name = "size",
	.type = WEIR_KNOB_BYTES,
	TYPES_MEMBER(size_bytes),
	.def = "64KiB",
	.min = 1,
	.max = 1 << 30,
	.flags = WEIR_KNOB_LIVE,
	.help = "most bytes kept"},
    {.name = "time",
	.type = WEIR_KNOB_DURATION,
	TYPES_MEMBER(time_ns),
	.def = "1ms",
	.min = 1000,
	.max = 1e9,
	.help = "how long it works"},
    {.name = "rate", .type = WEIR_KNOB_RATE, TYPES_MEMBER(rate), .def = "20k", .help = "how often"},
    {.name = "share", .type = WEIR_KNOB_RATIO, TYPES_MEMBER(share), .def = "5%", .help = "of all"},
    {.name = "verbose",
	.type = WEIR_KNOB_BOOL,
	TYPES_MEMBER(verbose),
	.def = "false",
	.help = "say more"},
    {.name = "dist",
	.type = WEIR_KNOB_ENUM,
	TYPES_MEMBER(dist),
	.def = "const",
	.choices = "const|exp|bimodal",
	.help = "distribution"},
    {.name = "names",
	.type = WEIR_KNOB_STRINGS,
	TYPES_MEMBER(names),
	.def = "a, b",
	.help = "some names"},
    {.name = "limits",
	.type = WEIR_KNOB_RECORDS,
	TYPES_MEMBER(limits),
	.fields = types_limit_knobs,
	.record_size = sizeof(struct types_limit),
	.help = "limits by path"},
    {.name = "limit",
	.type = WEIR_KNOB_MAP,
	TYPES_MEMBER(limit),
	.fields = (const struct weir_knob[]){{.name = "rate",
						 .type = WEIR_KNOB_RATE,
						 .offset = offsetof(struct types_limit, rate),
						 .def = "7",
						 .help = "the one limit"},
	    {.name = NULL}},
	.help = "a limit of all"},
    {.name = NULL}};

void types_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	for (int i = 0; i < n; i++)
		weir_event_finish(&ev[i], WEIR_OK);
}

static int types_start(struct weir_stage *st, struct weir_err *err)
{
	(void)st;
	(void)err;
	return 0;
}

static const struct weir_stage_ops types_source = {.abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_SOURCE,
    .name = "t.source",
    .summary = "makes events for tests",
    .outlets = (const struct weir_outlet[]){{"request", WEIR_ANY_EVENT, false, "what came in"},
	{.name = NULL}},
    .knobs = types_source_knobs,
    .conf_size = sizeof(struct types_conf),
    .start = types_start};

static const struct weir_stage_ops types_work = {.abi = WEIR_STAGE_ABI,
    .name = "t.work",
    .summary = "works for tests",
    .outlets = (const struct weir_outlet[]){{"next", WEIR_ANY_EVENT, true, "what was worked on"},
	{"miss", WEIR_ANY_EVENT, true, "what was not"}, {.name = NULL}},
    .knobs = types_work_knobs,
    .conf_size = sizeof(struct types_conf),
    .metrics = (const struct weir_metric[]){{"work_done_total", WEIR_METRIC_COUNTER, "events",
						"work that was done"},
	{.name = NULL}},
    .handle = types_handle};

static int64_t types_service_ns(const void *conf)
{
	return ((const struct types_conf *)conf)->time_ns;
}

/* A type that reports its service time (service_ns). */
static const struct weir_stage_ops types_slow = {.abi = WEIR_STAGE_ABI,
    .name = "t.slow",
    .summary = "takes its time",
    .knobs = types_work_knobs,
    .conf_size = sizeof(struct types_conf),
    .handle = types_handle,
    .service_ns = types_service_ns};

static const struct weir_stage_ops types_sink = {.abi = WEIR_STAGE_ABI,
    .name = "t.sink",
    .flags = WEIR_STAGE_SINGLE | WEIR_STAGE_BLOCKS,
    .summary = "ends events of tests",
    .handle = types_handle};

/* A type that holds events, and so has a width. */
static const struct weir_stage_ops types_hold = {.abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_HOLDS,
    .name = "t.hold",
    .summary = "waits for somebody else",
    .handle = types_handle};

void types_register(void)
{
	const struct weir_stage_ops *all[] = {
	    &types_sink, &types_source, &types_work, &types_slow, &types_hold};
	struct weir_err err = {0};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (!weir_stage_type_find(all[i]->name))
			weir_stage_register(all[i], &err);
}
