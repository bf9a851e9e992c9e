/* SPDX-License-Identifier: MIT */
/*
 * The server's own sinks, queues, leases, meters and admission policies in virtual time.
 *
 * A graph is built and never started. The test is the only thread: it offers events, takes batches
 * as the handlers of each pool would (sched/handler.c), ends them after their service time, and
 * ticks every 10 ms. So the code under test is the one that runs in the server, and a run depends
 * only on its seed.
 *
 * arrival -> sink_offer -> queue -> an idle thread: cohort_take -> service -> end, queue_release
 *
 * Threads are the pool's handlers, created here without a task. Services are exponential.
 */
#ifndef WEIR_TESTS_POLICY_VIRTUAL_SERVER_H
#define WEIR_TESTS_POLICY_VIRTUAL_SERVER_H

#include "base/clock.h"
#include "fixture/graph/probes.h"
#include "graph/graph.h"
#include "sched/pool.h"

#define VS_STAGES    4
#define VS_THREADS   16
#define VS_RESPONSES 200000

/** One stage of the run and the results of its clients, for events sent after the warm-up. */
struct vs_stage {
	struct weir_stage *stage;
	double rate_per_s; /* offered */
	double high;       /* fraction of class 0; the rest is of the last class */
	double hot;        /* fraction of events with one key; other keys are evenly spread */
	int64_t service_ns;
	int64_t next_ns;
	uint64_t sent[WEIR_CLASSES_MAX];
	uint64_t lost[WEIR_CLASSES_MAX]; /* refused, shed or late */
	double work_ns;                  /* of the events in time */
	int64_t response_ns[VS_RESPONSES];
	int n_responses;
};

struct vs {
	struct weir_graph *g;
	int n_stages, n_threads;
	struct vs_stage at[VS_STAGES];
	struct handler *thread[VS_THREADS];
	int64_t ends_ns[VS_THREADS], began_ns[VS_THREADS]; /* ends: INT64_MAX if idle */
	int64_t now_ns, warm_ns, slo_ns;
	uint64_t rng;
	struct probe *unused[N];
	int n_unused;
};

/* ---- a run ---- */

/** Take over `g`, built but not started, and attach to it. */
struct vs *vs_new(struct weir_graph *g, int64_t slo_ns);

struct vs_stage *vs_load(struct vs *s, const char *stage, double rate_per_s, int64_t service_ns);

/** Run until `end_ns`. Events sent before `warm_ns` are not counted. */
void vs_run(struct vs *s, int64_t warm_ns, int64_t end_ns);

/** End the remaining events and free everything. */
void vs_free(struct vs *s);

/* ---- figures ---- */

int64_t vs_p99_ns(struct vs_stage *v);

/** Mean number of threads whose time went into answers in time, since the warm-up. */
double vs_good_threads(const struct vs *s, const struct vs_stage *v);

#endif
