/* SPDX-License-Identifier: MIT */
/*
 * A server in virtual time: the very admission and resize policies of the framework over a model of
 * stages, threads, cores and clients.
 *
 *   clients --send--> door (deadline, policy, bound) --> queue by class --> thread --> next stage
 *      ^                 |                                  |                 |
 *      +---- retry ------+------------ refused, shed -------+---- done -------+
 *
 * The model:
 *   - cores   handlers that compute share the cores evenly (processor sharing): k of them on n cores
 *             each go at min(1, n/k). Handlers that block take no core. A switch costs nothing.
 *   - threads take the highest class first, in batches as flow/cohort.c makes them, and send on when
 *             the batch is done. A thread that is wanted is there at once; one that is not wanted
 *             leaves when it is done with its batch.
 *   - doors   as flow/sink.c: each stage has its own, and asks on behalf of later stages as well, by
 *             admission/route.h. Refusing costs nothing.
 *   - samples as flow/meter.c: every 10 ms, costs by completions, quantiles of about a second.
 *   - clients send at times that do not depend on the server (open loop), or wait for the answer
 *             (closed loop); what fails may be sent again. They stop listening at the deadline.
 *
 * One seed, one result, to the bit: no clock, no thread, no address goes in. A request draws its
 * service times by its own number, so that two policies under one seed face the same work.
 *
 * While it runs the laws of overload.md 3.10 are checked (enum sim_law); the first that is broken
 * ends the run with a sentence and the last steps as CSV.
 */
#ifndef WEIR_SIM_SIM_H
#define WEIR_SIM_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <weir/error.h>
#include <weir/event.h>
#include <weir/spec.h>

#include "admission/admission.h"
#include "control/resize.h"
#include "load/hdr.h"

#define SIM_STAGES_MAX  16
#define SIM_ROUTES_MAX  16
#define SIM_SOURCES_MAX 128
#define SIM_FAULTS_MAX  16
#define SIM_PHASES_MAX  8
#define SIM_USERS_MAX   4096

enum sim_dist_kind { SIM_CONST, SIM_EXP, SIM_BIMODAL, SIM_LOGNORMAL };

/** A distribution of durations with the mean `mean_ns`, whatever its kind. */
struct sim_dist {
	enum sim_dist_kind kind;
	int64_t mean_ns;
	double slow_share; /* bimodal: how many are slow, 0..1 */
	double slow_ratio; /* bimodal: a slow one over a fast one, at least 1 */
	double sigma;      /* lognormal: standard deviation of the logarithm */
};

struct sim_stage {
	const char *name;
	struct sim_dist service; /* of one event, with a core of its own */
	double cpu_share;        /* of it: 1 computes, 0 blocks (the computing comes first) */
	int64_t batch_fixed_ns;  /* on top, once per batch; computed or blocked likewise */
	int batch_max;           /* cohort.max, 1..WEIR_BATCH_MAX */
	uint32_t queue_limit;
	int discipline; /* enum weir_discipline, auto as in flow/graph_build.c */
	int threads_min, threads_max, threads_start;
	const struct admission_policy *admission;
	struct weir_admission_spec params;  /* its strings are not read */
	const struct resize_policy *resize; /* NULL: threads_start for ever */
	int64_t slo_ns;
};

/** The stages that an event visits, in order. */
struct sim_route {
	const char *name;
	int n;
	int stage[SIM_STAGES_MAX];
};

enum sim_arrivals { SIM_POISSON, SIM_UNIFORM, SIM_BURSTS, SIM_CLOSED };

/** From `at_ns` on the source's rate is `factor` times what it was set to. */
struct sim_phase {
	int64_t at_ns;
	double factor;
};

/** Clients of one kind: one class, one route, users [user_first, user_first + users). */
struct sim_source {
	const char *name;
	int class_id, route;
	enum sim_arrivals arrivals;
	double rate_per_s;
	double burst_factor,
	    burst_share;            /* SIM_BURSTS: rate in bursts over the mean; share of time */
	int64_t burst_ns;           /* mean length of a burst */
	int clients;                /* SIM_CLOSED: how many */
	int64_t think_ns;           /* SIM_CLOSED: mean pause after an answer, exponential */
	uint32_t user_first, users; /* users 0: every request is a user of its own */
	int64_t deadline_ns;        /* clients wait so long; 0: for ever */
	bool hides_deadline;        /* the server is not told of it */
	int retries;                /* of what was refused, failed or timed out */
	int64_t backoff_ns;         /* before the first retry, then doubled */
	struct sim_phase
	    phase[SIM_PHASES_MAX]; /* by time; ends at the first at_ns that is not larger */
};

enum sim_fault_kind {
	SIM_SLOW,       /* service of `stage` that begins meanwhile takes `factor` times as long */
	SIM_LOST_TICKS, /* the control thread does not run */
	SIM_CRASH,      /* every `period_ns` a handler of `stage` ends within its batch */
};

struct sim_fault {
	enum sim_fault_kind kind;
	int stage;
	int64_t from_ns, to_ns, period_ns;
	double factor;
};

/**
 * What must hold: overload.md 3.10, as docs/overload.md reads it. A law that is asked for is looked at
 * with every step that could break it, and ends the run when it is broken. Those up to SIM_LAW_BOUND
 * are looked at and counted in any case.
 */
enum sim_law {
	/* The server's doing, whatever the policy. */
	SIM_LAW_BOOKS = 1,    /* I1 offered = refused + shed + ended + in flight */
	SIM_LAW_WORK = 2,     /* I2 queued work is the sum of the queue's; 0 when it is empty */
	SIM_LAW_DEADLINE = 4, /* I7 no handler starts after a deadline */
	SIM_LAW_THREADS = 8,  /* I11 bounds of every pool and of all together */
	SIM_LAW_SENSE = 16,   /* the policy's answers make sense */
	/* Those of admission policies that claim them: `weir`. */
	SIM_LAW_IDLE = 32, /* I3 no refusal over load while a thread of the stage is idle */
	SIM_LAW_USER = 64, /* I5 of a class, a user is not refused where a later one is admitted */
	SIM_LAW_BOUND = 128,   /* I13 what is admitted will wait for at most the objective */
	SIM_LAW_WAIT = 256,    /* I4 99 of 100 wait for at most 1.5 caps */
	SIM_LAW_SHARE = 512,   /* I6 a class that asks for it gets 0.9 of its guarantee */
	SIM_LAW_MIDWAY = 1024, /* I8 who was let in at one door is not refused at a later one */
	SIM_LAW_CALM = 2048,   /* I9 at 0.7 of capacity nobody is refused */
	SIM_LAW_NORMAL = 4096, /* I10 overload ends soon after the load does */
	/* Those of resize policies that claim them: `weir`. */
	SIM_LAW_STEADY = 8192, /* I11 one reversal a minute, no growth that only waits for cores */
	SIM_LAW_CONVERGES =
	    16384, /* I12 soon as many threads as the load needs, wherever it began */
	/* The server's again. */
	SIM_LAW_RETURNED = 32768, /* I14 what dies gives back its credits and its thread */
	SIM_LAW_READS =
	    65536, /* I15 counters do not fall, policies depend on what they are given */
	SIM_LAWS_SERVER = 31 | SIM_LAW_RETURNED | SIM_LAW_READS,
	SIM_LAWS_POLICY = 8160, /* SIM_LAW_IDLE to SIM_LAW_NORMAL */
	SIM_LAWS_POOLS = SIM_LAW_STEADY | SIM_LAW_CONVERGES,
};
#define SIM_LAWS_COUNT 17

/** What was seen of law number i, that of the bit 1 << i. */
struct sim_law_result {
	uint64_t checked; /* times it was looked at: its conditions held */
	uint64_t broken;
	double worst; /* of laws with a limit, how much of it was used at most: broken over 1 */
};

struct sim_config {
	uint64_t seed;
	int cores;
	int n_classes;
	int priority[WEIR_CLASSES_MAX];     /* by class, 0 the highest; not falling */
	double guarantee[WEIR_CLASSES_MAX]; /* of each stage, 0..1 */
	int thread_budget;                  /* of all pools; 0: the sum of their maxima */
	int n_stages, n_routes, n_sources, n_faults;
	struct sim_stage stage[SIM_STAGES_MAX];
	struct sim_route route[SIM_ROUTES_MAX];
	struct sim_source source[SIM_SOURCES_MAX];
	struct sim_fault fault[SIM_FAULTS_MAX];
	int64_t warmup_ns;   /* before; what arrives in it is in no total */
	int64_t measured_ns; /* after the warm-up */
	int64_t bin_ns;      /* of the series; they cover the warm-up, too */
	unsigned laws;       /* enum sim_law: those whose breach ends the run */
	bool probe_all; /* ask the policy again at each admission (I5, I15), not at one in 17 */
	FILE *trace;    /* gets the last steps before a breach; NULL: nobody */
};

/** Totals of what arrived after the warm-up, by attempt. */
struct sim_class_result {
	uint64_t offered, admitted; /* admitted: entered the first queue */
	uint64_t shed[WEIR_SHED_REASONS];
	uint64_t refused_midway; /* of those: at the door of a later stage (I8) */
	uint64_t in_time;        /* completed within the clients' deadline */
	uint64_t late;           /* completed after it */
	uint64_t failed;
	uint64_t retries;    /* attempts that were retries */
	struct hdr wait;     /* in queues, of what completed */
	struct hdr response; /* from the send to the end, of what completed */
};

/** Totals of a stage over the measured time. */
struct sim_stage_result {
	int64_t busy_ns,
	    threads_ns;        /* in handlers; of threads there were: their ratio is utilisation */
	uint64_t completed;    /* events */
	uint64_t refused_idle; /* refused over load while a thread was idle */
	uint64_t user_inversions;  /* probes: a later user would have entered, this one not */
	uint64_t class_inversions; /* the same by class: guarantees do that */
	uint64_t probes;
	uint64_t over_bound; /* admitted though more than the objective's work was waiting */
	uint64_t nonsense;   /* answers that made no sense */
	int reversals;       /* of the number of threads: up after down, down after up */
	int threads_end;
	int64_t pipeline_end_ns; /* work on its way there when all was over, by a last tick: 0 */
	struct hdr wait;
};

/** A slice of time. */
struct sim_bin {
	uint32_t offered, in_time, late, refused;
	uint32_t in_time_class[WEIR_CLASSES_MAX], offered_class[WEIR_CLASSES_MAX];
	int32_t threads[SIM_STAGES_MAX]; /* at its end */
	int32_t queued[SIM_STAGES_MAX];
};

struct sim_result {
	uint64_t events; /* steps of the simulation */
	int64_t ended_ns;
	struct sim_class_result class[WEIR_CLASSES_MAX];
	struct sim_stage_result stage[SIM_STAGES_MAX];
	int64_t service_ns, wasted_ns; /* in handlers; of that for requests that came to nothing */
	int64_t cpu_ns;                /* cores' time used, whole run */
	uint64_t route_in_time[SIM_ROUTES_MAX], route_offered[SIM_ROUTES_MAX];
	uint32_t user_offered[SIM_USERS_MAX], user_in_time[SIM_USERS_MAX];
	int n_bins;
	struct sim_bin *bin; /* owned */
	unsigned broken;     /* enum sim_law of the breach that ended the run, 0 */
	struct sim_law_result law[SIM_LAWS_COUNT];
	char breach[512]; /* the sentence about it */
};

/**
 * Run `config` to the end. 0 and *result, which sim_result_free() frees; WEIR_EINVAL (the sentence
 * in (*result)->breach; so for a law that was broken, with WEIR_EFAILED) or WEIR_ENOMEM, then
 * *result is NULL. Any number of threads may run their own. About 0.3 us per step.
 */
int sim_run(const struct sim_config *config, struct sim_result **result);
void sim_result_free(struct sim_result *r);

/** What law number `i` says, "I4 waits"; NULL past the end. */
const char *sim_law_name(int i);

/** Classes as without any knobs: the first is the highest, the others are guaranteed 2 % each. */
void sim_class_defaults(struct sim_config *c);

/** Requests per second that were in time, between two times of the run. */
double sim_goodput_per_s(
    const struct sim_config *c, const struct sim_result *r, int64_t from_ns, int64_t to_ns);

/** Response time of all classes at quantile `q`, of what completed. */
int64_t sim_response_ns(const struct sim_config *c, const struct sim_result *r, double q);

/** Jain's fairness index of what users [first, first + n) got done. */
double sim_jain(const struct sim_result *r, uint32_t first, uint32_t n);

/** Shed at doors and queues, all reasons. */
uint64_t sim_shed(const struct sim_class_result *k);

/** What stage `i` can do at best with `threads` threads, in events per second. */
double sim_ceiling_per_s(const struct sim_config *c, int i, int threads);

/** Write the series as CSV, one row per bin. */
void sim_write_csv(const struct sim_config *c, const struct sim_result *r, FILE *out);

/** Draw number `k` of `key`, in ns. Pure. */
int64_t sim_draw_ns(const struct sim_dist *d, uint64_t key, uint64_t k);

#endif
