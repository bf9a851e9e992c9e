/* SPDX-License-Identifier: MIT */
/*
 * What one thread has at one stage: books, outboxes, its copy of the configuration, its state.
 *
 * Every counter has one writer, the thread; readers (views) sum the books of all threads with
 * relaxed loads. Threads that have gone leave their sums in the graph's book of the dead (rule 33).
 *
 *   offered = completed + shed + failed + in flight        per stage and class, at any moment
 *
 * `offered` and sheds at the door are counted by the thread that offers, in its own book of the
 * receiving stage; completions, failures and sheds at the exit by the thread that ends the event.
 */
#ifndef WEIR_FLOW_LOCAL_H
#define WEIR_FLOW_LOCAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <weir/event.h>
#include <weir/metric.h>
#include <weir/spec.h>
#include <weir/stage.h>

#include "flow/mailbox.h"

/** A counter with one writer: a plain add for it, never torn for readers. */
typedef _Atomic uint64_t book_counter;

static inline void book_add(book_counter *c, uint64_t n)
{
	atomic_store_explicit(
	    c, atomic_load_explicit(c, memory_order_relaxed) + n, memory_order_relaxed);
}

static inline uint64_t book_read(const book_counter *c)
{
	return atomic_load_explicit(c, memory_order_relaxed);
}

struct class_book {
	book_counter offered, completed, failed, shadow_shed;
	book_counter handled; /* that handlers were given and are done with */
	book_counter shed[WEIR_SHED_REASONS];
};

/** Live twin of struct weir_hist. */
struct hist_book {
	book_counter count[WEIR_HIST_BUCKETS];
	book_counter sum_ns;
};

struct time_book {
	struct hist_book wait, service;
};

struct book {
	struct class_book class_book[WEIR_CLASSES_MAX];
	book_counter busy_ns, batches, batch_events, unhandled, wakeups;
	book_counter running;                  /* in handlers or outboxes: gauge like held */
	book_counter held;                     /* holds minus ends, two's complement, summed */
	book_counter metric[WEIR_METRICS_MAX]; /* two's complement: gauges go down */
	_Atomic int64_t running_since_ns;      /* start of the handle call under way, 0 none */
	_Atomic int running_n;                 /* its events */
};

struct sink;
struct local;
struct conf;
struct pool;

/** `outlet` of the outbox of requeued events, which are no emissions. */
#define OUTLET_AGAIN (-1)

/** Events on their way to one sink or mailbox, collected until the batch ends. */
struct outbox {
	struct weir_event *head, **tail;
	int n;
	bool dirty;              /* on the thread's dirty list */
	struct outbox *next;     /* dirty list */
	struct sink *sink;       /* where to, or */
	struct mailbox *mailbox; /* where to */
	struct local *from;      /* the sender's local; NULL for mailboxes */
	int outlet;
	book_counter events;                  /* that the sink took */
	book_counter tried[WEIR_CLASSES_MAX]; /* offered to the sink */
};

struct local {
	struct book book;
	struct weir_stage *stage;
	struct time_book *times; /* one per class; NULL where this thread never runs the stage */
	void *thread_state;      /* NULL likewise */
	bool thread_ready;       /* ops->thread_init ran */
	int64_t service_ns; /* of one event, smoothed; below 0: not measured yet. Bounds the next */
	bool batched;       /* batch, unless a batch policy does */
	struct conf *conf;  /* held reference */
	uint64_t conf_version; /* of `conf` */
	uint64_t conf_batch;   /* thread's batch number at which conf was last used */
	struct outbox again;   /* back into the queue of this stage: outlet OUTLET_AGAIN */
	int n_outboxes;
	struct outbox outbox[];
};

struct slowest;

struct thread {
	struct weir_graph *graph;
	struct slowest *slowest; /* the graph's */
	struct thread *next;     /* the graph's list of threads, under its lock */
	char name[24];
	int64_t now_ns; /* start of this batch */
	uint64_t batch; /* number of this batch */
	struct outbox *dirty, **dirty_tail;
	_Atomic(struct weir_stage *) running; /* for crash reports, views */
	_Atomic(const struct weir_event_type *) running_type;
	struct weir_event **run_ev; /* the batch in a handler, for a thread that dies in it */
	int run_n;
	struct weir_event *offer[WEIR_BATCH_MAX]; /* what an outbox is offering */
	_Atomic uint64_t
	    moves;         /* odd: offering or flushing, so counters may be ahead of queues; grows
				   with each of those, and with each batch */
	int refused_by;    /* stage that refused what is being returned, or WEIR_NO_STAGE */
	int tid;           /* kernel's number */
	struct pool *pool; /* whose handler it is, or NULL */
	int64_t stuck_since_ns; /* the watchdog's: start of the last call it reported */
	int n_locals;
	struct local **local; /* by stage id */
	struct outbox mail[MAILBOXES_MAX];
};

extern _Thread_local struct thread *thread_current;

/** The calling thread's struct; it must have entered a graph. */
static inline struct thread *thread_self(void)
{
	WEIR_ASSERT(thread_current != NULL);
	return thread_current;
}

/** Thread `t`, the caller, begins to move events (again), and has moved them. Where stores may be seen out of
 *  order a reader's slack is short by a batch now and then; a fence for each flush is not worth that. */
static inline void moves_begin(struct thread *t)
{
	atomic_store_explicit(&t->moves, atomic_load_explicit(&t->moves, memory_order_relaxed) | 1,
	    memory_order_relaxed);
}

static inline void moves_end(struct thread *t)
{
	atomic_store_explicit(&t->moves,
	    (atomic_load_explicit(&t->moves, memory_order_relaxed) | 1) + 1,
	    memory_order_release); /* partner: moves_of */
}

/** Put `ev` into an outbox of the calling thread. */
static inline void outbox_add(struct thread *t, struct outbox *o, struct weir_event *ev)
{
	ev->next = NULL;
	*o->tail = ev;
	o->tail = &ev->next;
	o->n++;
	if (!o->dirty) {
		o->dirty = true;
		o->next = NULL;
		*t->dirty_tail = o;
		t->dirty_tail = &o->next;
	}
}

/** Add `n` values of `ns` to a histogram. */
void hist_book_add(struct hist_book *h, int64_t ns, uint64_t n);

/** `into` += `from`. */
void hist_book_sum(struct weir_hist *into, const struct hist_book *from);

#endif
