/* SPDX-License-Identifier: MIT */
/*
 * Statistics of a graph: views (snapshots of all counters) and the decisions of its controllers.
 * Any thread, between build and free.
 */
#ifndef WEIR_VIEW_H
#define WEIR_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/annotate.h>
#include <weir/error.h>
#include <weir/event.h>
#include <weir/metric.h>
#include <weir/payload.h>
#include <weir/source.h>

WEIR_C_BEGIN

struct weir_graph;

enum weir_thread_state {
	WEIR_THREAD_BUSY,     /* in a handler */
	WEIR_THREAD_SPINNING, /* polling for work */
	WEIR_THREAD_IDLE,     /* parked */
	WEIR_THREAD_STATES,
};

/** Buckets of weir_stage_view.cohorts: bucket b has the calls with at most 2^b events, and more than
 *  those of the bucket before. The last one has WEIR_BATCH_MAX events, the most of one call. */
#define WEIR_COHORT_BUCKETS 9

/** Return the bucket of a call with `n` events, 1..WEIR_BATCH_MAX. A few instructions. */
static inline int weir_cohort_bucket(int n)
{
	return n > 1 ? 32 - __builtin_clz((unsigned)n - 1) : 0;
}

/** How the threads of a stage spend their time; weir_thread_time_words has the names. */
enum weir_thread_time {
	WEIR_TIME_RUNNING,    /* on a core, in the handler or between two calls */
	WEIR_TIME_RUNNABLE,   /* ready to run, without a core */
	WEIR_TIME_IO,         /* asleep in the handler: in a system call that waits for data */
	WEIR_TIME_LOCK,       /* for a mutex, a condition or another futex */
	WEIR_TIME_MEMORY,     /* in a page fault, or a call that changes the address space */
	WEIR_TIME_SLEEP,      /* in nanosleep */
	WEIR_TIME_BLOCKED,    /* for another or an unknown reason */
	WEIR_TIME_DOWNSTREAM, /* in inline stages after this one, which its threads run */
	WEIR_TIME_IDLE,       /* without work */
	WEIR_TIMES,
};

/** "running", "runnable", "io", "lock", "memory", "sleep", "blocked", "downstream", "idle". Static. */
WEIR_API extern const char *const weir_thread_time_words[WEIR_TIMES];

/** A handler call that the watchdog has reported as stuck (`threads: { stuck }`). */
struct weir_stuck_view {
	uint64_t id; /* number of such calls at the stage, this one included; 0: there was none */
	int64_t wall_ns; /* CLOCK_REALTIME: when it was found */
	int64_t for_ns;  /* how long it had run then; if it still runs, until now */
	bool runs;       /* it has not returned */
	char thread[24];
	char type[WEIR_NAME_MAX + 1]; /* type of its events */
	/* its call stack when it was found, the innermost function first, one line for each frame:
	 * "function (file+0x1a2b)"; the first lines, as many as fit; "" if there is none */
	char stack[2000];
};

/** Statistics of one class at one stage: totals since the server started, except `queued`. */
struct weir_class_view {
	uint64_t offered; /* events offered to the stage's admission */
	/* put into the queue, or run inline; too high by the events that are being refused now, so this
	 * total may decrease by these */
	uint64_t admitted;
	uint64_t completed; /* emitted onwards, or finished as WEIR_OK */
	uint64_t failed;
	/* `spawned`: events that the stage has made (weir/op.h), which are not offered to it.
	 * `departed`: of these, the ones that another stage has admitted, or that ended before that.
	 * offered + spawned = completed + shed + failed + departed + in flight */
	uint64_t spawned, departed;
	/* by reason, at admission or when taken from the queue; an event that the next stage
	 * refuses counts as completed at this stage */
	uint64_t shed[WEIR_SHED_REASONS];
	uint64_t shadow_shed;           /* would have been shed if admission were enforced */
	uint64_t refused_ahead;         /* refused upstream on behalf of this stage */
	uint64_t queued;                /* in the queue now */
	struct weir_hist wait, service; /* time in the queue; time in the handler, per event */
};

/** Response times of the requests of one class of a source, by enum weir_outcome, from the arrival of a
 *  request until the source has handed over the last byte of the answer. Requests whose client went
 *  away before are not counted. */
struct weir_answer_view {
	struct weir_hist by[WEIR_OUTCOMES];
};

struct weir_link_view {
	const char *outlet;
	const char *to; /* name of the stage, or NULL if unlinked */
	const struct weir_event_type *type;
	uint64_t events_total;
	bool loop;
};

/** What a core of a core group does at one of the group's stages: totals since the group was made,
 *  except where a comment says otherwise. */
struct weir_core_view {
	uint64_t visits;  /* of the stage, those counted below included */
	uint64_t urgent;  /* visits that the `urgent` of the stage has begun */
	uint64_t starved; /* visits that the `starve` of the group has begun */
	uint64_t events;  /* taken by the core */
	uint64_t
	    from_queue; /* of these, taken from the queue of the stage; others were in the cell */
	/* events that the core has sent to the queue, since another core was idle; some may have
	 * been refused there */
	uint64_t dealt;
	/* slots of serial keys that the core has given to idle cores, with their events in all serial
	 * stages; 0 at other stages */
	uint64_t moved;
	uint64_t waiting;       /* in the cell now */
	int64_t oldest_wait_ns; /* age of the oldest event in the cell, 0 if there is none */
	uint64_t batches;       /* handle calls */
	/* in these calls, and in taking and sending their events; of a call in progress, what had
	 * passed when the control thread last looked, or more. Without the work of spare threads,
	 * which is done while the core sleeps in a call. */
	uint64_t busy_ns;
	/* times that a visit ended, or was interrupted, before the stage had no more events on the
	 * core: by the gate, by a stage that was urgent, or by one that had starved */
	uint64_t cut_gate, cut_urgent, cut_starved;
	/* longest time that an event waited until the core took it, in the last 30 to 60 s */
	int64_t longest_wait_ns;
	/* handler calls in which the core was asleep for 5 ms or longer; a spare thread then serves the
	 * queues in its place, and its events, batches and visits are added to those of the core */
	uint64_t blocked;
	/* how long it has slept in its present call until now, and the name of that stage; 0 and
	 * NULL if it is not blocked now */
	int64_t blocked_ns;
	const char *blocked_in;
	/* The same of the spare thread. Nothing stands in for a spare, so until one of the two is
	 * back, no thread takes what waits for this core. */
	int64_t spare_blocked_ns;
	const char *spare_blocked_in;
};

/** A stage of a core group: when it is urgent; 0: no such threshold. */
struct weir_group_stage_view {
	const struct weir_stage_view *stage;
	uint32_t urgent_events;
	int64_t urgent_wait_ns;
};

/** A core group. The settings are those in effect. */
struct weir_group_view {
	const char *name, *schedule;
	const char *source; /* the source whose I/O threads are the cores; NULL: none */
	char gate[48];      /* as in the YAML: "all", "arrived: true", "events: 16", "time: 10ms" */
	int64_t starve_ns;  /* 0: never */
	bool balance;       /* events are given to idle cores */
	bool newest;        /* the newest event of a cell is served first */
	int cores;          /* number of cores now */
	int n_cores;        /* length of `core`: the most cores that it may get */
	struct weir_core_view *core; /* sums and maxima over its stages */
	int n_stages;
	struct weir_group_stage_view *stages; /* in the order of `visit` */
};

struct weir_stage_view {
	const char *name, *use, *summary;
	const char *state; /* "running", "paused", "draining", "drained" */
	/* why the stage cannot serve (no thread, or a handler holds up an I/O thread), or "" */
	char trouble[200];
	/* the stage's pool: the name of the group or the stage; "" if the stage has no pool */
	const char *group;
	const char *placement; /* "source", "inline", "pool", "group" */
	/* inline, of a type that may block: only the client waits whose event is in the call */
	bool blocks_alone;
	const char *mode;            /* "shared", "exclusive", "partitioned", "replicated" */
	const char *admission;       /* policy name */
	const char *admission_mode;  /* "off", "shadow", "enforce" */
	char admission_why[160];     /* the policy's own description of its state; may be "" */
	uint64_t admission_nonsense; /* invalid results from the policy, which were ignored */
	/* length of the longest path from a source, for drawing the graph */
	int depth;
	uint64_t queue_length, queue_limit;
	uint64_t in_flight; /* queued + running + held + awaiting */
	uint64_t held;
	uint64_t awaiting; /* events that wait for their children (weir/op.h) */
	/* Events that the stage has made, of all classes, and those of them that have ended: for a
	 * parent that awaited them, without one, or as WEIR_ECANCELLED. The rest is somewhere in the
	 * graph, or has ended for a parent that awaits others still. An event without a struct
	 * weir_op counts as orphaned at once. */
	uint64_t spawned, joined, orphaned, cancelled;
	/* Of the spawned ones, children that weir_child has refused with WEIR_ELIMIT; they count as
	 * orphaned. */
	uint64_t children_refused;
	uint32_t children_max; /* `children:`: how many an event may have at a time */
	/* for stages with a width, otherwise 0: number of events that may be in handlers or held at
	 * once, the bounds of that number, and the current number of such events */
	int width, width_min, width_max, in_work;
	char width_why[120];  /* the width policy's own description of its state; may be "" */
	uint64_t refusals;    /* events refused by what the stage waits for (weir_hold_refused) */
	int64_t law_residual; /* offered - ended - in flight, from one pass over the counters */
	/* largest |law_residual| that events moving during the pass can explain; a larger one is a
	 * bug */
	int64_t law_slack;
	int threads[WEIR_THREAD_STATES];
	int threads_now, threads_target, threads_min, threads_max;
	/* of threads[WEIR_THREAD_BUSY] and threads_now: threads that stand in for blocked cores */
	int spares_busy, spares_now;
	uint64_t thread_failures, thread_deaths;
	uint64_t busy_ns; /* time in handlers, summed over threads */
	/* How the threads have spent their time, summed over them; of the stages of a group, each has
	 * its part. For an inline stage, which has no threads: its part of busy_ns. 0 for a source with
	 * more than 64 loops. The kernel may not count WEIR_TIME_RUNNABLE (times_known is false); it is
	 * then 0, and part of another time. See graph/time_split.h. */
	uint64_t time_ns[WEIR_TIMES];
	bool times_known;
	uint64_t batches; /* number of handle calls */
	/* events in these calls; the mean cohort is batch_events / batches */
	uint64_t batch_events;
	/* of these calls, by weir_cohort_bucket, those with as many events. Counters are read while
	 * they change, so the sum may differ from `batches` by the calls that have just ended. */
	uint64_t cohorts[WEIR_COHORT_BUCKETS];
	uint64_t wakeups;   /* sleeping threads woken for this stage */
	uint64_t unhandled; /* events that the handler left behind (weir/stage.h) */
	/* payloads and reservations that the stage was refused (weir/payload.h), by enum
	 * weir_payload_refusal */
	uint64_t payload_refused[WEIR_PAYLOAD_REFUSALS];
	int64_t oldest_wait_ns;            /* age of the oldest waiting event, 0 if none waits */
	uint64_t stuck;                    /* handle calls that took longer than threads.stuck */
	struct weir_stuck_view stuck_call; /* the last one with a call stack */
	/* duration so far of the longest handle call in progress, or 0 */
	int64_t longest_running_ns;
	int64_t slo_ns;
	double pressure;
	double degradation; /* weir_degradation, 0..1 */
	int n_links;
	struct weir_link_view *links;
	int n_metrics;
	const struct weir_metric *metrics;
	int64_t metric[WEIR_METRICS_MAX];
	struct weir_class_view class_view[WEIR_CLASSES_MAX];
	struct weir_answer_view *answers; /* of a source, by class; NULL for other stages */
	struct weir_clients clients;      /* of a source with ops->clients; zero for others */
	/* for stages in a core group, otherwise 0 and NULL: the cores of the group */
	int n_cores;
	struct weir_core_view *cores;
};

/** A decision of a controller or a person, as recorded in the journal. */
struct weir_decision {
	uint64_t id;
	int64_t at_ns;                 /* CLOCK_MONOTONIC */
	int64_t wall_ns;               /* CLOCK_REALTIME */
	char stage[WEIR_NAME_MAX + 1]; /* stage or group */
	char actor[24];                /* policy name, "operator", "reload", "repair" ... */
	char action[24]; /* "grow", "shrink", "limit", "set", "batch", "width", "stuck" ... */
	char rule[96];   /* why: "the queue of 187 was over the threshold of 64" */
	/* the limit that restricted the decision, such as "wanted 9, max 8"; "" if none */
	char limit[48];
	char inputs[160]; /* "queue=187 busy=4 arrivals=912/s" */
	int from, to;     /* number of threads, batch size or width, before and after */
	/** Effect of a grow or shrink after 5 s and 30 s: "helped", "no effect", "harmed" or
	 *  "undone"; "" if not known yet, or for other actions. See docs/api.md. */
	char outcome_5s[12], outcome_30s[12];
};

/** State of the event collection for an export (weir_graph_collect). */
struct weir_collect_state {
	bool on;
	uint64_t waiting; /* events in the queue */
	/* number of selected events that were queued, and that were dropped at a full queue */
	uint64_t collected, dropped;
	uint64_t sent, failed; /* totals passed to weir_graph_collect_sent */
};

struct weir_graph_view {
	const char *name;
	int64_t now_ns, wall_ns, started_ns;
	bool ready, draining;
	int n_classes;
	const char *class_name[WEIR_CLASSES_MAX]; /* the highest first */
	/* the objective that the configuration sets for the class (`slo`), 0 if it sets none */
	int64_t class_slo_ns[WEIR_CLASSES_MAX];
	int n_stages;
	struct weir_stage_view *stages;
	int n_groups;
	struct weir_group_view *groups; /* the core groups */
	uint64_t decisions_total;       /* the id of the newest decision */
	/* like decisions_total, but never smaller than in the previous graph */
	uint64_t decided_total;
	uint64_t acts_total; /* the id of the newest change (weir_graph_changes) */
	struct weir_collect_state collect;
	/* memory that payloads have reserved, and the budget (`payloads.memory`) */
	uint64_t payload_bytes, payload_bytes_limit;
};

/**
 * Take a snapshot of all statistics. The totals of a stage continue those of the stage of the same
 * name in the previous graph (weir_graph_succeed) and never decrease. Gauges, the conservation law
 * and events in flight cover only this graph. Costs a few us per stage and per thread that has used
 * the stage, including previous graphs that have not been freed, so take only one view per scrape.
 * Returns 0 or WEIR_ENOMEM. Free the view with weir_graph_view_free; its names live as long as the
 * graph.
 */
WEIR_API int weir_graph_view(const struct weir_graph *graph, struct weir_graph_view **view);
WEIR_API void weir_graph_view_free(struct weir_graph_view *view);

/** Copy the newest `n` decisions into `out`, newest first, and return their number. Any thread. */
WEIR_API int weir_graph_decisions(const struct weir_graph *graph, struct weir_decision *out, int n);

WEIR_C_END

#endif
