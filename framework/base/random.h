/* SPDX-License-Identifier: MIT */
/*
 * Random numbers for ids that must not meet: 64 bits from a generator of the calling thread.
 *
 * xoshiro256** (Blackman and Vigna 2021, "Scrambled linear pseudorandom number generators"), seeded from the kernel
 * once per thread, so that a number costs about 1 ns and no system call. Not for secrets.
 */
#ifndef WEIR_BASE_RANDOM_H
#define WEIR_BASE_RANDOM_H

#include <stdint.h>

/** Any 64 bits. Any thread, takes no lock. */
uint64_t random_u64(void);

/** The same, never 0. */
uint64_t random_id(void);

#endif
