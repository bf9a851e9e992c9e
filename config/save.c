/* SPDX-License-Identifier: MIT */
/*
 * Writes new values of knobs into a YAML file; see config.h.
 *
 * The file is edited in memory (config_edit), written to a temporary file in the same folder, and
 * loaded from there. It replaces the old file only if its effective values are those of the old
 * file with exactly these changes. The replacement is atomic and preserves the mode of the file.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* How often, and at which intervals, the lock of a folder is tried: for a second, since a save takes a
 * few ms. */
#define LOCK_LOOKS   50
#define LOCK_LOOK_NS 20000000L

/** The state of a file when it was read. */
struct seen {
	dev_t dev;
	ino_t ino;
	off_t size;
	struct timespec changed;
};

struct save {
	const char *path; /* of the file itself, not of a link to it */
	const struct config_change *change;
	int n;
	const struct config_reading *reading;
	bool dry_run;
	struct weir_errs *errs;
};

static int no_memory(struct weir_errs *errs)
{
	return weir_errs_add(errs, NULL, WEIR_ENOMEM, NULL, "out of memory");
}

static int system_says(struct weir_errs *errs, const char *path)
{
	return weir_errs_add(errs, NULL, WEIR_ESYS, NULL, "%s: %s", path, strerror(errno));
}

/* ---- the check ---- */

static void free_sets(char **set, int n)
{
	for (int i = 0; set && i < n; i++)
		free(set[i]);
	free(set);
}

/* Return the changes as "stage.knob=value", or NULL if memory ran out. */
static char **sets_of(const struct config_change *change, int n)
{
	char **set = calloc((size_t)n + 1, sizeof(*set));

	for (int i = 0; set && i < n; i++) {
		const struct config_change *c = &change[i];
		size_t size = strlen(c->stage) + strlen(c->knob) + strlen(c->value) + 3;
		set[i] = malloc(size);
		if (!set[i]) {
			free_sets(set, i);
			return NULL;
		}
		snprintf(set[i], size, "%s.%s=%s", c->stage, c->knob, c->value);
	}
	return set;
}

/* Return the effective values of the configuration in `path`, with the changes applied if `set` is
 * not NULL. On failure returns NULL and fills in the errors. */
static char *meaning(const struct save *s, const char *path, char **set)
{
	struct weir_spec *spec = NULL;
	char *text = NULL;

	if (s->reading->load(path, (const char *const *)set, set ? s->n : 0, &spec, s->errs) != 0)
		return NULL;
	bool valid = s->reading->check(spec, s->errs) == 0;
	if (valid)
		text = config_values_text(spec);
	if (valid && !text)
		no_memory(s->errs);
	weir_spec_free(spec);
	return text;
}

/* Check that the effective values of the new file are those of the old file with the changes. */
static int compare(const struct save *s, const char *new)
{
	char **set = sets_of(s->change, s->n);
	char *want = set ? meaning(s, s->path, set) : NULL;
	char *got = want ? meaning(s, new, NULL) : NULL;
	int rc = 0;

	if (!set)
		rc = no_memory(s->errs);
	else if (!want || !got)
		rc = s->errs->err[0].code;
	else if (strcmp(want, got) != 0)
		rc = weir_errs_add(s->errs, NULL, WEIR_EINVAL, NULL,
		    "%s cannot be edited so that only these values change", s->path);
	free_sets(set, s->n);
	free(want);
	free(got);
	return rc;
}

/* ---- the file ---- */

static bool write_all(int fd, const char *text, size_t n)
{
	while (n > 0) {
		ssize_t done = write(fd, text, n);
		if (done < 0 && errno != EINTR)
			return false;
		text += done > 0 ? done : 0;
		n -= done > 0 ? (size_t)done : 0;
	}
	return true;
}

/* Write the new file, and give it the mode and group of the file at `path`, and its owner if
 * permitted. Fails if the group cannot be set. */
static bool fill(int fd, const char *path, const char *text, size_t n)
{
	struct stat st;

	if (stat(path, &st) != 0 || !write_all(fd, text, n))
		return false;
	if (fchown(fd, st.st_uid, st.st_gid) != 0 && fchown(fd, (uid_t)-1, st.st_gid) != 0)
		/* if the group could not be set, its members would lose access to the file */
		return false;
	return fchmod(fd, st.st_mode & 07777) == 0 && fsync(fd) == 0;
}

static void folder_of(const char *path, char folder[PATH_MAX])
{
	const char *slash = strrchr(path, '/');

	snprintf(folder, PATH_MAX, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
}

/* Make the new directory entry durable. */
static void sync_folder(const char *path)
{
	char folder[PATH_MAX];

	folder_of(path, folder);
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd != -1) {
		fsync(fd);
		close(fd);
	}
}

static bool look(const char *path, struct seen *seen)
{
	struct stat st;

	if (stat(path, &st) != 0)
		return false;
	*seen = (struct seen){st.st_dev, st.st_ino, st.st_size, st.st_ctim};
	return true;
}

/* Whether the file is as it was. Another save replaces it, an editor writes it. */
static bool is_unchanged(const char *path, const struct seen *then)
{
	struct seen now;

	return look(path, &now) && now.dev == then->dev && now.ino == then->ino &&
	       now.size == then->size && now.changed.tv_sec == then->changed.tv_sec &&
	       now.changed.tv_nsec == then->changed.tv_nsec;
}

/* Replace the file by `made`, unless it has changed since it was read. */
static int replace(const struct save *s, const char *made, const struct seen *then)
{
	if (!is_unchanged(s->path, then))
		return weir_errs_add(s->errs, NULL, WEIR_EBUSY, "save again",
		    "%s was changed by another program in the meantime", s->path);
	return rename(made, s->path) == 0 ? 0 : system_says(s->errs, s->path);
}

static int put_in_place(const struct save *s, const char *text, size_t n, const struct seen *then)
{
	char made[PATH_MAX + 16];

	snprintf(made, sizeof(made), "%s.XXXXXX", s->path);
	int fd = mkstemp(made);
	if (fd == -1)
		return system_says(s->errs, made);
	int rc = fill(fd, s->path, text, n) ? 0 : system_says(s->errs, made);
	close(fd);
	if (rc == 0)
		rc = compare(s, made);
	if (rc == 0 && !s->dry_run)
		rc = replace(s, made, then);
	if (rc != 0 || s->dry_run)
		unlink(made);
	else
		sync_folder(s->path);
	return rc;
}

/* ---- what changes ---- */

static int line_length(const char *text)
{
	return (int)strcspn(text, "\n");
}

static const char *next_line(const char *text)
{
	text += line_length(text);
	return *text ? text + 1 : text;
}

static bool same_line(const char *a, const char *b)
{
	int n = line_length(a);

	return n == line_length(b) && memcmp(a, b, (size_t)n) == 0;
}

/* Most lines that an edit removes: the entries of a map of `cores`. */
#define REMOVED_MAX 3

/* Whether some lines of `old` are not in the new text, which goes on with `new`. */
static bool is_removed(const char *old, const char *new)
{
	for (int i = 0; i < REMOVED_MAX && *old; i++) {
		old = next_line(old);
		if (*old && same_line(old, new))
			return true;
	}
	return false;
}

/* Write changed, added and removed lines. An edit adds one line at a time, so one line of lookahead is
 * enough to distinguish a changed line from an added one. */
static void write_changes(FILE *out, const char *old, const char *new)
{
	while (*new) {
		const char *after = next_line(new);
		bool same = *old && same_line(old, new);
		bool added = !*old || (!same && *after && same_line(old, after));
		bool removed = !same && !added && is_removed(old, new);
		if (!same && !added)
			fprintf(out, "- %.*s\n", line_length(old), old);
		if (!same && !removed)
			fprintf(out, "+ %.*s\n", line_length(new), new);
		old = added ? old : next_line(old);
		new = removed ? new : after;
	}
	for (; *old; old = next_line(old))
		fprintf(out, "- %.*s\n", line_length(old), old);
}

/* Store the lines in *changes, which the caller frees. */
static int list_changes(const char *old, const char *new, char **changes, struct weir_errs *errs)
{
	size_t size;
	FILE *out = open_memstream(changes, &size);

	if (!out)
		return no_memory(errs);
	write_changes(out, old, new);
	if (fclose(out) == 0)
		return 0;
	free(*changes);
	*changes = NULL;
	return no_memory(errs);
}

/* ---- the call ---- */

/* Take the lock of the folder, so that one save at a time reads and replaces a file in it. Returns its
 * descriptor, or -1 if that takes too long: other programs may hold it. Then another save is noticed in
 * most cases (is_unchanged). */
static int lock_folder(const char *path)
{
	const struct timespec look = {0, LOCK_LOOK_NS};
	char folder[PATH_MAX];

	folder_of(path, folder);
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd == -1)
		return -1;
	for (int i = 0; i < LOCK_LOOKS; i++) {
		if (flock(fd, LOCK_EX | LOCK_NB) == 0)
			return fd;
		nanosleep(&look, NULL);
	}
	close(fd);
	return -1;
}

/* A file that may not be written is not replaced, even though the folder would permit it. */
static int check_writable(const struct save *s)
{
	if (s->dry_run || access(s->path, W_OK) == 0)
		return 0;
	return weir_errs_add(s->errs, NULL, WEIR_ESYS,
	    "with --dry-run the new values are only shown", "%s cannot be written: %s", s->path,
	    strerror(errno));
}

static int save(const struct save *s, char **changes)
{
	char *old = NULL, *new = NULL;
	size_t n_old = 0, n_new = 0;
	struct seen seen;

	if (!look(s->path, &seen))
		return system_says(s->errs, s->path);
	int rc = config_edit(s->path, NULL, 0, &old, &n_old, s->errs);
	if (rc == 0)
		rc = config_edit(s->path, s->change, s->n, &new, &n_new, s->errs);
	if (rc == 0)
		rc = list_changes(old, new, changes, s->errs);
	if (rc == 0)
		rc = put_in_place(s, new, n_new, &seen);
	free(old);
	free(new);
	return rc;
}

int config_save(const char *path, const struct config_change *change, int n,
    const struct config_reading *reading, bool dry_run, char **changes, struct weir_errs *errs)
{
	char real[PATH_MAX]; /* so that a symbolic link is not replaced, but its target */
	struct save s = {.path = path,
	    .change = change,
	    .n = n,
	    .reading = reading,
	    .dry_run = dry_run,
	    .errs = errs};
	struct stat st;

	*changes = NULL;
	if (lstat(path, &st) != 0)
		return system_says(errs, path);
	if (S_ISLNK(st.st_mode)) {
		if (!realpath(path, real))
			return system_says(errs, path);
		s.path = real;
	}
	if (strlen(s.path) >= PATH_MAX)
		return weir_errs_add(errs, NULL, WEIR_EINVAL, NULL, "the file name is too long");
	int lock = dry_run ? -1 : lock_folder(s.path);
	int rc = check_writable(&s);
	if (rc == 0)
		rc = save(&s, changes);
	if (lock != -1)
		close(lock);
	if (rc != 0) {
		free(*changes);
		*changes = NULL;
	}
	return rc;
}
