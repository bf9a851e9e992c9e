/* SPDX-License-Identifier: MIT */
/*
 * Runs event loops; see weir/io.h.
 *
 * Each loop has one thread, a thread of the graph. Before it blocks in epoll_wait, it marks its
 * mailbox as sleeping. A sender that finds the mark clears it and writes to the eventfd, so a batch
 * of mail costs at most one write. The eventfd is watched edge-triggered and never read, since each
 * write is an edge whatever the value of its counter.
 *
 * Spinning: waking a parked thread costs the waker 6.6 us, and the thread runs only 21 us later
 * (measured). So a loop that has events in other threads (weir_loop_expect) polls its mailbox and
 * its descriptors for a while before it parks. If a spin finds work, the next spin may take
 * LOOP_SPIN_MAX_NS, otherwise half as long as this one. On a single core a loop does not spin,
 * since that would only delay the work.
 */
#include <weir/io.h>

#include <errno.h>
#include <semaphore.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/task.h"
#include "sched/host.h"
#include "stage/thread.h"
#include "io/loop.h"

/*
 * Number of runs into which the callbacks of an iteration are divided. The loop sends responses
 * after each run, so that clients can process the first responses while the loop reads the last
 * requests. Otherwise the loop and its clients, if they are few, would take turns waiting for each
 * other. Measured with wrk on the other core and an inline hello stage (5 rounds): the CPU time per
 * request relative to nginx, at 64 and at 8 connections, was 0.96 and 0.99 with one run, 0.93 and
 * 0.86 with two, 0.95 and 0.89 with four, and 0.99 and 0.83 with eight.
 */
#define LOOP_RUNS 4
/* Number of callbacks per run if handler threads process the events. Each run then costs a transfer
 * to them and possibly a wake-up: a hello server with one hop takes 1.11 times nginx's CPU time at
 * 8 connections with one run per iteration, and 1.64 times with eight. */
#define LOOP_RUN_HANDED 32

/* Length of a tick of the timers: the resolution of CLOCK_MONOTONIC_COARSE, which is fine enough
 * for time-outs. */
#define LOOP_TICK_NS (4 * NS_PER_MS)

/* Longest spin: twice the time to wake a parked thread (measured: 21 us), the classic bound for
 * spin-then-park. */
#define LOOP_SPIN_MAX_NS (40 * NS_PER_US)
/* Iterations with at least LOOP_LONG callbacks may delay what comes next. 16 is a guess: that takes about
 * 0.1 ms. If epoll_wait takes longer than LOOP_SLEPT_NS, the thread has slept: nothing was ready before. To
 * return 256 ready descriptors takes about 15 us. */
#define LOOP_LONG     16
#define LOOP_SLEPT_NS (30 * NS_PER_US)

/* Number of mailbox checks per clock reading. 16, which take about 1 us, is a guess. */
#define LOOP_SPIN_CHECKS 16
/* Number of sleeps after which a loop that gave up spinning tries again. 64 is a guess. */
#define LOOP_SPIN_RETRY 64

_Thread_local struct weir_loop *loop_current;

/* ---- lifetime ---- */

static void loop_wake(struct mailbox *mb)
{
	weir_loop_wake((struct weir_loop *)mb);
}

void weir_loop_wake(struct weir_loop *loop)
{
	uint64_t one = 1;
	ssize_t n = TEMP_FAILURE_RETRY(write(loop->wake.fd, &one, sizeof(one)));

	(void)n; /* fails only if the counter is full; a wake-up is then pending */
}

static void link_wake(struct thread_link *link)
{
	weir_loop_wake((struct weir_loop *)((char *)link - offsetof(struct weir_loop, link)));
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

void loop_free(struct weir_loop *loop)
{
	mailbox_fini(&loop->mailbox); /* before `wake` is closed: a sender may still write to it */
	if (loop->wake.fd != -1 && !loop->host)
		close(loop->wake.fd);
	if (loop->epoll_fd != -1)
		close(loop->epoll_fd);
	sem_destroy(&loop->started);
	sem_destroy(&loop->over);
	free(loop);
}

int loop_new(
    struct weir_stage *st, const struct weir_loop_ops *ops, void *data, struct weir_loop **out)
{
	struct weir_loop *loop = aligned_alloc(WEIR_CACHE_LINE,
	    (sizeof(*loop) + WEIR_CACHE_LINE - 1) / WEIR_CACHE_LINE * WEIR_CACHE_LINE);

	if (!loop)
		return WEIR_ENOMEM;
	*loop = (struct weir_loop){
	    .stage = st, .ops = ops, .data = data, .epoll_fd = -1, .wake.fd = -1};
	mailbox_init(&loop->mailbox, loop_wake);
	loop->mail_tail = &loop->mail;
	loop->spin_ns = task_cores() > 1 ? LOOP_SPIN_MAX_NS : 0;
	loop->now_ns = clock_now_ns();
	timer_wheel_init(&loop->timers, LOOP_TICK_NS, loop->now_ns);
	sem_init(&loop->started, 0, 0);
	sem_init(&loop->over, 0, 0);
	loop->link.wake = link_wake;
	int rc = open_fds(loop);
	if (rc != 0) {
		loop_free(loop);
		return rc;
	}
	*out = loop;
	return 0;
}

/* ---- one iteration ---- */

/* Move the events whose type has `arrive` from `*list` to the list that is returned, in order. */
static struct weir_event *sort_out(struct weir_event **list)
{
	struct weir_event *out = NULL, **tail = &out;

	while (*list) {
		struct weir_event *ev = *list;
		if (WEIR_LIKELY(!ev->type || !ev->type->arrive)) {
			list = &ev->next;
			continue;
		}
		*list = ev->next;
		ev->next = NULL;
		*tail = ev;
		tail = &ev->next;
	}
	return out;
}

static void deliver(struct weir_loop *loop, struct weir_event *list)
{
	struct weir_event *arrived = sort_out(&list), *ev;

	if (list)
		loop->ops->mail(loop, list);
	while ((ev = arrived)) {
		arrived = ev->next;
		ev->type->arrive(loop, ev);
	}
}

bool loop_mail(struct weir_loop *loop)
{
	bool some = false;
	struct weir_event *list = mailbox_take(&loop->mailbox);

	if (list) {
		deliver(loop, list);
		some = true;
	}
	list = loop->mail;
	if (list) {
		loop->mail = NULL;
		loop->mail_tail = &loop->mail;
		deliver(loop, list);
		some = true;
	}
	return some;
}

bool loop_send_on(struct weir_loop *loop)
{
	loop->sends = true;
	bool any = thread_flush();
	loop->sends = false;
	return any;
}

/* Pass on the events that the callbacks emitted, and let turn_end write the responses that are
 * complete. Repeat while this produces events or mail. */
static void settle(struct weir_loop *loop)
{
	bool again;

	do {
		loop->ops->turn_end(loop);
		again = loop_send_on(loop);
		loop->awaits |= loop->expected > 0;
		again |= loop_mail(loop);
	} while (again);
}

static int run_length(const struct weir_loop *loop)
{
	return loop->hands_over ? LOOP_RUN_HANDED : (loop->n_ready + LOOP_RUNS - 1) / LOOP_RUNS;
}

static void call_ready(struct weir_loop *loop)
{
	struct epoll_event *e = &loop->ready[loop->next_ready++];
	struct weir_watch *w = e->data.ptr;

	if (w)
		w->ready(loop, w, e->events);
}

bool loop_run_some(struct weir_loop *loop)
{
	for (int left = run_length(loop); left > 0 && loop->next_ready < loop->n_ready; left--)
		call_ready(loop);
	if (loop->next_ready < loop->n_ready)
		return true;
	loop->n_ready = loop->next_ready = 0;
	return false;
}

static void run_ready(struct weir_loop *loop)
{
	int left = run_length(loop);

	while (loop->next_ready < loop->n_ready) {
		call_ready(loop);
		if (--left == 0) {
			settle(loop);
			left = run_length(loop);
		}
	}
	loop->n_ready = loop->next_ready = 0;
}

void loop_turn(struct weir_loop *loop)
{
	bool reads = loop->n_ready > 0;

	thread_touch(loop->now_ns);
	thread_self()->happened_ns = loop->last_ns;
	loop->n_called = loop->n_ready;
	loop->awaits = loop->expected > 0;
	run_ready(loop);
	loop_mail(loop);
	timer_wheel_run(&loop->timers, loop->now_ns, loop);
	settle(loop);
	/* An iteration without ready descriptors does not show whether new requests are passed to
	 * other threads. */
	if (reads)
		loop->hands_over = loop->awaits;
}

/* ---- waiting ---- */

int loop_timeout_ms(const struct weir_loop *loop)
{
	int64_t next = timer_wheel_next_ns(&loop->timers);

	if (next == INT64_MAX)
		return -1;
	if (next <= loop->now_ns)
		return 0;
	int64_t ms = (next - loop->now_ns + NS_PER_MS - 1) / NS_PER_MS;
	return ms > 60000 ? 60000 : (int)ms; /* a minute at most, so that it fits into an int */
}

static bool has_mail(const struct weir_loop *loop)
{
	return atomic_load_explicit(&loop->mailbox.full, memory_order_relaxed);
}

/* Whether there is work that no descriptor shows: mail, or events for a core. */
static bool has_work(const struct weir_loop *loop)
{
	return has_mail(loop) || (loop->serves && host_due(loop->host));
}

/* Poll for mail and ready descriptors for at most spin_ns. Returns whether any were found. */
static bool spin(struct weir_loop *loop)
{
	int64_t until = clock_now_ns() + loop->spin_ns;
	int n;

	do {
		for (int i = 0; i < LOOP_SPIN_CHECKS && !has_work(loop); i++)
			task_pause();
		n = epoll_wait(loop->epoll_fd, loop->ready, LOOP_EVENTS, 0);
		if (n > 0 || has_work(loop))
			break;
	} while (clock_now_ns() < until);
	loop->n_ready = n < 0 ? 0 : n;
	return n > 0 || has_work(loop);
}

bool loop_try_spin(struct weir_loop *loop)
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
	/* A spin below 1 us is not worth its clock readings. */
	loop->spin_ns = loop->spin_ns > NS_PER_US ? loop->spin_ns / 2 : 0;
	return false;
}

static void block(struct weir_loop *loop)
{
	int timeout = mailbox_sleep(&loop->mailbox) ? loop_timeout_ms(loop) : 0;
	int n = epoll_wait(loop->epoll_fd, loop->ready, LOOP_EVENTS, timeout);

	WEIR_ASSERT(n >= 0 || errno == EINTR);
	loop->n_ready = n < 0 ? 0 : n;
	mailbox_awake(&loop->mailbox);
}

void loop_wait(struct weir_loop *loop)
{
	bool was_long = loop->n_called >= LOOP_LONG;
	int64_t from_ns = was_long ? clock_now_ns() : 0, last_ns = loop->now_ns;

	if (has_mail(loop) || !loop_try_spin(loop))
		block(loop);
	loop->now_ns = clock_now_ns();
	loop->last_ns = was_long && loop->now_ns - from_ns < LOOP_SLEPT_NS ? last_ns : loop->now_ns;
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

bool weir_loop_held(const struct weir_loop *loop)
{
	return atomic_load_explicit(&loop->link.held, memory_order_relaxed);
}

int weir_loops_held(const struct weir_stage *st)
{
	return atomic_load_explicit(&st->loops_held, memory_order_relaxed);
}

struct weir_loop *weir_loop_here(void)
{
	return loop_current;
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
	control(loop, EPOLL_CTL_DEL, w, 0); /* fails only if `w` was not watched */
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
