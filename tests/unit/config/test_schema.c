/* SPDX-License-Identifier: MIT */
/* The JSON Schema: it is valid JSON, has every key of every table and type with help and default,
 * and its patterns accept what the loader accepts. */
#include <jansson.h>
#include <regex.h>

#include "admission/admission.h"
#include "bind.h"
#include "loading.h"

static json_t *schema(void)
{
	FILE *out = capture_begin();
	json_error_t error;

	types_register();
	CU_ASSERT_EQUAL(config_schema(out), 0);
	json_t *json = json_loads(capture_end(out), 0, &error);
	CU_ASSERT_PTR_NOT_NULL_FATAL(json);
	capture_free();
	return json;
}

static json_t *at(json_t *json, const char *path)
{
	char word[64];

	while (json && *path) {
		size_t n = strcspn(path, "/");
		snprintf(word, sizeof(word), "%.*s", (int)n, path);
		json = json_object_get(json, word);
		path += n + (path[n] == '/');
	}
	CU_ASSERT_PTR_NOT_NULL(json);
	return json;
}

static void check_table(json_t *properties, const struct weir_knob *table)
{
	for (const struct weir_knob *row = table; row && row->name; row++) {
		json_t *one = at(properties, row->name);
		CU_ASSERT_STRING_EQUAL(json_string_value(at(one, "description")), row->help);
		if (row->def)
			CU_ASSERT_STRING_EQUAL(json_string_value(at(one, "default")), row->def);
		if (row->type == WEIR_KNOB_MAP && strcmp(row->name, "threads") != 0)
			check_table(at(one, "properties"), row->fields);
	}
}

/* Each alert has all settings, and those of single stages where it has any. */
static void test_alerts(void)
{
	json_t *json = schema();
	json_t *alerts = at(json, "properties/alerts/properties");

	for (int k = 0; k < WEIR_ALERTS; k++) {
		json_t *one = at(at(alerts, weir_alert_names[k]), "properties");
		check_table(one, config_alert_knobs[k]);
		CU_ASSERT_EQUAL(!json_object_get(one, "stages"), !config_alert_stage_knobs[k]);
	}
	json_decref(json);
}

static void test_top(void)
{
	json_t *json = schema();

	CU_ASSERT_EQUAL(json_integer_value(json_array_get(at(json, "properties/weir/enum"), 0)), 1);
	CU_ASSERT_EQUAL(json_array_size(at(json, "required")), 2);
	CU_ASSERT_TRUE(json_is_false(at(json, "additionalProperties")));
	CU_ASSERT_PTR_NOT_NULL(at(json, "properties/admin/properties/listen"));
	CU_ASSERT_PTR_NOT_NULL(at(json, "properties/drain/properties/grace"));
	CU_ASSERT_PTR_NOT_NULL(at(json, "properties/defaults/properties/queue"));
	json_decref(json);
}

static void test_stage(void)
{
	json_t *json = schema(), *stage = at(json, "properties/stages/additionalProperties");
	const struct weir_knob *row = weir_stage_knobs;

	for (; row->name; row++)
		if (strcmp(row->name, "threads") != 0) {
			const struct weir_knob one[2] = {*row, {.name = NULL}};
			check_table(at(stage, "properties"), one);
		}
	json_t *threads = at(stage, "properties/threads/anyOf");
	check_table(at(json_array_get(threads, 0), "properties"), weir_threads_knobs);
	CU_ASSERT_STRING_EQUAL(
	    json_string_value(at(json_array_get(threads, 2), "const")), "inline");
	/* true, false or a variable, but not a number */
	json_t *pin = at(at(json_array_get(threads, 0), "properties/pin"), "anyOf");
	CU_ASSERT_EQUAL(json_array_size(pin), 2);
	CU_ASSERT_STRING_EQUAL(json_string_value(at(json_array_get(pin, 0), "type")), "boolean");
	threads = at(json, "properties/defaults/properties/threads/anyOf");
	CU_ASSERT_EQUAL(json_array_size(threads), 3);
	CU_ASSERT_STRING_EQUAL(
	    json_string_value(at(json_array_get(threads, 2), "const")), "inline");
	json_decref(json);
}

/* The rule that describes `with:` of `type`. */
static json_t *rule_of(json_t *json, const char *type)
{
	json_t *rules = at(json, "properties/stages/additionalProperties/allOf"), *rule;
	size_t i;

	json_array_foreach(rules, i, rule)
	{
		if (strcmp(json_string_value(at(rule, "if/properties/use/const")), type) == 0)
			return rule;
	}
	CU_FAIL_FATAL("there is no rule for the type");
	return NULL;
}

static void test_types(void)
{
	json_t *json = schema();
	const struct weir_stage_ops *ops;

	for (int i = 0; (ops = weir_stage_type_at(i)); i++)
		check_table(
		    at(rule_of(json, ops->name), "then/properties/with/properties"), ops->knobs);
	json_t *source = at(rule_of(json, "t.source"), "then");
	CU_ASSERT_EQUAL(json_array_size(at(source, "required")), 1);
	CU_ASSERT_STRING_EQUAL(
	    json_string_value(json_array_get(at(source, "properties/with/required"), 0)), "listen");
	CU_ASSERT_PTR_NULL(
	    json_object_get(json_object_get(rule_of(json, "t.work"), "then"), "required"));
	json_decref(json);
}

/* Does any pattern of the knob's alternatives match `text`? */
static bool takes(json_t *knob, const char *text)
{
	json_t *one;
	size_t i;
	bool found = false;

	json_array_foreach(at(knob, "anyOf"), i, one)
	{
		const char *pattern = json_string_value(json_object_get(one, "pattern"));
		regex_t re;
		if (!pattern || regcomp(&re, pattern, REG_EXTENDED | REG_NOSUB) != 0)
			continue;
		found |= regexec(&re, text, 0, NULL, 0) == 0;
		regfree(&re);
	}
	return found;
}

static void test_patterns(void)
{
	json_t *json = schema();
	json_t *with = at(rule_of(json, "t.work"), "then/properties/with/properties");

	CU_ASSERT_TRUE(takes(at(with, "size"), "64KiB") && takes(at(with, "size"), "1.5MB"));
	CU_ASSERT_FALSE(takes(at(with, "size"), "64K") || takes(at(with, "size"), "big"));
	CU_ASSERT_TRUE(takes(at(with, "time"), "10ms") && takes(at(with, "time"), "1.5s"));
	CU_ASSERT_FALSE(takes(at(with, "time"), "10") || takes(at(with, "time"), "10 ms"));
	CU_ASSERT_TRUE(takes(at(with, "rate"), "20k") && takes(at(with, "share"), "0.5%"));
	CU_ASSERT_FALSE(takes(at(with, "rate"), "fast") || takes(at(with, "share"), "5k"));
	json_decref(json);
}

/* The enum of a knob has all names of its row, and no other. */
static void check_options(json_t *knob, const struct weir_knob *row)
{
	json_t *names = at(json_array_get(at(knob, "anyOf"), 0), "enum");
	const char *help =
	    json_string_value(at(json_array_get(at(knob, "anyOf"), 0), "description"));
	struct weir_option option;
	size_t n = 0;

	for (; row->option((int)n, &option); n++) {
		CU_ASSERT_STRING_EQUAL(json_string_value(json_array_get(names, n)), option.name);
		CU_ASSERT_PTR_NOT_NULL(strstr(help, option.help));
	}
	CU_ASSERT_TRUE(n > 0 && n == json_array_size(names));
}

static void test_policies(void)
{
	json_t *json = schema(), *top = at(json, "properties");
	json_t *stage = at(top, "stages/additionalProperties/properties");
	json_t *threads = json_array_get(at(stage, "threads/anyOf"), 0);
	json_t *policy = at(stage, "admission/properties/policy");

	check_options(policy, weir_knob_find(weir_admission_knobs, "policy"));
	json_t *names = at(json_array_get(at(policy, "anyOf"), 0), "enum");
	CU_ASSERT_STRING_EQUAL(json_string_value(json_array_get(names, 0)), "auto");
	for (int i = 0; admission_at(i); i++)
		CU_ASSERT_STRING_EQUAL(
		    json_string_value(json_array_get(names, (size_t)i + 1)), admission_at(i)->name);
	check_options(
	    at(threads, "properties/policy"), weir_knob_find(weir_threads_knobs, "policy"));
	check_options(
	    at(stage, "cohort/properties/policy"), weir_knob_find(weir_cohort_knobs, "policy"));
	check_options(at(top, "groups/additionalProperties/properties/schedule"),
	    weir_knob_find(weir_group_knobs, "schedule"));
	json_decref(json);
}

CUNIT_MAIN("schema", {"top", test_top}, {"stage", test_stage}, {"types", test_types},
    {"patterns", test_patterns}, {"policies", test_policies}, {"alerts", test_alerts})
