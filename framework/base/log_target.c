/* SPDX-License-Identifier: MIT */
/*
 * Writes log lines to their destination; see log_target.h.
 *
 * A slow reader blocks no system call for long, so the writer can give up when the log must stop.
 * Pipes, terminals and sockets are polled first, and each write(2) to them has at most PIPE_BUF
 * bytes: a pipe that polls as writable accepts that many without blocking (pipe(7)). Lines for a
 * regular file are written with one write(2), whatever their number, so that lines of other
 * processes that append to the file cannot end up between them. In a pipe, a line longer than
 * PIPE_BUF may be interleaved with others.
 *
 * systemd's journal receives datagrams of FIELD=value lines, its native protocol. Log lines contain
 * no newlines, so the field MESSAGE needs no length.
 */
#include "base/log_target.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"

#define JOURNAL "/run/systemd/journal/socket"
/* Interval at which a blocked write checks whether to give up. The exit of the process may be
 * delayed by this interval. */
#define LOOK_MS 100
/* How long to wait for a slow reader once the log must stop. */
#define GIVE_UP_NS (1 * NS_PER_S)

char log_target_mark(enum weir_log_level level)
{
	static const char priority[] = "3467"; /* err, warning, info, debug: syslog(3) */

	return priority[level];
}

/* ---- opening ---- */

static int refuse(struct weir_err *err, const char *name, const char *why)
{
	snprintf(err->text, sizeof(err->text), "'%s' cannot be opened for writing: %s", name, why);
	return err->code = WEIR_ESYS;
}

static void journal_connect(struct log_target *t)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	t->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	snprintf(a.sun_path, sizeof(a.sun_path), "%s", t->journal);
	if (t->fd == -1 || connect(t->fd, (const struct sockaddr *)&a, sizeof(a)) == 0)
		return;
	int saved = errno;
	close(t->fd);
	t->fd = -1;
	errno = saved;
}

static int open_journal(struct log_target *t, const char *name, struct weir_err *err)
{
	const char *path = name[7] ? name + 8 : JOURNAL;

	if (*path == '\0' || strlen(path) >= sizeof(((struct sockaddr_un *)NULL)->sun_path))
		return refuse(err, name, "not a valid socket path");
	t->journal = strdup(path);
	if (!t->journal)
		return WEIR_ENOMEM;
	t->own = true;
	journal_connect(t);
	return 0;
}

static bool is_regular(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

/* Whether this process could create the file. If not, errno has the reason. */
static bool can_make(const char *name)
{
	const char *slash = strrchr(name, '/');
	char *folder = slash ? strndup(name, slash == name ? 1 : (size_t)(slash - name)) : NULL;
	bool can = (folder || !slash) &&
		   faccessat(AT_FDCWD, folder ? folder : ".", W_OK | X_OK, AT_EACCESS) == 0;
	int saved = errno;

	free(folder);
	errno = saved;
	return can;
}

/* Whether `name` is a FIFO. A FIFO is not opened just for a check, since its reader would take the
 * close for the end of the log. */
static bool is_fifo(const char *name)
{
	struct stat st;

	return stat(name, &st) == 0 && S_ISFIFO(st.st_mode);
}

static int open_file(struct log_target *t, const char *name, bool make, struct weir_err *err)
{
	int flags = O_WRONLY | O_APPEND | O_CLOEXEC | O_NONBLOCK | (make ? O_CREAT : 0);

	if (!make && is_fifo(name)) {
		t->absent = true;
		return faccessat(AT_FDCWD, name, W_OK, AT_EACCESS) == 0
			   ? 0
			   : refuse(err, name, strerror(errno));
	}
	/* O_NONBLOCK makes opening a FIFO without a reader fail (ENXIO) instead of wait. */
	t->fd = open(name, flags, 0640);
	if (t->fd == -1 && errno == ENOENT && !make && *name && can_make(name)) {
		t->absent = true;
		return 0;
	}
	if (t->fd == -1 && errno == ENXIO && is_fifo(name)) {
		snprintf(err->hint, sizeof(err->hint), "start the reader of the FIFO first");
		return refuse(err, name, "no process reads from this FIFO");
	}
	if (t->fd == -1)
		return refuse(err, name, strerror(errno));
	t->own = true;
	t->regular = is_regular(t->fd);
	return 0;
}

int log_target_open(struct log_target *t, const char *name, bool make, struct weir_err *err)
{
	*t = (struct log_target){.fd = -1};
	if (strcmp(name, "stderr") == 0)
		t->fd = STDERR_FILENO;
	else if (strcmp(name, "stdout") == 0)
		t->fd = STDOUT_FILENO;
	else if (strcmp(name, "journal") == 0 || strncmp(name, "journal:", 8) == 0)
		return open_journal(t, name, err);
	else
		return open_file(t, name, make, err);
	return 0;
}

void log_target_close(struct log_target *t)
{
	if (t->own && t->fd != -1)
		close(t->fd);
	free(t->journal);
	*t = (struct log_target){.fd = -1};
}

void log_target_move(struct log_target *t, const char *name)
{
	struct log_target new;
	struct weir_err err = {0};
	int rc = log_target_open(&new, name, true, &err);

	if (rc != 0) {
		weir_log(WEIR_LOG_ERROR, "log: %s; logging continues to the previous target",
		    rc == WEIR_ESYS ? err.text : weir_error_text(rc));
		return;
	}
	log_target_close(t);
	*t = new;
}

/* ---- writing ---- */

static void lost(struct log_target *t, int error)
{
	if (!t->failed)
		weir_log(WEIR_LOG_ERROR, "log: %s; lines are lost (logged once)", strerror(error));
	t->failed = true;
}

/* Wait until `fd` is writable. Returns false on an error, or GIVE_UP_NS after stop() has returned
 * true. */
static bool wait_writable(int fd, bool (*stop)(void *arg), void *arg)
{
	struct pollfd p = {.fd = fd, .events = POLLOUT};
	int64_t until_ns = 0;

	for (;;) {
		int rc = poll(&p, 1, LOOK_MS);
		if (rc > 0)
			return true;
		if (rc == -1 && errno != EINTR)
			return false;
		if (until_ns == 0 && stop(arg))
			until_ns = clock_now_ns() + GIVE_UP_NS;
		if (until_ns != 0 && clock_now_ns() >= until_ns) {
			errno = ETIMEDOUT;
			return false;
		}
	}
}

/* Return the number of bytes to write with one call. A target that can block gets at most PIPE_BUF
 * bytes, which a writable pipe accepts without blocking (pipe(7)). These bytes are whole lines if
 * possible, since other processes may write to the same target. */
static size_t run_of(const struct log_target *t, const char *p, size_t n)
{
	const char *end;

	if (t->regular || n <= PIPE_BUF)
		return n;
	end = memrchr(p, '\n', PIPE_BUF);
	return end ? (size_t)(end - p) + 1 : PIPE_BUF;
}

static void write_bytes(
    struct log_target *t, const char *p, size_t n, bool (*stop)(void *arg), void *arg)
{
	if (!t->own) /* stdout or stderr may have been redirected since the last call */
		t->regular = is_regular(t->fd);
	while (n > 0) {
		size_t most = run_of(t, p, n);
		ssize_t done = -1;
		if (t->regular || wait_writable(t->fd, stop, arg))
			done = write(t->fd, p, most);
		if (done == -1 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (done == -1) {
			lost(t, errno);
			return;
		}
		p += done;
		n -= (size_t)done;
	}
}

/* Remove the level marks from the lines. Returns the remaining length. */
static size_t unmark(char *p, size_t n)
{
	char *out = p;

	for (size_t i = 0; i < n;) {
		const char *end = memchr(p + i, '\n', n - i);
		size_t bytes = end ? (size_t)(end - (p + i)) : n - i - 1; /* without the mark */
		memmove(out, p + i + 1, bytes);
		out += bytes;
		i += bytes + 1;
	}
	return (size_t)(out - p);
}

/* Send one entry to the journal. Reconnects once, since the journal may have been restarted. */
static bool send_entry(struct log_target *t, const struct msghdr *msg)
{
	for (int tries = 0; tries < 2; tries++) {
		if (t->fd == -1)
			journal_connect(t);
		if (t->fd == -1)
			return false;
		if (sendmsg(t->fd, msg, MSG_NOSIGNAL) != -1)
			return true;
		int error = errno;
		close(t->fd);
		t->fd = -1;
		errno = error;
	}
	return false;
}

static void write_entries(
    struct log_target *t, const char *p, size_t n, bool (*stop)(void *arg), void *arg)
{
	for (size_t i = 0; i < n;) {
		const char *end = memchr(p + i, '\n', n - i);
		size_t bytes = end ? (size_t)(end - (p + i)) + 1 : n - i;
		char head[64];
		int head_n = snprintf(
		    head, sizeof(head), "SYSLOG_IDENTIFIER=weir\nPRIORITY=%c\nMESSAGE=", p[i]);
		struct iovec part[2] = {
		    {head, (size_t)head_n}, {(void *)(uintptr_t)(p + i + 1), bytes - 1}};
		struct msghdr msg = {.msg_iov = part, .msg_iovlen = 2};
		if ((t->fd != -1 && !wait_writable(t->fd, stop, arg)) || !send_entry(t, &msg)) {
			lost(t, errno);
			return;
		}
		i += bytes;
	}
}

void log_target_write(struct log_target *t, char *p, size_t n, bool (*stop)(void *arg), void *arg)
{
	if (n == 0)
		return;
	if (t->journal)
		write_entries(t, p, n, stop, arg);
	else
		write_bytes(t, p, unmark(p, n), stop, arg);
}
