/* SPDX-License-Identifier: MIT */
/* The rates of many keys: bursts, refill, exact waits, a table that overflows, threads. */
#include "http/site/rates.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include <weir/random.h>

#include "cunit_main.h"
#include "text/sip.h"

#define S 1000000000LL

static void bursts_and_refills(void)
{
	struct rates *t = rates_new(1);

	for (int i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(rates_take(t, 7, 2, 3, S).wait_ns, 0);
	CU_ASSERT_EQUAL(rates_take(t, 7, 2, 3, S).wait_ns, S / 2);
	CU_ASSERT_EQUAL(rates_take(t, 7, 2, 3, S).wait_ns, S / 2); /* a refusal costs nothing */
	CU_ASSERT_EQUAL(rates_take(t, 8, 2, 3, S).wait_ns, 0);     /* another key */
	CU_ASSERT_EQUAL(rates_take(t, 7, 2, 3, S + S / 4).wait_ns, S / 4);
	CU_ASSERT_EQUAL(rates_take(t, 7, 2, 3, S + S / 2).wait_ns, 0);
	CU_ASSERT(rates_take(t, 7, 2, 3, S + S / 2).wait_ns > 0);
	/* idle for a year: no more than the burst */
	for (int i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(rates_take(t, 7, 2, 3, 31536000 * S).wait_ns, 0);
	CU_ASSERT(rates_take(t, 7, 2, 3, 31536000 * S).wait_ns > 0);
	rates_free(t);
	rates_free(NULL);
}

/* The extremes of the knobs neither overflow nor refuse a first request. */
static void extremes(void)
{
	struct rates *t = rates_new(1);

	CU_ASSERT_EQUAL(rates_take(t, 1, 1e-300, 1000000, 1).wait_ns, 0);
	CU_ASSERT(rates_take(t, 1, 1e-300, 1000000, 1).wait_ns > 0);
	CU_ASSERT_EQUAL(rates_take(t, 2, 1e6, 1, INT64_MAX / 4).wait_ns, 0);
	CU_ASSERT_EQUAL(rates_take(t, 3, 1e-9, 1, 1).wait_ns, 0);
	CU_ASSERT(rates_take(t, 3, 1e-9, 1, 2).wait_ns > 0);
	rates_free(t);
}

/* A flood of keys, each within its rate, does not make the table forget one that is over its rate. */
static void floods(void)
{
	struct rates *t = rates_new(512);
	int evicted = 0;

	for (int i = 0; i < 100; i++)
		rates_take(t, 64, 1, 100, S);
	for (uint64_t i = 1; i < 100000; i++) {
		struct rates_verdict v = rates_take(t, i << 6 << 10, 1, 100, S);
		CU_ASSERT_EQUAL(v.wait_ns, 0);
		evicted += v.evicted;
	}
	CU_ASSERT(evicted > 90000);
	CU_ASSERT(rates_take(t, 64, 1, 100, S).wait_ns > 0);
	/* when the others are idle, nothing is evicted */
	CU_ASSERT_FALSE(rates_take(t, 5 << 6, 1, 100, 1000 * S).evicted);
	rates_free(t);
}

static atomic_int passed;

static void *take_many(void *arg)
{
	for (int i = 0; i < 20000; i++)
		if (rates_take(arg, 42, 1, 1000, S).wait_ns == 0)
			atomic_fetch_add(&passed, 1);
	return NULL;
}

/* Threads share a bucket exactly. */
static void threads_share(void)
{
	struct rates *t = rates_new(1000);
	pthread_t thread[4];

	for (int i = 0; i < 4; i++)
		CU_ASSERT_FATAL(pthread_create(&thread[i], NULL, take_many, t) == 0);
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	CU_ASSERT_EQUAL(atomic_load(&passed), 1000);
	rates_free(t);
}

/* Every byte, the length and the seed count. */
static void hashes_differ(void)
{
	const uint64_t seed[2] = {1, 2}, other[2] = {1, 3};
	char text[40] = {0};
	uint64_t seen[80];
	int n = 0;

	for (size_t i = 0; i < 40; i++)
		seen[n++] = sip_hash(seed, text, i);
	for (size_t i = 0; i < 40; i++) {
		text[i] = 1;
		seen[n++] = sip_hash(seed, text, 40);
		text[i] = 0;
	}
	for (int i = 0; i < n; i++)
		for (int k = 0; k < i; k++)
			CU_ASSERT_NOT_EQUAL(seen[i], seen[k]);
	CU_ASSERT_NOT_EQUAL(sip_hash(seed, "a", 1), sip_hash(other, "a", 1));
	CU_ASSERT_EQUAL(sip_hash(seed, "abcdefgh", 8), sip_hash(seed, "abcdefghi", 8));
}

CUNIT_MAIN("rates", {"bursts and refills", bursts_and_refills}, {"extremes", extremes},
    {"floods", floods}, {"threads share", threads_share}, {"hashes differ", hashes_differ})
