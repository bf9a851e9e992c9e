/* SPDX-License-Identifier: MIT */
/*
 * Puts what a core sends to a stage of its own group into the cell of the stage on that core.
 *
 * The queue is the way of all other events, through the door of the stage (sink_offer):
 *
 *   the sender is no core of the group       | the cells of another thread cannot be touched
 *   the stage is exclusive, partitioned,     | the queue orders its batches; such a stage has no
 *     by key, or has a width                 |   cells at all (has_cells, graph/group.c)
 *   it is paused, drained, or lingers        | the queue does that
 *   it holds events                          | they count against the limit under the queue's lock
 *   the event is past its deadline           | it is refused there
 *   the cell is full, or the queue has more  | the bound of both is exact (queue_set_cells)
 *     than its own slots                     |
 *   its service takes long, `local: never`   | one queue for long work needs no balance
 *   a core is idle, and this one has work    | dealing: the idle core takes from the queue
 *
 * For the last two, the cell is the way when the queue is full.
 *
 * Events that a policy still has to judge pass through the door, too, since its state is under the
 * queue's lock. If nothing else is against it, those that it admits go on into the cell (core_put).
 */
#include "base/clock.h"
#include "base/probe.h"
#include "event/place.h"
#include "sched/cores.h"
#include "stage/admit.h"
#include "stage/stage.h"

/* Mean service time from which on events go to the queue, and below which they go to the cell
 * again. 20 us: a lock is 2 % of that. The second is half of the first, so that a stage near the
 * limit does not alternate. */
#define SLOW_NS  (20 * NS_PER_US)
#define QUICK_NS (10 * NS_PER_US)

static bool is_slow(struct cell *cell, const struct sink *s, const struct local *l)
{
	enum sink_local local = sink_local(s);

	if (local != LOCAL_AUTO)
		return local == LOCAL_NEVER;
	if (l->service_ns < 0 || l->service_ns > SLOW_NS) /* an unknown one may be long */
		cell->slow = true;
	else if (l->service_ns < QUICK_NS)
		cell->slow = false;
	return cell->slow;
}

/* Whether `n` more events for stage `i` are to be dealt. */
static bool deals(const struct core *core, int i, int n)
{
	uint64_t filled;
	uint32_t all = core_live(core, &filled);

	filled |= 1ULL << i;
	return all + (uint32_t)n >= DEAL_EVENTS || (filled & (filled - 1)) != 0;
}

/* Whether dealing the events of `o` is worth a wake-up. Those of a source must be worth more: from
 * another core they come back by mail, which may cost a second wake-up. */
static bool is_worth_it(const struct core *core, const struct outbox *o, const struct local *to)
{
	uint32_t n = core->n + (uint32_t)o->n;

	return !(o->from->stage->flags & WEIR_STAGE_SOURCE) || n * to->service_ns >= DEAL_NS;
}

/* Whether the events of `o` go to the queue. */
static bool to_queue(
    struct core *core, struct cell *cell, const struct outbox *o, const struct local *to)
{
	const struct sink *s = o->sink;
	const struct queue *q = &s->queue;

	if (atomic_load_explicit(&q->by_door, memory_order_relaxed) || queue_keeps(q) ||
	    atomic_load_explicit(&s->linger_ns, memory_order_relaxed) > 0)
		return true;
	bool slow = is_slow(cell, s, to);
	bool deal = !slow && core_idles(core) && sink_local(s) != LOCAL_KEPT &&
		    deals(core, s->place, o->n) && is_worth_it(core, o, to);
	if ((!slow && !deal) ||
	    queue_length(q) + (uint32_t)o->n > atomic_load_explicit(&q->own, memory_order_relaxed))
		return false;
	if (deal) /* the door gets no more than a batch; for the rest, this function is called again */
		book_add(&core->book[s->place].dealt,
		    (uint64_t)(o->n < WEIR_BATCH_MAX ? o->n : WEIR_BATCH_MAX));
	return true;
}

/* Stamp the first events of `o`, at most `room`, that have one class and one state, and are
 * not past their deadline. Returns their number, and in *last the last of them. */
static uint32_t stamp(
    const struct sink *s, struct outbox *o, uint32_t room, int64_t now_ns, struct weir_event **last)
{
	uint32_t first = event_place(o->head), n = 0;
	uint32_t place = event_place_of(s->id, o->head->class_id, WEIR_EVENT_QUEUED);

	for (struct weir_event *ev = o->head; ev && n < room; ev = ev->next) {
		if (event_place(ev) != first || WEIR_UNLIKELY(ev->deadline_ns <= now_ns))
			break;
		ev->queued_ns = now_ns;
		event_set_place(ev, place);
		*last = ev;
		n++;
	}
	return n;
}

/* Count `n` events of a class, as offer and flush_to_sink (stage/thread.c) do. */
static void count(struct outbox *o, struct local *to, int class_id, bool fresh, uint32_t n)
{
	struct local *from = o->from;
	struct class_book *book = &from->book.class_book[class_id];

	book_add(&o->tried[class_id], n);
	book_add(&to->book.class_book[class_id].offered, n);
	if (WEIR_UNLIKELY(fresh))
		book_add(&o->made, n);
	book_add(WEIR_UNLIKELY(fresh) ? &book->departed : &book->completed, n);
	book_add(&from->book.running, -(uint64_t)n);
	book_add(&o->events, n);
}

/* Move at most `room` events to the cell. Returns how many were moved. */
static inline uint32_t move(struct core *core, struct cell *cell, struct outbox *o,
    struct local *to, uint32_t room, int64_t now_ns)
{
	struct sink *s = o->sink;
	int sender = o->from->stage->id;
	uint32_t moved = 0;

	do {
		struct weir_event *first = o->head, *last = NULL;
		int class_id = first->class_id;
		bool fresh = first->state == WEIR_EVENT_NEW;
		if (!admit_passed(s, sender, class_id))
			break;
		uint32_t n = stamp(s, o, room - moved, now_ns, &last);
		if (n == 0)
			break;
		o->head = last->next;
		count(o, to, class_id, fresh, n);
		cell_put(cell, class_id, first, last, n, core->group->newest);
		admit_came(s, sender, class_id, (int)n);
		moved += n;
	} while (o->head && moved < room);
	if (!o->head)
		o->tail = &o->head;
	o->n -= (int)moved;
	return moved;
}

static inline __attribute__((always_inline)) void filled(
    struct core *core, const struct sink *s, const struct cell *cell, uint32_t n)
{
	core->filled |= 1ULL << s->place;
	core->n += n;
	next_arrived(&core->next, s->place, n);
	probe_enqueue(s->name, (int)n, cell_length(cell));
}

WEIR_HOT bool core_splice(struct thread *t, struct outbox *o)
{
	struct sink *s = o->sink;
	struct core *core = t->core;

	if (s->pool != t->pool)
		return false;
	struct cell *cell = &core->cell[s->place];
	struct local *to = t->local[s->id];
	uint32_t n, room = cores_room(core, cell, &s->queue);
	if (room == 0 || to_queue(core, cell, o, to))
		return false;
	n = move(core, cell, o, to, room < WEIR_BATCH_MAX ? room : WEIR_BATCH_MAX, t->now_ns);
	if (n == 0) {
		t->cell_room = room;
		return false;
	}
	filled(core, s, cell, n);
	book_changed(&to->book);
	book_changed(&o->from->book);
	probe_admit(s->name, (int)n, 0, o->from->stage->id);
	return true;
}

void core_put(struct thread *t, struct sink *s, struct weir_event **ev, int n)
{
	struct core *core = t->core;
	struct cell *cell = &core->cell[s->place];
	int run;

	for (int i = 0; i < n; i += run) {
		for (run = 1; i + run < n && ev[i + run]->class_id == ev[i]->class_id; run++)
			ev[i + run - 1]->next = ev[i + run];
		cell_put(cell, ev[i]->class_id, ev[i], ev[i + run - 1], (uint32_t)run,
		    core->group->newest);
	}
	filled(core, s, cell, (uint32_t)n);
}
