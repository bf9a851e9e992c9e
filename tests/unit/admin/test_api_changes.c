/* SPDX-License-Identifier: MIT */
/* The routes by which operators make changes and see them: what each passes to the graph, and how
 * it presents the result. */
#include "admin/api/routes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <weir/log.h>

#include "admin/auth/auth.h"
#include "cunit_main.h"
#include "made_up.h"

#define S 1000000000LL

static struct made_up made_up;
static struct process process;
static struct reply reply;

/* What the graph was called with, and what it returns. */
static struct {
	int calls;
	char stage[64], knob[64], value[128];
	int64_t for_ns;
	enum weir_steer how;
	int n; /* rows requested */
	int rc;
	const char *why;
} graph;

static void note(const char *stage, const char *knob, const char *value)
{
	graph.calls++;
	snprintf(graph.stage, sizeof(graph.stage), "%s", stage);
	snprintf(graph.knob, sizeof(graph.knob), "%s", knob);
	snprintf(graph.value, sizeof(graph.value), "%s", value);
}

static int refuse(char *why, size_t size)
{
	snprintf(why, size, "%s", graph.why ? graph.why : "");
	return graph.rc;
}

static int set_for(void *arg, const char *stage, const char *knob, const char *value,
    int64_t for_ns, char *why, size_t size)
{
	CU_ASSERT_PTR_EQUAL(arg, &made_up);
	note(stage, knob, value);
	graph.for_ns = for_ns;
	return refuse(why, size);
}

static int unset(void *arg, const char *stage, const char *knob, char *why, size_t size)
{
	CU_ASSERT_PTR_EQUAL(arg, &made_up);
	note(stage, knob, "");
	return refuse(why, size);
}

static int steer(void *arg, const char *stage, enum weir_steer how, char *why, size_t size)
{
	CU_ASSERT_PTR_EQUAL(arg, &made_up);
	note(stage, "", "");
	graph.how = how;
	return refuse(why, size);
}

static const struct weir_change rows[] = {
    {.id = 9,
	.at_ns = 1,
	.wall_ns = 3 * S / 2,
	.actor = "ci",
	.what = "set",
	.target = "disk.threads.max",
	.from = "32",
	.to = "8",
	.expires_wall_ns = 5 * S / 2},
    {.id = 4, .wall_ns = 0, .actor = "expiry", .what = "expire", .target = "disk", .undone = true},
};

static int undo(void *arg, struct weir_change *undone, char *why, size_t size)
{
	CU_ASSERT_PTR_EQUAL(arg, &made_up);
	graph.calls++;
	*undone = rows[0];
	return refuse(why, size);
}

static int changes(void *arg, struct weir_change *out, int n)
{
	CU_ASSERT_PTR_EQUAL(arg, &made_up);
	graph.n = n;
	memcpy(out, rows, sizeof(rows));
	return 2;
}

static int queue(void *arg, const char *stage, struct weir_queued *out, int n)
{
	CU_ASSERT_PTR_EQUAL(arg, &made_up);
	note(stage, "", "");
	graph.n = n;
	out[0] = (struct weir_queued){
	    .age_ns = S / 4, .left_ns = -S / 2, .class_name = "bulk", .type = "http.request"};
	if (n > 1)
		out[1] = (struct weir_queued){
		    .age_ns = 0, .left_ns = INT64_MAX, .class_name = "interactive", .type = "t"};
	return n > 1 ? 2 : 1;
}

/* With `able` false, a graph that offers none of the actions. */
static int ask_as(
    struct auth_pass *pass, bool able, const char *method, const char *target, const char *body)
{
	struct admin_source source = made_up_source(&made_up);

	if (able) {
		source.set_for = set_for;
		source.unset = unset;
		source.steer = steer;
		source.undo = undo;
		source.changes = changes;
		source.queue = queue;
	}
	graph.calls = graph.n = 0;
	reply_fini(&reply);
	routes_answer(&source, &process,
	    &(struct request){.method = method,
		.target = target,
		.host = "localhost:9900",
		.content_type = "application/json",
		.body = body,
		.n_body = strlen(body),
		.pass = pass},
	    &reply);
	CU_ASSERT_EQUAL(made_up.n_views, 0);
	return reply.status;
}

static int ask(const char *method, const char *target, const char *body)
{
	return ask_as(NULL, true, method, target, body);
}

static void setup(void)
{
	weir_log_set_fd(-1);
	made_up_init(&made_up);
	process = (struct process){.stat_fd = -1};
	memset(&graph, 0, sizeof(graph));
}

static json_t *body_json(void)
{
	json_t *json = json_loadb(reply.body, reply.n, JSON_REJECT_DUPLICATES, NULL);

	CU_ASSERT_PTR_NOT_NULL_FATAL(json);
	return json;
}

/* The response is this JSON, written with ' in place of ". */
static void is_json(const char *expected)
{
	json_t *found = body_json();
	char *text = strdup(expected);

	for (char *p = text; *p; p++)
		if (*p == '\'')
			*p = '"';
	json_t *want = json_loads(text, 0, NULL);
	CU_ASSERT_PTR_NOT_NULL(want);
	CU_ASSERT_TRUE(json_equal(found, want));
	if (!json_equal(found, want))
		fprintf(stderr, "expected %s\nbut found %.*s\n", text, (int)reply.n, reply.body);
	json_decref(want);
	json_decref(found);
	free(text);
}

/* The response is a problem with this status and exactly these words. */
static void is_problem(int status, const char *words)
{
	CU_ASSERT_EQUAL(reply.status, status);
	CU_ASSERT_STRING_EQUAL(reply.type, "application/problem+json");
	json_t *p = body_json();
	const char *detail = json_string_value(json_object_get(p, "detail"));
	CU_ASSERT_PTR_NOT_NULL_FATAL(detail);
	CU_ASSERT_STRING_EQUAL(detail, words);
	json_decref(p);
}

#define KNOB "/api/v1/stages/disk/knobs/threads.max"

static void test_values(void)
{
	static const char *const given[][2] = {{"\"8\"", "8"}, {"8", "8"}, {"-3", "-3"},
	    {"0.1", "0.1"}, {"1.5", "1.5"}, {"true", "true"}, {"false", "false"},
	    {"\" 64 KiB \"", " 64 KiB "}, {"\"\"", ""}, {"\"\\u00e4\\n\"", "\xc3\xa4\n"}};
	char body[128];

	setup();
	for (size_t i = 0; i < sizeof(given) / sizeof(given[0]); i++) {
		snprintf(body, sizeof(body), "{\"value\": %s}", given[i][0]);
		CU_ASSERT_EQUAL(ask("PUT", KNOB, body), 200);
		CU_ASSERT_EQUAL(graph.calls, 1);
		CU_ASSERT_STRING_EQUAL(graph.stage, "disk");
		CU_ASSERT_STRING_EQUAL(graph.knob, "threads.max");
		CU_ASSERT_STRING_EQUAL(graph.value, given[i][1]);
		CU_ASSERT_EQUAL(graph.for_ns, 0);
	}
	json_t *knob = body_json(); /* the knob as it is now */
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(knob, "name")), "threads.max");
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(knob, "effective")), "32");
	json_decref(knob);
}

/* A value holds for 0.1 s to 31 days, or for ever. */
static void test_times(void)
{
	static const struct {
		const char *text;
		int64_t ns;
	} good[] = {
	    {"\"10m\"", 600 * S}, {"\"100ms\"", S / 10}, {"\"744h\"", 744 * 3600 * S}, {"null", 0}};
	static const char *const bad[] = {"\"99ms\"", "\"744.1h\"", "\"10\"", "\"\"", "10", "true",
	    "[]", "{}", "\"0s\"", "\"-1s\""};
	char body[128];

	setup();
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		snprintf(body, sizeof(body), "{\"value\": \"8\", \"for\": %s}", good[i].text);
		CU_ASSERT_EQUAL(ask("PUT", KNOB, body), 200);
		CU_ASSERT_EQUAL(graph.calls, 1);
		CU_ASSERT_EQUAL(graph.for_ns, good[i].ns);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(body, sizeof(body), "{\"value\": \"8\", \"for\": %s}", bad[i]);
		CU_ASSERT_EQUAL(ask("PUT", KNOB, body), 422);
		CU_ASSERT_EQUAL(graph.calls, 0);
		json_t *p = body_json();
		CU_ASSERT_EQUAL(
		    strncmp(json_string_value(json_object_get(p, "detail")), "for: ", 5), 0);
		json_decref(p);
	}
	ask("PUT", KNOB, "{\"value\": \"8\", \"for\": 10}");
	is_problem(422, "for: the value must be a string like \"10m\"");
	ask("PUT", KNOB, "{\"value\": \"8\", \"for\": \"10\"}");
	is_problem(422, "for: '10' needs a unit: write 10ms or 10s");
	/* other keys besides `value` and `for` */
	static const char keys[] =
	    "the body must be {\"value\": \"...\"}, optionally with \"for\": \"10m\"";
	ask("PUT", KNOB, "{\"value\": \"8\", \"for\": \"10m\", \"x\": 1}");
	is_problem(400, keys);
	ask("PUT", KNOB, "{\"for\": \"10m\"}");
	is_problem(400, keys);
	ask("PUT", KNOB, "{\"value\": null, \"for\": \"10m\"}");
	is_problem(400, "the value must be a string, a number, true or false");
	CU_ASSERT_EQUAL(graph.calls, 0);
}

/* A refusal of the graph: its code decides the status, and its message is the detail. Without a
 * message, the detail is the text of the code. */
static void test_refusals(void)
{
	static const struct {
		int code, status;
	} refusal[] = {{WEIR_ENOENT, 404}, {WEIR_EBUSY, 409}, {WEIR_ENOMEM, 503},
	    {WEIR_EINVAL, 422}, {WEIR_ESYS, 422}};
	static const char *const request[][3] = {{"PUT", KNOB, "{\"value\": \"8\"}"},
	    {"DELETE", KNOB, ""}, {"POST", "/api/v1/stages/disk/pause", ""},
	    {"POST", "/api/v1/stages/disk/drain", "{}"},
	    {"POST", "/api/v1/stages/disk/resume", "{}"}, {"POST", "/api/v1/undo", "{}"}};

	setup();
	for (size_t i = 0; i < sizeof(refusal) / sizeof(refusal[0]); i++) {
		for (size_t k = 0; k < sizeof(request) / sizeof(request[0]); k++) {
			int status = refusal[i].status;
			if (k == 5 && refusal[i].code == WEIR_ENOENT)
				continue; /* see test_undo */
			graph.rc = refusal[i].code;
			graph.why = "no: because";
			ask(request[k][0], request[k][1], request[k][2]);
			is_problem(status, "no: because");
			graph.why = NULL;
			ask(request[k][0], request[k][1], request[k][2]);
			is_problem(status, weir_error_text(refusal[i].code));
			CU_ASSERT_EQUAL(graph.calls, 1);
		}
	}
	graph.rc = 0;
	for (size_t k = 1; k < sizeof(request) / sizeof(request[0]); k++) {
		ask_as(NULL, false, request[k][0], request[k][1], request[k][2]);
		is_problem(503, "this server does not offer this action");
	}
}

static void test_unset(void)
{
	setup();
	CU_ASSERT_EQUAL(ask("DELETE", KNOB, ""), 200);
	CU_ASSERT_EQUAL(graph.calls, 1);
	CU_ASSERT_STRING_EQUAL(graph.stage, "disk");
	CU_ASSERT_STRING_EQUAL(graph.knob, "threads.max");
	json_t *knob = body_json();
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(knob, "name")), "threads.max");
	json_decref(knob);
}

static void test_steer(void)
{
	static const struct {
		const char *path;
		enum weir_steer how;
	} verb[] = {{"/api/v1/stages/disk/pause", WEIR_STEER_PAUSE},
	    {"/api/v1/stages/disk/drain", WEIR_STEER_DRAIN},
	    {"/api/v1/stages/disk/resume", WEIR_STEER_RUN}};
	static const char *const empty[] = {"", "{}", " { }\n"};
	static const char *const full[] = {
	    "{", "[]", "null", "1", "\"\"", "{\"for\": \"10m\"}", "x", "{} x", "{}{}"};

	setup();
	for (size_t i = 0; i < sizeof(verb) / sizeof(verb[0]); i++) {
		for (size_t k = 0; k < sizeof(empty) / sizeof(empty[0]); k++) {
			CU_ASSERT_EQUAL(ask("POST", verb[i].path, empty[k]), 200);
			CU_ASSERT_TRUE(graph.calls == 1 && graph.how == verb[i].how);
			CU_ASSERT_STRING_EQUAL(graph.stage, "disk");
		}
		for (size_t k = 0; k < sizeof(full) / sizeof(full[0]); k++) {
			ask("POST", verb[i].path, full[k]);
			is_problem(
			    400, "this request takes no parameters: the body must be {} or empty");
			CU_ASSERT_EQUAL(graph.calls, 0);
		}
	}
	ask("POST", verb[0].path, "");
	is_json("{'name': 'disk', 'state': 'running', 'in_flight': 191}");
	made_up.view.stages[MADE_DISK].state = "paused";
	ask("POST", verb[0].path, "");
	is_json("{'name': 'disk', 'state': 'paused', 'in_flight': 191}");
	/* a reload has removed the stage meanwhile */
	ask("POST", "/api/v1/stages/gone/pause", "");
	is_problem(404, "there is no stage 'gone'");
	made_up.no_memory = true;
	ask("POST", verb[0].path, "");
	is_problem(503, "out of memory");
}

static void test_undo(void)
{
	setup();
	CU_ASSERT_EQUAL(ask("POST", "/api/v1/undo", ""), 200);
	is_json("{'undone': {'id': 9, 'at': 1.5, 'before_restart': false, 'actor': 'ci',"
		" 'what': 'set', 'target': 'disk.threads.max', 'from': '32', 'to': '8',"
		" 'expires_at': 2.5, 'undone': false}}");
	CU_ASSERT_EQUAL(ask("POST", "/api/v1/undo", "{\"id\": 9}"), 400);
	CU_ASSERT_EQUAL(graph.calls, 0);
	graph.rc = WEIR_ENOENT;
	graph.why = "there is no change to undo";
	ask("POST", "/api/v1/undo", "");
	is_problem(409, graph.why);
}

static void test_changes(void)
{
	static const char first[] = "{'id': 9, 'at': 1.5, 'before_restart': false, 'actor': 'ci', "
				    "'what': 'set', 'target': 'disk.threads.max',"
				    " 'from': '32', 'to': '8', 'expires_at': 2.5, 'undone': false}";
	static const char second[] = "{'id': 4, 'at': null, 'before_restart': true, 'actor': "
				     "'expiry', 'what': 'expire', 'target': 'disk',"
				     " 'from': '', 'to': '', 'expires_at': null, 'undone': true}";
	char text[1024];

	setup();
	CU_ASSERT_EQUAL(ask("GET", "/api/v1/changes", ""), 200);
	CU_ASSERT_TRUE(graph.n >= 256); /* all that the graph keeps */
	snprintf(text, sizeof(text), "{'changes': [%s, %s], 'next': null}", first, second);
	is_json(text);
	CU_ASSERT_EQUAL(ask("GET", "/api/v1/acts?limit=1", ""), 200);
	snprintf(
	    text, sizeof(text), "{'acts': [%s], 'next': '/api/v1/acts?limit=1&before=9'}", first);
	is_json(text);
	CU_ASSERT_EQUAL(ask("GET", "/api/v1/changes?limit=1&before=9", ""), 200);
	snprintf(text, sizeof(text), "{'changes': [%s], 'next': null}", second);
	is_json(text);
	CU_ASSERT_EQUAL(ask("GET", "/api/v1/changes?limit=1&after=4", ""), 200);
	snprintf(text, sizeof(text), "{'changes': [%s], 'next': null}", first);
	is_json(text);
	CU_ASSERT_EQUAL(ask("GET", "/api/v1/changes?limit=1", ""), 200);
	snprintf(text, sizeof(text),
	    "{'changes': [%s], 'next': '/api/v1/changes?limit=1&before=9'}", first);
	is_json(text);
	ask("GET", "/api/v1/changes?limit=501", "");
	is_problem(400, "limit must be a whole number from 1 to 500");
	CU_ASSERT_EQUAL(ask_as(NULL, false, "GET", "/api/v1/changes", ""), 200);
	is_json("{'changes': [], 'next': null}");
}

#define QUEUE "/api/v1/stages/disk/queue"

static void test_queue(void)
{
	setup();
	CU_ASSERT_EQUAL(ask("GET", QUEUE, ""), 200);
	CU_ASSERT_EQUAL(graph.n, 20);
	CU_ASSERT_STRING_EQUAL(graph.stage, "disk");
	is_json("{'length': 187, 'oldest': ["
		"{'age': 0.25, 'class': 'bulk', 'deadline_left': -0.5, 'type': 'http.request'},"
		"{'age': 0.0, 'class': 'interactive', 'deadline_left': null, 'type': 't'}]}");
	CU_ASSERT_EQUAL(ask("GET", QUEUE "?n=1", ""), 200);
	CU_ASSERT_EQUAL(graph.n, 1);
	is_json("{'length': 187, 'oldest': ["
		"{'age': 0.25, 'class': 'bulk', 'deadline_left': -0.5, 'type': 'http.request'}]}");
	CU_ASSERT_EQUAL(ask("GET", QUEUE "?n=100", ""), 200);
	CU_ASSERT_EQUAL(graph.n, 100);
	static const char *const bad[] = {"?n=0", "?n=101", "?n=", "?n=x"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char path[64];
		snprintf(path, sizeof(path), "%s%s", QUEUE, bad[i]);
		ask("GET", path, "");
		is_problem(400, "n must be a whole number from 1 to 100");
	}
	CU_ASSERT_EQUAL(graph.calls, 0);
	made_up.view.stages[MADE_DISK].queue_limit = 1;
	CU_ASSERT_EQUAL(ask("GET", QUEUE, ""), 200);
	ask("GET", "/api/v1/stages/cache/queue", "");
	is_problem(422, "stage 'cache' is inline and has no queue");
	ask("GET", "/api/v1/stages/web/queue", "");
	is_problem(422, "stage 'web' is a source and has no queue");
	ask("GET", "/api/v1/stages/gone/queue", "");
	is_problem(404, "there is no stage 'gone'");
	ask("GET", "/api/v1/stages/dissk/queue", "");
	is_problem(404, "there is no stage 'dissk', did you mean 'disk'?");
	CU_ASSERT_EQUAL(graph.calls, 0);
	ask_as(NULL, false, "GET", QUEUE, "");
	is_problem(503, "this server does not offer this action");
}

/* Only operators make changes. */
static void test_roles(void)
{
	struct auth_pass viewer = {.role = WEIR_ADMIN_VIEWER, .name = "eve"};
	struct auth_pass operator= {.role = WEIR_ADMIN_OPERATOR, .name = "ann"};
	static const char *const request[][3] = {{"PUT", KNOB, "{\"value\": \"8\"}"},
	    {"DELETE", KNOB, ""}, {"POST", "/api/v1/stages/disk/pause", ""},
	    {"POST", "/api/v1/undo", "{}"}};

	setup();
	for (size_t k = 0; k < sizeof(request) / sizeof(request[0]); k++) {
		ask_as(&viewer, true, request[k][0], request[k][1], request[k][2]);
		is_problem(403, "this request needs the role operator, and 'eve' is a viewer");
		CU_ASSERT_EQUAL(graph.calls, 0);
		CU_ASSERT_EQUAL(
		    ask_as(&operator, true, request[k][0], request[k][1], request[k][2]), 200);
		CU_ASSERT_EQUAL(graph.calls, 1);
	}
	CU_ASSERT_EQUAL(ask_as(&viewer, true, "GET", "/api/v1/changes", ""), 200);
	CU_ASSERT_EQUAL(ask_as(&viewer, true, "GET", QUEUE, ""), 200);
}

/* The text that was logged since the last call. */
static const char *logged(int fd)
{
	static char text[4096];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	CU_ASSERT_EQUAL(ftruncate(fd, 0), 0);
	CU_ASSERT_EQUAL(lseek(fd, 0, SEEK_SET), 0);
	return text;
}

/* Every attempt is logged with its author and its result. */
static void test_log(void)
{
	struct auth_pass ann = {.role = WEIR_ADMIN_OPERATOR, .name = "ann"};
	int fd = memfd_create("log", MFD_CLOEXEC);

	setup();
	CU_ASSERT_FATAL(fd >= 0);
	weir_log_set_fd(fd);
	ask_as(&ann, true, "PUT", KNOB, "{\"value\": \"8\"}");
	const char *text = logged(fd);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "admin: ann: PUT " KNOB ": done"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "level=info"));
	graph.rc = WEIR_EBUSY;
	graph.why = "not now";
	ask("DELETE", KNOB, "");
	text = logged(fd);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "admin: operator: DELETE " KNOB ": not now"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "level=warn"));
	weir_log_set_fd(2);
	close(fd);
}

CUNIT_MAIN("changes at the endpoint", {"values", test_values}, {"times", test_times},
    {"refusals", test_refusals}, {"unset", test_unset}, {"steer", test_steer}, {"undo", test_undo},
    {"the list of changes", test_changes}, {"the contents of a queue", test_queue},
    {"roles", test_roles}, {"the log", test_log})
