/* SPDX-License-Identifier: MIT */
/* Seconds passed from a worker to the collector, and counts of warm-ups. */
#include "load/tally.h"

#include <string.h>

#include "cunit_main.h"

#define SECONDS 2000

static struct load_plan plan;
static struct tally_exchange exchange = {
    .lock = PTHREAD_MUTEX_INITIALIZER, .news = PTHREAD_COND_INITIALIZER};
static struct tally tally;

static void begin(void)
{
	memset(&plan, 0, sizeof(plan));
	plan.n_classes = 2;
	plan.n_phases = 2;
	plan.phase[0].warmup = true;
	exchange.n_running = 1;
	CU_ASSERT_EQUAL_FATAL(tally_init(&tally, &plan, &exchange), 0);
}

static void test_phases(void)
{
	const struct ticket warm = {.phase = 0}, counted = {.phase = 1, .class_id = 1};

	begin();
	tally_offered(&tally, &warm);
	tally_ended(&tally, &warm, LOAD_OK, 5);
	tally_lag(&tally, 0, 7);
	tally_offered(&tally, &counted);
	tally_retried(&tally, &counted);
	tally_ended(&tally, &counted, LOAD_SHED, 5000);
	CU_ASSERT_EQUAL(tally.phase[0].class[0].offered, 0);
	CU_ASSERT_EQUAL(tally.phase[0].lag.total, 0);
	CU_ASSERT_EQUAL(tally.phase[1].class[1].offered, 1);
	CU_ASSERT_EQUAL(tally.phase[1].class[1].retries, 1);
	CU_ASSERT_EQUAL(tally.phase[1].class[1].latency[LOAD_SHED]->sum_ns, 5000);
	CU_ASSERT_PTR_NULL(tally.phase[1].class[1].latency[LOAD_OK]);
	CU_ASSERT_EQUAL(tally.offered, 2);
	CU_ASSERT_EQUAL(tally.finished, 2);
	CU_ASSERT_EQUAL(tally.now->class[0].latency.total, 1);
	CU_ASSERT_EQUAL(tally.now->lag_max_ns, 7);
	tally_fini(&tally);
}

static void *work(void *arg)
{
	const struct ticket t = {.phase = 1};

	(void)arg;
	for (int64_t s = 0; s < SECONDS; s++) {
		tally_advance(&tally, s, 3);
		for (int64_t i = 0; i <= s % 5; i++)
			tally_offered(&tally, &t);
	}
	tally_close(&tally, 4);
	return NULL;
}

/* Every second arrives once, in order and complete, while the worker continues. */
static void test_hand_over(void)
{
	pthread_t thread;

	begin();
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, work, NULL), 0);
	for (int64_t number = 0; number < SECONDS; number++) {
		struct tally_second *s;
		pthread_mutex_lock(&exchange.lock);
		while (tally.published <= number)
			pthread_cond_wait(&exchange.news, &exchange.lock);
		s = tally_take(&tally);
		pthread_mutex_unlock(&exchange.lock);
		CU_ASSERT_PTR_NOT_NULL_FATAL(s);
		CU_ASSERT_EQUAL(s->number, number);
		CU_ASSERT_EQUAL(s->class[0].offered, (uint64_t)(number % 5 + 1));
		CU_ASSERT_EQUAL(s->class[1].offered, 0);
		CU_ASSERT_EQUAL(s->connections, number == SECONDS - 1 ? 4 : 3);
		pthread_mutex_lock(&exchange.lock);
		tally_give_back(&tally, s);
		pthread_mutex_unlock(&exchange.lock);
	}
	pthread_join(thread, NULL);
	CU_ASSERT_EQUAL(exchange.n_running, 0);
	CU_ASSERT_PTR_NULL(tally.ready);
	tally_fini(&tally);
}

CUNIT_MAIN(
    "tally", {"phases and warm-ups", test_phases}, {"seconds are handed over", test_hand_over})
