/* SPDX-License-Identifier: MIT */
/* The stage types of the storm that hold parts, with tickets and without: `storm_wait` in any placement,
 * `storm_loop` in its own event loop. */
#include <stdlib.h>
#include <unistd.h>

#include "storm.h"

#define TURNS   6
#define TICKETS 64
#define MS      1000000ll

enum { WAIT_ON };

static const struct weir_outlet wait_outlets[] = {
    [WAIT_ON] = {"on", &part_type, true, "the part"}, {.name = NULL}};

static void pass_on(struct weir_stage *st, struct weir_event **ev)
{
	if (weir_outlet_linked(st, WAIT_ON) && storm_random(2))
		weir_emit(st, WAIT_ON, ev);
	else
		weir_event_finish(ev, WEIR_OK);
}

/* End the part, which the stage has, or put it back. */
static void end_or_back(struct weir_stage *st, struct weir_event **ev)
{
	if (storm_random(4) == 0 && storm_part(*ev)->turns++ < TURNS)
		weir_requeue(st, ev);
	else if (storm_random(8) == 0)
		weir_event_finish(ev, storm_status());
	else
		pass_on(st, ev);
}

static void resumed(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++)
		end_or_back(st, &ev[i]);
}

static int64_t soon(struct weir_stage *st)
{
	return weir_now_ns(st) + (int64_t)storm_random(20) * MS;
}

/* Let the part wait, or hold it. Returns its ticket. */
static uint64_t ticket_for(struct weir_stage *st, struct weir_event **ev)
{
	if (storm_random(2))
		return weir_wait(st, ev, resumed, soon(st));
	return weir_hold_until(st, ev, soon(st));
}

/* Use a ticket, perhaps too late. */
static void use(struct weir_stage *st, uint64_t ticket)
{
	struct weir_event *ev;

	if (storm_random(2)) {
		weir_resume(st, ticket);
		return;
	}
	ev = weir_hold_claim(st, ticket);
	if (!ev)
		return;
	if (storm_random(8) == 0)
		weir_hold_refused(st, ev);
	if (storm_random(8) == 0) {
		weir_hold_served(st, ev);
		weir_event_finish(&ev, storm_status());
		return;
	}
	if (storm_random(4) == 0 && storm_part(ev)->turns++ < TURNS)
		ticket_for(st, &ev); /* expires */
	else
		end_or_back(st, &ev);
}

static void expired(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		storm_part(ev[i]);
		if (storm_random(3) == 0)
			weir_event_finish(&ev[i], storm_status());
		else if (storm_random(2))
			pass_on(st, &ev[i]);
	} /* the others are shed */
}

/* ---- in any thread ---- */

struct waits {
	struct storm_state calls; /* first member */
	atomic_uint at;
	atomic_ullong ticket[TICKETS];
};

static void wait_one(struct weir_stage *st, struct weir_event **ev)
{
	struct waits *w = weir_state(st);
	uint32_t way = storm_random(8);

	if (storm_part(*ev)->turns >= TURNS || way == 0) {
		pass_on(st, ev);
	} else if (way == 1) {
		weir_resume(st, weir_wait(st, ev, resumed, WEIR_NO_DEADLINE));
	} else if (way == 2) {
		end_or_back(st, ev);
	} else if (way > 3 || storm_random(8)) {
		uint64_t ticket = ticket_for(st, ev);
		uint32_t at = atomic_fetch_add(&w->at, 1) % TICKETS;
		use(st, atomic_exchange(&w->ticket[at], ticket));
	} /* else left behind */
}

static void wait_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	uint32_t keys = storm_enter(st, ev, n);

	for (int i = 0; i < n; i++)
		wait_one(st, &ev[i]);
	storm_leave(st, keys);
}

/* The drain runs inline stages in its own thread. */
static void wait_stop(struct weir_stage *st, int64_t until_ns)
{
	(void)st;
	(void)until_ns;
	storm_undying = true;
}

/* ---- in a loop ---- */

struct held {
	struct weir_timer timer; /* first member */
	struct held *next, **at; /* in the list of the stage */
	struct weir_event *ev;   /* NULL if there is a ticket */
	uint64_t ticket;
};

struct holds {
	struct storm_state calls; /* first member */
	struct held *list;        /* used by the loop, and by fini */
	atomic_int n;             /* its length */
};

static void held_free(struct holds *holds, struct held *h)
{
	*h->at = h->next;
	if (h->next)
		h->next->at = h->at;
	free(h);
	atomic_fetch_sub(&holds->n, 1);
}

static void held_over(struct weir_loop *loop, struct weir_timer *t)
{
	struct weir_stage *st = weir_loop_stage(loop);
	struct held *h = (struct held *)t;

	storm_undying = true; /* parents of other stages may go on in the loop */
	if (h->ev)
		end_or_back(st, &h->ev);
	else
		use(st, h->ticket);
	held_free(weir_state(st), h);
}

static void loop_one(struct weir_stage *st, struct weir_event **ev)
{
	struct holds *holds = weir_state(st);
	struct held *h = calloc(1, sizeof(*h));

	storm_part(*ev);
	if (!h || storm_random(4) == 0) {
		free(h);
		pass_on(st, ev);
		return;
	}
	h->next = holds->list;
	h->at = &holds->list;
	if (h->next)
		h->next->at = &h->next;
	holds->list = h;
	atomic_fetch_add(&holds->n, 1);
	h->timer.fire = held_over;
	if (storm_random(2)) {
		h->ev = *ev;
		weir_hold(st, ev);
	} else {
		h->ticket = ticket_for(st, ev);
	}
	weir_timer_set(weir_loop_here(), &h->timer, soon(st));
}

static void loop_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	storm_undying = true;
	for (int i = 0; i < n; i++)
		loop_one(st, &ev[i]);
}

static void loop_expired(struct weir_stage *st, struct weir_event **ev, int n)
{
	storm_undying = true;
	expired(st, ev, n);
}

/* Its timers end the holds. */
static void loop_stop(struct weir_stage *st, int64_t until_ns)
{
	struct holds *holds = weir_state(st);

	storm_undying = true;
	while (atomic_load(&holds->n) > 0 && storm_clock() < until_ns && !weir_hurried(st))
		usleep(1000);
}

static void loop_fini(struct weir_stage *st)
{
	struct holds *holds = weir_state(st);

	while (holds->list)
		held_free(holds, holds->list);
}

const struct weir_stage_ops weir_stage_storm_wait = {.abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_HOLDS,
    .name = "storm_wait",
    .summary = "Holds parts with tickets",
    .accepts = &part_type,
    .outlets = wait_outlets,
    .knobs = storm_knobs,
    .conf_size = sizeof(struct storm_conf),
    .state_size = sizeof(struct waits),
    .handle = wait_handle,
    .stop = wait_stop,
    .expired = expired};

const struct weir_stage_ops weir_stage_storm_loop = {.abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_HOLDS | WEIR_STAGE_LOOP,
    .name = "storm_loop",
    .summary = "Holds parts in an event loop",
    .accepts = &part_type,
    .outlets = wait_outlets,
    .knobs = storm_knobs,
    .conf_size = sizeof(struct storm_conf),
    .state_size = sizeof(struct holds),
    .handle = loop_handle,
    .stop = loop_stop,
    .fini = loop_fini,
    .expired = loop_expired};
