/* SPDX-License-Identifier: MIT */
/* Trees: lookup, no leaks (under ASan), and NULL accepted everywhere. */
#include <weir/knob.h>

#include <stdlib.h>
#include <string.h>

#include "cunit_main.h"

static struct weir_node *scalar(const char *text)
{
	struct weir_node *node = calloc(1, sizeof(*node));

	node->kind = WEIR_NODE_SCALAR;
	node->text = strdup(text);
	return node;
}

static struct weir_node *map_of_two(void)
{
	struct weir_node *map = calloc(1, sizeof(*map));

	map->kind = WEIR_NODE_MAP;
	map->n = 2;
	map->name = calloc(2, sizeof(*map->name));
	map->item = calloc(2, sizeof(*map->item));
	map->name[0] = scalar("a");
	map->item[0] = scalar("1");
	map->name[1] = scalar("");
	map->item[1] = NULL;
	return map;
}

static void test_get(void)
{
	struct weir_node *map = map_of_two(), *text = scalar("a");

	CU_ASSERT_STRING_EQUAL(weir_node_get(map, "a")->text, "1");
	CU_ASSERT_PTR_NULL(weir_node_get(map, "b"));
	CU_ASSERT_PTR_NULL(weir_node_get(map, ""));
	CU_ASSERT_PTR_NULL(weir_node_get(text, "a"));
	CU_ASSERT_PTR_NULL(weir_node_get(NULL, "a"));
	weir_node_free(text);
	weir_node_free(map);
	weir_node_free(NULL);
}

CUNIT_MAIN("node", {"get", test_get})
