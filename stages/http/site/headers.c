/* SPDX-License-Identifier: MIT */
/*
 * http.headers: sets, adds and removes fields of requests and of answers.
 *
 *   fields: { use: http.headers, threads: inline, to: app, with: {
 *             request: { remove: [x-user], set: [ "X-Client: {address}" ] },
 *             answer: { set: [ "Cache-Control: no-store" ] }, hsts: max-age=31536000, nosniff: true } }
 *
 * Fields of answers are changed by a filter (request/filter.h), so those of whole answers, of answers in parts
 * and of errors that weir makes are all the same. Fields that frame a message, or that http.server writes
 * itself, are refused by `check`.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/http.h>
#include <weir/weir.h>

#include "http/request/filter.h"
#include "http/request/request.h"
#include "http/site/cors.h"
#include "http/site/fields.h"

enum metric { CORS_DENIALS, LEFT_OUT };

struct headers_conf {
	struct fields_conf request, answer;
	char *hsts, *csp, *frame;
	bool nosniff;
	struct cors_conf cors;
};

struct headers {
	struct weir_stage *stage;
	struct fields request, answer;
	struct cors cors;
	bool on_answers; /* answers are changed at all */
};

/* What is attached to one request. */
struct attached {
	struct http_filter filter; /* first */
	const struct headers *h;
	enum cors_kind kind;
};

/* ---- answers ---- */

static int set(struct weir_http_request *req, const char *name, const char *value)
{
	if (!value || !value[0])
		return 0;
	request_field_drop(req, name);
	return weir_http_add_field(req, name, value);
}

static int set_presets(
    const struct headers *h, const struct headers_conf *conf, struct weir_http_request *req)
{
	int rc = 0;

	if (conf->hsts[0] && fields_is_https(&h->answer, req))
		rc = set(req, "Strict-Transport-Security", conf->hsts);
	rc = rc == 0 ? set(req, "Content-Security-Policy", conf->csp) : rc;
	rc = rc == 0 ? set(req, "X-Frame-Options", conf->frame) : rc;
	return rc == 0 && conf->nosniff ? set(req, "X-Content-Type-Options", "nosniff") : rc;
}

static int on_head(struct http_filter *f, struct weir_http_request *req, int64_t *length)
{
	const struct attached *a = (const struct attached *)f;
	const struct headers *h = a->h;
	const struct headers_conf *conf = weir_conf(h->stage);
	int left = 0;
	int rc = response_own_fields(req);

	(void)length;
	rc = rc == 0 ? set_presets(h, conf, req) : rc;
	rc = rc == 0 ? cors_answer(&h->cors, &conf->cors, a->kind, req) : rc;
	rc = rc == 0 ? fields_answer(&h->answer, req, &left) : rc;
	if (left > 0)
		weir_count(h->stage, LEFT_OUT, left);
	return rc;
}

static void on_end(struct http_filter *f, struct weir_http_request *req, int status)
{
	(void)req;
	(void)status;
	free(f);
}

static const struct http_filter_ops ops = {.head = on_head, .end = on_end};

/* ---- requests ---- */

/* Change the fields of the request, and see to those of its answer. Returns 0 or WEIR_ENOMEM. */
static int prepare(struct weir_stage *st, struct weir_http_request *req, enum cors_kind kind)
{
	const struct headers *h = weir_state(st);
	int left = 0;

	if (h->on_answers) {
		struct attached *a = malloc(sizeof(*a));
		if (!a)
			return WEIR_ENOMEM;
		*a = (struct attached){.filter.ops = &ops, .h = h, .kind = kind};
		http_filter_add(req, &a->filter);
	}
	int rc = fields_request(&h->request, req, &left);
	if (left > 0)
		weir_count(st, LEFT_OUT, left);
	return rc;
}

static void handle_one(struct weir_stage *st, struct weir_event **ev)
{
	const struct headers *h = weir_state(st);
	const struct headers_conf *conf = weir_conf(st);
	struct weir_http_request *req = weir_http_request(*ev);
	enum cors_kind kind = cors_kind(&h->cors, &conf->cors, req);

	/* without its fields, an answer or a request may have what it must not */
	if (prepare(st, req, kind) != 0) {
		weir_event_finish(ev, WEIR_ENOMEM);
		return;
	}
	if (kind != CORS_PREFLIGHT && kind != CORS_DENIED) {
		weir_emit(st, 0, ev);
		return;
	}
	weir_count(st, CORS_DENIALS, kind == CORS_DENIED);
	weir_http_respond_status(req, kind == CORS_DENIED ? 403 : 204);
	weir_event_finish(ev, WEIR_OK);
}

static void headers_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++)
		handle_one(st, &ev[i]);
}

/* ---- startup ---- */

static int check_value(struct weir_stage *st, struct weir_err *err, const char *key,
    const char *name, const char *value, const char *begin)
{
	if (!value[0] ||
	    (response_field_good(name, value) && strncmp(value, begin, strlen(begin)) == 0))
		return 0;
	weir_blame(st, key);
	snprintf(err->text, sizeof(err->text), "'%s' is no value of %s", key, name);
	snprintf(err->hint, sizeof(err->hint), "write one line%s%s",
	    begin[0] ? " that begins with " : "", begin);
	return WEIR_EINVAL;
}

static void headers_fini(struct weir_stage *st)
{
	struct headers *h = weir_state(st);

	fields_fini(&h->request);
	fields_fini(&h->answer);
	cors_fini(&h->cors);
}

static int headers_init(struct weir_stage *st, struct weir_err *err)
{
	const struct headers_conf *conf = weir_conf(st);
	struct headers *h = weir_state(st);
	int rc = check_value(st, err, "hsts", "Strict-Transport-Security", conf->hsts, "max-age=");

	h->stage = st;
	rc = rc == 0 ? check_value(st, err, "csp", "Content-Security-Policy", conf->csp, "") : rc;
	rc = rc == 0 ? check_value(st, err, "frame", "X-Frame-Options", conf->frame, "") : rc;
	rc = rc == 0 ? fields_init(&h->request, st, &conf->request, "request", err) : rc;
	rc = rc == 0 ? fields_init(&h->answer, st, &conf->answer, "answer", err) : rc;
	rc = rc == 0 ? cors_init(&h->cors, st, &conf->cors, err) : rc;
	h->on_answers = h->answer.n > 0 || h->cors.on || conf->hsts[0] || conf->csp[0] ||
			conf->frame[0] || conf->nosniff;
	if (rc != 0)
		headers_fini(st);
	return rc;
}

#define ROW(member) offsetof(struct headers_conf, member)

static const struct weir_knob knobs[] = {
    {.name = "request",
	.type = WEIR_KNOB_MAP,
	.offset = ROW(request),
	.fields = fields_knobs,
	.help = "fields of requests, for the stages that follow and for an origin"},
    {.name = "answer",
	.type = WEIR_KNOB_MAP,
	.offset = ROW(answer),
	.fields = fields_knobs,
	.help = "fields of answers, also of those that weir makes for requests that were here"},
    {.name = "hsts",
	.type = WEIR_KNOB_STRING,
	.offset = ROW(hsts),
	.def = "",
	.help = "Strict-Transport-Security of answers over HTTPS, such as max-age=31536000; over "
		"HTTP it is not sent"},
    {.name = "csp",
	.type = WEIR_KNOB_STRING,
	.offset = ROW(csp),
	.def = "",
	.help = "Content-Security-Policy of all answers"},
    {.name = "frame",
	.type = WEIR_KNOB_STRING,
	.offset = ROW(frame),
	.def = "",
	.help = "X-Frame-Options of all answers: DENY or SAMEORIGIN"},
    {.name = "nosniff",
	.type = WEIR_KNOB_BOOL,
	.offset = ROW(nosniff),
	.def = "false",
	.help = "send X-Content-Type-Options: nosniff"},
    {.name = "cors",
	.type = WEIR_KNOB_MAP,
	.offset = ROW(cors),
	.fields = cors_knobs,
	.help = "which scripts of other sites may read answers; preflights are answered here"},
    {.name = NULL},
};

static const struct weir_metric metrics[] = {
    [CORS_DENIALS] = {"http_cors_denied_total", WEIR_METRIC_COUNTER, "requests",
	"preflights of origins that are not listed"},
    [LEFT_OUT] = {"http_headers_left_out_total", WEIR_METRIC_COUNTER, "fields",
	"fields left out because their value would not have been valid"},
    {NULL, WEIR_METRIC_COUNTER, NULL, NULL},
};

static const struct weir_outlet outlets[] = {
    {"out", WEIR_ANY_EVENT, false, "every request but preflights of CORS"},
    {NULL, NULL, false, NULL},
};

extern const struct weir_stage_ops weir_stage_http_headers;
const struct weir_stage_ops weir_stage_http_headers = {
    .abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_IN_PARTS,
    .name = "http.headers",
    .summary = "Sets, adds and removes fields of requests and answers",
    .accepts = &weir_http_request_type,
    .outlets = outlets,
    .knobs = knobs,
    .conf_size = sizeof(struct headers_conf),
    .metrics = metrics,
    .state_size = sizeof(struct headers),
    .init = headers_init,
    .handle = headers_handle,
    .fini = headers_fini,
};
