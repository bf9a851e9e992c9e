/* SPDX-License-Identifier: MIT */
/*
 * Weighted choice in constant time: the alias method (Walker 1977), its tables built in linear
 * time (Vose 1991). A choice reads one cell, however many there are to choose from; the cumulative
 * shares of a large site would take a dozen cache misses.
 *
 * Read-only once built: any thread.
 */
#ifndef WEIR_LOAD_PICK_H
#define WEIR_LOAD_PICK_H

#include <stdint.h>

struct pick {
	uint32_t n;
	struct pick_cell {
		float keep; /* share of the cell that is its own choice, 0..1 */
		uint32_t other;
	} * cell;
};

/** Build for weight[0..n), n at least 1, weights at least 0 and not all of them 0. 0 or
 *  WEIR_ENOMEM. */
int pick_init(struct pick *p, const double *weight, uint32_t n);
void pick_fini(struct pick *p);

/** The choice, 0..n-1, that 64 random bits make. About 2 ns. */
static inline uint32_t pick_at(const struct pick *p, uint64_t bits)
{
	/* The product's upper half says which cell, its lower half where in the cell. */
	unsigned __int128 product = (unsigned __int128)bits * p->n;
	uint32_t i = (uint32_t)(product >> 64);
	float where = (float)((uint64_t)product >> 40) * 0x1p-24f; /* 24 bits: exact in [0, 1) */

	return where < p->cell[i].keep ? i : p->cell[i].other;
}

#endif
