/* SPDX-License-Identifier: MIT */
/* Requests reloads and shows their results. The server itself performs the reload and builds the
 * JSON (admin.h). */
#include "reloading.h"

#include <string.h>

#include <jansson.h>

#include "admin/admin.h"
#include "admin/auth/auth.h"
#include "admin/metrics/prom.h"

static const struct admin_reloading *reloading(const struct call *c, struct reply *r)
{
	if (!c->source->reloading)
		reply_problem(r, 503, "this server cannot reload its configuration");
	return c->source->reloading;
}

void answer_reload_status(const struct call *c, struct reply *r)
{
	const struct admin_reloading *a = reloading(c, r);
	char *text = a ? a->status(a->arg) : NULL;

	if (a)
		reply_text(r, 200, "application/json", text, text ? strlen(text) : 0);
}

bool read_preview(const struct request *q, bool *preview, struct reply *r)
{
	json_t *doc = q->n_body ? json_loadb(q->body, q->n_body, 0, NULL) : json_object();
	const json_t *value = json_object_get(doc, "preview");
	bool good = json_is_object(doc) && json_object_size(doc) == (value ? 1U : 0U) &&
		    (!value || json_is_boolean(value));

	*preview = json_is_true(value);
	json_decref(doc);
	if (!good)
		reply_problem(
		    r, 400, "the body must be empty, {}, or {\"preview\": true or false}");
	return good;
}

void answer_reload(const struct call *c, struct reply *r)
{
	const struct admin_reloading *a = reloading(c, r);
	bool preview;

	if (!a || !read_preview(c->request, &preview, r))
		return;
	const struct auth_pass *pass = c->request->pass;
	uint64_t id = a->ask(a->arg, preview, pass ? pass->name : "operator");
	if (id == 0)
		reply_problem(r, 503, "the server is stopping");
	else
		reply_json(
		    r, 200, json_pack("{s:I, s:b}", "id", (json_int_t)id, "preview", preview));
}

void reloading_prom(const struct admin_reloading *a, struct textbuf *out)
{
	static const char last[] = "weir_config_last_reload_successful";
	static const char at[] = "weir_config_last_reload_success_timestamp_seconds";
	static const char total[] = "weir_config_reloads_total";
	struct admin_reload_counts n;

	if (!a)
		return;
	a->counts(a->arg, &n);
	prom_head(out, last, "gauge", "1 unless the newest reload of the configuration failed");
	prom_begin(out, last, "");
	prom_count(out, n.last_ok);
	prom_head(
	    out, at, "gauge", "Unix time of the newest successful reload, 0 before the first");
	prom_begin(out, at, "");
	/* as an integer, since prom_real prints only nine digits */
	prom_count(out, (uint64_t)n.last_ok_at);
	prom_head(out, total, "counter", "Reloads of the configuration by result");
	prom_begin(out, total, "");
	prom_label(out, "result", "ok");
	prom_count(out, n.total - n.failed);
	prom_begin(out, total, "");
	prom_label(out, "result", "failed");
	prom_count(out, n.failed);
}
