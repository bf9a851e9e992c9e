/* SPDX-License-Identifier: MIT */
/*
 * Stage type `wait`: passes every event on after a fixed time, without a waiting thread. It is the
 * event-driven counterpart of `delay`, for the figures of Welsh 2000 (section 2.2): the thread that
 * receives tasks never blocks, and another thread handles the timer.
 *
 * The handler, in any thread, passes events to the loop's thread. All events that reach the loop in
 * one iteration are due at the same time and form a batch. The delay is the same for all batches,
 * so batches are due in order of arrival, and one timer descriptor, set for the first batch, is
 * sufficient. A weir_timer would fire up to 8 ms late, which is too coarse for 50 ms.
 *
 * Only the loop's thread uses `first`, `last` and the timer.
 */
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <weir/weir.h>

enum { HOLD_OUT };

struct hold_conf {
	int64_t time_ns;
};

struct batch {
	int64_t due_ns;
	struct batch *next;
	struct weir_event *events; /* linked by `next`, in order */
};

struct hold {
	struct weir_watch timer; /* a timerfd */
	struct weir_loop *loop;
	struct batch *first, **last;
	atomic_int_fast64_t held; /* events passed to the loop and not yet emitted */
	atomic_bool hurry;        /* the graph is stopping, so do not wait any longer */
	sem_t empty;              /* posted when `hurry` is set and no event is held */
};

static struct hold *hold_of(struct weir_loop *loop)
{
	return weir_loop_data(loop);
}

static void send_on(struct hold *h, struct weir_event *list)
{
	while (list) {
		struct weir_event *ev = list;
		list = ev->next;
		weir_emit(weir_loop_stage(h->loop), HOLD_OUT, &ev);
		atomic_fetch_sub_explicit(&h->held, 1, memory_order_relaxed);
	}
}

static void set_timer(const struct hold *h)
{
	struct itimerspec at = {0};

	if (h->first) {
		at.it_value.tv_sec = h->first->due_ns / 1000000000;
		at.it_value.tv_nsec = h->first->due_ns % 1000000000;
	}
	timerfd_settime(h->timer.fd, TFD_TIMER_ABSTIME, &at, NULL);
}

/* Emit the batches due at `now_ns`. */
static void expire(struct hold *h, int64_t now_ns)
{
	while (h->first && h->first->due_ns <= now_ns) {
		struct batch *b = h->first;
		h->first = b->next;
		if (!h->first)
			h->last = &h->first;
		send_on(h, b->events);
		free(b);
	}
}

static void timer_ready(struct weir_loop *loop, struct weir_watch *w, uint32_t events)
{
	struct hold *h = hold_of(loop);
	uint64_t times;

	(void)events;
	if (read(w->fd, &times, sizeof(times)) != (ssize_t)sizeof(times))
		return;
	expire(h, weir_loop_now_ns(loop));
	set_timer(h);
}

static void loop_mail(struct weir_loop *loop, struct weir_event *list)
{
	struct hold *h = hold_of(loop);
	const struct hold_conf *conf = weir_conf(weir_loop_stage(loop));
	struct batch *b = malloc(sizeof(*b));
	bool was_empty = !h->first;

	if (!b) { /* out of memory: emit the events early rather than lose them */
		send_on(h, list);
		return;
	}
	*b = (struct batch){.due_ns = weir_loop_now_ns(loop) + conf->time_ns, .events = list};
	*h->last = b;
	h->last = &b->next;
	if (was_empty)
		set_timer(h);
}

static void loop_turn_end(struct weir_loop *loop)
{
	struct hold *h = hold_of(loop);

	if (!atomic_load(&h->hurry))
		return;
	expire(h, INT64_MAX);
	if (atomic_load(&h->held) == 0)
		sem_post(&h->empty);
}

static int loop_start(struct weir_loop *loop)
{
	return weir_loop_add(loop, &hold_of(loop)->timer, EPOLLIN);
}

static const struct weir_loop_ops loop_ops = {
    .start = loop_start, .mail = loop_mail, .turn_end = loop_turn_end};

static void hold_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	struct hold *h = weir_state(st);

	atomic_fetch_add_explicit(&h->held, n, memory_order_relaxed);
	for (int i = 0; i < n; i++) {
		struct weir_event *e = ev[i];
		weir_hold(st, &ev[i]);
		weir_loop_send(h->loop, e);
	}
}

static int hold_init(struct weir_stage *st, struct weir_err *err)
{
	struct hold *h = weir_state(st);

	(void)err;
	h->last = &h->first;
	h->timer.ready = timer_ready;
	h->timer.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (h->timer.fd == -1)
		return WEIR_ESYS;
	sem_init(&h->empty, 0, 0);
	return 0;
}

static int hold_start(struct weir_stage *st, struct weir_err *err)
{
	struct hold *h = weir_state(st);

	(void)err;
	return weir_loop_start(st, 0, &loop_ops, h, &h->loop);
}

/* Emit the held events immediately, since no more events arrive. */
static void hold_stop(struct weir_stage *st, int64_t until_ns)
{
	struct hold *h = weir_state(st);
	struct timespec until = {until_ns / 1000000000, until_ns % 1000000000};

	if (!h->loop)
		return;
	atomic_store(&h->hurry, true);
	weir_loop_wake(h->loop);
	sem_clockwait(&h->empty, CLOCK_MONOTONIC, &until);
}

static void hold_fini(struct weir_stage *st)
{
	struct hold *h = weir_state(st);

	if (h->loop) {
		weir_loop_stop(h->loop);
		weir_loop_join(h->loop);
	}
	close(h->timer.fd);
	sem_destroy(&h->empty);
}

static const struct weir_knob hold_knobs[] = {
    {.name = "time",
	.type = WEIR_KNOB_DURATION,
	.offset = offsetof(struct hold_conf, time_ns),
	.def = "50ms",
	.min = 0,
	.max = 60e9,
	.help = "time for which each event is held"},
    {0},
};

static const struct weir_outlet hold_outlets[] = {
    [HOLD_OUT] = {.name = "out",
	.type = WEIR_ANY_EVENT,
	.optional = true,
	.help = "every event, after that time; if unlinked, the event is completed here"},
    {0},
};

extern const struct weir_stage_ops weir_stage_wait;
const struct weir_stage_ops weir_stage_wait = {
    .abi = WEIR_STAGE_ABI,
    .name = "wait",
    .summary = "Holds each event for a fixed time without occupying a thread",
    .accepts = WEIR_ANY_EVENT,
    .outlets = hold_outlets,
    .knobs = hold_knobs,
    .conf_size = sizeof(struct hold_conf),
    .state_size = sizeof(struct hold),
    .init = hold_init,
    .start = hold_start,
    .handle = hold_handle,
    .stop = hold_stop,
    .fini = hold_fini,
};
