/* SPDX-License-Identifier: MIT */
/*
 * Random numbers for ids that should not collide: 64 bits at a time, from a per-thread generator.
 *
 * xoshiro256** (Blackman and Vigna 2021, "Scrambled linear pseudorandom number generators"), seeded
 * from the kernel once per thread, so a number costs about 1 ns and no system call. Not suitable
 * for secrets.
 */
#ifndef WEIR_BASE_RANDOM_H
#define WEIR_BASE_RANDOM_H

#include <stdint.h>

/** Returns 64 random bits. Any thread; takes no lock. */
uint64_t random_u64(void);

/** Returns 64 random bits that are not all 0. Any thread; takes no lock. */
uint64_t random_id(void);

#endif
