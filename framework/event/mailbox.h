/* SPDX-License-Identifier: MIT */
/*
 * Mailboxes: threads send runs of events to an I/O thread, with one wake-up per run.
 *
 * A mailbox consists of an intrusive list under a mutex, and a sleep flag. The owner sets the flag
 * when it is about to block (mailbox_sleep). The first sender that finds the flag set clears it and
 * calls `wake` (an eventfd write). So a run of sends costs at most one wake-up, and none while the
 * owner spins or is busy.
 *
 * | call             | caller                                          |
 * |------------------|-------------------------------------------------|
 * | mailbox_send     | any thread of the graph; buffered in its outbox until thread_flush |
 * | mailbox_put      | any thread; appended immediately                |
 * | mailbox_take, mailbox_sleep, mailbox_awake | only the owner        |
 */
#ifndef WEIR_EVENT_MAILBOX_H
#define WEIR_EVENT_MAILBOX_H

#include <stdatomic.h>
#include <stdbool.h>

#include <weir/event.h>

#include "base/lock.h"

struct mailbox {
	WEIR_ALIGNED struct lock lock;
	struct weir_event *head WEIR_GUARDED_BY(lock);
	struct weir_event **tail WEIR_GUARDED_BY(lock);
	/* set if `head` is not NULL; written under the lock, read by the owner without it */
	atomic_bool full;
	atomic_bool sleeping; /* set by the owner when it is about to block */
	_Atomic int waking;   /* number of senders that call `wake` at the moment */
	int id;               /* unique among the mailboxes of the process; -1 if no id was free */
	void (*wake)(struct mailbox *mb);
};

/** Size of a set of outboxes. A thread has an outbox for each mailbox with an id. These outboxes
 *  are allocated in sets: the first set when the thread registers with the graph, each further set
 *  when the thread first sends to one of the set's mailboxes. */
#define MAILBOX_SET 64
/** Number of sets. So at most MAILBOX_SET * MAILBOX_SETS mailboxes have an id at a time. Mail to a
 *  mailbox without an id is not buffered and costs a lock for each event. */
#define MAILBOX_SETS 16

/** Initialise `mb`. Any thread. */
void mailbox_init(struct mailbox *mb, void (*wake)(struct mailbox *mb));
/** Release `mb`. The mailbox must be empty, and no thread may send to it any more. A sender whose
 *  mail has been taken may still be in mailbox_put; this call waits for it. */
void mailbox_fini(struct mailbox *mb);

struct outbox;

/** Allocate a set of outboxes for mailboxes, to be freed with free(). Returns NULL if out of
 *  memory. */
struct outbox *mailbox_outboxes_new(void);

/** Buffer `ev` in the calling thread's outbox for `mb`. If the thread has no outbox for `mb`, put
 *  `ev` into the mailbox immediately. */
void mailbox_send(struct mailbox *mb, struct weir_event *ev);

/** Append the NULL-terminated list head..*tail without buffering it, and wake the owner if it
 *  sleeps. */
void mailbox_put(struct mailbox *mb, struct weir_event *head, struct weir_event **tail);

/** Take all mail, in order. Returns NULL if the mailbox is empty, without taking the lock. */
struct weir_event *mailbox_take(struct mailbox *mb);

/** Set `sleeping` before the owner blocks. If mail has arrived, clears `sleeping` again and returns
 *  false, and the owner must not block. */
bool mailbox_sleep(struct mailbox *mb);

/** Clear `sleeping` after the owner has blocked. */
void mailbox_awake(struct mailbox *mb);

#endif
