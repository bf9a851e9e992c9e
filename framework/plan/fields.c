/* SPDX-License-Identifier: MIT */
/*
 * Finds the fields that a configuration names: fields of events, such as "path", and fields of
 * payloads, such as "image.width". Fields of events come first.
 */
#include "plan/plan.h"

#include <stdio.h>
#include <string.h>

#include <weir/knob.h>

const struct weir_field *plan_field(
    const struct weir_event_type *type, const char *name, const char **arg)
{
	*arg = NULL;
	for (const struct weir_field *f = type ? type->fields : NULL; f && f->name; f++) {
		size_t n = strlen(f->name);
		if (f->name[n - 1] != '.') {
			if (strcmp(name, f->name) == 0)
				return f;
		} else if (strncmp(name, f->name, n) == 0 && name[n]) {
			*arg = name + n;
			return f;
		}
	}
	return NULL;
}

static bool is_named(const struct weir_payload_type *type, const char *name, size_t n)
{
	return strncmp(type->name, name, n) == 0 && !type->name[n];
}

static const struct weir_payload_type *named_in(
    const struct weir_payload_at *at, const char *name, size_t n)
{
	for (; at && at->type; at++)
		if (is_named(at->type, name, n))
			return at->type;
	return NULL;
}

/* The payload type called name[0..n) that stages of type `ops` use, or NULL. */
static const struct weir_payload_type *used_by(
    const struct weir_stage_ops *ops, const char *name, size_t n)
{
	for (int i = 0; ops->needs && ops->needs[i]; i++)
		if (is_named(ops->needs[i], name, n))
			return ops->needs[i];
	const struct weir_payload_type *type = named_in(ops->gives, name, n);
	return type ? type : named_in(ops->takes, name, n);
}

const struct weir_payload_type *plan_payload_named(const struct plan *p, const char *name, size_t n)
{
	const struct weir_payload_type *type = NULL;
	const struct weir_stage_ops *ops;

	for (int i = 0; i < p->n && !type; i++)
		if (p->stages[i].ops)
			type = used_by(p->stages[i].ops, name, n);
	for (int i = 0; !type && (ops = weir_stage_type_at(i)); i++)
		type = used_by(ops, name, n);
	return type;
}

bool plan_field_ref(const struct plan *p, const struct weir_event_type *type, const char *name,
    struct field_ref *ref)
{
	const char *dot = strchr(name, '.');

	*ref = (struct field_ref){0};
	ref->field = plan_field(type, name, &ref->arg);
	if (ref->field || !dot || !dot[1])
		return ref->field;
	ref->payload = plan_payload_named(p, name, (size_t)(dot - name));
	const struct weir_payload_field *f = ref->payload ? ref->payload->fields : NULL;
	for (; f && f->name; f++) {
		if (f->name[0] && strcmp(f->name, dot + 1) != 0)
			continue;
		ref->of_payload = f;
		ref->arg = f->name[0] ? NULL : dot + 1;
		return true;
	}
	ref->payload = NULL;
	return false;
}

/* The field of `type` whose name is like `name`, or NULL. Names that end with a dot take an argument. */
static const char *similar(const struct weir_event_type *type, const char *name)
{
	const char *names[32];
	int n = 0;

	for (const struct weir_field *f = type ? type->fields : NULL; f && f->name && n < 32; f++)
		names[n++] = f->name;
	return n > 0 ? weir_nearest(name, names, n) : NULL;
}

const char *plan_field_hint(const struct plan *p, const struct weir_event_type *type,
    const char *name, const char *otherwise, char *hint, size_t size)
{
	size_t n = strcspn(name, "."), at;
	const struct weir_payload_type *payload = name[n] ? plan_payload_named(p, name, n) : NULL;
	const char *near = payload ? NULL : similar(type, name);

	if (near)
		snprintf(hint, size, "did you mean '%s%s'?", near,
		    near[strlen(near) - 1] == '.' ? "NAME" : "");
	if (!payload)
		return near ? hint : otherwise;
	at = (size_t)snprintf(hint, size, "payload '%s' has the fields", payload->name);
	const struct weir_payload_field *f = payload->fields;
	if (!f || !f->name)
		snprintf(hint, size, "payload '%s' has no fields", payload->name);
	for (int i = 0; f && f[i].name && at < size; i++)
		at += (size_t)snprintf(
		    hint + at, size - at, "%s%s.%s", i ? ", " : " ", payload->name, f[i].name);
	return hint;
}
