/* SPDX-License-Identifier: MIT */
/* Describes what a stage type needs, gives and takes, for `weir describe TYPE`. */
#include "describe.h"

#include <string.h>

#include <weir/payload.h>

static const char *summary_of(const struct weir_payload_type *type)
{
	return type->summary ? type->summary : "";
}

static void put_row(
    FILE *out, const char *what, const struct weir_payload_type *type, const char *outlet)
{
	fprintf(out, "    %s %-*s %s%s%s%s\n", what, NAME_WIDTH - (int)strlen(what) - 1, type->name,
	    summary_of(type), outlet ? " (outlet '" : "", outlet ? outlet : "", outlet ? "')" : "");
}

static void put_table(FILE *out, const char *what, const struct weir_payload_at *at)
{
	for (; at && at->type; at++)
		put_row(out, what, at->type, at->outlet);
}

static void put_payload_fields(FILE *out, const struct weir_payload_type *type)
{
	if (!type->fields)
		return;
	fprintf(out, "\nfields of payload %s (for 'match:' of classes, 'by:' and 'key:')\n",
	    type->name);
	for (const struct weir_payload_field *f = type->fields; f->name; f++) {
		char name[2 * WEIR_NAME_MAX + 2];
		snprintf(name, sizeof(name), "%s.%s", type->name, f->name[0] ? f->name : "NAME");
		fprintf(out, "    %-*s %s\n", NAME_WIDTH, name, f->help ? f->help : "");
	}
}

static bool gives(const struct weir_stage_ops *ops, const struct weir_payload_type *type)
{
	for (const struct weir_payload_at *g = ops->gives; g && g->type; g++)
		if (g->type == type)
			return true;
	return false;
}

/* The type of an element that an earlier one has, too, is described with that. */
static bool is_first(const struct weir_payload_at *table, const struct weir_payload_at *at)
{
	for (; table < at; table++)
		if (table->type == at->type)
			return false;
	return true;
}

void describe_payloads(FILE *out, const struct weir_stage_ops *ops)
{
	if (!ops->needs && !ops->gives && !ops->takes)
		return;
	fputs("\npayloads\n", out);
	for (int i = 0; ops->needs && ops->needs[i]; i++)
		put_row(out, "needs", ops->needs[i], NULL);
	put_table(out, "gives", ops->gives);
	put_table(out, "takes", ops->takes);
	for (int i = 0; ops->needs && ops->needs[i]; i++)
		if (!gives(ops, ops->needs[i]))
			put_payload_fields(out, ops->needs[i]);
	for (const struct weir_payload_at *g = ops->gives; g && g->type; g++)
		if (is_first(ops->gives, g))
			put_payload_fields(out, g->type);
}
