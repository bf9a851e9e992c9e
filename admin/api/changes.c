/* SPDX-License-Identifier: MIT */
/*
 * Handles operator changes made through the endpoint; see changes.h.
 *
 * Every change is one call into the graph (struct admin_source). The call returns a code and, on
 * failure, a message. concluded() logs every attempt with its user and result, and turns a failure
 * into a problem reply. A function that returns false has already filled the reply. There is no
 * state, and all code runs on the admin thread.
 */
#include "changes.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <weir/knob.h>
#include <weir/log.h>

#include "admin/auth/auth.h"
#include "framework/base/json.h"
#include "knobs.h"
#include "paging.h"

/* Default number of changes per response; the maximum (PAGING_MAX) covers all that are stored. */
#define CHANGES_DEFAULT 50
/* Default and maximum number of queued events per response. */
#define QUEUE_DEFAULT 20
#define QUEUE_MAX     100

/* Range of "for", the lifetime of a temporary value. The minimum is 0.1 s, since the control thread
 * checks for expired values at that interval. A value needed for longer than the maximum should be
 * permanent. */
static const struct weir_knob for_row = {
    .name = "for", .type = WEIR_KNOB_DURATION, .min = 1e8, .max = (double)WEIR_FOR_MAX_NS};

/* Log the result of a change and, if it was refused, reply with the reason. Returns whether the
 * change was made. */
static bool concluded(const struct call *c, struct reply *r, int rc, const char *why)
{
	const char *text = *why ? why : weir_error_text(rc);

	weir_log(rc == 0 ? WEIR_LOG_INFO : WEIR_LOG_WARN, "admin: %s: %s %s: %s",
	    c->request->pass ? c->request->pass->name : "operator", c->request->method, c->path,
	    rc == 0 ? "done" : text);
	if (rc != 0)
		reply_problem(r, status_of(rc), "%s", text);
	return rc == 0;
}

static bool offered(const void *fn, struct reply *r)
{
	if (!fn)
		reply_problem(r, 503, "this server does not offer this action");
	return fn != NULL;
}

/* Return whether the body is empty or `{}`; if not, fill the reply. Actions without parameters
 * refuse any other body. Otherwise a client that sends `{"for": "10m"}` with a pause would wrongly
 * expect the pause to end by itself. */
static bool says_nothing(const struct request *request, struct reply *r)
{
	if (request->n_body == 0)
		return true;
	json_t *body = json_loadb(request->body, request->n_body, 0, NULL);
	bool nothing = json_is_object(body) && json_object_size(body) == 0;
	json_decref(body);
	if (!nothing)
		reply_problem(
		    r, 400, "this request takes no parameters: the body must be {} or empty");
	return nothing;
}

/* ---- knobs ---- */

struct wish {
	char *value; /* owned */
	int64_t for_ns;
};

/* Return a string unchanged, and a number or a boolean as JSON text. The caller frees it. */
static char *text_of(const json_t *value)
{
	if (json_is_string(value))
		return strdup(json_string_value(value));
	return json_dumps(value, JSON_ENCODE_ANY | ADMIN_JSON_REALS);
}

/* Parse the optional "for" of the body. Returns false with the reply filled. */
static bool take_for(const json_t *body, struct wish *wish, struct reply *r)
{
	const json_t *text = json_object_get(body, "for");
	char why[200] = "the value must be a string like \"10m\"";

	if (!text || json_is_null(text))
		return true;
	if (json_is_string(text) && weir_knob_parse(&for_row, json_string_value(text),
					&wish->for_ns, why, sizeof(why)) == 0)
		return true;
	reply_problem(r, 422, "for: %s", why);
	return false;
}

/* Parse the body {"value": "8", "for": "10m"}, where "for" is optional. Returns false with the
 * reply filled. */
static bool take_wish(const json_t *body, struct wish *wish, struct reply *r)
{
	const json_t *value = json_object_get(body, "value");
	size_t known = 1 + (json_object_get(body, "for") != NULL);

	if (!value || json_object_size(body) != known) {
		reply_problem(r, 400,
		    "the body must be {\"value\": \"...\"}, optionally with \"for\": \"10m\"");
		return false;
	}
	if (!json_is_string(value) && !json_is_number(value) && !json_is_boolean(value)) {
		reply_problem(r, 400, "the value must be a string, a number, true or false");
		return false;
	}
	if (!take_for(body, wish, r))
		return false;
	wish->value = text_of(value);
	if (!wish->value)
		reply_problem(r, 503, "out of memory");
	return wish->value != NULL;
}

static bool read_wish(const struct request *request, struct wish *wish, struct reply *r)
{
	json_error_t err;
	json_t *body = json_loadb(request->body, request->n_body, JSON_REJECT_DUPLICATES, &err);

	if (!body) {
		reply_problem(r, 400, "the body is not JSON: %s", err.text);
		return false;
	}
	bool good = take_wish(body, wish, r);
	json_decref(body);
	return good;
}

void change_set(const struct call *c, struct reply *r)
{
	const struct admin_source *s = c->source;
	char why[400] = "";
	struct wish wish = {0};
	int rc;

	if (!knobs_owned(c, r) || !read_wish(c->request, &wish, r))
		return;
	if (s->set_for)
		rc = s->set_for(
		    s->arg, c->name[0], c->name[1], wish.value, wish.for_ns, why, sizeof(why));
	else
		rc = s->set(s->arg, c->name[0], c->name[1], wish.value, why, sizeof(why));
	free(wish.value);
	if (concluded(c, r, rc, why))
		answer_knob(c, r);
}

void change_unset(const struct call *c, struct reply *r)
{
	const struct admin_source *s = c->source;
	char why[400] = "";

	if (offered((const void *)(uintptr_t)s->unset, r) && knobs_owned(c, r) &&
	    concluded(c, r, s->unset(s->arg, c->name[0], c->name[1], why, sizeof(why)), why))
		answer_knob(c, r);
}

/* ---- what stages store ---- */

void change_purge(const struct call *c, struct reply *r)
{
	const struct admin_source *s = c->source;
	json_t *body =
	    json_loadb(c->request->body, c->request->n_body, JSON_REJECT_DUPLICATES, NULL);
	const char *what = json_string_value(json_object_get(body, "what"));
	char why[400] = "";

	if (!what || json_object_size(body) != 1) {
		reply_problem(r, 400, "the body must be {\"what\": \"http://HOST/PATH\"}");
	} else if (offered((const void *)(uintptr_t)s->purge, r)) {
		int64_t n = s->purge(s->arg, what, why, sizeof(why));
		if (concluded(c, r, n < 0 ? (int)n : 0, why))
			reply_json(r, 200, json_pack("{s:I}", "purged", (json_int_t)n));
	}
	json_decref(body);
}

/* ---- stages ---- */

static void steer(const struct call *c, enum weir_steer how, struct reply *r)
{
	const struct admin_source *s = c->source;
	char why[400] = "";

	if (!offered((const void *)(uintptr_t)s->steer, r) || !says_nothing(c->request, r) ||
	    !concluded(c, r, s->steer(s->arg, c->name[0], how, why, sizeof(why)), why))
		return;
	struct weir_graph_view *v = take_view(c, r);
	const struct weir_stage_view *stage = v ? find_stage(v, c->name[0], r) : NULL;
	if (stage)
		reply_json(r, 200,
		    json_pack("{s:s, s:s, s:I}", "name", stage->name, "state",
			stage->state ? stage->state : "running", "in_flight",
			(json_int_t)stage->in_flight));
	if (v)
		s->view_free(v);
}

void change_pause(const struct call *c, struct reply *r)
{
	steer(c, WEIR_STEER_PAUSE, r);
}

void change_drain(const struct call *c, struct reply *r)
{
	steer(c, WEIR_STEER_DRAIN, r);
}

void change_resume(const struct call *c, struct reply *r)
{
	steer(c, WEIR_STEER_RUN, r);
}

/* ---- changes ---- */

static json_t *moment(int64_t wall_ns)
{
	return wall_ns ? json_real((double)wall_ns / 1e9) : json_null();
}

json_t *change_json(const struct weir_change *a)
{
	return json_pack("{s:I, s:o, s:b, s:s, s:s, s:s, s:s, s:s, s:o, s:b}", "id",
	    (json_int_t)a->id, "at", moment(a->wall_ns), "before_restart", a->at_ns == 0, "actor",
	    a->actor, "what", a->what, "target", a->target, "from", a->from, "to", a->to,
	    "expires_at", moment(a->expires_wall_ns), "undone", a->undone);
}

void change_undo(const struct call *c, struct reply *r)
{
	const struct admin_source *s = c->source;
	struct weir_change undone = {0};
	char why[400] = "";

	if (!offered((const void *)(uintptr_t)s->undo, r) || !says_nothing(c->request, r))
		return;
	int rc = s->undo(s->arg, &undone, why, sizeof(why));
	if (rc == WEIR_ENOENT) /* 409, not 404: the path exists, but there is nothing to undo */
		rc = WEIR_EBUSY;
	if (concluded(c, r, rc, why))
		reply_json(r, 200, json_pack("{s:o}", "undone", change_json(&undone)));
}

static uint64_t change_id(const void *rows, int i)
{
	return ((const struct weir_change *)rows)[i].id;
}

/* Reply with one page of the list of changes, as the JSON member `name`. The link to the next page
 * begins with `path`. */
static void list_changes(const struct call *c, struct reply *r, const char *name, const char *path)
{
	const struct admin_source *s = c->source;
	struct paging page;

	if (!paging_take(c->query, CHANGES_DEFAULT, &page, r))
		return;
	struct weir_change *change = calloc(PAGING_MAX, sizeof(*change));
	if (!change) {
		reply_problem(r, 503, "out of memory");
		return;
	}
	json_t *list = json_array();
	int n = s->changes ? s->changes(s->arg, change, PAGING_MAX) : 0;
	paging_cut(&page, change, n, change_id, true, r);
	for (int i = page.first; i < page.first + page.n; i++)
		json_push(&list, change_json(&change[i]));
	json_t *next = paging_next(&page, change, n, change_id, path, "");
	free(change);
	reply_json(r, 200, json_pack("{s:o, s:o}", name, list, "next", next));
}

void answer_changes(const struct call *c, struct reply *r)
{
	list_changes(c, r, "changes", "/api/v1/changes");
}

void answer_acts(const struct call *c, struct reply *r)
{
	list_changes(c, r, "acts", "/api/v1/acts");
}

/* ---- the contents of a queue ---- */

static json_t *queued_json(const struct weir_queued *q)
{
	json_t *left = q->left_ns == INT64_MAX ? json_null() : json_real((double)q->left_ns / 1e9);

	return json_pack("{s:f, s:s, s:o, s:s}", "age", (double)q->age_ns / 1e9, "class",
	    q->class_name, "deadline_left", left, "type", q->type);
}

/* Set *length to the length of the queue of the stage named in the path, and return whether there
 * is a queue. If there is none, fill the reply. */
static bool has_queue(const struct call *c, json_int_t *length, struct reply *r)
{
	struct weir_graph_view *v = take_view(c, r);
	bool has = false;

	if (!v)
		return false;
	const struct weir_stage_view *s = find_stage(v, c->name[0], r);
	if (s) {
		*length = (json_int_t)s->queue_length;
		has = s->queue_limit > 0;
		if (!has)
			reply_problem(r, 422, "stage '%s' is %s%s and has no queue", s->name,
			    strcmp(s->placement, "source") == 0 ? "a " : "", s->placement);
	}
	c->source->view_free(v);
	return has;
}

void answer_queue(const struct call *c, struct reply *r)
{
	const struct admin_source *s = c->source;
	struct weir_queued queued[QUEUE_MAX];
	json_int_t length = 0;
	int n = QUEUE_DEFAULT;

	if (!query_n(c->query, &n) || n > QUEUE_MAX) {
		reply_problem(r, 400, "n must be a whole number from 1 to %d", QUEUE_MAX);
		return;
	}
	if (!offered((const void *)(uintptr_t)s->queue, r) || !has_queue(c, &length, r))
		return;
	n = s->queue(s->arg, c->name[0], queued, n);
	json_t *list = json_array();
	for (int i = 0; i < n; i++)
		json_push(&list, queued_json(&queued[i]));
	reply_json(r, 200, list ? json_pack("{s:I, s:o}", "length", length, "oldest", list) : NULL);
}
