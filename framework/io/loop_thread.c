/* SPDX-License-Identifier: MIT */
/*
 * Starts, stops and replaces the thread of an event loop.
 *
 * If a handler of an inline stage calls pthread_exit, the thread exits but the loop continues: the
 * exiting thread finishes the batch as WEIR_EDIED, sends the events in its outboxes and creates a
 * successor, which continues in the middle of the iteration. If the thread exits anywhere else, the
 * source is left in an unknown state, so the process aborts.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <weir/log.h>

#include "base/clock.h"
#include "event/local.h"
#include "sched/host.h"
#include "stage/thread.h"
#include "io/loop.h"

/* Number of attempts to replace a thread that has exited, and the pause between them. A total of 10
 * s is a guess: a machine that cannot create a thread for that long cannot serve anything. */
#define LOOP_REPLACE_TRIES    100
#define LOOP_REPLACE_PAUSE_NS (100 * NS_PER_MS)

static int thread_start(struct weir_loop *loop)
{
	loop_current = loop;
	struct pool *pool = loop->host ? loop->host->pool : NULL;
	int rc =
	    thread_enter_core(stage_graph(loop->stage), loop->name, loop->stage, &loop->link, pool);
	loop->refused_by = thread_refused_by();
	if (rc != 0)
		return rc;
	atomic_store(&thread_self()->number, loop->index);
	thread_touch(loop->now_ns);
	rc = loop->ops->start ? loop->ops->start(loop) : 0;
	thread_flush();
	if (rc != 0)
		thread_leave();
	else if (loop->host)
		host_begin(loop->host);
	return rc;
}

static void *loop_go_on(void *arg);

/* Start a thread that takes over the counters and outboxes of the calling thread. */
static void replace(struct weir_loop *loop)
{
	const struct timespec pause = {0, LOOP_REPLACE_PAUSE_NS};

	loop->passed_on = thread_pass_on();
	loop_current = NULL;
	loop->current ^= 1;
	for (int i = 0; i < LOOP_REPLACE_TRIES; i++) {
		if (task_start(&loop->task[loop->current], loop->name, loop_go_on, loop) == 0)
			return;
		nanosleep(&pause, NULL);
	}
	weir_log(WEIR_LOG_ERROR,
	    "I/O thread '%s' ended inside a handler and cannot be replaced: the server exits",
	    loop->name);
	abort();
}

/* Cleanup handler, which runs if the thread exits by pthread_exit. */
static void loop_died(void *arg)
{
	struct weir_loop *loop = arg;

	/* If a handler that thread_died runs ends the thread, too, glibc first calls the cleanup
	 * handler that is pushed below, and then this one again. */
	if (!loop_current)
		return;
	if (!loop->sends) {
		weir_log(WEIR_LOG_ERROR,
		    "I/O thread '%s' was ended (pthread_exit) outside a handler: the server exits",
		    loop->name);
		abort();
	}
	pthread_cleanup_push(loop_died, loop);
	thread_died(&loop->stage->deaths);
	pthread_cleanup_pop(0);
	if (loop->host)
		host_died(loop->host);
	loop->sends = false;
	replace(loop);
}

static void loop_end(struct weir_loop *loop)
{
	if (loop->host) {
		loop->sends = true;
		host_end(loop->host);
		loop->serves = false;
		loop->sends = false;
	}
	loop_turn(loop); /* delivers mail that arrived before the stop */
	if (loop->ops->stop && !loop->stopped) {
		loop->stopped = true;
		loop->ops->stop(loop);
	}
	while (loop_send_on(loop))
		continue;
}

static void loop_run(struct weir_loop *loop)
{
	pthread_cleanup_push(loop_died, loop);
	if (loop->passed_on) /* finish the iteration in which the previous thread exited */
		(loop->serves ? loop_core_turn : loop_turn)(loop);
	/* pairs with weir_loop_stop */
	while (!atomic_load_explicit(&loop->stop, memory_order_acquire)) {
		if (loop->host && loop_core_step(loop))
			continue;
		loop_wait(loop);
		loop_turn(loop);
	}
	loop_end(loop);
	pthread_cleanup_pop(0);
	thread_leave();
	sem_post(&loop->over);
}

static void *loop_go_on(void *arg)
{
	struct weir_loop *loop = arg;

	task_join(&loop->task[!loop->current]);
	loop_current = loop;
	thread_resume(loop->passed_on);
	if (loop->host)
		host_resume(loop->host);
	loop->now_ns = clock_now_ns();
	loop_run(loop);
	return NULL;
}

static void *loop_main(void *arg)
{
	struct weir_loop *loop = arg;
	int rc = thread_start(loop);

	loop->start_rc = rc;
	sem_post(&loop->started);
	if (rc == 0)
		loop_run(loop);
	return NULL;
}

static void await(sem_t *sem)
{
	while (sem_wait(sem) == -1)
		WEIR_ASSERT(errno == EINTR);
}

/* Report a loop that would crash at its first mail or iteration. */
static int lacks_callback(const struct weir_stage *st, const char *which)
{
	weir_log(WEIR_LOG_ERROR, "stage '%s' (%s) starts a loop without the callback '%s'",
	    weir_stage_name(st), weir_stage_type(st)->name, which);
	return WEIR_EINVAL;
}

int weir_loop_start(struct weir_stage *st, int index, const struct weir_loop_ops *ops, void *data,
    struct weir_loop **out)
{
	struct weir_loop *loop;

	if (!ops->mail || !ops->turn_end)
		return lacks_callback(st, ops->mail ? "turn_end" : "mail");
	int rc = loop_new(st, ops, data, &loop);

	if (rc != 0)
		return rc;
	if (st->host)
		rc = loop_core_claim(loop, index);
	if (rc != 0)
		goto fail;
	*out = loop;
	loop->index = index;
	if (loop->host)
		snprintf(loop->name, sizeof(loop->name), "%.10s/%d", loop->host->pool->name, index);
	else
		snprintf(loop->name, sizeof(loop->name), "%.9s/io%d", weir_stage_name(st), index);
	rc = task_start(&loop->task[0], loop->name, loop_main, loop);
	if (rc != 0)
		goto fail;
	await(&loop->started);
	rc = loop->start_rc;
	if (rc == 0)
		return 0;
	st->refused_by = loop->refused_by;
	task_join(&loop->task[0]);
fail:
	if (loop->host)
		host_release(loop->host);
	*out = NULL;
	loop_free(loop);
	return rc;
}

void weir_loop_stop(struct weir_loop *loop)
{
	atomic_store_explicit(&loop->stop, true, memory_order_release); /* pairs with loop_run */
	weir_loop_wake(loop);
}

void weir_loop_join(struct weir_loop *loop)
{
	await(&loop->over); /* from here on, no thread can exit and be replaced */
	task_join(&loop->task[loop->current]);
	if (loop->host)
		host_release(loop->host);
	loop_free(loop);
}
