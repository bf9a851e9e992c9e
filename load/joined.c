/* SPDX-License-Identifier: MIT */
/* Joins several runs into one; see joined.h. */
#include "load/joined.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "load/judge.h"

/* Make room for the phases and seconds of `from` after those of `result`. */
static int grow(struct load_result *result, size_t n_phases, const struct load_result *from)
{
	if (from->n_phases > 0) {
		struct load_phase_result *phase =
		    realloc(result->phase, (n_phases + (size_t)from->n_phases) * sizeof(*phase));
		if (!phase)
			return WEIR_ENOMEM;
		result->phase = phase;
	}
	if (from->n_seconds > 0) {
		struct load_second *second = realloc(
		    result->second, (result->n_seconds + from->n_seconds) * sizeof(*second));
		if (!second)
			return WEIR_ENOMEM;
		result->second = second;
	}
	return 0;
}

static void take_totals(struct load_result *into, struct load_result *from)
{
	if (into->n_phases == 0)
		into->started_unix_ns = from->started_unix_ns;
	into->took_ns = from->started_unix_ns - into->started_unix_ns + from->took_ns;
	into->stopped |= from->stopped;
	into->realtime = into->realtime || from->realtime;
	into->cpu_user_s += from->cpu_user_s;
	into->cpu_system_s += from->cpu_system_s;
	into->connects += from->connects;
}

static void move_phases(struct load_plan *plan, struct load_result *into,
    const struct load_phase *phase, const struct load_result *from)
{
	size_t n = (size_t)from->n_phases;

	memcpy(&plan->phase[plan->n_phases], phase, n * sizeof(*phase));
	memcpy(&into->phase[into->n_phases], from->phase, n * sizeof(*from->phase));
	plan->n_phases += from->n_phases;
	into->n_phases += from->n_phases;
}

static void move_seconds(struct load_result *into, const struct load_result *from, int first_phase)
{
	int64_t offset_ns = from->started_unix_ns - into->started_unix_ns;

	for (size_t i = 0; i < from->n_seconds; i++) {
		struct load_second *row = &into->second[into->n_seconds++];
		*row = from->second[i];
		row->at_ns += offset_ns;
		row->phase += first_phase;
	}
}

int load_join(struct load_plan *plan, struct load_result *result, const struct load_phase *phase,
    struct load_result *from)
{
	int first = plan->n_phases;
	int rc = first + from->n_phases > LOAD_PHASES_MAX ? WEIR_EINVAL
							  : grow(result, (size_t)first, from);

	if (rc != 0) {
		load_result_fini(from);
		return rc;
	}
	take_totals(result, from);
	move_phases(plan, result, phase, from);
	move_seconds(result, from, first);
	load_judge(plan, result);
	free(from->phase); /* its histograms now belong to `result` */
	free(from->second);
	memset(from, 0, sizeof(*from));
	return 0;
}
