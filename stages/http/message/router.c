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
 * without case and without the port, as a suffix if it begins with "*.". `scheme` is http or https. A request that matches no
 * route is sent to the outlet `else`, or gets 404 if that outlet is not linked. The names of
 * outlets are those under `to:`.
 */
#include <weir/http.h>
#include <weir/weir.h>

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/message/match.h"

/* A record of `routes:`, as filled by the loader. */
struct route_conf {
	char *path, *method, *host, *scheme, *to;
};

struct router_conf {
	struct weir_records routes;
};

struct route {
	struct http_match match;
	int outlet;
};

struct router {
	int n, otherwise; /* outlet of `else`; -1 if there is none */
	struct route *routes;
};

/* Return the outlet for `req`, or -1 if no route matches and `else` is not linked. */
static int find_outlet(const struct router *router, const struct weir_http_request *req)
{
	for (int i = 0; i < router->n; i++) {
		if (http_match(&router->routes[i].match, req, NULL))
			return router->routes[i].outlet;
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

static int bad_route(struct weir_err *err, int i, const char *what)
{
	snprintf(err->text, sizeof(err->text), "route %d: %s", i + 1, what);
	return WEIR_EINVAL;
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
	const struct http_match_conf match = {
	    .path = c->path, .method = c->method, .host = c->host, .scheme = c->scheme};
	const char *why = http_match_init(&r->match, &match, err->hint, sizeof(err->hint));
	if (why)
		return bad_route(err, i, why);
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

	for (int i = 0; i < router->n; i++)
		http_match_fini(&router->routes[i].match);
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
    {.name = "scheme",
	.type = WEIR_KNOB_STRING,
	.offset = offsetof(struct route_conf, scheme),
	.def = "",
	.help = "http or https; the one that a proxy in 'trust' of http.server names, if it does"},
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
