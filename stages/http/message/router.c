/* SPDX-License-Identifier: MIT */
/*
 * router: sends each request to the first route that matches.
 *
 *   route: { use: router, with: { routes: [ { path: /api*, method: POST, to: api } ] },
 *            to: { api: ingest, else: site } }
 *
 * A route matches if all of its members match. `path` matches exactly, or as a prefix if it ends in
 * '*'. It is compared with the path in its normal spelling (normal_path.h), so no other spelling
 * evades a route. `method` matches exactly; several are written "GET|HEAD". `host` is compared
 * without case and without the port, as a suffix if it begins with "*.". A request that matches no
 * route is sent to the outlet `else`, or gets 404 if that outlet is not linked. The names of
 * outlets are those under `to:`.
 */
#include <weir/http.h>
#include <weir/weir.h>

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "http/message/guard.h"
#include "http/message/normal_path.h"
#include "http/message/parse.h"

/* A record of `routes:`, as filled by the loader. */
struct route_conf {
	char *path, *method, *host, *to;
};

struct router_conf {
	struct weir_records routes;
};

struct route {
	char *path, *method, *host; /* owned; NULL matches any */
	size_t path_n, host_n;
	bool path_prefix, host_suffix;
	int outlet;
};

struct router {
	int n, otherwise; /* outlet of `else`; -1 if there is none */
	struct route *routes;
};

static bool path_matches(const struct route *r, struct weir_slice path)
{
	if (!r->path)
		return true;
	return (r->path_prefix ? path.n >= r->path_n : path.n == r->path_n) &&
	       memcmp(path.p, r->path, r->path_n) == 0;
}

/* Whether `method` is in `list`, such as "GET|HEAD". */
static bool method_matches(const char *list, struct weir_slice method)
{
	while (list) {
		const char *bar = strchr(list, '|');
		size_t n = bar ? (size_t)(bar - list) : strlen(list);
		if (n == method.n && memcmp(list, method.p, n) == 0)
			return true;
		list = bar ? bar + 1 : NULL;
	}
	return false;
}

static bool host_matches(const struct route *r, struct weir_slice host)
{
	if (!r->host)
		return true;
	if (r->host_suffix ? host.n <= r->host_n : host.n != r->host_n)
		return false;
	return strncasecmp(host.p + host.n - r->host_n, r->host, r->host_n) == 0;
}

/* Return the outlet for `req`, or -1 if no route matches and `else` is not linked. */
static int find_outlet(const struct router *router, const struct weir_http_request *req)
{
	for (int i = 0; i < router->n; i++) {
		const struct route *r = &router->routes[i];
		if (path_matches(r, req->path) &&
		    (!r->method || method_matches(r->method, req->method_text)) &&
		    host_matches(r, weir_http_host_name(req)))
			return r->outlet;
	}
	return router->otherwise;
}

static void router_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	const struct router *router = weir_state(st);

	for (int i = 0; i < n; i++) {
		struct weir_http_request *req = weir_http_request(ev[i]);
		int outlet = find_outlet(router, req);
		if (outlet >= 0) {
			weir_emit(st, outlet, &ev[i]);
			continue;
		}
		weir_http_respond_status(req, 404);
		weir_event_finish(&ev[i], WEIR_OK);
	}
}

/* ---- startup ---- */

static int copy_text(char **to, const char *from)
{
	if (!from || !from[0])
		return 0;
	*to = strdup(from);
	return *to ? 0 : WEIR_ENOMEM;
}

static int bad_route(struct weir_err *err, int i, const char *what)
{
	snprintf(err->text, sizeof(err->text), "route %d: %s", i + 1, what);
	return WEIR_EINVAL;
}

/* Whether a request can have the host `name` or, if `name` begins with "*.", a host that ends in
 * the rest of it. Hosts are compared without a port and without a trailing dot. */
static bool host_good(const char *name)
{
	bool suffix = strncmp(name, "*.", 2) == 0;
	struct weir_slice s = {name + (suffix ? 2 : 0), strlen(name) - (suffix ? 2 : 0)};

	if (!guard_authority(s) || s.p[s.n - 1] == '.')
		return false;
	return s.p[0] == '[' ? !suffix && s.p[s.n - 1] == ']' : !memchr(s.p, ':', s.n);
}

/* Write `name` in upper case to `up`, which has space for it. */
static void upper_case(const char *name, char *up)
{
	for (; *name; name++)
		*up++ = *name >= 'a' && *name <= 'z' ? (char)(*name - 'a' + 'A') : *name;
	*up = '\0';
}

/* Whether a request can have the method `name`: one that is always served, or one that `methods` of
 * http.server may name. Fills `hint` if not. */
static bool method_good(const char *name, char *hint, size_t size)
{
	char up[GUARD_METHOD_MAX + 1];

	if (parse_method_served(name))
		return true;
	if (!parse_method_good(name)) {
		snprintf(hint, size,
		    name[0]
			? "a method is a token of at most %d characters, but not CONNECT or TRACE"
			: "put one '|' between two methods, as in GET|HEAD",
		    GUARD_METHOD_MAX);
		return false;
	}
	upper_case(name, up);
	if (!parse_method_served(up) || strcmp(up, name) == 0)
		return true;
	snprintf(hint, size, "methods are case-sensitive: write %s", up);
	return false;
}

/* Whether requests can have each method in `list`, such as "GET|HEAD". Fills `hint` if not. */
static bool methods_good(const char *list, char *hint, size_t size)
{
	while (list) {
		char name[GUARD_METHOD_MAX + 2]; /* a longer name stays too long when truncated */
		const char *bar = strchr(list, '|');
		int n = bar ? (int)(bar - list) : (int)strlen(list);
		snprintf(name, sizeof(name), "%.*s", n, list);
		if (!method_good(name, hint, size))
			return false;
		list = bar ? bar + 1 : NULL;
	}
	return true;
}

/* The outlet of `st` whose name is like `name`, or NULL. */
static const char *near_outlet(const struct weir_stage *st, const char *name)
{
	const char *names[64];
	int n = 0;

	for (; n < 64 && weir_outlet_name(st, n); n++)
		names[n] = weir_outlet_name(st, n);
	return n > 0 ? weir_nearest(name, names, n) : NULL;
}

static int make_route(
    struct weir_stage *st, struct route *r, const struct route_conf *c, int i, struct weir_err *err)
{
	if (copy_text(&r->path, c->path) != 0 || copy_text(&r->method, c->method) != 0 ||
	    copy_text(&r->host, c->host) != 0)
		return WEIR_ENOMEM;
	if (r->path) {
		if (r->path[0] != '/' && r->path[0] != '*')
			return bad_route(err, i, "'path' must begin with '/'");
		r->path_n = strlen(r->path);
		r->path_prefix = r->path[r->path_n - 1] == '*';
		r->path_n -= r->path_prefix;
		if (!normal_path_pattern(
			r->path, r->path_n, r->path_prefix, err->hint, sizeof(err->hint)))
			return bad_route(err, i, "no request can match this 'path'");
	}
	if (r->method && !methods_good(r->method, err->hint, sizeof(err->hint)))
		return bad_route(err, i, "no request has this 'method'");
	if (r->host && !host_good(r->host)) {
		snprintf(err->hint, sizeof(err->hint),
		    "write the name without a port or a trailing dot, as in www.example.org or "
		    "*.example.org");
		return bad_route(err, i, "no request can match this 'host'");
	}
	if (r->host) {
		r->host_suffix = strncmp(r->host, "*.", 2) == 0;
		if (r->host_suffix)
			memmove(r->host, r->host + 1, strlen(r->host));
		r->host_n = strlen(r->host);
	}
	r->outlet = weir_outlet_find(st, c->to);
	if (r->outlet >= 0)
		return 0;
	snprintf(err->text, sizeof(err->text), "route %d goes to '%s', which is not under 'to:'",
	    i + 1, c->to);
	const char *near = near_outlet(st, c->to);
	char path[40];
	snprintf(path, sizeof(path), "routes.%d.to", i + 1);
	weir_blame(st, path);
	if (near)
		snprintf(err->hint, sizeof(err->hint), "did you mean '%s'?", near);
	else
		snprintf(
		    err->hint, sizeof(err->hint), "add '%s: STAGE' to 'to:' of this stage", c->to);
	return WEIR_ENOENT;
}

static void router_fini(struct weir_stage *st)
{
	struct router *router = weir_state(st);

	for (int i = 0; i < router->n; i++) {
		free(router->routes[i].path);
		free(router->routes[i].method);
		free(router->routes[i].host);
	}
	free(router->routes);
}

static int router_init(struct weir_stage *st, struct weir_err *err)
{
	const struct router_conf *conf = weir_conf(st);
	const struct route_conf *records = (const void *)conf->routes.items;
	struct router *router = weir_state(st);
	int rc = 0;

	router->otherwise = weir_outlet_find(st, "else");
	router->routes = calloc((size_t)conf->routes.n + 1, sizeof(*router->routes));
	if (!router->routes)
		return WEIR_ENOMEM;
	for (router->n = 0; rc == 0 && router->n < conf->routes.n; router->n++)
		rc =
		    make_route(st, &router->routes[router->n], &records[router->n], router->n, err);
	if (rc != 0)
		router_fini(st);
	return rc;
}

static const struct weir_knob route_knobs[] = {
    {.name = "path",
	.type = WEIR_KNOB_STRING,
	.offset = offsetof(struct route_conf, path),
	.def = "",
	.help = "path in its normal form, or a prefix of such a path, followed by '*'"},
    {.name = "method",
	.type = WEIR_KNOB_STRING,
	.offset = offsetof(struct route_conf, method),
	.def = "",
	.help = "method, or several: GET|HEAD"},
    {.name = "host",
	.type = WEIR_KNOB_STRING,
	.offset = offsetof(struct route_conf, host),
	.def = "",
	.help = "host without port, or *.example.com"},
    {.name = "to",
	.type = WEIR_KNOB_STRING,
	.offset = offsetof(struct route_conf, to),
	.flags = WEIR_KNOB_REQUIRED,
	.help = "outlet, a name under 'to:' of this stage"},
    {.name = NULL},
};

static const struct weir_knob knobs[] = {
    {.name = "routes",
	.type = WEIR_KNOB_RECORDS,
	.offset = offsetof(struct router_conf, routes),
	.flags = WEIR_KNOB_REQUIRED,
	.fields = route_knobs,
	.record_size = sizeof(struct route_conf),
	.help = "routes, first match wins; other requests go to 'else' or get 404"},
    {.name = NULL},
};

extern const struct weir_stage_ops weir_stage_router;
const struct weir_stage_ops weir_stage_router = {
    .abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_ANY_OUTLETS | WEIR_STAGE_IN_PARTS,
    .name = "router",
    .summary = "Sends requests to outlets by path, method and host",
    .accepts = &weir_http_request_type,
    .knobs = knobs,
    .conf_size = sizeof(struct router_conf),
    .state_size = sizeof(struct router),
    .init = router_init,
    .handle = router_handle,
    .fini = router_fini,
};
