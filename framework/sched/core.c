/* SPDX-License-Identifier: MIT */
/*
 * Runs the thread of a core: it chooses a stage that has events in its cell or in its queue, takes a
 * batch from both, runs the handler, and sends the emitted events. See cores.h.
 *
 * The time is read at the end of each batch (stage_run), and not again before the next one.
 */
#include <sched.h>

#include "base/clock.h"
#include "sched/cores.h"
#include "sched/handler.h"
#include "sched/serial.h"
#include "stage/cohort.h"
#include "stage/replica.h"
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

/* Whether the queue, which is not empty, has events for the copy to which the core belongs. */
static bool has_own(const struct core *core, const struct queue *q)
{
	return WEIR_LIKELY(q->copy_cores == 0) || queue_copy_length(q, core_copy(core)) > 0;
}

/* Whether all events of `q`, the queue of a serial stage, are in the inboxes of other cores. */
static bool is_others(const struct handler *h, const struct queue *q)
{
	return queue_length(q) > 0 && queue_part_length(q, h->rank) == 0;
}

/* Return the stages whose queues may have events for this core. */
static uint64_t look_at_queues(struct handler *h, int64_t now_ns)
{
	struct core *core = h->core;
	uint64_t arrived = atomic_load_explicit(&core->group->arrived, memory_order_relaxed);
	uint64_t queued = 0;

	arrived &= ~core->barred;
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
		} else if (queue_ready(q) > 0 && has_own(core, q) && !lingers(h, i, now_ns)) {
			look_at_age(core, i, q, now_ns);
			queued |= 1ULL << i;
		}
	}
	core->seen = queued;
	return queued;
}

static void view_stage(struct handler *h, int i, bool queued)
{
	struct core *core = h->core;
	const struct sink *s = h->pool->sinks[i];
	const struct local *l = thread_self()->local[s->id];
	const struct cell *cell = &core->cell[i];
	struct next_stage *v = &core->view[i];

	v->length = cell_length(cell);
	v->oldest_ns = cell_oldest_ns(cell);
	v->service_ns = l->service_ns > 0 ? l->service_ns : 0;
	v->rest_ns = core->plan.rest_ns[i];
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

static int take_cell(struct handler *h, int i, int n, int most, int64_t now_ns)
{
	struct core *core = h->core;
	struct sink *s = h->pool->sinks[i];
	struct cell *cell = &core->cell[i];

	if (most <= n || !(core->filled >> i & 1))
		return 0;
	int m = cell_take(cell, most - n, s->queue.fifo, h->batch + n);
	book_add(&core->book[i].from_cell, (uint64_t)m);
	note_wait(core, i, h->batch + n, m, now_ns);
	core->n -= (uint32_t)m;
	if (cell_length(cell) == 0)
		core->filled &= ~(1ULL << i);
	h->sink = s;
	h->n_batch = n + m;
	return m;
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
	if (WEIR_UNLIKELY(h->ready_ns[i] != INT64_MAX))
		core->lingering |= 1ULL << i;
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

static void turn_window(struct core *core, unsigned window)
{
	unsigned was = atomic_load_explicit(&core->window, memory_order_relaxed);

	if (window == was)
		return;
	for (int i = 0; i < core->group->n_stages; i++)
		longest_turn(&core->book[i].longest, window - was);
	atomic_store_explicit(&core->window, window, memory_order_relaxed);
}

/* Take over the plan of the group, which has changed. */
static __attribute__((noinline)) void take_plan(struct core *core)
{
	struct core_group *group = core->group;

	lock_take(&group->lock);
	core->plan = group->plan;
	core->version = atomic_load_explicit(&group->version, memory_order_relaxed);
	lock_release(&group->lock);
	const struct next_limits *l = &core->plan.limits;
	thread_self()->slice.ns = l->gate == NEXT_CUTOFF ? l->gate_ns : 0;
	if (core->next.policy != core->plan.policy)
		core_renew(core);
	turn_window(core, core->plan.window);
}

static inline void refresh(struct core *core)
{
	/* acquire: pairs with cores_set */
	if (WEIR_UNLIKELY(
		atomic_load_explicit(&core->group->version, memory_order_acquire) != core->version))
		take_plan(core);
}

/* A new visit has begun. `was` is the stage of the visit before, if that had not ended, or -1. */
static void note_visit(struct core *core, const struct next_choice *c, int was, uint64_t ready)
{
	book_add(&core->book[c->stage].visits[c->why], 1);
	if (was >= 0 && ready >> was & 1 && !(c->why == NEXT_URGENT && was == c->stage))
		book_add(&core->book[was].cut[c->why], 1);
}

int core_take(struct handler *h, int64_t now_ns)
{
	struct core *core = h->core;
	struct core_group *group = core->group;
	struct next_view view = {.n = group->n_stages,
	    .stage = core->view,
	    .order = &core->plan.order,
	    .now_ns = now_ns};

	h->expired = false;
	if (WEIR_UNLIKELY(group->expiring & ~core->barred) && batch_take_expired(h, now_ns) > 0)
		return h->n_batch;
	if (WEIR_UNLIKELY(atomic_load_explicit(&core->asked, memory_order_relaxed))) {
		core_answer(core);
		core_stop(core);
	}
	refresh(core);
	uint64_t queued = look_at_queues(h, now_ns);
	view.ready =
	    (core->filled | queued) & ~atomic_load_explicit(&group->halted, memory_order_relaxed);
	for (uint64_t left = view.ready; left; left &= left - 1) {
		int i = __builtin_ctzll(left);
		view_stage(h, i, queued >> i & 1);
	}
	for (;;) {
		const struct next_core *next = &core->next;
		int was = next->visit.open && !next->urgent.open ? next->visit.stage : -1;
		struct next_choice c = next_choose(&core->next, &core->plan.limits, &view);
		if (c.stage < 0)
			return 0;
		uint32_t before = core->n;
		int n = take_stage(h, c.stage, c.max, queued >> c.stage & 1, now_ns);
		next_took(&core->next, c.stage, (uint32_t)n, before - core->n);
		if (n > 0) {
			if (c.begins)
				note_visit(core, &c, was, view.ready);
			return n;
		}
		view.ready &= ~(1ULL << c.stage); /* another core took the events */
	}
}

/* Let an idle core take part: in what waits in queues, and in what waits in the cells. */
static void share(struct handler *h)
{
	struct core *core = h->core;

	if (core->filled && core_idles(core))
		core_deal(core);
	for (uint64_t left = core->seen; left; left &= left - 1) {
		struct queue *q = &h->pool->sinks[__builtin_ctzll(left)]->queue;
		if (WEIR_UNLIKELY(q->copy_cores > 1) && has_own(core, q)) {
			pool_wake_parts(h->pool, 1ULL << core_copy(core));
			return;
		}
		/* of several partitions, the core that would be woken may serve none */
		if (q->n_parts == 1 && queue_due(q, 0, 1, 1)) {
			pool_wake(h->pool);
			return;
		}
	}
}

/* Number of events of the queue that the core may take. */
static uint32_t in_line(const struct core *core, const struct queue *q)
{
	if (q->map)
		return queue_part_length(q, core->number);
	return q->copy_cores ? queue_copy_length(q, core_copy(core)) : queue_length(q);
}

/* Events of the batch have yielded and are in the queue of their stage, `i`, again: the visit goes
 * on only with the events before them. */
static void yielded(struct core *core, int i)
{
	struct slice *s = &thread_self()->slice;
	uint32_t n = s->yielded, waiting = cell_length(&core->cell[i]);

	waiting += in_line(core, &core->group->pool->sinks[i]->queue);
	s->yielded = 0;
	next_yielded(&core->next, waiting > n ? waiting - n : 0, s->again_ns);
}

int64_t core_run(struct handler *h, int64_t taken_ns)
{
	struct thread *t = thread_self();
	int i = h->sink->place;
	struct core_book *book = &h->core->book[i];

	handler_state(h, WEIR_THREAD_BUSY);
	/* seq_cst: a core that parks after this has seen the queues itself */
	if (core_idles(h->core) || atomic_load(&h->pool->n_idle) > 0)
		share(h);
	book_add(&book->batches, 1);
	batch_run(h);
	/* if all events were dropped, no handler ran, and stage_run has not read the time */
	if (WEIR_UNLIKELY(t->now_ns == taken_ns))
		t->now_ns = clock_now_ns();
	if (WEIR_UNLIKELY(t->slice.yielded > 0))
		yielded(h->core, i);
	book_add(&book->busy_ns, (uint64_t)(t->now_ns - taken_ns));
	/* not before, since slots of the batch must not move */
	if (WEIR_UNLIKELY(h->core->group->serial != NULL) && !h->core->stands_in &&
	    core_idles(h->core))
		serial_deal(h->core);
	handler_state(h, WEIR_THREAD_SPINNING);
	return t->now_ns;
}

bool core_due(struct handler *h)
{
	struct core_group *group = h->core->group;

	/* seq_cst: see cores.h */
	if (h->core->filled & ~atomic_load(&group->halted) || atomic_load(&h->core->asked))
		return true;
	uint64_t left = (atomic_load(&group->arrived) | group->expiring) & ~h->core->barred;
	for (; left; left &= left - 1)
		if (batch_due(h, __builtin_ctzll(left)))
			return true;
	return false;
}

void core_pin(const struct handler *h)
{
	const struct core_group *group = h->core->group;
	cpu_set_t one;

	int number = handler_number(h);
	if (!group->cpu) {
		handler_pin((group->first + number) % task_cores());
		return;
	}
	CPU_ZERO(&one);
	CPU_SET(group->cpu[number], &one);
	sched_setaffinity(0, sizeof(one), &one);
}

/* Return the stages whose batches may have a later event before an earlier one. */
static uint64_t mixed_stages(const struct core_group *group)
{
	uint64_t mixed = 0;

	for (int i = 0; i < group->n_stages; i++) {
		const struct queue *q = &group->pool->sinks[i]->queue;
		if (q->n_classes > 1 || group->newest || q->shortest)
			mixed |= 1ULL << i;
	}
	return mixed;
}

void core_begin(struct handler *h)
{
	struct core_group *group = h->pool->cores;
	bool stands_in = h->rank >= group->max;
	struct core *core = stands_in ? atomic_load(&group->watched[handler_number(h)].spare)
				      : &group->core[h->rank];

	h->core = core;
	/* Senders wake no other thread while one spins, and a spare may not take all events. */
	if (stands_in)
		h->spin_ns = 0;
	core_pin(h);
	core->seen = 0;
	core->mixed = mixed_stages(group);
	core->version = atomic_load(&group->version) - 1;
	core->next.policy = NULL; /* the state of the last thread is not continued */
	refresh(core);
	if (group->serial && !stands_in)
		serial_join(core);
	thread_self()->core = core;
	thread_self()->copy = core_copy(core);
}

void *core_main(void *arg)
{
	struct handler *h = arg;

	replica_enter(h->rank); /* before thread_init */
	if (!handler_begin(h))
		return NULL;
	core_begin(h);
	int64_t now_ns = clock_now_ns();
	pthread_cleanup_push(handler_leave, h);
	while (!handler_surplus(h)) {
		thread_touch(now_ns);
		if (core_take(h, now_ns) > 0) {
			now_ns = core_run(h, now_ns);
			continue;
		}
		if (!handler_spin(h))
			handler_park(h);
		now_ns = clock_now_ns();
	}
	pthread_cleanup_pop(1);
	return NULL;
}
