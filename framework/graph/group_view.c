/* SPDX-License-Identifier: MIT */
/* Shows a core group: its settings, and what each core has done, at each stage and at all of them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <weir/knob.h>

#include "base/clock.h"
#include "graph/group.h"
#include "sched/cores.h"

static void view_core(const struct core *core, int place, int64_t now_ns, struct weir_core_view *v)
{
	const struct core_book *b = &core->book[place];
	int64_t oldest_ns = cell_oldest_ns(&core->cell[place]);
	unsigned window = (unsigned)(now_ns / LONGEST_WINDOW_NS);

	v->urgent = book_read(&b->visits[NEXT_URGENT]);
	v->starved = book_read(&b->visits[NEXT_STARVED]);
	v->visits = v->urgent + v->starved + book_read(&b->visits[NEXT_POLICY]);
	v->from_queue = book_read(&b->from_queue);
	v->events = v->from_queue + book_read(&b->from_cell);
	v->dealt = book_read(&b->dealt);
	v->moved = core->cell[place].serial ? book_read(&core->moved) : 0;
	v->waiting = cell_length(&core->cell[place]);
	v->oldest_wait_ns = oldest_ns < now_ns ? now_ns - oldest_ns : 0;
	v->batches = book_read(&b->batches);
	v->busy_ns = book_read(&b->busy_ns);
	v->cut_gate = book_read(&b->cut[NEXT_POLICY]);
	v->cut_urgent = book_read(&b->cut[NEXT_URGENT]);
	v->cut_starved = book_read(&b->cut[NEXT_STARVED]);
	v->longest_wait_ns = longest_read(&b->longest, window - atomic_load(&core->window));
}

/* Add up all but the sleeps, which are of the core as a whole. */
static void add(struct weir_core_view *sum, const struct weir_core_view *v)
{
	sum->visits += v->visits;
	sum->urgent += v->urgent;
	sum->starved += v->starved;
	sum->events += v->events;
	sum->from_queue += v->from_queue;
	sum->dealt += v->dealt;
	if (v->moved > sum->moved) /* each serial stage has the same number */
		sum->moved = v->moved;
	sum->waiting += v->waiting;
	sum->batches += v->batches;
	sum->busy_ns += v->busy_ns;
	sum->cut_gate += v->cut_gate;
	sum->cut_urgent += v->cut_urgent;
	sum->cut_starved += v->cut_starved;
	if (v->oldest_wait_ns > sum->oldest_wait_ns)
		sum->oldest_wait_ns = v->oldest_wait_ns;
	if (v->longest_wait_ns > sum->longest_wait_ns)
		sum->longest_wait_ns = v->longest_wait_ns;
}

/* Show core `k` at stage `st`. What its spare does is shown as its work, but not its time: it works
 * while the core sleeps in a call, and that time is counted already. */
static void view_core_of(
    const struct weir_stage *st, int k, int64_t now_ns, struct weir_core_view *v)
{
	struct core_group *group = st->pool->cores;
	struct watched *w = &group->watched[k];
	const struct core *spare = atomic_load(&w->spare);
	struct weir_core_view stood_in = {0};
	const struct weir_stage *asleep_in;
	int place = st->sink.place;

	view_core(&group->core[k], place, now_ns, v);
	v->busy_ns = now_busy_ns(group, k, place, v->busy_ns, now_ns);
	v->blocked = atomic_load(&w->at[place]);
	int64_t blocked_ns = now_blocked_ns(&w->own.sleep, now_ns, &asleep_in);
	if (asleep_in == st) {
		v->blocked_ns = blocked_ns;
		v->blocked_in = st->name;
	}
	if (!spare)
		return;
	blocked_ns = now_blocked_ns(&w->stand_in.sleep, now_ns, &asleep_in);
	if (asleep_in == st) {
		v->spare_blocked_ns = blocked_ns;
		v->spare_blocked_in = st->name;
	}
	view_core(spare, place, now_ns, &stood_in);
	stood_in.busy_ns = 0;
	add(v, &stood_in);
}

int graph_group_view(const struct weir_stage *st, int64_t now_ns, struct weir_stage_view *v)
{
	const struct pool *pool = st->pool;

	if (!pool || !pool->cores)
		return 0;
	int most = atomic_load(&pool->max), seen = pool->cores->max;
	while (seen > most && !atomic_load(&pool->handler[seen - 1]))
		seen--;
	v->n_cores = most > seen ? most : seen; /* those that left have books, too */
	v->cores = calloc((size_t)v->n_cores, sizeof(*v->cores));
	if (!v->cores)
		return WEIR_ENOMEM;
	for (int k = 0; k < v->n_cores; k++)
		view_core_of(st, k, now_ns, &v->cores[k]);
	return 0;
}

/* ---- whole groups ---- */

static void print_gate(const struct next_limits *l, char *buf, size_t size)
{
	const struct weir_knob row = {.type = WEIR_KNOB_DURATION};
	char time[32];

	weir_knob_print(&row, &l->gate_ns, time, sizeof(time));
	switch (l->gate) {
	case NEXT_ALL:
		snprintf(buf, size, "all");
		break;
	case NEXT_ARRIVED:
		snprintf(buf, size, "arrived: true");
		break;
	case NEXT_EVENTS:
		snprintf(buf, size, "events: %" PRIu32, l->gate_events);
		break;
	case NEXT_TIME:
		snprintf(buf, size, "time: %s", time);
		break;
	case NEXT_CUTOFF:
		snprintf(buf, size, "cutoff: %s", time);
		break;
	}
}

/* The core and its spare may sleep in inline stages. */
static void view_sleep(const struct watched *w, int64_t now_ns, struct weir_core_view *v)
{
	const struct weir_stage *asleep_in;

	v->blocked = atomic_load(&w->n);
	v->blocked_ns = now_blocked_ns(&w->own.sleep, now_ns, &asleep_in);
	v->blocked_in = asleep_in ? asleep_in->name : NULL;
	v->spare_blocked_ns = now_blocked_ns(&w->stand_in.sleep, now_ns, &asleep_in);
	v->spare_blocked_in = asleep_in ? asleep_in->name : NULL;
}

/* The views of all stages, by id, are complete in `view`. */
static int view_group(
    const struct pool *pool, const struct weir_graph_view *view, struct weir_group_view *v)
{
	struct core_group *group = pool->cores;
	struct cores_plan plan;
	int64_t now_ns = clock_now_ns();

	cores_get(group, &plan);
	v->name = pool->name;
	v->schedule = plan.policy->name;
	v->starve_ns = plan.limits.starve_ns;
	v->balance = plan.balance;
	v->newest = group->newest;
	v->cores = atomic_load(&pool->target);
	print_gate(&plan.limits, v->gate, sizeof(v->gate));
	v->core = calloc((size_t)group->max, sizeof(*v->core));
	v->stages = calloc((size_t)group->n_stages + 1, sizeof(*v->stages));
	if (!v->core || !v->stages)
		return WEIR_ENOMEM;
	v->n_stages = group->n_stages;
	for (int i = 0; i < v->n_stages; i++) {
		struct weir_group_stage_view *s = &v->stages[i];
		s->stage = &view->stages[pool->sinks[i]->id];
		s->urgent_events = plan.limits.urgent[i].events;
		s->urgent_wait_ns = plan.limits.urgent[i].wait_ns;
		if (s->stage->n_cores > v->n_cores) /* more may have come since the last stage */
			v->n_cores = s->stage->n_cores;
		for (int k = 0; k < s->stage->n_cores; k++)
			add(&v->core[k], &s->stage->cores[k]);
	}
	for (int k = 0; k < v->n_cores; k++)
		view_sleep(&group->watched[k], now_ns, &v->core[k]);
	return 0;
}

/* Return the source whose loops are the cores of the group, or NULL. */
static const char *source_of(const struct weir_graph *g, const struct pool *pool)
{
	for (int i = 0; i < g->n_stages; i++)
		if (g->stages[i]->host == pool)
			return g->stages[i]->name;
	return NULL;
}

int graph_groups_view(const struct weir_graph *g, struct weir_graph_view *v)
{
	int rc = 0;

	v->groups = calloc((size_t)g->n_pools + 1, sizeof(*v->groups));
	if (!v->groups)
		return WEIR_ENOMEM;
	for (int i = 0; rc == 0 && i < g->n_pools; i++)
		if (g->pools[i]->cores) {
			struct weir_group_view *group = &v->groups[v->n_groups++];
			group->source = source_of(g, g->pools[i]);
			rc = view_group(g->pools[i], v, group);
		}
	return rc;
}

void graph_groups_view_free(struct weir_graph_view *v)
{
	for (int i = 0; v->groups && i < v->n_groups; i++) {
		free(v->groups[i].core);
		free(v->groups[i].stages);
	}
	free(v->groups);
}
