/* SPDX-License-Identifier: MIT */
/* Sets up the stages of the simulator that have a width. "The other side" is the system outside the
 * server that such a stage waits for (docs/overload.md, "Stages that wait"). */
#include "simulate.h"

#include <stdlib.h>

#include <weir/knob.h>
#include <weir/stage.h>

#include "control/width.h"

/* Largest width, and largest number of servers on the other side, in a simulation. */
#define WIDTH_SIMULATED 4096

/* Return the number of servers on the other side, which only types with a knob `capacity` define; 0
 * stands for any number. */
static int capacity_of(const struct weir_stage_ops *ops, const struct weir_stage_spec *st)
{
	const struct weir_knob *row = weir_knob_find(ops->knobs, "capacity");
	/* discarded, since all errors were reported when the file was loaded */
	struct weir_errs errs = {0};
	void *conf = row && row->type == WEIR_KNOB_INT ? calloc(1, ops->conf_size) : NULL;
	int64_t n = 0;

	if (conf && weir_knobs_init(ops->knobs, conf) == 0) {
		weir_knobs_bind(ops->knobs, st->with, conf, st->name, &errs);
		n = *(int64_t *)((char *)conf + row->offset);
		weir_knobs_fini(ops->knobs, conf);
	}
	free(conf);
	return n < WIDTH_SIMULATED ? (int)n : WIDTH_SIMULATED;
}

bool simulate_holds(const struct weir_stage_spec *st)
{
	const struct weir_stage_ops *ops = weir_stage_type_find(st->use);

	return ops && ops->flags & WEIR_STAGE_HOLDS;
}

void simulate_width(const struct weir_stage_spec *st, struct sim_stage *to)
{
	int64_t min = st->width.min, max = weir_spec_width_max(st);

	if (!simulate_holds(st))
		return;
	max = max < WIDTH_SIMULATED ? max : WIDTH_SIMULATED;
	to->width = width_find(st->width.policy);
	to->resize = NULL;
	to->batch_max = 1;
	to->threads_max = (int)max;
	to->threads_min = (int)(min < max ? min : max);
	to->threads_start = to->width == &width_static      ? to->threads_max
			    : WIDTH_FIRST < to->threads_min ? to->threads_min
			    : WIDTH_FIRST > to->threads_max ? to->threads_max
							    : WIDTH_FIRST;
	to->servers = capacity_of(weir_stage_type_find(st->use), st);
}
