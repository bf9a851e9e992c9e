/* SPDX-License-Identifier: MIT */
#include "schema_rig.h"

#include "loading.h"

json_t *schema_json(void)
{
	FILE *out = capture_begin();

	types_register();
	CU_ASSERT_EQUAL(config_schema(out), 0);
	json_t *json = json_loads(capture_end(out), 0, NULL);
	CU_ASSERT_PTR_NOT_NULL_FATAL(json);
	capture_free();
	return json;
}

json_t *schema_at(json_t *json, const char *path)
{
	char word[64];

	while (json && *path) {
		size_t n = strcspn(path, "/");
		snprintf(word, sizeof(word), "%.*s", (int)n, path);
		json = json_object_get(json, word);
		path += n + (path[n] == '/');
	}
	CU_ASSERT_PTR_NOT_NULL_FATAL(json);
	return json;
}

json_t *schema_rule(json_t *json, const char *type)
{
	json_t *rules = schema_at(json, "properties/stages/additionalProperties/allOf"), *rule;
	size_t i;

	json_array_foreach(rules, i, rule)
	{
		json_t *use = schema_at(rule, "if/properties/use/const");
		if (strcmp(json_string_value(use), type) == 0)
			return rule;
	}
	CU_FAIL_FATAL("there is no rule for the type");
	return NULL;
}
