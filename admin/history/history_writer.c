/* SPDX-License-Identifier: MIT */
/*
 * Writes the history file in a thread; see history_writer.h. The thread uses pwrite instead of a
 * mapping. With a mapping, a full disk or a file truncated by another process would raise a signal
 * that kills the server.
 */
#include "history_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include <weir/error.h>
#include <weir/log.h>

#define NS_PER_S 1000000000LL

struct history_writer {
	/* used only by the thread */
	int fd; /* the current file, locked */
	char *path, *new_path;
	/* used by any thread */
	atomic_bool failing; /* the last write failed or is late, and that has been logged */
	pthread_mutex_t lock;
	pthread_cond_t changed; /* waits use CLOCK_MONOTONIC */
	/* under the lock */
	struct history_job job;
	bool busy, ok;
	bool stopping;
	bool ended;     /* the thread no longer accesses this struct */
	bool abandoned; /* the owner does not join this thread, so it frees everything itself */
	pthread_t thread;
};

static void writer_free(struct history_writer *w)
{
	if (w->fd >= 0)
		close(w->fd);
	free(w->job.data);
	pthread_cond_destroy(&w->changed);
	pthread_mutex_destroy(&w->lock);
	free(w->path);
	free(w->new_path);
	free(w);
}

/* ---- the thread ---- */

static void fails(struct history_writer *w, const char *what, const char *why)
{
	if (!atomic_exchange(&w->failing, true))
		weir_log(WEIR_LOG_WARN, "admin: history file %s: %s: %s", w->path, what, why);
}

static bool write_all(int fd, const char *p, size_t n, size_t at)
{
	while (n > 0) {
		ssize_t put = pwrite(fd, p, n, (off_t)at);
		if (put < 0 && errno != EINTR)
			return false;
		put = put > 0 ? put : 0;
		p += put;
		at += (size_t)put;
		n -= (size_t)put;
	}
	return true;
}

static bool write_runs(const struct history_writer *w, const struct history_job *job)
{
	const char *p = job->data;
	bool ok = true;

	for (int i = 0; ok && i < job->n_runs; i++) {
		ok = write_all(w->fd, p, job->run[i].n, job->run[i].at);
		p += job->run[i].n;
	}
	return ok;
}

/* Write a new file beside the old one, then rename it into place. */
static bool write_whole(struct history_writer *w, const struct history_job *job)
{
	int fd = open(w->new_path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);
	/* If it is locked, another server is writing it. */
	bool ours = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;

	if (ours && ftruncate(fd, 0) == 0 && write_all(fd, job->data, job->n, 0) &&
	    rename(w->new_path, w->path) == 0) {
		if (w->fd >= 0)
			close(w->fd);
		w->fd = fd;
		return true;
	}
	int saved = errno;
	if (ours)
		unlink(w->new_path);
	if (fd >= 0)
		close(fd);
	errno = saved;
	return false;
}

static bool write_job(struct history_writer *w, const struct history_job *job)
{
	bool ok = job->whole ? write_whole(w, job) : write_runs(w, job);

	if (ok)
		atomic_store(&w->failing, false);
	else
		fails(w, job->whole ? "it cannot be written" : "a sample cannot be written",
		    strerror(errno));
	return ok;
}

static void *writer_run(void *arg)
{
	struct history_writer *w = arg;

	pthread_mutex_lock(&w->lock);
	for (;;) {
		while (!w->busy && !w->stopping)
			pthread_cond_wait(&w->changed, &w->lock);
		if (!w->busy)
			break;
		struct history_job job = w->job;
		pthread_mutex_unlock(&w->lock);
		bool ok = write_job(w, &job);
		free(job.data);
		pthread_mutex_lock(&w->lock);
		w->job.data = NULL;
		w->ok = ok;
		w->busy = false;
		pthread_cond_broadcast(&w->changed);
	}
	bool abandoned = w->abandoned;
	w->ended = true;
	pthread_cond_broadcast(&w->changed);
	pthread_mutex_unlock(&w->lock);
	if (abandoned)
		writer_free(w);
	return NULL;
}

/* ---- the owner ---- */

static int start_thread(struct history_writer *w)
{
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int rc = pthread_create(&w->thread, NULL, writer_run, w);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc == 0)
		pthread_setname_np(w->thread, "history");
	return rc;
}

static void init_locks(struct history_writer *w)
{
	pthread_condattr_t monotonic;

	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&w->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	pthread_mutex_init(&w->lock, NULL);
}

struct history_writer *history_writer_new(const char *path, int fd)
{
	struct history_writer *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->fd = -1;
	w->ok = true;
	init_locks(w);
	w->path = strdup(path);
	if (w->path && asprintf(&w->new_path, "%s.new", path) > 0 && start_thread(w) == 0) {
		w->fd = fd; /* the thread does not read it before the first post */
		return w;
	}
	writer_free(w);
	return NULL;
}

bool history_writer_idle(struct history_writer *w, bool *ok)
{
	pthread_mutex_lock(&w->lock);
	bool idle = !w->busy;
	*ok = w->ok;
	pthread_mutex_unlock(&w->lock);
	return idle;
}

void history_writer_post(struct history_writer *w, const struct history_job *job)
{
	pthread_mutex_lock(&w->lock);
	WEIR_ASSERT(!w->busy);
	w->job = *job;
	w->busy = true;
	pthread_cond_broadcast(&w->changed);
	pthread_mutex_unlock(&w->lock);
}

/* Wait until *what equals `wanted`. Returns false on timeout. The caller holds the lock. */
static bool wait_for(struct history_writer *w, const bool *what, bool wanted, int64_t until_ns)
{
	const struct timespec until = {
	    .tv_sec = until_ns / NS_PER_S, .tv_nsec = until_ns % NS_PER_S};
	int rc = 0;

	while (*what != wanted && rc != ETIMEDOUT)
		rc = pthread_cond_timedwait(&w->changed, &w->lock, &until);
	return *what == wanted;
}

bool history_writer_wait(struct history_writer *w, int64_t until_ns)
{
	pthread_mutex_lock(&w->lock);
	bool idle = wait_for(w, &w->busy, false, until_ns);
	pthread_mutex_unlock(&w->lock);
	return idle;
}

bool history_writer_failing(const struct history_writer *w)
{
	return atomic_load(&w->failing);
}

void history_writer_late(struct history_writer *w)
{
	fails(w, "a write has not ended", "the disk is slow or hangs");
}

bool history_writer_end(struct history_writer *w, int64_t until_ns)
{
	pthread_mutex_lock(&w->lock);
	w->stopping = true;
	pthread_cond_broadcast(&w->changed);
	bool ended = wait_for(w, &w->ended, true, until_ns);
	w->abandoned = !ended;
	pthread_t thread = w->thread;
	if (!ended)
		pthread_detach(thread);
	pthread_mutex_unlock(&w->lock);
	if (!ended)
		return false;
	pthread_join(thread, NULL);
	writer_free(w);
	return true;
}
