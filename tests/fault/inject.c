/* SPDX-License-Identifier: MIT */
#include "fault/inject.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>

#include <openssl/bio.h>

atomic_long fault_alloc_in = -1, fault_thread_in = -1, fault_epoll_in = -1;
atomic_long fault_fired;
atomic_int fault_accept_errno, fault_accept_times;
atomic_long fault_accepts, fault_wakes;

atomic_bool fault_of_mine;
_Thread_local bool fault_mine;
atomic_bool fault_goes_on;

static bool fault_due(atomic_long *in)
{
	if (atomic_load(in) < 0 || (atomic_load(&fault_of_mine) && !fault_mine))
		return false;
	if (atomic_fetch_sub(in, 1) != 0)
		return false;
	if (atomic_load(&fault_goes_on))
		atomic_fetch_add(in, 1);
	atomic_fetch_add(&fault_fired, 1);
	return true;
}

void *__real_malloc(size_t n);
void *__real_calloc(size_t m, size_t n);
void *__real_realloc(void *p, size_t n);
void *__real_aligned_alloc(size_t a, size_t n);
char *__real_strdup(const char *s);
char *__real_strndup(const char *s, size_t n);
void *__real_mmap(void *at, size_t n, int prot, int flags, int fd, off_t off);
int __real_epoll_ctl(int epoll_fd, int op, int fd, struct epoll_event *ev);
int __real_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*fn)(void *), void *arg);

void *__wrap_malloc(size_t n)
{
	return fault_due(&fault_alloc_in) ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t m, size_t n);
void *__wrap_calloc(size_t m, size_t n)
{
	return fault_due(&fault_alloc_in) ? NULL : __real_calloc(m, n);
}

void *__wrap_realloc(void *p, size_t n);
void *__wrap_realloc(void *p, size_t n)
{
	return fault_due(&fault_alloc_in) ? NULL : __real_realloc(p, n);
}

void *__wrap_aligned_alloc(size_t a, size_t n);
void *__wrap_aligned_alloc(size_t a, size_t n)
{
	return fault_due(&fault_alloc_in) ? NULL : __real_aligned_alloc(a, n);
}

char *__wrap_strdup(const char *s);
char *__wrap_strdup(const char *s)
{
	return fault_due(&fault_alloc_in) ? NULL : __real_strdup(s);
}

char *__wrap_strndup(const char *s, size_t n);
char *__wrap_strndup(const char *s, size_t n)
{
	return fault_due(&fault_alloc_in) ? NULL : __real_strndup(s, n);
}

void *__wrap_mmap(void *at, size_t n, int prot, int flags, int fd, off_t off);
void *__wrap_mmap(void *at, size_t n, int prot, int flags, int fd, off_t off)
{
	if (!atomic_load(&fault_of_mine) || !fault_due(&fault_alloc_in))
		return __real_mmap(at, n, prot, flags, fd, off);
	errno = ENOMEM;
	return MAP_FAILED;
}

int __wrap_epoll_ctl(int epoll_fd, int op, int fd, struct epoll_event *ev);
int __wrap_epoll_ctl(int epoll_fd, int op, int fd, struct epoll_event *ev)
{
	if (op == EPOLL_CTL_DEL || !fault_due(&fault_epoll_in))
		return __real_epoll_ctl(epoll_fd, op, fd, ev);
	errno = ENOMEM;
	return -1;
}

int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*fn)(void *), void *arg);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*fn)(void *), void *arg)
{
	return fault_due(&fault_thread_in) ? EAGAIN : __real_pthread_create(t, a, fn, arg);
}

int __real_accept4(int fd, struct sockaddr *addr, socklen_t *n, int flags);
int __real_epoll_wait(int epoll_fd, struct epoll_event *ev, int n, int timeout_ms);

int __wrap_accept4(int fd, struct sockaddr *addr, socklen_t *n, int flags);
int __wrap_accept4(int fd, struct sockaddr *addr, socklen_t *n, int flags)
{
	int times = atomic_load(&fault_accept_times);

	atomic_fetch_add(&fault_accepts, 1);
	if (times == 0)
		return __real_accept4(fd, addr, n, flags);
	if (times > 0)
		atomic_fetch_sub(&fault_accept_times, 1);
	errno = atomic_load(&fault_accept_errno);
	return -1;
}

int __wrap_epoll_wait(int epoll_fd, struct epoll_event *ev, int n, int timeout_ms);
int __wrap_epoll_wait(int epoll_fd, struct epoll_event *ev, int n, int timeout_ms)
{
	int ready = __real_epoll_wait(epoll_fd, ev, n, timeout_ms);

	atomic_fetch_add(&fault_wakes, 1);
	return ready;
}

/* ---- EINTR ---- */

atomic_bool fault_interrupts;
atomic_long fault_calls, fault_interrupted;
_Thread_local bool fault_client;

static bool fault_interrupt(void)
{
	if (!atomic_load(&fault_interrupts) || fault_client ||
	    atomic_fetch_add(&fault_calls, 1) % 2 != 0)
		return false;
	atomic_fetch_add(&fault_interrupted, 1);
	errno = EINTR;
	return true;
}

#define FAULT_INTERRUPT(type, name, parameters, ...)                                               \
	type __real_##name parameters;                                                             \
	type __wrap_##name parameters;                                                             \
	type __wrap_##name parameters                                                              \
	{                                                                                          \
		return fault_interrupt() ? -1 : __real_##name(__VA_ARGS__);                        \
	}

FAULT_INTERRUPT(ssize_t, recv, (int fd, void *p, size_t n, int flags), fd, p, n, flags)
FAULT_INTERRUPT(ssize_t, send, (int fd, const void *p, size_t n, int flags), fd, p, n, flags)
FAULT_INTERRUPT(ssize_t, sendmsg, (int fd, const struct msghdr *m, int flags), fd, m, flags)
FAULT_INTERRUPT(ssize_t, sendfile, (int out, int in, off_t *offset, size_t n), out, in, offset, n)

#define FAULT_INTERRUPT_BIO(name, pointer, way)                                                    \
	int __real_##name(BIO *b, pointer p, int n);                                               \
	int __wrap_##name(BIO *b, pointer p, int n);                                               \
	int __wrap_##name(BIO *b, pointer p, int n)                                                \
	{                                                                                          \
		if (BIO_method_type(b) != BIO_TYPE_SOCKET || !fault_interrupt())                   \
			return __real_##name(b, p, n);                                             \
		BIO_clear_retry_flags(b);                                                          \
		BIO_set_retry_##way(b); /* as OpenSSL does */                                      \
		errno = EINTR;                                                                     \
		return -1;                                                                         \
	}

FAULT_INTERRUPT_BIO(BIO_read, void *, read)
FAULT_INTERRUPT_BIO(BIO_write, const void *, write)
