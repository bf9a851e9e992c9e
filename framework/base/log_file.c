/* SPDX-License-Identifier: MIT */
/*
 * Writes log files through a buffer and a writer thread; see weir/log_file.h. The writer thread
 * sleeps until a line arrives, then waits until `flush_ns` has passed or the buffer is half full,
 * and writes all lines together. log_target.c has the destinations.
 */
#include <weir/log_file.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log_target.h"
#include "base/task.h"

struct weir_log_file {
	struct task task;
	bool running;
	int64_t flush_ns;
	size_t size;                        /* size of each buffer */
	struct weir_log_file *next, **prev; /* list of all open files; guarded by `all_lock` */
	pthread_mutex_t lock;
	pthread_cond_t work;
	char *filling WEIR_GUARDED_BY(lock); /* a buffer of `size` bytes */
	size_t filled WEIR_GUARDED_BY(lock);
	bool stop WEIR_GUARDED_BY(lock);
	char *order WEIR_GUARDED_BY(lock); /* target that the writer must open, owned; or NULL */
	char *name WEIR_GUARDED_BY(lock);  /* name of the last requested target */
	char *writing;                     /* a buffer of `size` bytes; used by the writer only */
	struct log_target target;          /* used by the writer only */
};

static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static struct weir_log_file *all WEIR_GUARDED_BY(all_lock);

static void enlist(struct weir_log_file *f)
{
	pthread_mutex_lock(&all_lock);
	f->next = all;
	f->prev = &all;
	if (all)
		all->prev = &f->next;
	all = f;
	pthread_mutex_unlock(&all_lock);
}

static void delist(struct weir_log_file *f)
{
	pthread_mutex_lock(&all_lock);
	*f->prev = f->next;
	if (f->next)
		f->next->prev = f->prev;
	pthread_mutex_unlock(&all_lock);
}

static void buffers_free(struct weir_log_file *f)
{
	free(f->filling);
	free(f->writing);
	free(f->order);
	free(f->name);
	free(f);
}

int weir_log_file_open(const char *target, size_t buffer_bytes, int64_t flush_ns,
    struct weir_log_file **out, struct weir_err *err)
{
	struct weir_log_file *f = calloc(1, sizeof(*f));
	pthread_condattr_t attr;
	int rc = WEIR_ENOMEM;

	*out = NULL;
	if (!f)
		return rc;
	f->size = buffer_bytes;
	f->flush_ns = flush_ns;
	f->filling = malloc(buffer_bytes);
	f->writing = malloc(buffer_bytes);
	f->name = strdup(target);
	if (f->filling && f->writing && f->name)
		rc = log_target_open(&f->target, target, false, err);
	if (rc != 0) {
		buffers_free(f);
		return rc;
	}
	pthread_mutex_init(&f->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&f->work, &attr);
	pthread_condattr_destroy(&attr);
	enlist(f);
	*out = f;
	return 0;
}

/* Wait until lines must be written, a target must be opened, or the writer must stop. Lines must be
 * written `flush_ns` after the first of them, or when the buffer is half full. Called with the lock
 * held. */
static void wait_for_work(struct weir_log_file *f)
{
	struct timespec until;
	int rc = 0;

	while (f->filled == 0 && !f->stop && !f->order)
		pthread_cond_wait(&f->work, &f->lock);
	clock_gettime(CLOCK_MONOTONIC, &until);
	int64_t ns = until.tv_nsec + f->flush_ns;
	until.tv_sec += ns / NS_PER_S;
	until.tv_nsec = ns % NS_PER_S;
	while (rc != ETIMEDOUT && f->filled < f->size / 2 && !f->stop && !f->order)
		rc = pthread_cond_timedwait(&f->work, &f->lock, &until);
}

/* Swap the two buffers, so that `writing` is the filled one. Returns the number of bytes in it.
 * Called with the lock held. */
static size_t swap(struct weir_log_file *f)
{
	char *full = f->filling;
	size_t n = f->filled;

	f->filling = f->writing;
	f->filled = 0;
	f->writing = full;
	return n;
}

static bool stopping(void *arg)
{
	struct weir_log_file *f = arg;

	pthread_mutex_lock(&f->lock);
	bool stop = f->stop;
	pthread_mutex_unlock(&f->lock);
	return stop;
}

static void *writer_main(void *arg)
{
	struct weir_log_file *f = arg;
	bool stop = false;

	while (!stop) {
		pthread_mutex_lock(&f->lock);
		wait_for_work(f);
		size_t n = swap(f);
		char *order = f->order;
		f->order = NULL;
		stop = f->stop;
		pthread_mutex_unlock(&f->lock);
		log_target_write(&f->target, f->writing, n, stopping, f);
		if (order)
			log_target_move(&f->target, order);
		free(order);
	}
	return NULL;
}

/* Open a target that was only checked when the log was opened; create the file if necessary. */
static int make_target(struct weir_log_file *f, struct weir_err *err)
{
	return f->target.absent ? log_target_open(&f->target, f->name, true, err) : 0;
}

int weir_log_file_start(struct weir_log_file *f, const char *name, struct weir_err *err)
{
	int rc = make_target(f, err);

	if (rc != 0)
		return rc;
	rc = task_start(&f->task, name, writer_main, f);
	f->running = rc == 0;
	if (rc != 0)
		snprintf(err->text, sizeof(err->text), "the writer thread could not be created");
	return rc;
}

void weir_log_file_close(struct weir_log_file *f)
{
	if (!f)
		return;
	delist(f);
	pthread_mutex_lock(&f->lock);
	f->stop = true;
	pthread_cond_signal(&f->work);
	pthread_mutex_unlock(&f->lock);
	if (f->running)
		task_join(&f->task);
	if (f->filled == 0 || make_target(f, &(struct weir_err){0}) == 0)
		log_target_write(&f->target, f->filling, f->filled, stopping, f);
	log_target_close(&f->target);
	pthread_cond_destroy(&f->work);
	pthread_mutex_destroy(&f->lock);
	buffers_free(f);
}

bool weir_log_file_add(
    struct weir_log_file *f, enum weir_log_level level, const char *line, size_t n)
{
	bool fits, wake;

	pthread_mutex_lock(&f->lock);
	fits = n + 1 <= f->size - f->filled;
	wake = f->filled == 0;
	if (fits) {
		f->filling[f->filled] = log_target_mark(level);
		memcpy(f->filling + f->filled + 1, line, n);
		wake = wake || (f->filled < f->size / 2 && f->filled + n + 1 >= f->size / 2);
		f->filled += n + 1;
	}
	pthread_mutex_unlock(&f->lock);
	if (fits && wake)
		pthread_cond_signal(&f->work);
	return fits;
}

/* Make the writer switch to the target `name`, or reopen the current one if `name` is NULL. Called
 * with f->lock held. */
static int order(struct weir_log_file *f, const char *name)
{
	char *a = strdup(name ? name : f->name), *b = name ? strdup(name) : NULL;

	if (!a || (name && !b)) {
		free(a);
		free(b);
		return WEIR_ENOMEM;
	}
	free(f->order);
	f->order = a;
	if (b) {
		free(f->name);
		f->name = b;
	}
	pthread_cond_signal(&f->work);
	return 0;
}

int weir_log_file_move(struct weir_log_file *f, const char *target)
{
	pthread_mutex_lock(&f->lock);
	int rc = order(f, target);
	pthread_mutex_unlock(&f->lock);
	return rc;
}

void weir_log_reopen(void)
{
	pthread_mutex_lock(&all_lock);
	for (struct weir_log_file *f = all; f; f = f->next) {
		pthread_mutex_lock(&f->lock);
		(void)order(
		    f, NULL); /* if out of memory, the old file stays open until the next call */
		pthread_mutex_unlock(&f->lock);
	}
	pthread_mutex_unlock(&all_lock);
}
