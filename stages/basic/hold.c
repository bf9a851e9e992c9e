/* SPDX-License-Identifier: MIT */
/*
 * hold: keeps each event for a time drawn from a distribution, without a waiting thread, then
 * passes it on. In examples, tests and benchmarks it stands in for a server that answers
 * requests later.
 *
 * `capacity` is the number of events that the simulated server works on at once. Further events
 * wait, first in, first out, so the throughput is `capacity` divided by the mean time.
 *
 * The handler passes the events to the thread of a loop, which holds them with tickets
 * (weir/hold.h): an event whose deadline or `timeout` passes is given back to the stage. If the
 * simulated server was working on the event, it completes the work, and the result is dropped. If
 * the event was still waiting, the server skips it. The loop keeps the tickets of the events in
 * work in a heap, ordered by the time at which the work ends, and sets one timer descriptor for the
 * first (weir_timer fires up to 8 ms late, which is too coarse).
 *
 * Only the loop's thread uses the heap, the ring and the timer.
 */
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <weir/weir.h>

#include "dist.h"

enum { HOLD_OUT, HOLD_EXPIRED };

struct hold_conf {
	struct dist dist;
	int64_t capacity;   /* 0 means no limit */
	int64_t timeout_ns; /* 0 means none */
};

struct entry {
	int64_t done_ns;
	uint64_t ticket;
};

struct waiting {
	uint64_t ticket;
	int64_t until_ns;
};

struct hold {
	struct weir_watch timer; /* a timerfd */
	struct weir_loop *loop;
	struct entry *heap; /* the entry with the smallest done_ns first */
	int n, room;
	struct waiting *ring; /* events that wait for capacity */
	unsigned first, last; /* the waiting events are ring[first .. last), modulo ring_room */
	unsigned ring_room;   /* 0 or a power of two */
	uint64_t drawn;       /* number of draws */
	atomic_int_fast64_t
	    held;          /* events that were passed to the loop and are not finished there */
	atomic_bool hurry; /* the graph is stopping, so do not wait any longer */
	sem_t empty;       /* posted when `hurry` is set and nothing is held */
};

/* ---- the heap ---- */

static bool heap_room(struct hold *h)
{
	int room = h->room > 0 ? 2 * h->room : 64;
	struct entry *bigger;

	if (h->n < h->room)
		return true;
	bigger = realloc(h->heap, (size_t)room * sizeof(*bigger));
	if (!bigger)
		return false;
	h->heap = bigger;
	h->room = room;
	return true;
}

static void heap_push(struct hold *h, struct entry e)
{
	int at = h->n++;

	while (at > 0 && h->heap[(at - 1) / 2].done_ns > e.done_ns) {
		h->heap[at] = h->heap[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	h->heap[at] = e;
}

static struct entry heap_pop(struct hold *h)
{
	struct entry first = h->heap[0], e = h->heap[--h->n];
	int at = 0, child;

	while ((child = 2 * at + 1) < h->n) {
		if (child + 1 < h->n && h->heap[child + 1].done_ns < h->heap[child].done_ns)
			child++;
		if (h->heap[child].done_ns >= e.done_ns)
			break;
		h->heap[at] = h->heap[child];
		at = child;
	}
	h->heap[at] = e;
	return first;
}

/* ---- the ring ---- */

static bool ring_room(struct hold *h)
{
	unsigned n = h->last - h->first, room = h->ring_room > 0 ? 2 * h->ring_room : 64;
	struct waiting *bigger;

	if (n < h->ring_room)
		return true;
	bigger = malloc(room * sizeof(*bigger));
	if (!bigger)
		return false;
	for (unsigned i = 0; i < n; i++)
		bigger[i] = h->ring[(h->first + i) & (h->ring_room - 1)];
	free(h->ring);
	h->ring = bigger;
	h->ring_room = room;
	h->first = 0;
	h->last = n;
	return true;
}

static void ring_push(struct hold *h, struct waiting w)
{
	h->ring[h->last++ & (h->ring_room - 1)] = w;
}

static struct waiting ring_pop(struct hold *h)
{
	return h->ring[h->first++ & (h->ring_room - 1)];
}

/* ---- the loop ---- */

static struct hold *hold_of(struct weir_loop *loop)
{
	return weir_loop_data(loop);
}

/* The work on an event is over: emit the event, unless it has expired (`ev` is NULL), and stop
 * counting it as held. */
static void done(struct hold *h, struct weir_event *ev)
{
	if (ev)
		weir_emit(weir_loop_stage(h->loop), HOLD_OUT, &ev);
	atomic_fetch_sub_explicit(&h->held, 1, memory_order_relaxed);
}

static void done_with_ticket(struct hold *h, uint64_t ticket)
{
	done(h, weir_hold_claim(weir_loop_stage(h->loop), ticket));
}

/* Begin to work on `ev` at `at_ns`. If the heap cannot grow, emit the event early rather than lose
 * it. (Without memory for the ticket, weir_hold_until finishes the event.) */
static void begin(struct hold *h, struct weir_event *ev, int64_t at_ns, int64_t until_ns)
{
	struct weir_stage *st = weir_loop_stage(h->loop);
	const struct hold_conf *conf = weir_conf(st);

	if (!heap_room(h)) {
		done(h, ev);
		return;
	}
	uint64_t ticket = weir_hold_until(st, &ev, until_ns);
	heap_push(h, (struct entry){at_ns + dist_draw_ns(&conf->dist, h->drawn++), ticket});
}

static bool is_full(const struct hold *h)
{
	const struct hold_conf *conf = weir_conf(weir_loop_stage(h->loop));

	return conf->capacity > 0 && h->n >= conf->capacity;
}

/* Begin to work on waiting events at `at_ns` while there is capacity. */
static void work(struct hold *h, int64_t at_ns)
{
	while (h->first != h->last && !is_full(h)) {
		struct waiting w = ring_pop(h);
		struct weir_event *ev = weir_hold_claim(weir_loop_stage(h->loop), w.ticket);
		if (ev)
			begin(h, ev, at_ns, w.until_ns);
		else
			done(h, NULL);
	}
}

/* Take an event in: work on it, or let it wait. */
static void receive(struct hold *h, struct weir_event *ev, int64_t now_ns)
{
	struct weir_stage *st = weir_loop_stage(h->loop);
	const struct hold_conf *conf = weir_conf(st);
	int64_t until_ns = conf->timeout_ns > 0 ? now_ns + conf->timeout_ns : WEIR_NO_DEADLINE;

	if (h->first == h->last && !is_full(h))
		begin(h, ev, now_ns, until_ns);
	else if (ring_room(h))
		ring_push(h, (struct waiting){weir_hold_until(st, &ev, until_ns), until_ns});
	else
		done(h, ev);
}

/* End the work on the events that are due at `now_ns`. Work on a waiting event counts as begun when
 * its predecessor was due, even though the timer fires later. */
static void finish_due(struct hold *h, int64_t now_ns)
{
	while (h->n > 0 && h->heap[0].done_ns <= now_ns) {
		struct entry e = heap_pop(h);
		done_with_ticket(h, e.ticket);
		work(h, e.done_ns);
	}
}

static void set_timer(const struct hold *h)
{
	struct itimerspec at = {0};

	if (h->n > 0) {
		at.it_value.tv_sec = h->heap[0].done_ns / 1000000000;
		at.it_value.tv_nsec = h->heap[0].done_ns % 1000000000;
	}
	timerfd_settime(h->timer.fd, TFD_TIMER_ABSTIME, &at, NULL);
}

static void timer_ready(struct weir_loop *loop, struct weir_watch *w, uint32_t events)
{
	struct hold *h = hold_of(loop);
	uint64_t times;

	(void)events;
	if (read(w->fd, &times, sizeof(times)) != (ssize_t)sizeof(times))
		return;
	finish_due(h, weir_loop_now_ns(loop));
	set_timer(h);
}

static void loop_mail(struct weir_loop *loop, struct weir_event *list)
{
	struct hold *h = hold_of(loop);

	while (list) {
		struct weir_event *ev = list;
		list = ev->next;
		receive(h, ev, weir_loop_now_ns(loop));
	}
	work(h, weir_loop_now_ns(loop)); /* the capacity may have grown */
	set_timer(h);
}

/* End all work and all waiting immediately. */
static void clear(struct hold *h)
{
	while (h->n > 0)
		done_with_ticket(h, heap_pop(h).ticket);
	while (h->first != h->last)
		done_with_ticket(h, ring_pop(h).ticket);
}

static void loop_turn_end(struct weir_loop *loop)
{
	struct hold *h = hold_of(loop);

	if (!atomic_load(&h->hurry))
		return;
	clear(h);
	if (atomic_load(&h->held) == 0)
		sem_post(&h->empty);
}

static int loop_start(struct weir_loop *loop)
{
	return weir_loop_add(loop, &hold_of(loop)->timer, EPOLLIN);
}

static const struct weir_loop_ops loop_ops = {
    .start = loop_start, .mail = loop_mail, .turn_end = loop_turn_end};

/* ---- the stage ---- */

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

/* Without a link, the events stay in `ev`, and the framework finishes them as WEIR_EDEADLINE. */
static void hold_expired(struct weir_stage *st, struct weir_event **ev, int n)
{
	if (weir_outlet_linked(st, HOLD_EXPIRED))
		weir_emit_run(st, HOLD_EXPIRED, ev, n);
}

static int hold_init(struct weir_stage *st, struct weir_err *err)
{
	struct hold *h = weir_state(st);

	(void)err;
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
	int rc;

	if (!h->loop)
		return;
	atomic_store(&h->hurry, true);
	weir_loop_wake(h->loop);
	do /* `empty` may have been posted before the last events were passed to the loop */
		rc = sem_clockwait(&h->empty, CLOCK_MONOTONIC, &until);
	while (rc == 0 && atomic_load(&h->held) > 0);
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
	free(h->heap);
	free(h->ring);
}

static int64_t hold_service_ns(const void *conf)
{
	const struct hold_conf *c = conf;

	return (int64_t)dist_mean_ns(&c->dist);
}

static const struct weir_knob hold_knobs[] = {
    DIST_KNOBS(struct hold_conf, "mean time for which an event is held"),
    {.name = "capacity",
	.type = WEIR_KNOB_INT,
	.offset = offsetof(struct hold_conf, capacity),
	.def = "0",
	.min = 0,
	.max = 1e6,
	.flags = WEIR_KNOB_LIVE,
	.help = "events that the simulated server works on at once, while further ones wait there; "
		"0 is no limit"},
    {.name = "timeout",
	.type = WEIR_KNOB_DURATION,
	.offset = offsetof(struct hold_conf, timeout_ns),
	.def = "0",
	.min = 0,
	.max = 3600e9,
	.flags = WEIR_KNOB_LIVE,
	.help =
	    "longest time for which an event is held; 0: until its own deadline, if it has one"},
    {0},
};

static const struct weir_outlet hold_outlets[] = {
    [HOLD_OUT] = {.name = "out",
	.type = WEIR_ANY_EVENT,
	.optional = true,
	.help = "every event after its wait; without a link, the stage completes it"},
    [HOLD_EXPIRED] = {.name = "expired",
	.type = WEIR_ANY_EVENT,
	.optional = true,
	.help = "every event that has expired; without a link, it is shed for `deadline`"},
    {0},
};

const struct weir_stage_ops weir_stage_hold = {
    .abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_HOLDS,
    .name = "hold",
    .summary = "Holds events for times drawn from a distribution, without a waiting thread",
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
    .service_ns = hold_service_ns,
    .expired = hold_expired,
};
