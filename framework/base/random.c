/* SPDX-License-Identifier: MIT */
/* Generates random numbers, for each thread separately; see random.h. */
#include "base/random.h"

#include <stdbool.h>
#include <sys/random.h>

#include <weir/random.h>

#include "base/clock.h"

static _Thread_local struct {
	bool seeded;
	uint64_t s[4];
} own;

/* Seed from the time and an address. Used if the kernel provides no random
 * numbers (early boot, a sandbox). */
static void seed_poorly(void)
{
	uint64_t x = (uint64_t)clock_wall_ns() ^ (uint64_t)(uintptr_t)&own << 16;

	for (uint64_t i = 0; i < 4; i++)
		own.s[i] = weir_random_at(x, i);
}

static void seed(void)
{
	if (getrandom(own.s, sizeof(own.s), GRND_NONBLOCK) != (ssize_t)sizeof(own.s))
		seed_poorly();
	/* an all-zero state yields only zeros */
	own.s[0] |= (own.s[0] | own.s[1] | own.s[2] | own.s[3]) == 0;
	own.seeded = true;
}

static uint64_t rotated(uint64_t x, int k)
{
	return x << k | x >> (64 - k);
}

uint64_t random_u64(void)
{
	uint64_t *s = own.s;

	if (!own.seeded)
		seed();
	uint64_t result = rotated(s[1] * 5, 7) * 9, t = s[1] << 17;
	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotated(s[3], 45);
	return result;
}

uint64_t random_id(void)
{
	uint64_t id;

	do {
		id = random_u64();
	} while (id == 0);
	return id;
}
