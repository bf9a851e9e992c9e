/* SPDX-License-Identifier: MIT */
/*
 * Conditions that need an operator's attention, checked once a second. An alert is raised when its
 * condition has held for the time set by its rule (`alerts:`, struct weir_alert_rule), or at once
 * if the rule sets no time. It is cleared when the condition has not held for the `linger` of the
 * rule. Raising and clearing are each reported once, as an event.
 *
 *   top_class_shed      events of the highest (or only) class are shed, summed over all stages; at
 *                       stages that let in lower classes meanwhile, only if that lasts
 *   stage_stuck         a handler of the stage has been running for longer than `threads.stuck`
 *   bottleneck_chronic  a stage limits the server (bottleneck.h)
 *   history_file        `admin: { history: { file } }` cannot be used or written
 *   slo_burn            a class uses up the error budget of its objective too fast (burn.h)
 *   source_refuses      a source turns away connections or requests because of a limit of its own
 *
 * An alert has two messages: one while it is active, and one in the past tense for when it is over.
 *
 * Pure: times are taken from the view. Used by one thread.
 */
#ifndef WEIR_ADMIN_ALERTS_H
#define WEIR_ADMIN_ALERTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include <weir/spec.h>

#include "bottleneck.h"
#include "burn.h"

/** Maximum number of alerts that are raised or pending. A server with more stuck stages would no
 *  longer respond. ALERTS_PAST is the number of cleared alerts that are retained, all of which the
 *  dashboard shows. Both limits are guesses. */
#define ALERTS_ACTIVE_MAX 32
#define ALERTS_PAST       64

struct alert {
	/* from 1; 0 until the condition has held long enough to raise the alert */
	uint64_t id;
	int kind;                         /* enum weir_alert_kind */
	const char *name;                 /* a name from the table above */
	const char *level;                /* "warn" or "bad" */
	char stage[WEIR_NAME_MAX + 1];    /* "" for the whole server */
	char of_class[WEIR_NAME_MAX + 1]; /* the class that it is about; "" for others */
	int64_t since_ns;                 /* CLOCK_REALTIME: when the condition began to hold */
	int64_t until_ns;                 /* when it was cleared, 0 while it is active */
	int64_t last_ns;                  /* when the condition was last seen to hold */
	char text[320];                   /* the message, as of last_ns */
	char past[320];                   /* the same in the past tense; `text` once it is over */
};

/** The inputs of a check besides the view and its samples. */
struct alerts_about {
	const struct bottleneck *bottleneck;
	bool history_fails;
};

/** Called for each alert that is raised or cleared; the alert is valid during the call. */
typedef void alerts_tell_fn(void *arg, const struct alert *alert);

struct alerts_stage; /* per-stage data of the previous check */

struct alerts {
	bool ruled; /* alerts_rule was called; otherwise the built-in rules apply */
	struct weir_alerts_spec rules; /* owned; freed by alerts_fini */
	uint64_t n;                    /* alerts raised so far */
	int n_active;
	struct alert active[ALERTS_ACTIVE_MAX];
	unsigned n_past; /* alerts cleared so far */
	struct alert past[ALERTS_PAST];
	/* since when the highest class has been shed only where lower ones are let in; 0: it is not */
	int64_t soft_since_ns;
	struct burn burn;
	int n_stages;
	struct alerts_stage *stages; /* owned; freed by alerts_fini */
};

/** Check all conditions. `sample` has one element per stage of `view`, or is NULL if there are no
 *  samples of the last second. If memory runs out, stuck stages are not detected. */
void alerts_feed(struct alerts *alerts, const struct alerts_about *about,
    const struct weir_graph_view *view, const struct sample *sample, alerts_tell_fn *tell,
    void *arg);

/** Replace the rules. Takes ownership of the contents of *rules, which is empty afterwards. */
void alerts_rule(struct alerts *alerts, struct weir_alerts_spec *rules);

/** Return the active alert that the highest class is shed while no lower one is let in, or NULL. It is
 *  valid until the next check. */
const struct alert *alerts_top_shed(const struct alerts *alerts);

void alerts_fini(struct alerts *alerts);

/** Return one alert in the form that docs/api.md describes, or NULL if out of memory. */
json_t *alert_json(const struct alert *alert);

/** Return {"active": [...], "past": [...], "rules": [...]}, with the newest alerts first. If
 *  `alerts` is NULL, both lists of alerts are empty and the rules are the built-in ones. */
json_t *alerts_json(const struct alerts *alerts);

#endif
