/* SPDX-License-Identifier: MIT */
/*
 * Compiler annotations: visibility, thread-safety documentation, branch hints.
 *
 * clang 14 checks capability attributes on functions in C but cannot compile guarded_by on a struct
 * member. So WEIR_GUARDED_BY is only documentation, while WEIR_REQUIRES is checked.
 */
#ifndef WEIR_ANNOTATE_H
#define WEIR_ANNOTATE_H

/** Around the declarations of a header: C linkage in a C++ program. */
#ifdef __cplusplus
#define WEIR_C_BEGIN extern "C" {
#define WEIR_C_END   }
#else
#define WEIR_C_BEGIN
#define WEIR_C_END
#endif

#define WEIR_API __attribute__((visibility("default")))

/** Size of a cache line in bytes. Fields with different writers belong on different lines. */
#define WEIR_CACHE_LINE 64
#define WEIR_ALIGNED    __attribute__((aligned(WEIR_CACHE_LINE)))

#define WEIR_GUARDED_BY(lock)
#if defined(__clang__)
#define WEIR_CAPABILITY(name) __attribute__((capability(name)))
#define WEIR_REQUIRES(...)    __attribute__((requires_capability(__VA_ARGS__)))
#define WEIR_ACQUIRE(...)     __attribute__((acquire_capability(__VA_ARGS__)))
#define WEIR_TRY_ACQUIRE(...) __attribute__((try_acquire_capability(__VA_ARGS__)))
#define WEIR_RELEASE(...)     __attribute__((release_capability(__VA_ARGS__)))
#define WEIR_EXCLUDES(...)    __attribute__((locks_excluded(__VA_ARGS__)))
#define WEIR_NO_THREAD_SAFETY __attribute__((no_thread_safety_analysis))
#else
#define WEIR_CAPABILITY(name)
#define WEIR_REQUIRES(...)
#define WEIR_ACQUIRE(...)
#define WEIR_TRY_ACQUIRE(...)
#define WEIR_RELEASE(...)
#define WEIR_EXCLUDES(...)
#define WEIR_NO_THREAD_SAFETY
#endif

#define WEIR_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define WEIR_MUST_CHECK        __attribute__((warn_unused_result))
#define WEIR_LIKELY(x)         __builtin_expect(!!(x), 1)
#define WEIR_UNLIKELY(x)       __builtin_expect(!!(x), 0)
/** For a rarely called function with a large stack frame: it is not inlined, so its frame does not
 *  enlarge the caller's. */
#define WEIR_COLD __attribute__((noinline, cold))

#endif
