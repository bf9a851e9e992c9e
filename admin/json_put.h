/* SPDX-License-Identifier: MIT */
/* Building JSON without a check at every step: a failure (no memory) anywhere makes the whole NULL, which the one who sends
 * it asks once. Any thread that owns what it builds. */
#ifndef WEIR_ADMIN_JSON_PUT_H
#define WEIR_ADMIN_JSON_PUT_H

#include <jansson.h>

/** Append `item`, which it takes over, to `*list`; when that fails the list is gone (NULL) and later pushes do nothing. */
static inline void json_push(json_t **list, json_t *item)
{
	if (json_array_append_new(*list, item) == 0)
		return;
	json_decref(*list);
	*list = NULL;
}

/** The same for a member of an object. */
static inline void json_put(json_t **map, const char *key, json_t *value)
{
	if (json_object_set_new(*map, key, value) == 0)
		return;
	json_decref(*map);
	*map = NULL;
}

#endif
