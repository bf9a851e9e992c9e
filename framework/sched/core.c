/* SPDX-License-Identifier: MIT */
/*
 * Runs the thread of a core: it takes a batch (core_take.c), runs the handler, and sends the emitted
 * events. See cores.h.
 *
 * The time is read at the end of each batch (stage_run), and not again before the next one.
 */
#include <sched.h>

#include "base/clock.h"
#include "sched/cores.h"
#include "sched/handler.h"
#include "sched/serial.h"
#include "stage/replica.h"
#include "stage/stage.h"

static void turn_window(struct core *core, unsigned window)
{
	unsigned was = atomic_load_explicit(&core->window, memory_order_relaxed);

	if (window == was)
		return;
	for (int i = 0; i < core->group->n_stages; i++)
		longest_turn(&core->book[i].longest, window - was);
	atomic_store_explicit(&core->window, window, memory_order_relaxed);
}

void core_take_plan(struct core *core)
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
	next_adapt(&core->next, l);
	turn_window(core, core->plan.window);
}

/* Let an idle core take part: in what waits in queues, and in what waits in the cells. A batch that
 * lingers may become due during the present one, so another core must wait for it, too. */
static void share(struct handler *h)
{
	struct core *core = h->core;
	uint64_t lingering = core->lingering & ~core->replaced;

	if (core->filled && core_idles(core))
		core_deal(core);
	core->replaced |= lingering;
	for (uint64_t left = core->seen | lingering; left; left &= left - 1) {
		struct queue *q = &h->pool->sinks[__builtin_ctzll(left)]->queue;
		if (WEIR_UNLIKELY(q->copy_cores > 1) && core_has_own(core, q)) {
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

WEIR_HOT int64_t core_run(struct handler *h, int64_t taken_ns)
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
	core->sight = (struct next_view){
	    .n = group->n_stages, .stage = core->view, .order = &core->plan.order};
	core->next.policy = NULL; /* the state of the last thread is not continued */
	core_refresh(core);
	if (group->serial && !stands_in)
		serial_join(core);
	thread_self()->core = core;
	thread_self()->copy = core_copy(core);
}

WEIR_HOT void *core_main(void *arg)
{
	struct handler *h = arg;

	replica_enter(h->rank); /* before thread_init */
	if (!handler_begin(h))
		return NULL;
	core_begin(h);
	int64_t now_ns = clock_now_ns();
	pthread_cleanup_push(handler_leave, h);
	thread_touch(now_ns);
	while (!handler_surplus(h)) {
		if (core_take(h, now_ns) > 0) {
			now_ns = core_run(h, now_ns);
			continue;
		}
		if (!handler_spin(h))
			handler_park(h);
		now_ns = clock_now_ns();
		thread_touch(now_ns);
	}
	pthread_cleanup_pop(1);
	return NULL;
}
