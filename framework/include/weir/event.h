/* SPDX-License-Identifier: MIT */
/*
 * Events: typed messages with one owner, linked through themselves.
 *
 * An event is the first member of a larger struct that its source defines and owns the memory of
 * (a connection owns its request). It is made by weir_event_init(), travels by being given away,
 * and leaves the world through weir_event_finish(), exactly once, with an outcome. A call that may
 * take an event receives `struct weir_event **` and stores NULL when it took it; refused means
 * still yours (rule 19).
 *
 *   IDLE --init--> NEW --sink--> QUEUED --handler--> RUNNING --emit--> QUEUED ...
 *                                          |   \--hold--> HELD --emit or finish--> ...
 *                                          |                 \--requeue--> AGAIN --handler--> RUNNING
 *                                          |
 *                                        finish --> FINISHED --> the type's finish callback
 *
 * The header is one cache line. Who writes: the owner. In a queue, the holder of the queue's lock.
 */
#ifndef WEIR_EVENT_H
#define WEIR_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/annotate.h>
#include <weir/error.h>

struct weir_event;

/** Classes a graph may have; class 0 has the highest priority. */
#define WEIR_CLASSES_MAX 8

/** `deadline_ns` of an event that has none. */
#define WEIR_NO_DEADLINE INT64_MAX

/** Bytes that are not copied: `p[0..n)`, valid as long as the event they came from. */
struct weir_slice {
	const char *p;
	size_t n;
};

/**
 * A named property of events of a type: what YAML may match classes on, form cohorts by and
 * partition by. `get` returns {NULL, 0} when this event has none. Any thread that owns the event.
 */
struct weir_field {
	const char *name; /* NULL ends the table; "header." (dot at the end) takes an argument */
	struct weir_slice (*get)(const struct weir_event *ev, const char *arg);
	const char *help;
};

/** Hops that a trail keeps; later ones are only counted. A guess: graphs are rarely deeper. */
#define WEIR_TRAIL_HOPS 10

/** A stage that an event came through, and when: us from its arrival, at most 71 minutes. */
struct weir_hop {
	uint16_t stage;
	uint32_t queued_us, started_us; /* entered its queue; its batch began */
};

/** The trace that an event belongs to (weir/trace.h); ids are never 0, 0 is none. */
struct weir_trace {
	uint64_t id[2];  /* 128 bits, the high ones first */
	uint64_t parent; /* span of the caller; 0: the trace began here */
	uint64_t span;   /* of the event; 0: not made yet */
	bool sampled;    /* who made the trace records it, or we do: flag 01 of traceparent */
};

/**
 * Where an event has been, in itself: written by the threads that own the event in turn, so it costs no lock and
 * no sampling is needed. About 2 ns a hop, and 25 ns for the clock at the end.
 */
struct weir_trail {
	uint16_t n_hops; /* all of them, WEIR_TRAIL_HOPS at most are kept: the first */
	bool traced;     /* `trace` says something */
	struct weir_hop hop[WEIR_TRAIL_HOPS];
	struct weir_trace trace;
};

/** What all events of one type share. Static storage, immutable. */
struct weir_event_type {
	const char *name; /* as in "http.request" */
	size_t size;      /* bytes of the whole struct, at least sizeof(struct weir_event) */
	/**
	 * The event left the graph with `status` (a WEIR_E code): memory goes back to its source
	 * here. Runs in the thread that finished it, with no lock held; must not block.
	 */
	void (*finish)(struct weir_event *ev, int status);
	const struct weir_field *fields; /* may be NULL */
	/** Offset of a struct weir_trail in the event: its way is kept, and those of the slowest can be asked for
	 *  (weir_graph_slowest). 0: not traced. */
	size_t trail;
	/** Write what the event is, "GET /index.html", into buf[size] as text; control bytes are masked by the caller.
	 *  In the thread that ends it, before `finish`. NULL: nothing to say. */
	void (*describe)(const struct weir_event *ev, char *buf, size_t size);
};

enum weir_event_state {
	WEIR_EVENT_IDLE,
	WEIR_EVENT_NEW,
	WEIR_EVENT_QUEUED,
	WEIR_EVENT_RUNNING,
	WEIR_EVENT_HELD,
	WEIR_EVENT_FINISHED,
	WEIR_EVENT_AGAIN, /* queued, by weir_requeue */
};

/** `ev->stage` while the event is in no stage. */
#define WEIR_NO_STAGE UINT16_MAX

/**
 * Bit of `ev->session`: this is a repeated attempt, refused sooner than first ones under overload. Ids of sessions have
 * the 31 bits below it; an event of nobody that is repeated has this bit alone. Compare sessions without it.
 */
#define WEIR_SESSION_RETRY 0x80000000u

/* Bit 63 of `trace_id` is set in shed ids alone: ids of requests leave it clear. */

struct weir_event {
	struct weir_event *next;            /* whoever holds the event: queue, outbox, source */
	const struct weir_event_type *type; /* set once by init */
	uint64_t key;                       /* cohort key, partition key or colour; 0 unless set */
	uint64_t trace_id;   /* of a request; once refused, why: weir_shed_id(); 0 none */
	int64_t arrival_ns;  /* entered the graph (CLOCK_MONOTONIC) */
	int64_t queued_ns;   /* entered the present queue, one stamp per run */
	int64_t deadline_ns; /* no handler starts after it; WEIR_NO_DEADLINE */
	uint32_t session;    /* whose it is, 31 bits, 0 nobody; | WEIR_SESSION_RETRY */
	uint16_t stage;      /* id of the stage that holds it, or WEIR_NO_STAGE */
	uint8_t class_id;    /* 0 is the highest priority */
	uint8_t state;       /* enum weir_event_state */
};
_Static_assert(sizeof(struct weir_event) == WEIR_CACHE_LINE, "the header is one cache line");

/**
 * Make `ev` a fresh event of `type`: no class, key, session or deadline. Legal on an event that is
 * idle or finished, by its owner. `now_ns` is its arrival. No allocation, about 3 ns.
 */
WEIR_API void weir_event_init(
    struct weir_event *ev, const struct weir_event_type *type, int64_t now_ns);

/**
 * End `*ev` with `status` (a WEIR_E code) and store NULL. Counts the outcome in the stage that
 * holds the event, then runs the type's finish callback. Exactly once per event: a second finish is
 * a bug and dies. Any thread of the graph or attached to it; does not block.
 */
WEIR_API void weir_event_finish(struct weir_event **ev, int status);

/** The same for ev[0..n), n >= 0, no slot NULL: counts them together, so a handler that ends its
 * whole batch pays for counting once. About 1 ns an event, and their callbacks. */
WEIR_API void weir_event_finish_run(struct weir_event **ev, int n, int status);

/** Time left to the deadline in ns from `now_ns`, negative when it passed, INT64_MAX for none. */
static inline int64_t weir_event_left_ns(const struct weir_event *ev, int64_t now_ns)
{
	return ev->deadline_ns == WEIR_NO_DEADLINE ? INT64_MAX : ev->deadline_ns - now_ns;
}

/** Checked cast (rule 22): `ev` as the struct of type `t` whose first member it is. */
static inline void *weir_event_cast(struct weir_event *ev, const struct weir_event_type *t)
{
	WEIR_ASSERT(ev->type == t);
	return ev;
}

/** Hash of a slice for keys: 64-bit XXH3, never 0 (0 means "no key"). */
WEIR_API uint64_t weir_hash(struct weir_slice s);

#endif
