/* SPDX-License-Identifier: MIT */
/*
 * The iterations of a loop whose thread is also a core of a core group (sched/host.h).
 *
 *        wait -> some callbacks -> turn_end -> send outboxes -> batches -> mail -> turn_end ...
 *
 * What callbacks emit to stages of the group goes into the cells of this core. Its batches are run
 * after each group of callbacks, so that answers go out as early as with inline stages. When the core
 * has used up its time or its number of events (host_run), the other callbacks run without batches,
 * and the loop polls its descriptors. When there is nothing to do, it parks in epoll as a thread of
 * the pool: senders of events to the group, and of mail to the loop, write to its eventfd.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "event/local.h"
#include "sched/host.h"
#include "io/loop.h"

/* ---- one iteration ---- */

/* Send the outboxes. The time of inline stages in this call belongs to no batch of a stage. */
static bool send_on(struct weir_loop *loop)
{
	if (!thread_self()->dirty)
		return false;
	thread_touch(
	    clock_now_ns()); /* what is sent waits from now on, not since the callbacks began */
	loop_send_on(loop);
	thread_forget_behind();
	return true;
}

static bool run_batches(struct weir_loop *loop)
{
	bool any;

	if (loop->spent)
		return false;
	loop->sends = true;
	any = host_run(loop->host, &loop->batch_ns, &loop->events, &loop->spent);
	loop->sends = false;
	return any;
}

static void settle(struct weir_loop *loop)
{
	bool again;

	do {
		loop->ops->turn_end(loop);
		again = send_on(loop);
		again |= run_batches(loop);
		again |= loop_mail(loop);
	} while (again);
	/* the cells are empty, so the events that are awaited are in other threads */
	loop->awaits |= loop->expected > 0 && !loop->spent;
}

void loop_core_turn(struct weir_loop *loop)
{
	bool reads = loop->n_ready > 0;

	loop->batch_ns = 0;
	loop->events = 0;
	loop->spent = false;
	thread_touch(loop->now_ns);
	loop->awaits = false;
	if (reads) /* the callbacks come first, and may take long */
		host_pass_on(loop->host);
	while (loop_run_some(loop))
		settle(loop);
	loop_mail(loop);
	timer_wheel_run(&loop->timers, loop->now_ns, loop);
	settle(loop);
	if (reads)
		loop->hands_over = loop->awaits;
}

/* ---- waiting ---- */

static int poll_now(struct weir_loop *loop)
{
	int n = epoll_wait(loop->epoll_fd, loop->ready, LOOP_EVENTS, 0);

	loop->n_ready = n < 0 ? 0 : n;
	return loop->n_ready;
}

/* Wait for at most `for_ns`. Timers of the loop count milliseconds, but lingering batches may be due
 * sooner. */
static int wait_ns(struct weir_loop *loop, int64_t for_ns)
{
#ifdef SYS_epoll_pwait2
	struct timespec ts = {for_ns / NS_PER_S, for_ns % NS_PER_S};
	long n = syscall(SYS_epoll_pwait2, loop->epoll_fd, loop->ready, LOOP_EVENTS, &ts, NULL, 0);

	if (n != -1 || errno != ENOSYS)
		return (int)n;
#endif
	return epoll_wait(
	    loop->epoll_fd, loop->ready, LOOP_EVENTS, (int)((for_ns + NS_PER_MS - 1) / NS_PER_MS));
}

/* Callback of host_park. */
static void block(void *arg, int64_t until_ns)
{
	struct weir_loop *loop = arg;
	int timeout = mailbox_sleep(&loop->mailbox) ? loop_timeout_ms(loop) : 0;
	int64_t left_ns = INT64_MAX;
	int n;

	if (WEIR_UNLIKELY(until_ns != INT64_MAX)) {
		left_ns = until_ns - clock_now_ns();
		if (left_ns <= 0)
			timeout = 0;
	}
	if (WEIR_LIKELY(timeout == 0 || left_ns == INT64_MAX) ||
	    (timeout > 0 && left_ns >= timeout * NS_PER_MS))
		n = epoll_wait(loop->epoll_fd, loop->ready, LOOP_EVENTS, timeout);
	else
		n = wait_ns(loop, left_ns);
	WEIR_ASSERT(n >= 0 || errno == EINTR);
	loop->n_ready = n < 0 ? 0 : n;
	mailbox_awake(&loop->mailbox);
}

/* Poll for a while if other threads have events of the loop. Senders to the group see that. Returns
 * whether there is work. */
static bool spin(struct weir_loop *loop)
{
	if (loop->expected == 0)
		return false;
	host_spins(loop->host, true);
	bool found = loop_try_spin(loop);
	host_spins(loop->host, false);
	return found || host_due(loop->host);
}

static void wait(struct weir_loop *loop)
{
	if (loop->spent)
		poll_now(loop);
	else if (!spin(loop))
		host_park(loop->host, block, loop);
	loop->now_ns = clock_now_ns();
}

/* ---- the thread ---- */

int weir_loop_cores(const struct weir_stage *st)
{
	return host_cores(st->host);
}

int loop_core_claim(struct weir_loop *loop, int index)
{
	int rc = host_claim(loop->stage->host, index, &loop->host);

	if (rc != 0)
		return rc;
	weir_loop_del(loop, &loop->wake);
	close(loop->wake.fd);
	loop->wake.fd = loop->host->wake_fd; /* not closed by loop_free */
	rc = weir_loop_add(loop, &loop->wake, EPOLLIN | EPOLLET);
	if (rc != 0)
		host_release(loop->host);
	return rc;
}

bool loop_core_step(struct weir_loop *loop)
{
	bool served = loop->serves;

	loop->sends = true; /* events may end in host_follow */
	loop->serves = host_follow(loop->host);
	loop->sends = false;
	if (WEIR_UNLIKELY(!loop->serves)) {
		if (served) /* what their ends have sent */
			loop_turn(loop);
		return false;
	}
	wait(loop);
	loop_core_turn(loop);
	return true;
}
