/* SPDX-License-Identifier: MIT */
/* Implements operations on configuration trees; see tree.h. */
#include "tree.h"

#include <stdlib.h>
#include <string.h>

int tree_append(struct weir_node *node, struct weir_node *name, struct weir_node *item)
{
	size_t bytes = ((size_t)node->n + 1) * sizeof(struct weir_node *);
	struct weir_node **items = item ? realloc(node->item, bytes) : NULL, **names = NULL;

	node->item = items ? items : node->item;
	if (items && name) {
		names = realloc(node->name, bytes);
		node->name = names ? names : node->name;
	}
	if (!items || (name && !names)) {
		weir_node_free(name);
		weir_node_free(item);
		return WEIR_ENOMEM;
	}
	if (name)
		names[node->n] = name;
	items[node->n++] = item;
	return 0;
}

struct weir_node *tree_copy(const struct weir_node *node)
{
	struct weir_node *copy = calloc(1, sizeof(*copy));

	if (!copy)
		return NULL;
	*copy = (struct weir_node){.kind = node->kind, .mark = node->mark, .quoted = node->quoted};
	copy->text = node->text ? strdup(node->text) : NULL;
	if (node->text && !copy->text)
		goto fail;
	for (int i = 0; i < node->n; i++) {
		struct weir_node *name = node->name ? tree_copy(node->name[i]) : NULL;
		struct weir_node *item = tree_copy(node->item[i]);
		if (node->name && !name) {
			weir_node_free(item);
			goto fail;
		}
		if (tree_append(copy, name, item) != 0)
			goto fail;
	}
	return copy;
fail:
	weir_node_free(copy);
	return NULL;
}

bool tree_is_empty(const struct weir_node *node)
{
	return node->kind == WEIR_NODE_SCALAR && !node->quoted && node->text[0] == '\0';
}

const char *tree_kind(const struct weir_node *node)
{
	if (node->kind == WEIR_NODE_MAP)
		return "a map";
	if (node->kind == WEIR_NODE_LIST)
		return "a list";
	return tree_is_empty(node) ? "nothing" : "a single value";
}
