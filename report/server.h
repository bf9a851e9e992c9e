/* SPDX-License-Identifier: MIT */
/*
 * The server's part of a run file: samples from its admin endpoint during the run, converted to
 * series over the time of the run.
 *
 * This data is not trusted and may be incomplete: a member that is missing or has the wrong type
 * counts as 0 or as unknown (NAN). Pure functions of the JSON.
 */
#ifndef WEIR_REPORT_SERVER_H
#define WEIR_REPORT_SERVER_H

#include <stdbool.h>

#include <jansson.h>

/** Return the CPU seconds that the server used between two times of the run; NAN if they cannot be
 * derived from the file. */
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

/** Series of one stage. The values value[series][i] belong to the time at_s[i] of the
 * server_view. */
struct server_stage {
	const char *name; /* points into the JSON */
	double *value[SERVER_N_SERIES];
	double peak[SERVER_N_SERIES]; /* greatest known value; 0 if none is known */
};

struct server_decision {
	/* seconds since the start of the run; may be before its start or after its end */
	double at_s;
	const char *stage, *actor, *action, *rule, *inputs; /* point into the JSON */
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

/** Read the member `server` of a run file; the view is empty if the file has none. The JSON must
 * outlive the view. Returns 0 or WEIR_ENOMEM. */
int server_view_init(struct server_view *view, const json_t *run);
void server_view_fini(struct server_view *view);

#endif
