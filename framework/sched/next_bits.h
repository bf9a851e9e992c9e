/* SPDX-License-Identifier: MIT */
/* Sets of stages as 64-bit words. bits_lowest, bits_highest and bits_after need a set that is not
 * empty. */
#ifndef WEIR_SCHED_NEXT_BITS_H
#define WEIR_SCHED_NEXT_BITS_H

#include <stdbool.h>
#include <stdint.h>

static inline bool bits_has(uint64_t set, int i)
{
	return set >> i & 1;
}

static inline int bits_lowest(uint64_t set)
{
	return __builtin_ctzll(set);
}

static inline int bits_highest(uint64_t set)
{
	return 63 - __builtin_clzll(set);
}

/** The members below `i`, 0 to 63. */
static inline uint64_t bits_below(uint64_t set, int i)
{
	return set & ((UINT64_C(1) << i) - 1);
}

/** The members above `i`, 0 to 63. */
static inline uint64_t bits_above(uint64_t set, int i)
{
	return set & ~((UINT64_C(2) << i) - 1); /* for 63 the shift gives 0, so none */
}

/** The member that follows `i` in turn: the first above it, or else the lowest. */
static inline int bits_after(uint64_t set, int i)
{
	uint64_t above = bits_above(set, i);

	return bits_lowest(above ? above : set);
}

#endif
