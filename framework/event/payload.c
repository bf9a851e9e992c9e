/* SPDX-License-Identifier: MIT */
/*
 * Payloads: making, moving and dropping; see weir/payload.h and event/payload.h.
 *
 * A payload is one allocation, a struct payload_head followed by the bytes of its type. While
 * `finish` of an event runs, the table of the event and a list on the stack (struct payload_end) both
 * refer to its payloads: the callback uses the table, and what is still in the list is dropped
 * afterwards. weir_payload_take removes a payload from both.
 */
#include "event/payload.h"

#include <stdlib.h>
#include <string.h>

/* The payloads of events that the calling thread is ending, the innermost first. */
static _Thread_local struct payload_end *ending;

static struct payload_head *head_of(void *payload)
{
	return (struct payload_head *)payload - 1;
}

struct payload_budget *payload_budget_new(uint64_t limit)
{
	struct payload_budget *b = calloc(1, sizeof(*b));

	if (b) {
		atomic_init(&b->refs, 1);
		atomic_init(&b->limit, limit);
	}
	return b;
}

void payload_budget_put(struct payload_budget *budget)
{
	/* acq_rel: the last thread must see the accesses of all others before it frees */
	if (budget && atomic_fetch_sub_explicit(&budget->refs, 1, memory_order_acq_rel) == 1)
		free(budget);
}

/* Add `bytes` to the sum. Returns false if that would exceed the limit. */
static bool grow(struct payload_budget *b, uint64_t bytes)
{
	uint64_t limit = atomic_load_explicit(&b->limit, memory_order_relaxed);
	uint64_t used = atomic_load_explicit(&b->used, memory_order_relaxed);

	do {
		/* the limit may have been lowered below the sum */
		if (used > limit || bytes > limit - used)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(
	    &b->used, &used, used + bytes, memory_order_relaxed, memory_order_relaxed));
	return true;
}

static void release(struct payload_head *h)
{
	if (!h->budget)
		return;
	atomic_fetch_sub_explicit(&h->budget->used, h->reserved, memory_order_relaxed);
	payload_budget_put(h->budget);
	h->budget = NULL;
	h->reserved = 0;
}

int payload_reserve(struct payload_budget *budget, void *payload, uint64_t more)
{
	struct payload_head *h = head_of(payload);
	struct payload_budget *b = h->budget ? h->budget : budget;
	uint64_t own = h->type->size > WEIR_PAYLOAD_SMALL ? h->type->size : 0, bytes;

	if (__builtin_add_overflow(own, more, &bytes))
		return WEIR_ENOMEM;
	if (bytes > h->reserved && !grow(b, bytes - h->reserved))
		return bytes > atomic_load_explicit(&b->limit, memory_order_relaxed)
			   ? WEIR_ENOMEM
			   : WEIR_EPRESSURE;
	if (bytes == 0) {
		release(h);
		return 0;
	}
	if (bytes < h->reserved)
		atomic_fetch_sub_explicit(&b->used, h->reserved - bytes, memory_order_relaxed);
	if (!h->budget) {
		atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
		h->budget = b;
	}
	h->reserved = bytes;
	return 0;
}

void *payload_make(struct payload_budget *budget, const struct weir_payload_type *type,
    enum weir_payload_refusal *why)
{
	struct payload_head head = {.type = type}, *h;

	/* a large type is reserved before it is allocated, on behalf of a head on the stack */
	if (type->size > WEIR_PAYLOAD_SMALL && payload_reserve(budget, &head + 1, 0) != 0) {
		*why = WEIR_PAYLOAD_BUDGET;
		return NULL;
	}
	h = calloc(1, sizeof(*h) + type->size);
	if (!h) {
		release(&head);
		*why = WEIR_PAYLOAD_MEMORY;
		return NULL;
	}
	*h = head;
	return h + 1;
}

int payload_fits(const struct weir_event *ev, const struct weir_payload_type *type)
{
	if (!ev->type->payloads)
		return WEIR_ETYPE;
	if (ev->state == WEIR_EVENT_FINISHED) /* nothing would drop the payload */
		return WEIR_ECLOSED;
	const struct weir_payloads *p =
	    (const struct weir_payloads *)((const char *)ev + ev->type->payloads);
	return p->n >= WEIR_PAYLOADS_MAX || weir_payload(ev, type) ? WEIR_EBUSY : 0;
}

void payload_add(struct weir_event *ev, void *payload)
{
	struct weir_payloads *p = payloads_of(ev);

	p->type[p->n] = head_of(payload)->type;
	p->payload[p->n++] = payload;
}

int weir_payload_put(struct weir_event *ev, void **payload)
{
	WEIR_ASSERT(*payload != NULL);
	int rc = payload_fits(ev, head_of(*payload)->type);

	if (rc != 0)
		return rc;
	payload_add(ev, *payload);
	*payload = NULL;
	return 0;
}

/* A payload leaves an event whose `finish` may be running. */
static WEIR_COLD void forget(const void *payload)
{
	for (struct payload_end *e = ending; e; e = e->outer)
		for (uint32_t i = 0; i < e->n; i++)
			if (e->payload[i] == payload)
				e->payload[i] = NULL;
}

void *weir_payload_take(struct weir_event *ev, const struct weir_payload_type *type)
{
	if (!ev->type->payloads)
		return NULL;
	struct weir_payloads *p = payloads_of(ev);
	for (uint32_t i = 0; i < p->n; i++) {
		void *payload = p->payload[i];
		if (p->type[i] != type)
			continue;
		p->n--;
		p->type[i] = p->type[p->n];
		p->payload[i] = p->payload[p->n];
		if (WEIR_UNLIKELY(ending != NULL))
			forget(payload);
		return payload;
	}
	return NULL;
}

void weir_payload_free(void *payload)
{
	if (!payload)
		return;
	struct payload_head *h = head_of(payload);
	if (h->type->drop)
		h->type->drop(payload);
	release(h);
	free(h);
}

void weir_payload_drop(struct weir_event *ev, const struct weir_payload_type *type)
{
	weir_payload_free(weir_payload_take(ev, type));
}

void payload_finish(struct weir_event *ev, int status)
{
	const struct weir_payloads *p = payloads_of(ev);
	struct payload_end end = {.n = p->n, .outer = ending};

	memcpy(end.payload, p->payload, p->n * sizeof(p->payload[0]));
	ending = &end;
	if (ev->type->finish) /* events of weir_event_new need none */
		ev->type->finish(ev, status);
	ending = end.outer;
	for (uint32_t i = 0; i < end.n; i++)
		weir_payload_free(end.payload[i]);
}
