/* SPDX-License-Identifier: MIT */
/* Checks that this program can run a stage type; see registry.h. */
#include <stdarg.h>
#include <stdio.h>

#include <weir/stage.h>

#include "stage/payload.h"
#include "stage/registry.h"

int registry_fail(struct weir_err *err, int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	err->code = code;
	return code;
}

/* Flags of types that cannot have a state per core: such a state is used by its core only. */
#define NEVER_REPLICATED                                                                           \
	(WEIR_STAGE_SOURCE | WEIR_STAGE_SINGLE | WEIR_STAGE_BLOCKS | WEIR_STAGE_HOLDS |            \
	    WEIR_STAGE_LOOP)

int stage_type_check(const struct weir_stage_ops *ops, struct weir_err *err)
{
	const char *name = ops->name ? ops->name : "?";
	int n_metrics = 0;

	if (ops->abi != WEIR_STAGE_ABI)
		return registry_fail(err, WEIR_EABI,
		    "stage type '%s' was built for stage ABI %u, this weir has %d: rebuild it",
		    name, ops->abi, WEIR_STAGE_ABI);
	if (!ops->name || !ops->name[0] || !ops->summary)
		return registry_fail(
		    err, WEIR_EINVAL, "stage type '%s' lacks a name or a summary", name);
	if (!(ops->flags & WEIR_STAGE_SOURCE) && !ops->handle)
		return registry_fail(
		    err, WEIR_EINVAL, "stage type '%s' has no handle function", name);
	if ((ops->flags & WEIR_STAGE_SOURCE) && !ops->start)
		return registry_fail(
		    err, WEIR_EINVAL, "source type '%s' has no start function", name);
	if ((ops->flags & WEIR_STAGE_LOOP) && !(ops->flags & WEIR_STAGE_HOLDS))
		return registry_fail(err, WEIR_EINVAL,
		    "stage type '%s' has a loop (WEIR_STAGE_LOOP), but holds no events "
		    "(WEIR_STAGE_HOLDS)",
		    name);
	if ((ops->flags & WEIR_STAGE_LOOP) && (ops->thread_init || ops->thread_state_size > 0))
		return registry_fail(err, WEIR_EINVAL,
		    "stage type '%s' has a loop (WEIR_STAGE_LOOP), so it cannot have thread_init "
		    "or state per thread",
		    name);
	if ((ops->flags & WEIR_STAGE_REPLICABLE) && (ops->flags & NEVER_REPLICATED || ops->start))
		return registry_fail(err, WEIR_EINVAL,
		    "stage type '%s' can be replicated (WEIR_STAGE_REPLICABLE), so it can neither "
		    "be a source, nor exclusive, nor block, have a width, a loop or a start "
		    "function",
		    name);
	if ((ops->flags & WEIR_STAGE_RECURSES) && (ops->flags & WEIR_STAGE_HOLDS))
		return registry_fail(err, WEIR_EINVAL,
		    "stage type '%s' recurses (WEIR_STAGE_RECURSES), so it cannot have a width "
		    "(WEIR_STAGE_HOLDS): its parents would occupy what their children need",
		    name);
	const struct weir_outlet *o = ops->outlets;
	for (uint32_t left = ops->children; left && o && o->name; left >>= 1, o++)
		if (left & 1 && o->type && !o->type->op)
			return registry_fail(err, WEIR_EINVAL,
			    "stage type '%s': outlet '%s' is for children, but %s has no struct "
			    "weir_op (weir_event_type.op)",
			    name, o->name, o->type->name);
	for (const struct weir_metric *m = ops->metrics; m && m->name; m++, n_metrics++)
		if (!m->unit || !m->help)
			return registry_fail(err, WEIR_EINVAL,
			    "stage type '%s': metric '%s' needs a unit and a help text", name,
			    m->name);
	if (n_metrics > WEIR_METRICS_MAX)
		return registry_fail(err, WEIR_EINVAL,
		    "stage type '%s' has %d metrics, at most %d are allowed", name, n_metrics,
		    WEIR_METRICS_MAX);
	return payload_validate(ops, err->text, sizeof(err->text)) ? 0 : (err->code = WEIR_EINVAL);
}
