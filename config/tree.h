/* SPDX-License-Identifier: MIT */
/* From a text to its tree, and what is done to trees before anything is bound. */
#ifndef WEIR_CONFIG_TREE_H
#define WEIR_CONFIG_TREE_H

#include <stddef.h>

#include <weir/knob.h>

#include "source.h"

/** What libyaml says about a text it cannot read; libyaml's own types stay in yaml_tree.c. */
struct tree_problem {
	const char *text;                 /* as libyaml words it */
	const char *context;              /* may be NULL */
	size_t line, col;                 /* from 0, in characters */
	size_t context_line, context_col; /* where what `context` names began */
	bool has_offset;                  /* `offset` in bytes is the place, not line and col */
	size_t offset;
};

/**
 * Parse the text of `source` into source->root. A syntax error ends it; other mistakes (duplicate
 * keys, anchors, tags) are all reported. 0, or WEIR_EINVAL / WEIR_ENOMEM with `errs` filled;
 * source->root is NULL when there is nothing that could be looked at further.
 */
int tree_parse(struct sources *all, struct source *source, struct weir_errs *errs);

/** Report a problem of libyaml in words for people. Returns WEIR_EINVAL. */
int tree_explain(struct source *source, const struct tree_problem *problem, struct weir_errs *errs);

/** Replace ${X}, ${X:-default} and ${X:?message} in every scalar below `node`. */
int tree_expand(struct sources *all, struct weir_node *node, struct weir_errs *errs);

/** Append `item` under `name` (both taken over, freed on failure) to a map; NULL `name`: a list. */
int tree_append(struct weir_node *node, struct weir_node *name, struct weir_node *item);

/** A deep copy; marks are shared. NULL when out of memory. */
struct weir_node *tree_copy(const struct weir_node *node);

/** Has `node` no value (`key:`)? */
bool tree_is_empty(const struct weir_node *node);

/** "a map", "a list", "one value" or "nothing". */
const char *tree_kind(const struct weir_node *node);

#endif
