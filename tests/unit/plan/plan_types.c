/* SPDX-License-Identifier: MIT */
#include "plan_types.h"

#include "fixture/graph/probes.h"

const struct weir_event_type plan_other_type = {.name = "other", .size = sizeof(struct weir_event)};

int plan_no_start(struct weir_stage *st, struct weir_err *err)
{
	(void)st, (void)err;
	return 0;
}

static const struct weir_outlet source_outlets[] = {
    {"event", &probe_type, false, ""}, {.name = NULL}};
const struct weir_stage_ops plan_source_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.source",
    .summary = "x",
    .flags = WEIR_STAGE_SOURCE,
    .outlets = source_outlets,
    .start = plan_no_start};
const struct weir_stage_ops plan_other_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.other",
    .summary = "x",
    .accepts = &plan_other_type,
    .handle = end_handle};
const struct weir_stage_ops plan_keeps_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.keeps",
    .summary = "x",
    .flags = WEIR_STAGE_HOLDS,
    .accepts = &probe_type,
    .outlets = pass_outlets,
    .handle = pass_handle};
const struct weir_stage_ops plan_single_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.single",
    .summary = "x",
    .flags = WEIR_STAGE_SINGLE,
    .accepts = &probe_type,
    .handle = end_handle};
