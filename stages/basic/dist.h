/* SPDX-License-Identifier: MIT */
/*
 * Durations by distribution: the service times that `burn` and `delay` imitate.
 *
 * Draw number i of a seed is a pure function of both, so a run with one seed takes the same times
 * however many threads share them, and no generator needs a lock or a thread state.
 */
#ifndef WEIR_STAGES_BASIC_DIST_H
#define WEIR_STAGES_BASIC_DIST_H

#include <stddef.h>
#include <stdint.h>

#include <weir/knob.h>

/* Order of the choices of the knob `dist`. */
enum dist_kind { DIST_CONST, DIST_EXP, DIST_BIMODAL, DIST_LOGNORMAL };

/** Embedded in the configuration of a stage; DIST_KNOBS are its rows. */
struct dist {
	int kind;          /* enum dist_kind */
	int64_t time_ns;   /* the mean; for bimodal the time of the fast ones */
	int64_t slow_ns;   /* bimodal: the time of the slow ones */
	double slow_share; /* bimodal: how many are slow, 0..1 */
	double sigma;      /* lognormal: standard deviation of the logarithm */
	int64_t seed;
};

/** No draw is longer, whatever the tail of the distribution: a server must be able to stop. Guess.
 */
#define DIST_MAX_NS 60e9

/** Draw number `i`, in ns, 0 to DIST_MAX_NS. Any thread, 2 to 60 ns. */
int64_t dist_draw_ns(const struct dist *d, uint64_t i);

/** The mean of what is drawn, in ns. */
double dist_mean_ns(const struct dist *d);

/* Rows for a struct `conf` with a member `struct dist dist`; what `time` is, in `time_help`. */
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
		.help = "how times vary"},                                                         \
	    {.name = "slow",                                                                       \
		.type = WEIR_KNOB_DURATION,                                                        \
		.offset = offsetof(conf, dist.slow_ns),                                            \
		.def = "10ms",                                                                     \
		.min = 0,                                                                          \
		.max = DIST_MAX_NS,                                                                \
		.flags = WEIR_KNOB_LIVE,                                                           \
		.help = "time of the slow ones of dist bimodal; 'time' is that of the others"},    \
	    {.name = "slow_share",                                                                 \
		.type = WEIR_KNOB_RATIO,                                                           \
		.offset = offsetof(conf, dist.slow_share),                                         \
		.def = "1%",                                                                       \
		.min = 0,                                                                          \
		.max = 1,                                                                          \
		.flags = WEIR_KNOB_LIVE,                                                           \
		.help = "how many are slow in dist bimodal"},                                      \
	    {.name = "sigma",                                                                      \
		.type = WEIR_KNOB_RATIO,                                                           \
		.offset = offsetof(conf, dist.sigma),                                              \
		.def = "1",                                                                        \
		.min = 0,                                                                          \
		.max = 4,                                                                          \
		.flags = WEIR_KNOB_LIVE,                                                           \
		.help = "spread of dist lognormal: standard deviation of the logarithm"},          \
	{                                                                                          \
		.name = "seed", .type = WEIR_KNOB_INT, .offset = offsetof(conf, dist.seed),        \
		.def = "1", .help = "start of the random numbers; one seed, one series of times"   \
	}

#endif
