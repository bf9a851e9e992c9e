/* SPDX-License-Identifier: MIT */
/*
 * Mailboxes; see mailbox.h.
 *
 * The sleep protocol is Dekker's: the owner stores `sleeping`, then loads `full`; a sender stores
 * `full` (under the lock), then loads `sleeping`. All four are seq_cst, so at least one side sees
 * the other's store. Senders clear `sleeping` with an atomic exchange, so exactly one of them makes
 * the wake-up call.
 */
#include "event/mailbox.h"

#include <sched.h>
#include <stdlib.h>

#include "event/local.h"

/* Ids in use: bit i of ids_taken[s] stands for id s * MAILBOX_SET + i. */
static _Atomic uint64_t ids_taken[MAILBOX_SETS];

_Static_assert(MAILBOX_SET == 64, "one bit each");

/* Take the lowest free bit of `set`. Returns -1 if all are taken. */
static int take_bit(_Atomic uint64_t *set)
{
	uint64_t taken = atomic_load(set);
	int bit;

	do {
		if (taken == UINT64_MAX)
			return -1;
		bit = __builtin_ctzll(~taken);
	} while (!atomic_compare_exchange_weak(set, &taken, taken | 1ULL << bit));
	return bit;
}

static int take_id(void)
{
	for (int s = 0; s < MAILBOX_SETS; s++) {
		int bit = take_bit(&ids_taken[s]);
		if (bit >= 0)
			return s * MAILBOX_SET + bit;
	}
	return -1;
}

void mailbox_init(struct mailbox *mb, void (*wake)(struct mailbox *mb))
{
	mb->id = take_id();
	lock_init(&mb->lock);
	mb->head = NULL;
	mb->tail = &mb->head;
	atomic_init(&mb->full, false);
	atomic_init(&mb->sleeping, false);
	atomic_init(&mb->waking, 0);
	mb->wake = wake;
}

void mailbox_fini(struct mailbox *mb)
{
	WEIR_ASSERT(mb->head == NULL);
	/* Wait for senders whose mail was taken but that are still in `wake`, which takes as long
	 * as a write(2). */
	while (atomic_load_explicit(&mb->waking, memory_order_acquire) > 0)
		sched_yield();
	lock_fini(&mb->lock);
	if (mb->id >= 0)
		atomic_fetch_and(&ids_taken[mb->id / MAILBOX_SET], ~(1ULL << mb->id % MAILBOX_SET));
}

void mailbox_put(struct mailbox *mb, struct weir_event *head, struct weir_event **tail)
{
	lock_take(&mb->lock);
	*mb->tail = head;
	mb->tail = tail;
	atomic_store(&mb->full, true); /* pairs with mailbox_sleep */
	bool wakes = atomic_load(&mb->sleeping) && atomic_exchange(&mb->sleeping, false);
	if (wakes)
		atomic_fetch_add_explicit(&mb->waking, 1, memory_order_relaxed);
	/* From here on the owner may take the mail, and its stage may end and free the mailbox.
	 * Only `waking` prevents that (mailbox_fini). */
	lock_release(&mb->lock);
	if (!wakes)
		return;
	mb->wake(mb);
	atomic_fetch_sub_explicit(
	    &mb->waking, 1, memory_order_release); /* pairs with mailbox_fini */
}

struct outbox *mailbox_outboxes_new(void)
{
	struct outbox *set = calloc(MAILBOX_SET, sizeof(*set));

	for (int i = 0; set && i < MAILBOX_SET; i++)
		set[i].tail = &set[i].head;
	return set;
}

/* Return the outbox of `t` for mailbox `id`, or NULL if none can be allocated. Once a thread has an
 * outbox for a mailbox, it sends all mail through that outbox, so that its mail stays in order. */
static struct outbox *outbox_for(struct thread *t, int id)
{
	struct outbox **set = id >= 0 ? &t->mail[id / MAILBOX_SET] : NULL;

	if (set && WEIR_UNLIKELY(!*set))
		*set = mailbox_outboxes_new();
	return set && *set ? &(*set)[id % MAILBOX_SET] : NULL;
}

void mailbox_send(struct mailbox *mb, struct weir_event *ev)
{
	struct thread *t = thread_self();
	struct outbox *o = outbox_for(t, mb->id);

	if (WEIR_UNLIKELY(!o)) {
		ev->next = NULL;
		mailbox_put(mb, ev, &ev->next);
		return;
	}
	o->mailbox = mb;
	outbox_add(t, o, ev);
}

struct weir_event *mailbox_take(struct mailbox *mb)
{
	if (!atomic_load_explicit(&mb->full, memory_order_relaxed))
		return NULL;
	lock_take(&mb->lock);
	struct weir_event *list = mb->head;
	mb->head = NULL;
	mb->tail = &mb->head;
	atomic_store_explicit(&mb->full, false, memory_order_relaxed);
	lock_release(&mb->lock);
	return list;
}

bool mailbox_sleep(struct mailbox *mb)
{
	atomic_store(&mb->sleeping, true); /* pairs with mailbox_put */
	if (!atomic_load(&mb->full))
		return true;
	atomic_store(&mb->sleeping, false);
	return false;
}

void mailbox_awake(struct mailbox *mb)
{
	atomic_store_explicit(&mb->sleeping, false, memory_order_relaxed);
}
