/* SPDX-License-Identifier: MIT */
/*
 * Conditions that deserve somebody's attention, looked at once a second. Each is raised when it has held
 * for as long as its rule says (`alerts:`, struct weir_alert_rule), at once without one, and cleared when it
 * is over; both are told once, as events.
 *
 *   top_class_shed      events of the highest class (the only one, where there is one) are shed, all stages together
 *   stage_stuck         a handler of the stage has been running for longer than `threads.stuck`
 *   bottleneck_chronic  a stage limits the server (bottleneck.h)
 *   history_file        `admin: { history: { file } }` can not be used or written
 *
 * Pure: no clock of its own. One thread.
 */
#ifndef WEIR_ADMIN_ALERTS_H
#define WEIR_ADMIN_ALERTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include <weir/spec.h>

#include "bottleneck.h"

/** Raised or about to be at once, and over but remembered. More stages than the first are not stuck at once in any
 *  server that still answers; the second is what a page shows. Guesses. */
#define ALERTS_ACTIVE_MAX 32
#define ALERTS_PAST       64

struct alert {
	uint64_t id;       /* from 1; 0: it holds, but not for long enough yet */
	int kind;          /* enum weir_alert_kind */
	const char *name;  /* of the table above */
	const char *level; /* "warn" or "bad" */
	char stage[64];    /* "" for the whole server */
	int64_t since_ns;  /* CLOCK_REALTIME, when it began to hold */
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
	bool ruled;                    /* alerts_rule was called, else what is built in holds */
	struct weir_alerts_spec rules; /* owned; freed by alerts_fini */
	uint64_t n;                    /* ever raised */
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

/** Go by these rules from now on; what they own is taken over, *rules is empty then. */
void alerts_rule(struct alerts *alerts, struct weir_alerts_spec *rules);

void alerts_fini(struct alerts *alerts);

/** One alert, as docs/api.md describes it; NULL without memory. */
json_t *alert_json(const struct alert *alert);

/** {"active": [...], "past": [...], "rules": [...]}, newest first; of NULL: none, and what is built in. */
json_t *alerts_json(const struct alerts *alerts);

#endif
