/* SPDX-License-Identifier: MIT */
/*
 * Takes the next batch of a core: looks at the queues that may have events for it, chooses a stage,
 * and takes events from its cell and from its queue. See cores.h.
 */
#include "base/clock.h"
#include "sched/cores.h"
#include "sched/handler.h"
#include "sched/next_quick.h"
#include "sched/serial.h"
#include "stage/cohort.h"
#include "stage/stage.h"

/* The queue of stage `i` looks empty: stop looking at it. */
static void settle(struct core_group *group, int i)
{
	uint64_t bit = 1ULL << i;

	/* seq_cst: see cores.h */
	atomic_fetch_and(&group->arrived, ~bit);
	if (atomic_load(&group->pool->sinks[i]->queue.length) == 0)
		return;
	atomic_fetch_or(&group->arrived, bit);
	/* a core may have parked in between; this one may visit another stage first */
	if (group->pool->sinks[i]->queue.n_parts > 1)
		pool_wake_parts(group->pool, ~0ULL);
	else
		pool_wake(group->pool);
}

/* Whether the batch of stage `i` lingers and is not due. */
static bool lingers(const struct handler *h, int i, int64_t now_ns)
{
	const struct sink *s = h->pool->sinks[i];

	return WEIR_UNLIKELY(h->ready_ns[i] != INT64_MAX) && h->ready_ns[i] > now_ns &&
	       queue_length(&s->queue) <
		   (uint32_t)atomic_load_explicit(&s->cohort_max, memory_order_relaxed);
}

/* Do not wait for batches of stages without a bit in `arrived`: another core took the events. */
static void linger_only_for(struct handler *h, uint64_t arrived)
{
	struct core *core = h->core;

	for (uint64_t left = core->lingering & ~arrived; left; left &= left - 1)
		h->ready_ns[__builtin_ctzll(left)] = INT64_MAX;
	core->lingering &= arrived;
}

/* Note in seen_ns how old the events in the queue of stage `i` are. The queue is not empty. */
static void look_at_age(struct core *core, int i, const struct queue *q, int64_t now_ns)
{
	int64_t oldest_ns = atomic_load_explicit(&q->oldest_ns, memory_order_relaxed);

	if (q->dated) /* another core may have taken the events since */
		core->seen_ns[i] = oldest_ns < now_ns ? oldest_ns : now_ns;
	else if (!(core->seen >> i & 1))
		core->seen_ns[i] = now_ns;
}

/* Whether all events of `q`, the queue of a serial stage, are in the inboxes of other cores. */
static bool is_others(const struct handler *h, const struct queue *q)
{
	return queue_length(q) > 0 && queue_part_length(q, h->rank) == 0;
}

/* Return the stages, of those in `arrived`, whose queues have events for this core. */
static __attribute__((noinline)) uint64_t find_queued(
    struct handler *h, uint64_t arrived, int64_t now_ns)
{
	struct core *core = h->core;
	uint64_t queued = 0;

	handler_relinger(h);
	linger_only_for(h, arrived);
	for (uint64_t left = arrived; left; left &= left - 1) {
		int i = __builtin_ctzll(left);
		struct queue *q = &h->pool->sinks[i]->queue;
		if (WEIR_UNLIKELY(q->map) && is_others(h, q)) {
			h->ready_ns[i] = INT64_MAX;
			continue;
		}
		if (queue_length(q) == 0) {
			h->ready_ns[i] = INT64_MAX; /* another core took the events */
			settle(core->group, i);
		} else if (queue_ready(q) > 0 && core_has_own(core, q) && !lingers(h, i, now_ns)) {
			look_at_age(core, i, q, now_ns);
			queued |= 1ULL << i;
		}
	}
	return queued;
}

/* Return the stages whose queues may have events for this core. */
static inline uint64_t look_at_queues(struct handler *h, int64_t now_ns)
{
	struct core *core = h->core;
	uint64_t arrived = atomic_load_explicit(&core->group->arrived, memory_order_relaxed);

	arrived &= ~core->barred;
	core->seen = arrived | core->lingering ? find_queued(h, arrived, now_ns) : 0;
	return core->seen;
}

static void view_stage(struct handler *h, int i, bool queued)
{
	struct core *core = h->core;
	const struct sink *s = h->pool->sinks[i];
	const struct cell *cell = &core->cell[i];
	struct next_stage *v = &core->view[i];

	v->length = cell_length(cell);
	v->oldest_ns = cell_oldest_ns(cell);
	if (!queued)
		return;
	v->length += s->queue.map ? queue_part_length(&s->queue, h->rank)
				  : queue_length(&s->queue) / (uint32_t)pool_seats(h->pool) + 1;
	if (core->seen_ns[i] < v->oldest_ns)
		v->oldest_ns = core->seen_ns[i];
}

/* Note how long the oldest of ev[0..n) has waited, which come from the cell or the queue of stage `i`;
 * n > 0. */
static inline void note_wait(
    struct core *core, int i, struct weir_event **ev, int n, int64_t now_ns)
{
	int64_t oldest_ns = ev[0]->queued_ns;

	if (WEIR_UNLIKELY(core->mixed >> i & 1))
		for (int k = 1; k < n; k++)
			oldest_ns = ev[k]->queued_ns < oldest_ns ? ev[k]->queued_ns : oldest_ns;
	longest_note(&core->book[i].longest, now_ns - oldest_ns);
}

/* Append at most `most` events of cell `i`, which is not empty, to the `n` of the batch. */
static inline __attribute__((always_inline)) int take_own(
    struct handler *h, int i, int n, int most, int64_t now_ns)
{
	struct core *core = h->core;
	struct sink *s = h->pool->sinks[i];
	struct cell *cell = &core->cell[i];
	int m = cell_take(cell, most, s->queue.fifo, h->batch + n);

	book_add(&core->book[i].from_cell, (uint64_t)m);
	note_wait(core, i, h->batch + n, m, now_ns);
	core->n -= (uint32_t)m;
	if (cell_length(cell) == 0)
		core->filled &= ~(1ULL << i);
	h->sink = s;
	h->n_batch = n + m;
	return m;
}

static int take_cell(struct handler *h, int i, int n, int most, int64_t now_ns)
{
	return most <= n || !bits_has(h->core->filled, i) ? 0 : take_own(h, i, n, most - n, now_ns);
}

/* Whether a batch of the stage must be either from its cell or from its queue: events of a stage
 * that holds events are counted when they are taken from its queue, and so must not be mixed with
 * those of a cell. */
static bool is_apart(const struct sink *s)
{
	return queue_keeps(&s->queue) || s->cohort_by_key;
}

static int take_queue(
    struct handler *h, int i, int n, int most, const struct cell *cell, int64_t now_ns)
{
	struct core *core = h->core;
	const struct sink *s = h->pool->sinks[i];

	if (most <= n || (n > 0 && is_apart(s)))
		return 0;
	int m = batch_take(h, i, n, most - n, cell, now_ns);
	if (WEIR_UNLIKELY(h->ready_ns[i] != INT64_MAX)) {
		core->lingering |= 1ULL << i;
		core->replaced &= ~(1ULL << i);
	}
	if (m > 0) {
		book_add(&core->book[i].from_queue, (uint64_t)m);
		note_wait(core, i, h->batch + n, m, now_ns);
	}
	if (m > 0 && !s->queue.dated && s->queue.n_classes == 1 && !s->queue.shortest)
		core->seen_ns[i] = h->batch[n + m - 1]->queued_ns;
	return m;
}

/* Take a batch of stage `i`: from the cell and from the queue, the higher class first, and then the
 * older. Returns its size. */
static int take_stage(struct handler *h, int i, uint32_t gate, bool queued, int64_t now_ns)
{
	struct core *core = h->core;
	int largest = cohort_largest(h->pool->sinks[i]);
	int most = gate < (uint32_t)largest ? (int)gate : largest, n = 0;

	h->part = 0;
	if (!queued)
		return take_cell(h, i, 0, most, now_ns);
	const struct queue *q = &h->pool->sinks[i]->queue;
	bool apart = is_apart(h->pool->sinks[i]);
	bool classed =
	    q->n_classes > 1 && !q->fifo && core->filled >> i & 1 && !apart && !q->shortest;
	/* for serial stages, see serial.h */
	bool cell_first =
	    q->map || (!classed && cell_oldest_ns(&core->cell[i]) <= core->seen_ns[i]);
	if (cell_first)
		n += take_cell(h, i, n, most, now_ns);
	n += take_queue(h, i, n, most, classed ? &core->cell[i] : NULL, now_ns);
	if (!cell_first && (n == 0 || !apart))
		n += take_cell(h, i, n, most, now_ns);
	return n;
}

/* Likewise, without a gate. */
static inline int take_any(struct handler *h, int i, bool queued, int64_t now_ns)
{
	if (queued)
		return take_stage(h, i, UINT32_MAX, true, now_ns);
	h->part = 0;
	return take_own(h, i, 0, cohort_largest(h->pool->sinks[i]), now_ns);
}

static void view_stages(struct handler *h, uint64_t ready, uint64_t queued)
{
	for (uint64_t left = ready; left; left &= left - 1) {
		int i = bits_lowest(left);
		view_stage(h, i, bits_has(queued, i));
	}
}

/* A new visit has begun. `was` is the stage of the visit before, if that had not ended, or -1. */
static void note_visit(struct core *core, const struct next_choice *c, int was, uint64_t ready)
{
	book_add(&core->book[c->stage].visits[c->why], 1);
	if (was >= 0 && ready >> was & 1 && !(c->why == NEXT_URGENT && was == c->stage))
		book_add(&core->book[was].cut[c->why], 1);
}

/* Take a batch of the stage that next_choose chooses. Returns its size. */
static __attribute__((noinline)) int take_chosen(struct handler *h, uint64_t queued, int64_t now_ns)
{
	struct core *core = h->core;
	struct next_view *view = &core->sight;

	view_stages(h, view->ready, queued);
	for (;;) {
		const struct next_core *next = &core->next;
		int was = next->visit.open && !next->urgent.open ? next->visit.stage : -1;
		struct next_choice c = next_choose(&core->next, &core->plan.limits, view);
		if (c.stage < 0) {
			core->replaced = 0;
			return 0;
		}
		uint32_t before = core->n;
		int n = take_stage(h, c.stage, c.max, bits_has(queued, c.stage), now_ns);
		next_took(&core->next, c.stage, (uint32_t)n, before - core->n);
		if (n > 0) {
			if (c.begins)
				note_visit(core, &c, was, view->ready);
			return n;
		}
		view->ready &= ~(1ULL << c.stage); /* another core took the events */
	}
}

WEIR_HOT int core_take(struct handler *h, int64_t now_ns)
{
	struct core *core = h->core;
	struct core_group *group = core->group;
	struct next_view *view = &core->sight;

	h->expired = false;
	if (WEIR_UNLIKELY(group->expiring & ~core->barred) && batch_take_expired(h, now_ns) > 0)
		return h->n_batch;
	if (WEIR_UNLIKELY(atomic_load_explicit(&core->asked, memory_order_relaxed))) {
		thread_touch(now_ns);
		core_answer(core);
		core_stop(core);
	}
	core_refresh(core);
	uint64_t queued = look_at_queues(h, now_ns);
	view->now_ns = now_ns;
	view->ready =
	    (core->filled | queued) & ~atomic_load_explicit(&group->halted, memory_order_relaxed);
	bool begins;
	int i = next_quick(&core->next, view, &begins);
	if (WEIR_UNLIKELY(i < 0))
		return take_chosen(h, queued, now_ns);
	uint32_t before = core->n;
	int n = take_any(h, i, bits_has(queued, i), now_ns);
	if (WEIR_UNLIKELY(n == 0)) { /* another core took the events */
		next_took(&core->next, i, 0, 0);
		view->ready &= ~(1ULL << i);
		return take_chosen(h, queued, now_ns);
	}
	if (core->n != before)
		next_gave(&core->next, i, before - core->n);
	if (begins)
		book_add(&core->book[i].visits[NEXT_POLICY], 1);
	return n;
}
