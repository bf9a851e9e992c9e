/* SPDX-License-Identifier: MIT */
/* `weir describe TYPE -o json`: the facts of describe.c as JSON, under the names of docs/json.md. */
#include "config.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include <weir/payload.h>
#include <weir/stage.h>

#include "describe.h"
#include "framework/base/json.h"
#include "rows.h"

/* A text, or null if there is none. */
static json_t *text_or_null(const char *text)
{
	return text ? json_string(text) : json_null();
}

/* What `put` writes about `row`, as a string. */
static json_t *written(void (*put)(FILE *, const struct weir_knob *), const struct weir_knob *row)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	json_t *string = NULL;

	if (!out)
		return NULL;
	put(out, row);
	if (fclose(out) == 0)
		string = json_string(text);
	free(text);
	return string;
}

/* ---- settings ---- */

static json_t *rows_json(const struct weir_knob *table);

static const char *type_word(enum weir_knob_type type)
{
	static const char *const words[] = {[WEIR_KNOB_BOOL] = "bool",
	    [WEIR_KNOB_INT] = "int",
	    [WEIR_KNOB_BYTES] = "bytes",
	    [WEIR_KNOB_DURATION] = "duration",
	    [WEIR_KNOB_RATE] = "rate",
	    [WEIR_KNOB_RATIO] = "ratio",
	    [WEIR_KNOB_STRING] = "string",
	    [WEIR_KNOB_ENUM] = "enum",
	    [WEIR_KNOB_STRINGS] = "strings",
	    [WEIR_KNOB_RECORDS] = "records",
	    [WEIR_KNOB_MAP] = "map"};

	return words[type];
}

/* The words that the value may be, each with its help if it has one; an empty list if it may be any
 * value of its type. */
static json_t *choices(const struct weir_knob *row)
{
	json_t *list = json_array();
	struct weir_option option;

	for (int i = 0; row->option && row->option(i, &option); i++)
		json_push(&list, json_pack("{s:s, s:o}", "name", option.name, "help",
				     text_or_null(option.help)));
	for (const char *p = row->choices; !row->option && p && *p;) {
		size_t n = strcspn(p, "|");
		json_push(&list, json_pack("{s:s%, s:n}", "name", p, n, "help"));
		p += n + (p[n] == '|');
	}
	return list;
}

static json_t *row_json(const struct weir_knob *row)
{
	bool range = row_has_range(row), map = row->type == WEIR_KNOB_MAP;
	json_t *doc = json_pack("{s:s, s:o, s:s, s:o, s:b, s:b, s:b}", "name", row->name, "help",
	    text_or_null(row->help), "type", type_word(row->type), "form", written(row_type, row),
	    "required", (row->flags & WEIR_KNOB_REQUIRED) != 0, "live",
	    (row->flags & WEIR_KNOB_LIVE) != 0, "auto", (row->flags & WEIR_KNOB_AUTO) != 0);

	json_put(&doc, "default", map ? json_null() : text_or_null(row->def));
	json_put(&doc, "minimum", range ? written(row_least, row) : json_null());
	json_put(&doc, "maximum", range ? written(row_most, row) : json_null());
	json_put(&doc, "choices", choices(row));
	if (map || row->type == WEIR_KNOB_RECORDS)
		json_put(&doc, "fields", rows_json(row->fields));
	return doc;
}

static json_t *rows_json(const struct weir_knob *table)
{
	json_t *list = json_array();

	for (const struct weir_knob *row = table; row && row->name; row++)
		json_push(&list, row_json(row));
	return list;
}

/* ---- a stage type ---- */

static json_t *event_name(const struct weir_event_type *type)
{
	return text_or_null(type ? type->name : NULL);
}

static json_t *outlets_json(const struct weir_stage_ops *ops)
{
	json_t *list = json_array();
	uint32_t awaited = ops->children;

	for (const struct weir_outlet *o = ops->outlets; o && o->name; o++, awaited >>= 1)
		json_push(&list, json_pack("{s:s, s:o, s:o, s:b, s:b}", "name", o->name, "help",
				     text_or_null(o->help), "event", event_name(o->type),
				     "optional", o->optional, "awaited", (awaited & 1) != 0));
	return list;
}

static void add_fields(json_t **list, const struct weir_event_type *type)
{
	for (const struct weir_field *f = type ? type->fields : NULL; f && f->name; f++) {
		size_t n = strlen(f->name);
		char name[64];
		snprintf(name, sizeof(name), "%s%s", f->name,
		    n > 0 && f->name[n - 1] == '.' ? "NAME" : "");
		json_push(list, json_pack("{s:s, s:s, s:o}", "event", type->name, "name", name,
				    "help", text_or_null(f->help)));
	}
}

static json_t *fields_json(const struct weir_stage_ops *ops)
{
	json_t *list = json_array();

	add_fields(&list, ops->accepts);
	if (ops->flags & WEIR_STAGE_SOURCE && ops->outlets)
		add_fields(&list, ops->outlets[0].type);
	return list;
}

static json_t *metrics_json(const struct weir_stage_ops *ops)
{
	json_t *list = json_array();

	for (const struct weir_metric *m = ops->metrics; m && m->name; m++) {
		char name[128];
		snprintf(name, sizeof(name), "weir_%s", m->name);
		json_push(&list, json_pack("{s:s, s:s, s:s, s:s}", "name", name, "kind",
				     weir_metric_counts(m) ? "counter" : "gauge", "unit", m->unit,
				     "help", m->help));
	}
	return list;
}

static json_t *payload_json(const struct weir_payload_type *type, const char *outlet)
{
	json_t *fields = json_array();

	for (const struct weir_payload_field *f = type->fields; f && f->name; f++) {
		char name[2 * WEIR_NAME_MAX + 2];
		snprintf(name, sizeof(name), "%s.%s", type->name, f->name[0] ? f->name : "NAME");
		json_push(
		    &fields, json_pack("{s:s, s:o}", "name", name, "help", text_or_null(f->help)));
	}
	return json_pack("{s:s, s:o, s:o, s:o}", "name", type->name, "summary",
	    text_or_null(type->summary), "outlet", text_or_null(outlet), "fields", fields);
}

static json_t *payloads_at(const struct weir_payload_at *at)
{
	json_t *list = json_array();

	for (; at && at->type; at++)
		json_push(&list, payload_json(at->type, at->outlet));
	return list;
}

static json_t *payloads_json(const struct weir_stage_ops *ops)
{
	json_t *needs = json_array();

	for (int i = 0; ops->needs && ops->needs[i]; i++)
		json_push(&needs, payload_json(ops->needs[i], NULL));
	return json_pack("{s:o, s:o, s:o}", "needs", needs, "gives", payloads_at(ops->gives),
	    "takes", payloads_at(ops->takes));
}

static json_t *type_json(const struct weir_stage_ops *ops)
{
	unsigned flags = ops->flags;
	bool source = flags & WEIR_STAGE_SOURCE;
	json_t *doc = json_pack(
	    "{s:s, s:s, s:s}", "name", ops->name, "kind", "stage type", "help", ops->summary);

	json_put(&doc, "source", json_boolean(source));
	json_put(&doc, "accepts", source ? json_null() : event_name(ops->accepts));
	json_put(&doc, "exclusive", json_boolean(flags & WEIR_STAGE_SINGLE));
	json_put(&doc, "replicable", json_boolean(flags & WEIR_STAGE_REPLICABLE));
	json_put(&doc, "blocks", json_boolean(flags & WEIR_STAGE_BLOCKS));
	json_put(&doc, "holds", json_boolean(flags & WEIR_STAGE_HOLDS));
	json_put(&doc, "in_parts", json_boolean(flags & WEIR_STAGE_IN_PARTS));
	json_put(&doc, "settings", rows_json(ops->knobs));
	json_put(&doc, "outlets", outlets_json(ops));
	json_put(&doc, "any_outlets", json_boolean(flags & WEIR_STAGE_ANY_OUTLETS));
	json_put(&doc, "fields", fields_json(ops));
	json_put(&doc, "payloads", payloads_json(ops));
	json_put(&doc, "metrics", metrics_json(ops));
	return doc;
}

int config_describe_json(const char *type, FILE *out)
{
	const struct weir_stage_ops *ops = weir_stage_type_find(type);
	const struct described *section = ops ? NULL : describe_section(type);

	if (!ops && !section)
		return WEIR_ENOENT;
	json_t *doc =
	    ops ? type_json(ops)
		: json_pack("{s:s, s:s, s:s, s:o}", "name", section->name, "kind", "section",
		      "help", section->head, "settings", rows_json(section->rows));
	int rc = doc ? json_dumpf(doc, out, JSON_INDENT(2)) : -1;
	json_decref(doc);
	if (rc != 0)
		return WEIR_ENOMEM;
	fputc('\n', out);
	return 0;
}
