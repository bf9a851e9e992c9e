/* SPDX-License-Identifier: MIT */
/*
 * Builds a tree with positions from libyaml's events. No other file uses libyaml.
 *
 * The parser uses libyaml's event interface. The document interface would resolve aliases, and it
 * could not stop early when the limits on depth, nodes and bytes are exceeded. Stopping early is
 * necessary: libyaml's running time is quadratic in the nesting depth, and 200 KB of '[' take 41 s
 * of CPU time.
 *
 * YAML features other than maps, lists and texts are refused with a clear message: anchors,
 * aliases, merge keys, tags, several documents, and keys that are not scalars. Duplicate keys,
 * which libyaml accepts, are refused, too. So are plain scalars that span several lines, since
 * these are usually keys with too much indentation.
 */
#include "tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <yaml.h>

#include "config.h"

struct tree {
	yaml_parser_t parser;
	struct sources *all;
	struct source *source;
	struct weir_errs *errs;
	int depth;
	bool flawed;                /* a mistake was reported and the parse continued */
	bool folded;                /* the last scalar continues on the line at `folded_at` */
	struct weir_mark folded_at; /* a position that is reported unless a syntax error follows */
};

static int node_of(struct tree *t, const yaml_event_t *ev, struct weir_node **node);

static struct weir_mark mark_of(const struct tree *t, const yaml_event_t *ev)
{
	const yaml_mark_t *from = &ev->start_mark, *to = &ev->end_mark;
	size_t len = to->line == from->line ? to->column - from->column : CONFIG_BYTES_MAX;

	return source_mark(t->source, from->line, from->column, len);
}

static int flaw(struct tree *t, const struct weir_mark *mark, const char *text, const char *hint)
{
	t->flawed = true;
	return weir_errs_add(t->errs, mark, WEIR_EINVAL, hint, "%s", text);
}

/* Report a plain scalar that spans several lines. Nearly always it is a key that is indented too
 * far. */
static void report_folded(struct tree *t)
{
	if (t->folded)
		flaw(t, &t->folded_at, "this line continues the value above it",
		    "indent keys alike; a value of several lines needs quotes, or '|'");
	t->folded = false;
}

static int next_event(struct tree *t, yaml_event_t *ev)
{
	const yaml_parser_t *p = &t->parser;

	if (yaml_parser_parse(&t->parser, ev)) {
		report_folded(t);
		return 0;
	}
	if (p->error == YAML_MEMORY_ERROR)
		return source_no_memory(t->errs);
	struct tree_problem problem = {
	    .text = p->problem,
	    .context = p->context,
	    .line = p->problem_mark.line,
	    .col = p->problem_mark.column,
	    .context_line = p->context_mark.line,
	    .context_col = p->context_mark.column,
	    .has_offset = p->error == YAML_READER_ERROR,
	    .offset = p->problem_offset,
	};
	return tree_explain(t->source, &problem, t->errs);
}

static int too_much(struct tree *t, const yaml_event_t *ev, const char *text)
{
	struct weir_mark mark = mark_of(t, ev);

	weir_errs_add(t->errs, &mark, WEIR_EINVAL, NULL, "%s", text);
	return WEIR_EINVAL;
}

static int no_memory(struct tree *t)
{
	source_no_memory(t->errs);
	return WEIR_ENOMEM;
}

static int new_node(
    struct tree *t, const yaml_event_t *ev, enum weir_node_kind kind, struct weir_node **node)
{
	if (++t->all->nodes > CONFIG_NODES_MAX)
		return too_much(t, ev, "there are more than 10000 values and keys");
	*node = calloc(1, sizeof(**node));
	if (!*node)
		return no_memory(t);
	(*node)->kind = kind;
	(*node)->mark = mark_of(t, ev);
	return 0;
}

static void refuse_anchor_and_tag(
    struct tree *t, const yaml_event_t *ev, const yaml_char_t *anchor, const yaml_char_t *tag)
{
	struct weir_mark mark = mark_of(t, ev);

	if (anchor)
		flaw(t, &mark, "anchors (&name) are not supported",
		    "put shared settings under 'defaults:', or in a file to include");
	if (tag)
		flaw(t, &mark, "tags (!name) are not supported",
		    "remove the tag: the key determines the type");
}

static int refuse_alias(struct tree *t, const yaml_event_t *ev)
{
	struct weir_mark mark = mark_of(t, ev);

	flaw(t, &mark, "aliases (*name) are not supported",
	    "a value that begins with '*' needs quotes; shared settings go under 'defaults:'");
	return WEIR_EINVAL;
}

static int scalar_of(struct tree *t, const yaml_event_t *ev, struct weir_node **out)
{
	const char *value = (const char *)ev->data.scalar.value;
	size_t n = ev->data.scalar.length;
	struct weir_node *node = NULL;

	refuse_anchor_and_tag(t, ev, ev->data.scalar.anchor, ev->data.scalar.tag);
	int rc = new_node(t, ev, WEIR_NODE_SCALAR, &node);
	if (rc != 0)
		return rc;
	*out = node;
	node->quoted = ev->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
	node->text = strndup(value, n);
	if (!node->text)
		return no_memory(t);
	if (strlen(value) != n)
		flaw(t, &node->mark, "a value cannot contain a NUL byte", NULL);
	if (!node->quoted && ev->end_mark.line > ev->start_mark.line) {
		t->folded = true;
		t->folded_at = source_line_mark(t->source, ev->start_mark.line + 1);
	}
	return 0;
}

/* ---- keys ---- */

struct key {
	const struct weir_node *node;
	int index;
};

static int key_order(const void *a, const void *b)
{
	const struct key *x = a, *y = b;
	int order = strcmp(x->node->text, y->node->text);

	return order != 0 ? order : x->index - y->index;
}

/* Drop entry `i`, which is a duplicate. */
static void drop_entry(struct weir_node *map, int i)
{
	size_t behind = (size_t)(map->n - i - 1) * sizeof(*map->item);

	weir_node_free(map->item[i]);
	weir_node_free(map->name[i]);
	memmove(map->item + i, map->item + i + 1, behind);
	memmove(map->name + i, map->name + i + 1, behind);
	map->n--;
}

static void report_duplicate(
    struct tree *t, const struct weir_node *first, const struct weir_node *again)
{
	char hint[64];

	snprintf(hint, sizeof(hint), "the first is at %d:%d", first->mark.line, first->mark.col);
	t->flawed = true;
	weir_errs_add(
	    t->errs, &again->mark, WEIR_EINVAL, hint, "the key '%s' appears twice", again->text);
}

/* Report and drop duplicate keys. Sorting the keys avoids quadratic time if there are thousands of
 * them. */
static int check_duplicates(struct tree *t, struct weir_node *map)
{
	struct key *keys = calloc((size_t)map->n + 1, sizeof(*keys));
	bool *again = calloc((size_t)map->n + 1, sizeof(*again));

	if (!keys || !again) {
		free(keys);
		free(again);
		return no_memory(t);
	}
	for (int i = 0; i < map->n; i++)
		keys[i] = (struct key){map->name[i], i};
	qsort(keys, (size_t)map->n, sizeof(*keys), key_order);
	for (int i = 1, first = 0; i < map->n; i++) {
		if (strcmp(keys[i].node->text, keys[first].node->text) != 0) {
			first = i;
			continue;
		}
		report_duplicate(t, keys[first].node, keys[i].node);
		again[keys[i].index] = true;
	}
	for (int i = map->n - 1; i >= 0; i--)
		if (again[i])
			drop_entry(map, i);
	free(keys);
	free(again);
	return 0;
}

static bool is_merge_key(const struct weir_node *name)
{
	return !name->quoted && strcmp(name->text, "<<") == 0;
}

static int key_of(struct tree *t, const yaml_event_t *ev, struct weir_node **name)
{
	if (ev->type != YAML_SCALAR_EVENT)
		return ev->type == YAML_ALIAS_EVENT ? refuse_alias(t, ev)
						    : too_much(t, ev, "a key must be a string");
	int rc = scalar_of(t, ev, name);
	if (rc == 0 && is_merge_key(*name))
		flaw(t, &(*name)->mark, "merge keys (<<) are not supported",
		    "put shared settings under 'defaults:', or in a file to include");
	return rc;
}

/* ---- collections ---- */

static int map_entry(struct tree *t, const yaml_event_t *ev, struct weir_node *map)
{
	struct weir_node *name = NULL, *item = NULL;
	yaml_event_t value;

	int rc = key_of(t, ev, &name);
	if (rc == 0)
		rc = next_event(t, &value);
	if (rc != 0)
		goto fail;
	rc = node_of(t, &value, &item);
	yaml_event_delete(&value);
	/* A merge key has already been reported. Drop it, so that it is not reported as an unknown
	 * key, too. */
	if (rc != 0 || is_merge_key(name))
		goto fail;
	rc = tree_append(map, name, item);
	return rc == 0 ? 0 : no_memory(t);
fail:
	weir_node_free(name);
	weir_node_free(item);
	return rc;
}

static int list_entry(struct tree *t, const yaml_event_t *ev, struct weir_node *list)
{
	struct weir_node *item = NULL;

	int rc = node_of(t, ev, &item);
	if (rc != 0) {
		weir_node_free(item);
		return rc;
	}
	return tree_append(list, NULL, item) == 0 ? 0 : no_memory(t);
}

static int entries_of(struct tree *t, struct weir_node *node)
{
	bool is_map = node->kind == WEIR_NODE_MAP;
	yaml_event_t ev;
	int rc;

	while ((rc = next_event(t, &ev)) == 0) {
		bool end = ev.type == YAML_MAPPING_END_EVENT || ev.type == YAML_SEQUENCE_END_EVENT;
		if (!end)
			rc = is_map ? map_entry(t, &ev, node) : list_entry(t, &ev, node);
		yaml_event_delete(&ev);
		if (end || rc != 0)
			break;
	}
	return rc == 0 && is_map ? check_duplicates(t, node) : rc;
}

static int collection_of(
    struct tree *t, const yaml_event_t *ev, enum weir_node_kind kind, struct weir_node **node)
{
	bool is_map = kind == WEIR_NODE_MAP;

	refuse_anchor_and_tag(t, ev,
	    is_map ? ev->data.mapping_start.anchor : ev->data.sequence_start.anchor,
	    is_map ? ev->data.mapping_start.tag : ev->data.sequence_start.tag);
	if (t->depth == CONFIG_DEPTH_MAX)
		return too_much(t, ev, "this is nested more than 32 levels deep");
	int rc = new_node(t, ev, kind, node);
	if (rc != 0)
		return rc;
	t->depth++;
	rc = entries_of(t, *node);
	t->depth--;
	return rc;
}

/* Build the value that begins with `ev`; the caller frees *node even on failure. */
static int node_of(struct tree *t, const yaml_event_t *ev, struct weir_node **node)
{
	switch (ev->type) {
	case YAML_SCALAR_EVENT:
		return scalar_of(t, ev, node);
	case YAML_MAPPING_START_EVENT:
		return collection_of(t, ev, WEIR_NODE_MAP, node);
	case YAML_SEQUENCE_START_EVENT:
		return collection_of(t, ev, WEIR_NODE_LIST, node);
	case YAML_ALIAS_EVENT:
		return refuse_alias(t, ev);
	default: /* libyaml emits no other event in place of a value */
		return too_much(t, ev, "a value is missing here");
	}
}

/* Skip events up to the first that begins a value. Sets *end if there is none. */
static int first_value(struct tree *t, yaml_event_t *ev, bool *end)
{
	int rc;

	*end = false;
	while ((rc = next_event(t, ev)) == 0) {
		if (ev->type != YAML_STREAM_START_EVENT && ev->type != YAML_DOCUMENT_START_EVENT) {
			*end = ev->type == YAML_STREAM_END_EVENT;
			return 0;
		}
		yaml_event_delete(ev);
	}
	return rc;
}

/* Check that nothing follows the first document. */
static int expect_end(struct tree *t)
{
	yaml_event_t ev;
	int rc;

	while ((rc = next_event(t, &ev)) == 0) {
		yaml_event_type_t type = ev.type;
		struct weir_mark mark = mark_of(t, &ev);
		yaml_event_delete(&ev);
		if (type == YAML_STREAM_END_EVENT)
			return 0;
		if (type == YAML_DOCUMENT_START_EVENT)
			return flaw(t, &mark, "a second document begins here",
			    "write one document; use 'include:' to join files");
	}
	return rc;
}

static int parse_document(struct tree *t, struct weir_node **root)
{
	yaml_event_t ev;
	bool end;

	int rc = first_value(t, &ev, &end);
	if (rc != 0)
		return rc;
	struct weir_mark mark = source_mark_at(t->source, t->source->n);
	rc = end ? flaw(t, &mark, "the configuration is empty",
		       "begin with 'weir: 1', and add 'stages:'")
		 : node_of(t, &ev, root);
	yaml_event_delete(&ev);
	return rc == 0 ? expect_end(t) : rc;
}

int tree_parse(struct sources *all, struct source *source, struct weir_errs *errs)
{
	struct tree t = {.all = all, .source = source, .errs = errs};
	struct weir_node *root = NULL;

	if (!yaml_parser_initialize(&t.parser))
		return source_no_memory(errs);
	yaml_parser_set_encoding(&t.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&t.parser, (const unsigned char *)source->text, source->n);
	int rc = parse_document(&t, &root);
	yaml_parser_delete(&t.parser);
	free(source->text); /* no longer needed: positions are found in source->lines */
	source->text = NULL;
	if (rc != 0) {
		weir_node_free(root);
		return rc;
	}
	source->root = root;
	return t.flawed ? WEIR_EINVAL : 0;
}
