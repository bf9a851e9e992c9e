/* SPDX-License-Identifier: MIT */
/* Checks what is behind sources whose loops have a limit of clients (ops->per_loop). */
#include "plan/plan.h"

#include <stdio.h>
#include <stdlib.h>

/* Whether events wait for threads of the stage itself. */
static bool has_threads(const struct plan_stage *ps)
{
	return !ps->spec->inlined || !ps->ops || ps->ops->flags & WEIR_STAGE_HOLDS;
}

/* Whether stage `i` sends its events in threads of its own, other than loops that have one client
 * each. */
static bool sends_shared(const struct plan *p, int i)
{
	const struct plan_stage *ps = &p->stages[i];

	if (ps->ops && ps->ops->flags & WEIR_STAGE_SOURCE)
		return ps->per_loop != 1;
	return has_threads(ps);
}

/* Whether stage `i`, or an inline stage downstream of it, sends to `ps`. */
static bool calls(const struct plan *p, int i, const struct plan_stage *ps, bool *seen)
{
	for (int o = 0; o < p->stages[i].n_outlets; o++) {
		int to = p->stages[i].outlets[o].to;
		if (to < 0 || seen[to])
			continue;
		seen[to] = true;
		if (&p->stages[to] == ps)
			return true;
		if (!has_threads(&p->stages[to]) && calls(p, to, ps, seen))
			return true;
	}
	return false;
}

/* Return a stage in whose threads the inline stage `ps` would block others, a source if there is
 * one; NULL if there is none. */
static const struct plan_stage *find_caller(const struct plan *p, const struct plan_stage *ps)
{
	const struct plan_stage *found = NULL;

	for (int i = 0; i < p->n; i++) {
		bool source = p->stages[i].ops && p->stages[i].ops->flags & WEIR_STAGE_SOURCE;
		if (!sends_shared(p, i) || (found && !source))
			continue;
		bool *seen = calloc((size_t)p->n, sizeof(*seen));
		if (!seen || calls(p, i, ps, seen)) /* without memory, it may */
			found = &p->stages[i];
		free(seen);
	}
	return found;
}

bool plan_may_block(const struct plan *p, const struct plan_stage *ps, char *why, size_t size)
{
	const struct plan_stage *caller = has_threads(ps) ? ps : find_caller(p, ps);

	if (!caller)
		return true;
	if (caller->ops && caller->ops->per_loop && caller->group < 0)
		snprintf(why, size,
		    "remove 'threads: inline', or write 'per_thread: 1' at '%.32s': its handler "
		    "may block, and other clients of the thread would wait",
		    caller->spec->name);
	else
		snprintf(why, size,
		    "remove 'threads: inline': its handler may block, and would block the threads "
		    "of '%.64s'",
		    caller->spec->name);
	return false;
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
			plan_warn(plan_with_mark(p->stages[i].spec, "per_thread"),
			    "stage '%s' has 'per_thread', but stage '%s' behind it has threads and "
			    "a queue: an I/O thread then takes no other client while its event "
			    "waits "
			    "there; write 'threads: inline' there, or remove 'per_thread'",
			    p->stages[i].spec->name, p->stages[to].spec->name);
		free(seen);
	}
}
