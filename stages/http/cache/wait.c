/* SPDX-License-Identifier: MIT */
/*
 * Requests that wait for the answer to an equal one. They are held on its flight. A thread of the stage looks at
 * them every LOOK_NS while there are any, and lets those go whose deadline or `wait` is over, or whose client is no
 * longer there. Tickets (weir_hold_until) would do this, too, but a stage with tickets has a width, and a
 * queue between its callers and its handler, which hits should not pay for.
 */
#include <weir/clock.h>

#include "http/cache/http_cache.h"
#include "http/conn/await.h"

/* A choice: late by a twentieth of a second at most, at the cost of 20 looks in a second. */
#define LOOK_NS 50000000LL

static void look(struct weir_loop *loop, struct weir_timer *t)
{
	struct weir_stage *st = weir_loop_stage(loop);
	struct hcache_state *state = weir_loop_data(loop);
	int64_t now_ns = weir_loop_now_ns(loop);
	struct weir_event *list = hcache_flights_leave(&state->flights, now_ns);

	while (list) {
		struct weir_event *ev = list;
		list = ev->next;
		if (http_await_gone(weir_http_request(ev)))
			weir_event_finish(&ev, WEIR_ECANCELLED);
		else
			hcache_expired(st, &ev, now_ns);
	}
	if (atomic_load(&state->flights.n_waiting) > 0)
		weir_timer_set(loop, t, now_ns + LOOK_NS);
}

static void mail(struct weir_loop *loop, struct weir_event *list)
{
	(void)loop;
	WEIR_ASSERT(list == NULL); /* nobody sends events */
}

static void turn_end(struct weir_loop *loop)
{
	struct hcache_state *state = weir_loop_data(loop);

	if (state->timer.fire && atomic_load(&state->flights.n_waiting) > 0 && !state->timer.prev)
		weir_timer_set(loop, &state->timer, weir_loop_now_ns(loop) + LOOK_NS);
}

static const struct weir_loop_ops loop_ops = {.mail = mail, .turn_end = turn_end};

int hcache_wait_start(struct weir_stage *st)
{
	struct hcache_state *state = weir_state(st);

	state->timer.fire = look;
	return weir_loop_start(st, 0, &loop_ops, state, &state->loop);
}

void hcache_wait_begins(struct hcache_state *state)
{
	weir_loop_wake(state->loop);
}

void hcache_wait_stop(struct weir_stage *st, int64_t until_ns)
{
	struct hcache_state *state = weir_state(st);
	struct weir_event *list = hcache_flights_close(&state->flights, st, until_ns);

	while (list) {
		struct weir_event *ev = list;
		list = ev->next;
		weir_event_finish(&ev, WEIR_ECLOSED);
	}
}

void hcache_wait_fini(struct hcache_state *state)
{
	if (!state->loop)
		return;
	weir_loop_stop(state->loop);
	weir_loop_join(state->loop);
}
