/* SPDX-License-Identifier: MIT */
/* A thread with a working directory of its own; see home.h. */
#include "home.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/task.h"

struct home {
	struct task task;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* under the lock */
	bool begun, ends;
	int error;          /* errno of unshare */
	void (*fn)(void *); /* to be called; NULL if there is nothing to do */
	void *arg;
};

static void *home_main(void *arg)
{
	struct home *h = arg;
	int error = unshare(CLONE_FS) == 0 ? 0 : errno;

	pthread_mutex_lock(&h->lock);
	h->begun = true;
	h->error = error;
	pthread_cond_broadcast(&h->changed);
	for (;;) {
		while (!h->fn && !h->ends)
			pthread_cond_wait(&h->changed, &h->lock);
		if (!h->fn)
			break;
		void (*fn)(void *) = h->fn;
		pthread_mutex_unlock(&h->lock);
		fn(h->arg);
		pthread_mutex_lock(&h->lock);
		h->fn = NULL;
		pthread_cond_broadcast(&h->changed);
	}
	pthread_mutex_unlock(&h->lock);
	return NULL;
}

/* Whether the folder of the file at `path` is the working directory. */
static bool is_here(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : NULL;
	struct stat here, there;
	bool same = !slash || (folder && stat(".", &here) == 0 && stat(folder, &there) == 0 &&
				  here.st_dev == there.st_dev && here.st_ino == there.st_ino);

	free(folder);
	return same;
}

int home_start(const char *path, struct home **home, struct weir_errs *errs)
{
	struct home *h = calloc(1, sizeof(*h));

	*home = NULL;
	if (!h)
		return weir_errs_add(errs, NULL, WEIR_ENOMEM, NULL, "out of memory");
	pthread_mutex_init(&h->lock, NULL);
	pthread_cond_init(&h->changed, NULL);
	if (task_start(&h->task, "home", home_main, h) != 0) {
		free(h);
		return weir_errs_add(
		    errs, NULL, WEIR_ESYS, NULL, "the thread of the server cannot be created");
	}
	pthread_mutex_lock(&h->lock);
	while (!h->begun)
		pthread_cond_wait(&h->changed, &h->lock);
	int error = h->error;
	pthread_mutex_unlock(&h->lock);
	*home = h;
	if (error == 0 || is_here(path))
		return 0;
	home_end(h);
	*home = NULL;
	return weir_errs_add(errs, NULL, WEIR_ESYS,
	    "make the folder of the file the working directory of the program",
	    "the server cannot have a working directory of its own: unshare: %s", strerror(error));
}

void home_call(struct home *h, void (*fn)(void *arg), void *arg)
{
	pthread_mutex_lock(&h->lock);
	h->arg = arg;
	h->fn = fn;
	pthread_cond_broadcast(&h->changed);
	while (h->fn)
		pthread_cond_wait(&h->changed, &h->lock);
	pthread_mutex_unlock(&h->lock);
}

void home_end(struct home *h)
{
	if (!h)
		return;
	pthread_mutex_lock(&h->lock);
	h->ends = true;
	pthread_cond_broadcast(&h->changed);
	pthread_mutex_unlock(&h->lock);
	task_join(&h->task);
	pthread_cond_destroy(&h->changed);
	pthread_mutex_destroy(&h->lock);
	free(h);
}
