/* SPDX-License-Identifier: MIT */
/*
 * The bounded queue of a stage: one mutex, one ring of event pointers per class and partition.
 *
 * Why rings of pointers under a mutex? Two other designs were considered. In an intrusive list, a
 * push is O(1), but a consumer that takes 64 events must follow 64 pointers through cache lines
 * that the producer wrote last. Each step is a cache miss under the lock, and the misses cannot
 * overlap. In a ring the pointers are dense: copying 8 of them touches one or two cache lines, no
 * event is touched under the lock, and the consumer can prefetch the events in parallel. A ring
 * from which consumers claim batches without a mutex has no classes, no exact limit for all classes
 * together, and no cohorts. bench/micro_hop measures all three.
 *
 *   lane (partition p, class c):  [ e3 e4 e5 . . . e1 e2 ]   power-of-two ring, FIFO
 *   partition:                    one lane per class, highest class served first; in exclusive and
 *                                 partitioned mode, leased while a batch of it is handled
 *
 * | call                     | may overlap with                                             |
 * |--------------------------|--------------------------------------------------------------|
 * | queue_pop, queue_release, queue_oldest_ns | anything; they take the lock                |
 * | queue_give_back, queue_take_back | anything; they take the lock                         |
 * | queue_length             | anything; a relaxed read of the exact length                 |
 * | *_locked                 | the caller holds the lock                                    |
 * | queue_init, queue_fini   | nothing                                                      |
 */
#ifndef WEIR_EVENT_QUEUE_H
#define WEIR_EVENT_QUEUE_H

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <weir/event.h>
#include <weir/graph.h>
#include <weir/spec.h>

#include "base/lock.h"
#include "event/slots.h"

struct bins;
struct cell;

/** A ring of the events of one class in one partition. Guarded by the queue's lock. */
struct lane {
	struct weir_event **slot; /* capacity entries, a power of two; NULL until first used */
	/* of each slot, only if the queue is keyed: the key of its event or, in the queue of a serial
	 * stage, its place in the order of the partition */
	uint64_t *key;
	uint32_t head, n, capacity;
	uint32_t passes; /* for cohorts by key: number of batches since the head's key was served */
	/* the events, instead of in the ring, if the queue is `shortest`; NULL until first used */
	struct bins *bins;
};

struct partition {
	/* events in its lanes; in the same cache line as lane 0. Written under the lock */
	WEIR_ALIGNED atomic_uint n;
	bool leased; /* a thread is handling a batch of this partition */
	/* value of queue.served at the last batch of this partition; the partition with the lowest
	 * value is served next */
	uint32_t served;
	struct lane lane[WEIR_CLASSES_MAX];
	/* expired events on their way back to the stage (queue_give_back), linked by `next` */
	struct weir_event *back;
	atomic_uint shown; /* with copies: `n`, for readers without the lock */
};

/**
 * Counts of events that have left the queue but still count against its limit. These are the events
 * that the stage holds (weir_hold) and, once `keeps` is set, the events in its handlers, which the
 * stage may hold next. So queued and held events together do not exceed the limit, except for
 * events that were in handlers when `keeps` was set, and after the limit was lowered.
 *
 * An element of `count` has two numbers of events of one class: those held, times KEEP_HELD, plus
 * those in handlers. So one operation moves events from one number to the other, and a reader
 * counts each event once. `held` may be negative while the events of a batch are released before
 * the batch is settled (queue_settle); the sum of both is right at all times.
 *
 * The sum is increased under the queue's lock, or by a hold in a thread that runs no counted batch
 * of the stage. Any thread may decrease it. For a stage without a width that never holds events,
 * the only cost is reading `keeps`.
 */
struct keep {
	WEIR_ALIGNED _Atomic int64_t count[WEIR_CLASSES_MAX];
};

#define KEEP_HELD (1LL << 32)

/* The lock and the members that every push and pop needs share a cache line. A spinning reader does
 * little harm: it reads the length only every few hundred ns. */
struct queue {
	WEIR_ALIGNED struct lock lock;
	atomic_uint length; /* written under the lock, read by any thread */
	atomic_uint limit;  /* also written under the lock, read by any thread */
	/* how many events may be in handlers or held at once; 0 is no bound */
	atomic_int width;
	uint32_t served WEIR_GUARDED_BY(lock); /* number of batches taken so far */
	/* with copies: the one that gets what is pushed now, and that gets the next event from
	 * outside the group */
	int to_copy WEIR_GUARDED_BY(lock), next_copy WEIR_GUARDED_BY(lock);
	/* number of leased partitions; written under the lock */
	atomic_int leased;
	atomic_uint n_back; /* number of events given back; written under the lock */
	bool closed WEIR_GUARDED_BY(lock);
	/* the stage is being drained, so admission refuses all events */
	bool shut WEIR_GUARDED_BY(lock);
	atomic_bool paused; /* no batch may be taken; written under the lock */
	/* if `dated`: when the first event of a lane was queued, the earliest of all lanes; INT64_MAX:
	 * none. Written under the lock */
	_Atomic int64_t oldest_ns;
	/* constant, like the members up to `starve_ns`, but for those that are atomic */
	WEIR_ALIGNED struct partition *part WEIR_GUARDED_BY(lock);
	/* For a serial stage, the partition of each slot, which is the number of a core; else NULL.
	 * Written by a thread that holds the locks of all queues with the same map. */
	const _Atomic uint8_t *map;
	int n_parts;
	int n_classes;
	bool keyed;        /* lanes store `key`, for cohorts by key and serial stages */
	bool dated;        /* oldest_ns is kept; for one partition */
	bool leasing;      /* partitions are leased: mode exclusive or partitioned */
	bool fifo;         /* oldest first across classes; otherwise the highest class first */
	bool shortest;     /* of a class, the least expected work first (bins.h); not with `fifo` */
	bool ordered;      /* if shortest: but events of one key in the order in which they came */
	atomic_bool keeps; /* the stage has a width or has held an event; never reset */
	/* events must come through the queue, not through cells: it is paused, shut or closed. Like
	 * `own` and `cell_max`, written under the lock and read by any thread. */
	atomic_bool by_door;
	atomic_uint own;      /* slots of `limit` that the queue itself has */
	atomic_uint cell_max; /* slots of `limit` that each cell has */
	/* if each partition belongs to a copy of a core group (queue_copy.c): cores of a copy;
	 * otherwise 0 */
	int copy_cores;
	/* if shortest: an event that waited longer is first; 0: never. Any thread may change it */
	_Atomic int64_t starve_ns;
	int n_cells;        /* of the stage (event/cell.h); used under the lock only */
	uint32_t in_excess; /* events in cells beyond their shares; likewise */
	/* for `map`: places in the order of a partition; the next one behind all others, and the last
	 * one in front of them */
	uint64_t behind WEIR_GUARDED_BY(lock), front WEIR_GUARDED_BY(lock);
	struct keep keep;
};

/** Parameters and results of queue_pop. */
struct queue_take {
	/* `n_ranks` threads of the pool serve; this is number `rank` of them (its seat,
	 * pool_deal.c). The rank determines which partitions the thread serves. */
	int rank, n_ranks;
	int max; /* largest batch, 1..WEIR_BATCH_MAX */
	/* threads that share the queue: a batch is at most ceil(length/sharers), unless it is by key
	 * or lingers */
	int sharers;
	int64_t linger_ns; /* how long events wait for a fuller batch; 0 disables waiting */
	int64_t now_ns;
	bool by_key; /* take only events of one key */
	/* the caller will fill the batch up from this cell, so leave room for its events of higher
	 * classes; NULL: no cell. Not for queues that are `fifo` or by key */
	const struct cell *cell;
	/* out, if nothing was taken: time at which the next batch is due, or INT64_MAX */
	int64_t ready_ns;
	int part;     /* out: the batch's partition, for queue_release */
	bool counted; /* out: the batch is counted in `keep`, until queue_settle */
};

/** Initialise a queue of `n_parts` partitions. Allocates one lane with space for `limit` events,
 *  that of the lowest class in partition 0; other lanes are allocated on first use. Returns 0 or
 *  WEIR_ENOMEM. */
int queue_init(
    struct queue *q, int n_classes, int n_parts, uint32_t limit, bool keyed, bool leasing);

/** Give the events with the least expected work first (bins.h); see the members `shortest` to
 *  `starve_ns`. Before the queue is used; it has no cells then. Each pushed event must have its bin
 *  noted (bin_note). Returns 0 or WEIR_ENOMEM. */
int queue_set_shortest(struct queue *q, int64_t starve_ns, bool ordered);

/* The parts of push, pop and peek for queues that are `shortest` (queue_bins.c). */
int queue_bins_append(struct queue *q, struct lane *l, struct weir_event **ev, uint32_t n);
int queue_bins_take(const struct queue *q, struct lane *l, const struct queue_take *take, int max,
    int window, struct weir_event **out);
const struct weir_event *queue_bins_oldest(const struct lane *l);
int queue_bins_peek(struct queue *q, int64_t now_ns, struct weir_queued *out, int n)
    WEIR_REQUIRES(&q->lock);

/** Free the memory. The queue must be empty. */
void queue_fini(struct queue *q);

/** Whether events that have left the queue are counted (struct keep). */
static inline bool queue_keeps(const struct queue *q)
{
	return atomic_load_explicit(&q->keeps, memory_order_relaxed);
}

/** Approximate number of events of the class that the stage holds. Any thread. */
int64_t queue_held(const struct queue *q, int class_id);

/* Slow paths of queue_kept, queue_kept_all, queue_width_left and queue_release. */
int64_t queue_count_kept(const struct queue *q, int class_id);
int64_t queue_count_kept_all(const struct queue *q);
int queue_count_width_left(const struct queue *q, int width);
bool queue_unlease(struct queue *q, int part);

/** Number of events of the class, or of all classes, that have left the queue but still count
 *  against its limit. Any thread. If the caller holds the lock, the result is never too small. */
static inline int64_t queue_kept(const struct queue *q, int class_id)
{
	return WEIR_LIKELY(!queue_keeps(q)) ? 0 : queue_count_kept(q, class_id);
}

static inline int64_t queue_kept_all(const struct queue *q)
{
	return WEIR_LIKELY(!queue_keeps(q)) ? 0 : queue_count_kept_all(q);
}

/** Add `n`, which may be negative, to the number of held events of the class. Any thread. */
void queue_hold(struct queue *q, int class_id, int n);

/** Add `n` to the number of events of the class in handlers. If n > 0, the caller holds the
 *  lock. */
void queue_taken(struct queue *q, int class_id, int n);

/** A handler has returned: taken[c] events of class c are no longer in it, and the number of held
 *  events changes by held[c]. Any thread. */
void queue_settle(struct queue *q, const int *held, const int *taken);

/** Bound the number of events in handlers and held together by `width`, 1 or more; 0 is no bound.
 *  While the bound is reached, no batch is due, and events stay queued. Any thread; a caller that
 *  raises the width must wake the pool. */
void queue_set_width(struct queue *q, int width);

/** Number of events that may be taken before the width is reached; INT_MAX without a width. Any
 *  thread. If the caller holds the lock, the result is never too large. */
static inline int queue_width_left(const struct queue *q)
{
	int width = atomic_load(&q->width); /* seq_cst: see queue_count_width_left */

	return WEIR_LIKELY(width == 0) ? INT_MAX : queue_count_width_left(q, width);
}

/** Number of queued events of the class in the partitions that thread `rank` of `n_ranks` serves.
 *  The caller holds the lock. */
uint32_t queue_rank_length_locked(const struct queue *q, int class_id, int rank, int n_ranks)
    WEIR_REQUIRES(&q->lock);

/** Number of events in a partition; it may change at any time. queue_part_count returns where it is. */
static inline const atomic_uint *queue_part_count(
    const struct queue *q, int part) WEIR_NO_THREAD_SAFETY
{
	return &q->part[part].n;
}

static inline uint32_t queue_part_length(const struct queue *q, int part)
{
	return atomic_load_explicit(queue_part_count(q, part), memory_order_relaxed);
}

/** Number of queued events of the class. The caller holds the lock. Reads one counter per
 *  partition. */
static inline uint32_t queue_class_length_locked(const struct queue *q, int class_id)
    WEIR_REQUIRES(&q->lock)
{
	return WEIR_LIKELY(q->n_parts == 1) ? q->part->lane[class_id].n
					    : queue_rank_length_locked(q, class_id, 0, 1);
}

/** Append ev[0..n) in order; an event's class and key determine its lane. The caller has checked
 *  that the queue is open and has enough free slots. Returns the number of events appended, which
 *  is less than n only if a lane could not grow because memory is short. */
int queue_push_locked(struct queue *q, struct weir_event **ev, int n) WEIR_REQUIRES(&q->lock);

/** Value of `copy` for events that come from outside the group. */
#define ANY_COPY (-1)

/** Like queue_push_locked, for a queue with copies: all events go to partition `copy` or, if that is
 *  ANY_COPY, equally many to each, in turn. Adds the bits of the partitions to *parts. */
int queue_push_copy_locked(struct queue *q, struct weir_event **ev, int n, int copy,
    uint64_t *parts) WEIR_REQUIRES(&q->lock);

/** Number of events in partition `copy` of a queue with copies. Any thread. seq_cst: like the length,
 *  it is raised before the senders look for parked threads. */
static inline uint32_t queue_copy_length(const struct queue *q, int copy)
{
	return atomic_load(&q->part[copy].shown);
}

/** Take a batch into out[take->max]. The highest class comes first or, if the queue is `fifo`, the
 *  oldest event; each class is in order. Returns the size of the batch, or 0 if none is due for
 *  this rank; take->ready_ns is then the time at which the next batch is due. */
int queue_pop(struct queue *q, struct queue_take *take, struct weir_event **out);

/** Release partition `part` after its batch has been handled. Returns true if the partition has
 *  more events. Does nothing and returns false if the queue has no leases. */
static inline bool queue_release(struct queue *q, int part)
{
	return q->leasing && queue_unlease(q, part);
}

/** Lease or release a partition, if the queue has leases. The caller holds the lock. */
void queue_lease_locked(struct queue *q, struct partition *part, bool leased)
    WEIR_REQUIRES(&q->lock);

/** Give the events of `list`, which the stage holds and which are linked by `next`, back to the
 *  stage: queue_take_back returns them to a thread that serves the queue. They do not count as
 *  queued; they count as held until the stage ends them. Any thread. */
void queue_give_back(struct queue *q, struct weir_event *list);

/** Take events that were given back to an unleased partition of this rank into
 *  out[WEIR_BATCH_MAX], and lease the partition. Works during a pause, and while the width is
 *  reached. Returns the number of events, and in *part the partition, for queue_release. */
int queue_take_back(struct queue *q, int rank, int n_ranks, struct weir_event **out, int *part);

/** Whether queue_take_back has events for this rank. */
bool queue_back_due(struct queue *q, int rank, int n_ranks);

/** Whether an unleased partition of this rank has events for a thread to take: either events that
 *  were given back, or at least `least` queued events while the queue is not paused and the width
 *  is not reached. */
bool queue_due(struct queue *q, int rank, int n_ranks, uint32_t least);

/** Number of partitions that are not leased. */
static inline int queue_unleased(const struct queue *q)
{
	return q->n_parts - atomic_load_explicit(&q->leased, memory_order_relaxed);
}

/** The partition of an event with key `key`. That of a serial stage may change as long as the caller
 *  does not hold the lock. */
static inline int queue_part(const struct queue *q, uint64_t key)
{
	if (q->n_parts == 1)
		return 0;
	if (q->map)
		return atomic_load_explicit(&q->map[key % QUEUE_SLOTS], memory_order_acquire);
	return (int)(key % (uint64_t)q->n_parts);
}

/** Whether the keys of events determine their partitions. */
static inline bool queue_parted(const struct queue *q)
{
	return q->n_parts > 1 && q->copy_cores == 0;
}

/** The partition to which queue_push_locked appends `ev`. */
static inline int queue_part_of(const struct queue *q, const struct weir_event *ev)
    WEIR_REQUIRES(&q->lock)
{
	if (WEIR_LIKELY(q->n_parts == 1))
		return 0;
	return WEIR_UNLIKELY(q->copy_cores > 0) ? q->to_copy : queue_part(q, ev->key);
}

/** Number of queued events. It is read without the lock, so it may change at any time. */
static inline uint32_t queue_length(const struct queue *q)
{
	return atomic_load_explicit(&q->length, memory_order_relaxed);
}

/** Number of free slots of the queue itself. The caller holds the lock. */
static inline uint32_t queue_room_locked(const struct queue *q) WEIR_REQUIRES(&q->lock)
{
	int64_t n = queue_length(q) + queue_kept_all(q);
	uint32_t own = atomic_load_explicit(&q->own, memory_order_relaxed);

	return q->closed || n >= own ? 0 : own - (uint32_t)n;
}

/* ---- the queue of a serial stage (event/queue_serial.c) ---- */

/** Let the partitions of an empty queue, which is keyed, be those of `map`. */
void queue_set_map(struct queue *q, const _Atomic uint8_t *map);
/** Bit p: one of ev[0..n) has partition p. */
uint64_t queue_parts_locked(const struct queue *q, struct weir_event *const *ev, int n)
    WEIR_REQUIRES(&q->lock);
/** Take the first `max` events of a partition, in the order in which they were pushed. Returns their
 *  number. The caller holds the lock. */
int queue_take_in_order(
    const struct queue *q, struct partition *part, int max, struct weir_event **out);
/** As queue_push_locked, but in front of all events of their partitions, and all or none. */
int queue_push_front_locked(struct queue *q, struct weir_event **ev, int n) WEIR_REQUIRES(&q->lock);
/** Make room in partition `to` for all events of partition `from` and `more` others. Returns 0 or
 *  WEIR_ENOMEM. */
int queue_reserve_locked(struct queue *q, int from, int to, uint32_t more) WEIR_REQUIRES(&q->lock);
/** Append ev[0..n) to a partition, which has room (queue_reserve_locked), whatever the map says. */
void queue_push_to_locked(struct queue *q, struct weir_event **ev, int n, int part)
    WEIR_REQUIRES(&q->lock);
/** Move the events of the slots, also those given back, from one partition behind the events of
 *  another, which has room (queue_reserve_locked). Returns the number of queued ones. */
uint32_t queue_move_slots_locked(struct queue *q, int from, int to, const struct slots *slots)
    WEIR_REQUIRES(&q->lock);
/** Add the number of events of each slot to count[QUEUE_SLOTS]; of each lane of the partition, at
 *  most `most` events are counted. */
void queue_count_slots(struct queue *q, int part, uint32_t most, uint32_t *count);

/** Whether the queue is paused, so that no batch may be taken. A thread that holds the lock, or has
 *  just released it, sees the effect of the last queue_steer. */
static inline bool queue_paused(const struct queue *q)
{
	return atomic_load_explicit(&q->paused, memory_order_relaxed);
}

/** Number of queued events that may be taken; 0 during a pause, or while the width is reached. */
static inline uint32_t queue_ready(const struct queue *q)
{
	return queue_paused(q) || queue_width_left(q) == 0 ? 0 : queue_length(q);
}

/** Set `paused` (no batch may be taken) and `shut` (admission must refuse everything). A caller
 *  that ends a pause must wake the pool. */
void queue_steer(struct queue *q, bool paused, bool shut);

/** Largest number of events that queue_peek reports. */
#define QUEUE_PEEK_MAX 100

/** Describe a waiting event as of `now_ns`, but leave class_name NULL. */
struct weir_queued queue_describe(const struct weir_event *ev, int64_t now_ns);

/** Describe the oldest `n` <= QUEUE_PEEK_MAX events in `out`, oldest first, as of `now_ns`; if the
 *  queue is `shortest`, those that leave next, in that order. Leaves class_name NULL. Returns the number of events described. Holds the lock for up to 50 us (with 64
 *  partitions of 8 classes). */
int queue_peek(struct queue *q, int64_t now_ns, struct weir_queued *out, int n);

/** Time in ns at which the oldest event in the queue was queued, or 0 if the queue is empty. n[c]
 *  receives the number of queued events of class c; `n` may be NULL. */
int64_t queue_oldest_ns(struct queue *q, uint64_t *n);

/** Close the queue, so that it accepts no more events. For a drain of the graph. */
void queue_close(struct queue *q);

/** Change the limit. Events already queued stay, even if they exceed the new limit. */
void queue_set_limit(struct queue *q, uint32_t limit);

/** Slots of `limit` that each of `n` cells has. */
static inline uint32_t queue_cell_share(uint32_t limit, int n)
{
	return n > 0 ? limit / (2 * (uint32_t)n) : 0;
}

/** Divide the limit between the queue and `n` cells: the cells get half of it. So queue and cells
 *  together never exceed the limit, although no lock covers both. `excess` events are in cells
 *  beyond their shares, since these were larger; their slots are withheld from the queue. */
void queue_set_cells(struct queue *q, int n, uint32_t excess);

#endif
