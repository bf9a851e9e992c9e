/* SPDX-License-Identifier: MIT */
/*
 * Saves the overridden knobs in the file; see saving.h. The values come from the same lists that
 * /api/v1/stages/{stage}/knobs returns, so a client sees beforehand which knobs are saved: those
 * that are overridden permanently. A temporary value is not saved, but the permanent one below it is.
 */
#include "saving.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/log.h>

#include "admin/admin.h"
#include "admin/auth/auth.h"
#include "framework/base/json.h"
#include "knobs.h"
#include "reloading.h"

/* Most knobs that one request saves: a guess, more than an operator sets. */
#define SAVED_MAX 512

struct saving {
	struct admin_saved knob[SAVED_MAX];
	int n;
	bool many;     /* there are more than SAVED_MAX */
	json_t *lists; /* of knobs; the texts of `knob` are in them */
	json_t *left;  /* overridden for a time only */
	char class_name[WEIR_CLASSES_MAX][ROUTE_NAME_MAX]; /* as owners of knobs */
};

static const char *text_of(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

/* Return the permanent override of the knob, or NULL if there is none. */
static const char *permanent(const json_t *knob)
{
	const char *kept = text_of(knob, "kept");

	if (kept || json_is_number(json_object_get(knob, "expires_at")))
		return kept;
	return text_of(knob, "overridden");
}

static void add_knob(struct saving *s, const char *owner, const json_t *knob)
{
	const char *value = permanent(knob);

	if (!text_of(knob, "overridden"))
		return;
	if (json_is_number(json_object_get(knob, "expires_at"))) {
		json_t *left = json_pack("{s:s, s:s, s:s, s:O}", "owner", owner, "knob",
		    text_of(knob, "name"), "value", text_of(knob, "overridden"), "expires_at",
		    json_object_get(knob, "expires_at"));
		json_push(&s->left, left);
	}
	if (!value)
		return;
	if (s->n < SAVED_MAX)
		s->knob[s->n++] = (struct admin_saved){owner, text_of(knob, "name"), value,
		    strcmp(text_of(knob, "type"), "bool") == 0};
	else
		s->many = true;
}

/* `use` is NULL for a group and a class. Returns false if memory ran out. */
static bool add_owner(
    struct saving *s, const struct admin_source *source, const char *owner, const char *use)
{
	json_t *list = knobs_json(source, owner, use);
	size_t n = json_array_size(list);

	if (!list)
		return false;
	json_push(&s->lists, list);
	for (size_t i = 0; s->lists && i < n; i++)
		add_knob(s, owner, json_array_get(list, i));
	return s->lists;
}

/* Whether a stage before `i` is in the same group. */
static bool is_repeated(const struct weir_graph_view *v, int i)
{
	for (int k = 0; k < i; k++)
		if (strcmp(v->stages[k].group, v->stages[i].group) == 0)
			return true;
	return false;
}

static bool collect(
    struct saving *s, const struct admin_source *source, const struct weir_graph_view *v)
{
	bool good = true;

	s->lists = json_array();
	s->left = json_array();
	for (int i = 0; good && i < v->n_stages; i++)
		good = add_owner(s, source, v->stages[i].name, v->stages[i].use);
	for (int i = 0; good && i < v->n_stages; i++)
		if (has_group(v, v->stages[i].group) && !is_repeated(v, i))
			good = add_owner(s, source, v->stages[i].group, NULL);
	for (int i = 0; good && i < v->n_classes; i++) {
		snprintf(s->class_name[i], sizeof(s->class_name[i]), CLASSES_OWNER "%s",
		    v->class_name[i]);
		good = add_owner(s, source, s->class_name[i], NULL);
	}
	return good && s->lists && s->left;
}

static json_t *saved_json(const struct saving *s)
{
	json_t *list = json_array();

	for (int i = 0; i < s->n; i++) {
		json_t *row = json_pack("{s:s, s:s, s:s}", "owner", s->knob[i].owner, "knob",
		    s->knob[i].knob, "value", s->knob[i].value);
		json_push(&list, row);
	}
	return list;
}

static void write_file(const struct call *c, const struct saving *s, bool preview, struct reply *r)
{
	const struct admin_reloading *a = c->source->reloading;
	const char *by = c->request->pass ? c->request->pass->name : "operator";
	char *file = NULL, *changes = NULL;
	int rc = a->save(a->arg, s->knob, s->n, preview, &file, &changes);

	if (rc != 0)
		reply_problem(r,
		    rc == WEIR_EBUSY    ? 409
		    : rc == WEIR_ENOMEM ? 503
					: 422,
		    "%s", changes ? changes : weir_error_text(rc));
	else
		reply_json(r, 200,
		    json_pack("{s:b, s:s, s:s, s:o, s:O}", "preview", preview, "file",
			file ? file : "", "changes", changes ? changes : "", "saved", saved_json(s),
			"left", s->left));
	if (!preview)
		weir_log(rc == 0 ? WEIR_LOG_INFO : WEIR_LOG_WARN,
		    "admin: %s saves %d knobs in %.200s: %.200s", by, s->n,
		    file ? file : "the file",
		    rc == 0   ? "done"
		    : changes ? changes
			      : weir_error_text(rc));
	free(file);
	free(changes);
}

void answer_save(const struct call *c, struct reply *r)
{
	bool preview;

	if (!c->source->reloading || !c->source->reloading->save) {
		reply_problem(r, 503, "this server was not started from a file");
		return;
	}
	if (!read_preview(c->request, &preview, r))
		return;
	struct weir_graph_view *v = take_view(c, r);
	if (!v)
		return;
	struct saving *s = calloc(1, sizeof(*s));
	if (!s || !collect(s, c->source, v))
		reply_problem(r, 503, "out of memory");
	else if (s->many)
		reply_problem(r, 422, "more than %d knobs are overridden", SAVED_MAX);
	else
		write_file(c, s, preview, r);
	if (s) {
		json_decref(s->lists);
		json_decref(s->left);
	}
	free(s);
	c->source->view_free(v);
}
