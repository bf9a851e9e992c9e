/* SPDX-License-Identifier: MIT */
/*
 * The line writer; see access_log.h.
 *
 * The writer sleeps until there is a first line, then gives others `flush` to join it, or until the
 * buffer is half full. Its thread makes no events, so it is a plain thread: signals blocked, named,
 * joined in fini.
 */
#include "http/access_log.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <weir/error.h>
#include <weir/log.h>

#define NS_PER_S 1000000000LL

int log_writer_init(struct log_writer *w, int fd, size_t size, int64_t flush_ns)
{
	pthread_condattr_t attr;

	*w = (struct log_writer){.fd = fd, .size = size, .flush_ns = flush_ns};
	w->filling = malloc(size);
	w->writing = malloc(size);
	if (!w->filling || !w->writing) {
		free(w->filling);
		free(w->writing);
		return WEIR_ENOMEM;
	}
	pthread_mutex_init(&w->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&w->work, &attr);
	pthread_condattr_destroy(&attr);
	return 0;
}

/* Wait until there is something to write and a reason to write it now. */
static void wait_for_lines(struct log_writer *w)
{
	struct timespec until;
	int rc = 0;

	while (w->filled == 0 && !w->stop)
		pthread_cond_wait(&w->work, &w->lock);
	clock_gettime(CLOCK_MONOTONIC, &until);
	int64_t ns = until.tv_nsec + w->flush_ns;
	until.tv_sec += ns / NS_PER_S;
	until.tv_nsec = ns % NS_PER_S;
	while (rc != ETIMEDOUT && w->filled < w->size / 2 && !w->stop)
		rc = pthread_cond_timedwait(&w->work, &w->lock, &until);
}

static void write_all(struct log_writer *w, const char *p, size_t n)
{
	while (n > 0) {
		ssize_t done = write(w->fd, p, n);
		if (done == -1 && errno == EINTR)
			continue;
		if (done == -1) {
			if (!w->failed)
				weir_log(WEIR_LOG_ERROR,
				    "access log: %s; lines are lost (logged once)",
				    strerror(errno));
			w->failed = true;
			return;
		}
		p += done;
		n -= (size_t)done;
	}
}

/* Take the filled buffer, leave the empty one. Returns the bytes taken. */
static size_t swap(struct log_writer *w)
{
	char *full = w->filling;
	size_t n = w->filled;

	w->filling = w->writing;
	w->filled = 0;
	w->writing = full;
	return n;
}

static void *writer_main(void *arg)
{
	struct log_writer *w = arg;
	bool stop = false;

	while (!stop) {
		pthread_mutex_lock(&w->lock);
		wait_for_lines(w);
		size_t n = swap(w);
		stop = w->stop;
		pthread_mutex_unlock(&w->lock);
		write_all(w, w->writing, n);
	}
	return NULL;
}

int log_writer_start(struct log_writer *w)
{
	sigset_t all, old;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	w->running = pthread_create(&w->thread, NULL, writer_main, w) == 0;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!w->running)
		return WEIR_ESYS;
	pthread_setname_np(w->thread, "access_log");
	return 0;
}

void log_writer_fini(struct log_writer *w)
{
	if (w->running) {
		pthread_mutex_lock(&w->lock);
		w->stop = true;
		pthread_cond_signal(&w->work);
		pthread_mutex_unlock(&w->lock);
		pthread_join(w->thread, NULL);
		w->running = false;
	}
	write_all(w, w->filling, w->filled);
	pthread_cond_destroy(&w->work);
	pthread_mutex_destroy(&w->lock);
	free(w->filling);
	free(w->writing);
	w->filling = w->writing = NULL;
}

bool log_writer_add(struct log_writer *w, const char *line, size_t n)
{
	bool fits, wake;

	pthread_mutex_lock(&w->lock);
	fits = n <= w->size - w->filled;
	wake = w->filled == 0;
	if (fits) {
		memcpy(w->filling + w->filled, line, n);
		wake = wake || (w->filled < w->size / 2 && w->filled + n >= w->size / 2);
		w->filled += n;
	}
	pthread_mutex_unlock(&w->lock);
	if (fits && wake)
		pthread_cond_signal(&w->work);
	return fits;
}

size_t log_quote(char *out, size_t n, struct weir_slice s, size_t most)
{
	static const char hex[] = "0123456789abcdef";
	size_t used = s.n < most ? s.n : most;

	out[n++] = '"';
	for (size_t i = 0; i < used; i++) {
		uint8_t b = (uint8_t)s.p[i];
		if (b == '"' || b == '\\') {
			out[n++] = '\\';
			out[n++] = (char)b;
		} else if (b < 0x20 || b >= 0x7f) {
			out[n++] = '\\';
			out[n++] = 'x';
			out[n++] = hex[b >> 4];
			out[n++] = hex[b & 15];
		} else {
			out[n++] = (char)b;
		}
	}
	if (used < s.n) {
		memcpy(out + n, "...", 3);
		n += 3;
	}
	out[n++] = '"';
	return n;
}
