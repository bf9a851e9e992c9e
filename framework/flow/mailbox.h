/* SPDX-License-Identifier: MIT */
/*
 * A mailbox: how other threads hand events to an I/O thread, in runs, with one wake-up.
 *
 * A mutex around a spliced intrusive list, and a sleep flag. The owner announces that it is about
 * to block (mailbox_sleep); the first sender that finds mail for a sleeping owner takes the
 * announcement back and calls `wake` (an eventfd write), so a run of sends costs one wake-up and a
 * spinning or busy owner none.
 *
 * | call             | who                                             |
 * |------------------|-------------------------------------------------|
 * | mailbox_send     | any thread of the graph; buffered in its outbox until thread_flush |
 * | mailbox_put      | any thread at all; at once                      |
 * | mailbox_take, mailbox_sleep, mailbox_awake | the owner alone       |
 */
#ifndef WEIR_FLOW_MAILBOX_H
#define WEIR_FLOW_MAILBOX_H

#include <stdatomic.h>
#include <stdbool.h>

#include <weir/event.h>

#include "base/lock.h"

struct mailbox {
	WEIR_ALIGNED struct lock lock;
	struct weir_event *head WEIR_GUARDED_BY(lock);
	struct weir_event **tail WEIR_GUARDED_BY(lock);
	atomic_bool full;     /* head is not NULL: written under the lock, read by the owner */
	atomic_bool sleeping; /* the owner announced that it will block */
	int id;               /* its place among the mailboxes of the process */
	void (*wake)(struct mailbox *mb);
};

/** Mailboxes there may be at once: I/O threads of all sources. Every thread has an outbox for each.
 */
#define MAILBOXES_MAX 64

/** Make `mb` a mailbox. 0, or WEIR_EBUSY when there are MAILBOXES_MAX. Any thread. */
int mailbox_init(struct mailbox *mb, void (*wake)(struct mailbox *mb));
/** The mailbox must be empty and no thread may send any more. */
void mailbox_fini(struct mailbox *mb);

/** Buffer `ev` in the calling thread's outbox for `mb`. */
void mailbox_send(struct mailbox *mb, struct weir_event *ev);

/** Append the list head..*tail (linked, ends in NULL) now and wake the owner if it sleeps. */
void mailbox_put(struct mailbox *mb, struct weir_event *head, struct weir_event **tail);

/** Take all mail, in order, NULL when there is none. No lock when it is empty. */
struct weir_event *mailbox_take(struct mailbox *mb);

/** Announce that the owner will block. Returns false, with the announcement taken back, when mail
 * is there: do not block. */
bool mailbox_sleep(struct mailbox *mb);

/** The owner no longer blocks. */
void mailbox_awake(struct mailbox *mb);

#endif
