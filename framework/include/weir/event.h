/* SPDX-License-Identifier: MIT */
/*
 * Events: typed messages, each with exactly one owner, linked into intrusive lists.
 *
 * An event is the first member of a larger struct. The source defines that struct and owns its
 * memory (a connection owns its request). weir_event_init() initialises the event, every transfer
 * passes ownership, and weir_event_finish() ends the event exactly once, with an outcome. A call
 * that may take ownership is passed a `struct weir_event **` and sets the pointer to NULL if it
 * takes the event; a refused event still belongs to the caller.
 *
 *   IDLE --init--> NEW --sink--> QUEUED --handler--> RUNNING --emit--> QUEUED ...
 *                                          |   \--hold--> HELD --emit or finish--> ...
 *                                          |              \--requeue--> AGAIN --handler--> RUNNING
 *                                          |\--hold_until--> TICKETED --claim or expiry--> HELD
 *                                          |
 *                                        finish --> FINISHED --> the type's finish callback
 *
 * A RUNNING event may also be requeued, and a HELD event may also get a ticket (hold_until).
 *
 * The header (struct weir_event) is one cache line. Only the owner of an event writes to its
 * header; the owner of a queued event is the holder of the queue's lock.
 */
#ifndef WEIR_EVENT_H
#define WEIR_EVENT_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/annotate.h>
#include <weir/error.h>

WEIR_C_BEGIN

struct weir_event;

/** Largest number of classes in a graph; class 0 has the highest priority. */
#define WEIR_CLASSES_MAX 8

/** Maximum length of a stage, group or class name in bytes, excluding the NUL. Bounded because
 *  names appear in metrics, JSON and web pages. */
#define WEIR_NAME_MAX 64

/** `deadline_ns` of an event without a deadline. */
#define WEIR_NO_DEADLINE INT64_MAX

/** A reference to the bytes p[0..n), not a copy. Valid for the lifetime of the event that the bytes
 *  belong to. */
struct weir_slice {
	const char *p;
	size_t n;
};

/**
 * A named property of events of one type. The configuration can use it to match classes, form
 * cohorts and partition. `get` returns {NULL, 0} if the event does not have the property. Called by
 * the thread that owns the event.
 */
struct weir_field {
	/* NULL ends the table; a name that ends in a dot ("header.") takes an argument: `arg` is
	 * the text that the configuration has after the dot, otherwise NULL */
	const char *name;
	struct weir_slice (*get)(const struct weir_event *ev, const char *arg);
	const char *help;
};

/** Number of hops that a trail records; later hops are only counted. 10 is a guess: graphs are
 *  rarely deeper. */
#define WEIR_TRAIL_HOPS 10

/** A stage that an event passed through. Times are us since the event's arrival, at most 71
 *  minutes. */
struct weir_hop {
	uint16_t stage;
	uint32_t queued_us, started_us; /* when the event was queued; when its batch started */
	/* when it began to wait there for its children or, of a child, ended there; otherwise 0 */
	uint32_t left_us;
};

/** The trace that an event belongs to (weir/trace.h). An id of 0 means none. */
struct weir_trace {
	uint64_t id[2];  /* 128 bits, high word first */
	uint64_t parent; /* span of the caller; 0 if the trace started in this server */
	uint64_t span;   /* span of the event; 0 until one is assigned */
	/* flag 01 of traceparent: the trace is recorded by its creator or by this server */
	bool sampled;
};

/**
 * The path of an event through the graph, stored in the event itself. Only the thread that owns the
 * event writes its trail, so trails need neither a lock nor sampling. A trail costs about 2 ns per
 * hop, plus 25 ns to read the clock when the event ends.
 */
struct weir_trail {
	uint16_t n_hops; /* number of all hops; the first WEIR_TRAIL_HOPS are recorded */
	bool traced;     /* `trace` is set */
	struct weir_hop hop[WEIR_TRAIL_HOPS];
	struct weir_trace trace;
};

/** An event type: properties that all its events share. Static storage, immutable. */
struct weir_loop;

struct weir_event_type {
	const char *name; /* such as "http.request" */
	size_t size;      /* bytes of the whole struct, at least sizeof(struct weir_event) */
	/**
	 * Called when an event has ended with `status` (a WEIR_E code). Must return the event's
	 * memory to the source. Runs in the thread that finished the event, with no lock held, and
	 * must not block.
	 */
	void (*finish)(struct weir_event *ev, int status);
	const struct weir_field *fields; /* may be NULL */
	/** Offset of a struct weir_trail in the event, or 0 if the type is not traced. Traced
	 *  events record their path; weir_graph_slowest returns the paths of the slowest. */
	size_t trail;
	/**
	 * Write a description of the event, such as "GET /index.html", into buf[size]. The caller
	 * masks control bytes. Runs in the thread that finishes the event, before `finish`, or in a
	 * signal handler after a handler crashed: it must allocate nothing and take no lock. May be
	 * NULL.
	 */
	void (*describe)(const struct weir_event *ev, char *buf, size_t size);
	/** Whether the value of `field` can equal pattern[0..n), or start with it if `prefix` is
	 *  set. If it cannot, the callback writes a suggestion into hint[size], and a class with
	 *  this pattern is an error. Called when a graph is checked. If NULL, every pattern can
	 *  match. */
	bool (*may_match)(const struct weir_field *field, const char *pattern, size_t n,
	    bool prefix, char *hint, size_t size);
	/** Return the expected work of the event, in any unit, or the work that is left of an event
	 *  that was requeued; UINT64_MAX if it is unknown. Queues with `discipline: shortest` give the
	 *  event with the least work first. Called by the thread that owns the event. NULL if events
	 *  have no hint. */
	uint64_t (*cost)(const struct weir_event *ev);
	/** Offset of a struct weir_op (weir/op.h) in the event, or 0 if events of the type neither
	 *  have children nor are any. */
	size_t op;
	/** Offset of a struct weir_payloads (weir/payload.h) in the event, or 0 if events of the type
	 *  have no payloads. */
	size_t payloads;
	/**
	 * Called instead of weir_loop_ops.mail with an event of this type that was sent to `loop`
	 * (weir_loop_send), and owns it. For mail of a stage to a loop that it has not started, such
	 * as the one that weir_loop_here returns to an inline stage. Runs in the thread of the loop,
	 * after the mail that was delivered with it. NULL if ops->mail gets events of the type.
	 */
	void (*arrive)(struct weir_loop *loop, struct weir_event *ev);
};

enum weir_event_state {
	WEIR_EVENT_IDLE,
	WEIR_EVENT_NEW,
	WEIR_EVENT_QUEUED,
	WEIR_EVENT_RUNNING,
	WEIR_EVENT_HELD,
	WEIR_EVENT_FINISHED,
	/* requeued by weir_requeue: in the queue, or, at an inline stage, about to run */
	WEIR_EVENT_AGAIN,
	/* held, and its stage has a ticket for it instead of the pointer (weir_hold_until) */
	WEIR_EVENT_TICKETED,
	/* waits for its children to end (weir_await) */
	WEIR_EVENT_AWAITING,
};

/** Value of `ev->stage` while the event is not in a stage. */
#define WEIR_NO_STAGE UINT16_MAX

/**
 * Bit of `ev->session` that marks a repeated attempt. Under overload, repeated attempts are refused
 * before first ones. The lower 31 bits are the session id, which is 0 for an event without a
 * session. Mask this bit before comparing sessions.
 */
#define WEIR_SESSION_RETRY 0x80000000u

/* Bit 63 of `trace_id` is set in shed ids (weir_shed_id), and clear in the ids of requests. */

struct weir_event {
	/* for use by whatever contains the event: a queue, an outbox or a source */
	struct weir_event *next;
	const struct weir_event_type *type; /* set once by init */
	uint64_t key;                       /* for cohorts and partitions; 0 unless set */
	/* id of the request or, after a refusal, the shed id (weir_shed_id()); 0 if none */
	uint64_t trace_id;
	int64_t arrival_ns; /* time of entry into the graph (CLOCK_MONOTONIC) */
	/* time of entry into the current queue; equal for events queued together */
	int64_t queued_ns;
	/* no handler call starts after this time, unless the event was requeued; may be
	 * WEIR_NO_DEADLINE */
	int64_t deadline_ns;
	uint32_t session; /* 31 bits, 0 for no session; bit 31 is WEIR_SESSION_RETRY */
	uint16_t stage;   /* id of the stage that the event is in, or WEIR_NO_STAGE */
	uint8_t class_id; /* class 0 has the highest priority */
	uint8_t state;    /* enum weir_event_state */
};
static_assert(sizeof(struct weir_event) == WEIR_CACHE_LINE, "the header is one cache line");

/**
 * Initialise `ev` as a new event of `type` that arrived at `now_ns`, with class 0 and without a
 * key, session or deadline. Called by the owner; `ev` must be idle or finished. Allocates nothing;
 * costs about 3 ns.
 */
WEIR_API void weir_event_init(
    struct weir_event *ev, const struct weir_event_type *type, int64_t now_ns);

/**
 * Finish `*ev` with `status` (a WEIR_E code) and set `*ev` to NULL. Counts the outcome at the
 * event's current stage, then calls the type's `finish`. Must be called exactly once per event: a
 * second call is a bug and aborts the process. Any thread of the graph or attached to it; does not
 * block.
 */
WEIR_API void weir_event_finish(struct weir_event **ev, int status);

/** Finish ev[0..n), n >= 0, with one status. No slot may be NULL. The events are counted together,
 *  so a handler that finishes its whole batch updates the counters once. Costs about 1 ns per
 *  event, plus the callbacks. */
WEIR_API void weir_event_finish_run(struct weir_event **ev, int n, int status);

/** Time from `now_ns` to the deadline in ns; negative if the deadline has passed, INT64_MAX if the
 *  event has none. */
static inline int64_t weir_event_left_ns(const struct weir_event *ev, int64_t now_ns)
{
	return ev->deadline_ns == WEIR_NO_DEADLINE ? INT64_MAX : ev->deadline_ns - now_ns;
}

/** Checked cast: the struct of event type `t` that begins with `ev`. */
static inline void *weir_event_cast(struct weir_event *ev, const struct weir_event_type *t)
{
	WEIR_ASSERT(ev->type == t);
	return ev;
}

/** Hash of a slice, for use as a key: 64-bit XXH3, but never 0, which means "no key". */
WEIR_API uint64_t weir_hash(struct weir_slice s);

WEIR_C_END

#endif
