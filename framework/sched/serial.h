/* SPDX-License-Identifier: MIT */
/*
 * Serial keys of a core group (libasync-smp's colours): events of one key never overlap in the serial
 * stages of the group, and keep each sender's order.
 *
 * The key of an event, modulo QUEUE_SLOTS, is its slot. A map, one for the group, gives the core of
 * each slot, and only the thread of that core handles the slot's events. The queue of a serial stage
 * has a partition for each core, its inbox: whoever sends an event reads the map under the queue's
 * lock and pushes into the inbox of the slot's core. So admission, limit, pause, drain, deadlines and
 * views are those of any queue. A core that owns the slot itself may put the event into its cell
 * instead (serial_splice).
 *
 * Order. The events of a slot that wait in a cell are always older than those in the inbox: nothing
 * enters the cell while the inbox has events, and the cell is served first. Inbox and cell are served
 * in the order in which events came, whatever their classes. An event that is requeued, or held and
 * then sent on, takes a new place.
 *
 * Moves. The owner of a slot gives it away between two batches. It holds the queue locks of all serial
 * stages, so nothing is pushed meanwhile: the events in its cells, and then those in its inboxes,
 * go behind the events in the inboxes of the new owner, which has none of these slots; then the map
 * changes. A core whose thread exits puts its cells in front of its inboxes and gives all its slots
 * to other cores. The slots of a core that has no thread may be moved by any thread.
 *
 * | call                                       | threads                              |
 * |--------------------------------------------|--------------------------------------|
 * | serial_open, serial_free                   | main thread                          |
 * | serial_join, serial_clear, serial_leave    | the thread of the core               |
 * | serial_splice, serial_deal, serial_give    | the thread of the core, in no batch  |
 * | serial_tend                                | the control thread                   |
 */
#ifndef WEIR_SCHED_SERIAL_H
#define WEIR_SCHED_SERIAL_H

#include "sched/cores.h"
#include "sched/serial_choose.h"

/** Whether a core handles events of its slots. */
enum serial_state { SERIAL_NEW, SERIAL_OPEN, SERIAL_LEFT };

struct serial {
	WEIR_ALIGNED _Atomic uint8_t map[QUEUE_SLOTS]; /* core of each slot */
	uint64_t stages;                               /* bit i: stage i is serial */
	/* least work that is worth a move; tests set it to 0 */
	_Atomic int64_t least_ns;
	/* enum serial_state of each core, written under the queue locks of all serial stages */
	_Atomic uint8_t state[PARTITIONS_MAX];
};

/** Let stage `i` of `group`, whose queue has a partition for each core, be serial. Returns 0 or
 *  WEIR_ENOMEM. */
int serial_open(struct core_group *group, int i);
/** NULL is allowed. */
void serial_free(struct serial *serial);

/** The splice of serial stages: move the events of own slots to the cell. */
bool serial_splice(struct thread *t, struct outbox *o);

/** The thread of `core` begins: it may get slots, and takes those of cores that have left. */
void serial_join(struct core *core);
/** The thread is exiting: put all events of cell `i` in front of its inbox or, if the queue cannot take
 *  them, end them. Returns their number. */
uint32_t serial_clear(struct core *core, int i);
/** The thread is exiting, and its cells are empty: give all slots to other cores. If there is none,
 *  they wait for the next core that joins. */
void serial_leave(struct core *core);
/** Give the slots of cores without a thread to others. */
void serial_tend(struct core_group *group);

/** If another core is idle, and this one has work for several slots that is worth it, give it some of
 *  them. Called between two batches. */
void serial_deal(struct core *core);
/** Give `slots`, which `core` owns, to core `to`. Returns the number of events moved, or -1 if nothing
 *  was moved: `to` has no thread, the group is draining, or memory is short. */
int64_t serial_give(struct core *core, int to, const struct slots *slots);

static inline int serial_owner(const struct serial *serial, uint64_t key)
{
	/* acquire: pairs with the owner that has moved the slot and its events */
	return atomic_load_explicit(&serial->map[key % QUEUE_SLOTS], memory_order_acquire);
}

#endif
