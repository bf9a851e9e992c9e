/* SPDX-License-Identifier: MIT */
/*
 * Draws the times of `burn`, `delay` and `hold` from a distribution.
 *
 * Draw number i is a pure function of i and the seed. With a given seed a run therefore draws the
 * same times whatever the number of threads, and needs neither a lock nor thread-local state.
 */
#ifndef WEIR_STAGES_BASIC_DIST_H
#define WEIR_STAGES_BASIC_DIST_H

#include <stddef.h>
#include <stdint.h>

#include <weir/knob.h>

/* In the order of the choices of the knob `dist`. */
enum dist_kind { DIST_CONST, DIST_EXP, DIST_BIMODAL, DIST_LOGNORMAL };

/** A distribution of times, as part of a stage's configuration. DIST_KNOBS defines its knobs. */
struct dist {
	int kind;          /* enum dist_kind */
	int64_t time_ns;   /* the mean; for bimodal the time of the fast events */
	int64_t slow_ns;   /* bimodal: the time of the slow events */
	double slow_share; /* bimodal: share of slow events, 0..1 */
	double sigma;      /* lognormal: standard deviation of the logarithm */
	int64_t seed;
};

/** Upper limit of a draw, even in the tail of the distribution. 60 s is a guess: a longer sleep
 * would keep a server from stopping. */
#define DIST_MAX_NS 60e9

/** Return draw number `i`, in ns, between 0 and DIST_MAX_NS. Any thread. A call costs 2 to 60
 * ns. */
int64_t dist_draw_ns(const struct dist *d, uint64_t i);

/** Return the mean of the distribution, in ns. */
double dist_mean_ns(const struct dist *d);

/* Knobs for a struct `conf` with a member `struct dist dist`; `time_help` is the help text of
 * `time`. */
#define DIST_KNOBS(conf, time_help)                                                                \
	{.name = "time",                                                                           \
	    .type = WEIR_KNOB_DURATION,                                                            \
	    .offset = offsetof(conf, dist.time_ns),                                                \
	    .def = "1ms",                                                                          \
	    .min = 0,                                                                              \
	    .max = DIST_MAX_NS,                                                                    \
	    .flags = WEIR_KNOB_LIVE,                                                               \
	    .help = time_help},                                                                    \
	    {.name = "dist",                                                                       \
		.type = WEIR_KNOB_ENUM,                                                            \
		.offset = offsetof(conf, dist.kind),                                               \
		.def = "const",                                                                    \
		.flags = WEIR_KNOB_LIVE,                                                           \
		.choices = "const|exp|bimodal|lognormal",                                          \
		.help = "distribution of the times"},                                              \
	    {.name = "slow",                                                                       \
		.type = WEIR_KNOB_DURATION,                                                        \
		.offset = offsetof(conf, dist.slow_ns),                                            \
		.def = "10ms",                                                                     \
		.min = 0,                                                                          \
		.max = DIST_MAX_NS,                                                                \
		.flags = WEIR_KNOB_LIVE,                                                           \
		.help = "time of slow events with dist bimodal; 'time' is that of the others"},    \
	    {.name = "slow_share",                                                                 \
		.type = WEIR_KNOB_RATIO,                                                           \
		.offset = offsetof(conf, dist.slow_share),                                         \
		.def = "1%",                                                                       \
		.min = 0,                                                                          \
		.max = 1,                                                                          \
		.flags = WEIR_KNOB_LIVE,                                                           \
		.help = "share of slow events with dist bimodal"},                                 \
	    {.name = "sigma",                                                                      \
		.type = WEIR_KNOB_RATIO,                                                           \
		.offset = offsetof(conf, dist.sigma),                                              \
		.def = "1",                                                                        \
		.min = 0,                                                                          \
		.max = 4,                                                                          \
		.flags = WEIR_KNOB_LIVE,                                                           \
		.help = "spread with dist lognormal: standard deviation of the logarithm"},        \
	{                                                                                          \
		.name = "seed", .type = WEIR_KNOB_INT, .offset = offsetof(conf, dist.seed),        \
		.def = "1", .help = "seed of the random numbers; equal seeds give equal times"     \
	}

#endif
