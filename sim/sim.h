/* SPDX-License-Identifier: MIT */
/*
 * Simulates a server in virtual time: the unmodified admission and resize policies of the framework
 * run with a model of stages, threads, cores and clients.
 *
 *   clients --send--> admission (deadline, policy, bound) --> queue by class --> thread --> next
 *      ^                 |                                       |                 |
 *      +---- retry ------+------------ refused, shed ------------+---- done -------+
 *
 * The model:
 *
 * - cores: computing handlers share the cores evenly (processor sharing): with k of them on n
 *   cores, each runs at min(1, n/k). Blocked handlers use no core. Context switches take no time.
 * - threads: take the highest class first, or the oldest event with a FIFO discipline, in batches
 *   as in stage/cohort.c, and emit the events when the batch is done. A new thread is available
 *   immediately; a superfluous thread exits after its batch.
 * - admission: as in stage/sink.c. Each stage has its own admission, which also decides on behalf
 *   of later stages (admission/route.h). Refusing takes no time.
 * - core groups: each core runs sched/next.h, unmodified, over cells of its own and the queues that
 *   all cores of the group share (group.h).
 * - samples: as in graph/meter.c, every 10 ms, with costs averaged over completions and quantiles
 *   over about a second.
 * - clients: send at times that do not depend on the server (open loop), or wait for the response
 *   (closed loop). A client may retry failed requests. It gives up at the deadline.
 *
 * The result depends only on the configuration, which includes the seed. It is equal to the bit in
 * each run: no clock, thread or address influences it. Service times are drawn by the number of the
 * request, so two policies with the same seed face the same work.
 *
 * During a run the invariants of docs/overload-derivation.md ("What must hold") are checked; they
 * are called laws here (enum sim_law). The first breach ends the run with a description of the
 * breach and the last steps as CSV.
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
#include "control/width.h"
#include "load/hdr.h"
#include "sched/next.h"

#define SIM_STAGES_MAX  32
#define SIM_GROUPS_MAX  8
#define SIM_CORES_MAX   64 /* of a core group */
#define SIM_ROUTES_MAX  16
#define SIM_SOURCES_MAX 128
#define SIM_FAULTS_MAX  16
#define SIM_PHASES_MAX  8
#define SIM_USERS_MAX   4096
#define SIM_RECENT      4
#define SIM_FIELDS_MAX  SIM_STAGES_MAX
#define SIM_VALUES_MAX  65536 /* of a field */

enum sim_dist_kind { SIM_CONST, SIM_EXP, SIM_BIMODAL, SIM_LOGNORMAL };

/** A distribution of durations. Every kind has the mean `mean_ns`. */
struct sim_dist {
	enum sim_dist_kind kind;
	int64_t mean_ns;
	double slow_share; /* bimodal: share of slow durations, 0..1 */
	double slow_ratio; /* bimodal: ratio of a slow duration to a fast one, at least 1 */
	double sigma;      /* lognormal: standard deviation of the logarithm */
};

/** A field of the requests that serial stages name (docs/concepts.md). */
struct sim_field {
	uint32_t values;    /* how many different values requests have; 0 for the class */
	double first_share; /* share of requests with the first value; the others take any */
};

/** When events that a core sends to a stage of its own group wait in the core's cell of the stage. */
enum sim_local {
	SIM_LOCAL_AUTO,
	SIM_LOCAL_ALWAYS,
	SIM_LOCAL_NEVER,
	SIM_LOCAL_KEPT, /* of a replicated stage: always, and they are never dealt */
};

/** What scheduling costs the cores of a group. */
struct sim_group_costs {
	int64_t batch_ns;  /* choice, take and release of a batch */
	int64_t switch_ns; /* more if the batch before was one of another stage */
	int64_t event_ns;  /* one event through a cell: to send it and to take it */
	int64_t queue_ns;  /* more if it goes through a queue */
	int64_t deal_ns;   /* more for a batch whose core deals */
	/* an idle core spins for `spin_ns` and finds events after `poll_ns`; then it sleeps, and
	 * takes `wake_ns` to wake up */
	int64_t poll_ns, spin_ns, wake_ns;
	/* for each stage without events that a policy would have polled before the chosen one, if
	 * it did not know which stages have events. 0 in weir; Gordon's policies poll. */
	int64_t miss_ns;
};

/** One broken rule, for tests of the laws of core groups. */
enum sim_mutant {
	SIM_SOUND,
	SIM_ANY_INBOX,   /* a core without events in its inbox takes from those of others */
	SIM_TWO_OWNERS,  /* a core that has given a slot away still takes itself for its owner */
	SIM_MOVE_LEAVES, /* the events of a slot stay behind when it moves */
	SIM_MOVE_TURNED, /* of a slot that moves, those in the inbox go before those in the cell */
	SIM_CELL_OVERTAKES, /* a cell takes events though the inbox has older ones */
	SIM_BY_CLASS,       /* an inbox gives the higher class first */
	SIM_TWO_AT_ONCE,    /* a core takes from the queue of a busy exclusive stage */
	SIM_ANY_PART,       /* a core takes from any partition */
	SIM_HASTY,          /* a core takes events that linger */
	SIM_LOOKS_LATE, /* a core looks for starved stages a sixteenth of `starve` after a choice */
};

/** A core group: stages that share cores, each of which chooses the stage it visits next. */
struct sim_group {
	const char *name;
	const struct next_policy *policy;
	struct next_limits limits; /* `urgent` by place */
	int cores;                 /* 1 to SIM_CORES_MAX */
	/* if below `cores` (0: not): the cores at the start and the fewest, between which `resize`
	 * decides. Not with replicas or a source whose requests the cores read */
	int cores_min;
	const struct resize_policy *resize;
	bool unbalanced; /* no events are dealt to idle cores */
	/* copies of the group, each with as many of the cores; events from outside go to them in
	 * turn. 0 or 1: one */
	int replicas;
	bool newest; /* events enter a cell at its front */
	struct sim_group_costs cost;
	enum sim_mutant mutant;
};

/** The fewest cores that the group may have, which it has at the start. */
static inline int sim_fewest_cores(const struct sim_group *g)
{
	return g->cores_min > 0 ? g->cores_min : g->cores;
}

struct sim_stage {
	const char *name;
	struct sim_dist service; /* of one event, on an otherwise idle core */
	/* share of the service that is CPU time: 1 only computes, 0 only blocks; computing comes
	 * first */
	double cpu_share;
	int64_t batch_fixed_ns; /* added once per batch; also split by cpu_share */
	int batch_max;          /* cohort.max, 1..WEIR_BATCH_MAX */
	uint32_t queue_limit;
	/* a batch begins with `batch_max` events, or once its oldest event has waited this long (0: at
	 * once). Not with a width, a serial key, replicas, or SIM_LOCAL_KEPT */
	int64_t linger_ns;
	int discipline; /* enum weir_discipline, auto as in graph/build.c */
	/* with WEIR_DISCIPLINE_SHORTEST: events that waited longer come first (0: never), and the
	 * expected work is the service time times or divided by at most 1 + `hint_error` */
	int64_t queue_starve_ns;
	double hint_error;
	int threads_min, threads_max, threads_start;
	const struct admission_policy *admission;
	struct weir_admission_spec params;  /* its strings are not used */
	const struct resize_policy *resize; /* NULL keeps threads_start */
	/* NULL, except for a stage with a width (docs/concepts.md). Each thread of such a stage
	 * stands for an event in progress, and `width` chooses their number. The events wait for
	 * `servers` outside the stage, which work on them first in, first out. If `servers` is 0,
	 * no event waits for a server. */
	const struct width_policy *width;
	int servers;
	int64_t slo_ns;
	/* 0, or 1 + the index of the core group whose cores run the stage. Its numbers of threads
	 * must be that of the cores. `place` is the stage's number in the group: 0, 1, 2, ... */
	int group;
	int place;
	enum sim_local local;
	bool exclusive; /* one batch at a time; only for stages of core groups */
	/* 0, or 1 + the index of a field: the stage is serial; only for stages of core groups that
	 * are not exclusive */
	int serial;
	/* 0, or 1 + the index of a field: the queue is partitioned by it. Only with SIM_LOCAL_NEVER in a
	 * core group without replicas; not with exclusive, serial, `shortest` or linger */
	int partition;
};

/** The stages that an event visits, in order. */
struct sim_route {
	const char *name;
	int n;
	int stage[SIM_STAGES_MAX];
};

enum sim_arrivals { SIM_POISSON, SIM_UNIFORM, SIM_BURSTS, SIM_CLOSED };

/** From `at_ns` on, the source's rate is multiplied by `factor`. */
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
	/* SIM_BURSTS: ratio of the rate in bursts to the mean rate; share of time in bursts */
	double burst_factor, burst_share;
	int64_t burst_ns; /* mean length of a burst */
	int clients;      /* SIM_CLOSED: number of clients */
	int64_t think_ns; /* SIM_CLOSED: mean pause after a response, exponential */
	/* 0, or 1 + the index of a core group: its cores read the requests, each from connections
	 * of its own, between batches */
	int group;
	uint32_t user_first, users; /* if users is 0, every request has its own user */
	/* each request takes one of the routes of all sources, in proportion to their rates */
	bool any_route;
	/* if above 1: only each `every`-th of `every` times as many arrivals is sent, as to one of
	 * several servers that take turns */
	int every;
	int64_t deadline_ns; /* how long clients wait; 0 means forever */
	bool hides_deadline; /* the server does not know the deadline */
	/* maximum retries of a request that was refused, failed or timed out */
	int retries;
	int64_t backoff_ns; /* before the first retry, then doubled */
	/* in ascending order of at_ns; the first entry out of order ends the list */
	struct sim_phase phase[SIM_PHASES_MAX];
};

enum sim_fault_kind {
	/* services of `stage` that start during the fault take `factor` times as long */
	SIM_SLOW,
	SIM_LOST_TICKS, /* the control thread does not run */
	SIM_CRASH,      /* every `period_ns`, a handler of `stage` crashes during its batch */
};

struct sim_fault {
	enum sim_fault_kind kind;
	int stage;
	int64_t from_ns, to_ns, period_ns;
	double factor;
};

/**
 * Laws that must hold; docs/overload-derivation.md explains them under "What must hold". An enabled
 * law is checked at every step that could break it, and a breach ends the run. Laws up to
 * SIM_LAW_BOUND are always checked and counted.
 */
enum sim_law {
	/* Laws of the server, which hold for every policy. */
	SIM_LAW_BOOKS = 1,    /* I1 offered = refused + shed + finished + in flight */
	SIM_LAW_WORK = 2,     /* I2 queued work is the sum over the queue, 0 for an empty queue */
	SIM_LAW_DEADLINE = 4, /* I7 no handler starts after a deadline */
	SIM_LAW_THREADS = 8,  /* I11 every pool, and all pools together, stay within bounds */
	SIM_LAW_SENSE = 16,   /* the policy's verdicts are consistent */
	/* Laws of admission policies that claim them: `weir`. */
	SIM_LAW_IDLE = 32,   /* I3 no overload refusal while a thread of the stage is idle */
	SIM_LAW_USER = 64,   /* I5 within a class, no user is refused if a later one is admitted */
	SIM_LAW_BOUND = 128, /* I13 admitted events will wait for at most the objective */
	SIM_LAW_WAIT = 256,  /* I4 99 % of events wait for at most 1.5 caps */
	SIM_LAW_SHARE = 512, /* I6 a class with demand receives 0.9 of its guarantee */
	/* I8 a request admitted at one stage is not refused at a later one */
	SIM_LAW_MIDWAY = 1024,
	SIM_LAW_CALM = 2048,   /* I9 at 0.7 of capacity nothing is refused */
	SIM_LAW_NORMAL = 4096, /* I10 NORMAL is reported soon after the load falls */
	/* Laws of resize policies that claim them: `weir`. */
	/* I11 at most one reversal a minute, no threads added that only wait for cores */
	SIM_LAW_STEADY = 8192,
	/* I12 a pool soon has the threads that the load needs, from any initial number */
	SIM_LAW_CONVERGES = 16384,
	/* More laws of the server. */
	SIM_LAW_RETURNED = 32768, /* I14 credits and threads are returned after failures */
	/* I15 counters never decrease, policies depend only on their input */
	SIM_LAW_READS = 65536,
	/* Laws of core groups (laws_group.c); the numbers are those of the design. */
	SIM_LAW_SHARES = 1 << 17,   /* S1 no core idles while another may deal to it */
	SIM_LAW_STARVED = 1 << 18,  /* S2 a starved stage waits for a batch of each other stage */
	SIM_LAW_GATE = 1 << 19,     /* S3 a visit keeps its gate */
	SIM_LAW_URGENT = 1 << 20,   /* S6 an urgent stage is next */
	SIM_LAW_TABLE = 1 << 21,    /* S9 mg1 visits each stage as often as the formula says */
	SIM_LAW_LIMIT = 1 << 22,    /* S10 cells and queue together keep the limit of the queue */
	SIM_LAW_PREDICTS = 1 << 23, /* S11 the predicted wait is not much less than the wait */
	SIM_LAW_SERIAL =
	    1 << 24,             /* S4 events of a serial key never overlap, and keep their order */
	SIM_LAW_ALONE = 1 << 25, /* S5 an exclusive stage runs one batch, no core waits for it */
	/* S12 a batch of a stage with `linger` is full, or begins once its oldest event waited */
	SIM_LAW_LINGER = 1 << 26,
	SIM_LAWS_GROUPS =
	    63 << 17 | SIM_LAW_SERIAL | SIM_LAW_ALONE | SIM_LAW_LINGER, /* S1 to S12 */
	SIM_LAWS_SERVER = 31 | SIM_LAW_RETURNED | SIM_LAW_READS,
	SIM_LAWS_POLICY = 8160, /* SIM_LAW_IDLE to SIM_LAW_NORMAL */
	SIM_LAWS_POOLS = SIM_LAW_STEADY | SIM_LAW_CONVERGES,
};
#define SIM_LAWS_COUNT 27

/** Result of law number i, whose bit in enum sim_law is 1 << i. */
struct sim_law_result {
	uint64_t checked; /* number of checks; the law is checked only if its conditions hold */
	uint64_t broken;
	/* for laws with a limit, the largest ratio of a value to the limit; above 1 the law is
	 * broken */
	double worst;
};

struct sim_config {
	uint64_t seed;
	int cores;
	int n_classes;
	int priority[WEIR_CLASSES_MAX];     /* by class, ascending; 0 is the highest priority */
	double guarantee[WEIR_CLASSES_MAX]; /* share of each stage, 0..1 */
	/* maximum threads of all pools together; 0 for the sum of their maxima */
	int thread_budget;
	int n_groups, n_stages, n_routes, n_sources, n_faults;
	struct sim_group group[SIM_GROUPS_MAX];
	struct sim_stage stage[SIM_STAGES_MAX];
	struct sim_route route[SIM_ROUTES_MAX];
	struct sim_source source[SIM_SOURCES_MAX];
	struct sim_fault fault[SIM_FAULTS_MAX];
	int n_fields;
	struct sim_field field[SIM_FIELDS_MAX];
	int64_t warmup_ns;   /* arrivals during this time are excluded from totals */
	int64_t measured_ns; /* after the warm-up */
	int64_t bin_ns;      /* interval of the series, which include the warm-up */
	unsigned laws;       /* enum sim_law: laws whose breach ends the run */
	/* query the policy again at each admission (I5, I15) instead of at one in 17 */
	bool probe_all;
	FILE *trace; /* the last steps before a breach are written here; may be NULL */
};

/** Totals of requests that arrived after the warm-up, by attempt. */
struct sim_class_result {
	uint64_t offered, admitted; /* admitted: entered the first queue */
	uint64_t shed[WEIR_SHED_REASONS];
	uint64_t refused_midway; /* refused requests that an earlier stage had admitted (I8) */
	uint64_t in_time;        /* completed within the clients' deadline */
	uint64_t late;           /* completed after the deadline */
	uint64_t failed;
	uint64_t retries;    /* attempts that were retries */
	struct hdr wait;     /* in queues, of completed requests */
	struct hdr response; /* from sending to completion, of completed requests */
};

/** Totals of a stage over the measured time. */
struct sim_stage_result {
	/* time in handlers and lifetime of threads, over all threads; their ratio is the
	 * utilisation */
	int64_t busy_ns, threads_ns;
	int64_t served_ns;     /* time in which the servers worked, over all servers */
	uint64_t completed;    /* events */
	uint64_t refused_idle; /* refused for overload while a thread was idle */
	/* probes in which an earlier user would have been refused although this one was admitted */
	uint64_t user_inversions;
	/* probes in which a higher class would have been refused, as guarantees may require */
	uint64_t class_inversions;
	uint64_t probes;
	uint64_t over_bound; /* admissions after which more work waited than SIM_LAW_BOUND allows */
	uint64_t nonsense;   /* inconsistent verdicts of the policy */
	int reversals;       /* of the number of threads: increase after decrease or vice versa */
	int threads_end;
	char width_why[120]; /* the width policy's description of its state at the end, or "" */
	/* work still on its way to the stage after the last tick */
	int64_t pipeline_end_ns;
	struct hdr wait;
	/* of a core group: visits (sched/next.h), batches, their events, and the longest wait */
	uint64_t visits, batches, batched;
	int64_t longest_ns;
};

/** Totals of a core group over the measured time. */
struct sim_group_result {
	uint64_t by_why[NEXT_POLICY + 1]; /* choices */
	uint64_t from_cell, from_queue;   /* events taken */
	uint64_t dealt;                   /* events sent to a queue for an idle core */
	uint64_t yielded;                 /* gate `cutoff` */
	uint64_t moved;                   /* slots of serial keys given to idle cores */
	/* for the caches, which are not in the model: events that a core took although another one
	 * handled them at the stage before; batches of a stage that is not among the last 1, or the
	 * last SIM_RECENT, that the core has run */
	uint64_t strangers, switched, reloaded;
	int64_t overhead_ns;    /* of busy_ns: what scheduling cost */
	int cores_end, resized; /* cores at the end, and changes of their number */
	int64_t cores_ns;       /* time in which cores belonged to the group, over all cores */
	int64_t busy_ns[SIM_CORES_MAX];
};

/** Totals of one time interval. */
struct sim_bin {
	uint32_t offered, in_time, late, refused;
	uint32_t in_time_class[WEIR_CLASSES_MAX], offered_class[WEIR_CLASSES_MAX];
	int32_t threads[SIM_STAGES_MAX]; /* at the end of the interval */
	int32_t queued[SIM_STAGES_MAX];
};

struct sim_result {
	uint64_t events; /* steps of the simulation */
	int64_t ended_ns;
	struct sim_class_result class[WEIR_CLASSES_MAX];
	struct sim_stage_result stage[SIM_STAGES_MAX];
	struct sim_group_result group[SIM_GROUPS_MAX];
	/* time in handlers, and the part of it that was spent on requests not completed in time */
	int64_t service_ns, wasted_ns;
	/** The part of wasted_ns spent on requests whose service times alone, without any wait,
	 * exceeded their deadline. Only a policy that knew service times in advance could avoid
	 * it. */
	int64_t hopeless_ns;
	int64_t cpu_ns; /* CPU time used in the whole run */
	uint64_t route_in_time[SIM_ROUTES_MAX], route_offered[SIM_ROUTES_MAX];
	uint32_t user_offered[SIM_USERS_MAX], user_in_time[SIM_USERS_MAX];
	int n_bins;
	struct sim_bin *bin; /* owned */
	unsigned broken;     /* enum sim_law of the breach that ended the run, else 0 */
	struct sim_law_result law[SIM_LAWS_COUNT];
	char breach[512]; /* its description */
};

/**
 * Run the simulation `config` to its end. Returns 0, WEIR_EINVAL or WEIR_EFAILED (a law was
 * broken), each with a *result to be freed with sim_result_free(), or WEIR_ENOMEM with *result set
 * to NULL. On WEIR_EINVAL and WEIR_EFAILED, (*result)->breach describes the reason. Different
 * threads may run simulations concurrently. A step costs about 0.3 us.
 */
int sim_run(const struct sim_config *config, struct sim_result **result);
void sim_result_free(struct sim_result *r);

/** Return the name of law number `i`, such as "I4 waits"; NULL past the end. */
const char *sim_law_name(int i);

/** Set the classes to the framework's defaults: priorities descend in order of the classes, and
 * each class but the first is guaranteed 2 %. */
void sim_class_defaults(struct sim_config *c);

/** Return the requests completed in time per second, between two times of the run. */
double sim_goodput_per_s(
    const struct sim_config *c, const struct sim_result *r, int64_t from_ns, int64_t to_ns);

/** Return the response time at quantile `q`, over the completed requests of all classes. */
int64_t sim_response_ns(const struct sim_config *c, const struct sim_result *r, double q);

/** Return Jain's fairness index of the requests completed in time, for users [first, first + n). */
double sim_jain(const struct sim_result *r, uint32_t first, uint32_t n);

/** Return the number of requests shed at admission and in queues, for all reasons. */
uint64_t sim_shed(const struct sim_class_result *k);

/** Return the capacity of stage `i` with `threads` threads, in events per second. */
double sim_ceiling_per_s(const struct sim_config *c, int i, int threads);

/** Write the series as CSV, one row per bin. */
void sim_write_csv(const struct sim_config *c, const struct sim_result *r, FILE *out);

/** Draw the duration with number `k` of `key`, in ns. Pure. */
int64_t sim_draw_ns(const struct sim_dist *d, uint64_t key, uint64_t k);

#endif
