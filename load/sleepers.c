/* SPDX-License-Identifier: MIT */
/*
 * Runs threads that only sleep; see sleepers.h. Each thread has a counter on its own cache line. A
 * barrier starts all threads at the same time, and a flag stops them.
 */
#include "load/sleepers.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <weir/clock.h>

#include "load/sentence.h"

/* Stack size: enough for nanosleep and the guard page. With the default of 8 MiB, stack memory
 * would limit the number of threads. */
#define STACK_BYTES 65536

struct crowd;

struct sleeper {
	_Alignas(64) struct crowd *crowd;
	uint64_t tasks; /* read after the join */
	pthread_t thread;
};

struct crowd {
	pthread_mutex_t lock;
	pthread_cond_t may_run;
	bool run; /* guarded by lock */
	atomic_bool stop;
	struct sleeper *sleeper;
	int n;
};

static void *sleeper_main(void *arg)
{
	struct sleeper *me = arg;
	struct crowd *c = me->crowd;
	const struct timespec block = {0, SLEEPERS_BLOCK_NS};

	pthread_mutex_lock(&c->lock);
	while (!c->run)
		pthread_cond_wait(&c->may_run, &c->lock);
	pthread_mutex_unlock(&c->lock);
	while (!atomic_load_explicit(&c->stop, memory_order_relaxed)) {
		nanosleep(&block, NULL);
		me->tasks++;
	}
	return NULL;
}

static int create(struct crowd *c, int threads)
{
	pthread_attr_t attr;
	int rc = 0;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	for (; rc == 0 && c->n < threads; c->n += rc == 0) {
		c->sleeper[c->n] = (struct sleeper){.crowd = c};
		rc = pthread_create(
		    &c->sleeper[c->n].thread, &attr, sleeper_main, &c->sleeper[c->n]);
	}
	pthread_attr_destroy(&attr);
	return rc;
}

static void release(struct crowd *c)
{
	pthread_mutex_lock(&c->lock);
	c->run = true;
	pthread_cond_broadcast(&c->may_run);
	pthread_mutex_unlock(&c->lock);
}

/* Run the threads for `for_ns`, stop them, and report their results. */
static void measure(struct crowd *c, int64_t for_ns, struct sleepers *out)
{
	struct timespec length = {for_ns / 1000000000, for_ns % 1000000000};
	int64_t wall_ns = weir_clock_ns(CLOCK_MONOTONIC),
		cpu_ns = weir_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	uint64_t tasks = 0;

	release(c);
	nanosleep(&length, NULL);
	atomic_store(&c->stop, true);
	for (int i = 0; i < c->n; i++) {
		pthread_join(c->sleeper[i].thread, NULL);
		tasks += c->sleeper[i].tasks;
	}
	wall_ns = weir_clock_ns(CLOCK_MONOTONIC) - wall_ns;
	cpu_ns = weir_clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns;
	*out = (struct sleepers){.threads = c->n,
	    .tasks_per_s = (double)tasks / ((double)wall_ns * 1e-9),
	    .ideal_per_s = c->n * 1e9 / SLEEPERS_BLOCK_NS,
	    .cpu_share = (double)cpu_ns / (double)wall_ns};
}

int sleepers_run(int threads, int64_t for_ns, struct sleepers *out, struct weir_err *err)
{
	struct crowd c = {.lock = PTHREAD_MUTEX_INITIALIZER, .may_run = PTHREAD_COND_INITIALIZER};
	size_t bytes = (size_t)threads * sizeof(*c.sleeper);
	int rc;

	c.sleeper = aligned_alloc(64, bytes);
	if (!c.sleeper)
		return sentence_nomem(err);
	memset(c.sleeper, 0, bytes);
	rc = create(&c, threads);
	if (rc != 0)
		for_ns = 0;
	measure(&c, for_ns, out);
	free(c.sleeper);
	if (rc != 0)
		return sentence(err, WEIR_ESYS, "only %d of %d threads could be created: %s", c.n,
		    threads, strerror(rc));
	return 0;
}

int sleepers_limit(const struct sleepers *out, int n)
{
	int best = 0;

	for (int i = 1; i < n; i++)
		if (out[i].tasks_per_s > out[best].tasks_per_s * 1.05)
			best = i;
	return out[best].threads;
}
