/* SPDX-License-Identifier: MIT */
/*
 * http.rewrite: redirects clients to other URLs, and gives requests other paths.
 *
 *   front: { use: http.rewrite, threads: inline, to: route, with: { rules: [
 *            { path: "*.well-known*" },
 *            { scheme: http, redirect: "https://{host}{path}", status: 308 },
 *            { path: "/old*", redirect: "/new{rest}" },
 *            { path: "/api*", rewrite: "/{rest}" } ] } }
 *
 * The first rule that matches counts. One with neither `redirect` nor `rewrite` leaves the request as it is.
 * A redirect to the URL of the request itself does not match either, so that a rule cannot send a client
 * in a circle. weir_http_set_target judges the path of a rewrite as that of a client.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/http.h>
#include <weir/weir.h>

#include "http/message/match.h"
#include "http/site/aim.h"

enum metric { REDIRECTS, REWRITES, BAD };

enum kind { LEAVE, REDIRECT, REWRITE };

/* A record of `rules:`. */
struct rule_conf {
	char *path, *method, *host, *scheme, *redirect, *rewrite;
	int status; /* index in the choices */
	int query;  /* enum query */
};

enum query { QUERY_KEEP, QUERY_DROP };

struct rewrite_conf {
	struct weir_records rules;
};

struct rule {
	struct http_match match;
	enum kind kind;
	struct aim aim;
	int status;
};

struct rewrite {
	int n;
	struct rule *rules;
	const struct weir_field *scheme;
};

/* ---- requests ---- */

static void answer(struct weir_stage *st, struct weir_event **ev, int status, const char *url)
{
	struct weir_http_request *req = weir_http_request(*ev);

	if (weir_http_respond_status(req, status) == 0 && url &&
	    weir_http_add_field(req, "Location", url) != 0)
		weir_http_respond_status(req, 414); /* longer than fields may be */
	weir_count(st, status < 400 ? REDIRECTS : BAD, 1);
	weir_event_finish(ev, WEIR_OK);
}

static int set_target(struct weir_http_request *req, const struct aimed *to)
{
	struct weir_slice path = {to->url, to->path_n};
	struct weir_slice query = {to->url + to->path_n + 1, to->n - to->path_n - 1};

	return weir_http_set_target(req, path, to->n > to->path_n ? &query : NULL);
}

/* Apply `rule`, which matches. Returns whether it did, so that no other rule counts; the event then has
 * left. */
static bool apply(
    struct weir_stage *st, const struct rule *rule, struct weir_event **ev, struct weir_slice rest)
{
	const struct rewrite *w = weir_state(st);
	struct weir_http_request *req = weir_http_request(*ev);
	struct aimed to;
	int rc;

	if (rule->kind == LEAVE) {
		weir_emit(st, 0, ev);
		return true;
	}
	rc = aim_at(&rule->aim, req, rest, &to);
	if (rc == 0 && rule->kind == REDIRECT) {
		if (aim_is_same(&to, req, w->scheme))
			return false;
		answer(st, ev, rule->status, to.url);
		return true;
	}
	rc = rc == 0 ? set_target(req, &to) : rc;
	if (rc != 0) {
		answer(st, ev, rc == WEIR_ENOMEM ? 500 : rc == WEIR_ENOENT ? 414 : 400, NULL);
		return true;
	}
	weir_count(st, REWRITES, 1);
	weir_emit(st, 0, ev);
	return true;
}

static void handle_one(struct weir_stage *st, struct weir_event **ev)
{
	const struct rewrite *w = weir_state(st);
	const struct weir_http_request *req = weir_http_request(*ev);
	struct weir_slice rest;

	for (int i = 0; i < w->n; i++)
		if (req->path.p[0] == '/' && http_match(&w->rules[i].match, req, &rest) &&
		    apply(st, &w->rules[i], ev, rest))
			return;
	weir_emit(st, 0, ev);
}

static void rewrite_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++)
		handle_one(st, &ev[i]);
}

/* ---- startup ---- */

static const int statuses[] = {301, 302, 303, 307, 308};

/* Name the rule in the message, and the place of its member `key`. */
static int bad_rule(
    struct weir_stage *st, struct weir_err *err, int i, const char *key, const char *what)
{
	char at[40], text[sizeof(err->text)];

	snprintf(text, sizeof(text), "rule %d: %.200s", i + 1, what);
	memcpy(err->text, text, sizeof(text));
	snprintf(at, sizeof(at), key ? "rules.%d.%s" : "rules.%d", i + 1, key);
	weir_blame(st, at);
	return WEIR_EINVAL;
}

static int make_rule(
    struct weir_stage *st, struct rule *r, const struct rule_conf *c, int i, struct weir_err *err)
{
	const struct http_match_conf match = {.path = c->path,
	    .method = c->method,
	    .host = c->host,
	    .scheme = c->scheme,
	    .amid = true};
	const char *key = c->redirect[0] ? "redirect" : "rewrite";
	const char *why = http_match_init(&r->match, &match, err->hint, sizeof(err->hint));

	if (why)
		return bad_rule(st, err, i, NULL, why);
	if (c->redirect[0] && c->rewrite[0]) {
		snprintf(err->hint, sizeof(err->hint), "split it in two rules, or two stages");
		return bad_rule(
		    st, err, i, "rewrite", "'redirect' and 'rewrite' exclude each other");
	}
	if (!c->redirect[0] && !c->rewrite[0])
		return 0;
	r->kind = c->redirect[0] ? REDIRECT : REWRITE;
	r->status = statuses[c->status];
	int rc = aim_init(&r->aim, c->redirect[0] ? c->redirect : c->rewrite,
	    c->query == QUERY_KEEP, r->kind == REDIRECT, err);
	if (rc != WEIR_EINVAL)
		return rc;
	char text[sizeof(err->text)];
	memcpy(text, err->text, sizeof(text));
	return bad_rule(st, err, i, key, text);
}

static void rewrite_fini(struct weir_stage *st)
{
	struct rewrite *w = weir_state(st);

	for (int i = 0; i < w->n; i++) {
		http_match_fini(&w->rules[i].match);
		aim_fini(&w->rules[i].aim);
	}
	free(w->rules);
}

static int rewrite_init(struct weir_stage *st, struct weir_err *err)
{
	const struct rewrite_conf *conf = weir_conf(st);
	const struct rule_conf *records = (const void *)conf->rules.items;
	struct rewrite *w = weir_state(st);
	int rc = 0;

	w->scheme = http_field("scheme");
	w->rules = calloc((size_t)conf->rules.n + 1, sizeof(*w->rules));
	if (!w->rules)
		return WEIR_ENOMEM;
	for (w->n = 0; rc == 0 && w->n < conf->rules.n; w->n++)
		rc = make_rule(st, &w->rules[w->n], &records[w->n], w->n, err);
	if (rc != 0)
		rewrite_fini(st);
	return rc;
}

#define TEXT_ROW(member, text)                                                                     \
	{                                                                                          \
		.name = #member, .type = WEIR_KNOB_STRING,                                         \
		.offset = offsetof(struct rule_conf, member), .def = "", .help = text              \
	}

static const struct weir_knob rule_knobs[] = {
    TEXT_ROW(path, "path in its normal form; one '*' stands for any bytes, {rest}"),
    TEXT_ROW(method, "method, or several: GET|HEAD"),
    TEXT_ROW(host, "host without port, or *.example.com"),
    TEXT_ROW(
	scheme, "http or https; the one that a proxy in 'trust' of http.server names, if it does"),
    TEXT_ROW(redirect,
	"URL or path of the Location, with {path}, {rest}, {query}, {host}, {authority}, {scheme}"),
    TEXT_ROW(rewrite, "new path for the next stages, with the same placeholders"),
    {.name = "status",
	.type = WEIR_KNOB_ENUM,
	.offset = offsetof(struct rule_conf, status),
	.def = "302",
	.choices = "301|302|303|307|308",
	.help = "status of the redirect; clients repeat the method and body only with 307 and 308"},
    {.name = "query",
	.type = WEIR_KNOB_ENUM,
	.offset = offsetof(struct rule_conf, query),
	.def = "keep",
	.choices = "keep|drop",
	.help = "the query of the request, if the new URL has none of its own"},
    {.name = NULL},
};

static const struct weir_knob knobs[] = {
    {.name = "rules",
	.type = WEIR_KNOB_RECORDS,
	.offset = offsetof(struct rewrite_conf, rules),
	.flags = WEIR_KNOB_REQUIRED,
	.fields = rule_knobs,
	.record_size = sizeof(struct rule_conf),
	.help = "rules, first match wins; one with neither 'redirect' nor 'rewrite' leaves the "
		"request as it is"},
    {.name = NULL},
};

static const struct weir_metric metrics[] = {
    [REDIRECTS] = {"http_redirects_total", WEIR_METRIC_COUNTER, "requests",
	"requests answered with a redirect"},
    [REWRITES] = {"http_rewrites_total", WEIR_METRIC_COUNTER, "requests",
	"requests that got another path"},
    [BAD] = {"http_rewrites_bad_total", WEIR_METRIC_COUNTER, "requests",
	"requests refused because the new URL would be invalid or too long"},
    {NULL, WEIR_METRIC_COUNTER, NULL, NULL},
};

static const struct weir_outlet outlets[] = {
    {"out", WEIR_ANY_EVENT, false, "every request that is not redirected"},
    {NULL, NULL, false, NULL},
};

extern const struct weir_stage_ops weir_stage_http_rewrite;
const struct weir_stage_ops weir_stage_http_rewrite = {
    .abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_IN_PARTS,
    .name = "http.rewrite",
    .summary = "Redirects clients, or gives requests another path",
    .accepts = &weir_http_request_type,
    .outlets = outlets,
    .knobs = knobs,
    .conf_size = sizeof(struct rewrite_conf),
    .metrics = metrics,
    .state_size = sizeof(struct rewrite),
    .init = rewrite_init,
    .handle = rewrite_handle,
    .fini = rewrite_fini,
};
