/* SPDX-License-Identifier: MIT */
/*
 * Writes the JSON Schema (2020-12) of the YAML, for editors. It is built from the same rows that
 * the loader uses.
 *
 * A schema sees the types that a YAML reader assigns to values: 4 is a number, 20k and 10ms are
 * strings, and ${VARIABLE} may stand for any value. Constraints that a schema cannot express,
 * such as links to existing stages, are left to `weir check`.
 */
#include "config.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include <weir/stage.h>

#include "bind.h"
#include "framework/base/json.h"

#define NUMBER "[0-9]+(\\.[0-9]+)?"
#define NAME   "^[A-Za-z0-9_.-]{1,64}$"

/* ---- building: NULL means out of memory; a container that is given a NULL becomes NULL ---- */

static json_t *of_type(const char *type)
{
	return json_pack("{s:s}", "type", type);
}

static json_t *of_pattern(const char *pattern)
{
	return json_pack("{s:s, s:s}", "type", "string", "pattern", pattern);
}

/* Return the schema of a string. It also accepts numbers and booleans, since a YAML reader may take
 * an unquoted string for one. */
static json_t *text_schema(void)
{
	return json_pack("{s:[sss]}", "type", "string", "number", "boolean");
}

/* Return the schema of a map that has only `properties` and x-*. */
static json_t *of_map(json_t *properties)
{
	return json_pack("{s:s, s:b, s:{s:{}}, s:o}", "type", "object", "additionalProperties", 0,
	    "patternProperties", "^x-", "properties", properties);
}

/* ---- rows ---- */

static json_t *table_schema(const struct weir_knob *table);

static json_t *number_schema(const struct weir_knob *row, const char *type)
{
	json_t *schema = of_type(type);

	if (row->min != 0 || row->max != 0) {
		json_put(&schema, "minimum", json_real(row->min));
		json_put(&schema, "maximum", json_real(row->max));
	}
	return schema;
}

static json_t *choices_schema(const struct weir_knob *row)
{
	json_t *choices = json_array();

	for (const char *p = row->choices; p && *p;) {
		size_t n = strcspn(p, "|");
		json_push(&choices, json_stringn(p, n));
		p += n + (p[n] == '|');
	}
	return json_pack("{s:o}", "enum", choices);
}

/* Return the schema of the names that a string may have. */
static json_t *options_schema(const struct weir_knob *row)
{
	json_t *names = json_array();
	struct weir_option option;
	char *help = NULL;
	size_t size;
	FILE *out = open_memstream(&help, &size);

	for (int i = 0; out && row->option(i, &option); i++) {
		json_push(&names, json_string(option.name));
		fprintf(out, "%s%s: %s", i > 0 ? "\n" : "", option.name, option.help);
	}
	bool written = out && fclose(out) == 0;
	json_t *schema = json_pack(
	    "{s:o, s:o}", "enum", names, "description", written ? json_string(help) : NULL);
	free(help);
	return schema;
}

/* Add to `any` the further forms that a scalar of the row's type may have. */
static void add_forms(json_t **any, const struct weir_knob *row)
{
	switch (row->type) {
	case WEIR_KNOB_BOOL:
		json_push(any, of_type("boolean"));
		break;
	case WEIR_KNOB_INT:
		json_push(any, number_schema(row, "integer"));
		json_push(any, of_pattern("^-?" NUMBER "[kM]?$"));
		break;
	case WEIR_KNOB_BYTES:
		json_push(any, number_schema(row, "integer"));
		json_push(any, of_pattern("^" NUMBER "(B|kB|MB|GB|KiB|MiB|GiB)?$"));
		break;
	case WEIR_KNOB_DURATION:
		json_push(any, json_pack("{s:i}", "const", 0));
		json_push(any, of_pattern("^" NUMBER "(ns|us|ms|s|m|h)$"));
		break;
	case WEIR_KNOB_RATE:
		json_push(any, number_schema(row, "number"));
		json_push(any, of_pattern("^" NUMBER "[kM]?$"));
		break;
	case WEIR_KNOB_RATIO:
		json_push(any, json_pack("{s:s, s:i, s:f}", "type", "number", "minimum", 0,
				   "maximum", row->max != 0 ? row->max : 1));
		json_push(any, of_pattern("^" NUMBER "%$"));
		break;
	case WEIR_KNOB_ENUM:
		json_push(any, choices_schema(row));
		break;
	default:
		json_push(any, row->option ? options_schema(row) : text_schema());
		break;
	}
	if (row->flags & WEIR_KNOB_AUTO)
		json_push(any, json_pack("{s:s}", "const", "auto"));
}

static json_t *scalar_schema(const struct weir_knob *row)
{
	json_t *any = json_array();

	add_forms(&any, row);
	json_push(&any, json_pack("{s:s}", "$ref", "#/$defs/variable"));
	return json_pack("{s:o}", "anyOf", any);
}

static json_t *strings_schema(void)
{
	return json_pack("{s:[o, {s:s, s:o}]}", "anyOf", of_type("string"), "type", "array",
	    "items", of_type("string"));
}

static json_t *row_schema(const struct weir_knob *row)
{
	json_t *schema;

	if (row->type == WEIR_KNOB_MAP)
		schema = table_schema(row->fields);
	else if (row->type == WEIR_KNOB_RECORDS)
		schema =
		    json_pack("{s:s, s:o}", "type", "array", "items", table_schema(row->fields));
	else if (row->type == WEIR_KNOB_STRINGS)
		schema = strings_schema();
	else
		schema = scalar_schema(row);
	if (row->help)
		json_put(&schema, "description", json_string(row->help));
	if (row->def)
		json_put(&schema, "default", json_string(row->def));
	return schema;
}

static void put_rows(json_t **properties, const struct weir_knob *table)
{
	for (const struct weir_knob *row = table; row && row->name; row++)
		json_put(properties, row->name, row_schema(row));
}

/* Return the names of the required rows, or NULL if out of memory. */
static json_t *required_rows(const struct weir_knob *table)
{
	json_t *names = json_array();

	for (const struct weir_knob *row = table; row && row->name; row++)
		if (row->flags & WEIR_KNOB_REQUIRED)
			json_push(&names, json_string(row->name));
	return names;
}

static json_t *table_schema(const struct weir_knob *table)
{
	json_t *properties = json_object();

	put_rows(&properties, table);
	json_t *schema = of_map(properties);
	json_put(&schema, "required", required_rows(table));
	return schema;
}

/* ---- stages ---- */

/* Return the schema of `threads:`, which is a map, a number, or (in stages) `inline`. */
static json_t *threads_schema(bool stage)
{
	const struct weir_knob *min = weir_knob_find(weir_threads_knobs, "min");
	json_t *any = json_array();

	json_push(&any, table_schema(weir_threads_knobs));
	json_push(&any, scalar_schema(min));
	if (stage)
		json_push(&any, json_pack("{s:s}", "const", "inline"));
	return json_pack("{s:s, s:o}", "description",
	    weir_knob_find(weir_stage_knobs, "threads")->help, "anyOf", any);
}

static json_t *to_schema(void)
{
	return json_pack("{s:s, s:[o, {s:s, s:{s:[o, {s:s, s:b, s:[s], s:{s:o, s:o}}]}}]}",
	    "description", "where events go: a stage, or a map from outlets to stages", "anyOf",
	    of_type("string"), "type", "object", "additionalProperties", "anyOf", of_type("string"),
	    "type", "object", "additionalProperties", 0, "required", "stage", "properties", "stage",
	    of_type("string"), "loop", of_type("boolean"));
}

/* Return the rule that `with` has the knobs of a type if `use` names that type. */
static json_t *type_rule(const struct weir_stage_ops *ops)
{
	json_t *then = json_pack("{s:{s:o}}", "properties", "with", table_schema(ops->knobs));
	json_t *required = required_rows(ops->knobs);

	if (!required || json_array_size(required) > 0)
		json_put(&then, "required", required ? json_pack("[s]", "with") : NULL);
	json_decref(required);
	return json_pack(
	    "{s:{s:{s:{s:s}}}, s:o}", "if", "properties", "use", "const", ops->name, "then", then);
}

static json_t *use_schema(void)
{
	const struct weir_stage_ops *ops;
	json_t *any = json_array();

	for (int i = 0; (ops = weir_stage_type_at(i)); i++)
		json_push(
		    &any, json_pack("{s:s, s:s}", "const", ops->name, "description", ops->summary));
	json_push(&any, of_type("string")); /* types of plug-ins are not known here */
	return json_pack("{s:s, s:o}", "description", "the stage type", "anyOf", any);
}

static json_t *stage_schema(void)
{
	const struct weir_stage_ops *ops;
	json_t *properties = json_object(), *rules = json_array();

	json_put(&properties, "use", use_schema());
	json_put(&properties, "with", of_type("object"));
	json_put(&properties, "to", to_schema());
	put_rows(&properties, weir_stage_knobs);
	json_put(&properties, "threads", threads_schema(true));
	for (int i = 0; (ops = weir_stage_type_at(i)); i++)
		json_push(&rules, type_rule(ops));
	json_t *schema = of_map(properties);
	json_put(&schema, "required", json_pack("[s]", "use"));
	if (rules && json_array_size(rules) == 0)
		json_decref(rules);
	else
		json_put(&schema, "allOf", rules);
	return schema;
}

static json_t *defaults_schema(void)
{
	json_t *properties = json_object();

	json_put(&properties, "threads", threads_schema(true));
	for (const struct weir_knob *row = weir_stage_knobs; row->name; row++)
		if (config_is_default_key(row->name) && strcmp(row->name, "threads") != 0)
			json_put(&properties, row->name, row_schema(row));
	return of_map(properties);
}

/* ---- other sections ---- */

/* Return the schema of a map from any name to `value`. */
static json_t *named(json_t *value, const char *description)
{
	return json_pack("{s:s, s:s, s:{s:s}, s:o}", "type", "object", "description", description,
	    "propertyNames", "pattern", NAME, "additionalProperties", value);
}

static json_t *class_schema(void)
{
	json_t *properties = json_object();

	json_put(&properties, "match",
	    json_pack("{s:s, s:s, s:o}", "type", "object", "description",
		"fields of the event, each with a value, or a prefix followed by '*'",
		"additionalProperties", text_schema()));
	put_rows(&properties, weir_class_knobs);
	return of_map(properties);
}

/* Return the schema of `cores:`, which is a map, or a number or a text. */
static json_t *cores_schema(void)
{
	const struct weir_knob *row = weir_knob_find(weir_group_knobs, "cores");
	json_t *any = json_array();

	json_push(&any, table_schema(weir_cores_knobs));
	json_push(&any, scalar_schema(row));
	return json_pack(
	    "{s:s, s:s, s:o}", "description", row->help, "default", row->def, "anyOf", any);
}

static json_t *group_schema(void)
{
	json_t *properties = json_object();

	put_rows(&properties, weir_group_knobs);
	json_put(&properties, "threads", threads_schema(false));
	json_put(&properties, "cores", cores_schema());
	return of_map(properties);
}

static json_t *admin_schema(void)
{
	json_t *properties = json_object();

	put_rows(&properties, config_admin_knobs);
	json_put(&properties, "tokens",
	    named(table_schema(config_token_knobs), "clients that authenticate with a token"));
	json_put(&properties, "users",
	    named(table_schema(config_user_knobs),
		"users of this host that may connect to the socket file, by name or number"));
	return of_map(properties);
}

static json_t *alerts_schema(void)
{
	json_t *properties = json_object();

	for (int k = 0; k < WEIR_ALERTS; k++) {
		json_t *rows = json_object();
		put_rows(&rows, config_alert_knobs[k]);
		if (config_alert_stage_knobs[k])
			json_put(&rows, "stages",
			    named(table_schema(config_alert_stage_knobs[k]),
				"settings for single stages; keys that a stage omits have the "
				"values of the alert"));
		json_put(&properties, weir_alert_names[k], of_map(rows));
	}
	return of_map(properties);
}

static json_t *top_properties(void)
{
	json_t *p = json_object();

	json_put(&p, "weir",
	    json_pack("{s:s, s:[i, s]}", "description", "version of this format", "enum", 1, "1"));
	json_put(&p, "name",
	    json_pack("{s:s, s:[o, {s:s}]}", "description", "name of the server", "anyOf",
		of_pattern(NAME), "$ref", "#/$defs/variable"));
	json_put(&p, "user",
	    json_pack("{s:s, s:s}", "description", "user to switch to when root starts the server",
		"type", "string"));
	json_put(&p, "include", strings_schema());
	json_put(&p, "plugin", strings_schema());
	json_put(&p, "admin", admin_schema());
	json_put(&p, "drain", table_schema(config_drain_knobs));
	json_put(&p, "overload", table_schema(config_overload_knobs));
	json_put(&p, "payloads", table_schema(config_payloads_knobs));
	json_put(&p, "trace", table_schema(config_trace_knobs));
	json_put(&p, "log", table_schema(config_log_knobs));
	json_put(&p, "defaults", defaults_schema());
	json_put(&p, "classes",
	    named(class_schema(), "classes of events: an event has the first class that it "
				  "matches; list them by priority, highest first"));
	json_put(&p, "groups", named(group_schema(), "pools that several stages share"));
	json_put(&p, "stages", named(stage_schema(), "the stages of the server"));
	json_put(&p, "alerts", alerts_schema());
	return p;
}

int config_schema(FILE *out)
{
	json_t *schema = of_map(top_properties());

	json_put(&schema, "$schema", json_string("https://json-schema.org/draft/2020-12/schema"));
	json_put(&schema, "title", json_string("weir configuration"));
	json_put(&schema, "required", json_pack("[ss]", "weir", "stages"));
	json_put(&schema, "$defs", json_pack("{s:o}", "variable", of_pattern("\\$\\{[A-Za-z_]")));
	int rc = schema ? json_dumpf(schema, out, JSON_INDENT(2) | JSON_SORT_KEYS) : -1;
	json_decref(schema);
	if (rc != 0)
		return WEIR_ENOMEM;
	fputc('\n', out);
	return 0;
}
