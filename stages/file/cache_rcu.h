/* SPDX-License-Identifier: MIT */
/*
 * RCU read sections of file.cache, with the annotations that ThreadSanitizer needs.
 *
 * The framework registers every thread of a graph with liburcu-memb, so handlers and taps need no
 * preparation. The main thread, which creates and destroys stages, is not registered;
 * cache_rcu_borrow registers it temporarily.
 *
 * liburcu itself is not instrumented, so TSan sees neither how an object is published through its
 * hash table nor that a grace period separates the last reader from the reclaim callback.
 * cache_rcu_release and cache_rcu_acquire declare both; tests/tsan.supp covers the internals of the
 * library.
 */
#ifndef WEIR_STAGES_FILE_CACHE_RCU_H
#define WEIR_STAGES_FILE_CACHE_RCU_H

#include <stdbool.h>
#include <urcu/urcu-memb.h>

#include <urcu/static/urcu-memb.h>

#ifdef WEIR_TSAN
#include <sanitizer/tsan_interface.h>
#define cache_rcu_release(p) __tsan_release(p)
#define cache_rcu_acquire(p) __tsan_acquire(p)
#else
#define cache_rcu_release(p) ((void)(p))
#define cache_rcu_acquire(p) ((void)(p))
#endif

/* Released by cache_rcu_read_unlock and acquired by the reclaim callback; for TSan only. */
extern char cache_rcu_epoch;

static inline void cache_rcu_read_lock(void)
{
	urcu_memb_read_lock();
}

static inline void cache_rcu_read_unlock(void)
{
	cache_rcu_release(&cache_rcu_epoch);
	urcu_memb_read_unlock();
}

/** Register the calling thread with RCU unless it is registered already. The caller passes the
 * result to cache_rcu_return. */
static inline bool cache_rcu_borrow(void)
{
	if (URCU_TLS(urcu_memb_reader).registered)
		return false;
	urcu_memb_register_thread();
	return true;
}

static inline void cache_rcu_return(bool borrowed)
{
	if (borrowed)
		urcu_memb_unregister_thread();
}

#endif
