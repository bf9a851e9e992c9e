/* SPDX-License-Identifier: MIT */
/* The admin endpoint on a real graph: numbers that follow the work, changes of knobs, readiness
 * through a drain, and answers while every handler is stuck. Admission of admin requests is tested
 * in tests/unit/admin/test_connections.c. */
#include "fixture/http/server.h"

#include <jansson.h>

#include "admin/admin.h"

struct watched {
	struct server server;
	struct admin *admin;
	struct answer answer; /* of the last admin_ask */
};

static void watched_start(struct watched *w)
{
	struct weir_err err = {0};

	server_start(&w->server);
	CU_ASSERT_EQUAL_FATAL(
	    admin_start(w->server.graph, NULL, "127.0.0.1:0", &w->admin, &err), 0);
}

static void watched_stop(struct watched *w)
{
	answer_free(&w->answer);
	admin_stop(w->admin);
	server_stop(&w->server);
}

/* Send a request to the admin endpoint. Returns the status; the body is in w->answer until the next
 * call. */
static int admin_ask(struct watched *w, const char *method, const char *path, const char *body)
{
	char request[1024];
	int port = admin_port(w->admin);
	int fd = client_open(port);

	snprintf(request, sizeof(request),
	    "%s %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\n"
	    "Content-Length: %zu\r\n\r\n%s",
	    method, path, port, strlen(body), body);
	CU_ASSERT(client_say(fd, request));
	CU_ASSERT(answer_read(fd, &w->answer));
	CU_ASSERT(client_at_end(fd));
	close(fd);
	return w->answer.status;
}

static int admin_get(struct watched *w, const char *path)
{
	return admin_ask(w, "GET", path, "");
}

static bool answer_has(const struct watched *w, const char *text)
{
	return w->answer.body && strstr(w->answer.body, text);
}

/* A number of stage "app", by its path in the JSON. */
static json_int_t app_number(struct watched *w, const char *section, const char *key)
{
	CU_ASSERT_EQUAL(admin_get(w, "/api/v1/stages/app"), 200);
	json_t *app = json_loads(w->answer.body, 0, NULL);
	const json_t *from = section ? json_object_get(app, section) : app;
	if (json_is_array(from))
		from = json_array_get(from, 0);
	json_int_t value = json_integer_value(json_object_get(from, key));
	json_decref(app);
	return value;
}

static void test_numbers(void)
{
	struct watched w = {.server = server_new("t.reply")};
	struct answer a = {0};

	watched_start(&w);
	int fd = client_open(w.server.port);
	for (int i = 0; i < 3; i++) {
		CU_ASSERT(client_say(fd, GET("/x")));
		CU_ASSERT(answer_read(fd, &a));
	}
	FIXTURE_AWAIT(app_number(&w, "classes", "completed_total") == 3);
	CU_ASSERT_EQUAL(app_number(&w, "classes", "offered_total"), 3);
	FIXTURE_AWAIT(app_number(&w, NULL, "batch_events_total") == 3);
	CU_ASSERT_EQUAL(admin_get(&w, "/metrics"), 200);
	CU_ASSERT(
	    answer_has(&w, "\nweir_stage_completed_total{stage=\"app\",class=\"default\"} 3\n"));
	CU_ASSERT(answer_has(
	    &w, "\nweir_stage_service_seconds_count{stage=\"app\",class=\"default\"} 3\n"));
	/* a response is counted once it has been sent */
	FIXTURE_AWAIT(admin_get(&w, "/metrics") == 200 &&
		      answer_has(&w, "\nweir_request_seconds_count{stage=\"web\",class="
				     "\"default\",outcome=\"ok\"} 3\n"));
	CU_ASSERT(answer_has(&w, "\nweir_request_seconds_count{stage=\"web\",class=\"default\","
				 "outcome=\"failed\"} 0\n"));
	CU_ASSERT(answer_has(&w, "\nweir_http_connections{stage=\"web\"} 1\n"));
	CU_ASSERT_EQUAL(admin_get(&w, "/api/v1/graph"), 200);
	CU_ASSERT(answer_has(&w, "\"from\":\"web\""));
	close(fd);
	answer_free(&a);
	watched_stop(&w);
}

#define KNOB(name) "/api/v1/stages/app/knobs/" name

/* A refusal has the same words as one of weir_graph_set. */
static void refused_like_the_graph(struct watched *w, const char *knob, const char *value)
{
	char path[128], body[128], why[400] = "";

	int rc = weir_graph_set(w->server.graph, "app", knob, value, why, sizeof(why));
	CU_ASSERT_NOT_EQUAL(rc, 0);
	snprintf(path, sizeof(path), KNOB("%s"), knob);
	snprintf(body, sizeof(body), "{\"value\": \"%s\"}", value);
	CU_ASSERT_EQUAL(admin_ask(w, "PUT", path, body), rc == WEIR_ENOENT ? 404 : 422);
	json_t *problem = json_loads(w->answer.body, 0, NULL);
	const char *detail = json_string_value(json_object_get(problem, "detail"));
	CU_ASSERT_PTR_NOT_NULL_FATAL(detail);
	CU_ASSERT_STRING_EQUAL(detail, why);
	json_decref(problem);
}

static void test_knobs(void)
{
	struct watched w = {.server = server_new("t.reply")};

	watched_start(&w);
	CU_ASSERT_EQUAL(admin_ask(&w, "PUT", KNOB("threads.max"), "{\"value\": \"3\"}"), 200);
	CU_ASSERT(answer_has(&w, "\"value\":\"3\""));
	CU_ASSERT_EQUAL(admin_get(&w, KNOB("threads.max")), 200);
	CU_ASSERT(answer_has(&w, "\"value\":\"3\"") && answer_has(&w, "\"live\":true"));
	CU_ASSERT_EQUAL(app_number(&w, "threads", "max"), 3);
	CU_ASSERT_EQUAL(admin_get(&w, "/api/v1/decisions"), 200);
	CU_ASSERT(answer_has(&w, "\"actor\":\"operator\""));
	refused_like_the_graph(&w, "threads.max", "many");
	refused_like_the_graph(&w, "threads.max", "0");
	refused_like_the_graph(&w, "threads.policy", "static");
	refused_like_the_graph(&w, "threads.most", "3");
	CU_ASSERT_EQUAL(app_number(&w, "threads", "max"), 3);
	CU_ASSERT_EQUAL(admin_get(&w, "/api/v1/stages/app/knobs"), 200);
	CU_ASSERT(answer_has(&w, "\"name\":\"queue.limit\""));
	CU_ASSERT(answer_has(&w, "\"name\":\"slo\"")); /* a knob outside of sections */
	CU_ASSERT_EQUAL(admin_get(&w, "/api/v1/stages/web/knobs"), 200);
	CU_ASSERT(answer_has(&w, "\"name\":\"with.linger\",\"value\":\"100ms\""));
	watched_stop(&w);
}

/* All handlers wait at a gate: the endpoint still answers and shows that. */
static void test_stuck(void)
{
	struct watched w = {.server = server_new("t.reply")};
	struct answer a = {0};

	fixture_set(w.server.app, "threads.max", "1");
	fixture_set(w.server.app, "queue.limit", "1");
	fixture_set(w.server.app, "cohort.max", "1");
	watched_start(&w);
	int stuck = client_open(w.server.port), queued = client_open(w.server.port);
	int late = client_open(w.server.port);
	CU_ASSERT(client_say(stuck, GET("/wait/go")));
	gate_await(1);
	CU_ASSERT_EQUAL(admin_get(&w, "/healthz"), 200);
	CU_ASSERT_EQUAL(app_number(&w, "threads", "busy"), 1);
	CU_ASSERT(client_say(queued, GET("/wait/go")));
	FIXTURE_AWAIT(app_number(&w, "queue", "length") == 1);
	CU_ASSERT(client_say(late, GET("/x")));
	CU_ASSERT(answer_read(late, &a));
	CU_ASSERT_EQUAL(a.status, 503);
	CU_ASSERT_EQUAL(admin_get(&w, "/metrics"), 200);
	CU_ASSERT(answer_has(&w,
	    "weir_stage_shed_total{stage=\"app\",class=\"default\",reason=\"queue_full\"} 1\n"));
	CU_ASSERT(!answer_has(&w, "weir_stage_longest_running_seconds{stage=\"app\"} 0\n"));
	CU_ASSERT(!answer_has(&w, "weir_stage_oldest_wait_seconds{stage=\"app\"} 0\n"));
	gate_open("go");
	CU_ASSERT(answer_read(stuck, &a) && a.status == 200);
	CU_ASSERT(answer_read(queued, &a) && a.status == 200);
	close(stuck);
	close(queued);
	close(late);
	answer_free(&a);
	watched_stop(&w);
}

static void *drain(void *arg)
{
	struct watched *w = arg;
	struct weir_drain_report report = {0};

	weir_graph_drain(w->server.graph, 60000000000LL, &report);
	CU_ASSERT_EQUAL(report.closed, 0);
	return NULL;
}

/* Ready, then draining with work in flight, then stopped; healthy all the time. */
static void test_readiness(void)
{
	struct watched w = {.server = server_new("t.reply")};
	struct answer a = {0};
	pthread_t thread;

	watched_start(&w);
	CU_ASSERT_EQUAL(admin_get(&w, "/readyz"), 200);
	int fd = client_open(w.server.port);
	CU_ASSERT(client_say(fd, GET("/wait/go")));
	gate_await(1);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, drain, &w), 0);
	FIXTURE_AWAIT(admin_get(&w, "/readyz") == 503);
	CU_ASSERT(answer_has(&w, "draining"));
	CU_ASSERT_EQUAL(admin_get(&w, "/healthz"), 200);
	CU_ASSERT_EQUAL(app_number(&w, NULL, "in_flight"), 1);
	gate_open("go");
	CU_ASSERT(answer_read(fd, &a) && a.status == 200);
	pthread_join(thread, NULL);
	CU_ASSERT_EQUAL(admin_get(&w, "/readyz"), 503);
	CU_ASSERT_EQUAL(admin_get(&w, "/healthz"), 200);
	close(fd);
	answer_free(&a);
	answer_free(&w.answer);
	admin_stop(w.admin);
	weir_graph_free(w.server.graph);
}

CUNIT_MAIN("admin", {"numbers follow the work", test_numbers}, {"knobs", test_knobs},
    {"every handler stuck", test_stuck}, {"readiness through a drain", test_readiness})
