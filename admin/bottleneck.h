/* SPDX-License-Identifier: MIT */
/*
 * Which stage is nearest to its ceiling, and whether it limits the server: the one place where that is
 * decided. `weir why`, `weir top`, ticks, the API and the page all tell what stands here.
 *
 * The measure is the share of a pool's threads' time that handlers take (of all stages of the pool),
 * over a second. By the utilisation law (Denning, Buzen 1978), X = U n / S, what the pool does now
 * divided by that share is what it can do at most. From BOTTLENECK_SHARE on it limits; that ends below
 * BOTTLENECK_RELEASE, and another one must be BOTTLENECK_LEAD busier to take its place, so that a load
 * that swings around the border does not begin anew each second.
 *
 * Pure: no clock of its own. One thread writes and reads.
 */
#ifndef WEIR_ADMIN_BOTTLENECK_H
#define WEIR_ADMIN_BOTTLENECK_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "sample.h"

/** Shares of threads' time. Guesses: below the first queues stay short. */
#define BOTTLENECK_SHARE   0.85
#define BOTTLENECK_RELEASE 0.75
#define BOTTLENECK_LEAD    0.05

/** It is chronic when it has limited for so long, seconds: a burst is over by then, and a pool that
 *  may grow has grown. A guess. */
#define BOTTLENECK_CHRONIC_S 30

struct bottleneck {
	bool known;  /* false: nothing was measured yet, or there is no pool; the rest is 0 */
	bool limits; /* the server is limited by it */
	char stage[64], pool[64];
	int threads, max;     /* of the pool */
	double used;          /* 0..1, of the pool's threads' time, by all its stages */
	double served_per_s;  /* by the stage */
	double ceiling_per_s; /* at most, as things are; 0: nothing was served in the second */
	double service_s;     /* of a thread's time, per event; 0 likewise */
	int64_t since_ns,
	    now_ns; /* CLOCK_REALTIME: since when it limits (0: it does not); of the sample */
};

/** Take in the samples of the last second, one per stage of `view`. About 1 us a stage. */
void bottleneck_feed(
    struct bottleneck *bottleneck, const struct weir_graph_view *view, const struct sample *sample);

/** Has it limited for BOTTLENECK_CHRONIC_S? */
bool bottleneck_chronic(const struct bottleneck *bottleneck);

/** The sentence of `weir why`: "work limits the server: ..." or "Nothing limits the server: ...". */
void bottleneck_sentence(const struct bottleneck *bottleneck, char *buf, size_t size);

/** As docs/api.md describes it; json_null() while nothing is known or for NULL. */
json_t *bottleneck_json(const struct bottleneck *bottleneck);

#endif
