/* SPDX-License-Identifier: MIT */
/*
 * Mailboxes; see mailbox.h.
 *
 * The sleep protocol is Dekker's: the owner stores `sleeping`, then loads `full`; a sender stores
 * `full` (under the lock), then exchanges `sleeping`. Both sides are seq_cst, so at least one sees
 * the other, and the exchange lets exactly one sender take the announcement back and pay for the
 * wake-up.
 */
#include "flow/mailbox.h"

#include "flow/local.h"

/* Which ids are taken: bit i for id i. */
static _Atomic uint64_t ids_taken;

_Static_assert(MAILBOXES_MAX == 64, "one bit each");

int mailbox_init(struct mailbox *mb, void (*wake)(struct mailbox *mb))
{
	uint64_t taken = atomic_load(&ids_taken);

	do {
		if (taken == UINT64_MAX)
			return WEIR_EBUSY;
		mb->id = __builtin_ctzll(~taken);
	} while (!atomic_compare_exchange_weak(&ids_taken, &taken, taken | 1ULL << mb->id));
	lock_init(&mb->lock);
	mb->head = NULL;
	mb->tail = &mb->head;
	atomic_init(&mb->full, false);
	atomic_init(&mb->sleeping, false);
	mb->wake = wake;
	return 0;
}

void mailbox_fini(struct mailbox *mb)
{
	WEIR_ASSERT(mb->head == NULL);
	lock_fini(&mb->lock);
	atomic_fetch_and(&ids_taken, ~(1ULL << mb->id));
}

void mailbox_put(struct mailbox *mb, struct weir_event *head, struct weir_event **tail)
{
	lock_take(&mb->lock);
	*mb->tail = head;
	mb->tail = tail;
	atomic_store(&mb->full, true); /* partner: mailbox_sleep */
	lock_release(&mb->lock);
	if (atomic_load(&mb->sleeping) && atomic_exchange(&mb->sleeping, false))
		mb->wake(mb);
}

void mailbox_send(struct mailbox *mb, struct weir_event *ev)
{
	struct thread *t = thread_self();
	struct outbox *o = &t->mail[mb->id];

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
	atomic_store(&mb->sleeping, true); /* partner: mailbox_put */
	if (!atomic_load(&mb->full))
		return true;
	atomic_store(&mb->sleeping, false);
	return false;
}

void mailbox_awake(struct mailbox *mb)
{
	atomic_store_explicit(&mb->sleeping, false, memory_order_relaxed);
}
