/* SPDX-License-Identifier: MIT */
/*
 * Determines which stage is nearest to its ceiling, and whether it limits the server. No other code
 * decides this: `weir why`, `weir top`, ticks, the API and the dashboard all show this result.
 *
 * The measure is the share of a pool's thread time that handlers used during the last second,
 * summed over all stages of the pool. For a stage with a width, the share of the width that is in
 * use counts instead if it is greater. By the utilisation law (Denning, Buzen 1978), X = U n / S,
 * the maximum throughput of a pool is its current throughput divided by that share. A pool limits
 * the server from the moment its share reaches BOTTLENECK_SHARE until the share falls below
 * BOTTLENECK_RELEASE. Another pool must be busier by BOTTLENECK_LEAD to replace it. Without these
 * margins, a load that oscillates around a threshold would reset `since_ns` each second.
 *
 * Pure: times are taken from the view. Used by one thread.
 */
#ifndef WEIR_ADMIN_BOTTLENECK_H
#define WEIR_ADMIN_BOTTLENECK_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "sample.h"

/** Shares of thread time. All three are guesses; queues stay short below BOTTLENECK_SHARE. */
#define BOTTLENECK_SHARE   0.85
#define BOTTLENECK_RELEASE 0.75
#define BOTTLENECK_LEAD    0.05

/** Seconds after which a limit is chronic. 30 s is a guess: by then a burst is over, and a pool
 *  that may grow has grown. */
#define BOTTLENECK_CHRONIC_S 30

struct bottleneck {
	/* false if nothing has been measured yet, or no stage has a pool or a width; then only
	 * `now_ns` is set */
	bool known;
	bool limits; /* whether the stage limits the server */
	char stage[WEIR_NAME_MAX + 1], pool[WEIR_NAME_MAX + 1];
	char schedule[WEIR_NAME_MAX + 1]; /* of the pool if it is a core group, otherwise "" */
	int threads, max;                 /* of the pool */
	/* of the core group; it may have more threads, since spare threads stand in for cores that
	 * are blocked */
	int cores;
	int width; /* the width of the stage, if the width limits the stage; otherwise 0 */
	/* of a source with a limit of clients per I/O thread, in the last sample, otherwise zero;
	 * `threads` and `max` are then its I/O threads, and `width` the clients that they may
	 * have */
	struct weir_clients clients;
	/* 0..1: share of the pool's thread time that all its stages use or, if `width` is not 0,
	 * share of the width that is in use, or of the source's I/O threads that are full */
	double used;
	double served_per_s; /* events that the stage served */
	/* maximum rate of the stage under current conditions; 0 if the stage served nothing in the
	 * last second */
	double ceiling_per_s;
	/* thread time per event, or time in progress per event if `width` is not 0; 0 if the stage
	 * served nothing in the last second */
	double service_s;
	/* CLOCK_REALTIME: when the stage became the limit (0 if it is not the limit), and when the
	 * samples were taken */
	int64_t since_ns, now_ns;
	/* the core that has slept in a handler for longest; slept_ns is 0 if no core is blocked */
	struct {
		int64_t slept_ns;
		int core;
		bool spare; /* the thread that stands in for it sleeps, too */
		char group[WEIR_NAME_MAX + 1], stage[WEIR_NAME_MAX + 1];
	} asleep;
};

/** Process the samples of the last second, one per stage of `view`. Takes about 1 us per stage. */
void bottleneck_feed(
    struct bottleneck *bottleneck, const struct weir_graph_view *view, const struct sample *sample);

/** Return whether the stage has limited the server for at least BOTTLENECK_CHRONIC_S. */
bool bottleneck_chronic(const struct bottleneck *bottleneck);

/** Write the sentence that `weir why` shows to buf[size]: "work limits the server: ...", "Nothing
 *  limits the server: ..." if no core is blocked either, or, without a `known` stage, that no stage has been measured. */
void bottleneck_sentence(const struct bottleneck *bottleneck, char *buf, size_t size);

/** Return the JSON that docs/api.md describes, or json_null() if nothing has been measured yet or
 *  `bottleneck` is NULL. */
json_t *bottleneck_json(const struct bottleneck *bottleneck);
/** Likewise, but which core is blocked is that of `view`, which is newer. */
json_t *bottleneck_json_now(
    const struct bottleneck *bottleneck, const struct weir_graph_view *view);

#endif
