/* SPDX-License-Identifier: MIT */
/*
 * The server's side of a run file: what its admin endpoint said while the load ran, as series over
 * the run's own time.
 *
 * All of it comes from outside and may lack anything: a member that is missing or of another kind
 * counts as 0 or as not known (NAN). Pure functions of the JSON.
 */
#ifndef WEIR_REPORT_SERVER_H
#define WEIR_REPORT_SERVER_H

#include <stdbool.h>

#include <jansson.h>

/** CPU time in seconds that the server used between two times of the run; NAN when the file does
 *  not say. */
double server_cpu_s(const json_t *run, double from_s, double to_s);

/* id, heading, unit in words */
#define SERVER_SERIES(X)                                                                           \
	X(WAIT_P99, "Waits by stage", "99th percentile of the wait in the queue")                  \
	X(QUEUE, "Queue lengths", "events")                                                        \
	X(BUSY, "Busy threads", "threads that run a handler")                                      \
	X(THREADS, "Threads", "threads of the pool")

enum server_series {
#define SERVER_SERIES_ENUM(id, heading, unit) SERVER_##id,
	SERVER_SERIES(SERVER_SERIES_ENUM)
#undef SERVER_SERIES_ENUM
	    SERVER_N_SERIES
};

/** Series of one stage; value[i] belongs to at_s[i] of its server_view. */
struct server_stage {
	const char *name; /* of the JSON */
	double *value[SERVER_N_SERIES];
	double peak[SERVER_N_SERIES]; /* greatest that is known; 0: none */
};

struct server_decision {
	double at_s;                                        /* of the run; may lie outside of it */
	const char *stage, *actor, *action, *rule, *inputs; /* of the JSON */
	long long from, to;
};

struct server_view {
	int n; /* samples */
	double *at_s;
	int n_stages;
	struct server_stage *stage;
	int n_decisions;
	struct server_decision *decision; /* ascending in time */
};

/** Read member `server` of a run file. The JSON must outlive the view. 0 or WEIR_ENOMEM; empty when
 *  the file has none. */
int server_view_init(struct server_view *view, const json_t *run);
void server_view_fini(struct server_view *view);

#endif
