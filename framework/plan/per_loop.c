/* SPDX-License-Identifier: MIT */
/* Checks what is behind sources whose loops have a limit of clients (ops->per_loop). */
#include "plan/plan.h"

#include <stdlib.h>

#include <weir/log.h>

/* Whether events wait for threads of the stage itself. */
static bool has_threads(const struct plan_stage *ps)
{
	return !ps->spec->inlined || !ps->ops || ps->ops->flags & WEIR_STAGE_HOLDS;
}

/* Whether stage `i` sends its events in other threads than loops that have one client each. `shared` is
 * this for inline stages, as far as it is known. */
static bool sends_shared(const struct plan *p, int i, const bool *shared)
{
	const struct plan_stage *ps = &p->stages[i];

	if (ps->ops && ps->ops->flags & WEIR_STAGE_SOURCE)
		return ps->per_loop != 1;
	return has_threads(ps) || shared[i];
}

/* Find in one pass further inline stages that run in other threads. Returns whether there were any. */
static bool spread(const struct plan *p, bool *shared)
{
	bool any = false;

	for (int i = 0; i < p->n; i++) {
		const struct plan_stage *ps = &p->stages[i];
		for (int o = 0; sends_shared(p, i, shared) && o < ps->n_outlets; o++) {
			int to = ps->outlets[o].to;
			if (to < 0 || shared[to])
				continue;
			shared[to] = any = true;
		}
	}
	return any;
}

static bool is_alone(const struct plan *p, const struct plan_stage *ps)
{
	bool *shared = calloc((size_t)p->n, sizeof(*shared));
	bool alone;

	if (!shared)
		return false;
	while (spread(p, shared))
		continue;
	alone = !shared[ps - p->stages] && !has_threads(ps);
	free(shared);
	return alone;
}

const char *plan_why_not_block(const struct plan *p, const struct plan_stage *ps)
{
	if (is_alone(p, ps))
		return NULL;
	for (int i = 0; i < p->n; i++)
		if (p->stages[i].per_loop > 0)
			return "the handler of the stage may block, and some of its callers are "
			       "not I/O threads with 'per_thread: 1'";
	return "the handler of the stage may block, and would block the caller's thread";
}

/* ---- the warning ---- */

/* Return a stage with threads to which the loops of the stage `i`, or its inline stages, send; -1 if
 * there is none. */
static int find_queue(const struct plan *p, int i, bool *seen)
{
	const struct plan_stage *ps = &p->stages[i];
	int found = -1;

	for (int o = 0; o < ps->n_outlets && found < 0; o++) {
		int to = ps->outlets[o].to;
		if (to < 0 || seen[to])
			continue;
		seen[to] = true;
		found = has_threads(&p->stages[to]) ? to : find_queue(p, to, seen);
	}
	return found;
}

void plan_per_loop_warn(const struct plan *p)
{
	for (int i = 0; i < p->n; i++) {
		bool *seen = p->stages[i].per_loop > 0 ? calloc((size_t)p->n, sizeof(*seen)) : NULL;
		int to = seen ? find_queue(p, i, seen) : -1;
		if (to >= 0)
			weir_log(WEIR_LOG_WARN,
			    "stage '%s' has 'per_thread', but stage '%s' behind it has threads and "
			    "a queue: an I/O thread then takes no other client while its event "
			    "waits "
			    "there; write 'threads: inline' there, or remove 'per_thread'",
			    p->stages[i].spec->name, p->stages[to].spec->name);
		free(seen);
	}
}
