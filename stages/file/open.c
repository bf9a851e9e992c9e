/* SPDX-License-Identifier: MIT */
/*
 * Opens files below a root directory and computes their ETags. See open.h.
 *
 * The kernel enforces the confinement: openat2 with RESOLVE_BENEATH refuses every path that leaves
 * the root, even through links, and RESOLVE_NO_SYMLINKS refuses every path that contains a link.
 * There is no race between a check and the open. O_NONBLOCK is needed because opening a FIFO would
 * wait for its writer. Anything but a regular file is closed again without being read.
 */
#include "open.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NS_PER_S 1000000000LL

/* A file that was changed less than this time ago may be changed again and keep the same timestamp.
 * 100 ms is a guess: longer than a tick of the slowest kernel (10 ms at HZ=100), with a margin for
 * a slow stat. */
#define FILE_RACY_NS 100000000LL

/* Maximum number of attempts at one openat2. It can fail with EAGAIN if links are followed while
 * another process renames a file, anywhere in the file system. */
#define OPEN_TRIES 4

static int open_beneath(int root, enum file_links links, const char *name, uint64_t flags)
{
	uint64_t resolve = links == FILE_LINKS_NO ? RESOLVE_NO_SYMLINKS : 0;
	struct open_how how = {
	    .flags = flags | O_CLOEXEC,
	    .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | resolve,
	};
	int fd;

	for (int i = 0; i < OPEN_TRIES; i++) {
		fd = (int)syscall(SYS_openat2, root, name, &how, sizeof(how));
		if (fd != -1 || errno != EAGAIN)
			break;
	}
	return fd;
}

int file_root(const char *path, int *fd)
{
	int root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (root == -1)
		return WEIR_ESYS;
	int probe = open_beneath(root, FILE_LINKS_NO, ".", O_RDONLY | O_DIRECTORY);
	/* EACCES is fine: a directory that may be searched but not read can still serve files. */
	if (probe == -1 && errno != EACCES) {
		int saved = errno;
		close(root);
		errno = saved;
		return WEIR_ESYS;
	}
	if (probe != -1)
		close(probe);
	*fd = root;
	return 0;
}

char *file_root_path(const char *path)
{
	char *folder = path[0] == '/' ? strdup("") : getcwd(NULL, 0);
	char *out = folder ? malloc(strlen(folder) + strlen(path) + 2) : NULL;

	if (out)
		sprintf(out, "%s%s%s", folder, path[0] == '/' ? "" : "/", path);
	free(folder);
	return out;
}

void file_root_follow(const char *path, int root)
{
	struct stat was, is;
	int fd;

	if (stat(path, &is) == -1 || fstat(root, &was) == -1 ||
	    (is.st_dev == was.st_dev && is.st_ino == was.st_ino) || file_root(path, &fd) < 0)
		return;
	/* dup3 is atomic. If it fails, the old directory stays until the next check. */
	dup3(fd, root, O_CLOEXEC);
	close(fd);
}

static int status_of(int error)
{
	switch (error) {
	case ENOENT:
	case ENOTDIR:
	case ELOOP: /* the path contains a link */
	case EXDEV: /* leads out of the root */
	case ENAMETOOLONG:
	case ENXIO: /* a socket, or a device without hardware */
	case ENODEV:
	case EINVAL:
		return 404;
	case EACCES:
	case EPERM:
		return 403;
	case EMFILE:
	case ENFILE:
	case ENOMEM:
	case EAGAIN:
		return 503;
	default:
		return 500;
	}
}

static int refuse(struct file *file, int fd, int status)
{
	if (fd != -1)
		close(fd);
	file->fd = -1;
	file->status = status;
	return WEIR_EFAILED;
}

int file_open(int root, enum file_links links, const char *name, struct file *file)
{
	struct stat st;
	int fd = open_beneath(root, links, name, O_RDONLY | O_NONBLOCK | O_NOCTTY);

	if (fd == -1)
		return refuse(file, -1, status_of(errno));
	if (fstat(fd, &st) == -1)
		return refuse(file, fd, 500);
	if (S_ISDIR(st.st_mode))
		return refuse(file, fd, 301);
	if (!S_ISREG(st.st_mode))
		return refuse(file, fd, 404);
	*file = (struct file){
	    .fd = fd,
	    .size_bytes = st.st_size,
	    .modified = st.st_mtim,
	    .changed = st.st_ctim,
	    .inode = st.st_ino,
	};
	return 0;
}

int file_open_directory(int root, enum file_links links, const char *name)
{
	return open_beneath(root, links, name, O_RDONLY | O_DIRECTORY);
}

int file_look(int dir, enum file_links links, const char *name, struct stat *st)
{
	int fd = open_beneath(dir, links, name, O_PATH);

	if (fd == -1)
		return -1;
	int rc = fstat(fd, st);
	int saved = errno;
	close(fd);
	errno = saved;
	return rc;
}

int64_t file_time_ns(struct timespec t)
{
	int64_t ns;

	if (__builtin_mul_overflow(t.tv_sec, NS_PER_S, &ns) ||
	    __builtin_add_overflow(ns, t.tv_nsec, &ns))
		return t.tv_sec < 0 ? INT64_MIN : INT64_MAX;
	return ns;
}

/* Whether `at` is less than FILE_RACY_NS before or after `now_ns`. It may be slightly after, since
 * the clock of file timestamps and that of `now_ns` may differ by a tick. */
static bool is_racy(struct timespec at, int64_t now_ns)
{
	int64_t age_ns;

	return !__builtin_sub_overflow(now_ns, file_time_ns(at), &age_ns) &&
	       age_ns > -FILE_RACY_NS && age_ns < FILE_RACY_NS;
}

size_t file_etag(
    const struct file *file, enum file_etags what, int64_t now_ns, char etag[FILE_ETAG_SIZE])
{
	bool local = what == FILE_ETAGS_LOCAL;
	bool racy = is_racy(local ? file->changed : file->modified, now_ns);
	uint64_t of[] = {(uint64_t)file->modified.tv_sec, (uint64_t)file->modified.tv_nsec,
	    (uint64_t)file->size_bytes, file->coding, file->inode, (uint64_t)file->changed.tv_sec,
	    (uint64_t)file->changed.tv_nsec};
	size_t n_of = local ? sizeof(of) : 4 * sizeof(of[0]);
	uint64_t hash = weir_hash((struct weir_slice){(const char *)of, n_of});
	int n = snprintf(etag, FILE_ETAG_SIZE, "%s\"%016" PRIx64 "%s\"", racy ? "W/" : "", hash,
	    racy ? "r" : "");

	return (size_t)n;
}

struct condition_file file_condition(
    const struct file *file, struct weir_slice etag, int64_t now_ns)
{
	/* RFC 9110, 8.8.2.1: Last-Modified must not be later than the response. */
	int64_t now_s = now_ns / NS_PER_S, at_s = file->modified.tv_sec;

	at_s = at_s < now_s ? at_s : now_s;
	return (struct condition_file){
	    .etag = etag,
	    .modified_s = at_s > 0 ? at_s : 0,
	    .size_bytes = file->size_bytes,
	};
}
