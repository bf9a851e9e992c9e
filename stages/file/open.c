/* SPDX-License-Identifier: MIT */
/*
 * Opening files below a root. See open.h.
 *
 * The kernel keeps us inside: openat2 with RESOLVE_BENEATH refuses every way out, also by links, with
 * RESOLVE_NO_SYMLINKS every link on the way, whoever made it and when. O_NONBLOCK, since opening a
 * FIFO would wait for its writer; what is not a regular file is closed again unread.
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

/* Longer than a tick of the slowest kernel (10 ms at HZ=100) with room for a slow stat: guess. */
#define FILE_RACY_NS 100000000LL

/* With links a rename elsewhere may make the kernel give up with EAGAIN: ask again so often. */
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
	/* A directory that may be searched but not listed serves files all the same. */
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
	dup3(fd, root,
	    O_CLOEXEC); /* atomically; should it fail, the old one stays until the next time */
	close(fd);
}

static int status_of(int error)
{
	switch (error) {
	case ENOENT:
	case ENOTDIR:
	case ELOOP: /* a link on the way */
	case EXDEV: /* a way out */
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
	    .modified_ns = (int64_t)st.st_mtim.tv_sec * NS_PER_S + st.st_mtim.tv_nsec,
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

static bool is_racy(const struct file *file, int64_t now_ns)
{
	int64_t age_ns = now_ns - file->modified_ns;

	return age_ns > -FILE_RACY_NS &&
	       age_ns < FILE_RACY_NS; /* the clocks may differ by a tick */
}

size_t file_etag(const struct file *file, int64_t now_ns, char etag[FILE_ETAG_SIZE])
{
	bool racy = is_racy(file, now_ns);
	uint64_t of[] = {(uint64_t)file->modified_ns, (uint64_t)file->size_bytes, file->inode};
	uint64_t hash = weir_hash((struct weir_slice){(const char *)of, sizeof(of)});
	int n = snprintf(etag, FILE_ETAG_SIZE, "%s\"%016" PRIx64 "%s\"", racy ? "W/" : "", hash,
	    racy ? "r" : "");

	return (size_t)n;
}

struct condition_file file_condition(
    const struct file *file, struct weir_slice etag, int64_t now_ns)
{
	/* RFC 9110, 8.8.2.1: Last-Modified is never later than the answer. */
	int64_t at_ns = file->modified_ns < now_ns ? file->modified_ns : now_ns;

	return (struct condition_file){
	    .etag = etag,
	    .modified_s = at_ns > 0 ? at_ns / NS_PER_S : 0,
	    .size_bytes = file->size_bytes,
	};
}
