/* SPDX-License-Identifier: MIT */
/* The JSON Schema that config_schema writes, for the tests that read it. A failure ends the
 * test. */
#ifndef WEIR_TEST_SCHEMA_RIG_H
#define WEIR_TEST_SCHEMA_RIG_H

#include <jansson.h>

/** The schema of all registered types; the caller frees it with json_decref. */
json_t *schema_json(void);
/** The member at a path such as "properties/stages". The result belongs to `json`. */
json_t *schema_at(json_t *json, const char *path);
/** The rule that describes `with:` of `type`. The result belongs to `json`. */
json_t *schema_rule(json_t *json, const char *type);

#endif
