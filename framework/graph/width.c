/* SPDX-License-Identifier: MIT */
/*
 * Runs width policies. A stage that holds events (WEIR_STAGE_HOLDS) has a widener, unless its
 * policy is static. The control thread runs the widener's policy each round and writes the
 * resulting width to the queue of the stage.
 *
 * The operator's width.min and width.max bound the width. A widener is allocated and freed with its
 * stage. Its state has a lock, since views describe it and a reload copies it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "control/control.h"
#include "control/width.h"
#include "event/local.h"
#include "graph/graph.h"
#include "sched/pool.h"

struct widener {
	const struct width_policy *policy;
	struct lock lock; /* a leaf lock; guards `state` */
	_Alignas(16) unsigned char state[WIDTH_STATE_MAX];
};

static int clamp(const struct weir_stage *st, int width)
{
	int min = atomic_load(&st->width_min), max = atomic_load(&st->width_max);

	width = width < min ? min : width;
	return width > max ? max : width;
}

/* Change the width. If it grows, the threads of the stage look for events again. */
static void set(struct weir_stage *st, int width)
{
	int was = atomic_load(&st->sink.queue.width);

	queue_set_width(&st->sink.queue, width);
	if (width > was && st->pool)
		pool_wake_all(st->pool);
}

static void store_bounds(struct weir_stage *st)
{
	int64_t min = st->spec->width.min, max = weir_spec_width_max(st->spec);

	atomic_store(&st->width_max, (int)max);
	atomic_store(&st->width_min, (int)(min < max ? min : max));
}

int graph_width_new(struct weir_stage *st)
{
	const struct width_policy *policy;

	if (!stage_has_width(st))
		return 0;
	policy = width_find(st->spec->width.policy);
	store_bounds(st);
	queue_set_width(&st->sink.queue,
	    policy == &width_static ? atomic_load(&st->width_max) : clamp(st, WIDTH_FIRST));
	if (policy == &width_static)
		return 0;
	st->widener = aligned_alloc(_Alignof(struct widener), sizeof(*st->widener));
	if (!st->widener)
		return WEIR_ENOMEM;
	memset(st->widener, 0, sizeof(*st->widener));
	st->widener->policy = policy;
	lock_init(&st->widener->lock);
	return 0;
}

void graph_width_free(struct weir_stage *st)
{
	if (st->widener)
		lock_fini(&st->widener->lock);
	free(st->widener);
	st->widener = NULL;
}

/* The journal's entry about the change of the width of `st` to `to`. */
static struct weir_decision decision(const struct weir_stage *st, int from, int to)
{
	struct weir_decision d = {.from = from, .to = to};
	int min = atomic_load(&st->width_min), max = atomic_load(&st->width_max);

	snprintf(d.stage, sizeof(d.stage), "%s", st->name);
	snprintf(d.actor, sizeof(d.actor), "%s", st->spec->width.policy);
	snprintf(d.action, sizeof(d.action), "width");
	if (to == max)
		snprintf(d.limit, sizeof(d.limit), "max %d", max);
	else if (to == min)
		snprintf(d.limit, sizeof(d.limit), "min %d", min);
	return d;
}

/* Record in the journal that new bounds have changed the width from `was` to `width`. */
static void note_bound(const struct weir_stage *st, int was, int width)
{
	const struct queue *q = &st->sink.queue;
	bool max = width < was || !st->widener;

	if (width == was)
		return;
	struct weir_decision d = decision(st, was, width);
	snprintf(d.rule, sizeof(d.rule), "width.%s is %d now", max ? "max" : "min", width);
	snprintf(d.inputs, sizeof(d.inputs), "queue=%u in work=%llu", queue_length(q),
	    (unsigned long long)queue_kept_all(q));
	journal_add(control_journal(st->graph->control), d);
}

void graph_width_bound(struct weir_stage *st)
{
	if (!stage_has_width(st))
		return;
	store_bounds(st);
	int was = atomic_load(&st->sink.queue.width);
	int width = st->widener ? clamp(st, was) : atomic_load(&st->width_max);
	if (width != was)
		set(st, width);
	note_bound(st, was, width);
}

void graph_width_carry(struct weir_stage *st, struct weir_stage *old)
{
	struct widener *w = st->widener, *from = old->widener;
	int was = atomic_load(&old->sink.queue.width);
	int width = w ? clamp(st, was) : atomic_load(&st->width_max);

	if (!w != !from || (w && w->policy != from->policy))
		return;
	if (w) {
		lock_take(&from->lock);
		memcpy(w->state, from->state, sizeof(w->state));
		lock_release(&from->lock);
		if (w->policy->restart)
			w->policy->restart(w->state);
		set(st, width);
	}
	note_bound(st, was, width);
}

void graph_width_explain(struct weir_stage *st, char *text, size_t size)
{
	struct widener *w = st->widener;

	text[0] = '\0';
	if (!w || !w->policy->explain)
		return;
	lock_take(&w->lock);
	w->policy->explain(w->state, text, size);
	lock_release(&w->lock);
}

static void add_totals(
    struct width_view *v, const struct book *b, const struct time_book *times, int n_classes)
{
	v->refused += book_read(&b->refusals);
	v->ended -= book_read(&b->expired);
	v->service_ns -= book_read(&b->expired_ns);
	for (int c = 0; c < n_classes; c++) {
		v->ended += book_read(&b->class_book[c].handled);
		v->service_ns += times ? book_read(&times[c].service.sum_ns) : 0;
	}
}

void graph_width_look(struct weir_graph *g, const struct weir_stage *st, struct width_view *v)
{
	const struct queue *q = &st->sink.queue;

	*v = (struct width_view){.width = atomic_load(&q->width),
	    .min = atomic_load(&st->width_min),
	    .max = atomic_load(&st->width_max),
	    .in_work = (int)queue_kept_all(q),
	    .queue_length = queue_length(q)};
	lock_take(&g->threads_lock);
	add_totals(v, &g->gone[st->id].book, g->gone[st->id].times, g->n_classes);
	for (const struct local *l = g->gone[st->id].books; l; l = l->next)
		add_totals(v, &l->book, l->times, g->n_classes);
	lock_release(&g->threads_lock);
}

static void note(const struct weir_stage *st, const struct width_view *v,
    const struct width_decision *want, struct journal *journal)
{
	struct weir_decision d = decision(st, v->width, want->target);

	snprintf(d.rule, sizeof(d.rule), "%s", want->rule);
	snprintf(d.inputs, sizeof(d.inputs), "queue=%u in work=%d ended=%llu refused=%llu",
	    v->queue_length, v->in_work, (unsigned long long)v->ended,
	    (unsigned long long)v->refused);
	journal_add(journal, d);
}

static void widen(
    struct weir_graph *g, struct weir_stage *st, int64_t now_ns, struct journal *journal)
{
	struct widener *w = st->widener;
	struct width_decision want = {0};
	struct width_view v;

	graph_width_look(g, st, &v);
	lock_take(&w->lock);
	bool moves = w->policy->decide(w->state, &v, now_ns, &want);
	lock_release(&w->lock);
	if (!moves)
		return;
	want.width = clamp(st, want.width);
	want.target = clamp(st, want.target);
	if (want.width != v.width)
		set(st, want.width);
	if (want.rule[0] && want.target != v.width)
		note(st, &v, &want, journal);
}

void graph_width(struct weir_graph *g, int64_t now_ns, struct journal *journal)
{
	for (int i = 0; i < g->n_stages; i++) {
		struct weir_stage *st = g->stages[i];
		/* nothing can be learned from a pause */
		if (st->widener && !queue_paused(&st->sink.queue))
			widen(g, st, now_ns, journal);
	}
}
