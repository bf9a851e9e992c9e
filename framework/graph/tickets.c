/* SPDX-License-Identifier: MIT */
/*
 * Holds with a ticket (weir_hold_until): a stage keeps a number instead of the event, and gets the
 * event back when the hold expires.
 *
 * Each stage that holds events has a table of slots. The state of a slot is one atomic word. While
 * an event is in the slot, the word is the ticket: the index of the slot and a generation, which is
 * odd. A claim of the stage (weir_hold_claim), the timer and the drain take an event by advancing
 * the word to the next, even generation. So exactly one thread gets the event, and a ticket that is
 * used late finds another generation. Slots are reused, but freed only with the stage.
 *
 *   FREE --hold--> ticket --claim, expiry or drain--> FREE, with the next generation
 *
 * All threads share a list of free slots, and each keeps some of them in its local (event/local.h):
 * the slot of a claim is used for the next hold of the same thread, without an atomic operation.
 *
 * There is one timer wheel per stage. To *file* a slot is to set its timer in the wheel. A slot
 * stays in the wheel when its event is claimed. If the next event in the slot has a later deadline,
 * as usual, the hold does not change the wheel: the slot fires too early and is filed again. If the
 * deadline is earlier than the time at which the slot fires, the hold puts the slot on the list
 * `fresh`, which the thread that runs the wheel reads. So a claim takes no lock, and a hold takes
 * one only to add slots or to wake a parked thread.
 *
 * Two calls in a row below may overlap. Each writes one variable and then reads the one that the
 * other writes, with seq_cst. So at least one of the two sees what the other has written:
 *
 *   put_in:     writes the word, reads filed_ns        fire:    writes filed_ns, reads the word
 *   file_soon:  adds to `fresh`, reads expires_ns      expire:  resets expires_ns, takes `fresh`
 *
 * A thread of the stage's pool runs the wheel before it takes a batch, if sink.expires_ns has come.
 * A parked thread wakes up at that time (sched/rest.c).
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "event/local.h"
#include "event/op.h"
#include "graph/tickets.h"
#include "sched/pool.h"

/* Length of a tick of the wheel, as in the loops (io/loop.c). */
#define TICK_NS (4 * NS_PER_MS)

/* ---- slots ---- */

static struct slot *slot_at(struct tickets *tk, uint64_t index)
{
	uint64_t block = index / CHUNK_FIRST + 1;
	int k = 63 - __builtin_clzll(block);
	struct slot *chunk =
	    k < CHUNKS ? atomic_load_explicit(&tk->chunk[k], memory_order_acquire) : NULL;

	return chunk ? &chunk[index - CHUNK_FIRST * ((1ULL << k) - 1)] : NULL;
}

/* The number of a slot: its index + 1. It never changes. */
static unsigned number_of(const struct slot *s)
{
	return (unsigned)(atomic_load_explicit(&s->word, memory_order_relaxed) & INDEX_MASK) + 1;
}

void tickets_put_free(struct tickets *tk, struct slot *first, struct slot *last)
{
	uint64_t was = atomic_load_explicit(&tk->free, memory_order_acquire), is;

	do {
		struct slot *next = (unsigned)was ? slot_at(tk, (unsigned)was - 1) : NULL;
		atomic_store_explicit(&last->next_free, next, memory_order_release);
		is = ((was >> 32) + 1) << 32 | number_of(first);
	} while (!atomic_compare_exchange_weak_explicit(
	    &tk->free, &was, is, memory_order_release, memory_order_acquire));
}

/* Take at most `most` free slots. Returns their number. */
static int take_free(struct tickets *tk, struct slot **slot, int most)
{
	uint64_t was = atomic_load_explicit(&tk->free, memory_order_acquire), is;
	int n;

	do {
		if ((unsigned)was == 0)
			return 0;
		struct slot *s = slot_at(tk, (unsigned)was - 1);
		/* If slots are taken and put back meanwhile, next_free may be out of date. Then the
		 * count in tk->free differs, and the exchange fails. */
		for (n = 0; n < most && s; n++) {
			slot[n] = s;
			s = atomic_load_explicit(&s->next_free, memory_order_acquire);
		}
		is = was >> 32 << 32 | (s ? number_of(s) : 0);
	} while (!atomic_compare_exchange_weak_explicit(
	    &tk->free, &was, is, memory_order_acquire, memory_order_acquire));
	return n;
}

static void add_chunk(struct tickets *tk) WEIR_REQUIRES(&tk->lock)
{
	int k = tk->n_chunks;
	unsigned n = (unsigned)CHUNK_FIRST << k, first = CHUNK_FIRST * ((1U << k) - 1);
	struct slot *chunk = k < CHUNKS ? aligned_alloc(WEIR_CACHE_LINE, n * sizeof(*chunk)) : NULL;

	if (!chunk)
		return;
	memset(chunk, 0, n * sizeof(*chunk));
	for (unsigned i = 0; i < n; i++) {
		chunk[i].tk = tk;
		atomic_init(&chunk[i].word, first + i);
		atomic_init(&chunk[i].filed_ns, INT64_MAX);
		atomic_init(&chunk[i].next_free, &chunk[i + 1]); /* put_free sets the last one */
	}
	atomic_store_explicit(&tk->chunk[k], chunk, memory_order_release);
	tk->n_chunks++;
	tickets_put_free(tk, &chunk[0], &chunk[n - 1]);
}

/* As take_free, but adds slots if there are none. Returns 0 if memory is short. */
WEIR_COLD static int grow(struct tickets *tk, struct slot **slot, int most)
{
	lock_take(&tk->lock);
	int n = take_free(tk, slot, most); /* another thread may have grown the table */
	if (n == 0) {
		add_chunk(tk);
		n = take_free(tk, slot, most);
	}
	lock_release(&tk->lock);
	return n;
}

/* Take slots for the thread of `l`, which has none left. Returns one of them, or NULL if memory is
 * short. */
__attribute__((noinline)) static struct slot *refill(struct tickets *tk, struct local *l)
{
	l->n_slots = take_free(tk, l->slot, LOCAL_SLOTS / 2);
	if (WEIR_UNLIKELY(l->n_slots == 0))
		l->n_slots = grow(tk, l->slot, LOCAL_SLOTS / 2);
	return l->n_slots > 0 ? l->slot[--l->n_slots] : NULL;
}

/* Put the first `n` slots that a thread keeps into the list of all threads. */
__attribute__((noinline)) static void put_kept(struct tickets *tk, struct local *l, int n)
{
	for (int i = 0; i + 1 < n; i++)
		atomic_store_explicit(&l->slot[i]->next_free, l->slot[i + 1], memory_order_release);
	tickets_put_free(tk, l->slot[0], l->slot[n - 1]);
	l->n_slots -= n;
	memmove(l->slot, l->slot + n, sizeof(struct slot *) * (size_t)l->n_slots);
}

void graph_tickets_leave(struct local *l)
{
	if (l->n_slots > 0)
		put_kept(l->stage->tickets, l, l->n_slots);
}

/* ---- calls of stages ---- */

/* Lower *expires_ns to `at_ns`. Returns false if it was already as early. */
static bool lower(_Atomic int64_t *expires_ns, int64_t at_ns)
{
	int64_t was_ns = atomic_load(expires_ns);

	while (at_ns < was_ns)
		if (atomic_compare_exchange_weak(expires_ns, &was_ns, at_ns))
			return true;
	return false;
}

static void file_soon(struct tickets *tk, struct slot *s, int64_t at_ns)
{
	if (!atomic_exchange(&s->is_fresh, true)) {
		s->next_fresh = atomic_load(&tk->fresh);
		while (!atomic_compare_exchange_weak(&tk->fresh, &s->next_fresh, s))
			continue;
	}
	if (at_ns == EXPIRES_UNKNOWN)
		at_ns--;
	/* the parked threads sleep until a later time */
	if (lower(&tk->stage->sink.expires_ns, at_ns) && tk->stage->pool)
		pool_wake(tk->stage->pool);
}

/* Put `ev` into `s`. Afterwards it may be claimed, expire and end in other threads. */
static uint64_t put_in(struct tickets *tk, struct slot *s, struct weir_event *ev,
    struct weir_family *family, int64_t until_ns)
{
	int64_t at_ns = until_ns < ev->deadline_ns ? until_ns : ev->deadline_ns;
	uint64_t ticket = atomic_load_explicit(&s->word, memory_order_relaxed) + GENERATION;

	at_ns = at_ns > 0 ? at_ns : 0;
	ev->state = WEIR_EVENT_TICKETED;
	s->ev = ev;
	atomic_store_explicit(&s->family, family, memory_order_relaxed);
	atomic_store_explicit(&s->at_ns, at_ns, memory_order_relaxed);
	atomic_store(&s->word, ticket);
	if (WEIR_UNLIKELY(at_ns < atomic_load(&s->filed_ns)))
		file_soon(tk, s, at_ns);
	return ticket;
}

WEIR_COLD static void end_at_once(struct weir_stage *st, uint64_t ticket, int status)
{
	struct weir_event *ev = weir_hold_claim(st, ticket);

	if (ev)
		weir_event_finish(&ev, status);
}

uint64_t weir_hold_until(struct weir_stage *st, struct weir_event **slot, int64_t until_ns)
{
	struct tickets *tk = st->tickets;
	struct weir_event *ev = *slot;

	WEIR_ASSERT(tk != NULL); /* only with WEIR_STAGE_HOLDS */
	WEIR_ASSERT(ev->stage == st->id && thread_self()->graph == st->graph);
	struct local *l = local_find(thread_self(), st->id);
	struct slot *s = l && l->n_slots > 0 ? l->slot[--l->n_slots] : l ? refill(tk, l) : NULL;
	if (WEIR_UNLIKELY(!s)) {
		weir_event_finish(slot, WEIR_ENOMEM);
		return 0;
	}
	if (WEIR_UNLIKELY(thread_current->unsent > 0) && ev->type->op)
		op_let_go(thread_current, ev, false);
	if (ev->state != WEIR_EVENT_HELD)
		weir_hold(st, slot);
	*slot = NULL;
	struct weir_family *family = weir_family_of(ev);
	if (WEIR_UNLIKELY(family != NULL))
		family_take(family, 1); /* the event may end as soon as it is in the slot */
	uint64_t ticket = put_in(tk, s, ev, family, until_ns);
	/* The drain sets `closed` and then searches the slots. So either it finds this ticket, or
	 * `closed` is visible here. It is the same with a family that ends (tickets_all.c). */
	if (WEIR_UNLIKELY(atomic_load(&tk->closed)))
		end_at_once(st, ticket, WEIR_ECLOSED);
	else if (WEIR_UNLIKELY(family != NULL) && weir_family_over(family))
		end_at_once(st, ticket, WEIR_ECANCELLED);
	if (WEIR_UNLIKELY(family != NULL))
		weir_family_put(family);
	return ticket;
}

/* Keep the free slot `s` for the holds of the calling thread, which may be a thread of no graph. */
static void keep(struct tickets *tk, struct slot *s)
{
	struct thread *t = thread_current;
	struct weir_stage *st = tk->stage;
	struct local *l = t && t->graph == st->graph ? t->local[st->id] : NULL;

	if (WEIR_UNLIKELY(!l)) {
		tickets_put_free(tk, s, s);
		return;
	}
	if (WEIR_UNLIKELY(l->n_slots == LOCAL_SLOTS))
		put_kept(tk, l, LOCAL_SLOTS / 2);
	l->slot[l->n_slots++] = s;
}

struct weir_event *graph_ticket_claim(struct weir_stage *st, uint64_t ticket)
{
	struct tickets *tk = st->tickets;
	struct slot *s = tk && is_ticket(ticket) ? slot_at(tk, ticket & INDEX_MASK) : NULL;
	struct weir_event *ev = s ? ticket_take_out(s, ticket) : NULL;

	if (!ev)
		return NULL;
	keep(tk, s);
	ev->state = WEIR_EVENT_HELD;
	return ev;
}

/* ---- the timer ---- */

static void fire(struct weir_loop *loop, struct weir_timer *t);

void tickets_take_due(struct tickets *tk, struct slot *s, uint64_t ticket) WEIR_NO_THREAD_SAFETY
{
	struct weir_event *ev = ticket_take_out(s, ticket);

	if (!ev)
		return;
	tickets_put_free(tk, s, s);
	ev->next = tk->due;
	tk->due = ev;
}

/* File the slot under its deadline, unless it is free or filed early enough. */
static void file(struct tickets *tk, struct slot *s) WEIR_REQUIRES(&tk->lock)
{
	if (!is_ticket(atomic_load(&s->word)))
		return;
	/* at_ns may already belong to the next event of the slot. That does no harm: its hold reads
	 * filed_ns after it has written the word, and puts the slot on `fresh` if filed_ns is later
	 * than its deadline. */
	int64_t at_ns = atomic_load_explicit(&s->at_ns, memory_order_relaxed);
	if (at_ns >= atomic_load_explicit(&s->filed_ns, memory_order_relaxed))
		return;
	s->timer.fire = fire;
	timer_wheel_set(&tk->wheel, &s->timer, at_ns);
	atomic_store(&s->filed_ns, at_ns);
}

static void fire(struct weir_loop *loop, struct weir_timer *t) WEIR_NO_THREAD_SAFETY
{
	struct slot *s = (struct slot *)((char *)t - offsetof(struct slot, timer));
	struct tickets *tk = s->tk;

	(void)loop;
	atomic_store(&s->filed_ns, INT64_MAX);
	uint64_t ticket = atomic_load(&s->word);
	if (!is_ticket(ticket))
		return;
	if (atomic_load_explicit(&s->at_ns, memory_order_relaxed) > tk->now_ns) {
		file(tk, s);
		return;
	}
	tickets_take_due(tk, s, ticket);
}

void tickets_give_back(struct tickets *tk, struct weir_event *list)
{
	struct weir_stage *st = tk->stage;
	int n = 0;

	if (!list)
		return;
	for (struct weir_event *ev = list; ev; ev = ev->next)
		n++;
	atomic_fetch_add(&st->arriving, n);
	queue_give_back(&st->sink.queue, list);
	if (st->pool && st->sink.queue.n_parts > 1)
		pool_wake_parts(st->pool, ~0ULL);
}

static void read_fresh(struct tickets *tk) WEIR_REQUIRES(&tk->lock)
{
	struct slot *s = atomic_exchange(&tk->fresh, NULL);

	while (s) {
		struct slot *next = s->next_fresh;
		/* before `file` reads the word, so that a later hold puts the slot on the list
		 * again */
		atomic_store(&s->is_fresh, false);
		file(tk, s);
		s = next;
	}
}

/* Called by a thread of the stage's pool when expires_ns has come. */
static void expire(struct sink *sink, int64_t now_ns)
{
	struct tickets *tk = sink->stage->tickets;
	int64_t unknown = EXPIRES_UNKNOWN;

	if (!lock_try(&tk->lock)) /* another thread runs the wheel */
		return;
	/* a thread that parks before the wheel has run reads expires_ns again (sched/rest.c) */
	atomic_store(&sink->expires_ns, EXPIRES_UNKNOWN);
	read_fresh(tk);
	tk->now_ns = now_ns;
	timer_wheel_run(&tk->wheel, now_ns, NULL);
	if (!lower(&sink->expires_ns, timer_wheel_next_ns(&tk->wheel)))
		atomic_compare_exchange_strong(&sink->expires_ns, &unknown, INT64_MAX);
	struct weir_event *due = tk->due;
	tk->due = NULL;
	tickets_give_back(tk, due);
	lock_release(&tk->lock);
}

/* ---- lifetime ---- */

int graph_tickets_new(struct weir_stage *st)
{
	if (!stage_has_width(st))
		return 0;
	st->tickets = aligned_alloc(WEIR_CACHE_LINE, sizeof(*st->tickets));
	if (!st->tickets)
		return WEIR_ENOMEM;
	memset(st->tickets, 0, sizeof(*st->tickets));
	st->tickets->stage = st;
	lock_init(&st->tickets->lock);
	timer_wheel_init(&st->tickets->wheel, TICK_NS, clock_now_ns());
	atomic_init(&st->sink.expires_ns, INT64_MAX);
	st->sink.expire = expire;
	return 0;
}

void graph_tickets_free(struct weir_stage *st)
{
	if (!st->tickets)
		return;
	for (int k = 0; k < CHUNKS; k++)
		free(atomic_load(&st->tickets->chunk[k]));
	lock_fini(&st->tickets->lock);
	free(st->tickets);
	st->tickets = NULL;
}
