/* SPDX-License-Identifier: MIT */
/*
 * What `weir why` knows of a server and its stages, between two responses of /api/v1/stages: why.c
 * computes it and prints it as text, why_json.c prints it as JSON (docs/json.md). Main thread.
 */
#ifndef WEIR_CLI_WHY_H
#define WEIR_CLI_WHY_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

/** Number of decisions that are shown of a stage. */
#define WHY_DECISIONS 5

/** One stage between two responses. Texts belong to the responses. */
struct why {
	const json_t *then, *now; /* its elements of `stages` in the two responses */
	const char *name, *policy, *mode, *says, *trouble;
	/* "paused" etc. if an operator has stopped the stage, NULL if it is running */
	const char *held;
	double span_s;
	double offered_per_s, served_per_s, refused_per_s;
	/* connections and requests that a source turned away before they became events */
	double away_per_s;
	double ahead_per_s;       /* refused upstream on behalf of the stage */
	double service_s, wait_s; /* means of the events served between the snapshots */
	/* mean number of events that wait or are in service, over the two snapshots */
	double at_stage;
	long long waiting, limit;
	int threads, busy, max;
	int spares, spares_busy; /* of these threads, those that stand in for blocked cores */
	int width;            /* events that may be in work at once; 0 if the stage has no width */
	char wide[200];       /* description of the width, or "" */
	char clients[200];    /* of the clients of a source with a limit per thread, or "" */
	char awaits[200];     /* how many events wait for children, or "" */
	double used;          /* share of the threads' time or, with a width, of the width, 0..1 */
	double ceiling_per_s; /* utilisation law: the most it can serve; 0 if unknown */
	double expected;      /* Little's law: events at the stage; compare at_stage */
	bool agrees;          /* whether at_stage is near `expected` */
};

/** Two responses, and what was computed from them. */
struct why_looks {
	const json_t *then, *now; /* /api/v1/stages */
	double span_s;            /* between them */
	struct why *stage;        /* n elements, in the order of the response */
	size_t n;
	const char *only;        /* name of the stage to show; NULL shows all */
	const json_t *decisions; /* the newest WHY_DECISIONS of that stage, or NULL */
};

/** Print `looks` as JSON. Returns an exit code of a verb. */
int why_print_json(const struct why_looks *looks);

#endif
