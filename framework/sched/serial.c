/* SPDX-License-Identifier: MIT */
/* Makes the map of a core group with serial keys, and puts what a core sends to its own slots into its
 * cells; see serial.h. */
#include "sched/serial.h"

#include <stdlib.h>
#include <string.h>

#include "base/probe.h"
#include "stage/admit.h"
#include "stage/stage.h"

static int serial_new(struct core_group *group)
{
	struct serial *s = aligned_alloc(WEIR_CACHE_LINE, sizeof(*s));
	int n = atomic_load(&group->pool->target);

	if (!s)
		return WEIR_ENOMEM;
	memset(s, 0, sizeof(*s));
	for (int i = 0; i < QUEUE_SLOTS; i++)
		atomic_init(&s->map[i], (uint8_t)(i % (n > 0 ? n : 1)));
	atomic_init(&s->least_ns, SERIAL_TIMES * SERIAL_MOVE_NS);
	group->serial = s;
	return 0;
}

/* The partitions of a serial stage are the cores' inboxes. */
static int cores_of(const struct sink *sink)
{
	return sink->queue.n_parts;
}

int serial_open(struct core_group *group, int i)
{
	struct sink *s = group->pool->sinks[i];

	if (!group->serial && serial_new(group) != 0)
		return WEIR_ENOMEM;
	WEIR_ASSERT(s->queue.n_parts == group->max);
	group->serial->stages |= 1ULL << i;
	queue_set_map(&s->queue, group->serial->map);
	s->ranks = cores_of;
	if (s->splice)
		s->splice = serial_splice;
	for (int k = 0; k < group->max; k++)
		group->core[k].cell[i].serial = true;
	return 0;
}

void serial_free(struct serial *serial)
{
	free(serial);
}

/* A run of events on its way from an outbox to a cell. */
struct run {
	struct weir_event *head, **tail, *last;
	/* of_class[c] of class c, of which the sender has made fresh[c] itself */
	uint32_t n, of_class[WEIR_CLASSES_MAX], fresh[WEIR_CLASSES_MAX];
};

/* Whether `ev`, whose slot the core owns, may enter the cell. The map has been read before the
 * inbox is looked at: if another core has just given the slot to this one, the events of the slot
 * are seen in the inbox. */
static bool enters(const struct core *core, const struct sink *s, int sender,
    const struct weir_event *ev, int64_t now_ns)
{
	return queue_part_length(&s->queue, core->number) == 0 && ev->deadline_ns > now_ns &&
	       admit_passed(s, sender, ev->class_id);
}

/* Take events of own slots out of `o`, at most `room`, until one of them may not enter the cell, since
 * those behind it must not overtake it. */
static void take_own(
    struct core *core, struct outbox *o, uint32_t room, int64_t now_ns, struct run *run)
{
	const struct sink *s = o->sink;
	const struct serial *serial = core->group->serial;
	int sender = o->from->stage->id;
	bool keyed = s->key.kind > KEY_EVENT;
	struct weir_event **at = &o->head, *ev;

	run->tail = &run->head;
	while ((ev = *at) && run->n < room) {
		if (keyed)
			ev->key = sink_key(s, ev);
		if (serial_owner(serial, ev->key) != core->number) {
			at = &ev->next;
			continue;
		}
		if (!enters(core, s, sender, ev, now_ns))
			break;
		*at = ev->next;
		run->fresh[ev->class_id] += ev->state == WEIR_EVENT_NEW;
		ev->queued_ns = now_ns;
		ev->stage = s->id;
		ev->state = WEIR_EVENT_QUEUED;
		*run->tail = run->last = ev;
		run->tail = &ev->next;
		run->of_class[ev->class_id]++;
		run->n++;
	}
	if (!*at)
		o->tail = at;
	o->n -= (int)run->n;
}

/* Count the events of `run`, as in splice.c. */
static void count(struct outbox *o, struct local *to, const struct run *run)
{
	struct local *from = o->from;

	for (int c = 0; c < o->sink->queue.n_classes; c++) {
		uint32_t n = run->of_class[c];
		if (n == 0)
			continue;
		book_add(&o->tried[c], n);
		book_add(&to->book.class_book[c].offered, n);
		book_add(&from->book.class_book[c].completed, n - run->fresh[c]);
		book_add(&from->book.class_book[c].departed, run->fresh[c]);
		book_add(&o->made, run->fresh[c]);
		admit_came(o->sink, from->stage->id, c, (int)n);
	}
	book_add(&from->book.running, -(uint64_t)run->n);
	book_add(&o->events, run->n);
	book_changed(&to->book);
	book_changed(&from->book);
}

/* Whether all events must take the way through the queue (see splice.c); if not, *room is that of
 * the cell. An idle core or long work is no reason, since only this core may handle the events. */
static bool to_queue(
    const struct core *core, const struct sink *s, const struct cell *cell, uint32_t *room)
{
	const struct queue *q = &s->queue;

	if (atomic_load_explicit(&q->by_door, memory_order_relaxed) || queue_keeps(q) ||
	    atomic_load_explicit(&s->linger_ns, memory_order_relaxed) > 0)
		return true;
	*room = cores_room(core, cell, q);
	return *room == 0;
}

bool serial_splice(struct thread *t, struct outbox *o)
{
	struct sink *s = o->sink;
	struct core *core = t->core;
	struct run run = {0};
	uint32_t room;

	if (s->pool != t->pool)
		return false;
	struct cell *cell = &core->cell[s->place];
	if (to_queue(core, s, cell, &room))
		return false;
	take_own(core, o, room < WEIR_BATCH_MAX ? room : WEIR_BATCH_MAX, t->now_ns, &run);
	if (run.n == 0)
		return false;
	count(o, t->local[s->id], &run);
	cell_put_serial(cell, run.head, run.last, run.n);
	core->filled |= 1ULL << s->place;
	core->n += run.n;
	next_arrived(&core->next, s->place, run.n);
	probe_enqueue(s->name, (int)run.n, cell_length(cell));
	probe_admit(s->name, (int)run.n, 0, o->from->stage->id);
	return true;
}
