/* SPDX-License-Identifier: MIT */
/*
 * Sets a knob of a stage or a group by its path, for `--set` and for specs built by a program.
 *
 *   threads            "inline", or a number for a pool of fixed size
 *   threads.max ...    a row of weir_stage_knobs
 *   with.body ...      a knob of the stage type, stored as a node and checked by the graph's build
 */
#include <weir/spec.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/stage.h>

#include "base/knob_in.h"

/* Maximum length of a name between two dots of a path. */
#define WORD_BYTES 64

static int set_fail(char *why, size_t size, int code, const char *fmt, ...) WEIR_PRINTF(4, 5);
static int set_fail(char *why, size_t size, int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, size, fmt, ap);
	va_end(ap);
	return code;
}

/* Copy the first word of *path to `word`. *path advances to the next word, or becomes NULL after
 * the last one. */
static bool next_word(const char **path, char word[WORD_BYTES])
{
	size_t n = strcspn(*path, ".");

	if (n == 0 || n >= WORD_BYTES)
		return false;
	memcpy(word, *path, n);
	word[n] = '\0';
	*path = (*path)[n] == '.' ? *path + n + 1 : NULL;
	return true;
}

/* Apply a value such as `threads: inline` or `threads: 4`. */
static int set_threads(struct weir_stage_spec *s, const char *value, char *why, size_t size)
{
	struct weir_threads_spec *t = &s->threads;

	if (strcmp(value, "inline") == 0) {
		s->inlined = true;
		return 0;
	}
	int rc = weir_knob_parse(weir_knob_find(weir_threads_knobs, "min"), value, t, why, size);
	if (rc != 0)
		return set_fail(why, size, rc,
		    "'%.60s' is not a number of threads from 1 to %d: write such a number, "
		    "'inline', or a map",
		    value, (int)weir_knob_find(weir_threads_knobs, "min")->max);
	t->max = t->min;
	t->start = KNOB_AUTO;
	s->inlined = false;
	return 0;
}

/* Return the name of the row that is nearest to `word`, or NULL if none is near. */
static const char *nearest_row(const struct weir_knob *table, const char *word)
{
	const char *names[64]; /* more than any table has */
	int n = 0;

	for (const struct weir_knob *row = table; row && row->name && n < 64; row++)
		names[n++] = row->name;
	return weir_nearest(word, names, n);
}

/* Report an unknown knob and suggest the nearest name. Knobs of a stage type need the prefix
 * `with.`, which users easily forget, so such knobs are suggested with the prefix. */
static int no_such_knob(const struct weir_knob *table, const char *word, const char *path,
    const struct weir_stage_spec *s, char *why, size_t size)
{
	const struct weir_stage_ops *ops = weir_stage_type_find(s->use);
	const struct weir_knob *own = ops && table == weir_stage_knobs ? ops->knobs : NULL;
	const char *near = own && weir_knob_find(own, word) ? NULL : nearest_row(table, word);
	const char *prefix = near ? "" : "with.";

	near = near ? near : nearest_row(own, word);
	if (!near)
		return set_fail(
		    why, size, WEIR_ENOENT, "stage '%.64s' has no knob '%.80s'", s->name, path);
	return set_fail(why, size, WEIR_ENOENT,
	    "stage '%.64s' has no knob '%.80s': did you mean '%s%s'?", s->name, path, prefix, near);
}

/* Find the row for `path` below `table`, and advance *base to the struct that has its member. On
 * failure returns NULL, with the unknown word and its table in *word and *at; *at is NULL if `path` is
 * no path. */
static const struct weir_knob *row_at(const struct weir_knob *table, const char *path,
    char word[WORD_BYTES], const struct weir_knob **at, void **base)
{
	const char *rest = path;

	for (*at = NULL; next_word(&rest, word); table = *at) {
		const struct weir_knob *row = weir_knob_find(table, word);
		*at = table;
		if (!row || (rest && row->type != WEIR_KNOB_MAP))
			return NULL;
		if (!rest)
			return row;
		*base = knob_member(row, *base);
		*at = row->fields;
	}
	*at = NULL;
	return NULL;
}

static int no_path(const char *path, char *why, size_t size)
{
	return set_fail(why, size, WEIR_ENOENT, "'%.80s' is not the path of a knob", path);
}

static int set_row(
    struct weir_stage_spec *s, const char *path, const char *value, char *why, size_t size)
{
	const struct weir_knob *table;
	char word[WORD_BYTES];
	void *base = s;
	const struct weir_knob *row = row_at(weir_stage_knobs, path, word, &table, &base);

	if (row)
		return weir_knob_parse(row, value, base, why, size);
	return table ? no_such_knob(table, word, path, s, why, size) : no_path(path, why, size);
}

int weir_group_spec_set(
    struct weir_group_spec *group, const char *path, const char *value, char *why, size_t size)
{
	const struct weir_knob *table;
	char word[WORD_BYTES];
	void *base = group;
	const struct weir_knob *row = row_at(weir_group_knobs, path, word, &table, &base);

	if (row)
		return weir_knob_parse(row, value, base, why, size);
	if (!table)
		return no_path(path, why, size);
	const char *near = nearest_row(table, word);
	return set_fail(why, size, WEIR_ENOENT, "group '%.64s' has no knob '%.80s'%s%s%s",
	    group->name, path, near ? ": did you mean '" : "", near ? near : "", near ? "'?" : "");
}

/* ---- with.* ---- */

static struct weir_node *new_node(enum weir_node_kind kind, const char *text)
{
	struct weir_node *node = calloc(1, sizeof(*node));

	if (!node)
		return NULL;
	node->kind = kind;
	node->quoted = true; /* here "" is an empty string, not a missing value */
	node->text = text ? strdup(text) : NULL;
	if (text && !node->text) {
		free(node);
		return NULL;
	}
	return node;
}

/* Store `item` under `key`, replacing any existing value. Takes ownership of `item`, even on
 * failure. */
static int put_node(struct weir_node *map, const char *key, struct weir_node *item)
{
	struct weir_node *name = new_node(WEIR_NODE_SCALAR, key);
	size_t bytes = ((size_t)map->n + 1) * sizeof(*map->item);

	for (int i = 0; name && item && i < map->n; i++)
		if (strcmp(map->name[i]->text, key) == 0) {
			weir_node_free(map->item[i]);
			map->item[i] = item;
			weir_node_free(name);
			return 0;
		}
	struct weir_node **items = item && name ? realloc(map->item, bytes) : NULL;
	map->item = items ? items : map->item;
	struct weir_node **names = items ? realloc(map->name, bytes) : NULL;
	map->name = names ? names : map->name;
	if (!names) {
		weir_node_free(item);
		weir_node_free(name);
		return WEIR_ENOMEM;
	}
	items[map->n] = item;
	names[map->n++] = name;
	return 0;
}

/* Return the map stored under `key` in `map`, or add an empty one. Returns NULL if out of
 * memory. */
static struct weir_node *sub_map(struct weir_node *map, const char *key)
{
	for (int i = 0; i < map->n; i++)
		if (strcmp(map->name[i]->text, key) == 0 && map->item[i]->kind == WEIR_NODE_MAP)
			return map->item[i];
	struct weir_node *made = new_node(WEIR_NODE_MAP, NULL);
	return put_node(map, key, made) == 0 ? made : NULL;
}

static int set_with(
    struct weir_stage_spec *s, const char *path, const char *value, char *why, size_t size)
{
	const char *rest = path;
	char word[WORD_BYTES];

	if (!s->with)
		s->with = new_node(WEIR_NODE_MAP, NULL);
	struct weir_node *map = s->with;
	while (map && rest) {
		if (!next_word(&rest, word))
			return set_fail(
			    why, size, WEIR_ENOENT, "'with.%.80s' is not the path of a knob", path);
		if (rest)
			map = sub_map(map, word);
		else if (put_node(map, word, new_node(WEIR_NODE_SCALAR, value)) != 0)
			map = NULL;
	}
	return map ? 0 : set_fail(why, size, WEIR_ENOMEM, "%s", weir_error_text(WEIR_ENOMEM));
}

int weir_stage_spec_set(
    struct weir_stage_spec *stage, const char *path, const char *value, char *why, size_t size)
{
	if (strncmp(path, "with.", 5) == 0)
		return set_with(stage, path + 5, value, why, size);
	if (strcmp(path, "threads") == 0)
		return set_threads(stage, value, why, size);
	int rc = set_row(stage, path, value, why, size);
	/* setting a knob of the stage's pool ends `threads: inline` */
	if (rc == 0 && strncmp(path, "threads.", 8) == 0)
		stage->inlined = false;
	if (rc == 0 && strncmp(path, "width.", 6) == 0)
		stage->width.given = true;
	return rc;
}
