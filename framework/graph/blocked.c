/* SPDX-License-Identifier: MIT */
/*
 * Looks for cores of core groups that sleep in a handler (sched/blocked.h), reports them, and lets spare
 * threads stand in for them (sched/spare.h). Runs in the control thread.
 */
#include <limits.h>
#include <stdio.h>

#include <weir/log.h>

#include "base/asleep.h"
#include "base/clock.h"
#include "control/control.h"
#include "control/journal.h"
#include "event/local.h"
#include "graph/graph.h"
#include "sched/spare.h"

/* Interval of the looks while a core is in a call, and otherwise; at the latest then it is noticed that
 * a core has begun one. Those of the ticks of admission. */
#define LOOK_NS      (10 * NS_PER_MS)
#define LOOK_REST_NS (100 * NS_PER_MS)

/* Age of a call from which on its thread is looked at. The kernel's files are read for it, and batches
 * of short handlers take up to 1 ms. */
#define LONG_NS (1 * NS_PER_MS)

/* Shortest time between two reports of the same core in the journal and the log. A guess. */
#define TELL_NS (10 * NS_PER_S)

/* The time that the thread has been on CPUs or has waited for one. */
static uint64_t ran_ns(struct handler *h)
{
	struct schedstat_sample s = {0};

	if (h)
		schedstat_read(&h->sched, &s);
	return s.cpu_ns + s.runq_ns;
}

static void look_at_thread(const struct thread *t, int64_t now_ns)
{
	struct core_group *group = t->pool ? t->pool->cores : NULL;
	int k = atomic_load(&t->number);
	struct weir_stage *st;

	if (!group || k < 0 || k >= group->max)
		return;
	struct seen *seen = t->spare ? &group->watched[k].stand_in : &group->watched[k].own;
	int rank = t->spare ? group->first_spare + k : k;
	if (!t->spare)
		now_look(group, k, t);
	seen->sight.since_ns = graph_in_call(t, &st);
	seen->stage = st;
	if (seen->sight.since_ns == 0 || now_ns - seen->sight.since_ns < LONG_NS)
		return;
	seen->sight.asleep = asleep(t->tid);
	seen->sight.ran_ns = ran_ns(atomic_load(&t->pool->handler[rank]));
}

static void look(struct weir_graph *g, int64_t now_ns)
{
	for (int i = 0; i < g->n_pools; i++) {
		struct core_group *group = g->pools[i]->cores;
		for (int k = 0; group && k < group->max; k++) {
			struct watched *w = &group->watched[k];
			w->own.sight = w->stand_in.sight = (struct blocked_sight){0};
			now_clear(&w->now);
		}
	}
	lock_take(&g->threads_lock);
	for (const struct thread *t = g->threads; t; t = t->next)
		look_at_thread(t, now_ns);
	lock_release(&g->threads_lock);
}

/* Several sleeps in a call count once: the signal of the watchdog wakes a thread for a moment. */
static void count(const struct core_group *group, struct watched *w)
{
	const struct weir_stage *st = w->own.stage;

	if (w->counted_ns == w->own.blocked.call_ns)
		return;
	w->counted_ns = w->own.blocked.call_ns;
	atomic_fetch_add_explicit(&w->n, 1, memory_order_relaxed);
	if (st->pool == group->pool)
		atomic_fetch_add_explicit(&w->at[st->sink.place], 1, memory_order_relaxed);
}

/* Report that core `k`, or its spare, is blocked. */
static void tell(
    struct weir_graph *g, const struct core_group *group, int k, struct seen *seen, int64_t now_ns)
{
	struct weir_decision d = {0};
	bool spare = seen == &group->watched[k].stand_in;
	int64_t slept_ms = blocked_for_ns(&seen->blocked, now_ns) / NS_PER_MS;
	int ms = slept_ms < INT_MAX ? (int)slept_ms : INT_MAX;
	const char *whose = spare ? "the spare of " : "";

	if (seen->told_ns != 0 && now_ns - seen->told_ns < TELL_NS)
		return;
	seen->told_ns = now_ns;
	d.from = d.to = atomic_load(&group->pool->target);
	snprintf(d.stage, sizeof(d.stage), "%s", group->pool->name);
	snprintf(d.actor, sizeof(d.actor), "watchdog");
	snprintf(d.action, sizeof(d.action), "blocked");
	snprintf(d.rule, sizeof(d.rule),
	    "%score %d has slept for %d ms in a handler of stage '%.20s'", whose, (uint8_t)k, ms,
	    seen->stage->name);
	journal_add(control_journal(g->control), d);
	weir_log(WEIR_LOG_WARN,
	    "group '%s': %score %d has slept for %d ms in a handler of stage '%s' (%s): %s",
	    group->pool->name, whose, k, ms, seen->stage->name, seen->stage->ops->name,
	    spare ? "nothing stands in for a spare, so its core has no thread now"
		  : "the events of its cells wait, and a spare thread serves the queues");
}

/* Let the spare of core `k` run or end, as is needed now. */
static void follow(struct core_group *group, int k, bool changed, int64_t now_ns)
{
	bool blocked = group->watched[k].own.blocked.is;
	bool wanted = k < atomic_load(&group->pool->target) && blocked;

	if (wanted)
		spare_start(group, k, now_ns); /* also again, if the thread has ended */
	else if (changed || blocked)
		spare_stop(group, k);
}

/* Take in what was seen of a thread. Returns when the next look at it is due, and sets *changed to
 * whether it is blocked now or no longer. */
static int64_t take_in(struct seen *seen, bool *changed, int64_t now_ns)
{
	*changed = blocked_look(&seen->blocked, &seen->sight, now_ns);
	int64_t due_ns = blocked_next_ns(&seen->blocked, now_ns);
	if (seen->sight.since_ns != 0 && due_ns > now_ns + LOOK_NS)
		due_ns = now_ns + LOOK_NS;
	return due_ns;
}

/* Take in what was seen of core `k` and its spare. Returns when the next look is due. */
static int64_t judge_core(struct weir_graph *g, struct core_group *group, int k, int64_t now_ns)
{
	struct watched *w = &group->watched[k];
	bool own, spare;
	int64_t due_ns = take_in(&w->own, &own, now_ns);
	int64_t spare_due_ns = take_in(&w->stand_in, &spare, now_ns);

	if (own && w->own.blocked.is) {
		count(group, w);
		tell(g, group, k, &w->own, now_ns);
	}
	if (spare && w->stand_in.blocked.is && w->own.blocked.is)
		tell(g, group, k, &w->stand_in, now_ns);
	now_sleeps(&w->own.sleep, w->own.stage, &w->own.blocked);
	now_sleeps(&w->stand_in.sleep, w->stand_in.stage, &w->stand_in.blocked);
	follow(group, k, own, now_ns);
	return due_ns < spare_due_ns ? due_ns : spare_due_ns;
}

/* Returns when the next look is due. */
static int64_t judge(struct weir_graph *g, struct core_group *group, int64_t now_ns)
{
	int64_t next_ns = now_ns + LOOK_REST_NS;

	for (int k = 0; k < group->max; k++) {
		int64_t due_ns = judge_core(g, group, k, now_ns);
		next_ns = due_ns < next_ns ? due_ns : next_ns;
	}
	return next_ns;
}

int64_t graph_watch_cores(struct weir_graph *g, int64_t now_ns)
{
	int64_t next_ns = INT64_MAX;
	bool any = false;

	for (int i = 0; i < g->n_pools; i++)
		any |= g->pools[i]->cores != NULL;
	if (!any)
		return next_ns;
	look(g, now_ns);
	for (int i = 0; i < g->n_pools; i++) {
		if (!g->pools[i]->cores)
			continue;
		int64_t due_ns = judge(g, g->pools[i]->cores, now_ns);
		next_ns = due_ns < next_ns ? due_ns : next_ns;
	}
	return next_ns;
}
