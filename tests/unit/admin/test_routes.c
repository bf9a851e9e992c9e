/* SPDX-License-Identifier: MIT */
/* Routes, called directly: the response for each method and path, and which requests may change
 * something. */
#include "admin/api/routes.h"

#include <weir/log.h>

#include "admin/admin.h"
#include "admin/request/assets.h"
#include "cunit_main.h"
#include "admin/history/history.h"
#include "made_up.h"

static struct made_up made_up;
static struct process process;
static struct reply reply;
static struct history *history; /* an empty one */

#define ORIGIN "http://localhost:9900"

/* Reloads that requests have ordered. `stopping`: reload_ask returns 0, as in a server that
 * stops. */
static struct {
	uint64_t n, n_previews;
	bool stopping;
} reloads;

static uint64_t reload_ask(void *arg, bool preview, const char *by)
{
	CU_ASSERT_STRING_EQUAL(by, "operator");
	CU_ASSERT_PTR_EQUAL(arg, &reloads);
	reloads.n_previews += preview;
	return reloads.stopping ? 0 : ++reloads.n;
}

static char *reload_status(void *arg)
{
	CU_ASSERT_PTR_EQUAL(arg, &reloads);
	return strdup("{\"done\":0,\"last\":null}");
}

static void reload_counts(void *arg, struct admin_reload_counts *counts)
{
	CU_ASSERT_PTR_EQUAL(arg, &reloads);
	*counts = (struct admin_reload_counts){.total = 7, .failed = 2, .last_ok_at = 1764208305};
}

static const struct admin_reloading reloading = {
    &reloads, reload_ask, reload_status, reload_counts, NULL};
static bool can_reload = true;

/* The stage that was steered last, and how. */
static char steered[64];
static enum weir_steer steered_to;

static int note_steer(void *arg, const char *stage, enum weir_steer how, char *why, size_t size)
{
	(void)arg, (void)why, (void)size;
	snprintf(steered, sizeof(steered), "%s", stage);
	steered_to = how;
	return 0;
}

/* A request of a program; the response stays in `reply` until the next one. */
static int ask(const struct request *q)
{
	struct admin_source source = made_up_source(&made_up);

	source.history = history;
	source.reloading = can_reload ? &reloading : NULL;
	source.steer = note_steer;
	reply_fini(&reply);
	routes_answer(&source, &process, q, &reply);
	CU_ASSERT_EQUAL(made_up.n_views, 0);
	return reply.status;
}

static int get(const char *target)
{
	return ask(&(struct request){.method = "GET", .target = target, .host = "localhost:9900"});
}

static int put(const char *target, const char *body)
{
	return ask(&(struct request){
	    .method = "PUT",
	    .target = target,
	    .host = "localhost:9900",
	    .content_type = "application/json",
	    .body = body,
	    .n_body = strlen(body),
	});
}

static bool body_has(const char *text)
{
	return memmem(reply.body, reply.n, text, strlen(text)) != NULL;
}

static void setup(void)
{
	weir_log_set_fd(-1);
	made_up_init(&made_up);
	if (!history)
		history = history_new();
	process = (struct process){.stat_fd = -1};
}

static json_t *body_json(void)
{
	json_t *json = json_loadb(reply.body, reply.n, JSON_REJECT_DUPLICATES, NULL);

	CU_ASSERT_PTR_NOT_NULL_FATAL(json);
	return json;
}

/* The response is problem+json with this status, and has `words` in its detail. */
static void is_problem(int status, const char *words)
{
	CU_ASSERT_EQUAL(reply.status, status);
	CU_ASSERT_STRING_EQUAL(reply.type, "application/problem+json");
	json_t *p = body_json();
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(p, "status")), status);
	CU_ASSERT_STRING_EQUAL(
	    json_string_value(json_object_get(p, "title")), reply_reason(status));
	const char *detail = json_string_value(json_object_get(p, "detail"));
	CU_ASSERT_PTR_NOT_NULL_FATAL(detail);
	CU_ASSERT_PTR_NOT_NULL(strstr(detail, words));
	json_decref(p);
}

static void test_every_route(void)
{
	setup();
	for (const struct route *r = routes_table; r->pattern; r++) {
		if (strcmp(r->method, "GET") != 0 || strchr(r->pattern, '{'))
			continue;
		CU_ASSERT_EQUAL(get(r->pattern), 200);
		CU_ASSERT_TRUE(reply.n > 0 && *r->doc);
	}
	CU_ASSERT_EQUAL(get("/api/v1/stages/disk"), 200);
	CU_ASSERT_TRUE(body_has("\"queue\":{\"length\":187"));
	CU_ASSERT_EQUAL(get("/api/v1/stages/disk/knobs/threads.max"), 200);
	CU_ASSERT_TRUE(body_has("\"value\":\"32\""));
	CU_ASSERT_EQUAL(get("/api/v1/stages/disk/knobs"), 200);
	CU_ASSERT_EQUAL(get("/metrics"), 200);
	CU_ASSERT_STRING_EQUAL(reply.type, "text/plain; version=0.0.4; charset=utf-8");
}

static void test_index(void)
{
	setup();
	CU_ASSERT_EQUAL(get("/api/v1"), 200);
	json_t *routes = body_json();
	size_t n = 0;
	for (const struct route *r = routes_table; r->pattern; r++)
		n++;
	CU_ASSERT_EQUAL(json_array_size(json_object_get(routes, "routes")), n);
	json_decref(routes);
}

static void test_not_found(void)
{
	static const char *const path[] = {"/x", "//", "/api", "/api/v1/", "/api/v1/graph/",
	    "/API/V1/GRAPH", "/api/v1/stages/", "/api/v1/stages/disk/", "/api/v1/stages/no",
	    "/api/v1/stages/disk/knobs/", "/api/v1/stages/disk/knobs/no", "/api/v1/stages/%64isk",
	    "/healthz%00", "/app.js/", "/../admin.c", "/index.html", "/%2e%2e/admin.c"};

	setup();
	for (size_t i = 0; i < sizeof(path) / sizeof(path[0]); i++) {
		CU_ASSERT_EQUAL(get(path[i]), 404);
		is_problem(404, "");
	}
	get("/api/v1/stages/no");
	is_problem(404, "there is no stage 'no'");
	get("/api/v1/stages/disk/knobs/no");
	is_problem(404, "stage 'disk' has no knob 'no'");
	char longest[400];
	memset(longest, 'a', sizeof(longest));
	longest[0] = '/';
	longest[sizeof(longest) - 1] = '\0';
	CU_ASSERT_EQUAL(get(longest), 404);
}

static void test_methods(void)
{
	setup();
	struct request q = {.method = "POST", .target = "/healthz", .host = "localhost:9900"};
	CU_ASSERT_EQUAL(ask(&q), 405);
	is_problem(405, "POST is not allowed at /healthz, only GET, HEAD");
	CU_ASSERT_STRING_EQUAL(reply.allow, "GET, HEAD");
	q.target = "/api/v1/stages/disk/knobs/threads.max";
	ask(&q);
	is_problem(405, "only GET, HEAD, PUT");
	q.method = "OPTIONS";
	CU_ASSERT_EQUAL(ask(&q), 405);
	q.method = "HEAD";
	CU_ASSERT_EQUAL(ask(&q), 200);
	CU_ASSERT_STRING_EQUAL(reply.allow, "");
	q.target = "/nothing";
	q.method = "POST";
	CU_ASSERT_EQUAL(ask(&q), 404);
}

static void test_health(void)
{
	setup();
	CU_ASSERT_EQUAL(get("/readyz"), 200);
	CU_ASSERT_TRUE(body_has("ready\n"));
	snprintf(made_up.view.stages[MADE_DISK].trouble,
	    sizeof(made_up.view.stages[MADE_DISK].trouble), "it has no thread");
	get("/readyz");
	is_problem(503, "stage 'disk' is not serving properly: it has no thread");
	made_up.view.stages[MADE_DISK].trouble[0] = '\0';
	CU_ASSERT_EQUAL(get("/readyz"), 200);
	made_up.view.ready = false;
	get("/readyz");
	is_problem(503, "starting");
	made_up.view.draining = true;
	get("/readyz");
	is_problem(503, "draining");
	CU_ASSERT_EQUAL(get("/healthz"), 200);
}

static void test_decisions(void)
{
	static const char *const bad[] = {
	    "?n=0", "?n=501", "?n=-1", "?n=", "?n=x", "?n=5x", "?n=99999", "?a=b&n=0"};
	static const char *const good[] = {"", "?", "?n=1", "?n=500", "?x=n=0", "?x=1&n=2&y=3"};
	char target[64];

	setup();
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(target, sizeof(target), "/api/v1/decisions%s", bad[i]);
		CU_ASSERT_EQUAL(get(target), 400);
		is_problem(400, "n must be a whole number from 1 to 500");
	}
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		snprintf(target, sizeof(target), "/api/v1/decisions%s", good[i]);
		CU_ASSERT_EQUAL(get(target), 200);
	}
	get("/api/v1/decisions?n=1");
	json_t *d = body_json();
	CU_ASSERT_EQUAL(json_array_size(json_object_get(d, "decisions")), 1);
	json_decref(d);
}

#define KNOB "/api/v1/stages/disk/knobs/threads.max"

static void test_set(void)
{
	setup();
	CU_ASSERT_EQUAL(put(KNOB, "{\"value\": \"8\"}"), 200);
	CU_ASSERT_STRING_EQUAL(made_up.threads_max, "8");
	CU_ASSERT_TRUE(body_has("\"value\":\"8\""));
	CU_ASSERT_EQUAL(put(KNOB, "{\"value\": 9}"), 200);
	CU_ASSERT_STRING_EQUAL(made_up.threads_max, "9");
	/* The texts are those of weir_graph_set. */
	put(KNOB, "{\"value\": \"65\"}");
	is_problem(422, "'65' is not between 1 and 64");
	put("/api/v1/stages/disk/knobs/no", "{\"value\": \"65\"}");
	is_problem(404, "stage 'disk' has no knob 'no'");
	CU_ASSERT_STRING_EQUAL(made_up.threads_max, "9");
}

static void test_bodies(void)
{
	static const char *const bad[] = {"", "8", "\"8\"", "[]", "{}", "{\"value\": null}",
	    "{\"value\": {}}", "{\"value\": [\"8\"]}", "{\"Value\": \"8\"}",
	    "{\"value\": \"8\", \"more\": 1}", "{\"value\": \"8\", \"value\": \"9\"}",
	    "{\"value\": \"8\"} x", "{\"value\": \"8\\u0000\"}", "{\"value\": \"\xff\"}",
	    "value=8"};

	setup();
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CU_ASSERT_EQUAL(put(KNOB, bad[i]), 400);
		is_problem(400, "");
	}
	CU_ASSERT_STRING_EQUAL(made_up.threads_max, "32");
}

#define OVERLOAD "/api/v1/overload"

static void test_overload(void)
{
	static const char *const word[] = {"off", "shadow", "enforce"};
	char body[64];

	setup();
	made_up.overload = WEIR_ADMISSION_ENFORCE;
	CU_ASSERT_EQUAL(get(OVERLOAD), 200);
	CU_ASSERT_TRUE(body_has("{\"mode\":\"enforce\"}"));
	for (int mode = 0; mode < 3; mode++) {
		snprintf(body, sizeof(body), "{\"mode\": \"%s\"}", word[mode]);
		CU_ASSERT_EQUAL(put(OVERLOAD, body), 200);
		CU_ASSERT_EQUAL((int)made_up.overload, mode);
		CU_ASSERT_TRUE(body_has(word[mode]));
	}
	put(OVERLOAD, "{\"mode\": \"shadwo\"}");
	is_problem(422, "'shadwo' is not one of off, shadow, enforce: did you mean 'shadow'?");
	put(OVERLOAD, "{\"mode\": 0}");
	is_problem(422, "'0' is not one of");
	put(OVERLOAD, "{\"value\": \"off\"}");
	is_problem(400, "the body must be {\"mode\": \"...\"} and nothing else");
	CU_ASSERT_EQUAL(made_up.overload, WEIR_ADMISSION_ENFORCE);
	CU_ASSERT_EQUAL(ask(&(struct request){.method = "PUT",
			    .target = OVERLOAD,
			    .host = "localhost:9900",
			    .origin = "http://evil.example",
			    .content_type = "application/json",
			    .body = "{\"mode\": \"off\"}",
			    .n_body = 15}),
	    403);
	CU_ASSERT_EQUAL(made_up.overload, WEIR_ADMISSION_ENFORCE);
}

static void test_who_may_act(void)
{
	struct request q = {.method = "PUT",
	    .target = KNOB,
	    .host = "localhost:9900",
	    .content_type = "application/json; charset=utf-8",
	    .origin = ORIGIN,
	    .fetch_site = "same-origin",
	    .body = "{\"value\": \"8\"}",
	    .n_body = 14};

	setup();
	CU_ASSERT_EQUAL(ask(&q), 200);
	q.origin = "http://evil.example";
	CU_ASSERT_EQUAL(ask(&q), 403);
	is_problem(403, "a page of another origin may not change anything here");
	q.origin = ORIGIN;
	q.fetch_site = "cross-site";
	CU_ASSERT_EQUAL(ask(&q), 403);
	q.fetch_site = NULL;
	static const char *const type[] = {NULL, "", "text/plain", "application/jsonx",
	    "application/x-www-form-urlencoded", "text/plain; application/json"};
	made_up_init(&made_up);
	for (size_t i = 0; i < sizeof(type) / sizeof(type[0]); i++) {
		q.content_type = type[i];
		CU_ASSERT_EQUAL(ask(&q), 415);
	}
	CU_ASSERT_STRING_EQUAL(made_up.threads_max, "32");
	/* Reading needs no such headers: a page of another origin cannot read the response. */
	q.method = "GET";
	q.origin = "http://evil.example";
	CU_ASSERT_EQUAL(ask(&q), 200);
}

static void test_no_memory(void)
{
	setup();
	made_up.no_memory = true;
	static const char *const path[] = {"/api/v1/graph", "/api/v1/stages", "/api/v1/stages/disk",
	    "/api/v1/decisions", "/metrics", "/readyz", KNOB, "/api/v1/stages/disk/knobs"};
	for (size_t i = 0; i < sizeof(path) / sizeof(path[0]); i++) {
		CU_ASSERT_EQUAL(get(path[i]), 503);
		is_problem(503, "out of memory");
	}
	CU_ASSERT_EQUAL(get("/healthz"), 200);
}

/* The page has no inline script or style and loads nothing from another host. All its parts
 * exist. */
static void test_page(void)
{
	setup();
	CU_ASSERT_EQUAL(get("/"), 200);
	if (!asset_find("/app.js")) {
		CU_ASSERT_TRUE(body_has("WEIR_UI=off"));
		return;
	}
	CU_ASSERT_STRING_EQUAL(reply.type, "text/html; charset=utf-8");
	CU_ASSERT_TRUE(body_has("<script type=\"module\" src=\"/app.js\"></script>"));
	CU_ASSERT_FALSE(body_has(" style=") || body_has("<style") || body_has(" onload") ||
			body_has(" onclick") || body_has(" onerror"));
	CU_ASSERT_FALSE(body_has("http:") || body_has("https:") || body_has("\"//"));
	static const char *const part[] = {"/app.js", "/app.css", "/icon.svg", "/LICENSES.txt"};
	for (size_t i = 0; i < sizeof(part) / sizeof(part[0]); i++) {
		CU_ASSERT_EQUAL(get(part[i]), 200);
		CU_ASSERT_TRUE(reply.n > 100);
		CU_ASSERT_FALSE(body_has("insertAdjacentHTML") || body_has("document.write") ||
				body_has("eval(") || body_has("new Function") ||
				body_has("sourceMappingURL"));
	}
}

static int post(const char *target, const char *body)
{
	return ask(&(struct request){
	    .method = "POST",
	    .target = target,
	    .host = "localhost:9900",
	    .content_type = "application/json",
	    .body = body,
	    .n_body = strlen(body),
	});
}

static void test_steer(void)
{
	static const char *const verb[] = {[WEIR_STEER_RUN] = "resume",
	    [WEIR_STEER_PAUSE] = "pause",
	    [WEIR_STEER_DRAIN] = "drain"};
	char path[64];

	setup();
	for (int how = WEIR_STEER_RUN; how <= WEIR_STEER_DRAIN; how++) {
		steered[0] = '\0';
		snprintf(path, sizeof(path), "/api/v1/stages/disk/%s", verb[how]);
		CU_ASSERT_EQUAL(post(path, ""), 200);
		CU_ASSERT_STRING_EQUAL(steered, "disk");
		CU_ASSERT_EQUAL((int)steered_to, how);
	}
	CU_ASSERT_EQUAL(post("/api/v1/stages/disk/pause", "{\"x\": 1}"), 400);
}

static void test_reload(void)
{
	static const char path[] = "/api/v1/reload";

	setup();
	reloads.n = reloads.n_previews = 0;
	CU_ASSERT_EQUAL(get(path), 200);
	CU_ASSERT_TRUE(body_has("\"last\":null"));
	CU_ASSERT_EQUAL(post(path, ""), 200);
	CU_ASSERT_TRUE(body_has("\"id\":1") && body_has("\"preview\":false"));
	CU_ASSERT_EQUAL(post(path, "{\"preview\": false}"), 200);
	CU_ASSERT_EQUAL(reloads.n_previews, 0);
	CU_ASSERT_EQUAL(post(path, "{\"preview\": true}"), 200);
	CU_ASSERT_TRUE(body_has("\"id\":3") && body_has("\"preview\":true"));
	CU_ASSERT_EQUAL(reloads.n_previews, 1);
	static const char *const bad[] = {
	    "{", "[]", "{\"preview\": 1}", "{\"x\": true}", "{\"preview\": true, \"x\": 1}"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		post(path, bad[i]);
		is_problem(400, "preview");
	}
	CU_ASSERT_EQUAL(reloads.n, 3);
	CU_ASSERT_EQUAL(get("/metrics"), 200);
	CU_ASSERT_TRUE(body_has("weir_config_last_reload_successful 0\n"));
	CU_ASSERT_TRUE(
	    body_has("\nweir_config_last_reload_success_timestamp_seconds 1764208305\n"));
	CU_ASSERT_TRUE(body_has("weir_config_reloads_total{result=\"ok\"} 5\n"));
	CU_ASSERT_TRUE(body_has("weir_config_reloads_total{result=\"failed\"} 2\n"));
	reloads.stopping = true;
	post(path, "{}");
	is_problem(503, "stopping");
	reloads.stopping = false;
	can_reload = false;
	get(path);
	is_problem(503, "cannot reload");
	post(path, "{}");
	is_problem(503, "cannot reload");
	CU_ASSERT_EQUAL(get("/metrics"), 200);
	CU_ASSERT_FALSE(body_has("weir_config_"));
	can_reload = true;
}

/* docs/api.md describes every route. */
static void test_documented(void)
{
	char row[256];
	FILE *f = fopen(WEIR_SOURCE_DIR "/docs/api.md", "r");

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	static char text[1 << 16];
	size_t n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	fclose(f);
	for (const struct route *r = routes_table; r->pattern; r++) {
		snprintf(row, sizeof(row), "| %s | `%s` |", r->method, r->pattern);
		CU_ASSERT_PTR_NOT_NULL(strstr(text, row));
	}
}

CUNIT_MAIN("routes", {"every route answers", test_every_route}, {"index", test_index},
    {"404", test_not_found}, {"405", test_methods}, {"health", test_health},
    {"decisions", test_decisions}, {"set a knob", test_set}, {"bodies", test_bodies},
    {"kill switch", test_overload}, {"who may act", test_who_may_act},
    {"no memory", test_no_memory}, {"the page", test_page}, {"steer", test_steer},
    {"reload", test_reload}, {"docs", test_documented})
