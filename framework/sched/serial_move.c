/* SPDX-License-Identifier: MIT */
/* Moves slots, with the events that wait in them, from one core to another; see serial.h. */
#include "sched/serial.h"

#include <string.h>

#include "base/clock.h"
#include "stage/stage.h"

/* ---- all queue locks ---- */

static void lock_all(struct core_group *group) WEIR_NO_THREAD_SAFETY
{
	for (uint64_t left = group->serial->stages; left; left &= left - 1)
		lock_take(&group->pool->sinks[__builtin_ctzll(left)]->queue.lock);
}

static void unlock_all(struct core_group *group) WEIR_NO_THREAD_SAFETY
{
	for (uint64_t left = group->serial->stages; left; left &= left - 1)
		lock_release(&group->pool->sinks[__builtin_ctzll(left)]->queue.lock);
}

/* ---- a move; all locks are held ---- */

/* Whether slots of core `from` can be moved to `to`; makes room there. `cells`: the cells of core
 * `from`, if the caller is its thread, or NULL. */
static bool may_move(
    struct core_group *group, const struct cell *cells, int from, int to) WEIR_NO_THREAD_SAFETY
{
	if (atomic_load_explicit(&group->serial->state[to], memory_order_relaxed) != SERIAL_OPEN)
		return false;
	for (uint64_t left = group->serial->stages; left; left &= left - 1) {
		int i = __builtin_ctzll(left);
		struct queue *q = &group->pool->sinks[i]->queue;
		uint32_t more = cells ? cell_length(&cells[i]) : 0;
		if (q->closed || queue_reserve_locked(q, from, to, more) != 0)
			return false;
	}
	return true;
}

/* Move the events of the slots in the cell of stage `i` into the inbox of core `to`. */
static uint32_t move_cell(
    struct core *core, int i, int to, const struct slots *slots) WEIR_NO_THREAD_SAFETY
{
	struct weir_event *list, *ev[WEIR_BATCH_MAX];
	uint32_t n = cell_take_slots(&core->cell[i], slots, &list);

	while (list) {
		int m = 0;
		for (; list && m < WEIR_BATCH_MAX; list = list->next)
			ev[m++] = list;
		queue_push_to_locked(&core->group->pool->sinks[i]->queue, ev, m, to);
	}
	if (n == 0)
		return 0;
	core->n -= n;
	if (cell_length(&core->cell[i]) == 0)
		core->filled &= ~(1ULL << i);
	next_gave(&core->next, i, n);
	return n;
}

/* Returns the stages of which events were moved, and adds their number to *n. */
static uint64_t move(struct core_group *group, struct core *core, int from, int to,
    const struct slots *slots, int64_t *n) WEIR_NO_THREAD_SAFETY
{
	uint64_t moved = 0;

	for (uint64_t left = group->serial->stages; left; left &= left - 1) {
		int i = __builtin_ctzll(left);
		struct queue *q = &group->pool->sinks[i]->queue;
		uint32_t m = core ? move_cell(core, i, to, slots) : 0;
		m += queue_move_slots_locked(q, from, to, slots);
		/* events that were given back are not counted, but must be looked at, too */
		if (m > 0 || atomic_load_explicit(&q->n_back, memory_order_relaxed) > 0)
			moved |= 1ULL << i;
		*n += m;
	}
	for (int w = 0; w < QUEUE_SLOTS / 64; w++)
		for (uint64_t left = slots->word[w]; left; left &= left - 1)
			/* release: pairs with serial_owner. After the events, so that the new
			 * core, which looks at the map without a lock, also sees that its
			 * inbox has events (enters in serial.c). */
			atomic_store_explicit(&group->serial->map[w * 64 + __builtin_ctzll(left)],
			    (uint8_t)to, memory_order_release);
	return moved;
}

/* After a move, without locks: let the new core look at the stages. */
static void tell(struct core_group *group, uint64_t stages, uint64_t ranks)
{
	for (uint64_t left = stages; left; left &= left - 1)
		cores_arrived(group, group->pool->sinks[__builtin_ctzll(left)]);
	if (stages)
		pool_wake_ranks(group->pool, ranks);
}

static int count_slots(const struct slots *slots)
{
	int n = 0;

	for (int w = 0; w < QUEUE_SLOTS / 64; w++)
		n += __builtin_popcountll(slots->word[w]);
	return n;
}

int64_t serial_give(struct core *core, int to, const struct slots *slots)
{
	struct core_group *group = core->group;
	int from = core->number;
	int64_t n = 0;

	lock_all(group);
	bool may = may_move(group, core->cell, from, to);
	uint64_t moved = may ? move(group, core, from, to, slots, &n) : 0;
	unlock_all(group);
	tell(group, moved, 1ULL << to);
	if (!may)
		return -1;
	book_add(&core->moved, (uint64_t)count_slots(slots));
	return n;
}

/* ---- cores that begin and end ---- */

static bool is_open(const struct serial *serial, int k)
{
	return atomic_load_explicit(&serial->state[k], memory_order_relaxed) == SERIAL_OPEN;
}

/* Whether core `k` was blocked at the last look (spare.h). */
static bool is_blocked(const struct core_group *group, int k)
{
	int rank = group->first_spare + k;
	const struct handler *h =
	    rank < POOL_THREADS_MAX ? atomic_load(&group->pool->handler[rank]) : NULL;

	return h && atomic_load_explicit(&h->spare, memory_order_relaxed);
}

/* Spread the slots of core `from`, which no thread serves, over the open cores but `from`, and add
 * these to *ranks. Blocked cores get none, unless all are. Returns the stages of which events were moved; all locks are held. */
static uint64_t spread(struct core_group *group, int from, uint64_t *ranks)
{
	struct serial *serial = group->serial;
	struct slots of[PARTITIONS_MAX] = {0};
	uint64_t moved = 0, open = 0, blocked = 0;
	int64_t n = 0;
	int to = from;

	for (int k = 0; k < group->max; k++) {
		open |= (uint64_t)(k != from && is_open(serial, k)) << k;
		blocked |= (uint64_t)is_blocked(group, k) << k;
	}
	if (open & ~blocked)
		open &= ~blocked;
	if (!open)
		return 0;
	for (int s = 0; s < QUEUE_SLOTS; s++) {
		if (serial_owner(serial, (uint64_t)s) != from)
			continue;
		do
			to = (to + 1) % group->max;
		while (!(open >> to & 1));
		slots_add(&of[to], (unsigned)s);
	}
	for (uint64_t left = open; left; left &= left - 1) {
		int k = __builtin_ctzll(left);
		if (count_slots(&of[k]) > 0 && may_move(group, NULL, from, k))
			moved |= move(group, NULL, from, k, &of[k], &n);
	}
	*ranks |= open;
	return moved;
}

void serial_join(struct core *core)
{
	struct core_group *group = core->group;
	struct serial *serial = group->serial;
	uint64_t moved = 0, ranks = 0;

	lock_all(group);
	atomic_store_explicit(&serial->state[core->number], SERIAL_OPEN, memory_order_relaxed);
	for (int k = 0; k < group->max; k++)
		if (atomic_load_explicit(&serial->state[k], memory_order_relaxed) == SERIAL_LEFT)
			moved |= spread(group, k, &ranks);
	unlock_all(group);
	tell(group, moved, ranks);
}

static struct weir_event *reverse(struct weir_event *list)
{
	struct weir_event *back = NULL;

	while (list) {
		struct weir_event *ev = list;
		list = ev->next;
		ev->next = back;
		back = ev;
	}
	return back;
}

/* Put the events of `list`, newest first, in front of the inbox. Returns those that the queue cannot
 * take, and in *why the reason. */
static struct weir_event *put_in_front(struct queue *q, struct weir_event *list, int *why)
{
	lock_take(&q->lock);
	*why = q->closed ? WEIR_ECLOSED : WEIR_ENOMEM;
	while (list && !q->closed) {
		struct weir_event *ev = list, *next = ev->next;
		if (queue_push_front_locked(q, &ev, 1) == 0)
			break;
		list = next;
	}
	lock_release(&q->lock);
	return list;
}

uint32_t serial_clear(struct core *core, int i)
{
	struct sink *s = core->group->pool->sinks[i];
	struct slots all;
	struct weir_event *list;
	int why;

	memset(&all, 0xff, sizeof(all));
	moves_begin(thread_self());
	uint32_t n = cell_take_slots(&core->cell[i], &all, &list);
	list = put_in_front(&s->queue, reverse(list), &why);
	moves_end(thread_self());
	cores_arrived(
	    core->group, s); /* for the next thread of this core, if no other takes them */
	while (list) {
		struct weir_event *ev = list;
		list = ev->next;
		if (why == WEIR_ECLOSED)
			atomic_fetch_add(&core->group->closed, 1);
		stage_end_waiting(s->stage, &ev, 1, why);
	}
	core->n -= n;
	core->filled &= ~(1ULL << i);
	if (n > 0)
		next_gave(&core->next, i, n);
	return n;
}

void serial_leave(struct core *core)
{
	struct core_group *group = core->group;
	uint64_t ranks = 0;

	lock_all(group);
	atomic_store_explicit(
	    &group->serial->state[core->number], SERIAL_LEFT, memory_order_relaxed);
	uint64_t moved = spread(group, core->number, &ranks);
	unlock_all(group);
	tell(group, moved, ranks);
}

void serial_tend(struct core_group *group)
{
	uint64_t owners = 0, moved = 0, ranks = 0;

	for (int s = 0; s < QUEUE_SLOTS; s++)
		owners |= 1ULL << serial_owner(group->serial, (uint64_t)s);
	for (int k = 0; k < group->max; k++)
		if (is_open(group->serial, k))
			owners &= ~(1ULL << k);
	if (!owners)
		return;
	lock_all(group);
	for (uint64_t left = owners; left; left &= left - 1)
		if (!is_open(group->serial, __builtin_ctzll(left)))
			moved |= spread(group, __builtin_ctzll(left), &ranks);
	unlock_all(group);
	tell(group, moved, ranks);
}

/* ---- dealing ---- */

static int64_t service_ns(const struct core *core, int i)
{
	const struct local *l = thread_self()->local[core->group->pool->sinks[i]->id];

	return l->service_ns > 0 ? l->service_ns : 0;
}

/* The serial stages that are not paused. */
static uint64_t live_stages(const struct core_group *group)
{
	return group->serial->stages & ~atomic_load_explicit(&group->halted, memory_order_relaxed);
}

/* Return the estimated work of the events that wait for this core in serial stages that are not
 * paused, and in *n their number. */
static int64_t waiting_ns(const struct core *core, uint32_t *n)
{
	const struct core_group *group = core->group;
	int64_t ns = 0;

	*n = 0;
	for (uint64_t left = live_stages(group); left; left &= left - 1) {
		int i = __builtin_ctzll(left);
		uint32_t m = cell_length(&core->cell[i]) +
			     queue_part_length(&group->pool->sinks[i]->queue, core->number);
		*n += m;
		ns += m * service_ns(core, i);
	}
	return ns;
}

/* Return an idle core, or -1. */
static int idle_core(const struct core *core)
{
	const struct core_group *group = core->group;

	for (int k = 1; k < group->max; k++) {
		int at = (core->number + k) % group->max;
		if (is_open(group->serial, at) && pool_rank_idle(group->pool, at))
			return at;
	}
	return -1;
}

/* Add up work and number of the waiting events of each slot. */
static void look(const struct core *core, int64_t *work_ns, uint32_t *events)
{
	const struct core_group *group = core->group;

	for (uint64_t left = live_stages(group); left; left &= left - 1) {
		int i = __builtin_ctzll(left);
		struct queue *q = &group->pool->sinks[i]->queue;
		uint32_t n[QUEUE_SLOTS] = {0};
		if (cell_length(&core->cell[i]) == 0 && queue_part_length(q, core->number) == 0)
			continue;
		cell_count_slots(&core->cell[i], SERIAL_LOOK, n);
		queue_count_slots(q, core->number, SERIAL_LOOK, n);
		for (int s = 0; s < QUEUE_SLOTS; s++) {
			work_ns[s] += n[s] * service_ns(core, i);
			events[s] += n[s];
		}
	}
}

static int64_t choose(const struct core *core, struct slots *slots)
{
	int64_t work_ns[QUEUE_SLOTS] = {0};
	uint32_t events[QUEUE_SLOTS] = {0};

	look(core, work_ns, events);
	return serial_choose(work_ns, events, slots);
}

void serial_deal(struct core *core)
{
	int64_t least_ns =
	    atomic_load_explicit(&core->group->serial->least_ns, memory_order_relaxed);
	int64_t now_ns = thread_self()->now_ns;
	struct slots slots = {0};
	uint32_t n;

	if (now_ns < core->deal_ns || waiting_ns(core, &n) < least_ns || n < 2)
		return;
	int to = idle_core(core);
	if (to < 0)
		return;
	int64_t gain_ns = choose(core, &slots);
	if ((least_ns > 0 && gain_ns < least_ns) || gain_ns == INT64_MIN ||
	    serial_give(core, to, &slots) < 0)
		core->deal_ns = now_ns + (least_ns > 0 ? SERIAL_AGAIN_NS : 0);
}
