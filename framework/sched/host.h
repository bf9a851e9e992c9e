/* SPDX-License-Identifier: MIT */
/*
 * Cores whose threads belong to event loops: a source in a core group.
 *
 * Such a core (it is *hosted*) has no thread of its own. The thread of a loop (io/loop_core.c) is an
 * I/O thread from the start of its source to ops->fini, and between these it serves the group while
 * the group has that many cores. So what a source emits to stages of its group stays on the core, in
 * cells, and the answers go out in the same thread. If there is nothing to do, the thread blocks in
 * epoll instead of on its futex. A waker (pool_wake.c) writes to an eventfd that the loop watches.
 *
 *   EMPTY --host_claim--> STARTING --host_begin--> LIVE <--host_follow--> APART --host_release--> EMPTY
 *
 * LIVE: the thread is a core. APART: it serves only its loop, because the group has fewer cores now,
 * or the graph drains. A thread that a handler ends is replaced by the loop, with the core, its cells
 * and its seat unchanged.
 *
 * | call                     | threads                          |
 * |--------------------------|----------------------------------|
 * | host_claim, host_release | main thread                      |
 * | the other calls          | the thread of the loop           |
 */
#ifndef WEIR_SCHED_HOST_H
#define WEIR_SCHED_HOST_H

#include "sched/handler.h"

/** Number of events, and time in batches, after which a core looks at its sockets again. Choices of
 *  the design: beside either, a poll costs under 1 %. The time of the callbacks of sockets does not
 *  count: otherwise the events of the last ones of many would wait for the callbacks after the next
 *  poll, and their connections would leave the cache meanwhile. */
#define HOST_EVENTS 256
#define HOST_NS     (1 * NS_PER_MS)

/** Number of cores of the group of `pool` that loops may host; `pool` may be NULL. */
int host_cores(const struct pool *pool);

/** Reserve core `rank` for a loop. Returns 0, WEIR_EINVAL if there is no such core, WEIR_EBUSY if
 *  another loop has it, WEIR_ENOMEM or WEIR_ESYS. (*h)->wake_fd is the eventfd that the loop must
 *  watch, edge-triggered. It stays open until pool_free, since a waker that has taken the thread
 *  off the idle list may still write to it. */
int host_claim(struct pool *pool, int rank, struct handler **h);
/** The thread of the loop has ended, or has not begun. */
void host_release(struct handler *h);

/** Become a core, when the thread has been registered with its graph (thread_enter_core). */
void host_begin(struct handler *h);
/** Continue for a thread that has ended in a handler. */
void host_resume(struct handler *h);
/** The thread is ending in a handler, and thread_died has been called. */
void host_died(struct handler *h);

/** Join or leave the group as its number of cores demands. Returns whether the thread is a core. */
bool host_follow(struct handler *h);
/** The loop ends: leave the group. The events of the core go to the queues, or end if these are
 *  closed. */
void host_end(struct handler *h);

/** Whether a batch is due in a cell or queue. */
static inline bool host_due(struct handler *h)
{
	return h->pool->due(h);
}

/** The thread is about to run callbacks: if events wait for cores, wake another one for them. */
void host_pass_on(struct handler *h);

/** Run batches until there are none, or until they have had HOST_EVENTS events or have taken HOST_NS;
 *  then *spent is set. Adds to *batch_ns and *events. Returns whether there were any. Handlers run in
 *  this call. */
bool host_run(struct handler *h, int64_t *batch_ns, int *events, bool *spent);

/** Sleep by `sleep(arg, until_ns)`, which must return at the latest at `until_ns` (INT64_MAX: never)
 *  or when the eventfd has been written. Returns at once if a batch is due. */
void host_park(struct handler *h, void (*sleep)(void *arg, int64_t until_ns), void *arg);

/** host_spins(h, true) tells senders that the thread polls, so that they need not wake another one;
 *  after host_spins(h, false), host_due must be asked once more. */
void host_spins(struct handler *h, bool on);

#endif
