/* SPDX-License-Identifier: MIT */
/*
 * Routes requests; see routes.h. routes_answer splits the target, finds the rows whose pattern
 * matches the path, selects the one with the requested method, and calls its handler. For methods
 * that change something, it first checks the origin and the role. Each handler takes one snapshot
 * of the graph, so the numbers in a response are consistent. There is no state between requests; a
 * struct call exists for one request.
 */
#include "routes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <weir/clock.h>
#include <weir/knob.h>

#include "changes.h"
#include "admin/metrics/alerts.h"
#include "admin/request/authority.h"
#include "admin/request/assets.h"
#include "admin/metrics/bottleneck.h"
#include "admin/request/etag.h"
#include "admin/history/history_json.h"
#include "admin/auth/auth.h"
#include "framework/base/json.h"
#include "files.h"
#include "health.h"
#include "knobs.h"
#include "login.h"
#include "overload.h"
#include "paging.h"
#include "profile.h"
#include "reloading.h"
#include "requests.h"
#include "saving.h"
#include "rows.h"
#include "view_json.h"
#include "view_prom.h"

static const char name_bytes[] =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";

static void no_memory(struct reply *r)
{
	reply_problem(r, 503, "out of memory");
}

struct weir_graph_view *take_view(const struct call *c, struct reply *r)
{
	struct weir_graph_view *v = NULL;

	if (c->source->view(c->source->arg, &v) != 0) {
		no_memory(r);
		return NULL;
	}
	return v;
}

/* ---- reading ---- */

static void answer_index(const struct call *c, struct reply *r)
{
	json_t *list = json_array();

	(void)c;
	for (const struct route *route = routes_table; route->pattern; route++) {
		json_push(&list, json_pack("{s:s, s:s, s:s}", "method", route->method, "path",
				     route->pattern, "doc", route->doc));
	}
	reply_json(r, 200, json_pack("{s:s, s:o}", "version", WEIR_VERSION, "routes", list));
}

/* Add the bottleneck, which the endpoint evaluates once a second, and the role of the request. Which
 * core is blocked is as of now, as in the rest of the response. */
static json_t *with_bottleneck(const struct call *c, const struct weir_graph_view *v, json_t *json)
{
	if (json)
		json_put(&json, "bottleneck", bottleneck_json_now(c->source->bottleneck, v));
	if (json)
		json_put(&json, "role", json_string(auth_role_word(c->request->pass)));
	return json;
}

/* Remove the members that change with every request: times and counts. Returns NULL if `graph` is
 * NULL. */
static json_t *keep_still(json_t *graph)
{
	static const char *const moves[] = {
	    "since", "used", "threads", "max", "served", "ceiling", "service", "formula", "text"};
	json_t *bottleneck = json_object_get(graph, "bottleneck");
	const json_t *links = json_object_get(graph, "links");

	json_object_del(graph, "time");
	json_object_del(graph, "uptime_seconds");
	json_object_del(graph, "decisions_total");
	for (size_t i = 0; i < sizeof(moves) / sizeof(moves[0]); i++)
		json_object_del(bottleneck, moves[i]);
	for (size_t i = 0; i < json_array_size(links); i++)
		json_object_del(json_array_get(links, i), "events_total");
	return graph;
}

static void answer_graph(const struct call *c, struct reply *r)
{
	struct weir_graph_view *v = take_view(c, r);

	if (!v)
		return;
	json_t *json = with_bottleneck(c, v, view_json_graph(v));
	json_t *still = json ? json_deep_copy(json) : NULL;
	c->source->view_free(v);
	reply_json(r, 200, json);
	etag_apply_weak(keep_still(still), c->request->if_none_match, r);
}

static void answer_stages(const struct call *c, struct reply *r)
{
	struct weir_graph_view *v = take_view(c, r);

	if (!v)
		return;
	json_t *json = with_bottleneck(c, v, view_json_stages(v));
	if (json)
		json_put(&json, "process", process_json(c->process));
	reply_json(r, 200, json);
	c->source->view_free(v);
}

static void answer_stage(const struct call *c, struct reply *r)
{
	struct weir_graph_view *v = take_view(c, r);

	if (!v)
		return;
	const struct weir_stage_view *s = find_stage(v, c->name[0], r);
	if (s)
		reply_json(r, 200, view_json_stage(v, s));
	c->source->view_free(v);
}

static void answer_alerts(const struct call *c, struct reply *r)
{
	reply_json(r, 200, alerts_json(c->source->alerts));
}

static void answer_history(const struct call *c, struct reply *r)
{
	if (c->source->history)
		history_json(
		    c->source->history, c->query, (double)weir_clock_ns(CLOCK_REALTIME) / 1e9, r);
	else
		reply_problem(r, 503, "this server keeps no history");
}

/* Called only for HEAD, since sse.h has already taken over every GET. Without this row, the index
 * would not list the path. */
static void answer_events(const struct call *c, struct reply *r)
{
	(void)c;
	reply_static(r, 200, "text/event-stream", "retry: 1000\n\n", 13);
}

static void answer_metrics(const struct call *c, struct reply *r)
{
	struct weir_graph_view *v = take_view(c, r);
	struct textbuf out = {0};
	size_t n;

	if (!v)
		return;
	v->ready = !health_of(c->source, v).reason;
	view_prom(v, &out);
	rows_prom(c->source, v, &out);
	c->source->view_free(v);
	process_prom(c->process, &out);
	reloading_prom(c->source->reloading, &out);
	char *body = textbuf_take(&out, &n);
	reply_text(r, 200, "text/plain; version=0.0.4; charset=utf-8", body, n);
}

static void answer_config(const struct call *c, struct reply *r)
{
	static const char none[] = "{\"files\":[],\"lines\":[],\"values\":{},\"sets\":[]}";
	const char *text = c->source->config ? c->source->config : none;

	/* Send a copy, since a reload may free the original before all of it is sent. */
	reply_text(r, 200, "application/json", strdup(text), strlen(text));
}

int status_of(int code)
{
	switch (code) {
	case WEIR_ENOENT:
		return 404;
	case WEIR_EBUSY:
		return 409;
	case WEIR_ENOMEM:
		return 503;
	default:
		return 422;
	}
}

/* ---- the table ---- */

const struct route routes_table[] = {
    {"GET", "/", "The dashboard", answer_asset},
    {"GET", "/api/v1", "This list", answer_index},
    {"GET", "/api/v1/openapi.json", "The list of routes as an OpenAPI 3.1 document", answer_asset},
    {"GET", "/api/v1/graph", "Stages, links and whether the server is ready", answer_graph},
    {"GET", "/api/v1/stages", "All stages with all their numbers", answer_stages},
    {"GET", "/api/v1/stages/{stage}", "One stage with all its numbers", answer_stage},
    {"GET", "/api/v1/stages/{stage}/rows",
	"What the stage counts one by one: each origin of http.client", answer_rows},
    {"GET", "/api/v1/stages/{stage}/knobs", "The knobs of a stage and their values", answer_knobs},
    {"GET", "/api/v1/stages/{stage}/knobs/{knob}", "One knob and its value", answer_knob},
    {"PUT", "/api/v1/stages/{stage}/knobs/{knob}",
	"Set a live knob: {\"value\": \"8\"}, for a time with \"for\": \"10m\"", change_set},
    {"DELETE", "/api/v1/stages/{stage}/knobs/{knob}", "Reset a knob to its configured value",
	change_unset},
    {"GET", "/api/v1/groups/{group}/knobs", "The knobs of a group and their values", answer_knobs},
    {"GET", "/api/v1/groups/{group}/knobs/{knob}", "One knob of a group and its value",
	answer_knob},
    {"PUT", "/api/v1/groups/{group}/knobs/{knob}",
	"Set a live knob of a group: {\"value\": \"5ms\"}, for a time with \"for\": \"10m\"",
	change_set},
    {"DELETE", "/api/v1/groups/{group}/knobs/{knob}",
	"Reset a knob of a group to its configured value", change_unset},
    {"GET", "/api/v1/classes/{class}/knobs", "The knobs of a class and their values", answer_knobs},
    {"GET", "/api/v1/classes/{class}/knobs/{knob}", "One knob of a class and its value",
	answer_knob},
    {"PUT", "/api/v1/classes/{class}/knobs/{knob}",
	"Set the objective of a class: {\"value\": \"80ms\"}, for a time with \"for\": \"10m\"",
	change_set},
    {"DELETE", "/api/v1/classes/{class}/knobs/{knob}",
	"Reset the objective of a class to its configured value", change_unset},
    {"GET", "/api/v1/config",
	"The configuration's files as they were read, and the value of each line", answer_config},
    {"GET", "/api/v1/reload", "What the newest reload changed, or why it failed",
	answer_reload_status},
    {"POST", "/api/v1/reload",
	"Read the configuration again; {\"preview\": true} only shows what would change",
	answer_reload},
    {"GET", "/api/v1/stop", "Whether the server stops, and how that went", answer_stop_status},
    {"POST", "/api/v1/stop", "Stop the server; {\"now\": true}: unfinished", answer_stop},
    {"POST", "/api/v1/save", "Write the overridden knobs into the file; with preview, show it",
	answer_save},
    {"GET", "/api/v1/requests/slowest",
	"Where the slowest requests of the last two minutes spent their time: "
	"?class=&limit=32&before=ID",
	answer_slowest},
    {"GET", "/api/v1/profile", "What each thread has done at each stage, and sent where",
	answer_profile},
    {"GET", "/api/v1/stages/{stage}/queue", "The oldest waiting events, without content: ?n=20",
	answer_queue},
    {"GET", "/api/v1/stages/{stage}/tap",
	"Requests that passed through the stage, as they end: "
	"?slow=100ms&class=&outcome=&after=&n=",
	answer_tap},
    {"POST", "/api/v1/stages/{stage}/pause", "Handlers take no more batches; new events wait",
	change_pause},
    {"POST", "/api/v1/stages/{stage}/drain", "The stage refuses new events while its queue empties",
	change_drain},
    {"POST", "/api/v1/stages/{stage}/resume", "End a pause or a drain", change_resume},
    {"POST", "/api/v1/purge",
	"Remove stored answers: {\"what\": \"URL\"}, \"URL*\", \"tag:NAME\" or \"*\"",
	change_purge},
    {"POST", "/api/v1/undo", "Undo the newest change that is not undone yet", change_undo},
    {"GET", "/api/v1/changes", "Changes by operators, newest first: ?limit=50&before=ID",
	answer_changes},
    {"GET", "/api/v1/acts", "The former name of /api/v1/changes", answer_acts},
    {"GET", "/api/v1/overload", "The strongest admission mode that stages may use",
	answer_overload},
    {"PUT", "/api/v1/overload",
	"Set the strongest admission mode immediately: {\"mode\": \"off\"}, shadow or enforce",
	answer_set_overload},
    {"GET", LOGIN_PATH, "The name and the role of the client", answer_session},
    {"POST", LOGIN_PATH, "Begin a session: a cookie for the token sent with the request",
	answer_login},
    {"DELETE", LOGIN_PATH, "End the session of the request", answer_logout},
    {"GET", "/api/v1/alerts", "Active and recent alerts", answer_alerts},
    {"GET", "/api/v1/decisions",
	"Decisions of controllers and operators, newest first: ?limit=50&before=ID",
	answer_decisions},
    {"GET", "/api/v1/history",
	"Samples of the last hours: ?from=-900&to=-1&step=1s or 10s&stage=NAME", answer_history},
    {"GET", "/events", "Live events, as they happen: ?hz=0, 1 or 4", answer_events},
    {"GET", "/metrics", "Prometheus text", answer_metrics},
    {"GET", "/healthz", "200 while the endpoint answers", answer_healthz},
    {"GET", "/readyz",
	"200 while the server accepts work; 503 and the reason while it starts or drains, or while "
	"a stage is in trouble",
	answer_readyz},
    {"GET", "/{file}", "The dashboard's style, scripts and icon", answer_asset},
    {0},
};

/* ---- finding the row ---- */

/* Copy a stage or knob name from `path` to `name`. Returns the rest of the path, or NULL if there
 * is no valid name. */
static const char *take_name(const char *path, char name[ROUTE_NAME_MAX])
{
	size_t n = strspn(path, name_bytes);

	if (n == 0 || n >= ROUTE_NAME_MAX || (path[n] != '/' && path[n] != '\0'))
		return NULL;
	memcpy(name, path, n);
	name[n] = '\0';
	return path + n;
}

static bool fits(const char *pattern, const char *path, char name[2][ROUTE_NAME_MAX])
{
	int names = 0;

	while (*pattern) {
		if (*pattern != '{') {
			if (*pattern++ != *path++)
				return false;
			continue;
		}
		path = take_name(path, name[names++]);
		if (!path)
			return false;
		pattern = strchr(pattern, '}') + 1;
	}
	return *path == '\0';
}

static bool same_method(const struct route *route, const char *method)
{
	return strcmp(route->method, method) == 0 ||
	       (strcmp(method, "HEAD") == 0 && strcmp(route->method, "GET") == 0);
}

static void allow(struct reply *r, const char *method)
{
	size_t n = strlen(r->allow);

	if (strstr(r->allow, method))
		return;
	snprintf(r->allow + n, sizeof(r->allow) - n, "%s%s%s", n ? ", " : "", method,
	    strcmp(method, "GET") == 0 ? ", HEAD" : "");
}

static void answer_405(struct call *c, struct reply *r)
{
	char allowed[sizeof(r->allow)];

	memcpy(allowed, r->allow, sizeof(allowed));
	reply_problem(
	    r, 405, "%s is not allowed at %s, only %s", c->request->method, c->path, allowed);
	memcpy(r->allow, allowed, sizeof(allowed));
}

/* Turn the name of a class into that of an owner of knobs. A name that is too long is cut, and then
 * belongs to no class. */
static void name_class(char name[ROUTE_NAME_MAX])
{
	const size_t skip = sizeof(CLASSES_OWNER) - 1;

	memmove(name + skip, name, ROUTE_NAME_MAX - skip - 1);
	memcpy(name, CLASSES_OWNER, skip);
	name[ROUTE_NAME_MAX - 1] = '\0';
}

/* Return the row for the call, or NULL with a 404 or 405 in the reply. */
static const struct route *find_route(struct call *c, struct reply *r)
{
	for (const struct route *route = routes_table; route->pattern; route++) {
		if (!fits(route->pattern, c->path, c->name) ||
		    (route->answer == answer_asset && !asset_find(c->path)))
			continue;
		if (same_method(route, c->request->method)) {
			if (knobs_of_class(c))
				name_class(c->name[0]);
			return route;
		}
		allow(r, route->method);
	}
	if (r->allow[0])
		answer_405(c, r);
	else
		reply_problem(r, 404, "there is nothing at %s; /api/v1 lists the routes%s", c->path,
		    strncmp(c->path, GROUPS_PATH, sizeof(GROUPS_PATH) - 1) == 0
			? ", of groups there is " GROUPS_PATH "/{group}/knobs"
			: "");
	return NULL;
}

static bool is_json(const char *content_type)
{
	size_t n = strlen("application/json");

	return content_type && strncasecmp(content_type, "application/json", n) == 0 &&
	       strchr(" ;\t", content_type[n]); /* strchr also matches the NUL at the end */
}

/* Return whether the request may read. A page of another site cannot see our responses, but by
 * requesting large ones it could keep this thread busy. Links from other sites to our pages are
 * allowed. */
static bool may_read(const struct call *c, struct reply *r)
{
	const char *site = c->request->fetch_site;

	if (strncmp(c->path, "/api/", 5) != 0 || !site || strcmp(site, "cross-site") != 0)
		return true;
	reply_problem(r, 403, "a page of another origin may not read this");
	return false;
}

/* Return whether the request may change something. A page of another site can make a browser send a
 * request. Such a request cannot have a JSON content type, and it always carries the origin of that
 * page. */
static bool may_act(const struct request *q, struct reply *r)
{
	if (!authority_allows_act(q->host, q->origin, q->fetch_site)) {
		reply_problem(r, 403, "a page of another origin may not change anything here");
		return false;
	}
	if (!is_json(q->content_type)) {
		reply_problem(r, 415, "send the value as Content-Type: application/json");
		return false;
	}
	return true;
}

/* Return whether the role of the client allows the route. Viewers may also start and end sessions,
 * which does not change the server. */
static bool has_role(const struct call *c, const struct route *route, struct reply *r)
{
	const struct auth_pass *pass = c->request->pass;

	if (!pass || pass->role == WEIR_ADMIN_OPERATOR || strcmp(route->pattern, LOGIN_PATH) == 0)
		return true;
	reply_problem(
	    r, 403, "this request needs the role operator, and '%s' is a viewer", pass->name);
	return false;
}

/* Handle a request that changes something. The change is recorded under the name of the user, which
 * the list of changes shows. */
static void act_as(const struct call *c, const struct route *route, struct reply *r)
{
	if (!may_act(c->request, r) || !has_role(c, route, r))
		return;
	weir_graph_change_as(c->request->pass ? c->request->pass->name : NULL);
	route->answer(c, r);
	weir_graph_change_as(NULL);
}

/* Return whether the response changes rarely, so that an entity tag is useful. */
static bool is_tagged(const struct route *route)
{
	return route->answer == answer_asset || route->answer == answer_index ||
	       route->answer == answer_config || route->answer == answer_knobs ||
	       route->answer == answer_knob;
}

void routes_answer(const struct admin_source *source, struct process *process,
    const struct request *request, struct reply *r)
{
	struct call c = {.source = source, .process = process, .request = request};
	size_t n = strcspn(request->target, "?");

	*r = (struct reply){0};
	if (n >= sizeof(c.path)) {
		reply_problem(r, 404, "no route has a path this long");
		return;
	}
	memcpy(c.path, request->target, n);
	c.query = request->target[n] ? request->target + n + 1 : "";
	const struct route *route = find_route(&c, r);
	bool reads = route && strcmp(route->method, "GET") == 0;
	if (route && !reads)
		act_as(&c, route, r);
	else if (route && may_read(&c, r))
		route->answer(&c, r);
	if (reads && is_tagged(route))
		etag_apply(request->if_none_match, r);
}
