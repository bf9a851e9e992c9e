/* SPDX-License-Identifier: MIT */
/* Numbers of users: they are spread evenly, all users are served equally long, and retries come
 * after first attempts. */
#include "admission/users.h"

#include <stdlib.h>

#include "cunit_main.h"
#include "stage/shed_token.h"

#define BUCKETS 64

/* Largest deviation of any bucket from `want`, in events. */
static int unevenness(const int *bucket, int want)
{
	int worst = 0;

	for (int b = 0; b < BUCKETS; b++) {
		int off = abs(bucket[b] - want);
		worst = off > worst ? off : worst;
	}
	return worst;
}

/* User ids counted one by one (such as a server's sessions), ids in large steps, and hashes. */
static void test_even_over_users(void)
{
	static const int64_t times[] = {0, 1, 123456789, 4999999999, 86400000000001};

	for (size_t t = 0; t < sizeof(times) / sizeof(times[0]); t++) {
		int counted[BUCKETS] = {0}, far[BUCKETS] = {0}, hashed[BUCKETS] = {0};
		uint64_t id = 1;
		for (uint64_t i = 1; i <= 64 * 1024; i++) {
			id = id * 6364136223846793005ULL + 1442695040888963407ULL;
			counted[users_number(users_place(i, times[t]), false) * BUCKETS /
				USERS_ALL]++;
			far[users_number(users_place(i << 20, times[t]), false) * BUCKETS /
			    USERS_ALL]++;
			hashed[users_number(users_place(id, times[t]), false) * BUCKETS /
			       USERS_ALL]++;
		}
		CU_ASSERT(unevenness(counted, 1024) <= 8);
		CU_ASSERT(unevenness(far, 1024) <= 6 * 32);
		CU_ASSERT(unevenness(hashed, 1024) <= 6 * 32); /* six standard deviations */
	}
}

/* The number of moments, of 65536 spread over one rotation from `from_ns`, at which the user is
 * below `theta`. *changes: how often that state began or ended, counting the rotation as a
 * circle. */
static int served(uint64_t id, bool retry, uint32_t theta, int64_t from_ns, int *changes)
{
	bool before = users_number(users_place(id, from_ns + USERS_TURN_NS), retry) < theta;
	int n = 0;

	*changes = 0;
	for (int64_t i = 0; i < USERS_ALL; i++) {
		bool in = users_number(users_place(id, from_ns + i * USERS_TURN_NS / USERS_ALL),
			      retry) < theta;
		n += in;
		*changes += in != before;
		before = in;
	}
	return n;
}

static const uint32_t thetas[] = {1, 77, 6553, 32768, 50000, 65535, 65536};
#define N_THETAS (sizeof(thetas) / sizeof(thetas[0]))

/* In any 10 s, each user is served for the fraction theta / 65536, in one piece. */
static void test_turns(void)
{
	for (size_t t = 0; t < N_THETAS; t++)
		for (uint64_t id = 1; id <= 5; id++)
			for (int64_t from_ns = 0; from_ns < 100; from_ns += 33) {
				int changes;
				int n = served(
				    id * 1000003, false, thetas[t], from_ns * 777777777, &changes);
				CU_ASSERT(abs(n - (int)thetas[t]) <= 3);
				CU_ASSERT_EQUAL(changes, thetas[t] == USERS_ALL ? 0 : 2);
			}
}

/* A retry is served for half as long as a first attempt, at the end of the same stretch. So a
 * client that comes back at the announced time gets in, however small the admitted part. */
static void test_retries(void)
{
	for (uint64_t id = 0; id < 2000; id++)
		for (int64_t now_ns = 0; now_ns < 3 * USERS_TURN_NS; now_ns += 1234567891) {
			uint16_t place = users_place(id, now_ns);
			uint16_t again = users_number(place, true);
			CU_ASSERT_EQUAL(users_number(place, false), place);
			CU_ASSERT_EQUAL(again, place < 0x8000 ? 2 * place : USERS_ALL - 1);
		}
	for (size_t t = 0; t < N_THETAS; t++) {
		int changes, n = served(42, true, thetas[t], 5, &changes);
		int half = (int)(thetas[t] == USERS_ALL ? thetas[t] : thetas[t] / 2);
		CU_ASSERT(abs(n - half) <= 3);
		CU_ASSERT(changes == 2 || thetas[t] == USERS_ALL);
	}
}

/* Numbers fall by one at a time, also at the end of a rotation. */
static void test_wraps(void)
{
	const int64_t step_ns = USERS_TURN_NS / USERS_ALL;
	int wrong = 0, steps = 0;

	for (int64_t at_ns = 4 * USERS_TURN_NS - 1000 * step_ns, n = 0; n < 2000; n++) {
		uint16_t before = users_number(users_place(7, at_ns + n * step_ns), false);
		uint16_t after = users_number(users_place(7, at_ns + (n + 1) * step_ns), false);
		uint16_t fell = (uint16_t)(before - after);
		wrong += fell > 1;
		steps += fell;
	}
	CU_ASSERT_EQUAL(wrong, 0);
	CU_ASSERT(steps >= 1999);
	for (uint64_t id = 1; id < 1000; id++) {
		int64_t now_ns = (int64_t)id * 987654321;
		CU_ASSERT_EQUAL(users_number(users_place(id, now_ns), false),
		    users_number(users_place(id, now_ns + USERS_TURN_NS), false));
		CU_ASSERT_EQUAL(users_number(users_place(id, now_ns), false),
		    users_number(users_place(id, now_ns + 1000000 * USERS_TURN_NS), false));
	}
}

/* Clients are told when to come back, so tokens and users must agree on the rotation. */
static void test_tokens_know_the_turn(void)
{
	CU_ASSERT_EQUAL(SHED_TOKEN_TURN_NS, USERS_TURN_NS);
}

/* Unknown users: of any run, exactly the part of the class enters. */
static void test_unknown_users(void)
{
	static bool met[USERS_ALL];
	struct admission_view v = {0};
	uint16_t spread = 12345;
	int twice = 0;

	for (uint32_t i = 0; i < USERS_ALL; i++) {
		uint32_t u = users_of(&v, 0, &spread);
		twice += met[u];
		met[u] = true;
	}
	CU_ASSERT_EQUAL(twice, 0);
	for (int run = 1; run <= 256; run *= 2)
		for (size_t t = 0; t < N_THETAS; t++) {
			int n = 0;
			for (int i = 0; i < run; i++)
				n += users_of(&v, i, &spread) < thetas[t];
			double off = n - run * (double)thetas[t] / USERS_ALL;
			CU_ASSERT(off < 3 && off > -3);
		}
}

static void test_known_users(void)
{
	uint16_t user[] = {5, 65535, 0}, spread = 9;
	struct admission_view v = {.user = user};

	for (int i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(users_of(&v, i, &spread), user[i]);
	CU_ASSERT_EQUAL(spread, 9);
}

CUNIT_MAIN("users", {"even over users", test_even_over_users}, {"turns", test_turns},
    {"retries", test_retries}, {"wraps", test_wraps},
    {"tokens know the turn", test_tokens_know_the_turn}, {"unknown users", test_unknown_users},
    {"known users", test_known_users})
