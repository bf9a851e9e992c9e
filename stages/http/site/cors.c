/* SPDX-License-Identifier: MIT */
/*
 * Answers cross-origin requests; see cors.h.
 *
 * An origin is compared as browsers write it: scheme, host and port, in lower case. With a list of origins
 * the answer depends on the Origin field, and says so in Vary even if a request has none, since a cache may
 * give the answer to another request.
 */
#include "http/site/cors.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "http/message/guard.h"
#include "http/request/request.h"
#include "http/site/list.h"

/* ---- configuration ---- */

static int refuse(struct weir_stage *st, struct weir_err *err, const char *key, const char *text,
    const char *hint)
{
	char at[40];

	snprintf(at, sizeof(at), "cors.%s", key);
	weir_blame(st, at);
	snprintf(err->text, sizeof(err->text), "%s", text);
	snprintf(err->hint, sizeof(err->hint), "%s", hint);
	return WEIR_EINVAL;
}

static bool has_star(const struct weir_strings *list)
{
	for (int i = 0; i < list->n; i++)
		if (strcmp(list->items[i], "*") == 0)
			return true;
	return false;
}

/* Whether `text` is an origin as browsers send it, or has "*." in front of its host. */
static bool origin_good(const char *text)
{
	size_t skip = strncmp(text, "https://", 8) == 0  ? 8
		      : strncmp(text, "http://", 7) == 0 ? 7
							 : 0;
	const char *host = text + skip;

	host += strncmp(host, "*.", 2) == 0 ? 2 : 0;
	for (const char *p = text; *p; p++)
		if (*p >= 'A' && *p <= 'Z')
			return false;
	return skip > 0 && guard_authority((struct weir_slice){host, strlen(host)}) &&
	       host[strlen(host) - 1] != '.';
}

static bool tokens_good(const struct weir_strings *list)
{
	for (int i = 0; i < list->n; i++) {
		const char *s = list->items[i];
		if (!s[0] || guard_span(s, strlen(s), GUARD_TOKEN) != strlen(s))
			return false;
	}
	return true;
}

/* "a, b" of the list; NULL if out of memory. */
static char *join(const struct weir_strings *list)
{
	size_t n = 1;

	for (int i = 0; i < list->n; i++)
		n += strlen(list->items[i]) + 2;
	char *text = malloc(n), *at = text;
	if (!text)
		return NULL;
	*at = '\0';
	for (int i = 0; i < list->n; i++)
		at += sprintf(at, "%s%s", i > 0 ? ", " : "", list->items[i]);
	return text;
}

static int check(struct weir_stage *st, const struct cors_conf *conf, struct weir_err *err)
{
	bool star = has_star(&conf->origins);

	if (star && conf->origins.n > 1)
		return refuse(
		    st, err, "origins", "'*' is all origins; it cannot be one of several", "");
	if (star && conf->credentials)
		return refuse(st, err, "credentials",
		    "with 'credentials', the origins must be listed: any site could read what is a "
		    "user's",
		    "name the origins instead of '*', as in https://app.example.org");
	for (int i = 0; !star && i < conf->origins.n; i++)
		if (!origin_good(conf->origins.items[i])) {
			char text[160];
			snprintf(
			    text, sizeof(text), "'%.100s' is no origin", conf->origins.items[i]);
			return refuse(st, err, "origins", text,
			    "write scheme and host in lower case, without a path: "
			    "https://app.example.org "
			    "or https://*.example.org");
		}
	if (!tokens_good(&conf->methods))
		return refuse(st, err, "methods", "'methods' has a text that is no method", "");
	if (!tokens_good(&conf->headers) || !tokens_good(&conf->expose))
		return refuse(st, err, tokens_good(&conf->headers) ? "expose" : "headers",
		    "there is a text that is no name of a field", "");
	if (conf->credentials &&
	    (has_star(&conf->methods) || has_star(&conf->headers) || has_star(&conf->expose)))
		return refuse(st, err, "credentials",
		    "with 'credentials', browsers take '*' as a name, not as all",
		    "list the names");
	return 0;
}

int cors_init(
    struct cors *c, struct weir_stage *st, const struct cors_conf *conf, struct weir_err *err)
{
	int rc = check(st, conf, err);

	if (rc != 0 || conf->origins.n == 0)
		return rc;
	c->on = true;
	c->any = has_star(&conf->origins);
	c->methods = conf->methods.n > 0 ? join(&conf->methods) : strdup("GET, HEAD, POST");
	c->headers = join(&conf->headers);
	c->expose = join(&conf->expose);
	snprintf(
	    c->max_age, sizeof(c->max_age), "%lld", (long long)(conf->max_age_ns / 1000000000));
	return c->methods && c->headers && c->expose ? 0 : WEIR_ENOMEM;
}

void cors_fini(struct cors *c)
{
	free(c->methods);
	free(c->headers);
	free(c->expose);
}

/* ---- requests ---- */

/* Whether `origin` is `allowed`, in which "*." stands for one or more labels. */
static bool same_origin(struct weir_slice origin, const char *allowed)
{
	const char *star = strchr(allowed, '*');
	size_t head = star ? (size_t)(star - allowed) : strlen(allowed);

	if (origin.n < head || memcmp(origin.p, allowed, head) != 0)
		return false;
	if (!star)
		return origin.n == head;
	size_t tail = strlen(star + 1); /* with its dot */
	struct weir_slice labels = {origin.p + head, origin.n - head};
	if (labels.n <= tail || memcmp(labels.p + labels.n - tail, star + 1, tail) != 0)
		return false;
	labels.n -= tail;
	return labels.p[0] != '.' && guard_span(labels.p, labels.n, GUARD_HOST) == labels.n;
}

static bool is_listed(const struct cors_conf *conf, struct weir_slice origin)
{
	for (int i = 0; i < conf->origins.n; i++)
		if (same_origin(origin, conf->origins.items[i]))
			return true;
	return false;
}

enum cors_kind cors_kind(
    const struct cors *c, const struct cors_conf *conf, const struct weir_http_request *req)
{
	if (!c->on)
		return CORS_NONE;
	struct weir_slice origin = weir_http_header(req, "origin");
	if (!origin.p)
		return CORS_NONE;
	bool asks = req->method == WEIR_HTTP_OPTIONS &&
		    weir_http_header(req, "access-control-request-method").n > 0;
	if (c->any || is_listed(conf, origin))
		return asks ? CORS_PREFLIGHT : CORS_ALLOWED;
	return asks ? CORS_DENIED : CORS_REFUSED;
}

int vary_on(struct weir_http_request *req, const char *name)
{
	struct weir_slice vary = response_field(req, "vary");

	if (vary.p && (list_has(vary, name) || list_has(vary, "*")))
		return 0;
	return weir_http_add_field(req, "Vary", name);
}

static int add_preflight(const struct cors *c, struct weir_http_request *req)
{
	int rc = weir_http_add_field(req, "Access-Control-Allow-Methods", c->methods);

	if (rc == 0 && c->headers[0])
		rc = weir_http_add_field(req, "Access-Control-Allow-Headers", c->headers);
	return rc == 0 ? weir_http_add_field(req, "Access-Control-Max-Age", c->max_age) : rc;
}

/* Remove what the stage behind says of CORS: two values would be none. */
static void drop(struct weir_http_request *req)
{
	static const char *const names[] = {"Access-Control-Allow-Origin",
	    "Access-Control-Allow-Credentials", "Access-Control-Expose-Headers",
	    "Access-Control-Allow-Methods", "Access-Control-Allow-Headers",
	    "Access-Control-Max-Age"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		request_field_drop(req, names[i]);
}

int cors_answer(const struct cors *c, const struct cors_conf *conf, enum cors_kind kind,
    struct weir_http_request *req)
{
	char origin[GUARD_NAME_MAX + 32] = "*";
	struct weir_slice from = weir_http_header(req, "origin");
	int rc = 0;

	if (!c->on)
		return 0;
	drop(req);
	if (!c->any)
		rc = vary_on(req, "Origin");
	if (rc != 0 || (kind != CORS_ALLOWED && kind != CORS_PREFLIGHT))
		return rc;
	if (!c->any)
		snprintf(origin, sizeof(origin), "%.*s", (int)from.n, from.p);
	rc = weir_http_add_field(req, "Access-Control-Allow-Origin", origin);
	if (rc == 0 && conf->credentials)
		rc = weir_http_add_field(req, "Access-Control-Allow-Credentials", "true");
	if (rc == 0 && kind == CORS_PREFLIGHT)
		return add_preflight(c, req);
	if (rc == 0 && c->expose[0])
		rc = weir_http_add_field(req, "Access-Control-Expose-Headers", c->expose);
	return rc;
}

/* ---- knobs ---- */

#define LIST_ROW(member, text)                                                                     \
	{                                                                                          \
		.name = #member, .type = WEIR_KNOB_STRINGS,                                        \
		.offset = offsetof(struct cors_conf, member), .help = text                         \
	}

const struct weir_knob cors_knobs[] = {
    LIST_ROW(origins, "origins whose scripts may read answers, such as https://app.example.org or "
		      "https://*.example.org; '*' is all; none: no CORS"),
    LIST_ROW(methods, "methods that scripts of these origins may use; none: GET, HEAD, POST"),
    LIST_ROW(headers, "request fields that scripts may set, besides the simple ones"),
    LIST_ROW(expose, "fields of answers that scripts may read, besides the simple ones"),
    {.name = "credentials",
	.type = WEIR_KNOB_BOOL,
	.offset = offsetof(struct cors_conf, credentials),
	.def = "false",
	.help = "requests may have cookies and Authorization; not with '*'"},
    {.name = "max_age",
	.type = WEIR_KNOB_DURATION,
	.offset = offsetof(struct cors_conf, max_age_ns),
	.def = "10m",
	.min = 0,
	.max = 8.64e13,
	.help = "how long browsers may remember a permission"},
    {.name = NULL},
};
