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

#include "event/op.h"

/* The payloads of events that the calling thread is ending, the innermost first. */
static _Thread_local struct payload_end *ending;

static struct payload_head *head_of(void *payload)
{
	return (struct payload_head *)payload - 1;
}

struct payload_budget *payload_budget_new(uint64_t limit, uint64_t family_limit)
{
	struct payload_budget *b = calloc(1, sizeof(*b));

	if (b) {
		atomic_init(&b->refs, 1);
		atomic_init(&b->limit, limit);
		atomic_init(&b->family_limit, family_limit);
	}
	return b;
}

void payload_budget_put(struct payload_budget *budget)
{
	/* acq_rel: the last thread must see the accesses of all others before it frees */
	if (budget && atomic_fetch_sub_explicit(&budget->refs, 1, memory_order_acq_rel) == 1)
		free(budget);
}

static bool grow(struct payload_budget *b, uint64_t bytes)
{
	return budget_grow(&b->used, atomic_load_explicit(&b->limit, memory_order_relaxed), bytes);
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

/* Set the reservation to `bytes`, which count in the budget only. */
static int set_reserved(struct payload_budget *budget, struct payload_head *h, uint64_t bytes)
{
	struct payload_budget *b = h->budget ? h->budget : budget;

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

int payload_reserve(struct payload_budget *budget, void *payload, uint64_t more)
{
	struct payload_head *h = head_of(payload);
	uint64_t own = h->type->size > WEIR_PAYLOAD_SMALL ? h->type->size : 0, bytes;
	uint64_t before = h->reserved;

	if (__builtin_add_overflow(own, more, &bytes))
		return WEIR_ENOMEM;
	if (bytes > before && !family_grow(h->family, bytes - before))
		return WEIR_ELIMIT;
	int rc = set_reserved(budget, h, bytes);
	if (rc != 0)
		family_shrink(h->family, bytes - before); /* only a growth fails */
	else if (bytes < before)
		family_shrink(h->family, before - bytes);
	return rc;
}

/* ---- families ---- */

/* The bytes of a payload in a family. */
static uint64_t bytes_of(const struct payload_head *h)
{
	return (h->type->size > WEIR_PAYLOAD_SMALL ? 0 : h->type->size) + h->reserved;
}

static void leave_family(struct payload_head *h)
{
	if (h->family)
		family_leave(h->family, 1, bytes_of(h));
	h->family = NULL;
}

uint64_t payload_bytes(struct weir_event *ev)
{
	const struct weir_payloads *p = payloads_of(ev);
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < p->n; i++)
		bytes += bytes_of(head_of(p->payload[i]));
	return bytes;
}

void payload_follow(struct weir_event *ev, struct weir_family *family)
{
	const struct weir_payloads *p = payloads_of(ev);

	for (uint32_t i = 0; i < p->n; i++) {
		struct payload_head *h = head_of(p->payload[i]);
		leave_family(h);
		h->family = family;
	}
	family_take(family, (int)p->n);
}

/* Let a payload count in the families `to` instead of those in which it counts. Returns false if that
 * would exceed the memory of one; the payload still counts where it did. */
static WEIR_COLD bool move(struct payload_head *h, struct weir_family *to)
{
	uint64_t bytes = bytes_of(h);

	/* first less, since one family may contain both */
	family_shrink(h->family, bytes);
	if (!family_grow(to, bytes)) {
		for (struct weir_family *f = h->family; f; f = f->within)
			atomic_fetch_add_explicit(&f->used, bytes, memory_order_relaxed);
		return false;
	}
	family_take(to, 1);
	weir_family_put(h->family);
	h->family = to;
	return true;
}

/* ---- making and moving ---- */

void *payload_make(struct payload_budget *budget, struct weir_family *family,
    const struct weir_payload_type *type, enum weir_payload_refusal *why)
{
	struct payload_head head = {.type = type}, *h;

	if (WEIR_UNLIKELY(family != NULL) && !family_grow(family, type->size)) {
		*why = WEIR_PAYLOAD_FAMILY;
		return NULL;
	}
	/* a large type is reserved before it is allocated, on behalf of a head on the stack */
	*why = WEIR_PAYLOAD_BUDGET;
	if (type->size <= WEIR_PAYLOAD_SMALL || set_reserved(budget, &head, type->size) == 0) {
		h = calloc(1, sizeof(*h) + type->size);
		if (h) {
			family_take(family, 1);
			*h = head;
			h->family = family;
			return h + 1;
		}
		release(&head);
		*why = WEIR_PAYLOAD_MEMORY;
	}
	family_shrink(family, type->size);
	return NULL;
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
	struct payload_head *h = head_of(*payload);
	int rc = payload_fits(ev, h->type);

	if (rc != 0)
		return rc;
	if (WEIR_UNLIKELY(h->family != weir_family_of(ev)) && !move(h, weir_family_of(ev)))
		return WEIR_ELIMIT;
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
	leave_family(h);
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
