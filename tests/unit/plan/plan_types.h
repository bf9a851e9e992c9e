/* SPDX-License-Identifier: MIT */
/* Stage types for the tests of plans: "t.source" emits probes, "t.other" accepts other events,
 * "t.keeps" may hold events, and only one thread may run the handler of "t.single". */
#ifndef WEIR_TEST_PLAN_TYPES_H
#define WEIR_TEST_PLAN_TYPES_H

#include <weir/stage.h>

extern const struct weir_event_type plan_other_type;
extern const struct weir_stage_ops plan_source_ops, plan_other_ops;
extern const struct weir_stage_ops plan_keeps_ops, plan_single_ops;

/** A `start` that succeeds, for sources. */
int plan_no_start(struct weir_stage *st, struct weir_err *err);

#endif
