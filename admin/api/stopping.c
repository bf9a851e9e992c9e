/* SPDX-License-Identifier: MIT */
/* Requests the end of the server and shows how far it has come. The server itself performs the drain
 * and builds the JSON (admin.h). */
#include "reloading.h"

#include <string.h>

#include <jansson.h>

#include "admin/admin.h"
#include "admin/auth/auth.h"

static const struct admin_stopping *stopping(const struct call *c, struct reply *r)
{
	if (!c->source->stopping)
		reply_problem(r, 503, "this server is stopped by the program that has it");
	return c->source->stopping;
}

static void reply_status(const struct admin_stopping *s, struct reply *r)
{
	char *text = s->status(s->arg);

	reply_text(r, 200, "application/json", text, text ? strlen(text) : 0);
}

void answer_stop_status(const struct call *c, struct reply *r)
{
	const struct admin_stopping *s = stopping(c, r);

	if (s)
		reply_status(s, r);
}

/* Read {"now": true} from the body. Returns false, with the reply filled, if the body is anything
 * else. */
static bool read_now(const struct request *q, bool *now, struct reply *r)
{
	json_t *doc = q->n_body ? json_loadb(q->body, q->n_body, 0, NULL) : json_object();
	const json_t *value = json_object_get(doc, "now");
	bool good = json_is_object(doc) && json_object_size(doc) == (value ? 1U : 0U) &&
		    (!value || json_is_boolean(value));

	*now = json_is_true(value);
	json_decref(doc);
	if (!good)
		reply_problem(r, 400, "the body must be empty, {}, or {\"now\": true or false}");
	return good;
}

void answer_stop(const struct call *c, struct reply *r)
{
	const struct admin_stopping *s = stopping(c, r);
	const struct auth_pass *pass = c->request->pass;
	bool now;

	if (!s || !read_now(c->request, &now, r))
		return;
	s->ask(s->arg, now, pass ? pass->name : "operator");
	reply_status(s, r);
}
