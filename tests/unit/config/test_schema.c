/* SPDX-License-Identifier: MIT */
/* The JSON Schema: it is valid JSON, has every key of every table and type with help and default,
 * and its patterns accept what the loader accepts. */
#include <regex.h>

#include "admission/admission.h"
#include "bind.h"
#include "loading.h"
#include "schema_rig.h"

static void check_table(json_t *properties, const struct weir_knob *table)
{
	for (const struct weir_knob *row = table; row && row->name; row++) {
		json_t *one = schema_at(properties, row->name);
		CU_ASSERT_STRING_EQUAL(json_string_value(schema_at(one, "description")), row->help);
		if (row->def)
			CU_ASSERT_STRING_EQUAL(
			    json_string_value(schema_at(one, "default")), row->def);
		if (row->type == WEIR_KNOB_MAP && strcmp(row->name, "threads") != 0)
			check_table(schema_at(one, "properties"), row->fields);
	}
}

/* Each alert has all settings, and those of single stages where it has any. */
static void test_alerts(void)
{
	json_t *json = schema_json();
	json_t *alerts = schema_at(json, "properties/alerts/properties");

	for (int k = 0; k < WEIR_ALERTS; k++) {
		json_t *one = schema_at(schema_at(alerts, weir_alert_names[k]), "properties");
		check_table(one, config_alert_knobs[k]);
		CU_ASSERT_EQUAL(!json_object_get(one, "stages"), !config_alert_stage_knobs[k]);
	}
	json_decref(json);
}

static void test_top(void)
{
	json_t *json = schema_json();

	CU_ASSERT_EQUAL(
	    json_integer_value(json_array_get(schema_at(json, "properties/weir/enum"), 0)), 1);
	CU_ASSERT_EQUAL(json_array_size(schema_at(json, "required")), 2);
	CU_ASSERT_TRUE(json_is_false(schema_at(json, "additionalProperties")));
	CU_ASSERT_PTR_NOT_NULL(schema_at(json, "properties/admin/properties/listen"));
	CU_ASSERT_PTR_NOT_NULL(schema_at(json, "properties/drain/properties/grace"));
	CU_ASSERT_PTR_NOT_NULL(schema_at(json, "properties/defaults/properties/queue"));
	json_decref(json);
}

static void test_stage(void)
{
	json_t *json = schema_json(),
	       *stage = schema_at(json, "properties/stages/additionalProperties");
	const struct weir_knob *row = weir_stage_knobs;

	for (; row->name; row++)
		if (strcmp(row->name, "threads") != 0) {
			const struct weir_knob one[2] = {*row, {.name = NULL}};
			check_table(schema_at(stage, "properties"), one);
		}
	json_t *threads = schema_at(stage, "properties/threads/anyOf");
	check_table(schema_at(json_array_get(threads, 0), "properties"), weir_threads_knobs);
	CU_ASSERT_STRING_EQUAL(
	    json_string_value(schema_at(json_array_get(threads, 2), "const")), "inline");
	/* true, false or a variable, but not a number */
	json_t *pin = schema_at(schema_at(json_array_get(threads, 0), "properties/pin"), "anyOf");
	CU_ASSERT_EQUAL(json_array_size(pin), 2);
	CU_ASSERT_STRING_EQUAL(
	    json_string_value(schema_at(json_array_get(pin, 0), "type")), "boolean");
	threads = schema_at(json, "properties/defaults/properties/threads/anyOf");
	CU_ASSERT_EQUAL(json_array_size(threads), 3);
	CU_ASSERT_STRING_EQUAL(
	    json_string_value(schema_at(json_array_get(threads, 2), "const")), "inline");
	json_decref(json);
}

static void test_types(void)
{
	json_t *json = schema_json();
	const struct weir_stage_ops *ops;

	for (int i = 0; (ops = weir_stage_type_at(i)); i++)
		check_table(
		    schema_at(schema_rule(json, ops->name), "then/properties/with/properties"),
		    ops->knobs);
	json_t *source = schema_at(schema_rule(json, "t.source"), "then");
	CU_ASSERT_EQUAL(json_array_size(schema_at(source, "required")), 1);
	CU_ASSERT_STRING_EQUAL(
	    json_string_value(json_array_get(schema_at(source, "properties/with/required"), 0)),
	    "listen");
	CU_ASSERT_PTR_NULL(
	    json_object_get(json_object_get(schema_rule(json, "t.work"), "then"), "required"));
	json_decref(json);
}

/* Does any pattern of the knob's alternatives match `text`? */
static bool takes(json_t *knob, const char *text)
{
	json_t *one;
	size_t i;
	bool found = false;

	json_array_foreach(schema_at(knob, "anyOf"), i, one)
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
	json_t *json = schema_json();
	json_t *with = schema_at(schema_rule(json, "t.work"), "then/properties/with/properties");

	CU_ASSERT_TRUE(
	    takes(schema_at(with, "size"), "64KiB") && takes(schema_at(with, "size"), "1.5MB"));
	CU_ASSERT_FALSE(
	    takes(schema_at(with, "size"), "64K") || takes(schema_at(with, "size"), "big"));
	CU_ASSERT_TRUE(
	    takes(schema_at(with, "time"), "10ms") && takes(schema_at(with, "time"), "1.5s"));
	CU_ASSERT_FALSE(
	    takes(schema_at(with, "time"), "10") || takes(schema_at(with, "time"), "10 ms"));
	CU_ASSERT_TRUE(
	    takes(schema_at(with, "rate"), "20k") && takes(schema_at(with, "share"), "0.5%"));
	CU_ASSERT_FALSE(
	    takes(schema_at(with, "rate"), "fast") || takes(schema_at(with, "share"), "5k"));
	json_decref(json);
}

/* The enum of a knob has all names of its row, and no other. */
static void check_options(json_t *knob, const struct weir_knob *row)
{
	json_t *names = schema_at(json_array_get(schema_at(knob, "anyOf"), 0), "enum");
	const char *help = json_string_value(
	    schema_at(json_array_get(schema_at(knob, "anyOf"), 0), "description"));
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
	json_t *json = schema_json(), *top = schema_at(json, "properties");
	json_t *stage = schema_at(top, "stages/additionalProperties/properties");
	json_t *threads = json_array_get(schema_at(stage, "threads/anyOf"), 0);
	json_t *policy = schema_at(stage, "admission/properties/policy");

	check_options(policy, weir_knob_find(weir_admission_knobs, "policy"));
	json_t *names = schema_at(json_array_get(schema_at(policy, "anyOf"), 0), "enum");
	CU_ASSERT_STRING_EQUAL(json_string_value(json_array_get(names, 0)), "auto");
	for (int i = 0; admission_at(i); i++)
		CU_ASSERT_STRING_EQUAL(
		    json_string_value(json_array_get(names, (size_t)i + 1)), admission_at(i)->name);
	check_options(
	    schema_at(threads, "properties/policy"), weir_knob_find(weir_threads_knobs, "policy"));
	check_options(schema_at(stage, "cohort/properties/policy"),
	    weir_knob_find(weir_cohort_knobs, "policy"));
	check_options(schema_at(top, "groups/additionalProperties/properties/schedule"),
	    weir_knob_find(weir_group_knobs, "schedule"));
	json_decref(json);
}

CUNIT_MAIN("schema", {"top", test_top}, {"stage", test_stage}, {"types", test_types},
    {"patterns", test_patterns}, {"policies", test_policies}, {"alerts", test_alerts})
