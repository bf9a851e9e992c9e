/* SPDX-License-Identifier: MIT */
/*
 * Injects failures with ld's --wrap. The n-th call of an allocation function (or of mmap), of
 * epoll_ctl (except removals) or of pthread_create fails. Or every call of accept4 fails for a
 * while. Or every second call that moves bytes through a socket fails with EINTR. All calls from
 * weir's own objects are wrapped, those of libraries are not. Calls are counted across threads.
 */
#ifndef WEIR_TESTS_FAULT_INJECT_H
#define WEIR_TESTS_FAULT_INJECT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* Calls left until one fails; negative: none fails. */
extern atomic_long fault_alloc_in, fault_thread_in, fault_epoll_in;
extern atomic_long fault_fired;
/* accept4 fails with this error that many times; negative: until it is set to 0. */
extern atomic_int fault_accept_errno, fault_accept_times;
/* Calls of accept4, and returns from epoll_wait. */
extern atomic_long fault_accepts, fault_wakes;

/* When set, only calls of threads with fault_mine count, and mmap counts as well. */
extern atomic_bool fault_of_mine;
extern _Thread_local bool fault_mine;
/* When set, all calls after the failing one fail too, until the count is set again. */
extern atomic_bool fault_goes_on;

/* ---- EINTR ---- */

/* When set, every second call of the server's threads is interrupted. fault_interrupted counts the
 * interrupted calls. A test sets fault_client for its own thread. */
extern atomic_bool fault_interrupts;
extern atomic_long fault_calls, fault_interrupted;
extern _Thread_local bool fault_client;

/* What weir calls instead of malloc; a test gives it to libraries that take an allocator. */
void *__wrap_malloc(size_t n);

#endif
