/* SPDX-License-Identifier: MIT */
/*
 * Becomes another user; see user.h.
 *
 * The order of the steps matters: bind the privileged ports, set the groups while still root,
 * change the user ids, and drop the capabilities, which the change of user may have left. user_is()
 * then checks that root's rights cannot be regained. Capabilities (capabilities(7)) are dropped
 * with system calls, without a library.
 */
#include "user.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <weir/io.h>
#include <weir/log.h>

#include "net/address.h"
#include "listen.h"

/* The default of the kernel for the first unprivileged port. */
#define PRIVILEGED_PORTS 1024
/* Length of the listen queue of a socket until its stage sets its own. */
#define BACKLOG 1024

static int user_fail(
    const struct weir_spec *spec, int code, struct weir_errs *errs, const char *what)
{
	return weir_errs_add(errs, &spec->user_mark, code, NULL,
	    "cannot become user '%.60s': %s: %s", spec->user, what, strerror(errno));
}

/* ---- sockets ---- */

/* Return the first port that needs no privilege. */
static int user_first_port(void)
{
	FILE *f = fopen("/proc/sys/net/ipv4/ip_unprivileged_port_start", "re");
	int port = PRIVILEGED_PORTS;

	if (f && fscanf(f, "%d", &port) != 1)
		port = PRIVILEGED_PORTS;
	if (f)
		fclose(f);
	return port;
}

/* Return the port, or 0 for a socket file. */
static int user_port(const struct address *a)
{
	if (address_file(a))
		return 0;
	return ntohs(a->addr.ss_family == AF_INET6
			 ? ((const struct sockaddr_in6 *)(const void *)&a->addr)->sin6_port
			 : ((const struct sockaddr_in *)(const void *)&a->addr)->sin_port);
}

/* Return a socket that listens on `a`: one that was passed to this process, or a new one. Returns
 * -1 with errno set on failure. */
static int user_socket(const struct address *a)
{
	int one = 1, fd = weir_passed_socket((const struct sockaddr *)&a->addr);

	if (fd != -1)
		return fd;
	fd = socket(a->addr.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd == -1)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (a->addr.ss_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
	if (bind(fd, (const struct sockaddr *)&a->addr, a->n) == 0 && listen(fd, BACKLOG) == 0)
		return fd;
	int saved = errno;
	close(fd);
	errno = saved;
	return -1;
}

static int user_bind_one(
    const struct weir_spec *spec, const char *text, int first_port, struct weir_errs *errs)
{
	struct address a;
	struct weir_err err;

	if (address_parse(text, &a, &err) != 0)
		return 0; /* the stage itself will report the error */
	int port = user_port(&a);
	if (port == 0 || port >= first_port)
		return 0;
	int fd = user_socket(&a);
	if (fd == -1)
		return weir_errs_add(errs, &spec->user_mark,
		    errno == EADDRINUSE ? WEIR_EBUSY : WEIR_ESYS, NULL,
		    "%.60s cannot be bound before root becomes '%.60s': %s", text, spec->user,
		    strerror(errno));
	int rc = weir_passed_add(fd, text);
	return rc == 0 ? 0 : weir_errs_add(errs, NULL, rc, NULL, "too many sockets");
}

static int user_bind(const struct weir_spec *spec, struct weir_errs *errs)
{
	int first_port = user_first_port(), rc = 0;
	const char *text;

	for (int s = 0; s < spec->n_stages; s++) {
		const struct weir_stage_spec *stage = &spec->stages[s];
		for (int i = 0; rc == 0 && listen_listens(stage) && *(text = listen_text(stage, i));
		     i++)
			rc = user_bind_one(spec, text, first_port, errs);
	}
	return rc;
}

/* ---- the user ---- */

static bool user_has_capabilities(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {{0, 0, 0}, {0, 0, 0}};

	if (syscall(SYS_capget, &head, data) != 0)
		return true;
	return data[0].effective || data[0].permitted || data[0].inheritable || data[1].effective ||
	       data[1].permitted || data[1].inheritable;
}

static int user_drop_capabilities(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	const struct __user_cap_data_struct none[2] = {{0, 0, 0}, {0, 0, 0}};

	/* errors are ignored, since the next call clears these capabilities, too */
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	return (int)syscall(SYS_capset, &head, none);
}

/* Return whether the change of user is complete and permanent. */
static bool user_is(uid_t uid, gid_t gid)
{
	uid_t u[3];
	gid_t g[3];

	if (getresuid(&u[0], &u[1], &u[2]) != 0 || getresgid(&g[0], &g[1], &g[2]) != 0)
		return false;
	for (int i = 0; i < 3; i++)
		if (u[i] != uid || g[i] != gid)
			return false;
	return !user_has_capabilities() && (uid == 0 || setresuid(-1, 0, -1) != 0);
}

static int user_switch(
    const struct weir_spec *spec, const struct passwd *user, struct weir_errs *errs)
{
	if (initgroups(user->pw_name, user->pw_gid) != 0)
		return user_fail(spec, WEIR_ESYS, errs, "setting its groups");
	if (setresgid(user->pw_gid, user->pw_gid, user->pw_gid) != 0)
		return user_fail(spec, WEIR_ESYS, errs, "setting its group");
	if (setresuid(user->pw_uid, user->pw_uid, user->pw_uid) != 0)
		return user_fail(spec, WEIR_ESYS, errs, "setresuid");
	if (user_drop_capabilities() != 0)
		return user_fail(spec, WEIR_ESYS, errs, "dropping the capabilities");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
		return user_fail(spec, WEIR_ESYS, errs, "prctl");
	errno = EPERM;
	return user_is(user->pw_uid, user->pw_gid)
		   ? 0
		   : user_fail(spec, WEIR_ESYS, errs, "some of root's rights remain");
}

int user_become(const struct weir_spec *spec, bool bind, struct weir_errs *errs)
{
	struct passwd user, *found = NULL;
	char names[4096];

	/* cppcheck-suppress ctunullpointer ; a load that succeeded has a spec */
	if (!spec->user[0] || geteuid() != 0)
		return 0;
	errno = getpwnam_r(spec->user, &user, names, sizeof(names), &found);
	if (!found && errno != 0)
		return user_fail(spec, WEIR_ESYS, errs, "the user cannot be looked up");
	if (!found)
		return weir_errs_add(errs, &spec->user_mark, WEIR_ENOENT, NULL,
		    "there is no user '%.60s' on this machine", spec->user);
	if (user.pw_uid == 0)
		return 0; /* `user: root` was requested explicitly */
	int rc = bind ? user_bind(spec, errs) : 0;
	return rc == 0 ? user_switch(spec, &user, errs) : rc;
}

void user_warn(const struct weir_spec *spec)
{
	struct passwd user, *found = NULL;
	char names[4096];

	if (!spec->user[0] && geteuid() == 0)
		weir_log(WEIR_LOG_WARN,
		    "running as root, with all rights on this machine: set 'user: "
		    "NAME' at the top level, or 'user: root' if that is intended");
	if (!spec->user[0] || geteuid() == 0)
		return;
	getpwnam_r(spec->user, &user, names, sizeof(names), &found);
	if (!found || user.pw_uid != geteuid())
		weir_log(WEIR_LOG_WARN,
		    "'user: %s' is ignored: only root can become another user, and this is user %u",
		    spec->user, (unsigned)geteuid());
}
