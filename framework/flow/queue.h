/* SPDX-License-Identifier: MIT */
/*
 * The bounded queue of a stage: one mutex, one ring of event pointers per class and partition.
 *
 * Why rings of pointers under a mutex, and neither of the two candidates of the design. A spliced
 * intrusive list is O(1) for the producer, but a consumer that takes 64 of a longer list must chase
 * 64 pointers through lines the producer wrote last, each a serial cache miss, under the lock. A
 * ring hands over dense pointers: the copy is one or two lines per 8 events, no event is touched
 * under the lock, and the consumer can prefetch the events in parallel. A batch-claim ring saves
 * the mutex, but has no classes, no exact bound over classes and no cohorts. bench/micro_hop
 * measures all three.
 *
 *   lane (partition p, class c):  [ e3 e4 e5 . . . e1 e2 ]   power-of-two ring, FIFO
 *   partition:                    lanes by class, highest class served first, leased while served
 *                                 in exclusive and partitioned mode
 *
 * | call                     | may overlap with                                             |
 * |--------------------------|--------------------------------------------------------------|
 * | queue_push, queue_pop, queue_release, queue_oldest_ns | anything; they take the lock    |
 * | queue_length             | anything; a relaxed read of the exact length                 |
 * | *_locked                 | the caller holds the lock                                    |
 * | queue_init, queue_fini   | nothing                                                      |
 */
#ifndef WEIR_FLOW_QUEUE_H
#define WEIR_FLOW_QUEUE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <weir/event.h>
#include <weir/graph.h>
#include <weir/spec.h>

#include "base/lock.h"

/** Ring of the events of one class in one partition. Guarded by the queue's lock. */
struct lane {
	struct weir_event **slot; /* capacity entries, a power of two; NULL until first used */
	uint64_t *key;            /* the same for keys, only when the queue is keyed */
	uint32_t head, n, capacity;
	uint32_t passes; /* cohorts by key: batches since the head's key was served */
};

struct partition {
	WEIR_ALIGNED uint32_t n; /* events in its lanes; with lane 0 on one cache line */
	bool leased;             /* a thread is handling a batch of it */
	uint32_t served;         /* number of its last batch: the longest unserved is next */
	struct lane lane[WEIR_CLASSES_MAX];
};

/* The lock, the length and the limit share a line: whoever pushes or pops needs all three, and a
 * spinning reader of the length looks only every few hundred ns. */
struct queue {
	WEIR_ALIGNED struct lock lock;
	atomic_uint length; /* written under the lock, read by anybody */
	atomic_uint limit;  /* likewise */
	struct partition *part WEIR_GUARDED_BY(lock);
	bool closed WEIR_GUARDED_BY(lock);
	bool shut WEIR_GUARDED_BY(lock);       /* the stage is being drained: its door refuses */
	atomic_bool paused;                    /* nothing is taken; written under the lock */
	uint32_t served WEIR_GUARDED_BY(lock); /* batches taken */
	WEIR_ALIGNED int n_parts;              /* constant from here on */
	int n_classes;
	bool keyed;   /* keys are kept beside events: cohorts by key */
	bool leasing; /* partitions are leased: exclusive, partitioned */
	bool fifo;    /* oldest first whatever the class; else the highest class first */
};

/** How a batch is to be taken. */
struct queue_take {
	int rank, n_ranks; /* the thread's rank among the pool's: which partitions it serves */
	int max;           /* largest batch, 1..WEIR_BATCH_MAX */
	int sharers; /* threads that share the queue: a batch is at most ceil(length/sharers) */
	int64_t linger_ns; /* wait for fuller batches; 0 not */
	int64_t now_ns;
	bool by_key; /* batch = events of one key */
	int64_t
	    ready_ns; /* out: when nothing was taken, time at which a batch falls due; INT64_MAX */
	int part;     /* out: partition of the batch, for queue_release */
};

/** Prepare a queue of `n_parts` partitions; capacity for `limit` events of one class is allocated
 * in partition 0 now, other lanes when first used. 0 or WEIR_ENOMEM. */
int queue_init(
    struct queue *q, int n_classes, int n_parts, uint32_t limit, bool keyed, bool leasing);

/** Free; the queue must be empty. */
void queue_fini(struct queue *q);

/** Room left under the limit; the caller holds the lock. */
uint32_t queue_room_locked(const struct queue *q) WEIR_REQUIRES(&q->lock);

/** Events of `class_id` that wait; the caller holds the lock. Cost: a look per partition. */
uint32_t queue_class_length_locked(const struct queue *q, int class_id) WEIR_REQUIRES(&q->lock);

/** Append ev[0..n) in order (class from each event, partition from key % n_parts). The caller has
 *  checked the room and that the queue is open. Returns how many entered: less than n only when a
 *  lane could not grow (no memory). */
int queue_push_locked(struct queue *q, struct weir_event **ev, int n) WEIR_REQUIRES(&q->lock);

/** Take a batch into `out[take->max]`: the highest class first, in order. Returns its size; 0 when
 *  there is nothing due for this rank, and `take->ready_ns` says when there will be. */
int queue_pop(struct queue *q, struct queue_take *take, struct weir_event **out);

/** The batch of partition `part` is done. Returns true when more waits in it. No-op without leases.
 */
bool queue_release(struct queue *q, int part);

/** Has a partition of rank's share at least `least` events and no lease? */
bool queue_due(struct queue *q, int rank, int n_ranks, uint32_t least);

/** Exact number of queued events. */
static inline uint32_t queue_length(const struct queue *q)
{
	return atomic_load_explicit(&q->length, memory_order_relaxed);
}

/** Is nothing taken from it? Who holds or has just held the lock sees the last queue_steer. */
static inline bool queue_paused(const struct queue *q)
{
	return atomic_load_explicit(&q->paused, memory_order_relaxed);
}

/** Queued events that may be taken. */
static inline uint32_t queue_ready(const struct queue *q)
{
	return queue_paused(q) ? 0 : queue_length(q);
}

/** From now on nothing is taken (`paused`), and the door is to refuse everything (`shut`). Whoever ends
 *  a pause wakes the pool. */
void queue_steer(struct queue *q, bool paused, bool shut);

/** Most events that queue_peek shows. */
#define QUEUE_PEEK_MAX 100

/** Describe the oldest `n` <= QUEUE_PEEK_MAX events, oldest first, at time `now_ns`; class names are
 *  left NULL. Returns how many. Holds the lock for some us, 50 with 64 partitions of 8 classes. */
int queue_peek(struct queue *q, int64_t now_ns, struct weir_queued *out, int n);

/** When the oldest queued event entered (ns), 0 when empty; n[c] (may be NULL) events per class. */
int64_t queue_oldest_ns(struct queue *q, uint64_t *n);

/** Refuse pushes from now on (drain). */
void queue_close(struct queue *q);

/** Change the limit; what is queued beyond it stays. */
void queue_set_limit(struct queue *q, uint32_t limit);

#endif
