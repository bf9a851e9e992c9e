/* SPDX-License-Identifier: MIT */
/*
 * save: write the knobs that were set permanently on a running server to its YAML file.
 *
 * The file is edited in memory (config_edit), written to a temporary file in the same folder, and
 * loaded from there. It replaces the old file only if its effective values are those of the old
 * file with exactly these changes. The replacement is atomic and preserves the mode of the file.
 */
#include "cli/act.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weir/graph.h>

#include "config.h"
#include "cli/client/plain.h"

/* Maximum number of overridden knobs of a server. The number is a guess: more than an operator
 * sets. */
#define SAVE_MAX VERB_SETS_MAX

struct save {
	const struct verb *verb;
	const struct verb_args *args;
	struct config_change change[SAVE_MAX];
	char *set[SAVE_MAX]; /* the same changes as "stage.knob=value", owned */
	int n;
	json_t *kept[SAVE_MAX]; /* responses of the server, which hold the texts of the changes */
	int n_kept;
};

/* ---- overridden knobs ---- */

static void warn_brief(const char *stage, const json_t *knob)
{
	char at[32];

	plain_print(stderr, "weir save: %s.%s is %s only until %s, so it is not saved\n", stage,
	    act_text(knob, "name"), act_text(knob, "effective"),
	    act_time(at, json_number_value(json_object_get(knob, "expires_at"))));
}

static int add_change(struct save *s, const char *stage, const json_t *knob, const char *value)
{
	const char *name = act_text(knob, "name");
	size_t size = strlen(stage) + strlen(name) + strlen(value) + 3;

	if (s->n == SAVE_MAX) {
		plain_print(stderr,
		    "weir save: more than %d knobs are overridden, which is more than can be "
		    "saved\n",
		    SAVE_MAX);
		return VERB_FINDING;
	}
	s->set[s->n] = malloc(size);
	if (!s->set[s->n]) {
		fputs("weir save: out of memory\n", stderr);
		return VERB_FINDING;
	}
	snprintf(s->set[s->n], size, "%s.%s=%s", stage, name, value);
	s->change[s->n++] =
	    (struct config_change){stage, name, value, strcmp(act_text(knob, "type"), "bool") == 0};
	return VERB_OK;
}

/* `kind` is "stages" or "groups". */
static int add_owner(struct save *s, const char *kind, const char *stage)
{
	char path[ACT_PATH_MAX];
	json_t *doc;
	int had = s->n;

	if (!act_name_fits(s->verb, stage))
		return VERB_FINDING;
	snprintf(path, sizeof(path), "/api/v1/%s/%s/knobs", kind, stage);
	int rc = act_ask(s->verb, s->args, "GET", path, NULL, &doc);
	if (rc != VERB_OK)
		return rc;
	const json_t *knobs = json_object_get(doc, "knobs");
	for (size_t i = 0; rc == VERB_OK && i < json_array_size(knobs); i++) {
		const json_t *knob = json_array_get(knobs, i);
		if (!json_is_string(json_object_get(knob, "overridden")))
			continue;
		const json_t *kept = json_object_get(knob, "kept");
		bool brief = json_is_number(json_object_get(knob, "expires_at"));
		if (brief)
			warn_brief(stage, knob);
		if (json_is_string(kept)) /* the permanent value, if a temporary one hides it */
			rc = add_change(s, stage, knob, json_string_value(kept));
		else if (!brief)
			rc = add_change(s, stage, knob, act_text(knob, "overridden"));
	}
	if (s->n > had)
		s->kept[s->n_kept++] = doc; /* the texts of the changes are in this response */
	else
		json_decref(doc);
	return rc;
}

/* Whether one of the stages before `i` is in the group. */
static bool is_repeated(const json_t *stages, size_t i, const char *group)
{
	while (i-- > 0)
		if (strcmp(act_text(json_array_get(stages, i), "group"), group) == 0)
			return true;
	return false;
}

static int fetch(struct save *s, json_t **graph)
{
	int rc = act_ask(s->verb, s->args, "GET", "/api/v1/graph", NULL, graph);
	const json_t *stages = json_object_get(*graph, "stages");

	for (size_t i = 0; rc == VERB_OK && i < json_array_size(stages); i++)
		rc = add_owner(s, "stages", act_text(json_array_get(stages, i), "name"));
	for (size_t i = 0; rc == VERB_OK && i < json_array_size(stages); i++) {
		const char *group = act_text(json_array_get(stages, i), "group");
		if (act_is_group(*graph, group) && !is_repeated(stages, i, group))
			rc = add_owner(s, "groups", group);
	}
	return rc;
}

static void forget(struct save *s)
{
	for (int i = 0; i < s->n; i++)
		free(s->set[i]);
	for (int i = 0; i < s->n_kept; i++)
		json_decref(s->kept[i]);
}

/* ---- the check ---- */

/* Return the effective values of the configuration in `path`, with the first `n_sets` changes of
 * `s` applied. On failure returns NULL and fills in `errs`, unless memory ran out. */
static char *meaning(const char *path, const struct save *s, int n_sets, struct weir_errs *errs)
{
	struct weir_spec *spec = NULL;
	char *text = NULL;

	if (config_load(path, (const char *const *)s->set, n_sets, &spec, errs) != 0)
		return NULL;
	if (weir_spec_check(spec, errs) == 0)
		text = config_values_text(spec);
	weir_spec_free(spec);
	return text;
}

/* Check that the effective values of the new file are those of the old file with the changes. */
static int compare(const struct save *s, const char *old, const char *new)
{
	struct weir_errs errs = {0};
	char *want = meaning(old, s, s->n, &errs);
	char *got = want ? meaning(new, s, 0, &errs) : NULL;
	int rc = VERB_OK;

	if (errs.total > 0) {
		verb_print_errors(&errs, "Nothing was written.");
		rc = VERB_FINDING;
	} else if (!want || !got) {
		fputs("weir save: out of memory\n", stderr);
		rc = VERB_FINDING;
	} else if (strcmp(want, got) != 0) {
		plain_print(stderr,
		    "weir save: %s cannot be edited so that only these values change; nothing was "
		    "written\n",
		    old);
		rc = VERB_FINDING;
	}
	free(want);
	free(got);
	return rc;
}

/* ---- the file ---- */

static int system_says(const char *path)
{
	plain_print(stderr, "weir save: %s: %s\n", path, strerror(errno));
	return VERB_FINDING;
}

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

/* Make the new directory entry durable. */
static void sync_folder(const char *path)
{
	char folder[4096];
	const char *slash = strrchr(path, '/');

	snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path) + 1 : 1,
	    slash ? path : ".");
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd != -1) {
		fsync(fd);
		close(fd);
	}
}

static int put_in_place(const struct save *s, const char *path, const char *text, size_t n)
{
	char made[4096 + 16];

	snprintf(made, sizeof(made), "%s.XXXXXX", path);
	int fd = mkstemp(made);
	if (fd == -1)
		return system_says(made);
	bool good = fill(fd, path, text, n);
	int rc = good ? VERB_OK : system_says(made);
	close(fd);
	if (rc == VERB_OK)
		rc = compare(s, path, made);
	if (rc == VERB_OK && !s->args->dry_run && rename(made, path) != 0)
		rc = system_says(path);
	if (rc != VERB_OK || s->args->dry_run)
		unlink(made);
	else
		sync_folder(path);
	return rc;
}

/* ---- printing the changes ---- */

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

/* Print changed, added and removed lines. An edit adds one line at a time, so one line of lookahead is
 * enough to distinguish a changed line from an added one. */
static void print_changes(const char *old, const char *new)
{
	while (*new) {
		const char *after = next_line(new);
		bool same = *old && same_line(old, new);
		bool added = !*old || (!same && *after && same_line(old, after));
		bool removed = !same && !added && is_removed(old, new);
		if (!same && !added)
			plain_print(stdout, "- %.*s\n", line_length(old), old);
		if (!same && !removed)
			plain_print(stdout, "+ %.*s\n", line_length(new), new);
		old = added ? old : next_line(old);
		new = removed ? new : after;
	}
	for (; *old; old = next_line(old))
		plain_print(stdout, "- %.*s\n", line_length(old), old);
}

static int save(struct save *s, const char *path)
{
	struct weir_errs errs = {0};
	char *old = NULL, *new = NULL;
	size_t n_old = 0, n_new = 0;

	int rc = config_edit(path, NULL, 0, &old, &n_old, &errs);
	if (rc == 0)
		rc = config_edit(path, s->change, s->n, &new, &n_new, &errs);
	if (rc != 0)
		verb_print_errors(&errs, "Nothing was written.");
	rc = rc == 0 ? put_in_place(s, path, new, n_new) : VERB_FINDING;
	if (rc == VERB_OK) {
		print_changes(old, new);
		plain_print(stdout, "%s: %d value%s %s\n", path, s->n, s->n == 1 ? "" : "s",
		    s->args->dry_run ? "would be saved" : "saved");
	}
	free(old);
	free(new);
	return rc;
}

/* If `name` is a symbolic link, return its target, so that the link itself is not replaced;
 * otherwise return a copy of `name`. The caller frees the result. On failure, returns NULL and
 * prints the reason on stderr. */
static char *real_name(const char *name)
{
	struct stat st;
	char *path = lstat(name, &st) == 0
			 ? S_ISLNK(st.st_mode) ? realpath(name, NULL) : strdup(name)
			 : NULL;

	if (!path)
		system_says(name);
	return path;
}

int verb_save(const struct verb *verb, const struct verb_args *args)
{
	struct save s = {.verb = verb, .args = args};
	char *path = real_name(args->operand[0]);
	json_t *graph = NULL;

	if (!path)
		return VERB_FINDING;
	int rc = fetch(&s, &graph);
	if (rc == VERB_OK && s.n == 0)
		puts("no knob is overridden permanently, so there is nothing to save");
	else if (rc == VERB_OK && strlen(path) >= 4096)
		rc = verb_misused(verb, "the file name is too long");
	else if (rc == VERB_OK)
		rc = save(&s, path);
	forget(&s);
	json_decref(graph);
	free(path);
	return rc;
}
