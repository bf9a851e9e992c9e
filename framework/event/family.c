/* SPDX-License-Identifier: MIT */
/* Families: sets of events that end together; see weir/op.h. A family lives as long as it has
 * members, references of stages, or families within it. */
#include <pthread.h>
#include <stdlib.h>

#include "event/local.h"
#include "event/op.h"
#include "event/payload.h"

struct op_over op_over;

static atomic_ullong ends;
/* The control thread of a graph searches tickets for families that have ended. One does so at a
 * time. */
static pthread_mutex_t search = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool searching;
static _Atomic(struct weir_family *) kept; /* to be freed after the search, linked by `next_kept` */

struct weir_family *weir_family_new(struct weir_family *within)
{
	struct weir_family *f = aligned_alloc(WEIR_CACHE_LINE, sizeof(*f));

	if (!f)
		return NULL;
	atomic_init(&f->refs, 1);
	atomic_init(&f->over, false);
	f->within = within;
	f->next_kept = NULL;
	atomic_init(&f->waiter, NULL);
	atomic_init(&f->racing, 0);
	atomic_init(&f->status, WEIR_OK);
	atomic_init(&f->used, 0);
	atomic_init(&f->limit, 0);
	family_take(within, 1);
	return f;
}

void family_take(struct weir_family *f, int n)
{
	if (f)
		atomic_fetch_add_explicit(&f->refs, n, memory_order_relaxed);
}

/* Free a family that no event belongs to any more. A search that finds it in a slot has set `searching`
 * before it read the slot's ticket, and the event left the slot before this call. So this call sees
 * `searching`, or the search does not find the family. */
static void release(struct weir_family *f)
{
	if (WEIR_LIKELY(!atomic_load(&searching))) {
		free(f);
		return;
	}
	f->next_kept = atomic_load(&kept);
	while (!atomic_compare_exchange_weak(&kept, &f->next_kept, f))
		continue;
}

void family_put(struct weir_family *f, int n)
{
	while (f && atomic_fetch_sub_explicit(&f->refs, n, memory_order_acq_rel) == n) {
		struct weir_family *within = f->within;
		if (WEIR_UNLIKELY(atomic_load_explicit(&f->over, memory_order_relaxed)))
			atomic_fetch_sub(&op_over.families, 1);
		release(f);
		f = within;
		n = 1;
	}
}

void weir_family_put(struct weir_family *f)
{
	family_put(f, 1);
}

uint64_t family_ends(void)
{
	return atomic_load(&ends);
}

void family_search_begin(void)
{
	pthread_mutex_lock(&search);
	atomic_store(&searching, true);
}

void family_search_end(void)
{
	atomic_store(&searching, false);
	/* Families that are added after this are freed by the next search. */
	struct weir_family *f = atomic_exchange(&kept, NULL);
	while (f) {
		struct weir_family *next = f->next_kept;
		free(f);
		f = next;
	}
	pthread_mutex_unlock(&search);
}

/* ---- memory ---- */

void weir_family_set_memory(struct weir_family *f, uint64_t bytes)
{
	if (f)
		atomic_store_explicit(&f->limit, bytes, memory_order_relaxed);
}

uint64_t weir_family_memory(const struct weir_family *f)
{
	return f ? atomic_load_explicit(&f->used, memory_order_relaxed) : 0;
}

static uint64_t limit_of(const struct weir_family *f)
{
	uint64_t own = atomic_load_explicit(&f->limit, memory_order_relaxed);
	const struct thread *t = thread_current;

	if (own > 0)
		return own;
	return t && t->payloads
		   ? atomic_load_explicit(&t->payloads->family_limit, memory_order_relaxed)
		   : UINT64_MAX;
}

/* Count less in `f` and the families around it, up to `end`, which is not included. */
static void shrink(struct weir_family *f, const struct weir_family *end, uint64_t bytes)
{
	for (; f != end; f = f->within)
		atomic_fetch_sub_explicit(&f->used, bytes, memory_order_relaxed);
}

void family_shrink(struct weir_family *f, uint64_t bytes)
{
	shrink(f, NULL, bytes);
}

bool family_grow(struct weir_family *f, uint64_t bytes)
{
	for (struct weir_family *at = f; at; at = at->within)
		if (WEIR_UNLIKELY(!budget_grow(&at->used, limit_of(at), bytes))) {
			shrink(f, at, bytes);
			return false;
		}
	return true;
}

bool family_enter(struct weir_family *f, struct weir_event *ev)
{
	uint64_t bytes = ev->type->size;

	if (WEIR_UNLIKELY(ev->type->payloads != 0))
		bytes += payload_bytes(ev);
	if (!family_grow(f, bytes))
		return false;
	if (WEIR_UNLIKELY(bytes > ev->type->size))
		payload_follow(ev, f);
	family_take(f, 1);
	op_of(ev)->family = f;
	return true;
}

/* ---- members ---- */

int weir_family_join(struct weir_family *f, struct weir_event *ev)
{
	if (!f)
		return 0;
	WEIR_ASSERT(ev->type->op != 0 && op_of(ev)->family == NULL);
	return family_enter(f, ev) ? 0 : WEIR_ELIMIT;
}

void weir_family_end(struct weir_family *f)
{
	if (!f)
		return;
	atomic_fetch_add(&op_over.families, 1);
	if (atomic_exchange(&f->over, true))
		atomic_fetch_sub(&op_over.families, 1);
	else
		atomic_fetch_add(&ends, 1);
}

bool weir_family_over(const struct weir_family *f)
{
	for (; f; f = f->within)
		if (atomic_load(&f->over)) /* seq_cst: see graph/tickets_all.c */
			return true;
	return false;
}

struct weir_family *weir_family_of(const struct weir_event *ev)
{
	return ev->type->op ? op_of(ev)->family : NULL;
}

/* ---- the first of several children ---- */

bool family_race(struct weir_event *ev)
{
	struct weir_op *op = op_of(ev);
	struct weir_family *f = weir_family_new(op->family);

	if (!f)
		return false;
	/* The family around it, if there is one, bounds the memory. */
	atomic_init(&f->limit, op->family ? UINT64_MAX : 0);
	atomic_init(&f->waiter, ev);
	atomic_init(&f->racing, (int)op->n_unsent);
	atomic_init(&f->status, op->unsent_status);
	family_take(f, (int)op->n_unsent - 1); /* and the reference of the caller */
	struct weir_event *c = op->children;
	for (uint32_t i = 0; i < op->n_unsent; i++, c = c->next) {
		WEIR_ASSERT(op_of(c)->family == op->family);
		atomic_fetch_add_explicit(&f->used, c->type->size, memory_order_relaxed);
		weir_family_put(op_of(c)->family);
		op_of(c)->family = f;
		op_of(c)->flags |= OP_RACES;
	}
	return true;
}

struct weir_event *family_raced(struct weir_family *f, int status, int *result)
{
	struct weir_event *ev = NULL;
	int16_t none = WEIR_OK;

	if (status != WEIR_OK)
		atomic_compare_exchange_strong(&f->status, &none, (int16_t)status);
	bool last = atomic_fetch_sub(&f->racing, 1) == 1;
	if (status == WEIR_OK || last)
		ev = atomic_exchange(&f->waiter, NULL);
	if (status == WEIR_OK && !last)
		weir_family_end(f);
	*result = status == WEIR_OK ? WEIR_OK : atomic_load(&f->status);
	return ev;
}
