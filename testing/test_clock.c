/* SPDX-License-Identifier: MIT */
/*
 * A clock that a test moves; see weir/test.h.
 *
 * The functions of libc that tell the time or wait for one are replaced for the whole process, since the
 * dynamic linker finds those of the program first. The time is the real one plus an offset. Absolute
 * times are converted for the kernel, which knows the real time only. Event loops wake each millisecond
 * to look at the time; a loop that wakes early waits again.
 */
#include <weir/test.h>

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000

typedef int (*timed_wait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);

static _Atomic int64_t offset_ns;

static struct timespec shifted(const struct timespec *ts, int64_t by_ns)
{
	int64_t ns = (int64_t)ts->tv_sec * NS_PER_S + ts->tv_nsec + by_ns;

	ns = ns > 0 ? ns : 0;
	return (struct timespec){.tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S};
}

/* Whether the clock tells a time, rather than the CPU time of something. */
static bool moves(clockid_t id)
{
	return id == CLOCK_REALTIME || id == CLOCK_MONOTONIC || id == CLOCK_MONOTONIC_RAW ||
	       id == CLOCK_REALTIME_COARSE || id == CLOCK_MONOTONIC_COARSE || id == CLOCK_BOOTTIME;
}

int clock_gettime(clockid_t id, struct timespec *ts)
{
	int rc = (int)syscall(SYS_clock_gettime, id, ts);

	if (rc == 0 && moves(id))
		*ts = shifted(ts, atomic_load(&offset_ns));
	return rc;
}

int epoll_wait(int fd, struct epoll_event *events, int n, int timeout)
{
	/* with a signal mask of NULL, epoll_pwait is epoll_wait */
	return (int)syscall(
	    SYS_epoll_pwait, fd, events, n, timeout == 0 ? 0 : 1, NULL, (size_t)_NSIG / 8);
}

int pthread_cond_timedwait(
    pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *until)
{
	static _Atomic timed_wait next;
	struct timespec real = shifted(until, -atomic_load(&offset_ns));
	timed_wait fn = atomic_load(&next);

	if (!fn) {
		*(void **)&fn = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
		atomic_store(&next, fn);
	}
	return fn(cond, mutex, &real);
}

int clock_nanosleep(clockid_t id, int flags, const struct timespec *until, struct timespec *left)
{
	bool absolute = (flags & TIMER_ABSTIME) && moves(id);
	struct timespec real = absolute ? shifted(until, -atomic_load(&offset_ns)) : *until;

	return syscall(SYS_clock_nanosleep, id, flags, &real, left) == 0 ? 0 : errno;
}

void weir_test_clock_advance(int64_t ns)
{
	atomic_fetch_add(&offset_ns, ns);
}
