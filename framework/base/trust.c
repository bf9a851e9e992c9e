/* SPDX-License-Identifier: MIT */
/*
 * Opens files only if nobody but trusted users can change them; see weir/trust.h.
 *
 * The path is walked from "/" one name at a time. Each name is opened relative to the descriptor of
 * its folder, without following symbolic links. Instead, the target of a link is prepended to the
 * remaining names.
 */
#include <weir/trust.h>

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/text.h"

/* Maximum number of symbolic links in a path, as in the kernel. */
#define LINKS_MAX 40

struct way {
	struct weir_err *err;

	char at[2 * PATH_MAX];   /* the part walked so far */
	char left[2 * PATH_MAX]; /* the remaining part */
	int dir;                 /* the folder at `at` */
	int links;
};

/* Fill in the error. If `hint` ends with a space, it is a command, and the path is appended to
 * it. */
static int refuse(struct way *w, int code, const char *hint, const char *what, const char *fmt, ...)
    WEIR_PRINTF(5, 6);
static int refuse(struct way *w, int code, const char *hint, const char *what, const char *fmt, ...)
{
	va_list ap;
	char why[128];

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	snprintf(w->err->text, sizeof(w->err->text), "%s'%.120s' %s", what, w->at, why);
	/* A command with a truncated path would be worse than none. */
	bool takes_path = *hint && hint[strlen(hint) - 1] == ' ';
	int n = snprintf(w->err->hint, sizeof(w->err->hint), "%s%s", hint, takes_path ? w->at : "");
	if (n < 0 || (size_t)n >= sizeof(w->err->hint))
		w->err->hint[0] = '\0';
	w->err->code = code;
	return code;
}

static int refuse_errno(struct way *w)
{
	int code = errno == ENOENT || errno == ENOTDIR ? WEIR_ENOENT : WEIR_ESYS;

	return refuse(w, code, "", "", "cannot be opened: %s", strerror(errno));
}

/* ---- users ---- */

/* Return the user who became root with sudo, or -1. */
static uid_t sudo_user(void)
{
	int64_t uid = geteuid() == 0 ? text_env_number("SUDO_UID") : -1;

	return uid >= 0 && uid < UINT_MAX ? (uid_t)uid : (uid_t)-1;
}

static bool is_trusted(uid_t uid)
{
	struct stat top;

	return uid == 0 || uid == geteuid() || uid == sudo_user() ||
	       (stat("/", &top) == 0 && uid == top.st_uid);
}

static const char *user_name(uid_t uid, char *buf, size_t size)
{
	struct passwd user, *found = NULL;

	return getpwuid_r(uid, &user, buf, size, &found) == 0 && found ? found->pw_name : NULL;
}

/* Whether `uid` is the only member of the group, as far as can be determined. */
static bool is_private(gid_t gid, uid_t uid)
{
	struct group group, *found = NULL;
	char users[4096], groups[16384];
	const char *owner = user_name(uid, users, sizeof(users));
	int rc = getgrgid_r(gid, &group, groups, sizeof(groups), &found);

	if (rc == 0 && !found)
		return !owner && gid == uid;
	if (rc != 0 || !owner || strcmp(group.gr_name, owner) != 0)
		return false;
	for (char **member = group.gr_mem; *member; member++)
		if (strcmp(*member, owner) != 0)
			return false;
	return true;
}

/* ---- judging ---- */

/* Whether the user has disabled the checks (WEIR_TRUST_FILES=any). */
static bool all_trusted(void)
{
	const char *text = getenv("WEIR_TRUST_FILES");

	return text && strcmp(text, "any") == 0;
}

static int judge_owner(struct way *w, const struct stat *st, const char *what)
{
	char names[4096];
	const char *owner;

	if (is_trusted(st->st_uid) || all_trusted())
		return 0;
	owner = user_name(st->st_uid, names, sizeof(names));
	return refuse(w, WEIR_EINVAL,
	    S_ISREG(st->st_mode) ? "chown root "
				 : "put the file under folders owned by root, such as /etc/weir",
	    what,
	    "belongs to user %u%s%.32s%s, which is neither root nor the user that weir runs as",
	    (unsigned)st->st_uid, owner ? " (" : "", owner ? owner : "", owner ? ")" : "");
}

/* Whether the file at `fd`, which may be O_PATH, has an access control list. If so, the group
 * permissions of its mode are an upper bound on the permissions that the list grants. */
static bool has_list(int fd)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return getxattr(path, "system.posix_acl_access", NULL, 0) > 0;
}

/* Check that only trusted users can write to the file or folder. A folder with the sticky bit may
 * be writable, since other users cannot replace its entries, and each entry is judged by its own
 * owner. */
static int judge_mode(struct way *w, int fd, const struct stat *st, const char *what)
{
	if ((S_ISDIR(st->st_mode) && st->st_mode & S_ISVTX) || all_trusted())
		return 0;
	if (st->st_mode & S_IWOTH)
		return refuse(
		    w, WEIR_EINVAL, "chmod o-w ", what, "is writable by every user of this host");
	if (st->st_mode & S_IWGRP && has_list(fd))
		return refuse(w, WEIR_EINVAL, "setfacl -b ", what,
		    "may be writable by users or groups in its access control list");
	if (st->st_mode & S_IWGRP && !is_private(st->st_gid, st->st_uid))
		return refuse(w, WEIR_EINVAL, "chmod g-w ", what,
		    "is writable by group %u, which may have members other than the owner",
		    (unsigned)st->st_gid);
	return 0;
}

static int judge(struct way *w, int fd, const struct stat *st, const char *what)
{
	int rc = judge_owner(w, st, what);

	return rc == 0 ? judge_mode(w, fd, st, what) : rc;
}

/* ---- walking ---- */

static int too_long(struct way *w)
{
	errno = ENAMETOOLONG;
	return refuse_errno(w);
}

static int enter_root(struct way *w)
{
	struct stat st;

	if (w->dir != -1)
		close(w->dir);
	strcpy(w->at, "/");
	w->dir = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (w->dir == -1 || fstat(w->dir, &st) != 0)
		return refuse_errno(w);
	return judge(w, w->dir, &st, "the folder ");
}

/* Prepend the target of the link `fd` to the remaining path. */
static int follow(struct way *w, int fd, char *slash)
{
	char text[PATH_MAX], left[sizeof(w->left)];
	ssize_t n = readlinkat(fd, "", text, sizeof(text) - 1);

	if (n > 0 && ++w->links > LINKS_MAX) {
		errno = ELOOP;
		n = -1;
	}
	if (n <= 0)
		return refuse_errno(w);
	text[n] = '\0';
	int size = snprintf(left, sizeof(left), "%s/%s", text, w->left);
	if (size < 0 || (size_t)size >= sizeof(left))
		return too_long(w);
	memcpy(w->left, left, (size_t)size + 1);
	*slash = '\0';
	return text[0] == '/' ? enter_root(w) : 0;
}

/* One byte more than the longest name. The kernel refuses names of that size (ENAMETOOLONG), so a
 * longer name may be cut there. */
#define NAME_CUT (NAME_MAX + 1)

/* Remove the next name from the remaining path. Returns false if no names remain. */
static bool next_name(struct way *w, char name[NAME_CUT + 1])
{
	const char *from = w->left + strspn(w->left, "/");
	size_t n = strcspn(from, "/");

	if (n > NAME_CUT)
		n = NAME_CUT;
	memcpy(name, from, n);
	name[n] = '\0';
	from += n;
	memmove(w->left, from, strlen(from) + 1);
	return n > 0;
}

static bool is_last(const struct way *w)
{
	return w->left[strspn(w->left, "/")] == '\0';
}

/* Open the regular file `name`, which was found with O_PATH, and judge the opened file. */
static int open_file(struct way *w, const char *name, int *fd)
{
	struct stat st;
	int rc = 0;

	*fd = openat(w->dir, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC);
	if (*fd == -1 || fstat(*fd, &st) != 0)
		rc = refuse_errno(w);
	else if (!S_ISREG(st.st_mode))
		rc = refuse(w, WEIR_EINVAL, "", "", "is not a regular file");
	else
		rc = judge(w, *fd, &st, "");
	if (rc != 0 && *fd != -1) {
		close(*fd);
		*fd = -1;
	}
	return rc;
}

/* Walk to `name` in the current folder. Sets *fd if that is the end of the path. */
static int step(struct way *w, const char *name, int *fd)
{
	size_t n = strlen(w->at);
	char *slash = w->at + (n > 1 ? n : 0);
	struct stat st;

	if (n + strlen(name) + 2 > sizeof(w->at))
		return too_long(w);
	sprintf(slash, "/%s", name);
	int next = openat(w->dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (next == -1)
		return refuse_errno(w);
	int rc = fstat(next, &st) == 0 ? 0 : refuse_errno(w);
	if (rc != 0) {
		close(next);
		return rc;
	}
	if (S_ISLNK(st.st_mode)) {
		rc = judge_owner(w, &st, "the link ");
		rc = rc == 0 ? follow(w, next, slash == w->at ? slash + 1 : slash) : rc;
	} else if (S_ISDIR(st.st_mode)) {
		rc = judge(w, next, &st, "the folder ");
		close(w->dir);
		w->dir = next;
		return rc;
	} else if (!is_last(w)) {
		errno = ENOTDIR;
		rc = refuse_errno(w);
	} else if (!S_ISREG(st.st_mode)) {
		rc = refuse(w, WEIR_EINVAL, "", "", "is not a regular file");
	} else {
		rc = open_file(w, name, fd);
	}
	close(next);
	return rc;
}

static int walk(struct way *w, int *fd)
{
	char name[NAME_CUT + 1];
	int rc = enter_root(w);

	*fd = -1;
	while (rc == 0 && *fd == -1) {
		if (!next_name(w, name))
			return refuse(w, WEIR_EINVAL, "", "", "is not a regular file");
		if (strcmp(name, ".") != 0)
			rc = step(w, name, fd);
	}
	return rc;
}

int weir_trust_open(const char *path, int *fd, struct weir_err *err)
{
	struct way *w = calloc(1, sizeof(*w));
	char *folder = path[0] == '/' ? strdup("") : getcwd(NULL, 0);
	int rc = WEIR_ENOMEM;

	*err = (struct weir_err){.code = WEIR_ENOMEM};
	*fd = -1;
	if (w && folder) {
		w->err = err;
		w->dir = -1;
		int n = snprintf(w->left, sizeof(w->left), "%s/%s", folder, path);
		snprintf(w->at, sizeof(w->at), "%s", path);
		rc = n < 0 || (size_t)n >= sizeof(w->left) ? too_long(w) : walk(w, fd);
		if (w->dir != -1)
			close(w->dir);
	}
	if (rc == WEIR_ENOMEM)
		snprintf(err->text, sizeof(err->text), "out of memory");
	free(folder);
	free(w);
	return rc;
}
