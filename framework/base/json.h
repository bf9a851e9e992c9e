/* SPDX-License-Identifier: MIT */
/* Builds JSON without a check at every step: if memory runs out anywhere, the whole value becomes
 * NULL, which is checked once, before sending. May be used by any thread that owns the value. */
#ifndef WEIR_BASE_JSON_H
#define WEIR_BASE_JSON_H

#include <jansson.h>

/** Append `item`, which is consumed, to `*list`. On failure the list is freed and set to NULL, and
 *  later pushes have no effect. */
static inline void json_push(json_t **list, json_t *item)
{
	if (json_array_append_new(*list, item) == 0)
		return;
	json_decref(*list);
	*list = NULL;
}

/** Set member `key` of `*map` to `value`, which is consumed. On failure the object is freed and set
 *  to NULL, and later puts have no effect. */
static inline void json_put(json_t **map, const char *key, json_t *value)
{
	if (json_object_set_new(*map, key, value) == 0)
		return;
	json_decref(*map);
	*map = NULL;
}

#endif
