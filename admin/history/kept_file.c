/* SPDX-License-Identifier: MIT */
/* Opens, locks and loads a file that a server keeps; see kept_file.h. */
#include "kept_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weir/log.h>

const char kept_no_memory[] = "memory ran out";

void kept_file_fails(const struct kept_file *f, const char *what)
{
	weir_log(WEIR_LOG_WARN, "admin: history file %s: %s: %s", f->path, what, strerror(errno));
}

bool kept_read_all(int fd, char *data, size_t n)
{
	size_t have = 0;

	while (have < n) {
		ssize_t got = pread(fd, data + have, n - have, (off_t)have);
		if (got == 0 || (got < 0 && errno != EINTR))
			return false;
		have += got > 0 ? (size_t)got : 0;
	}
	return true;
}

/* Rename a file that is not valid. Returns false if that failed, so the file must not be
 * overwritten. */
static bool set_aside(struct kept_file *f, const char *why)
{
	if (rename(f->path, f->bad_path) != 0) {
		kept_file_fails(f, why);
		return false;
	}
	weir_log(WEIR_LOG_WARN,
	    "admin: history file %s was not read: %s; it was renamed to %s and a new one is "
	    "created",
	    f->path, why, f->bad_path);
	return true;
}

/* Open and lock the file. Returns 0 and sets *locked. If another server replaced the file between
 * the open and the lock, the lock is on the old file: then returns -1, and the caller must try
 * again. */
static int open_locked(struct kept_file *f, bool *locked)
{
	struct stat ours, there;

	*locked = false;
	f->fd = open(f->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0640);
	if (f->fd < 0)
		return 0;
	*locked = flock(f->fd, LOCK_EX | LOCK_NB) == 0;
	if (*locked && (fstat(f->fd, &ours) != 0 || stat(f->path, &there) != 0 ||
			   ours.st_ino != there.st_ino || ours.st_dev != there.st_dev)) {
		close(f->fd);
		f->fd = -1;
		return -1;
	}
	return 0;
}

/* Return whether the open file can be used: it was loaded, or is new, or was invalid and has been
 * renamed. */
static bool take_file(struct kept_file *f, bool locked, kept_load_fn *load, void *arg)
{
	struct stat st;

	if (f->fd < 0) {
		kept_file_fails(f, "it cannot be opened");
		return false;
	}
	/* do not wait for the lock, since the file may be replaced before the lock is released */
	if (!locked) {
		errno = EWOULDBLOCK;
		kept_file_fails(f, "another server is using it");
		return false;
	}
	if (fstat(f->fd, &st) != 0 || !S_ISREG(st.st_mode)) {
		errno = EINVAL;
		kept_file_fails(f, "it is not a regular file");
		return false;
	}
	if (st.st_size == 0)
		return true; /* just created */
	const char *why = load(f->fd, (uint64_t)st.st_size, arg);
	if (why == kept_no_memory) {
		errno = ENOMEM;
		kept_file_fails(f, "it was not read");
		return false;
	}
	return !why || set_aside(f, why);
}

bool kept_file_open(struct kept_file *f, const char *path, kept_load_fn *load, void *arg)
{
	int tries = 3;
	bool locked = false;

	*f = (struct kept_file){.path = strdup(path), .fd = -1};
	if (!f->path || asprintf(&f->bad_path, "%s.bad", path) < 0) {
		f->bad_path = NULL;
		return false;
	}
	while (open_locked(f, &locked) != 0 && --tries > 0)
		;
	return take_file(f, locked, load, arg);
}

void kept_file_fini(struct kept_file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	free(f->path);
	free(f->bad_path);
	*f = (struct kept_file){.fd = -1};
}
