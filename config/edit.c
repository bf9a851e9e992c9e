/* SPDX-License-Identifier: MIT */
/*
 * Sets values in the text of a configuration file and leaves every other byte unchanged, for
 * `weir save`.
 *
 * Changes are made one at a time: parse the text, find the position, replace or insert the value,
 * and repeat with the resulting text. The tree is that of this file alone, neither expanded nor
 * merged, so each position in the tree is a position in the text.
 *
 *   value exists      its span is replaced; quotes are preserved. `cores` of a group may be a map,
 *                     which is replaced as a whole
 *   section exists    in a block, a line is added after the last one-line entry; in a flow map,
 *                     the value is added after the last one, or at the start
 *   neither exists    the section is added to the stage in the same ways, as `threads: { max: 8 }`
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "rows.h"
#include "source.h"
#include "tree.h"

struct edit {
	struct sources *all;
	struct source *source;
	struct weir_errs *errs;
	char *text; /* as parsed; owned */
	size_t n;
};

/* A range of the text and its replacement. */
struct splice {
	size_t at, n;
	char *text; /* owned */
};

static int refuse(struct edit *e, const struct weir_node *node, const char *hint, const char *text)
{
	return weir_errs_add(e->errs, node ? &node->mark : NULL, WEIR_EINVAL, hint, "%s", text);
}

static size_t offset_of(const struct edit *e, const struct weir_mark *mark)
{
	return (size_t)(e->source->line[mark->line - 1] - e->source->lines) + (size_t)mark->col - 1;
}

static char at(const struct edit *e, size_t offset)
{
	return offset < e->n ? e->text[offset] : '\0';
}

/* Write the value of `c`. If it is a boolean, or a number, with or without a unit, enclose it in
 * `quote` unless that is 0. For other values, row_quote determines whether quotes are needed. */
static void put_value(FILE *out, const struct config_change *c, char quote)
{
	const char *value = c->value;
	size_t plain =
	    strspn(value, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ._%");
	bool number = value[0] >= '0' && value[0] <= '9' && value[plain] == '\0';
	bool bare = c->plain || number;

	if (bare && quote)
		fprintf(out, "%c%s%c", quote, value, quote);
	else if (bare)
		fputs(value, out);
	else
		row_quote(out, value);
}

/* ---- replacing a value ---- */

/* Return whether the scalar ends on the line on which it begins. */
static bool is_one_line(const struct edit *e, const struct weir_node *node)
{
	size_t from = offset_of(e, &node->mark);
	char first = at(e, from);

	if (node->kind != WEIR_NODE_SCALAR || tree_is_empty(node))
		return false;
	if (!node->quoted)
		return true;
	if (first != '"' && first != '\'')
		return false;
	return node->mark.len >= 2 && at(e, from + (size_t)node->mark.len - 1) == first;
}

static int replace(struct edit *e, const struct weir_node *node, const struct config_change *c,
    FILE *out, struct splice *s)
{
	char quote;

	if (node->kind != WEIR_NODE_SCALAR)
		return refuse(e, node, NULL,
		    "this key has several values, but a single one is to be written");
	if (strstr(node->text, "${"))
		return refuse(e, node, "change the variable, or write a value here first",
		    "this value comes from ${}");
	if (!is_one_line(e, node))
		return refuse(e, node, "write the value by hand",
		    tree_is_empty(node) ? "there is no value here to replace"
					: "this value has more than one line");
	s->at = offset_of(e, &node->mark);
	s->n = (size_t)node->mark.len;
	quote = node->quoted ? at(e, s->at) : '\0';
	put_value(out, c, quote);
	return 0;
}

/* ---- replacing `cores: { min, max, policy }` of a group ---- */

/* Set s->at and s->n to the range of the map, from behind the colon of its key. Returns false if the
 * range has a comment, or an entry that does not fit on a line. */
static bool map_span(struct edit *e, const struct weir_node *map, struct splice *s)
{
	size_t from = offset_of(e, &map->mark), end = from;
	bool flow = at(e, from) == '{';

	WEIR_ASSERT(e->text != NULL); /* a file with a map has been read */
	for (int i = 0; i < map->n; i++) {
		size_t last = offset_of(e, &map->item[i]->mark) + (size_t)map->item[i]->mark.len;
		if (!is_one_line(e, map->item[i]))
			return false;
		end = last > end ? last : end;
	}
	if (flow)
		end += strcspn(e->text + end, "}#") + 1;
	while (from > 0 && at(e, from - 1) != ':')
		from--;
	s->at = from;
	s->n = end - from;
	return end <= e->n && !memchr(e->text + from, '#', s->n);
}

/* Whether a value of the map comes from a variable. */
static bool has_variable(const struct weir_node *map)
{
	for (int i = 0; i < map->n; i++)
		if (map->item[i]->kind == WEIR_NODE_SCALAR && strstr(map->item[i]->text, "${"))
			return true;
	return false;
}

/* A range is written as a map, with the policy that the map has. A policy resizes ranges only, so it
 * is dropped if there is none. */
static int replace_cores(struct edit *e, const struct weir_node *map, const struct config_change *c,
    FILE *out, struct splice *s)
{
	const struct weir_node *policy = weir_node_get(map, "policy");
	const char *dots = strstr(c->value, "..");

	if (has_variable(map))
		return refuse(e, map, "change the variable, or write a value here first",
		    "a value in this map comes from ${}");
	if (!map_span(e, map, s)) {
		char hint[160];
		snprintf(
		    hint, sizeof(hint), "write 'cores: %.80s' by hand, and save again", c->value);
		return refuse(e, map, hint, "this map has comments, or values of several lines");
	}
	fputc(' ', out);
	if (!dots) {
		put_value(out, c, '\0');
		return 0;
	}
	fprintf(out, "{ min: %.*s, max: %s", (int)(dots - c->value), c->value, dots + 2);
	if (policy) {
		fputs(", policy: ", out);
		row_quote(out, policy->text);
	}
	fputs(" }", out);
	return 0;
}

/* ---- adding a value ---- */

static void put_entry(FILE *out, const char *path, const struct config_change *c)
{
	size_t n = strcspn(path, ".");

	if (path[n] == '.') {
		fprintf(out, "%.*s: { ", (int)n, path);
		put_entry(out, path + n + 1, c);
		fputs(" }", out);
	} else {
		fprintf(out, "%s: ", path);
		put_value(out, c, '\0');
	}
}

/* Insert into a flow map such as { a: 1 }: after the last value if that is a scalar on one line,
 * else at the start. */
static int insert_flow(struct edit *e, const struct weir_node *map, const char *path,
    const struct config_change *c, FILE *out, struct splice *s)
{
	const struct weir_node *last = map->n ? map->item[map->n - 1] : NULL;

	if (last && is_one_line(e, last)) {
		s->at = offset_of(e, &last->mark) + (size_t)last->mark.len;
		fputs(", ", out);
		put_entry(out, path, c);
		return 0;
	}
	s->at = offset_of(e, &map->mark) + 1;
	fputc(' ', out);
	put_entry(out, path, c);
	if (map->n)
		fputc(',', out);
	return 0;
}

/* Set *spaces to the number of spaces before the key. Returns false if anything else precedes
 * it. */
static bool indent_of(const struct edit *e, const struct weir_node *key, int *spaces)
{
	const char *line = source_line(e->source, key->mark.line);

	*spaces = (int)strspn(line, " ");
	return *spaces == key->mark.col - 1;
}

/* Return the last entry of a block that takes one line, so that a line can be inserted after it, or
 * NULL if there is none. */
static const struct weir_node *one_line_entry(const struct edit *e, const struct weir_node *map)
{
	for (int i = map->n; i-- > 0;)
		if (is_one_line(e, map->item[i]) &&
		    map->item[i]->mark.line == map->name[i]->mark.line)
			return map->item[i];
	return NULL;
}

static int insert_block(struct edit *e, const struct weir_node *map, const char *path,
    const struct config_change *c, FILE *out, struct splice *s)
{
	const struct weir_node *behind = one_line_entry(e, map);
	int spaces;

	if (!behind || !indent_of(e, map->name[0], &spaces))
		return refuse(e, map, "write the key by hand",
		    "it is not clear where to insert another key here");
	size_t end = offset_of(e, &behind->mark);
	while (end < e->n && e->text[end] != '\n')
		end++;
	bool crlf = end > 0 && at(e, end - 1) == '\r';
	s->at = end < e->n ? end + 1 : end;
	if (end == e->n)
		fputc('\n', out);
	fprintf(out, "%*s", spaces, "");
	put_entry(out, path, c);
	if (end < e->n)
		fputs(crlf ? "\r\n" : "\n", out);
	return 0;
}

/* ---- finding the position ---- */

static int place(struct edit *e, const struct weir_node *node, const struct config_change *c,
    FILE *out, struct splice *s)
{
	const char *path = c->knob;
	char word[128];

	for (;;) {
		if (node->kind != WEIR_NODE_MAP)
			return refuse(e, node, "write the value as a map with separate keys",
			    "this value sets several knobs, but only one is to be written");
		const struct weir_node *whole = weir_node_get(node, path);
		if (whole)
			return replace(e, whole, c, out, s);
		size_t n = strcspn(path, ".");
		snprintf(word, sizeof(word), "%.*s", (int)n, path);
		const struct weir_node *section = path[n] ? weir_node_get(node, word) : NULL;
		if (!section)
			break;
		if (tree_is_empty(section))
			return refuse(e, section, "write the key by hand",
			    "this key has no value, so nothing can be added to it");
		node = section;
		path += n + 1;
	}
	return at(e, offset_of(e, &node->mark)) == '{' ? insert_flow(e, node, path, c, out, s)
						       : insert_block(e, node, path, c, out, s);
}

static int find(struct edit *e, const struct config_change *c, FILE *out, struct splice *s)
{
	WEIR_ASSERT(e->source); /* parse() has succeeded */
	const struct weir_node *stages = weir_node_get(e->source->root, "stages");
	const struct weir_node *stage = weir_node_get(stages, c->stage);
	const struct weir_node *groups = weir_node_get(e->source->root, "groups");
	const struct weir_node *classes = weir_node_get(e->source->root, "classes");
	const struct weir_node *include = weir_node_get(e->source->root, "include");
	const char *dot = strchr(c->stage, '.');

	const struct weir_node *group = stage ? NULL : weir_node_get(groups, c->stage);
	const struct weir_node *cores = group ? weir_node_get(group, "cores") : NULL;

	if (cores && cores->kind == WEIR_NODE_MAP && strcmp(c->knob, "cores") == 0)
		return replace_cores(e, cores, c, out, s);
	if (group) /* no group has the name of a stage */
		stage = group;
	if (!stage && dot && strncmp(c->stage, "classes.", 8) == 0)
		stage = weir_node_get(classes, dot + 1);
	if (stage)
		return place(e, stage, c, out, s);
	if (include)
		return weir_errs_add(e->errs, &include->mark, WEIR_EINVAL, "save that file",
		    "'%s' is not in this file, but in an included one", c->stage);
	return weir_errs_add(e->errs, stages ? &stages->mark : NULL, WEIR_ENOENT,
	    "check that the server runs this file", "there is no stage '%s' here", c->stage);
}

/* ---- applying changes ---- */

/* Parse e->text. */
static int parse(struct edit *e, const char *name)
{
	e->all = sources_new();
	if (!e->all) {
		source_no_memory(e->errs);
		return WEIR_ENOMEM;
	}
	struct source *source = NULL;
	int rc = source_text(e->all, e->text, e->n, name, &source, e->errs);
	e->source = source;
	return rc == 0 ? tree_parse(e->all, e->source, e->errs) : rc;
}

static int splice(struct edit *e, const struct splice *s, size_t added)
{
	char *text = malloc(e->n - s->n + added + 1);

	WEIR_ASSERT(e->text && s->text);
	if (!text)
		return source_no_memory(e->errs);
	memcpy(text, e->text, s->at);
	memcpy(text + s->at, s->text, added);
	memcpy(text + s->at + added, e->text + s->at + s->n, e->n - s->at - s->n);
	e->n = e->n - s->n + added;
	text[e->n] = '\0';
	free(e->text);
	e->text = text;
	return 0;
}

static int change_one(struct edit *e, const char *name, const struct config_change *c)
{
	struct splice s = {0};
	size_t added = 0;
	FILE *out = open_memstream(&s.text, &added);

	if (!out)
		return source_no_memory(e->errs);
	int rc = parse(e, name);
	if (rc == 0)
		rc = find(e, c, out, &s);
	if (fclose(out) != 0 && rc == 0)
		rc = source_no_memory(e->errs);
	if (rc == 0)
		rc = splice(e, &s, added);
	free(s.text);
	sources_free(e->all);
	e->all = NULL;
	return rc;
}

/* Read the whole file. */
static int read_file(struct edit *e, const char *path)
{
	struct sources *all = sources_new();
	struct source *source;

	if (!all)
		return source_no_memory(e->errs);
	int rc = source_read(all, path, NULL, &source, e->errs);
	if (rc == 0) {
		e->n = source->n;
		e->text = malloc(e->n + 1);
		if (e->text) {
			memcpy(e->text, source->text, e->n + 1);
		} else {
			source_no_memory(e->errs);
			rc = WEIR_ENOMEM;
		}
	}
	sources_free(all);
	return rc;
}

int config_edit(const char *path, const struct config_change *change, int n, char **text,
    size_t *size, struct weir_errs *errs)
{
	struct edit e = {.errs = errs};
	int rc = read_file(&e, path);

	for (int i = 0; rc == 0 && i < n; i++)
		rc = change_one(&e, path, &change[i]);
	if (rc != 0) {
		free(e.text);
		return rc;
	}
	*text = e.text;
	*size = e.n;
	return 0;
}
