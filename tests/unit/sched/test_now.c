/* SPDX-License-Identifier: MIT */
/* What a core does now: the batch under way counts until the book has it, what was shown never
 * decreases, and a sleep has a length while it lasts. In made-up time. */
#include "cunit_main.h"

#include "sched/cores.h"

static struct core core;
static struct watched watched;
static struct core_group group = {.n_stages = 2, .max = 1, .core = &core, .watched = &watched};

/* A batch of stage 1 runs since 1000 ns, after busy times of 40 and 2 ns. */
static void begin(void)
{
	memset(&core, 0, sizeof(core));
	memset(&watched, 0, sizeof(watched));
	book_add(&core.book[0].busy_ns, 40);
	book_add(&core.book[1].busy_ns, 2);
	atomic_store(&watched.now.place, 1);
	atomic_store(&watched.now.booked_ns, 42);
	atomic_store(&watched.now.call_ns, 1000);
}

static uint64_t busy(int i, int64_t now_ns)
{
	return now_busy_ns(&group, 0, i, book_read(&core.book[i].busy_ns), now_ns);
}

static void test_under_way(void)
{
	begin();
	CU_ASSERT_EQUAL(busy(0, 1500), 40);
	CU_ASSERT_EQUAL(busy(1, 900), 2); /* a view that is older than the call */
	CU_ASSERT_EQUAL(busy(1, 1500), 502);
	book_add(&core.book[1].busy_ns, 700); /* the batch has ended at 1695 */
	CU_ASSERT_EQUAL(busy(1, 1800), 702);
	now_clear(&watched.now);
	CU_ASSERT_EQUAL(busy(1, 1900), 702);
}

/* The batch has ended, but is not in the book yet. */
static void test_never_less(void)
{
	begin();
	CU_ASSERT_EQUAL(busy(1, 1500), 502);
	now_clear(&watched.now);
	CU_ASSERT_EQUAL(busy(1, 1600), 502);
	book_add(&core.book[1].busy_ns, 510);
	CU_ASSERT_EQUAL(busy(1, 1700), 512);
}

static void test_sleep(void)
{
	const struct weir_stage *any = (const struct weir_stage *)&core, *stage;
	struct blocked b = {.call_ns = 1000, .sleep_ns = 5000, .slept_ns = 300, .is = true};

	begin();
	CU_ASSERT_EQUAL(now_blocked_ns(&watched.own.sleep, 6000, &stage), 0);
	CU_ASSERT_PTR_NULL(stage);
	now_sleeps(&watched.own.sleep, any, &b);
	CU_ASSERT_EQUAL(now_blocked_ns(&watched.own.sleep, 6000, &stage), 1300);
	CU_ASSERT_PTR_EQUAL(stage, any);
	CU_ASSERT_EQUAL(now_blocked_ns(&watched.own.sleep, 4000, &stage), 0);
	CU_ASSERT_PTR_NULL(stage);
	b.is = false;
	now_sleeps(&watched.own.sleep, any, &b);
	CU_ASSERT_EQUAL(now_blocked_ns(&watched.own.sleep, 6000, &stage), 0);
	CU_ASSERT_PTR_NULL(stage);
}

CUNIT_MAIN(
    "now", {"under way", test_under_way}, {"never less", test_never_less}, {"sleep", test_sleep})
