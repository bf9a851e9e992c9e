/* SPDX-License-Identifier: MIT */
/*
 * The interface of admission policies, which decide how many of the events offered to a stage are
 * admitted.
 *
 * A policy is a pure function of (state, parameters, view, now): it uses no locks, threads, clocks
 * or stages, so the same code runs in the server and in virtual time (tests/policy). The sink calls
 * it with the queue's lock held, so only one thread at a time uses the state, and the decision and
 * the push that follows it are one atomic step.
 *
 *   admit(n)      which of n events may enter; called per batch and class, highest class first
 *   give_back(n)  takes back n admitted events that the queue then refused
 *   drop()        whether to shed an event, as it leaves the queue, for having waited too long
 *   least_left()  time that an event must have left before its deadline to be worth handling
 *   most_wait()   longest wait after which an event is still worth handling
 *   tick()        learns what happened since the last tick; called every ADMISSION_TICK_NS
 *
 * The caller checks each result m of admit. A valid result (0 <= m <= n) is applied. An invalid one
 * is counted as nonsense, and all events are admitted.
 *
 * A policy with `.front` is also called at upstream stages on behalf of its own stage (route.h).
 * The view's `lead_ns` is then the time from the upstream stage to this one, and `rest_ns` the time
 * from this stage to the finish. The sink implements the modes off, shadow and enforce: in shadow
 * mode the policy is called and its state changes as in the mode enforce, but its refusals are only
 * counted.
 */
#ifndef WEIR_ADMISSION_ADMISSION_H
#define WEIR_ADMISSION_ADMISSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/error.h>
#include <weir/spec.h>

struct fair;

/** Interval between calls of a policy's tick. */
#define ADMISSION_TICK_NS 10000000LL

/** Input of an admission decision on a run, that is, on events of one class in one batch. */
struct admission_view {
	int64_t now_ns;   /* CLOCK_MONOTONIC, or virtual */
	uint32_t length;  /* queued events, including those admitted earlier in this run */
	uint32_t limit;   /* limit on queued and held events together */
	uint32_t held;    /* events that the stage holds (weir_hold), approximate */
	uint32_t running; /* events in handlers of the stage, approximate */
	int n_classes;    /* number of classes of the server; class 0 is the highest */
	double threads;   /* number that serve the stage, above 0; fractional if they are shared */
	int idle;         /* threads without work, approximate */
	/** Work queued or on its way to the queue: the sum, over all classes, of the number of
	 *  events times their mean cost; 0 while `cost_ns` is 0. If the run's partition is served
	 *  by a single thread, this is the work waiting for that thread, times the number of such
	 *  threads. In a group it includes the work of other stages that is done before a new
	 *  event. `length` always counts all partitions. */
	int64_t work_ns;
	int64_t cost_ns; /* mean service time of an event at the stage; 0 if unknown */
	/* the objective of the stage; by default the smallest objective of all classes */
	int64_t slo_ns;
	int64_t lead_ns; /* time from here to the stage; 0 at the stage's own queue */
	int64_t rest_ns; /* waits and service times of later stages; 0 if none or unknown */
	/** Time that each event has left before its deadline. NULL if no event has a deadline. */
	const int64_t *left_ns;
	/** One number per event of the run, 0..65535, derived from the event's user (users.h). High
	 *  numbers are refused first. NULL if users are unknown. */
	const uint16_t *user;
	/** Demand of each event's user, and the users' shares (fair.h), for policies with `.fair`.
	 *  Both are NULL if a thread is idle or no event has had a user yet. */
	const float *demand;
	struct fair *fair;
};

/** What happened at a stage since the last tick. */
struct admission_sample {
	int64_t now_ns, span_ns; /* end and length of the period */
	int n_classes;
	double threads;         /* as in struct admission_view */
	bool idle;              /* a thread is idle, or was idle at some time in the period */
	uint32_t length, limit; /* current length and limit of the queue */
	int64_t work_ns, cost_ns, slo_ns; /* current values, as in struct admission_view */
	uint64_t completed;               /* events completed or failed at the stage */
	/* Means are over the completed events, percentiles over about the last second. Both are 0
	 * if there were no events. */
	int64_t wait_mean_ns; /* time in the queue */
	int64_t wait_p90_ns;
	int64_t response_mean_ns, response_p90_ns; /* wait plus service time */
	int64_t service_p99_ns;                    /* time in a handler */
	struct {
		uint64_t offered; /* events offered, before any refusal here or upstream */
		/* the part of `offered` that the policies of other stages did not refuse */
		uint64_t wanted;
		uint64_t refused; /* by this policy; in shadow mode, what it would have refused */
		uint64_t completed;
		int64_t cost_ns; /* mean service time of this class; 0 if unknown */
		int64_t response_p90_ns;
		int priority;     /* 0 is the highest; never decreases with the class number */
		double guarantee; /* share of the stage, 0..1, that higher classes cannot take */
	} class[WEIR_CLASSES_MAX];
};

/** Maximum size of a policy's state in bytes. The state is embedded in the sink. */
#define ADMISSION_STATE_MAX 640

struct admission_policy {
	const char *name;
	const char *help; /* one sentence for `describe` and the schema */
	size_t state_size;
	/** The queue must be first in, first out across classes. Two kinds of policies need this:
	 *  those that decide by class themselves, since a queue ordered by class could starve the
	 *  events that they admitted, and those that use the waits of events that leave the queue
	 *  (docs/overload.md). */
	bool fifo;
	/** The policy needs a queue, as every policy with `drop` or `tick` does. An inline stage
	 *  cannot have it. */
	bool queue;
	/** The policy may be called at upstream stages on behalf of its own stage (route.h). Events
	 *  judged upstream are not judged again at the stage. */
	bool front;
	void (*init)(void *state, const struct weir_admission_spec *p, int64_t now_ns);
	/** The policy needs the members `demand` and `fair` of the view. */
	bool fair;
	/** Returns how many of `n` events of `class_id` may enter. If it returns m < n, it sets
	 *  `*reason` to a SHED code and refused[i] to true for each refused event; if it sets none,
	 *  the last n - m are refused. refused[0..n) is all false on entry. */
	int (*admit)(void *state, const struct weir_admission_spec *p,
	    const struct admission_view *v, int class_id, int n, bool *refused, int *reason);
	/** Undo the effect that admitting `n` events, which then did not enter, had on the state.
	 *  NULL if there is no such effect. */
	void (*give_back)(void *state, int n);
	/** Returns whether to shed an event that leaves the queue after waiting `wait_ns`. NULL if
	 *  the policy never does. */
	bool (*drop)(
	    void *state, const struct weir_admission_spec *p, int64_t now_ns, int64_t wait_ns);
	/** Returns the least time, in ns, that an event must have left before its deadline to be
	 *  worth handling. Events with less time are shed as EHOPELESS. Called after each tick.
	 *  NULL means 0. */
	int64_t (*least_left)(const void *state);
	/** Returns the longest allowed wait in ns. Events that waited longer are shed as EDELAY
	 *  when they leave the queue. Called after each tick. NULL if there is no bound. */
	int64_t (*most_wait)(const void *state);
	/** Learn from the events since the last tick. NULL if the policy learns nothing. */
	void (*tick)(void *state, const struct weir_admission_spec *p,
	    const struct admission_sample *sample);
	/**
	 * Whether ticks without events would leave later decisions unchanged. If so, such ticks are
	 * skipped, and a single tick replaces them before the policy learns from the next event.
	 * Called when the queue and the handlers are empty and the percentiles are 0. State that
	 * depends only on the clock must be updated when the next event is judged. If `rested` is
	 * NULL, no tick is skipped.
	 */
	bool (*rested)(const void *state);
	/** Returns the share of the class that is admitted now, 0..1, for shed tokens
	 *  (stage/shed_token.h). NULL if the policy does not know the share. */
	double (*part)(const void *state, int class_id);
	/** Describe the current state in one line of at most `size` bytes, for operators and the
	 *  journal. `names` holds the names of all classes, in order, and a NULL after the last; if it
	 *  is NULL, classes are reported by number. Returns the length, or 0 with an empty line if
	 *  there is nothing to report. NULL if the policy never has anything to report. */
	int (*explain)(const void *state, const struct weir_admission_spec *p,
	    const char *const *names, char *buf, size_t size);
};

extern const struct admission_policy admission_none;
extern const struct admission_policy admission_threshold;
extern const struct admission_policy admission_rate;
extern const struct admission_policy admission_codel;
extern const struct admission_policy admission_gradient2;
extern const struct admission_policy admission_dagor;
extern const struct admission_policy admission_seda_rt;
extern const struct admission_policy admission_weir;

/** Return the policy called `name`, or NULL if there is none. */
const struct admission_policy *admission_find(const char *name);

/** Return policy number `i`, or NULL past the last one. */
const struct admission_policy *admission_at(int i);

#endif
