/* SPDX-License-Identifier: MIT */
/* Mailboxes: order, one wake-up for a sleeping owner, and the owner's second check before it
 * sleeps. One thread plays both parts, so that mail arrives exactly between the owner's last check
 * and its sleep. */
#include "event/mailbox.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <string.h>

#include "cunit_main.h"

static int wakes;

static void count_wake(struct mailbox *mb)
{
	(void)mb;
	wakes++;
}

static struct weir_event ev[8];

/* Put ev[from..to) as one list. */
static void put(struct mailbox *mb, int from, int to)
{
	for (int i = from; i < to; i++)
		ev[i].next = i + 1 < to ? &ev[i + 1] : NULL;
	mailbox_put(mb, &ev[from], &ev[to - 1].next);
}

static void begin(struct mailbox *mb)
{
	memset(mb, 0, sizeof(*mb));
	mailbox_init(mb, count_wake);
	wakes = 0;
}

static void test_order(void)
{
	struct mailbox mb;
	int n = 0;

	begin(&mb);
	CU_ASSERT_PTR_NULL(mailbox_take(&mb));
	put(&mb, 0, 3);
	put(&mb, 3, 4);
	put(&mb, 4, 8);
	for (struct weir_event *e = mailbox_take(&mb); e; e = e->next)
		CU_ASSERT_PTR_EQUAL(e, &ev[n++]);
	CU_ASSERT_EQUAL(n, 8);
	CU_ASSERT_PTR_NULL(mailbox_take(&mb));
	CU_ASSERT_EQUAL(wakes, 0); /* the owner did not sleep */
	mailbox_fini(&mb);
}

/* Mail arrives after the owner has found none: the owner must not sleep, and the sender does not
 * wake it. */
static void test_looks_again_before_it_sleeps(void)
{
	struct mailbox mb;

	begin(&mb);
	CU_ASSERT_PTR_NULL(mailbox_take(&mb));
	put(&mb, 0, 1);
	CU_ASSERT_FALSE(mailbox_sleep(&mb));
	put(&mb, 1, 2); /* the announced sleep was withdrawn */
	CU_ASSERT_EQUAL(wakes, 0);
	CU_ASSERT_PTR_EQUAL(mailbox_take(&mb), &ev[0]);
	CU_ASSERT_TRUE(mailbox_sleep(&mb));
	mailbox_awake(&mb);
	mailbox_fini(&mb);
}

static void test_one_wakeup_for_a_sleeper(void)
{
	struct mailbox mb;

	begin(&mb);
	CU_ASSERT_TRUE(mailbox_sleep(&mb));
	put(&mb, 0, 1);
	CU_ASSERT_EQUAL(wakes, 1);
	put(&mb, 1, 2);
	CU_ASSERT_EQUAL(wakes, 1);
	CU_ASSERT_PTR_EQUAL(mailbox_take(&mb), &ev[0]);
	CU_ASSERT_TRUE(mailbox_sleep(&mb));
	mailbox_awake(&mb); /* its timeout expired before mail arrived */
	put(&mb, 2, 3);
	CU_ASSERT_EQUAL(wakes, 1);
	mailbox_take(&mb);
	mailbox_fini(&mb);
}

/* The owner takes the mail of a sender that is still about to wake it, and ends: the mailbox lives
 * until the sender has returned from `wake`. */
static sem_t in_wake;
static atomic_bool ends, woken;

static void slow_wake(struct mailbox *mb)
{
	(void)mb;
	sem_post(&in_wake);
	while (!atomic_load(&ends))
		sched_yield();
	for (int i = 0; i < 1000; i++) /* lets the owner run */
		sched_yield();
	atomic_store(&woken, true);
}

static void *send_one(void *mb)
{
	put(mb, 0, 1);
	return NULL;
}

static void test_fini_awaits_wake(void)
{
	struct mailbox mb;
	pthread_t sender;

	memset(&mb, 0, sizeof(mb));
	mailbox_init(&mb, slow_wake);
	sem_init(&in_wake, 0, 0);
	atomic_store(&ends, false);
	atomic_store(&woken, false);
	CU_ASSERT_TRUE(mailbox_sleep(&mb));
	CU_ASSERT_EQUAL_FATAL(pthread_create(&sender, NULL, send_one, &mb), 0);
	while (sem_wait(&in_wake) != 0)
		continue;
	CU_ASSERT_PTR_EQUAL(mailbox_take(&mb), &ev[0]);
	atomic_store(&ends, true);
	mailbox_fini(&mb);
	CU_ASSERT_TRUE(atomic_load(&woken));
	pthread_join(sender, NULL);
	sem_destroy(&in_wake);
}

/* Ids are unique, are reused once free, and are -1 when none is left. */
static void test_ids(void)
{
	enum { ALL = MAILBOX_SET * MAILBOX_SETS };
	static struct mailbox mb[ALL + 1];
	static bool given[ALL];

	for (int i = 0; i < ALL; i++) {
		mailbox_init(&mb[i], count_wake);
		CU_ASSERT_FATAL(mb[i].id >= 0 && mb[i].id < ALL && !given[mb[i].id]);
		given[mb[i].id] = true;
	}
	mailbox_init(&mb[ALL], count_wake);
	CU_ASSERT_EQUAL(mb[ALL].id, -1);
	mailbox_fini(&mb[ALL]);
	int id = mb[5].id;
	mailbox_fini(&mb[5]);
	mailbox_init(&mb[5], count_wake);
	CU_ASSERT_EQUAL(mb[5].id, id);
	for (int i = 0; i < ALL; i++)
		mailbox_fini(&mb[i]);
}

CUNIT_MAIN("mailbox", {"in order", test_order},
    {"looks again before it sleeps", test_looks_again_before_it_sleeps},
    {"one wake-up for a sleeper", test_one_wakeup_for_a_sleeper},
    {"the end awaits a sender that wakes", test_fini_awaits_wake}, {"ids", test_ids})
