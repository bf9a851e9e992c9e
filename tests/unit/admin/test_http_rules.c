/* SPDX-License-Identifier: MIT */
/* The rules of docs/api.md that concern whole responses, over real sockets: authentication and its
 * header fields, sessions of browsers, pages of other sites, and revalidation. */
#include "admin/api/routes.h"
#include "admin/metrics/bottleneck.h"
#include "client.h"
#include "made_up.h"
#include "unit/admin/auth_rig.h"

static struct made_up made_up;
static struct admin *admin;
static int port;
static char answer[1 << 20];

static void start(bool tokens)
{
	struct weir_err err = {0};
	struct admin_source source = made_up_source(&made_up);

	made_up_init(&made_up);
	begin("127.0.0.1:0");
	if (tokens) {
		add_token("boss", WEIR_ADMIN_OPERATOR);
		add_token("eye", WEIR_ADMIN_VIEWER);
	}
	source.admin = &spec->admin;
	source.config = "{\"files\":[]}";
	CU_ASSERT_EQUAL_FATAL(admin_start_source(&source, spec->admin.listen, &admin, &err), 0);
	port = admin_port(admin);
}

static void stop(void)
{
	admin_stop(admin);
	CU_ASSERT_EQUAL(made_up.n_views, 0);
	end_all();
}

static int ask_for(const char *method, const char *path, const char *fields, const char *body)
{
	return client_do(port, method, path, fields, body, answer, sizeof(answer));
}

static int get(const char *path, const char *fields)
{
	return ask_for("GET", path, fields, "");
}

/* The response has this header line. */
static bool has(const char *line)
{
	char text[600];
	const char *end = strstr(answer, "\r\n\r\n");

	snprintf(text, sizeof(text), "\r\n%s\r\n", line);
	const char *found = strstr(answer, text);
	return found && found <= end;
}

/* The value of the field in the response; "" if it has none. */
static const char *field(const char *name)
{
	static char value[300];
	char text[64];

	snprintf(text, sizeof(text), "\r\n%s: ", name);
	const char *found = strstr(answer, text);
	value[0] = '\0';
	if (found)
		snprintf(value, sizeof(value), "%.*s", (int)strcspn(found + strlen(text), "\r"),
		    found + strlen(text));
	return value;
}

#define JSON "Content-Type: application/json\r\n"
#define KNOB "/api/v1/stages/disk/knobs/threads.max"

static void test_tokens(void)
{
	char fields[300];

	start(true);
	CU_ASSERT_EQUAL(get("/healthz", ""), 200);
	CU_ASSERT_EQUAL(get("/readyz", ""), 200);
	CU_ASSERT_EQUAL(get("/", ""), 200);
	CU_ASSERT_EQUAL(get("/metrics", ""), 401);
	CU_ASSERT_TRUE(has("WWW-Authenticate: Bearer realm=\"weir\""));
	CU_ASSERT_TRUE(has("Content-Type: application/problem+json"));
	CU_ASSERT_STRING_EQUAL(field("Retry-After"), "");
	CU_ASSERT_EQUAL(get("/metrics", bearer(EYE)), 200);
	CU_ASSERT_STRING_EQUAL(field("WWW-Authenticate"), "");
	snprintf(fields, sizeof(fields), JSON "%s", bearer(EYE));
	CU_ASSERT_EQUAL(ask_for("PUT", KNOB, fields, "{\"value\": 8}"), 403);
	CU_ASSERT_STRING_EQUAL(made_up.threads_max, "32");
	snprintf(fields, sizeof(fields), JSON "%s", bearer(BOSS));
	CU_ASSERT_EQUAL(ask_for("PUT", KNOB, fields, "{\"value\": 8}"), 200);
	CU_ASSERT_STRING_EQUAL(made_up.threads_max, "8");
	/* with a wrong token, the body has nothing of the graph */
	CU_ASSERT_EQUAL(get("/api/v1/graph", bearer("0123456789abcdef0123456789abcdef")), 401);
	CU_ASSERT_PTR_NULL(strstr(answer, "made up"));
	stop();
}

/* After too many wrong tokens, the response says how long to wait. The right token still works. */
static void test_retry_after(void)
{
	int status = 401, n = 0;

	start(true);
	for (; status == 401 && n < 100; n++)
		status = get("/metrics", bearer("0123456789abcdef0123456789abcdef"));
	CU_ASSERT_EQUAL(status, 429);
	int wait_s = atoi(field("Retry-After"));
	CU_ASSERT_TRUE(wait_s >= 1 && wait_s <= 60);
	CU_ASSERT_STRING_EQUAL(field("WWW-Authenticate"), "");
	CU_ASSERT_EQUAL(get("/metrics", bearer(EYE)), 200);
	stop();
}

/* A browser: the cookie of a session works for reads, and for changes with an origin. */
static void test_session(void)
{
	char fields[600], cookie[300];

	start(true);
	snprintf(fields, sizeof(fields), JSON "%s", bearer(BOSS));
	CU_ASSERT_EQUAL(ask_for("POST", "/api/v1/session", fields, "{}"), 200);
	snprintf(cookie, sizeof(cookie), "%s", field("Set-Cookie"));
	char *end = strchr(cookie, ';');
	CU_ASSERT_PTR_NOT_NULL_FATAL(end);
	CU_ASSERT_PTR_NOT_NULL(strstr(end, "; Path=/; HttpOnly; SameSite=Strict; Max-Age="));
	*end = '\0';
	CU_ASSERT_PTR_NOT_NULL(strstr(answer, "\"name\":\"boss\""));
	CU_ASSERT_PTR_NOT_NULL(strstr(answer, "\"role\":\"operator\""));
	CU_ASSERT_PTR_NOT_NULL(strstr(answer, "\"tokens\":true"));
	snprintf(fields, sizeof(fields), "Cookie: %s\r\n", cookie);
	CU_ASSERT_EQUAL(get("/api/v1/session", fields), 200);
	CU_ASSERT_PTR_NOT_NULL(strstr(answer, "\"ends_in_seconds\":"));
	CU_ASSERT_PTR_NULL(strstr(answer, "\"ends_in_seconds\":null"));
	CU_ASSERT_EQUAL(get("/api/v1/graph", fields), 200);
	snprintf(fields, sizeof(fields), JSON "Cookie: %s\r\n", cookie);
	CU_ASSERT_EQUAL(ask_for("PUT", KNOB, fields, "{\"value\": 8}"), 403);
	snprintf(fields, sizeof(fields), JSON "Cookie: %s\r\nOrigin: http://127.0.0.1:%d\r\n",
	    cookie, port);
	CU_ASSERT_EQUAL(ask_for("PUT", KNOB, fields, "{\"value\": 8}"), 200);
	CU_ASSERT_EQUAL(ask_for("POST", "/api/v1/session", fields, "{}"), 409);
	CU_ASSERT_EQUAL(ask_for("DELETE", "/api/v1/session", fields, ""), 200);
	CU_ASSERT_PTR_NOT_NULL(strstr(answer, "{\"ended\":true}"));
	CU_ASSERT_PTR_NOT_NULL(strstr(field("Set-Cookie"), "=; Path=/; "));
	CU_ASSERT_PTR_NOT_NULL(strstr(field("Set-Cookie"), "; Max-Age=0"));
	CU_ASSERT_EQUAL(ask_for("DELETE", "/api/v1/session", fields, ""), 401);
	CU_ASSERT_EQUAL(get("/api/v1/graph", fields), 401);
	CU_ASSERT_PTR_NOT_NULL(strstr(answer, "your session has ended"));
	stop();
}

/* Pages of other sites may link to our pages, but not read the API or change anything. */
static void test_other_sites(void)
{
	static const char *const site[] = {"same-origin", "same-site", "none", "cross-site"};
	char fields[200];

	start(false);
	for (int i = 0; i < 4; i++) {
		snprintf(fields, sizeof(fields), JSON "Sec-Fetch-Site: %s\r\n", site[i]);
		CU_ASSERT_EQUAL(get("/", fields), 200);
		CU_ASSERT_EQUAL(get("/metrics", fields), 200);
		CU_ASSERT_EQUAL(get("/api/v1/graph", fields), i == 3 ? 403 : 200);
		CU_ASSERT_EQUAL(get("/api/v1", fields), i == 3 ? 403 : 200);
		CU_ASSERT_EQUAL(
		    ask_for("PUT", KNOB, fields, "{\"value\": 8}"), i == 0 || i == 2 ? 200 : 403);
	}
	get("/api/v1", fields);
	CU_ASSERT_PTR_NOT_NULL(strstr(answer, "a page of another origin may not read this"));
	stop();
}

/* Responses that change rarely have a strong tag and may be stored, but must be revalidated. */
static void test_tags(void)
{
	static const char *const tagged[] = {"/", "/api/v1", "/api/v1/openapi.json",
	    "/api/v1/config", "/api/v1/stages/disk/knobs", KNOB};
	static const char *const others[] = {"/metrics", "/healthz", "/api/v1/stages",
	    "/api/v1/decisions", "/api/v1/session", "/api/v1/none"};
	char fields[200];

	start(false);
	for (size_t i = 0; i < sizeof(tagged) / sizeof(tagged[0]); i++) {
		CU_ASSERT_EQUAL(get(tagged[i], ""), 200);
		CU_ASSERT_TRUE(has("Cache-Control: private, no-cache"));
		CU_ASSERT_EQUAL(field("ETag")[0], '"');
		snprintf(fields, sizeof(fields), "If-None-Match: %s\r\n", field("ETag"));
		CU_ASSERT_EQUAL(get(tagged[i], fields), 304);
		CU_ASSERT_STRING_EQUAL(strstr(answer, "\r\n\r\n"), "\r\n\r\n");
		CU_ASSERT_TRUE(has("Cache-Control: private, no-cache"));
		CU_ASSERT_PTR_NOT_NULL(strstr(fields, field("ETag")));
		CU_ASSERT_EQUAL(get(tagged[i], "If-None-Match: \"x\"\r\n"), 200);
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		CU_ASSERT_NOT_EQUAL(get(others[i], "If-None-Match: *\r\n"), 304);
		CU_ASSERT_TRUE(has("Cache-Control: no-store"));
		CU_ASSERT_STRING_EQUAL(field("ETag"), "");
	}
	/* a changed value has another tag */
	get(KNOB, "");
	snprintf(fields, sizeof(fields), "If-None-Match: %s\r\n", field("ETag"));
	CU_ASSERT_EQUAL(ask_for("PUT", KNOB, JSON, "{\"value\": 8}"), 200);
	CU_ASSERT_STRING_EQUAL(field("ETag"), "");
	CU_ASSERT_EQUAL(get(KNOB, fields), 200);
	stop();
}

/* CRC-32 (RFC 1952, 8) of p[n]. */
static uint32_t crc_of(const char *p, size_t n)
{
	uint32_t crc = 0xffffffff;

	for (size_t i = 0; i < n; i++) {
		crc ^= (unsigned char)p[i];
		for (int k = 0; k < 8; k++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	}
	return ~crc;
}

static uint32_t little_endian(const char *p)
{
	const unsigned char *b = (const unsigned char *)p;

	return b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

/* The body of the last response, of the length that its header field states. */
static const char *body_of(size_t *n)
{
	*n = (size_t)atoi(field("Content-Length"));
	return strstr(answer, "\r\n\r\n") + 4;
}

/* The same file with and without gzip: the trailer of the compressed one has the checksum and the
 * length of the other, the tags differ, and each tag is valid for its own coding only. */
static void expect_zipped(const char *path)
{
	static const char zip[] = "Accept-Encoding: br, gzip\r\n";
	char tag[60], fields[200];
	size_t n, n_zipped;

	CU_ASSERT_EQUAL(get(path, ""), 200);
	CU_ASSERT_STRING_EQUAL(field("Content-Encoding"), "");
	CU_ASSERT_TRUE(has("Vary: Accept-Encoding"));
	const char *p = body_of(&n);
	uint32_t crc = crc_of(p, n);
	snprintf(tag, sizeof(tag), "%s", field("ETag"));
	snprintf(fields, sizeof(fields), "%sIf-None-Match: %s\r\n", zip, tag);
	CU_ASSERT_EQUAL(get(path, fields), 200);
	CU_ASSERT_TRUE(has("Content-Encoding: gzip") && has("Vary: Accept-Encoding"));
	CU_ASSERT_STRING_NOT_EQUAL(field("ETag"), tag);
	p = body_of(&n_zipped);
	CU_ASSERT_TRUE(n_zipped > 18 && n_zipped < n && memcmp(p, "\x1f\x8b", 2) == 0);
	CU_ASSERT_EQUAL(little_endian(p + n_zipped - 8), crc);
	CU_ASSERT_EQUAL(little_endian(p + n_zipped - 4), n);
	snprintf(fields, sizeof(fields), "%sIf-None-Match: %s\r\n", zip, field("ETag"));
	CU_ASSERT_EQUAL(get(path, fields), 304);
	CU_ASSERT_STRING_EQUAL(field("Content-Encoding"), "");
	CU_ASSERT_TRUE(has("Vary: Accept-Encoding"));
}

/* Clients that accept gzip get the files of the page compressed. Other responses do not vary. */
static void test_zipped(void)
{
	start(false);
	get("/", "Accept-Encoding: gzip\r\n");
	if (has("Content-Encoding: gzip")) { /* the build has found gzip, and has a dashboard */
		expect_zipped("/");
		expect_zipped("/app.js");
		expect_zipped("/app.css");
		expect_zipped("/LICENSES.txt");
		expect_zipped("/api/v1/openapi.json");
	}
	CU_ASSERT_EQUAL(get("/api/v1/config", "Accept-Encoding: gzip\r\n"), 200);
	CU_ASSERT_STRING_EQUAL(field("Content-Encoding"), "");
	CU_ASSERT_STRING_EQUAL(field("Vary"), "");
	stop();
}

/* The status of GET /api/v1/graph with this If-None-Match, and its tag, without a thread. */
static int graph_status(const char *none_match, char *tag, size_t size)
{
	struct admin_source source = made_up_source(&made_up);
	struct process process = {.stat_fd = -1};
	struct reply reply;

	routes_answer(&source, &process,
	    &(struct request){.method = "GET",
		.target = "/api/v1/graph",
		.host = "localhost:9900",
		.if_none_match = none_match},
	    &reply);
	int status = reply.status;
	snprintf(tag, size, "%s", reply.etag);
	CU_ASSERT_EQUAL(reply.n == 0, status == 304);
	reply_fini(&reply);
	return status;
}

/* The graph has a weak tag: numbers that always move do not change it, all else does. */
static void test_graph_tag(void)
{
	char tag[60], same[60];

	made_up_init(&made_up);
	CU_ASSERT_EQUAL(graph_status(NULL, tag, sizeof(tag)), 200);
	CU_ASSERT_EQUAL(strncmp(tag, "W/\"", 3), 0);
	made_up.view.now_ns += S;
	made_up.view.wall_ns += S;
	made_up.view.decisions_total++;
	made_up.link[0].events_total += 100;
	made_up.link[4].events_total += 100;
	CU_ASSERT_EQUAL(graph_status(tag, same, sizeof(same)), 304);
	CU_ASSERT_STRING_EQUAL(same, tag);
	made_up.view.ready = false;
	CU_ASSERT_EQUAL(graph_status(tag, same, sizeof(same)), 200);
	CU_ASSERT_STRING_NOT_EQUAL(same, tag);
	made_up.view.ready = true;
	CU_ASSERT_EQUAL(graph_status(tag, same, sizeof(same)), 304);
	made_up.view.stages[MADE_DISK].state = "paused";
	CU_ASSERT_EQUAL(graph_status(tag, same, sizeof(same)), 200);
	made_up.view.stages[MADE_DISK].state = NULL;
	made_up.link[0].to = "disk";
	CU_ASSERT_EQUAL(graph_status(tag, same, sizeof(same)), 200);
}

/* Which stage is the bottleneck, and whether it limits the server, is part of the tag; its numbers
 * are not. */
static void test_bottleneck_tag(void)
{
	struct bottleneck b = {.known = true,
	    .limits = true,
	    .stage = "disk",
	    .used = 0.9,
	    .served_per_s = 90,
	    .ceiling_per_s = 100,
	    .service_s = 0.02,
	    .threads = 2,
	    .max = 2};
	struct admin_source source = made_up_source(&made_up);
	struct process process = {.stat_fd = -1};
	struct reply reply;
	char tag[60];

	made_up_init(&made_up);
	source.bottleneck = &b;
	struct request q = {.method = "GET", .target = "/api/v1/graph", .host = "localhost:9900"};
	routes_answer(&source, &process, &q, &reply);
	snprintf(tag, sizeof(tag), "%s", reply.etag);
	reply_fini(&reply);
	q.if_none_match = tag;
	b.used = 0.95;
	b.since_ns = b.now_ns = 5 * S;
	b.threads = b.max = 7;
	b.served_per_s = 100;
	b.ceiling_per_s = 110;
	b.service_s = 0.01;
	routes_answer(&source, &process, &q, &reply);
	CU_ASSERT_EQUAL(reply.status, 304);
	reply_fini(&reply);
	b.limits = false;
	routes_answer(&source, &process, &q, &reply);
	CU_ASSERT_EQUAL(reply.status, 200);
	reply_fini(&reply);
}

/* The configuration is that of the newest graph. */
static void test_config(void)
{
	start(false);
	CU_ASSERT_EQUAL(get("/api/v1/config", ""), 200);
	CU_ASSERT_STRING_EQUAL(strstr(answer, "\r\n\r\n"), "\r\n\r\n{\"files\":[]}");
	admin_switch(admin, NULL, "{\"files\":[1]}", 2, NULL);
	CU_ASSERT_EQUAL(get("/api/v1/config", ""), 200);
	CU_ASSERT_STRING_EQUAL(strstr(answer, "\r\n\r\n"), "\r\n\r\n{\"files\":[1]}");
	admin_switch(admin, NULL, NULL, 3, NULL);
	CU_ASSERT_EQUAL(get("/api/v1/config", ""), 200);
	CU_ASSERT_STRING_EQUAL(strstr(answer, "\r\n\r\n"),
	    "\r\n\r\n{\"files\":[],\"lines\":[],\"values\":{},\"sets\":[]}");
	stop();
}

CUNIT_MAIN("rules of responses", {"tokens", test_tokens}, {"Retry-After", test_retry_after},
    {"a session", test_session}, {"other sites", test_other_sites}, {"tags", test_tags},
    {"compressed", test_zipped}, {"the tag of the graph", test_graph_tag},
    {"the tag and the bottleneck", test_bottleneck_tag}, {"the configuration", test_config})
