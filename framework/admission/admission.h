/* SPDX-License-Identifier: MIT */
/*
 * The contract of admission policies: may a run of events enter a stage?
 *
 * A policy is a pure function of (state, parameters, view, now): no locks, threads, clocks or
 * stages inside, so the same code runs in the server and in virtual time (tests/policy). The sink
 * calls it with the queue's lock held, so the state is never touched by two threads at once, and a
 * decision and the push it allows are one step.
 *
 *   admit(n)      per run and class, highest class first: which of n events may enter
 *   give_back(n)  the queue had room for fewer: n admitted ones did not enter
 *   drop()        per event that leaves the queue: shall it be shed now, for it waited too long?
 *   least_left()  how much of its time an event must have left to be worth a handler
 *   most_wait()   how long it may have waited to be
 *   tick()        every ADMISSION_TICK_NS: what happened since the last
 *
 * What a policy returns is checked by its caller, who obeys only what makes sense (0 <= m <= n) and
 * counts the rest as nonsense. A policy with `.front` is asked at doors upstream as well (route.h):
 * `lead_ns` and `rest_ns` tell how far from the stage that door is.  Off / shadow / enforce is the sink's business: in shadow mode a
 * policy runs and is charged as if enforced, and only the refusals are counted.
 */
#ifndef WEIR_ADMISSION_ADMISSION_H
#define WEIR_ADMISSION_ADMISSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/error.h>
#include <weir/spec.h>

/** How often a policy's tick is called (overload.md 3.7). */
#define ADMISSION_TICK_NS 10000000LL

/** What a policy may look at when it admits. */
struct admission_view {
	int64_t now_ns;   /* CLOCK_MONOTONIC, or virtual */
	uint32_t length;  /* events queued, those admitted earlier in this run included */
	uint32_t limit;   /* the queue's bound */
	uint32_t running; /* events that handlers of the stage are at, about */
	int n_classes;    /* of the server; class 0 is the highest */
	int threads;      /* that serve the stage, at least 1 */
	int idle;         /* of them: have nothing to do, about */
	/** Of what is queued and on its way to the queue: events of each class times their cost; 0: not
	 *  known. */
	int64_t work_ns;
	int64_t cost_ns; /* mean service time of an event of the stage; 0: not known */
	int64_t slo_ns;  /* the objective: the smallest of the routes through the stage */
	int64_t lead_ns; /* from this door to the stage's: 0 at its own */
	int64_t rest_ns; /* waits and services of later stages; 0: none, or not known */
	/** Time that each event has left to its deadline; NULL: none has one. */
	const int64_t *left_ns;
	/** One number per event of the run, the same for all events of a user, even over 0..65535; a
	 *  low one is served longer. NULL: users are not known. */
	const uint16_t *user;
};

/** What happened at a stage since the last tick. */
struct admission_sample {
	int64_t now_ns, span_ns; /* the end and the length of the time */
	int n_classes;
	int threads;            /* as in the view */
	bool idle;              /* a thread had nothing to do, now or at some time since */
	uint32_t length, limit; /* of the queue, now */
	int64_t work_ns, cost_ns, slo_ns; /* as in the view, now */
	uint64_t completed;               /* events the stage's handlers were done with */
	int64_t wait_mean_ns;             /* of them, in the queue; 0 when there were none */
	int64_t wait_p90_ns; /* 90th percentile over about a second, 0 when there is none */
	int64_t response_mean_ns, response_p90_ns; /* wait and service together, likewise */
	int64_t service_p99_ns;                    /* in a handler, likewise */
	struct {
		uint64_t offered; /* before any refusal, at whichever door the policy was asked */
		uint64_t wanted;  /* of those: that no other stage's policy refused */
		uint64_t refused; /* by the policy (in shadow: would have been) */
		uint64_t completed;
		int64_t cost_ns; /* mean service time of this class; 0: not known */
		int64_t response_p90_ns;
		int priority;     /* 0 is the highest; does not fall with the class's number */
		double guarantee; /* of the stage, 0..1, whatever higher classes offer */
	} class[WEIR_CLASSES_MAX];
};

/** Largest state of a policy in bytes; it lives inside the sink. */
#define ADMISSION_STATE_MAX 640

struct admission_policy {
	const char *name;
	const char *help; /* one sentence for `describe` and the schema */
	size_t state_size;
	/** Behind it the queue is first in, first out whatever the class: the policy decides by class itself,
	 *  so a second priority would starve what it let in, or reads the wait of whoever comes
	 *  out (docs/overload.md). */
	bool fifo;
	/** Doors upstream ask on behalf of the stage (route.h); then its own does not ask again. */
	bool front;
	void (*init)(void *state, const struct weir_admission_spec *p, int64_t now_ns);
	/** How many of `n` events of `class_id` may enter; when less, `*reason` is a SHED code and
	 *  refused[i] tells which did not, if the policy cares (all false: the last n - m). refused[n]
	 *  is all false at first. */
	int (*admit)(void *state, const struct weir_admission_spec *p,
	    const struct admission_view *v, int class_id, int n, bool *refused, int *reason);
	/** `n` admitted events did not enter after all. NULL: the policy charges nothing. */
	void (*give_back)(void *state, int n);
	/** An event that waited `wait_ns` leaves the queue. True: shed it. NULL: never. */
	bool (*drop)(
	    void *state, const struct weir_admission_spec *p, int64_t now_ns, int64_t wait_ns);
	/** Events with less time left to their deadline than that, in ns, are not worth a handler now: they
	 *  are shed as EHOPELESS. Asked after each tick. NULL: 0. */
	int64_t (*least_left)(const void *state);
	/** Events that waited longer than that, in ns, are shed as EDELAY when they leave the queue. Asked
	 *  after each tick. NULL: no bound. */
	int64_t (*most_wait)(const void *state);
	/** NULL: nothing to learn. */
	void (*tick)(void *state, const struct weir_admission_spec *p,
	    const struct admission_sample *sample);
	/** Share of the class that is admitted now, 0..1, for tokens of the refused. NULL: not known. */
	double (*part)(const void *state, int class_id);
	/** Why the door is as it is, in one line of at most `size` bytes, for the journal and people; its
	 *  length. 0 and an empty line when there is nothing to say. NULL: never. */
	int (*explain)(
	    const void *state, const struct weir_admission_spec *p, char *buf, size_t size);
};

extern const struct admission_policy admission_none;
extern const struct admission_policy admission_threshold;
extern const struct admission_policy admission_rate;
extern const struct admission_policy admission_codel;
extern const struct admission_policy admission_gradient2;
extern const struct admission_policy admission_dagor;
extern const struct admission_policy admission_seda_rt;
extern const struct admission_policy admission_weir;

/** The policy called `name`, NULL when there is none. */
const struct admission_policy *admission_find(const char *name);

/** Policy number `i`, NULL past the end. */
const struct admission_policy *admission_at(int i);

#endif
