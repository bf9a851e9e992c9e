/* SPDX-License-Identifier: MIT */
/* Parses a text into a tree, and processes trees before binding. */
#ifndef WEIR_CONFIG_TREE_H
#define WEIR_CONFIG_TREE_H

#include <stddef.h>

#include <weir/knob.h>

#include "source.h"

/** A problem that libyaml reports about a text. The types of libyaml itself are only used in
 *  yaml_tree.c. */
struct tree_problem {
	const char *text;                 /* libyaml's wording */
	const char *context;              /* may be NULL */
	size_t line, col;                 /* from 0, in characters */
	size_t context_line, context_col; /* start of the construct named by `context` */
	bool has_offset;                  /* the position is `offset` in bytes, not line and col */
	size_t offset;
};

/**
 * Parse the text of `source` into source->root. A syntax error ends the parse; other mistakes
 * (duplicate keys, anchors, tags) are all reported. Returns 0, or WEIR_EINVAL or WEIR_ENOMEM with
 * `errs` filled in. After an error, source->root is the tree that can still be bound, or NULL if
 * there is none.
 */
int tree_parse(struct sources *all, struct source *source, struct weir_errs *errs);

/** Report a libyaml problem in words that users understand. Returns WEIR_EINVAL. */
int tree_explain(struct source *source, const struct tree_problem *problem, struct weir_errs *errs);

/** Replace ${X}, ${X:-default} and ${X:?message} in every scalar below `node`. */
int tree_expand(struct sources *all, struct weir_node *node, struct weir_errs *errs);

/** Append `item` to `node`. If `node` is a map, `name` is the key; if it is a list, `name` is NULL.
 *  Takes ownership of `name` and `item`, and frees them on failure. */
int tree_append(struct weir_node *node, struct weir_node *name, struct weir_node *item);

/** Make a deep copy that shares the marks. Returns NULL if out of memory. */
struct weir_node *tree_copy(const struct weir_node *node);

/** Return whether `node` has no value (`key:`). */
bool tree_is_empty(const struct weir_node *node);

/** Return the kind of `node` in words: "a map", "a list", "a single value" or "nothing". */
const char *tree_kind(const struct weir_node *node);

#endif
