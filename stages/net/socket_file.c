/* SPDX-License-Identifier: MIT */
/*
 * Creates and removes the files of Unix sockets; see socket_file.h.
 *
 * bind creates the file with the mode of the socket (fchmod) less the umask. The file therefore never has
 * more permissions than configured; what the umask took away is added once the group is right.
 */
#include "net/socket_file.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Mode without `socket_mode`: the server's user and group may connect. */
#define MODE_DEFAULT 0660
/* How often, and how many times, the lock of a folder is tried, which others hold for as long as a bind
 * takes: 2 s in all. Both are guesses. */
#define LOCK_EVERY_NS 10000000L
#define LOCK_TRIES    200

/* ---- configuration ---- */

/* Returns the mode, or -1. */
static int mode_of(const char *text)
{
	size_t n = text ? strspn(text, "01234567") : 0;

	if (!text || !*text)
		return MODE_DEFAULT;
	if (text[n] != '\0' || n < 3 || n > 4 || (n == 4 && text[0] != '0'))
		return -1;
	return (int)strtol(text, NULL, 8);
}

/* Sets *gid to the group, or to -1 if none is configured. Returns false if there is no such group. */
static bool group_of(const char *text, gid_t *gid)
{
	const struct group *g;
	char *end;

	*gid = (gid_t)-1;
	if (!text || !*text)
		return true;
	g = getgrnam(text);
	*gid = g ? g->gr_gid : (gid_t)strtoul(text, &end, 10);
	return g || (*text >= '0' && *text <= '9' && *end == '\0' && *gid != (gid_t)-1);
}

int socket_file_check(struct weir_stage *st, const struct net_conf *conf, struct weir_err *err)
{
	gid_t gid;

	err->code = WEIR_EINVAL;
	if (mode_of(conf->socket_mode) == -1) {
		weir_blame(st, "socket_mode");
		snprintf(err->text, sizeof(err->text), "'socket_mode' cannot be '%.60s'",
		    conf->socket_mode);
		snprintf(err->hint, sizeof(err->hint),
		    "write permissions in octal digits, as in 0660 or 0600");
		return WEIR_EINVAL;
	}
	if (!group_of(conf->socket_group, &gid)) {
		weir_blame(st, "socket_group");
		snprintf(err->text, sizeof(err->text),
		    "'socket_group': this machine has no group '%.60s'", conf->socket_group);
		return WEIR_EINVAL;
	}
	err->code = 0;
	return 0;
}

/* ---- errors ---- */

static int fail(struct weir_err *err, const char *path, const char *why, const char *hint)
{
	err->code = errno == EADDRINUSE ? WEIR_EBUSY : WEIR_ESYS;
	snprintf(err->text, sizeof(err->text), "cannot listen on unix:%s: %s", path, why);
	snprintf(err->hint, sizeof(err->hint), "%s", hint);
	return -1;
}

static int fail_errno(struct weir_err *err, const char *path)
{
	switch (errno) {
	case ENOENT:
	case ENOTDIR:
		return fail(err, path, "its folder does not exist",
		    "create it, writable by the user of the server (RuntimeDirectory= of systemd)");
	case EACCES:
	case EPERM:
	case EROFS:
		return fail(err, path, strerror(errno),
		    "the user of the server must be able to create and remove files in the folder");
	case EADDRINUSE:
		return fail(
		    err, path, "another process listens there", "stop it, or choose another file");
	case EEXIST:
		return fail(err, path, "there is a file that is not a socket, which is left alone",
		    "remove it, or choose another file");
	case ETIMEDOUT:
		return fail(err, path, "another process has locked the folder for 2 s",
		    "choose a folder in which only the server may write");
	default:
		return fail(err, path, strerror(errno), "");
	}
}

/* ---- the folder ---- */

/* Lock the folder of `path`. Returns a descriptor, whose close unlocks it, or -1 with errno. */
static int lock_folder(const char *path)
{
	char folder[sizeof(((struct sockaddr_un *)0)->sun_path)];
	size_t n = (size_t)(strrchr(path, '/') - path);
	int fd;

	memcpy(folder, path, n);
	folder[n] = '\0';
	fd = open(n > 0 ? folder : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; fd != -1 && flock(fd, LOCK_EX | LOCK_NB) == -1; i++) {
		struct timespec pause = {.tv_nsec = LOCK_EVERY_NS};
		if ((errno != EWOULDBLOCK && errno != EINTR) || i == LOCK_TRIES) {
			const int saved = errno == EWOULDBLOCK ? ETIMEDOUT : errno;
			close(fd);
			errno = saved;
			return -1;
		}
		nanosleep(&pause, NULL);
	}
	return fd;
}

/* ---- the file ---- */

/* Whether a process listens at `a`. With a full backlog, connect says EAGAIN. */
static bool is_alive(const struct address *a)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	bool dead = fd != -1 && connect(fd, (const struct sockaddr *)&a->addr, a->n) == -1 &&
		    (errno == ECONNREFUSED || errno == ENOENT);

	if (fd != -1)
		close(fd);
	return !dead;
}

/* Remove a socket at which nobody listens. Returns 0, also if there is none, or -1 with errno. */
static int remove_dead(const struct address *a)
{
	const char *path = address_file(a);
	struct stat info;

	if (lstat(path, &info) == -1)
		return errno == ENOENT ? 0 : -1;
	if (!S_ISSOCK(info.st_mode)) {
		errno = EEXIST;
		return -1;
	}
	if (is_alive(a)) {
		errno = EADDRINUSE;
		return -1;
	}
	return unlink(path) == 0 || errno == ENOENT ? 0 : -1;
}

/* Set the group and then the mode. Returns 0, or -1 with errno. */
static int permit(const char *path, const struct net_conf *conf)
{
	gid_t gid;

	group_of(conf->socket_group, &gid);
	if (gid != (gid_t)-1 && lchown(path, (uid_t)-1, gid) == -1)
		return -1;
	return chmod(path, (mode_t)mode_of(conf->socket_mode));
}

/* Whether `f` is still the file that was created. */
static bool is_ours(const struct socket_file *f)
{
	struct stat info;

	return lstat(f->path, &info) == 0 && info.st_dev == f->device && info.st_ino == f->inode;
}

/* Bind and listen. Returns 0, or -1 with errno; the file is then gone. */
static int bind_file(int fd, const struct address *a, const struct net_conf *conf, int backlog,
    struct socket_file *f)
{
	struct stat info;
	int saved;

	/* no one else may connect before the group is set */
	if (fchmod(fd, (mode_t)mode_of(conf->socket_mode) & 0700) == -1 ||
	    bind(fd, (const struct sockaddr *)&a->addr, a->n) == -1)
		return -1;
	if (lstat(address_file(a), &info) == 0 && permit(address_file(a), conf) == 0 &&
	    listen(fd, backlog) == 0) {
		*f = (struct socket_file){
		    .device = info.st_dev, .inode = info.st_ino, .created = true};
		snprintf(f->path, sizeof(f->path), "%s", address_file(a));
		return 0;
	}
	saved = errno;
	unlink(address_file(a));
	errno = saved;
	return -1;
}

int socket_file_open(const struct address *a, const struct net_conf *conf, int backlog,
    struct socket_file *f, struct weir_err *err)
{
	const char *path = address_file(a);
	const int folder = lock_folder(path);
	int fd = -1, rc = folder == -1 ? -1 : remove_dead(a), saved;

	if (rc == 0)
		rc = fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (rc != -1)
		rc = bind_file(fd, a, conf, backlog, f);
	saved = errno;
	if (folder != -1)
		close(folder);
	if (rc == -1 && fd != -1)
		close(fd);
	errno = saved;
	return rc == -1 ? fail_errno(err, path) : fd;
}

int socket_file_share(const struct socket_file *from, const struct net_conf *conf,
    struct socket_file *f, struct weir_err *err)
{
	*f = *from;
	f->created = false;
	if (!is_ours(f) || permit(f->path, conf) == 0)
		return 0;
	fail_errno(err, f->path);
	return err->code;
}

void socket_file_remove(struct net_server *srv, int k)
{
	struct socket_file *f = &srv->file[k];

	pthread_mutex_lock(&srv->lock);
	if (f->path[0] && is_ours(f))
		unlink(f->path);
	f->path[0] = '\0';
	pthread_mutex_unlock(&srv->lock);
}

void socket_file_undo(struct net_server *srv)
{
	for (int k = 0; k < NET_LISTEN_MAX; k++)
		if (srv->file[k].created)
			socket_file_remove(srv, k);
}
