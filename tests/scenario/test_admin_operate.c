/* SPDX-License-Identifier: MIT */
/* An operator at the admin endpoint of a real graph: values for a time, pauses, undo, the kill
 * switch, the contents of a queue, single requests, and the events that watchers get. */
#include "fixture/http/server.h"

#include <jansson.h>
#include <poll.h>

#include "admin/admin.h"

static struct server server;
static struct admin *admin;
static struct answer answer; /* of the last ask */

static void setup(void)
{
	struct weir_err err = {0};

	server = server_new("t.reply");
	server_start(&server);
	CU_ASSERT_EQUAL_FATAL(admin_start(server.graph, NULL, "127.0.0.1:0", &admin, &err), 0);
}

static void teardown(void)
{
	answer_free(&answer);
	admin_stop(admin);
	server_stop(&server);
}

/* Send a request to the endpoint and return its status. */
static int ask(const char *method, const char *path, const char *body)
{
	char request[1024];
	int port = admin_port(admin), fd = client_open(port);

	snprintf(request, sizeof(request),
	    "%s %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\n"
	    "Content-Length: %zu\r\n\r\n%s",
	    method, path, port, strlen(body), body);
	CU_ASSERT(client_say(fd, request));
	CU_ASSERT(answer_read(fd, &answer));
	close(fd);
	return answer.status;
}

/* The JSON of a response with status 200. */
static json_t *json_of(const char *method, const char *path, const char *body)
{
	CU_ASSERT_EQUAL(ask(method, path, body), 200);
	json_t *json = json_loads(answer.body, 0, NULL);
	CU_ASSERT_PTR_NOT_NULL_FATAL(json);
	return json;
}

static const char *text(const json_t *map, const char *key)
{
	const char *s = json_string_value(json_object_get(map, key));

	return s ? s : "(none)";
}

static json_int_t number(const json_t *map, const char *key)
{
	return json_integer_value(json_object_get(map, key));
}

#define APP  "/api/v1/stages/app"
#define KNOB APP "/knobs/threads.max"

/* The values of the knob: "8: configured 8, overridden 9, kept 8, for ever". */
static const char *values(void)
{
	static char line[200];
	json_t *knob = json_of("GET", KNOB, "");

	snprintf(line, sizeof(line), "%s: configured %s, overridden %s, kept %s, %s",
	    text(knob, "effective"), text(knob, "configured"), text(knob, "overridden"),
	    text(knob, "kept"),
	    json_is_null(json_object_get(knob, "expires_at")) ? "for ever" : "for a time");
	json_decref(knob);
	return line;
}

/* Change number `i`, newest first: "actor: what target from to", and "undone" if it was undone. */
static const char *change(size_t i)
{
	static char line[400];
	json_t *list = json_of("GET", "/api/v1/changes", "");
	const json_t *c = json_array_get(json_object_get(list, "changes"), i);

	snprintf(line, sizeof(line), "%s: %s %s %s %s%s", text(c, "actor"), text(c, "what"),
	    text(c, "target"), text(c, "from"), text(c, "to"),
	    json_is_true(json_object_get(c, "undone")) ? " undone" : "");
	json_decref(list);
	return line;
}

static void test_values(void)
{
	setup();
	CU_ASSERT_EQUAL(ask("PUT", KNOB, "{\"value\": \"7\"}"), 200);
	CU_ASSERT_STRING_EQUAL(
	    change(0) + strlen(change(0)) - 2, " 7"); /* from the configured value */
	const char *was = strdup(values());
	CU_ASSERT_EQUAL(ask("PUT", KNOB, "{\"value\": \"3\", \"for\": \"10m\"}"), 200);
	CU_ASSERT_EQUAL(strncmp(values(), "3: configured ", 14), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(values(), ", overridden 3, kept 7, for a time"));
	CU_ASSERT_STRING_EQUAL(change(0), "operator: set app.threads.max 7 3");
	CU_ASSERT_EQUAL(ask("POST", "/api/v1/undo", ""), 200);
	CU_ASSERT_STRING_EQUAL(values(), was);
	CU_ASSERT_PTR_NOT_NULL(strstr(was, ", overridden 7, kept (none), for ever"));
	CU_ASSERT_STRING_EQUAL(change(1), "operator: set app.threads.max 7 3 undone");
	CU_ASSERT_EQUAL(strncmp(change(0), "operator: undo ", 15), 0);
	CU_ASSERT_EQUAL(ask("DELETE", KNOB, ""), 200);
	CU_ASSERT_PTR_NOT_NULL(strstr(values(), ", overridden (none), kept (none), for ever"));
	CU_ASSERT_EQUAL(strncmp(change(0), "operator: unset app.threads.max 7 ", 34), 0);
	CU_ASSERT_EQUAL(ask("DELETE", KNOB, ""), 409);
	CU_ASSERT_EQUAL(ask("DELETE", APP "/knobs/none", ""), 404);
	free((char *)(uintptr_t)was);
	teardown();
}

/* Everything is undone, the newest first; then there is nothing left. */
static void test_undo(void)
{
	setup();
	CU_ASSERT_EQUAL(ask("POST", "/api/v1/undo", ""), 409);
	CU_ASSERT_EQUAL(ask("POST", APP "/pause", ""), 200);
	CU_ASSERT_EQUAL(ask("PUT", "/api/v1/overload", "{\"mode\": \"off\"}"), 200);
	CU_ASSERT_EQUAL(weir_graph_overload(server.graph), WEIR_ADMISSION_OFF);
	json_t *json = json_of("POST", "/api/v1/undo", "");
	CU_ASSERT_STRING_EQUAL(text(json_object_get(json, "undone"), "what"), "overload");
	json_decref(json);
	CU_ASSERT_EQUAL(weir_graph_overload(server.graph), WEIR_ADMISSION_ENFORCE);
	json = json_of("POST", "/api/v1/undo", "{}");
	CU_ASSERT_STRING_EQUAL(text(json_object_get(json, "undone"), "what"), "pause");
	json_decref(json);
	json = json_of("GET", APP, "");
	CU_ASSERT_STRING_EQUAL(text(json, "state"), "running");
	json_decref(json);
	CU_ASSERT_EQUAL(ask("POST", "/api/v1/undo", ""), 409);
	teardown();
}

/* The requests that wait at a paused stage are listed, and answered afterwards. */
static void test_queue(void)
{
	struct answer a = {0};

	setup();
	json_t *json = json_of("POST", APP "/pause", "{}");
	CU_ASSERT_STRING_EQUAL(text(json, "state"), "paused");
	json_decref(json);
	int fd = client_open(server.port);
	CU_ASSERT(client_say(fd, GET("/x") GET("/y")));
	for (json_int_t n = 0; n < 2;) {
		json = json_of("GET", APP "/queue", "");
		n = number(json, "length");
		if (n < 2)
			json_decref(json);
	}
	const json_t *oldest = json_object_get(json, "oldest");
	CU_ASSERT_EQUAL_FATAL(json_array_size(oldest), 2);
	const json_t *first = json_array_get(oldest, 0), *second = json_array_get(oldest, 1);
	CU_ASSERT_STRING_EQUAL(text(first, "class"), "default");
	CU_ASSERT_STRING_EQUAL(text(first, "type"), "http.request");
	CU_ASSERT(json_real_value(json_object_get(first, "age")) >=
		  json_real_value(json_object_get(second, "age")));
	json_decref(json);
	json = json_of("GET", APP "/queue?n=1", "");
	CU_ASSERT_EQUAL(json_array_size(json_object_get(json, "oldest")), 1);
	CU_ASSERT_EQUAL(number(json, "length"), 2);
	json_decref(json);
	json = json_of("POST", APP "/resume", "");
	CU_ASSERT_STRING_EQUAL(text(json, "state"), "running");
	json_decref(json);
	CU_ASSERT(answer_read(fd, &a) && a.status == 200);
	CU_ASSERT(answer_read(fd, &a) && a.status == 200);
	CU_ASSERT_STRING_EQUAL(change(0), "operator: resume app paused running");
	close(fd);
	answer_free(&a);
	teardown();
}

static void is_x(const json_t *request)
{
	CU_ASSERT_PTR_NOT_NULL_FATAL(request);
	CU_ASSERT_STRING_EQUAL(text(request, "class"), "default");
	CU_ASSERT_STRING_EQUAL(text(request, "outcome"), "ok");
	CU_ASSERT_STRING_EQUAL(text(request, "path"), "GET /x");
	CU_ASSERT(json_real_value(json_object_get(request, "took")) > 0);
	CU_ASSERT_EQUAL(strlen(text(request, "trace")), 32);
}

/* A tap returns what has ended since the previous call. It ends when it is not read for seconds,
 * and the next call opens it again. */
static void test_single_requests(void)
{
	struct answer a = {0};
	char path[200] = APP "/tap";
	json_t *json = NULL;
	size_t n = 0;

	setup();
	int fd = client_open(server.port);
	while (n == 0) {
		json_decref(json);
		json = json_of("GET", path, "");
		n = json_array_size(json_object_get(json, "requests"));
		snprintf(
		    path, sizeof(path), APP "/tap?after=%lld", (long long)number(json, "after"));
		CU_ASSERT(client_say(fd, GET("/x")));
		CU_ASSERT(answer_read(fd, &a) && a.status == 200);
	}
	is_x(json_array_get(json_object_get(json, "requests"), 0));
	json_decref(json);
	json = json_of("GET", "/api/v1/requests/slowest", "");
	is_x(json_array_get(json_object_get(json, "requests"), 0));
	json_decref(json);
	CU_ASSERT_EQUAL(ask("GET", APP "/tap?outcome=shed", ""), 200);
	CU_ASSERT_EQUAL(ask("GET", "/api/v1/stages/none/tap", ""), 404);
	close(fd);
	answer_free(&a);
	teardown();
}

/* ---- events ---- */

static char stream[1 << 18];

static int watch(void)
{
	char request[200];
	int port = admin_port(admin), fd = client_open(port);

	snprintf(request, sizeof(request),
	    "GET /events?hz=0 HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n", port);
	CU_ASSERT(client_say(fd, request));
	stream[0] = '\0';
	return fd;
}

/* Read on until the stream has a whole event `name` whose data contains `words`. */
static bool comes(int fd, const char *name, const char *words)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	char line[64];
	size_t n = strlen(stream);

	snprintf(line, sizeof(line), "event: %s\ndata: ", name);
	for (;;) {
		for (const char *at = stream; (at = strstr(at, line)); at++) {
			const char *end = strstr(at, "\n\n");
			if (end && memmem(at, (size_t)(end - at), words, strlen(words)))
				return true;
		}
		if (n == sizeof(stream) - 1 || poll(&p, 1, 60000) <= 0)
			return false;
		ssize_t got = client_recv(fd, stream + n, sizeof(stream) - 1 - n, 0);
		if (got <= 0)
			return false;
		n += (size_t)got;
		stream[n] = '\0';
	}
}

static void test_events(void)
{
	setup();
	int fd = watch();
	CU_ASSERT(comes(fd, "hello", "\"gap\":false"));
	CU_ASSERT_EQUAL(ask("PUT", KNOB, "{\"value\": \"3\"}"), 200);
	CU_ASSERT(comes(fd, "act", "\"what\":\"set\",\"target\":\"app.threads.max\""));
	CU_ASSERT_EQUAL(ask("POST", APP "/pause", ""), 200);
	CU_ASSERT(comes(fd, "act", "\"what\":\"pause\",\"target\":\"app\""));
	CU_ASSERT(comes(fd, "decision", "\"actor\":\"operator\""));
	admin_tell_failed(admin, "ann", "line 5 is \"wrong\"");
	CU_ASSERT(comes(fd, "reload",
	    "\"by\":\"ann\",\"result\":\"failed\",\"summary\":\"line 5 is \\\"wrong\\\"\""));
	admin_switch(admin, server.graph, "{}", 9, NULL);
	CU_ASSERT(comes(fd, "config", "\"graph\":9"));
	close(fd);
	admin_tell_failed(NULL, "nobody", "no endpoint"); /* does nothing */
	teardown();
}

CUNIT_MAIN("admin operate", {"values for a time", test_values}, {"undo", test_undo},
    {"a queue", test_queue}, {"single requests", test_single_requests}, {"events", test_events})
