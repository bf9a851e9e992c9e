/* SPDX-License-Identifier: MIT */
/* Searches and frees configuration trees, which config/ and spec_set.c build. */
#include <weir/knob.h>

#include <stdlib.h>
#include <string.h>

const struct weir_node *weir_node_get(const struct weir_node *map, const char *key)
{
	if (!map || map->kind != WEIR_NODE_MAP)
		return NULL;
	for (int i = 0; i < map->n; i++)
		if (strcmp(map->name[i]->text, key) == 0)
			return map->item[i];
	return NULL;
}

/* The recursion is bounded: config/ refuses trees deeper than 32 levels, and spec_set.c builds
 * trees only as deep as the path of a knob. */
void weir_node_free(struct weir_node *node)
{
	if (!node)
		return;
	for (int i = 0; i < node->n; i++) {
		weir_node_free(node->item[i]);
		if (node->name)
			weir_node_free(node->name[i]);
	}
	free(node->item);
	free(node->name);
	free(node->text);
	free(node);
}
