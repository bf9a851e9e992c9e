/* SPDX-License-Identifier: MIT */
/* The knobs of classes, except `match`. Only the objective is live: the order in which classes are
 * refused and their guarantees are computed when a graph is built. */
#include <weir/spec.h>

#include "plan/spec_rows.h"

const struct weir_knob weir_class_knobs[] = {
    {.name = "slo",
	.type = WEIR_KNOB_DURATION,
	MEMBER(weir_class_spec, slo_ns),
	.def = "500ms", /* a guess; docs/overload.md describes the objective */
	.min = SLO_MIN_NS,
	.max = SLO_MAX_NS,
	.flags = WEIR_KNOB_LIVE,
	.help = "how long an event of this class may take in total"},
    {.name = "priority",
	.type = WEIR_KNOB_INT,
	MEMBER(weir_class_spec, priority),
	.def = "auto",
	.min = 0,
	.max = WEIR_CLASSES_MAX - 1,
	.flags = WEIR_KNOB_AUTO,
	.help = "0 is the highest; classes of equal priority are refused alike; numbers must not "
		"decrease along the list; auto is one more than in the previous class"},
    {.name = "guarantee",
	.type = WEIR_KNOB_RATIO,
	MEMBER(weir_class_spec, guarantee),
	.def = "auto",
	.min = 0,
	.max = 0.5, /* the sum of all guarantees has the same maximum */
	.flags = WEIR_KNOB_AUTO,
	.help = "share of each stage that higher classes cannot take, at most 50% for all classes "
		"together; auto is 2%, but 0 for the highest priority"},
    {.name = NULL}};
