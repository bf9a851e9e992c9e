/* SPDX-License-Identifier: MIT */
/* Max-min fair shares: demands, levels, and the table of users. */
#include "admission/fair.h"

#include <malloc.h>
#include <stdlib.h>

#include <weir/spec.h>

#include "cunit_main.h"

#define MS 1000000LL
#define S  1000000000LL

static struct fair *fair;
static int64_t now_ns;

/* What a sink does on a tick. */
static void tick(void)
{
	uint32_t slots = fair_wants(fair, now_ns);

	fair_tick(fair, now_ns);
	if (slots)
		fair_renew(fair, fair_table_new(slots), now_ns);
	fair_table_free(fair_left(fair));
}

static void start(void)
{
	fair = fair_new(1);
	CU_ASSERT_PTR_NOT_NULL_FATAL(fair);
	now_ns = S;
	tick();
}

static void end(void)
{
	fair_free(fair);
}

/* ---- demands ---- */

static void test_demand_counts(void)
{
	start();
	CU_ASSERT_DOUBLE_EQUAL(fair_note(fair, 0, 7, now_ns), 1, 1e-6);
	CU_ASSERT_DOUBLE_EQUAL(fair_note(fair, 0, 7, now_ns), 2, 1e-6);
	CU_ASSERT_DOUBLE_EQUAL(fair_note(fair, 0, 8, now_ns), 1, 1e-6);
	CU_ASSERT_DOUBLE_EQUAL(fair_note(fair, 1, 7, now_ns), 1, 1e-6); /* another class */
	end();
}

static void test_demand_falls(void)
{
	start();
	for (int i = 0; i < 100; i++)
		fair_note(fair, 0, 7, now_ns);
	/* 10 s later 1/e is left; times are kept in units of 2^20 ns. */
	CU_ASSERT_DOUBLE_EQUAL(fair_note(fair, 0, 7, now_ns + 10 * S), 100 / 2.71828 + 1, 0.02);
	/* An older clock reading does not decay the demand, it only adds one. */
	CU_ASSERT_DOUBLE_EQUAL(fair_note(fair, 0, 7, now_ns), 100 / 2.71828 + 2, 0.02);
	end();
}

/* ---- levels ---- */

/* For `ticks` ticks, user i of n makes rate[i] requests a tick, each decided with `phi`. */
static void ask_for(const int *rate, int n, int ticks, double phi)
{
	for (int t = 0; t < ticks; t++, now_ns += 10 * MS) {
		for (int u = 0; u < n; u++) {
			for (int i = 0; i < rate[u]; i++) {
				fair_note(fair, 0, (uint64_t)u + 1, now_ns);
				fair_decided(fair, 0, phi);
			}
		}
		tick();
	}
}

static double part_of(int user, double phi)
{
	return fair_part(fair, 0, phi, fair_note(fair, 0, (uint64_t)user + 1, now_ns));
}

static void test_unknown_is_proportional(void)
{
	start();
	CU_ASSERT_DOUBLE_EQUAL(fair_part(fair, 0, 0.3, 1), 0.3, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(fair_part(fair, 0, 1.5, 1), 1, 1e-9);
	fair_note(fair, 0, 1, now_ns); /* no tick yet */
	CU_ASSERT_DOUBLE_EQUAL(fair_part(fair, 0, 0.3, 1), 0.3, 1e-9);
	end();
}

/* 1, 2, 3, 20 and 20 per tick, of which half can be served: 23 of 46. The small three take 6; 17
 * are left for two users, so 8.5 of 20 each. */
static void test_level(void)
{
	static const int rate[] = {1, 2, 3, 20, 20};

	start();
	ask_for(rate, 5, 6000, 0.5);
	CU_ASSERT_DOUBLE_EQUAL(part_of(0, 0.5), 1, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(part_of(1, 0.5), 1, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(part_of(2, 0.5), 1, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(part_of(3, 0.5), 8.5 / 20, 0.01);
	CU_ASSERT_DOUBLE_EQUAL(part_of(4, 0.5), 8.5 / 20, 0.01);
	end();
}

/* If a decision has less than the mean to give, the users over the level lose first, and only then
 * the others, in proportion. If it has more, the users over the level get all of it. */
static void test_swings_are_for_the_greedy(void)
{
	static const int rate[] = {1, 2, 3, 20, 20};

	start();
	ask_for(rate, 5, 6000, 0.5);
	CU_ASSERT_DOUBLE_EQUAL(part_of(0, 0.2), 1, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(part_of(3, 0.2), (0.2 * 46 - 6) / 40, 0.01);
	CU_ASSERT_DOUBLE_EQUAL(part_of(3, 0.1), 0, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(part_of(0, 0.1), 4.6 / 6, 0.01);
	CU_ASSERT_DOUBLE_EQUAL(part_of(2, 0.1), 4.6 / 6, 0.01);
	CU_ASSERT_DOUBLE_EQUAL(part_of(3, 0.8), (0.8 * 46 - 6) / 40, 0.01);
	CU_ASSERT_DOUBLE_EQUAL(part_of(3, 1), 1, 1e-9);
	end();
}

/* Equal users get the same as without shares. */
static void test_equals(void)
{
	int rate[50];

	for (int i = 0; i < 50; i++)
		rate[i] = 4;
	start();
	ask_for(rate, 50, 6000, 0.25);
	for (int i = 0; i < 50; i++)
		CU_ASSERT_DOUBLE_EQUAL(part_of(i, 0.25), 0.25, 0.02);
	end();
}

/* Whatever is offered and given, the parts of all events are in 0..1, fall as demand rises, and add
 * up to the given total within the width of a bucket. */
static void test_adds_up(void)
{
	srand(4711);
	for (int round = 0; round < 30; round++) {
		int rate[12], n = 1 + rand() % 12;
		double phi = (rand() % 1000) / 1000.0, served = 0, all = 0, last = 2;
		for (int i = 0; i < n; i++)
			rate[i] = i == 0 ? 1 : rate[i - 1] + rand() % 5;
		start();
		ask_for(rate, n, 6000, phi);
		for (int i = 0; i < n; i++) {
			double part = part_of(i, phi);
			CU_ASSERT(part >= 0 && part <= 1 && part <= last + 1e-6);
			last = part;
			served += part * rate[i];
			all += rate[i];
		}
		CU_ASSERT_DOUBLE_EQUAL(served / all, phi, 0.03);
		end();
	}
}

/* Events that are nearly forgotten, down to the smallest numbers there are, do not affect the
 * level: the small user gets all that it asks for. */
static void test_forgotten(void)
{
	start();
	for (int t = 0; t < 800; t++) { /* each tick keeps 1/e: after 745 of them nothing is left */
		for (int i = 0; i < 260; i++) {
			fair_note(fair, 0, i < 4 ? 1 : 2, now_ns);
			fair_decided(fair, 0, 0.5);
		}
		now_ns += S;
		tick();
		if (t > 100) {
			CU_ASSERT_DOUBLE_EQUAL(fair_part(fair, 0, 0.5, 40), 1, 1e-9);
			CU_ASSERT_DOUBLE_EQUAL(
			    fair_part(fair, 0, 0.5, 2600), (0.5 * 260 - 4) / 256, 0.01);
		}
	}
	end();
}

/* ---- positions ---- */

/* A user that is one of a thousand keeps about the same position. If one user is the whole load,
 * its events are spread evenly over the rotation. */
static void test_place(void)
{
	int quarter[4] = {0};

	start();
	for (uint64_t u = 0; u < 1000; u++)
		fair_note(fair, 0, u, now_ns);
	for (int i = 0; i < 100; i++) {
		uint16_t place = fair_place(fair, 0, 1000, 1);
		CU_ASSERT(place >= 1000 && place < 1000 + 65536 * 16 / 999);
	}
	for (int i = 0; i < 4000; i++)
		quarter[fair_place(fair, 0, 1000, 500) >> 14]++;
	for (int i = 0; i < 4; i++)
		CU_ASSERT(quarter[i] > 980 && quarter[i] < 1020);
	end();
}

/* ---- the table ---- */

/* A million users fit in 64 MB, and nearly all of them are told apart. */
static void test_million(void)
{
	const uint64_t users = 1000000;
	uint64_t known = 0;

	start();
	for (int round = 0; round < 3; round++) {
		for (uint64_t u = 0; u < users; u++) {
			float demand = fair_note(fair, 0, u * 64, now_ns);
			known += round == 2 && demand > 2.5F;
			if (u % 1000 == 0) {
				now_ns += MS;
				tick();
			}
			CU_ASSERT(fair_bytes(fair) <= 64000000);
		}
	}

	CU_ASSERT(known >= users / 100 * 99);
	end();
}

/* User ids that are far apart in equal steps, such as generated account numbers, are told apart
 * like any others. */
static void test_steps(void)
{
	const uint64_t users = 2000, step = 179 << 10;
	uint64_t known = 0;

	start();
	for (int round = 0; round < 3; round++) {
		for (uint64_t u = 0; u < users; u++) {
			float demand = fair_note(fair, 0, u * step, now_ns);
			known += round == 2 && demand > 2.9F && demand < 3.1F;
			now_ns += 1000;
			tick();
		}
	}
	CU_ASSERT(known >= users / 100 * 99);
	end();
}

/* Users move to the next table with their demand, by their own events or those of others. A user
 * that was silent for 30 s does not. */
static void test_renewal(void)
{
	start();
	for (int i = 0; i < 1000; i++)
		fair_note(fair, 0, 1, now_ns);
	fair_note(fair, 0, 2, now_ns);
	now_ns += 29 * S;
	fair_note(fair, 0, 3, now_ns);
	now_ns += 2 * S;
	CU_ASSERT(fair_wants(fair, now_ns) > 0);
	tick();
	CU_ASSERT_EQUAL(fair_wants(fair, now_ns), 0); /* the users are being moved */
	CU_ASSERT_DOUBLE_EQUAL(fair_note(fair, 0, 1, now_ns), 1000 * 0.045 + 1, 1);
	for (int i = 0; i < 128; i++)
		fair_note(fair, 0, 4, now_ns);
	tick();
	CU_ASSERT_DOUBLE_EQUAL(fair_note(fair, 0, 3, now_ns), 0.82 + 1, 0.01);
	CU_ASSERT_DOUBLE_EQUAL(fair_note(fair, 0, 2, now_ns), 1, 1e-6);
	end();
}

/* A table that held many users shrinks when they have gone. */
static void test_shrinks(void)
{
	start();
	for (uint64_t u = 0; u < 100000; u++) {
		fair_note(fair, 0, u, now_ns);
		if (u % 100 == 0)
			tick();
	}
	size_t most = fair_bytes(fair);
	for (int i = 0; i < 4; i++) {
		now_ns += 31 * S;
		tick();
		for (int k = 0; k < 200000; k++)
			fair_note(fair, 0, 1, now_ns);
		tick();
	}
	CU_ASSERT(most > 100000 * 12);
	CU_ASSERT(fair_bytes(fair) < 32768);
	end();
}

/* Without memory for a table, every user has demand 1 and shares are proportional. */
static void test_no_table(void)
{
	fair = fair_new(1);
	for (int i = 0; i < 100; i++)
		CU_ASSERT_DOUBLE_EQUAL(fair_note(fair, 0, 1, S), 1, 1e-6);
	fair_tick(fair, 2 * S);
	CU_ASSERT_DOUBLE_EQUAL(fair_part(fair, 0, 0.4, 1), 0.4, 1e-6);
	fair_free(fair);
	fair_free(NULL);
}

/* What fair_bytes counts grows by the same amount for each class that has users, the highest
 * included. */
static void test_bytes_of_each_class(void)
{
	start();
	size_t none = fair_bytes(fair);
	fair_note(fair, 0, 1, now_ns);
	size_t one = fair_bytes(fair);
	CU_ASSERT(one > none);
	fair_note(fair, 1, 1, now_ns);
	CU_ASSERT_EQUAL(fair_bytes(fair) - one, one - none);
	end();
}

/* Shares that were used give all their memory back. */
static void test_gives_memory_back(void)
{
	size_t before = 0;

	for (int i = 0; i < 20; i++) {
		before = i == 10 ? mallinfo2().uordblks : before; /* malloc's caches are filled */
		start();
		for (int c = 0; c < WEIR_CLASSES_MAX; c++)
			fair_note(fair, c, 1, now_ns);
		end();
	}
	/* 0 with a sanitizer, which finds leaks itself */
	CU_ASSERT_EQUAL(mallinfo2().uordblks, before);
}

CUNIT_MAIN("fair shares", {"demand counts", test_demand_counts},
    {"demand falls", test_demand_falls}, {"unknown is proportional", test_unknown_is_proportional},
    {"a level", test_level}, {"swings are for the greedy", test_swings_are_for_the_greedy},
    {"equal users", test_equals}, {"adds up", test_adds_up}, {"forgotten", test_forgotten},
    {"places", test_place}, {"a million users", test_million}, {"ids in steps", test_steps},
    {"renewal", test_renewal}, {"shrinks", test_shrinks}, {"no table", test_no_table},
    {"bytes of each class", test_bytes_of_each_class},
    {"gives its memory back", test_gives_memory_back})
