/* SPDX-License-Identifier: MIT */
/*
 * Merges files into one tree. The entries of a file come first, followed by those of the files that
 * it includes, in the order of the `include:` (the matches of a pattern are sorted by name). The
 * maps of stages, classes and groups are joined; any other key may occur in only one file. No file
 * overrides another one, since users would have to remember which one takes precedence.
 */
#include "load.h"

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "config.h"
#include "tree.h"

#define PATH_BYTES 4096

/* The only supported version of the YAML format. */
#define FORMAT_VERSION "1"

bool load_relative(const char *from, const char *path, char *buf, size_t size)
{
	const char *slash = strrchr(from, '/');
	int dir = slash && path[0] != '/' ? (int)(slash - from) + 1 : 0;
	int n = snprintf(buf, size, "%.*s%s", dir, from, path);

	return n >= 0 && (size_t)n < size;
}

/* ---- merging ---- */

/* Return whether the key is a user's note (x-*). Notes are neither expanded nor merged. */
static bool is_note(const struct weir_node *name)
{
	return strncmp(name->text, "x-", 2) == 0;
}

static bool is_joined(const char *key)
{
	return strcmp(key, "stages") == 0 || strcmp(key, "classes") == 0 ||
	       strcmp(key, "groups") == 0;
}

/* Return the index of `key` in `map`, or -1 if it is absent. */
static int index_of(const struct weir_node *map, const char *key)
{
	for (int i = 0; i < map->n; i++)
		if (strcmp(map->name[i]->text, key) == 0)
			return i;
	return -1;
}

static void report_twice(struct load *load, const struct weir_node *again,
    const struct weir_node *first, const char *what)
{
	char hint[160];

	snprintf(hint, sizeof(hint), "the first is at %.100s:%d:%d", first->mark.file,
	    first->mark.line, first->mark.col);
	weir_errs_add(load->errs, &again->mark, WEIR_EINVAL, hint, "%s'%s' is given twice", what,
	    again->text);
}

/* Move entry `i` of `from` to the end of `to`, leaving an empty slot in `from`. */
static int move_entry(struct weir_node *to, struct weir_node *from, int i)
{
	struct weir_node *name = from->name[i], *item = from->item[i];

	from->name[i] = from->item[i] = NULL;
	return tree_append(to, name, item);
}

static int join(
    struct load *load, struct weir_node *into, struct weir_node *section, const char *what)
{
	for (int i = 0; i < section->n; i++) {
		int first = index_of(into, section->name[i]->text);
		if (first >= 0)
			report_twice(load, section->name[i], into->name[first], what);
		else if (move_entry(into, section, i) != 0)
			return source_no_memory(load->errs);
	}
	return 0;
}

static const char *entry_word(const char *section)
{
	return strcmp(section, "stages") == 0    ? "stage "
	       : strcmp(section, "classes") == 0 ? "class "
						 : "group ";
}

static int merge_key(struct load *load, struct weir_node *tree, int i)
{
	const char *key = tree->name[i]->text;
	int there = index_of(load->root, key);

	if (there < 0)
		return move_entry(load->root, tree, i) == 0 ? 0 : source_no_memory(load->errs);
	struct weir_node *into = load->root->item[there];
	if (strcmp(key, "weir") == 0)
		/* every file may have this key; check_version has checked its values */
		return 0;
	if (is_joined(key) && into->kind == WEIR_NODE_MAP && tree->item[i]->kind == WEIR_NODE_MAP)
		return join(load, into, tree->item[i], entry_word(key));
	report_twice(load, tree->name[i], load->root->name[there], "");
	return 0;
}

static void check_version(struct load *load, const struct weir_node *tree)
{
	const struct weir_node *version = weir_node_get(tree, "weir");

	if (!version ||
	    (version->kind == WEIR_NODE_SCALAR && strcmp(version->text, FORMAT_VERSION) == 0))
		return;
	weir_errs_add(load->errs, &version->mark, WEIR_EINVAL, "write 'weir: 1'",
	    "this weir reads version 1 of the configuration");
}

static int merge(struct load *load, struct weir_node *tree)
{
	int rc = 0;

	check_version(load, tree);
	for (int i = 0; rc == 0 && i < tree->n; i++)
		if (strcmp(tree->name[i]->text, "include") != 0 && !is_note(tree->name[i]))
			rc = merge_key(load, tree, i);
	return rc;
}

/* ---- including ---- */

static void include_error(
    struct load *load, const struct weir_node *entry, const char *hint, const char *text)
{
	weir_errs_add(load->errs, &entry->mark, WEIR_EINVAL, hint, "%s", text);
}

/* Called by glob for a directory that cannot be read. A missing directory contains no files, so it
 * is not an error. An unreadable one may contain files, so it is an error. */
static int is_worth_an_error(const char *path, int err)
{
	(void)path;
	return err != ENOENT && err != ENOTDIR;
}

/* Load each file that matches. It is no error if a pattern matches nothing, but a path without a
 * pattern must exist. */
static int include_pattern(
    struct load *load, const struct weir_node *entry, const struct load_path *here)
{
	char pattern[PATH_BYTES];
	glob_t found;
	int rc = 0;

	if (!load_relative(here->source->name, entry->text, pattern, sizeof(pattern))) {
		include_error(load, entry, NULL, "this path is too long");
		return 0;
	}
	if (!strpbrk(pattern, "*?["))
		return load_file(load, pattern, &entry->mark, here);
	int why = glob(pattern, 0, is_worth_an_error, &found);
	if (why == GLOB_NOSPACE)
		return source_no_memory(load->errs);
	if (why == GLOB_ABORTED)
		include_error(load, entry, NULL, "a folder of this pattern cannot be read");
	for (size_t i = 0; why == 0 && rc == 0 && i < found.gl_pathc; i++)
		rc = load_file(load, found.gl_pathv[i], &entry->mark, here);
	if (why == 0)
		globfree(&found);
	return rc;
}

static int include_entry(
    struct load *load, const struct weir_node *entry, const struct load_path *here)
{
	if (entry->kind == WEIR_NODE_SCALAR && entry->text[0] != '\0')
		return include_pattern(load, entry, here);
	include_error(load, entry, NULL, "'include' takes a path, a pattern, or a list of them");
	return 0;
}

static int include(struct load *load, const struct weir_node *node, const struct load_path *here)
{
	int rc = 0;

	if (!node)
		return 0;
	if (!load->from_file) {
		include_error(load, node, NULL, "only a file can include others");
		return 0;
	}
	if (node->kind != WEIR_NODE_LIST)
		return include_entry(load, node, here);
	for (int i = 0; rc == 0 && i < node->n; i++)
		rc = include_entry(load, node->item[i], here);
	return rc;
}

/* ---- one file ---- */

static bool is_same(const struct source *s, const struct stat *st)
{
	return s->on_disk && s->dev == st->st_dev && s->ino == st->st_ino;
}

/* Return whether this file has already been read. If so, report a cycle or a second inclusion. */
static bool was_read(
    struct load *load, const char *path, const struct weir_mark *at, const struct load_path *up)
{
	struct stat st;

	if (stat(path, &st) != 0)
		return false; /* the caller will try to read the file, and report the reason */
	for (const struct load_path *p = up; p; p = p->up)
		if (is_same(p->source, &st)) {
			weir_errs_add(load->errs, at, WEIR_EINVAL, NULL,
			    "'%s' includes itself: it is already being read", path);
			return true;
		}
	for (int i = 0; i < load->all->n; i++)
		if (is_same(load->all->item[i], &st)) {
			weir_errs_add(load->errs, at, WEIR_EINVAL,
			    "include the file in one place only", "'%s' is included twice", path);
			return true;
		}
	return false;
}

/* Expand variables. Mistakes are reported and skipped; the expansion only stops if memory runs
 * out. */
static int expand(struct load *load, struct weir_node *tree)
{
	int rc = 0;

	for (int i = 0; rc != WEIR_ENOMEM && i < tree->n; i++)
		if (!is_note(tree->name[i]))
			rc = tree_expand(load->all, tree->item[i], load->errs);
	return rc == WEIR_ENOMEM ? rc : 0;
}

static void not_a_map(struct load *load, const struct source *source)
{
	weir_errs_add(load->errs, &source->root->mark, WEIR_EINVAL,
	    "begin with 'weir: 1', and add 'stages:'", "a configuration must be a map, not %s",
	    tree_kind(source->root));
}

int load_source(struct load *load, struct source *source, const struct load_path *up)
{
	struct load_path here = {.up = up, .source = source};

	int rc = tree_parse(load->all, source, load->errs);
	if (!source->root)
		return rc == WEIR_ENOMEM ? rc : 0;
	if (source->root->kind != WEIR_NODE_MAP) {
		not_a_map(load, source);
		return 0;
	}
	rc = expand(load, source->root);
	if (rc != 0)
		return rc;
	if (!up) {
		load->usable = true;
		load->root->mark = source->root->mark; /* position for errors about missing keys */
	}
	/* Find `include` before the merge, which moves all other entries out of the tree. */
	const struct weir_node *included = weir_node_get(source->root, "include");
	rc = merge(load, source->root);
	return rc == 0 ? include(load, included, &here) : rc;
}

int load_file(
    struct load *load, const char *path, const struct weir_mark *at, const struct load_path *up)
{
	struct source *source;

	if (up && was_read(load, path, at, up))
		return 0;
	if (load->all->n > CONFIG_INCLUDES_MAX) {
		weir_errs_add(load->errs, at, WEIR_EINVAL, NULL, "more than %d files are included",
		    CONFIG_INCLUDES_MAX);
		return 0;
	}
	int rc = source_read(load->all, path, at, &source, load->errs);
	if (rc == 0)
		return load_source(load, source, up);
	return rc == WEIR_ENOMEM || !up ? rc : 0; /* the other files can still be read */
}
