/* SPDX-License-Identifier: MIT */
/*
 * Formats the knobs of a stage, a group or a class as JSON. Two tables of a stage are visited: that of the
 * framework (weir_stage_knobs, whose MAP rows are sections such as "threads."), and that of the stage
 * type ("with."). The value of each row is read from the graph. Rows without a value are omitted.
 */
#include "knobs.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "admin/text/utf8.h"

/* Maximum length of a value. Values may be strings; the graph truncates longer ones. */
#define VALUE_MAX 4096

struct walk {
	const struct admin_source *source;
	const char *name; /* of the owner */
	const char *only; /* the only requested path; NULL for all */
	json_t *list;     /* NULL once out of memory */
};

/* Return the name of a type in lower case: "duration" for WEIR_KNOB_DURATION. */
static json_t *type_json(enum weir_knob_type type)
{
	static const char *const word[] = {
#define KNOB_WORD(name, member, written) [WEIR_KNOB_##name] = #name,
	    WEIR_KNOB_TYPES(KNOB_WORD)
#undef KNOB_WORD
	};
	char lower[16] = "";

	for (size_t i = 0; word[type][i] && i < sizeof(lower) - 1; i++)
		lower[i] = (char)tolower((unsigned char)word[type][i]);
	return json_string(lower);
}

static const char *type_help(enum weir_knob_type type)
{
	static const char *const help[] = {
#define KNOB_HELP(name, member, written) [WEIR_KNOB_##name] = written,
	    WEIR_KNOB_TYPES(KNOB_HELP)
#undef KNOB_HELP
	};

	return help[type];
}

/* Drop an incomplete character at the end of `text`. The graph may cut off long values in the
 * middle of a character, which JSON does not allow. */
static const char *whole(char *text)
{
	char *p = text;

	for (size_t n; *p && (n = utf8_bytes(p)) > 0;)
		p += n;
	*p = '\0';
	return text;
}

static json_t *row_json(const struct weir_knob *row, const char *path, const char *value)
{
	return json_pack("{s:s, s:s, s:o, s:s, s:s?, s:s?, s:b, s:s}", "name", path, "value", value,
	    "type", type_json(row->type), "written", type_help(row->type), "choices", row->choices,
	    "default", row->def, "live", (row->flags & WEIR_KNOB_LIVE) != 0, "help",
	    row->help ? row->help : "");
}

/* Return the configured, temporary and permanent values, and whether the knob is live. If the source
 * has no call that reports them, `value` is returned as the configured one. */
static json_t *layers_json(
    const struct walk *w, const struct weir_knob *row, const char *path, const char *value)
{
	struct weir_override l = {0};
	bool known = w->source->layers && w->source->layers(w->source->arg, w->name, path, &l) == 0;
	json_t *expires =
	    l.expires_wall_ns ? json_real((double)l.expires_wall_ns / 1e9) : json_null();

	bool live = (row->flags & WEIR_KNOB_LIVE) && !l.fixed;

	return json_pack("{s:b, s:s, s:s?, s:s, s:o, s:b, s:s?}", "live", live, "configured",
	    known ? whole(l.configured) : value, "overridden",
	    l.overridden ? whole(l.override) : NULL, "effective", value, "expires_at", expires,
	    "stuck", l.stuck, "kept", l.has_permanent ? whole(l.permanent) : NULL);
}

static void add_row(struct walk *w, const struct weir_knob *row, const char *path)
{
	char value[VALUE_MAX];

	if (w->only && strcmp(w->only, path) != 0)
		return;
	if (w->source->get(w->source->arg, w->name, path, value, sizeof(value)) != 0)
		return;
	whole(value);
	json_t *knob = row_json(row, path, value), *layers = layers_json(w, row, path, value);
	int rc = json_object_update(knob, layers);
	json_decref(layers);
	if (json_array_append_new(w->list, knob) != 0 || rc != 0) {
		json_decref(w->list);
		w->list = NULL;
	}
}

/* Add the rows of a table. Two levels are sufficient: sections of a stage, and members of a map
 * below `with:`. */
static void walk_table(struct walk *w, const struct weir_knob *table, const char *prefix)
{
	char path[192];

	for (const struct weir_knob *row = table; row && row->name; row++) {
		snprintf(path, sizeof(path), "%s%s", prefix, row->name);
		if (row->type != WEIR_KNOB_MAP) {
			add_row(w, row, path);
			continue;
		}
		for (const struct weir_knob *f = row->fields; f && f->name; f++) {
			snprintf(path, sizeof(path), "%s%s.%s", prefix, row->name, f->name);
			add_row(w, f, path);
		}
	}
}

/* `use` is NULL for a group and a class. No knob of one kind is also one of the other, so that the rows
 * of the wrong table have no value, and are omitted. */
static json_t *walk_all(struct walk *w, const char *use)
{
	const struct weir_stage_ops *ops = use ? weir_stage_type_take(use) : NULL;

	w->list = json_array();
	walk_table(w, use ? weir_stage_knobs : weir_group_knobs, "");
	if (!use)
		walk_table(w, weir_class_knobs, "");
	if (ops)
		walk_table(w, ops->knobs, "with.");
	weir_stage_type_put(ops);
	return w->list;
}

json_t *knobs_json(const struct admin_source *source, const char *name, const char *use)
{
	struct walk w = {.source = source, .name = name};

	return walk_all(&w, use);
}

json_t *knob_json(const struct admin_source *source, const char *name, const char *use,
    const char *path, bool *found)
{
	struct walk w = {.source = source, .name = name, .only = path};
	json_t *list = walk_all(&w, use);
	json_t *row = json_incref(json_array_get(list, 0));

	/* if memory ran out, the knob may exist, so it must not be reported as missing */
	*found = !list || row;
	json_decref(list);
	return row;
}

/* ---- responses ---- */

/* Write the type of stage `name` to `use[size]`. Returns false with the reply filled. */
static bool stage_type(const struct call *c, char *use, size_t size, struct reply *r)
{
	struct weir_graph_view *v = take_view(c, r);

	if (!v)
		return false;
	const struct weir_stage_view *s = find_owner(v, c->name[0], r);
	if (s)
		snprintf(use, size, "%s", s->use);
	c->source->view_free(v);
	return s;
}

/* Whether the request is for a group. */
static bool is_for_group(const struct call *c)
{
	return strncmp(c->path, GROUPS_PATH "/", sizeof(GROUPS_PATH)) == 0;
}

bool knobs_of_class(const struct call *c)
{
	return strncmp(c->path, CLASSES_PATH "/", sizeof(CLASSES_PATH)) == 0;
}

bool knobs_owned(const struct call *c, struct reply *r)
{
	struct weir_graph_view *v = take_view(c, r);

	if (!v)
		return false;
	if (knobs_of_class(c)) {
		bool exists = find_class(v, c->name[0], r);
		c->source->view_free(v);
		return exists;
	}
	bool group = has_group(v, c->name[0]), right = group == is_for_group(c);
	c->source->view_free(v);
	if (!right)
		reply_problem(r, 404, "there is no %s '%s'%s%s%s", group ? "stage" : "group",
		    c->name[0], group ? ": it is a group, see " GROUPS_PATH "/" : "",
		    group ? c->name[0] : "", group ? "/knobs" : "");
	return right;
}

/* Write the type of the stage of the request to `use[size]`, and "" if it is a group or a class. Returns false
 * with the reply filled. */
static bool owner_type(const struct call *c, char *use, size_t size, struct reply *r)
{
	use[0] = '\0';
	return is_for_group(c) || knobs_of_class(c) ? knobs_owned(c, r)
						    : stage_type(c, use, size, r);
}

void answer_knobs(const struct call *c, struct reply *r)
{
	char use[ROUTE_NAME_MAX];

	if (owner_type(c, use, sizeof(use), r))
		reply_json(r, 200,
		    json_pack(
			"{s:o}", "knobs", knobs_json(c->source, c->name[0], use[0] ? use : NULL)));
}

void answer_knob(const struct call *c, struct reply *r)
{
	char use[ROUTE_NAME_MAX];
	bool found;

	if (!owner_type(c, use, sizeof(use), r))
		return;
	json_t *knob = knob_json(c->source, c->name[0], use[0] ? use : NULL, c->name[1], &found);
	if (found)
		reply_json(r, 200, knob);
	else
		reply_problem(r, 404, "%s '%s' has no knob '%s'",
		    use[0]              ? "stage"
		    : knobs_of_class(c) ? "class"
					: "group",
		    c->name[0] + (knobs_of_class(c) ? sizeof(CLASSES_OWNER) - 1 : 0), c->name[1]);
}
