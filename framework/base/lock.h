/* SPDX-License-Identifier: MIT */
/*
 * Mutexes with thread-safety annotations. Debug builds also check at run time that a lock that is
 * released is held.
 *
 * Lock order (a thread that holds a lock may take only locks to its right):
 *
 *   graph.lock (start, drain, set) > core_group.asking > tickets.lock > pool.lock (resize, idle list) > queue.lock
 *     > mailbox.lock
 *
 * Of the queue locks of one core group, a thread may hold several: it takes them in the order of the
 * stages in the group (sched/serial_move.c).
 *
 * The lock of a search for families (event/family.c), which a control thread takes without holding any
 * other lock, precedes pool.lock.
 *
 * graph.threads_lock, stage.conf_lock, core_group.lock, widener.lock, journal.lock,
 * change_log.lock, registry_lock, slowest.lock and taps.lock are leaf locks: no lock is taken while
 * one of them is held. Views take inheritance.lock, which precedes queue.lock and threads_lock; of
 * several inheritance locks, that of the newest graph is taken first.
 *
 * No lock is held across a handler, a finish callback, a log call or a join. Mutexes are
 * adaptive: critical sections here take tens of ns, so a short spin is cheaper than a futex call.
 */
#ifndef WEIR_BASE_LOCK_H
#define WEIR_BASE_LOCK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <weir/annotate.h>
#include <weir/error.h>

struct WEIR_CAPABILITY("mutex") lock {
	pthread_mutex_t mutex;
#ifndef NDEBUG
	_Atomic(unsigned long) owner; /* pthread_self() of the holder, or 0 */
#endif
};

static inline void lock_init(struct lock *l)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
#ifdef __GLIBC__
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ADAPTIVE_NP);
#endif
	int rc = pthread_mutex_init(&l->mutex, &attr);
	WEIR_ASSERT(rc == 0);
	pthread_mutexattr_destroy(&attr);
#ifndef NDEBUG
	atomic_init(&l->owner, 0);
#endif
}

static inline void lock_fini(struct lock *l)
{
	pthread_mutex_destroy(&l->mutex);
}

static inline void lock_take(struct lock *l) WEIR_ACQUIRE(l) WEIR_NO_THREAD_SAFETY
{
	int rc = pthread_mutex_lock(&l->mutex);
	WEIR_ASSERT(rc == 0);
#ifndef NDEBUG
	atomic_store_explicit(&l->owner, (unsigned long)pthread_self(), memory_order_relaxed);
#endif
}

static inline bool lock_try(struct lock *l) WEIR_TRY_ACQUIRE(true, l) WEIR_NO_THREAD_SAFETY
{
	if (pthread_mutex_trylock(&l->mutex) != 0)
		return false;
#ifndef NDEBUG
	atomic_store_explicit(&l->owner, (unsigned long)pthread_self(), memory_order_relaxed);
#endif
	return true;
}

/** In debug builds, abort unless the calling thread holds `l`. */
static inline void lock_assert_held(const struct lock *l)
{
#ifndef NDEBUG
	WEIR_ASSERT(
	    atomic_load_explicit(&l->owner, memory_order_relaxed) == (unsigned long)pthread_self());
#else
	(void)l;
#endif
}

/** In debug builds, abort unless the calling thread holds `l`. */
static inline void lock_release(struct lock *l) WEIR_RELEASE(l) WEIR_NO_THREAD_SAFETY
{
	lock_assert_held(l);
#ifndef NDEBUG
	atomic_store_explicit(&l->owner, 0, memory_order_relaxed);
#endif
	pthread_mutex_unlock(&l->mutex);
}

#endif
