/* SPDX-License-Identifier: MIT */
/* Checks payload types and the tables `needs`, `gives` and `takes` of stage types; see payload.h. */
#include "stage/payload.h"

#include <stdio.h>
#include <string.h>

static const char name_bytes[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";

static bool type_ok(
    const struct weir_stage_ops *ops, const struct weir_payload_type *type, char *text, size_t size)
{
	const char *name = type->name ? type->name : "";
	size_t n = strlen(name);

	if (n == 0 || n > WEIR_NAME_MAX || strspn(name, name_bytes) != n) {
		snprintf(text, size,
		    "stage type '%s' has a payload type called '%.64s'; use letters, digits, '_' "
		    "and '-'",
		    ops->name, name);
		return false;
	}
	for (const struct weir_payload_field *f = type->fields; f && f->name; f++)
		if (!f->text == !f->number) {
			snprintf(text, size,
			    "field '%.40s' of payload type '%s' must have either `text` or "
			    "`number`",
			    f->name, name);
			return false;
		}
	return true;
}

static bool has_outlet(const struct weir_stage_ops *ops, const char *name)
{
	for (const struct weir_outlet *o = ops->outlets; o && o->name; o++)
		if (strcmp(o->name, name) == 0)
			return true;
	return ops->flags & WEIR_STAGE_ANY_OUTLETS;
}

static bool table_ok(const struct weir_stage_ops *ops, const struct weir_payload_at *at,
    const char *what, char *text, size_t size)
{
	for (; at && at->type; at++) {
		if (!type_ok(ops, at->type, text, size))
			return false;
		if (!at->outlet || has_outlet(ops, at->outlet))
			continue;
		snprintf(text, size,
		    "stage type '%s' %s %s on '%.64s', which is none of its outlets", ops->name,
		    what, at->type->name, at->outlet);
		return false;
	}
	return true;
}

bool payload_validate(const struct weir_stage_ops *ops, char *text, size_t size)
{
	for (int i = 0; ops->needs && ops->needs[i]; i++)
		if (!type_ok(ops, ops->needs[i], text, size))
			return false;
	return table_ok(ops, ops->gives, "gives", text, size) &&
	       table_ok(ops, ops->takes, "takes", text, size);
}
