/* SPDX-License-Identifier: MIT */
/* Rows of `trace:`, which names the collector and selects the traces that it receives. */
#include "bind.h"

const struct weir_knob config_trace_knobs[] = {
    {.name = "otlp",
	.type = WEIR_KNOB_STRING,
	.offset = offsetof(struct weir_trace_spec, otlp),
	.def = "",
	.help = "collector that receives traces by OTLP over HTTP, such as "
		"http://127.0.0.1:4318/v1/traces; empty for none"},
    {.name = "sample",
	.type = WEIR_KNOB_RATIO,
	.offset = offsetof(struct weir_trace_spec, sample),
	.def =
	    "1%", /* a guess: enough for some traces of each kind of request, with little storage */
	.min = 0,
	.max = 1,
	.help = "of the requests that arrive without a trace, the share that is sent"},
    {.name = "slow",
	.type = WEIR_KNOB_ENUM,
	.offset = offsetof(struct weir_trace_spec, slow),
	.def = "always",
	.choices = "never|always",
	.help = "also send requests among the 16 slowest of their class in a minute"},
    {.name = "parent",
	.type = WEIR_KNOB_ENUM,
	.offset = offsetof(struct weir_trace_spec, parent),
	.def = "follow",
	.choices = "ignore|follow",
	.help = "requests with a traceparent: follow sends those that it marks as sampled, ignore "
		"applies 'sample'"},
    {.name = NULL}};

int section_trace(struct bind *bind, const struct weir_node *name, const struct weir_node *node)
{
	struct weir_trace_spec *trace = &bind->spec->trace;
	const struct weir_node *otlp = weir_node_get(node, "otlp");

	trace->mark = otlp ? otlp->mark : name->mark;
	int rc = weir_knobs_bind(config_trace_knobs, node, trace, "'trace'", bind->errs);
	return rc == WEIR_ENOMEM ? rc : 0;
}
