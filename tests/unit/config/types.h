/* SPDX-License-Identifier: MIT */
/*
 * Stage types for the tests of config/: a source, a stage with every kind of knob, one that may
 * block.
 *
 * They are registered in addition to weir's own types, so changes to weir's knobs do not change the
 * messages expected by these tests. If the framework's registry is not linked (a test built by hand
 * from config/ and the base), the weak double below replaces it.
 */
#ifndef WEIR_TESTS_CONFIG_TYPES_H
#define WEIR_TESTS_CONFIG_TYPES_H

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <weir/stage.h>

/* ---- the double of the registry ---- */

#define TYPES_MAX 32

static const struct weir_stage_ops *types_known[TYPES_MAX];
static int types_n;

const struct weir_stage_ops *weir_stage_type_at(int i) __attribute__((weak));
const struct weir_stage_ops *weir_stage_type_at(int i)
{
	return i >= 0 && i < types_n ? types_known[i] : NULL;
}

const struct weir_stage_ops *weir_stage_type_find(const char *name) __attribute__((weak));
const struct weir_stage_ops *weir_stage_type_find(const char *name)
{
	for (int i = 0; i < types_n; i++)
		if (strcmp(types_known[i]->name, name) == 0)
			return types_known[i];
	return NULL;
}

int weir_stage_register(const struct weir_stage_ops *ops, struct weir_err *err)
    __attribute__((weak));
int weir_stage_register(const struct weir_stage_ops *ops, struct weir_err *err)
{
	(void)err;
	types_known[types_n++] = ops;
	return 0;
}

int weir_stage_plugin(const char *path, bool look, uint64_t *id, struct weir_err *err)
    __attribute__((weak));
int weir_stage_plugin(const char *path, bool look, uint64_t *id, struct weir_err *err)
{
	(void)look;
	*id = 0;
	snprintf(err->text, sizeof(err->text), "plug-in '%s': No such file or directory", path);
	return err->code = WEIR_ENOENT;
}

void weir_stage_plugins_begin(void) __attribute__((weak));
void weir_stage_plugins_begin(void)
{
}

bool weir_stage_type_left(const char *name) __attribute__((weak));
bool weir_stage_type_left(const char *name)
{
	(void)name;
	return false;
}

/* ---- the types ---- */

struct types_limit {
	char *path;
	double rate;
};

struct types_conf {
	char *listen, *root;
	int64_t connections, size_bytes, time_ns;
	double rate, share;
	bool verbose;
	int dist;
	struct weir_strings names;
	struct weir_records limits;
	struct types_limit limit;
};

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

static void types_handle(struct weir_stage *st, struct weir_event **ev, int n)
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

void weir_event_finish(struct weir_event **ev, int status) __attribute__((weak));
void weir_event_finish(struct weir_event **ev, int status)
{
	(void)status;
	*ev = NULL;
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

/** Register the types once. Every test calls it first. */
static void types_register(void)
{
	const struct weir_stage_ops *all[] = {
	    &types_sink, &types_source, &types_work, &types_slow, &types_hold};
	struct weir_err err = {0};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (!weir_stage_type_find(all[i]->name))
			weir_stage_register(all[i], &err);
}

#endif
