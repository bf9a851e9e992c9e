/* SPDX-License-Identifier: MIT */
/*
 * Event loops; see weir/io.h.
 *
 * One thread per loop, a thread of the graph. It blocks in epoll_wait after it has announced so to
 * its mailbox; whoever finds the announcement writes the eventfd, once per run of mail. The eventfd
 * is watched edge-triggered and never read: a write is an edge whatever the counter says.
 *
 * Spinning. A parked thread costs its waker 6.6 us and answers 21 us later (limits.md), so a loop
 * that has answers outstanding in other threads (weir_loop_expect) looks at its mailbox for a while
 * before it parks. The while adapts: it grows when mail came within it and halves when none did,
 * and is 0 on one core, where spinning only keeps the work from being done.
 *
 * Who may touch what: everything in struct weir_loop is the loop thread's, except the mailbox,
 * `stop` (any thread), and `started` (handed over by the semaphore).
 */
#include <weir/io.h>

#include <errno.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/task.h"
#include "flow/mailbox.h"
#include "flow/stage.h"
#include "flow/thread.h"
#include "io/timer.h"

/** Ready descriptors taken per turn: enough to share a turn's costs, few enough to stay in L1. */
#define LOOP_EVENTS 256

/* A turn settles after runs of callbacks, so that clients work on the first answers while the last
 * requests are read; otherwise few clients and the loop wait for each other in turns. Measured beside
 * nginx with wrk on the other core, hello inline, CPU a request at 64 and at 8 connections: one run a
 * turn 0.96 and 0.99 of nginx's, two 0.93 and 0.86, four 0.95 and 0.89, eight 0.99 and 0.83 (5 rounds).
 */
#define LOOP_RUNS 4
/* Where events go on in other threads each run costs a hand-over and may cost a wake-up: hello over one
 * hop at 8 connections takes 1.11 of nginx's CPU in one run a turn, 1.64 in eight. */
#define LOOP_RUN_HANDED 32

/* Twice what waking a parked thread takes (limits.md: 21 us): the classic bound for spin-then-park.
 */
#define LOOP_SPIN_MAX_NS (40 * NS_PER_US)
/* One look at the clock per so many looks at the mailbox: a guess, about 1 us. */
#define LOOP_SPIN_CHECKS 16
/* A loop that gave spinning up tries again every so many sleeps: a guess. */
#define LOOP_SPIN_RETRY 64

struct weir_loop {
	struct mailbox mailbox; /* first: wake() finds the loop by it */
	struct weir_stage *stage;
	const struct weir_loop_ops *ops;
	void *data;
	int epoll_fd;
	struct weir_watch wake;
	int64_t now_ns;
	struct weir_event *mail, **mail_tail; /* sent by this thread, for this turn */
	int n_ready, next_ready;
	struct epoll_event ready[LOOP_EVENTS];
	struct timer_wheel timers;
	int64_t expected; /* answers outstanding in other threads */
	bool awaits;      /* since the turn began, answers of other threads were awaited */
	bool hands_over;  /* and so it was in the last turn that read anything */
	int64_t spin_ns;  /* how long to spin before the next sleep */
	unsigned spins_skipped;
	atomic_bool stop;
	struct task task;
	sem_t started;
	int start_rc;
};

static _Thread_local struct weir_loop *loop_current;

/* ---- life ---- */

static void loop_wake(struct mailbox *mb)
{
	weir_loop_wake((struct weir_loop *)mb);
}

void weir_loop_wake(struct weir_loop *loop)
{
	uint64_t one = 1;
	ssize_t n = write(loop->wake.fd, &one, sizeof(one));

	(void)n; /* EAGAIN: the counter is full, so the loop is awake 2^64 times over */
}

static void wake_ready(struct weir_loop *loop, struct weir_watch *w, uint32_t events)
{
	(void)loop;
	(void)w;
	(void)events;
}

static int open_fds(struct weir_loop *loop)
{
	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (loop->epoll_fd == -1)
		return WEIR_ESYS;
	loop->wake.ready = wake_ready;
	loop->wake.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (loop->wake.fd == -1)
		return WEIR_ESYS;
	return weir_loop_add(loop, &loop->wake, EPOLLIN | EPOLLET);
}

static void loop_free(struct weir_loop *loop)
{
	if (loop->wake.fd != -1)
		close(loop->wake.fd);
	if (loop->epoll_fd != -1)
		close(loop->epoll_fd);
	mailbox_fini(&loop->mailbox);
	sem_destroy(&loop->started);
	free(loop);
}

static int loop_new(
    struct weir_stage *st, const struct weir_loop_ops *ops, void *data, struct weir_loop **out)
{
	struct weir_loop *loop = aligned_alloc(WEIR_CACHE_LINE,
	    (sizeof(*loop) + WEIR_CACHE_LINE - 1) / WEIR_CACHE_LINE * WEIR_CACHE_LINE);
	int rc = loop ? 0 : WEIR_ENOMEM;

	if (rc == 0) {
		*loop = (struct weir_loop){
		    .stage = st, .ops = ops, .data = data, .epoll_fd = -1, .wake.fd = -1};
		rc = mailbox_init(&loop->mailbox, loop_wake);
	}
	if (rc != 0) {
		free(loop);
		return rc;
	}
	loop->mail_tail = &loop->mail;
	loop->spin_ns = task_cores() > 1 ? LOOP_SPIN_MAX_NS : 0;
	loop->now_ns = clock_now_ns();
	timer_wheel_init(&loop->timers, loop->now_ns);
	sem_init(&loop->started, 0, 0);
	rc = open_fds(loop);
	if (rc != 0) {
		loop_free(loop);
		return rc;
	}
	*out = loop;
	return 0;
}

/* ---- one turn ---- */

/* Deliver what came from other threads and what this thread sent to itself. True when there was
 * any. */
static bool run_mail(struct weir_loop *loop)
{
	bool some = false;
	struct weir_event *list = mailbox_take(&loop->mailbox);

	if (list) {
		loop->ops->mail(loop, list);
		some = true;
	}
	list = loop->mail;
	if (list) {
		loop->mail = NULL;
		loop->mail_tail = &loop->mail;
		loop->ops->mail(loop, list);
		some = true;
	}
	return some;
}

/* Let what the callbacks made leave, and what comes back of it be written. */
static void settle(struct weir_loop *loop)
{
	bool again;

	do {
		loop->ops->turn_end(loop);
		again = thread_flush();
		loop->awaits |= loop->expected > 0;
		again |= run_mail(loop);
	} while (again);
}

static int run_length(const struct weir_loop *loop)
{
	return loop->hands_over ? LOOP_RUN_HANDED : (loop->n_ready + LOOP_RUNS - 1) / LOOP_RUNS;
}

static void run_ready(struct weir_loop *loop)
{
	int left = run_length(loop);

	for (loop->next_ready = 0; loop->next_ready < loop->n_ready;) {
		struct epoll_event *e = &loop->ready[loop->next_ready++];
		struct weir_watch *w = e->data.ptr;
		if (w)
			w->ready(loop, w, e->events);
		if (--left == 0) {
			settle(loop);
			left = run_length(loop);
		}
	}
	loop->n_ready = 0;
}

static void run_turn(struct weir_loop *loop)
{
	bool reads = loop->n_ready > 0;

	thread_touch(loop->now_ns);
	loop->awaits = loop->expected > 0;
	run_ready(loop);
	run_mail(loop);
	timer_wheel_run(&loop->timers, loop->now_ns, loop);
	settle(loop);
	if (reads) /* a turn of mail alone says nothing about where requests go */
		loop->hands_over = loop->awaits;
}

/* ---- waiting ---- */

static int timeout_ms(const struct weir_loop *loop)
{
	int64_t next = timer_wheel_next_ns(&loop->timers);

	if (next == INT64_MAX)
		return -1;
	if (next <= loop->now_ns)
		return 0;
	int64_t ms = (next - loop->now_ns + NS_PER_MS - 1) / NS_PER_MS;
	return ms > 60000 ? 60000 : (int)ms; /* a minute: far below what an int holds */
}

static inline void cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#endif
}

static bool has_mail(const struct weir_loop *loop)
{
	return atomic_load_explicit(&loop->mailbox.full, memory_order_relaxed);
}

/* Look for mail and ready descriptors for at most spin_ns. True when there is something to do. */
static bool spin(struct weir_loop *loop)
{
	int64_t until = clock_now_ns() + loop->spin_ns;
	int n;

	do {
		for (int i = 0; i < LOOP_SPIN_CHECKS && !has_mail(loop); i++)
			cpu_relax();
		n = epoll_wait(loop->epoll_fd, loop->ready, LOOP_EVENTS, 0);
		if (n > 0 || has_mail(loop))
			break;
	} while (clock_now_ns() < until);
	loop->n_ready = n < 0 ? 0 : n;
	return n > 0 || has_mail(loop);
}

/* Spin if it is likely to pay, and learn. True when there is something to do. */
static bool try_spin(struct weir_loop *loop)
{
	if (loop->expected == 0 || task_cores() == 1)
		return false;
	if (loop->spin_ns == 0) {
		if (++loop->spins_skipped < LOOP_SPIN_RETRY)
			return false;
		loop->spins_skipped = 0;
		loop->spin_ns = LOOP_SPIN_MAX_NS;
	}
	if (spin(loop)) {
		loop->spin_ns = LOOP_SPIN_MAX_NS;
		return true;
	}
	/* Below the price of one look at the clock it is no spin any more. */
	loop->spin_ns = loop->spin_ns > NS_PER_US ? loop->spin_ns / 2 : 0;
	return false;
}

static void block(struct weir_loop *loop)
{
	int timeout = mailbox_sleep(&loop->mailbox) ? timeout_ms(loop) : 0;
	int n = epoll_wait(loop->epoll_fd, loop->ready, LOOP_EVENTS, timeout);

	WEIR_ASSERT(n >= 0 || errno == EINTR);
	loop->n_ready = n < 0 ? 0 : n;
	mailbox_awake(&loop->mailbox);
}

static void wait_turn(struct weir_loop *loop)
{
	if (has_mail(loop) || !try_spin(loop))
		block(loop);
	loop->now_ns = clock_now_ns();
}

/* ---- the thread ---- */

static int thread_start(struct weir_loop *loop)
{
	char name[80];
	int rc;

	loop_current = loop;
	snprintf(name, sizeof(name), "%s", loop->task.name);
	rc = thread_enter(stage_graph(loop->stage), name, loop->stage);
	if (rc != 0)
		return rc;
	thread_touch(loop->now_ns);
	rc = loop->ops->start ? loop->ops->start(loop) : 0;
	thread_flush();
	if (rc != 0)
		thread_leave();
	return rc;
}

static void *loop_main(void *arg)
{
	struct weir_loop *loop = arg;
	int rc = thread_start(loop);

	loop->start_rc = rc;
	sem_post(&loop->started);
	if (rc != 0)
		return NULL;
	while (!atomic_load_explicit(&loop->stop, memory_order_acquire)) { /* weir_loop_stop */
		wait_turn(loop);
		run_turn(loop);
	}
	run_turn(loop); /* mail that came before the stop */
	if (loop->ops->stop)
		loop->ops->stop(loop);
	while (thread_flush())
		continue;
	thread_leave();
	return NULL;
}

int weir_loop_start(struct weir_stage *st, int index, const struct weir_loop_ops *ops, void *data,
    struct weir_loop **out)
{
	struct weir_loop *loop;
	char name[96];
	int rc = loop_new(st, ops, data, &loop);

	if (rc != 0)
		return rc;
	*out = loop;
	snprintf(name, sizeof(name), "%s/io%d", weir_stage_name(st), index);
	rc = task_start(&loop->task, name, loop_main, loop);
	if (rc != 0)
		goto fail;
	while (sem_wait(&loop->started) == -1)
		WEIR_ASSERT(errno == EINTR);
	rc = loop->start_rc;
	if (rc == 0)
		return 0;
	task_join(&loop->task);
fail:
	*out = NULL;
	loop_free(loop);
	return rc;
}

void weir_loop_stop(struct weir_loop *loop)
{
	atomic_store_explicit(&loop->stop, true, memory_order_release); /* partner: loop_main */
	weir_loop_wake(loop);
}

void weir_loop_join(struct weir_loop *loop)
{
	task_join(&loop->task);
	loop_free(loop);
}

/* ---- for callbacks ---- */

void *weir_loop_data(const struct weir_loop *loop)
{
	return loop->data;
}

struct weir_stage *weir_loop_stage(const struct weir_loop *loop)
{
	return loop->stage;
}

int64_t weir_loop_now_ns(const struct weir_loop *loop)
{
	return loop->now_ns;
}

void weir_loop_expect(struct weir_loop *loop, int64_t answers)
{
	loop->expected = answers;
}

bool weir_loop_is_mine(const struct weir_loop *loop)
{
	return loop_current == loop;
}

static int control(struct weir_loop *loop, int op, struct weir_watch *w, uint32_t events)
{
	struct epoll_event e = {.events = events, .data.ptr = w};

	return epoll_ctl(loop->epoll_fd, op, w->fd, &e) == -1 ? WEIR_ESYS : 0;
}

int weir_loop_add(struct weir_loop *loop, struct weir_watch *w, uint32_t events)
{
	return control(loop, EPOLL_CTL_ADD, w, events);
}

int weir_loop_mod(struct weir_loop *loop, struct weir_watch *w, uint32_t events)
{
	return control(loop, EPOLL_CTL_MOD, w, events);
}

void weir_loop_del(struct weir_loop *loop, struct weir_watch *w)
{
	control(loop, EPOLL_CTL_DEL, w, 0); /* fails only when it was not watched */
	for (int i = loop->next_ready; i < loop->n_ready; i++)
		if (loop->ready[i].data.ptr == w)
			loop->ready[i].data.ptr = NULL;
}

void weir_timer_set(struct weir_loop *loop, struct weir_timer *t, int64_t at_ns)
{
	timer_wheel_set(&loop->timers, t, at_ns);
}

void weir_timer_cancel(struct weir_loop *loop, struct weir_timer *t)
{
	timer_wheel_cancel(&loop->timers, t);
}

void weir_loop_send(struct weir_loop *loop, struct weir_event *ev)
{
	if (loop_current != loop) {
		mailbox_send(&loop->mailbox, ev);
		return;
	}
	ev->next = NULL;
	*loop->mail_tail = ev;
	loop->mail_tail = &ev->next;
}
