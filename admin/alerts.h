/* SPDX-License-Identifier: MIT */
/*
 * Conditions that deserve somebody's attention, looked at once a second. Each is raised when it begins
 * and cleared when it is over; both are told once, as events.
 *
 *   top_class_shed      events of the highest class (the only one, where there is one) are shed
 *   stage_stuck         a handler of the stage has been running for longer than `threads.stuck`
 *   bottleneck_chronic  a stage has limited the server for BOTTLENECK_CHRONIC_S (bottleneck.h)
 *   history_file        `admin: { history: { file } }` can not be used or written
 *
 * Pure: no clock of its own. One thread.
 */
#ifndef WEIR_ADMIN_ALERTS_H
#define WEIR_ADMIN_ALERTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "bottleneck.h"

/** Raised at once, and over but remembered. More stages than the first are not stuck at once in any
 *  server that still answers; the second is what a page shows. Guesses. */
#define ALERTS_ACTIVE_MAX 32
#define ALERTS_PAST       64

/** Shedding of the highest class is over when none was shed for so long: bursts would blink. A guess. */
#define ALERTS_SHED_LINGER_S 10

struct alert {
	uint64_t id;       /* from 1 */
	const char *name;  /* of the table above */
	const char *level; /* "warn" or "bad" */
	char stage[64];    /* "" for the whole server */
	int64_t since_ns;  /* CLOCK_REALTIME */
	int64_t until_ns;  /* 0 while it lasts */
	int64_t last_ns;   /* when it was last seen to hold */
	char text[320];    /* the sentence, as of last_ns */
};

/** What the alerts look at, beside the view and its samples. */
struct alerts_about {
	const struct bottleneck *bottleneck;
	bool history_fails;
};

/** Told of each that is raised or cleared; the alert is valid during the call. */
typedef void alerts_tell_fn(void *arg, const struct alert *alert);

struct alerts_stage; /* what was seen of a stage at the last look */

struct alerts {
	uint64_t n; /* ever raised */
	int n_active;
	struct alert active[ALERTS_ACTIVE_MAX];
	unsigned n_past; /* ever cleared */
	struct alert past[ALERTS_PAST];
	int n_stages;
	struct alerts_stage *stages; /* owned; freed by alerts_fini */
};

/** Look. `sample` has one element per stage of `view`, or is NULL (nothing is known of the last
 *  second). Without memory stages that are stuck are not noticed. */
void alerts_feed(struct alerts *alerts, const struct alerts_about *about,
    const struct weir_graph_view *view, const struct sample *sample, alerts_tell_fn *tell,
    void *arg);

void alerts_fini(struct alerts *alerts);

/** One alert, as docs/api.md describes it; NULL without memory. */
json_t *alert_json(const struct alert *alert);

/** {"active": [...], "past": [...]}, newest first; of NULL: none. */
json_t *alerts_json(const struct alerts *alerts);

#endif
