/* SPDX-License-Identifier: MIT */
/*
 * `weir describe TYPE`: writes everything needed to configure a stage of this type, from its ops
 * table. For "stage", "group" or "class" it writes the keys that the framework accepts in such an
 * entry. For the name of a section it writes the keys of that section.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <weir/stage.h>

#include "bind.h"
#include "describe.h"
#include "rows.h"

static void put_head(FILE *out, const char *name, bool first)
{
	fprintf(out, "%s%s\n", first ? "" : "\n", name);
}

/* Write a line such as "    a size: 64KiB, 1MB; 1 to 1GiB; default 64KiB; live". */
static void put_facts(FILE *out, const struct weir_knob *row)
{
	row_type(out, row);
	if (row->flags & WEIR_KNOB_AUTO)
		fputs(", or auto", out);
	if (row_has_range(row)) {
		fputs("; ", out);
		row_range(out, row);
	}
	if (row->flags & WEIR_KNOB_REQUIRED)
		fputs("; required", out);
	if (row->def && (row->def[0] || row->type == WEIR_KNOB_STRING)) {
		fputs("; default ", out);
		row->type == WEIR_KNOB_STRING ? row_quote(out, row->def)
					      : (void)fputs(row->def, out);
	}
	if (row->flags & WEIR_KNOB_LIVE)
		fputs("; live", out);
	fputc('\n', out);
}

/* Write the names that the value may have, such as those of policies. */
static void put_options(FILE *out, const struct weir_knob *row, int indent)
{
	struct weir_option option;

	for (int i = 0; row->option && row->option(i, &option); i++)
		fprintf(out, "%*s%-*s %s\n", indent, "", NAME_WIDTH, option.name, option.help);
}

static void put_rows(FILE *out, const struct weir_knob *table, int indent)
{
	for (const struct weir_knob *row = table; row && row->name; row++) {
		fprintf(out, "%*s%-*s %s\n", indent, "", NAME_WIDTH, row->name,
		    row->help ? row->help : "");
		if (row->type == WEIR_KNOB_MAP) {
			put_rows(out, row->fields, indent + 4);
			continue;
		}
		fprintf(out, "%*s%-*s ", indent, "", NAME_WIDTH, "");
		put_facts(out, row);
		put_options(out, row, indent + 4);
		if (row->type == WEIR_KNOB_RECORDS)
			put_rows(out, row->fields, indent + 4);
	}
}

static const char *type_name(const struct weir_event_type *type)
{
	return type ? type->name : "any event";
}

static void put_outlets(FILE *out, const struct weir_stage_ops *ops)
{
	if (!ops->outlets && !(ops->flags & WEIR_STAGE_ANY_OUTLETS))
		return;
	put_head(out, "to:", false);
	uint32_t awaited = ops->children;
	for (const struct weir_outlet *o = ops->outlets; o && o->name; o++, awaited >>= 1)
		fprintf(out, "    %-*s %s; %s%s%s\n", NAME_WIDTH, o->name, o->help ? o->help : "",
		    type_name(o->type), awaited & 1 ? "; children, which are awaited" : "",
		    o->optional ? "; optional" : "");
	if (ops->flags & WEIR_STAGE_ANY_OUTLETS)
		fprintf(out, "    %-*s every name under 'to:' is an outlet\n", NAME_WIDTH, "...");
}

/* Write the event fields that can be used in classes and as keys of cohorts and partitions. */
static void put_fields(FILE *out, const struct weir_event_type *type)
{
	if (!type || !type->fields)
		return;
	fprintf(out, "\nfields of %s (for 'match:', 'by:' and 'key:')\n", type->name);
	for (const struct weir_field *f = type->fields; f->name; f++) {
		size_t n = strlen(f->name);
		char name[64];
		snprintf(name, sizeof(name), "%s%s", f->name,
		    n > 0 && f->name[n - 1] == '.' ? "NAME" : "");
		fprintf(out, "    %-*s %s\n", NAME_WIDTH, name, f->help ? f->help : "");
	}
}

static void put_metrics(FILE *out, const struct weir_stage_ops *ops)
{
	if (!ops->metrics)
		return;
	put_head(out, "metrics", false);
	for (const struct weir_metric *m = ops->metrics; m->name; m++)
		fprintf(out, "    weir_%s\n    %*s %s, %s: %s\n", m->name, NAME_WIDTH, "",
		    weir_metric_counts(m) ? "counter" : "gauge", m->unit, m->help);
}

/* Write a placeholder for the value in the example. */
static void put_example_value(FILE *out, const struct weir_knob *row)
{
	if (row->type == WEIR_KNOB_RECORDS) {
		fputs("[]", out);
		return;
	}
	fputs(row->type == WEIR_KNOB_MAP ? "{}" : "...", out);
}

/* Write the minimal stage of this type, with the required knobs and outlets. */
static void put_example(FILE *out, const struct weir_stage_ops *ops)
{
	int n = 0;

	fprintf(out, "\nexample\n    stages:\n      NAME:\n        use: %s\n", ops->name);
	for (const struct weir_knob *row = ops->knobs; row && row->name; row++)
		if (row->flags & WEIR_KNOB_REQUIRED) {
			fprintf(out, "%s%s: ", n++ > 0 ? ", " : "        with: { ", row->name);
			put_example_value(out, row);
		}
	fputs(n > 0 ? " }\n" : "", out);
	n = 0;
	for (const struct weir_outlet *o = ops->outlets; o && o->name; o++)
		if (!o->optional)
			fprintf(out, "%s%s: OTHER", n++ > 0 ? ", " : "        to: { ", o->name);
	if (n == 0 && ops->flags & WEIR_STAGE_ANY_OUTLETS)
		n = fprintf(out, "        to: { one: OTHER, two: ANOTHER");
	fputs(n > 0 ? " }\n" : "", out);
}

static void put_nature(FILE *out, const struct weir_stage_ops *ops)
{
	if (ops->flags & WEIR_STAGE_SOURCE)
		fputs("a source, which produces events and has no queue\n", out);
	else
		fprintf(out, "takes %s\n", type_name(ops->accepts));
	if (ops->flags & WEIR_STAGE_SINGLE)
		fputs("always 'mode: exclusive'\n", out);
	if (ops->flags & WEIR_STAGE_REPLICABLE)
		fputs("may have a state per core, with 'mode: replicated' in a core group\n", out);
	if (ops->flags & WEIR_STAGE_BLOCKS)
		fputs("may block, so it needs threads; it can be inline behind a source with "
		      "'per_thread: 1'\n",
		    out);
	if (ops->flags & WEIR_STAGE_HOLDS)
		fputs("holds events while something else works on them; 'width:' says how many "
		      "at once (weir describe stage)\n",
		    out);
	if (ops->flags & WEIR_STAGE_IN_PARTS)
		fputs("accepts requests whose bodies are still arriving\n", out);
}

static void describe_type(FILE *out, const struct weir_stage_ops *ops)
{
	fprintf(out, "%s: %s\n", ops->name, ops->summary);
	put_nature(out, ops);
	if (ops->knobs) {
		put_head(out, "with:", false);
		put_rows(out, ops->knobs, 4);
	}
	put_outlets(out, ops);
	put_fields(out, ops->accepts);
	if (ops->flags & WEIR_STAGE_SOURCE && ops->outlets)
		put_fields(out, ops->outlets[0].type);
	describe_payloads(out, ops);
	put_metrics(out, ops);
	put_example(out, ops);
}

/* Names that can be described, in addition to stage types. */
static const struct described sections[] = {
    {"stage", "keys of every stage, besides 'use:', 'with:' and 'to:'", weir_stage_knobs},
    {"group", "keys of every group", weir_group_knobs},
    {"class", "keys of every class, besides 'match:'", weir_class_knobs},
    {"overload", "keys of 'overload:', at the top level", config_overload_knobs},
    {"trace", "keys of 'trace:', at the top level", config_trace_knobs},
    {"log", "keys of 'log:', at the top level", config_log_knobs},
    {"alerts", "keys of 'alerts:', at the top level", config_alerts_knobs},
    {"admin",
	"keys of 'admin:', at the top level, besides 'tokens:' and 'users:', which hold 'NAME: {}' "
	"entries (weir describe token, weir describe user)",
	config_admin_knobs},
    {"token", "keys of every token under 'admin: tokens:'", config_token_knobs},
    {"user", "keys of every user under 'admin: users:'", config_user_knobs},
    {"drain", "keys of 'drain:', at the top level", config_drain_knobs},
    {"payloads", "keys of 'payloads:', at the top level", config_payloads_knobs},
};

#define N_SECTIONS ((int)(sizeof(sections) / sizeof(sections[0])))

const char *config_described(int i)
{
	return i >= 0 && i < N_SECTIONS ? sections[i].name : NULL;
}

const struct described *describe_section(const char *name)
{
	for (int i = 0; i < N_SECTIONS; i++)
		if (strcmp(name, sections[i].name) == 0)
			return &sections[i];
	return NULL;
}

int config_describe(const char *type, FILE *out)
{
	const struct weir_stage_ops *ops = weir_stage_type_find(type);

	if (ops) {
		describe_type(out, ops);
		return 0;
	}
	const struct described *section = describe_section(type);
	if (!section)
		return WEIR_ENOENT;
	fprintf(out, "%s\n\n", section->head);
	put_rows(out, section->rows, 4);
	return 0;
}
