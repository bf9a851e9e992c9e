/* SPDX-License-Identifier: MIT */
/* Descriptors shared by the responses of a handover; see handed_file.h. */
#include "http/server/handed_file.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Maximum number of files that a thread remembers. The search is linear; for 64 files it costs less
 * than the fstat before it. Responses with other files get descriptors of their own. */
#define FILES_MAX 64

struct handed_file {
	struct handed_file *next;
	atomic_int refs;
	int fd;
	dev_t dev;
	ino_t ino;
};

static struct handed_file *find(const struct handed_files *files, const struct stat *st)
{
	struct handed_file *f = files->first;

	while (f && (f->dev != st->st_dev || f->ino != st->st_ino))
		f = f->next;
	return f;
}

static struct handed_file *file_new(int fd, const struct stat *st)
{
	struct handed_file *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (f->fd == -1) {
		free(f);
		return NULL;
	}
	f->dev = st->st_dev;
	f->ino = st->st_ino;
	atomic_init(&f->refs, 1);
	return f;
}

struct handed_file *handed_file_get(struct handed_files *files, int fd)
{
	struct stat st;

	if (fstat(fd, &st) == -1)
		return NULL;
	struct handed_file *f = find(files, &st);
	if (!f) {
		f = file_new(fd, &st);
		if (!f || files->n == FILES_MAX)
			return f;
		f->next = files->first;
		files->first = f;
		files->n++;
	}
	atomic_fetch_add_explicit(&f->refs, 1, memory_order_relaxed);
	return f;
}

int handed_file_fd(const struct handed_file *f)
{
	return f->fd;
}

void handed_file_put(struct handed_file *f)
{
	/* acq_rel: everything the other holders did happens before the close */
	if (!f || atomic_fetch_sub_explicit(&f->refs, 1, memory_order_acq_rel) != 1)
		return;
	close(f->fd);
	free(f);
}

void handed_files_forget(struct handed_files *files)
{
	struct handed_file *next;

	for (struct handed_file *f = files->first; f; f = next) {
		next = f->next;
		handed_file_put(f);
	}
	*files = (struct handed_files){0};
}
