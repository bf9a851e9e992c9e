/* SPDX-License-Identifier: MIT */
/*
 * Draws the pauses of users between their requests, and the number of files of a page.
 *
 * A user equivalent (Barford and Crovella, SIGMETRICS 1998) requests the files of a page, reads the
 * page, and goes on with the next one. In SURGE, the pause is a Pareto distribution with alpha 1.5
 * and a minimum of 1 s, whose mean is 3 s, and the number of files one with alpha 2.43 and a
 * minimum of 1. Both are heavy-tailed, so many users together make bursty traffic.
 *
 * Pure functions; any thread. A draw costs about 30 ns.
 */
#ifndef WEIR_LOAD_THINK_H
#define WEIR_LOAD_THINK_H

#include <stdint.h>

/** Distribution of the pauses, in the order of the choices of --think-law. */
enum load_think {
	LOAD_THINK_EXPONENTIAL,
	LOAD_THINK_PARETO,
	LOAD_THINK_LOGNORMAL,
	LOAD_THINK_EQUAL
};

/** Longest pause, in ns: a day. The tail of a Pareto distribution has no longest value. */
#define LOAD_THINK_MAX_NS 86400000000000

/** The most files of a page. 1000 is a guess: one page in twenty million has more. */
#define LOAD_PAGE_FILES_MAX 1000

/** Return a pause in ns, 0..LOAD_THINK_MAX_NS, of mean `mean_ns`, for the random numbers u and v in
 * (0, 1), of which v is used by LOAD_THINK_LOGNORMAL alone. `shape` is alpha of the Pareto
 * distribution, above 1, or sigma of the lognormal one, above 0; others ignore it. */
int64_t load_think_ns(enum load_think law, int64_t mean_ns, double shape, double u, double v);

/** Return the number of files of a page in SURGE, 1..LOAD_PAGE_FILES_MAX, for the random number u in
 * (0, 1): the page itself and those that are embedded in it. */
uint32_t load_page_files(double u);

#endif
