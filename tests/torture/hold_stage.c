/* SPDX-License-Identifier: MIT */
#include "torture/hold_stage.h"

#include <inttypes.h>
#include <pthread.h>

#include <weir/io.h>

#include "fixture/graph/graph.h"

#include "base/clock.h"
#include "graph/graph.h"

#define RING 8192 /* tickets; further ones are lost, and their events expire */

struct keeper {
	pthread_mutex_t lock;
	struct weir_event *first; /* held without tickets */
	bool closes;              /* the graph ends: nothing is held without a ticket any more */
	int n;                    /* held, at least */
	uint64_t ring[RING];
	unsigned first_ticket, last_ticket;
	uint64_t calls; /* of a stage with a loop; needs no lock */
};

atomic_int hold_faults;
atomic_uint_fast64_t hold_deaths, hold_claims, hold_void_claims, hold_expiries;

void hold_fault(const char *what, int64_t is)
{
	if (atomic_fetch_add(&hold_faults, 1) < 5)
		fprintf(stderr, "torture_hold: %s: %" PRId64 "\n", what, is);
}

unsigned hold_draw(unsigned *seed, unsigned n)
{
	*seed = *seed * 1664525u + 1013904223u;
	return (*seed >> 8) % n;
}

void hold_own(struct weir_event *ev)
{
	((struct probe *)ev)->seq++;
}

static int keeper_init(struct weir_stage *st, struct weir_err *err)
{
	struct keeper *k = weir_state(st);

	(void)err;
	pthread_mutex_init(&k->lock, NULL);
	return 0;
}

static void keeper_fini(struct weir_stage *st)
{
	pthread_mutex_destroy(&((struct keeper *)weir_state(st))->lock);
}

static void count_held(struct keeper *k, int n)
{
	k->n += n;
	if (k->n > WIDTH && !k->closes)
		hold_fault("more held than the width", k->n);
}

/* Hold without a ticket, unless the graph ends. */
static void keep(struct weir_stage *st, struct weir_event **slot)
{
	struct keeper *k = weir_state(st);
	struct weir_event *e = *slot;

	pthread_mutex_lock(&k->lock);
	if (k->closes) {
		weir_event_finish(slot, WEIR_ECLOSED);
	} else {
		weir_hold(st, slot);
		e->next = k->first;
		k->first = e;
		count_held(k, 1);
	}
	pthread_mutex_unlock(&k->lock);
}

/* Hold with a ticket: until a time in the past, up to 8 ms, an hour, or for ever. */
static void keep_ticket(struct weir_stage *st, struct weir_event **slot, unsigned *seed)
{
	struct keeper *k = weir_state(st);
	int64_t until_ns = hold_draw(seed, 16) == 0
			       ? -1
			       : clock_now_ns() + (int64_t)hold_draw(seed, 8000) * NS_PER_US;

	pthread_mutex_lock(&k->lock);
	bool kept = k->last_ticket - k->first_ticket < RING / 2;
	pthread_mutex_unlock(&k->lock);
	if (kept && hold_draw(seed, 2))
		until_ns = hold_draw(seed, 2) ? WEIR_NO_DEADLINE : clock_now_ns() + 3600 * NS_PER_S;
	uint64_t ticket = weir_hold_until(st, slot, until_ns);
	if (ticket == 0 || *slot)
		hold_fault("no ticket", (int64_t)ticket);
	pthread_mutex_lock(&k->lock);
	count_held(k, 1);
	if (kept)
		k->ring[k->last_ticket++ % RING] = ticket;
	pthread_mutex_unlock(&k->lock);
}

static bool has_loop(const struct weir_stage *st)
{
	return st->ops->flags & WEIR_STAGE_LOOP;
}

/* A stage with a loop is called only in its thread. */
static void check_thread(struct weir_stage *st)
{
	struct keeper *k = weir_state(st);

	if (!has_loop(st))
		return;
	k->calls++;
	if (!weir_loop_here() || weir_loop_stage(weir_loop_here()) != st)
		hold_fault("called outside its loop", 0);
}

/* The threads of the test, which run inline stages, must live, and so must those of loops. */
static void die_sometimes(struct weir_stage *st, unsigned *seed)
{
	if (has_loop(st) || !thread_self()->pool || hold_draw(seed, 8000) != 0)
		return;
	atomic_fetch_add(&hold_deaths, 1);
	pthread_exit(NULL);
}

static void keeper_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	static _Thread_local unsigned seed = 1;

	check_thread(st);
	for (int i = 0; i < n; i++) {
		hold_own(ev[i]);
		switch (hold_draw(&seed, 40)) {
		case 0:
			weir_event_finish(&ev[i], WEIR_OK);
			break;
		case 1:
		case 2:
			weir_emit(st, 0, &ev[i]);
			break;
		case 3:
			weir_requeue(st, &ev[i]);
			break;
		case 4: /* left behind */
			break;
		default:
			if (hold_draw(&seed, 3) == 0)
				keep(st, &ev[i]);
			else
				keep_ticket(st, &ev[i], &seed);
		}
	}
	die_sometimes(st, &seed);
}

static void uncount(struct weir_stage *st, int n)
{
	struct keeper *k = weir_state(st);

	pthread_mutex_lock(&k->lock);
	k->n -= n;
	pthread_mutex_unlock(&k->lock);
}

void hold_end_one(struct weir_stage *st, struct weir_event **ev, unsigned *seed)
{
	switch (hold_draw(seed, 10)) {
	case 9:
		weir_hold_served(st, *ev);
		weir_event_finish(ev, WEIR_OK);
		break;
	case 0:
	case 1:
		weir_emit(st, 0, ev);
		break;
	case 2:
		weir_requeue(st, ev);
		break;
	case 3:
		weir_hold_refused(st, *ev);
		weir_requeue(st, ev);
		break;
	case 4:
		weir_hold_refused(st, *ev);
		weir_event_finish(ev, WEIR_EFAILED);
		break;
	case 5:
		weir_hold_refused(st, *ev);
		keep_ticket(st, ev, seed);
		break;
	case 6:
		keep_ticket(st, ev, seed);
		break;
	default:
		weir_event_finish(ev, WEIR_OK);
	}
}

static void keeper_expired(struct weir_stage *st, struct weir_event **ev, int n)
{
	static _Thread_local unsigned seed = 1;

	check_thread(st);
	atomic_fetch_add(&hold_expiries, (unsigned)n);
	uncount(st, n);
	for (int i = 0; i < n; i++) {
		hold_own(ev[i]);
		if (hold_draw(&seed, 2)) /* otherwise the framework finishes it */
			hold_end_one(st, &ev[i], &seed);
	}
	die_sometimes(st, &seed);
}

struct weir_event *hold_take(struct weir_stage *st)
{
	struct keeper *k = weir_state(st);

	pthread_mutex_lock(&k->lock);
	struct weir_event *ev = k->first;
	if (ev) {
		k->first = ev->next;
		k->n--;
	}
	pthread_mutex_unlock(&k->lock);
	return ev;
}

static void keeper_stop(struct weir_stage *st, int64_t until_ns)
{
	struct keeper *k = weir_state(st);
	struct weir_event *ev;

	(void)until_ns;
	pthread_mutex_lock(&k->lock);
	k->closes = true;
	pthread_mutex_unlock(&k->lock);
	while ((ev = hold_take(st)))
		weir_emit(st, 0, &ev);
}

static const struct weir_stage_ops keeper_ops = {.abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_HOLDS,
    .name = "t.keeper",
    .summary = "holds events",
    .accepts = &probe_type,
    .outlets = pass_outlets,
    .state_size = sizeof(struct keeper),
    .init = keeper_init,
    .fini = keeper_fini,
    .handle = keeper_handle,
    .stop = keeper_stop,
    .expired = keeper_expired};

struct weir_event *hold_claim(struct weir_stage *st)
{
	struct keeper *k = weir_state(st);
	uint64_t ticket = 0;

	pthread_mutex_lock(&k->lock);
	if (k->first_ticket != k->last_ticket) {
		ticket = k->ring[k->first_ticket++ % RING];
	}
	pthread_mutex_unlock(&k->lock);
	struct weir_event *ev = weir_hold_claim(st, ticket);
	if (ticket && !ev)
		atomic_fetch_add(&hold_void_claims, 1);
	if (!ev)
		return NULL;
	hold_own(ev);
	if (weir_hold_claim(st, ticket))
		hold_fault("claimed twice", (int64_t)ticket);
	atomic_fetch_add(&hold_claims, 1);
	uncount(st, 1);
	return ev;
}

void hold_register(void)
{
	static struct weir_stage_ops looper_ops;

	looper_ops = keeper_ops;
	looper_ops.name = "t.looper";
	looper_ops.flags |= WEIR_STAGE_LOOP;
	fixture_register(&keeper_ops);
	fixture_register(&looper_ops);
}
