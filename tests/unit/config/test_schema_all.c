/* SPDX-License-Identifier: MIT */
/* Whole parts of the JSON Schema, of types that have knobs of every kind and of each section. */
#include "full_type.h"
#include "loading.h"
#include "schema_rig.h"

/* `expected` is JSON with ' in place of ". */
static void same(const json_t *found, const char *expected)
{
	char *text = strdup(expected);

	for (char *p = text; *p; p++)
		if (*p == '\'')
			*p = '"';
	json_t *want = json_loads(text, JSON_DECODE_ANY, NULL);
	CU_ASSERT_PTR_NOT_NULL(want);
	bool equal = json_equal(found, want);
	if (!equal) {
		char *said = json_dumps(found, JSON_ENCODE_ANY | JSON_SORT_KEYS);
		fprintf(stderr, "expected\n%s\nbut found\n%s\n", text, said);
		free(said);
	}
	CU_ASSERT_TRUE(equal);
	json_decref(want);
	free(text);
}

static void test_full(void)
{
	full_type_register();
	json_t *json = schema_json();

	same(schema_rule(json, "t.full"),
	    "{'if': {'properties': {'use': {'const': 't.full'}}}, 'then': {'properties': {'with': "
	    "{'additionalProperties': false, 'patternProperties': {'^x-': {}}, 'properties': "
	    "{'empty': {'anyOf': [{'type': 'string'}, {'items': {'type': 'string'}, 'type': "
	    "'array'}], 'default': '', 'description': 'none'}, 'least': {'anyOf': [{'maximum': "
	    "0.0, 'minimum': -5.0, 'type': 'integer'}, {'pattern': "
	    "'^-?[0-9]+(\\\\.[0-9]+)?[kM]?$', 'type': 'string'}, {'const': 'auto'}, {'$ref': "
	    "'#/$defs/variable'}], 'default': '0', 'description': 'at least'}, 'on': {'anyOf': "
	    "[{'type': 'boolean'}, {'$ref': '#/$defs/variable'}], 'description': 'without a "
	    "default'}, 'part': {'additionalProperties': false, 'description': 'its own', "
	    "'patternProperties': {'^x-': {}}, 'properties': {'depth': {'anyOf': [{'type': "
	    "'integer'}, {'pattern': '^-?[0-9]+(\\\\.[0-9]+)?[kM]?$', 'type': 'string'}, {'$ref': "
	    "'#/$defs/variable'}], 'default': '3'}, 'path': {'anyOf': [{'type': ['string', "
	    "'number', 'boolean']}, {'$ref': '#/$defs/variable'}], 'description': 'where'}}, "
	    "'required': ['path'], 'type': 'object'}, 'parts': {'description': 'what it has', "
	    "'items': {'additionalProperties': false, 'patternProperties': {'^x-': {}}, "
	    "'properties': {'depth': {'anyOf': [{'type': 'integer'}, {'pattern': "
	    "'^-?[0-9]+(\\\\.[0-9]+)?[kM]?$', 'type': 'string'}, {'$ref': '#/$defs/variable'}], "
	    "'default': '3'}, 'path': {'anyOf': [{'type': ['string', 'number', 'boolean']}, "
	    "{'$ref': '#/$defs/variable'}], 'description': 'where'}}, 'required': ['path'], "
	    "'type': 'object'}, 'type': 'array'}, 'size': {'anyOf': [{'description': 'small: a "
	    "few\\nlarge: many of them', 'enum': ['small', 'large']}, {'$ref': "
	    "'#/$defs/variable'}], 'default': 'small', 'description': 'how many'}, 'text': "
	    "{'anyOf': [{'type': ['string', 'number', 'boolean']}, {'$ref': '#/$defs/variable'}], "
	    "'default': '', 'description': 'any'}, 'wait': {'anyOf': [{'const': 0}, {'pattern': "
	    "'^[0-9]+(\\\\.[0-9]+)?(ns|us|ms|s|m|h)$', 'type': 'string'}, {'const': 'auto'}, "
	    "{'$ref': '#/$defs/variable'}], 'default': 'auto', 'description': 'how long'}}, "
	    "'required': ['parts', 'part'], 'type': 'object'}}, 'required': ['with']}}");
	json_decref(json);
}

static void test_work(void)
{
	full_type_register();
	json_t *json = schema_json();

	same(schema_rule(json, "t.work"),
	    "{'if': {'properties': {'use': {'const': 't.work'}}}, 'then': {'properties': {'with': "
	    "{'additionalProperties': false, 'patternProperties': {'^x-': {}}, 'properties': "
	    "{'dist': {'anyOf': [{'enum': ['const', 'exp', 'bimodal']}, {'$ref': "
	    "'#/$defs/variable'}], 'default': 'const', 'description': 'distribution'}, 'limit': "
	    "{'additionalProperties': false, 'description': 'a limit of all', 'patternProperties': "
	    "{'^x-': {}}, 'properties': {'rate': {'anyOf': [{'type': 'number'}, {'pattern': "
	    "'^[0-9]+(\\\\.[0-9]+)?[kM]?$', 'type': 'string'}, {'$ref': '#/$defs/variable'}], "
	    "'default': '7', 'description': 'the one limit'}}, 'required': [], 'type': 'object'}, "
	    "'limits': {'description': 'limits by path', 'items': {'additionalProperties': false, "
	    "'patternProperties': {'^x-': {}}, 'properties': {'path': {'anyOf': [{'type': "
	    "['string', 'number', 'boolean']}, {'$ref': '#/$defs/variable'}], 'description': 'what "
	    "it is for'}, 'rate': {'anyOf': [{'type': 'number'}, {'pattern': "
	    "'^[0-9]+(\\\\.[0-9]+)?[kM]?$', 'type': 'string'}, {'$ref': '#/$defs/variable'}], "
	    "'default': '100', 'description': 'how often'}}, 'required': ['path'], 'type': "
	    "'object'}, 'type': 'array'}, 'names': {'anyOf': [{'type': 'string'}, {'items': "
	    "{'type': 'string'}, 'type': 'array'}], 'default': 'a, b', 'description': 'some "
	    "names'}, 'rate': {'anyOf': [{'type': 'number'}, {'pattern': "
	    "'^[0-9]+(\\\\.[0-9]+)?[kM]?$', 'type': 'string'}, {'$ref': '#/$defs/variable'}], "
	    "'default': '20k', 'description': 'how often'}, 'root': {'anyOf': [{'type': ['string', "
	    "'number', 'boolean']}, {'$ref': '#/$defs/variable'}], 'default': '.', 'description': "
	    "'folder'}, 'share': {'anyOf': [{'maximum': 1.0, 'minimum': 0, 'type': 'number'}, "
	    "{'pattern': '^[0-9]+(\\\\.[0-9]+)?%$', 'type': 'string'}, {'$ref': "
	    "'#/$defs/variable'}], 'default': '5%', 'description': 'of all'}, 'size': {'anyOf': "
	    "[{'maximum': 1073741824.0, 'minimum': 1.0, 'type': 'integer'}, {'pattern': "
	    "'^[0-9]+(\\\\.[0-9]+)?(B|kB|MB|GB|KiB|MiB|GiB)?$', 'type': 'string'}, {'$ref': "
	    "'#/$defs/variable'}], 'default': '64KiB', 'description': 'most bytes kept'}, 'time': "
	    "{'anyOf': [{'const': 0}, {'pattern': '^[0-9]+(\\\\.[0-9]+)?(ns|us|ms|s|m|h)$', "
	    "'type': 'string'}, {'$ref': '#/$defs/variable'}], 'default': '1ms', 'description': "
	    "'how long it works'}, 'verbose': {'anyOf': [{'type': 'boolean'}, {'$ref': "
	    "'#/$defs/variable'}], 'default': 'false', 'description': 'say more'}}, 'required': "
	    "[], 'type': 'object'}}}}");
	same(schema_rule(json, "t.sink"),
	    "{'if': {'properties': {'use': {'const': 't.sink'}}}, 'then': {'properties': {'with': "
	    "{'additionalProperties': false, 'patternProperties': {'^x-': {}}, 'properties': {}, "
	    "'required': [], 'type': 'object'}}}}");
	json_decref(json);
}

/* Without the rules of types and the rows of stages, which have tests of their own. */
static void test_stage(void)
{
	json_t *json = schema_json(),
	       *stage = schema_at(json, "properties/stages/additionalProperties");

	same(schema_at(stage, "properties/to"),
	    "{'anyOf': [{'type': 'string'}, {'additionalProperties': {'anyOf': [{'type': "
	    "'string'}, {'additionalProperties': false, 'properties': {'loop': {'type': "
	    "'boolean'}, 'stage': {'type': 'string'}}, 'required': ['stage'], 'type': 'object'}]}, "
	    "'type': 'object'}], 'description': 'where events go: a stage, or a map from outlets "
	    "to stages'}");
	same(schema_at(stage, "required"), "['use']");
	same(schema_at(stage, "additionalProperties"), "false");
	same(schema_at(stage, "properties/with"), "{'type': 'object'}");
	json_t *use = schema_at(stage, "properties/use/anyOf"), *one;
	size_t i, found = 0;
	json_array_foreach(use, i, one)
	{
		const char *name = json_string_value(json_object_get(one, "const"));
		if (name && strcmp(name, "t.full") == 0) {
			same(one, "{'const': 't.full', 'description': 'has everything'}");
			found++;
		}
	}
	CU_ASSERT_EQUAL(found, 1);
	/* the types of plug-ins are not known */
	same(json_array_get(use, json_array_size(use) - 1), "{'type': 'string'}");
	same(json_array_get(schema_at(stage, "properties/threads/anyOf"), 1),
	    "{'anyOf': [{'maximum': 1024.0, 'minimum': 1.0, 'type': 'integer'}, {'pattern': "
	    "'^-?[0-9]+(\\\\.[0-9]+)?[kM]?$', 'type': 'string'}, {'const': 'auto'}, {'$ref': "
	    "'#/$defs/variable'}]}");
	json_decref(json);
}

static void test_top(void)
{
	json_t *json = schema_json(), *p = schema_at(json, "properties");

	same(schema_at(p, "weir"), "{'description': 'version of this format', 'enum': [1, '1']}");
	same(schema_at(p, "name"),
	    "{'anyOf': [{'pattern': '^[A-Za-z0-9_.-]{1,64}$', 'type': 'string'}, "
	    "{'$ref': '#/$defs/variable'}], 'description': 'name of the server'}");
	same(schema_at(p, "user"),
	    "{'description': 'user to switch to when root starts the server', 'type': 'string'}");
	same(schema_at(p, "include"),
	    "{'anyOf': [{'type': 'string'}, {'items': {'type': 'string'}, 'type': 'array'}]}");
	same(schema_at(p, "plugin"),
	    "{'anyOf': [{'type': 'string'}, {'items': {'type': 'string'}, 'type': 'array'}]}");
	same(schema_at(json, "$defs"),
	    "{'variable': {'pattern': '\\\\$\\\\{[A-Za-z_]', 'type': 'string'}}");
	same(schema_at(json, "required"), "['weir', 'stages']");
	same(schema_at(json, "patternProperties"), "{'^x-': {}}");
	same(schema_at(json, "type"), "'object'");
	json_decref(json);
}
/* A map of names to objects: the pattern of the names, and no other key than those of a table. */
static void test_named(void)
{
	static const char *const named[] = {"classes", "groups", "stages",
	    "admin/properties/tokens", "admin/properties/users",
	    "alerts/properties/stage_stuck/properties/stages"};
	static const char *const maps[] = {"admin", "drain", "overload", "trace", "log", "defaults",
	    "alerts", "alerts/properties/stage_stuck"};
	json_t *json = schema_json(), *p = schema_at(json, "properties");

	for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++) {
		json_t *map = schema_at(p, named[i]);
		same(schema_at(map, "type"), "'object'");
		same(schema_at(map, "propertyNames"), "{'pattern': '^[A-Za-z0-9_.-]{1,64}$'}");
		CU_ASSERT_TRUE(*json_string_value(schema_at(map, "description")));
		map = schema_at(map, "additionalProperties");
		same(schema_at(map, "type"), "'object'");
		same(schema_at(map, "additionalProperties"), "false");
		same(schema_at(map, "patternProperties"), "{'^x-': {}}");
	}
	for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]); i++) {
		json_t *map = schema_at(p, maps[i]);
		same(schema_at(map, "type"), "'object'");
		same(schema_at(map, "additionalProperties"), "false");
		same(schema_at(map, "patternProperties"), "{'^x-': {}}");
	}
	same(schema_at(p, "admin/properties/tokens/additionalProperties/required"), "['file']");
	same(schema_at(p, "admin/properties/users/additionalProperties/required"), "[]");
	json_t *match = schema_at(p, "classes/additionalProperties/properties/match");
	same(schema_at(match, "additionalProperties"), "{'type': ['string', 'number', 'boolean']}");
	/* a group has no inline threads; `defaults` has only some keys of stages */
	CU_ASSERT_EQUAL(
	    json_array_size(schema_at(p, "groups/additionalProperties/properties/threads/anyOf")),
	    2);
	CU_ASSERT_PTR_NULL(json_object_get(schema_at(p, "defaults/properties"), "group"));
	CU_ASSERT_EQUAL(json_object_size(schema_at(p, "defaults/properties")), 5);
	CU_ASSERT_PTR_NULL(
	    json_object_get(schema_at(p, "alerts/properties/history_file/properties"), "stages"));
	json_decref(json);
}

CUNIT_MAIN("schema, all of it", {"full", test_full}, {"work", test_work}, {"stage", test_stage},
    {"top", test_top}, {"maps of names", test_named})
