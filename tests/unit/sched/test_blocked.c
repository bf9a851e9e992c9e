/* SPDX-License-Identifier: MIT */
/* Cores that sleep in a handler: which sights make a core blocked, in made-up time; and whether the
 * kernel says that a thread sleeps. */
#include "cunit_main.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/asleep.h"
#include "fixture/graph/await.h"
#include "sched/blocked.h"

#define MS NS_PER_MS

static struct blocked core;
static int64_t now_ns;

/* A look some ms later. */
static bool look(int64_t ms, int64_t call_ns, bool asleep, uint64_t ran_ns)
{
	struct blocked_sight sight = {.since_ns = call_ns, .asleep = asleep, .ran_ns = ran_ns};

	now_ns += ms * MS;
	return blocked_look(&core, &sight, now_ns);
}

static void begin(void)
{
	core = (struct blocked){0};
	now_ns = 1000 * MS;
	CU_ASSERT_FALSE(look(0, 7, true, 50));
	CU_ASSERT_EQUAL(blocked_next_ns(&core, now_ns), now_ns + BLOCKED_NS);
}

static void test_sleeps(void)
{
	begin();
	CU_ASSERT_FALSE(look(4, 7, true, 50));
	CU_ASSERT_TRUE(look(1, 7, true, 50));
	CU_ASSERT_TRUE(core.is);
	CU_ASSERT_EQUAL(blocked_next_ns(&core, now_ns), INT64_MAX);
	CU_ASSERT_FALSE(look(5, 7, true, 50)); /* no news */
	CU_ASSERT_TRUE(core.is);
	CU_ASSERT_EQUAL(now_ns - core.sleep_ns, 10 * MS);
	CU_ASSERT_TRUE(look(5, 7, false, 50)); /* it has woken up, in the same call */
	CU_ASSERT_FALSE(core.is);
	CU_ASSERT_EQUAL(blocked_next_ns(&core, now_ns), INT64_MAX);
}

/* It is awake, has run or waited for a CPU, is in another call, or in none. */
static void test_does_not(void)
{
	begin();
	CU_ASSERT_FALSE(look(5, 7, false, 50));
	CU_ASSERT_FALSE(look(5, 7, true, 50)); /* a new sleep */
	CU_ASSERT_TRUE(look(5, 7, true, 50));
	begin();
	CU_ASSERT_FALSE(look(5, 7, true, 51));
	CU_ASSERT_TRUE(look(5, 7, true, 51));
	CU_ASSERT_TRUE(look(5, 7, true, 52));
	CU_ASSERT_FALSE(core.is);
	begin();
	CU_ASSERT_FALSE(look(5, 8, true, 50));
	CU_ASSERT_TRUE(look(5, 8, true, 50));
	CU_ASSERT_TRUE(look(5, 0, true, 50));
	CU_ASSERT_FALSE(core.is);
	begin();
	CU_ASSERT_FALSE(look(5, 0, false, 0));
}

/* The length of all sleeps in a call, without the time awake. */
static void test_length(void)
{
	begin();
	CU_ASSERT_EQUAL(blocked_for_ns(&core, now_ns), 0);
	CU_ASSERT_TRUE(look(10, 7, true, 50));
	CU_ASSERT_EQUAL(blocked_for_ns(&core, now_ns + MS), 11 * MS);
	CU_ASSERT_TRUE(look(10, 7, true, 50 + 2 * MS)); /* a signal has woken it for 2 ms */
	CU_ASSERT_EQUAL(blocked_for_ns(&core, now_ns), 0);
	CU_ASSERT_TRUE(look(5, 7, true, 50 + 2 * MS));
	CU_ASSERT_EQUAL(blocked_for_ns(&core, now_ns), (10 + 8 + 5) * MS);
	CU_ASSERT_TRUE(look(5, 7, false, 50 + 3 * MS));
	CU_ASSERT_FALSE(look(5, 7, false, 50 + 8 * MS)); /* awake all the time */
	CU_ASSERT_FALSE(look(5, 7, true, 50 + 13 * MS));
	CU_ASSERT_TRUE(look(5, 7, true, 50 + 13 * MS));
	CU_ASSERT_EQUAL(blocked_for_ns(&core, now_ns), (23 + 4 + 5) * MS);
	CU_ASSERT_TRUE(look(5, 8, true, 50 + 13 * MS)); /* another call */
	CU_ASSERT_TRUE(look(5, 8, true, 50 + 13 * MS));
	CU_ASSERT_EQUAL(blocked_for_ns(&core, now_ns), 5 * MS);
}

static sem_t sleep_on;
static atomic_int sleeper_tid;

static void *sleeper(void *arg)
{
	(void)arg;
	pthread_setname_np(pthread_self(), "a) R (b");
	atomic_store(&sleeper_tid, gettid());
	while (sem_wait(&sleep_on) != 0)
		continue;
	return NULL;
}

static void test_kernel(void)
{
	pthread_t t;
	char name[16];

	CU_ASSERT_FALSE(asleep(gettid()));
	CU_ASSERT_EQUAL_FATAL(pthread_getname_np(pthread_self(), name, sizeof(name)), 0);
	pthread_setname_np(pthread_self(), "a) S (b"); /* the file has the name before the state */
	CU_ASSERT_FALSE(asleep(gettid()));
	pthread_setname_np(pthread_self(), name);
	sem_init(&sleep_on, 0, 0);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&t, NULL, sleeper, NULL), 0);
	FIXTURE_AWAIT(atomic_load(&sleeper_tid) != 0 && asleep(atomic_load(&sleeper_tid)));
	sem_post(&sleep_on);
	pthread_join(t, NULL);
	FIXTURE_AWAIT(!asleep(atomic_load(&sleeper_tid)));
	sem_destroy(&sleep_on);
}

CUNIT_MAIN("blocked", {"sleeps", test_sleeps}, {"does not", test_does_not}, {"length", test_length},
    {"the kernel's word", test_kernel})
