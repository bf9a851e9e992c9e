/* SPDX-License-Identifier: MIT */
/* Hints that clients and server exchange in addition to requests and answers: deadlines, users,
 * retries; why a request was refused, when to retry, and the quality of an answer. */
#include "fixture/http/server.h"

#include "stage/shed_token.h"
#include "stage/stage.h"

/* `token`, if not 0, replaces the trace id. `refusal`: the reason with which the stage refuses; 0:
 * it answers. */
static uint64_t token;
static int refusal;

/* The written fields must be within the allocated memory. */
static void check_bounds(struct weir_http_tap *tap, struct weir_http_request *req, int status)
{
	(void)tap, (void)status;
	CU_ASSERT(req->n_fields <= req->fields_size);
	CU_ASSERT_EQUAL(
	    req->fields == req->fields_inline, req->fields_size == sizeof(req->fields_inline));
}

static struct weir_http_tap bounds = {.fn = check_bounds}; /* one request at a time is refused */

/* Answers with "session left": the session in hex, the seconds to the deadline (-1: none). Or
 * refuses. */
static void hints_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		struct weir_http_request *req = weir_http_request(ev[i]);
		int64_t left_ns = weir_remaining_ns(st, ev[i]);
		char text[64];
		int bytes = snprintf(text, sizeof(text), "%08x %lld", ev[i]->session,
		    left_ns == INT64_MAX ? -1LL : (long long)(left_ns / 1000000000));
		CU_ASSERT_EQUAL(ev[i]->trace_id >> 63, 0);
		if (refusal) {
			weir_http_add_tap(req, &bounds);
			weir_http_add_field(req, "X-Early", "of an answer that is not given");
			ev[i]->trace_id = token ? token : ev[i]->trace_id;
			weir_event_finish(&ev[i], refusal);
			continue;
		}
		weir_event_finish(&ev[i], weir_http_respond_copy(req, 200, "text/plain",
					      (struct weir_slice){text, (size_t)bytes}));
	}
}

static const struct weir_stage_ops hints_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.hints",
    .summary = "says what it was told",
    .accepts = &weir_http_request_type,
    .handle = hints_handle};

static struct server hints_server(void)
{
	static bool registered;

	if (!registered)
		fixture_register(&hints_ops);
	registered = true;
	token = 0;
	refusal = 0;
	return server_new("t.hints");
}

/* Send a GET with the further `fields` on its own connection and read the answer. */
static void ask(const struct server *s, const char *fields, struct answer *a)
{
	char text[512];
	int fd = client_open(s->port);

	snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nHost: t\r\n%s\r\n", fields);
	CU_ASSERT(client_say(fd, text));
	CU_ASSERT(answer_read(fd, a));
	close(fd);
}

/* Session and remaining seconds as seen by the stage. */
static unsigned session_of(const struct server *s, const char *fields, long long *left_s)
{
	struct answer a = {0};
	unsigned session = 0;
	long long left = 0;

	ask(s, fields, &a);
	CU_ASSERT_EQUAL(a.status, 200);
	CU_ASSERT_EQUAL(sscanf(a.body ? a.body : "", "%x %lld", &session, &left), 2);
	answer_free(&a);
	if (left_s)
		*left_s = left;
	return session;
}

static void test_repeated_attempts(void)
{
	struct server s = hints_server();

	fixture_set(s.web, "with.user", "header.x-user");
	server_start(&s);
	CU_ASSERT_EQUAL(session_of(&s, "", NULL), 0);
	CU_ASSERT_EQUAL(session_of(&s, "X-Retry-Attempt: 0\r\n", NULL), 0);
	CU_ASSERT_EQUAL(session_of(&s, "X-Retry-Attempt: 1\r\n", NULL), WEIR_SESSION_RETRY);
	CU_ASSERT_EQUAL(session_of(&s, "X-Retry-Attempt: 300\r\n", NULL), 0);
	AWAIT_METRIC(&s, "http_hints_ignored_total", ==, 1);
	unsigned user = session_of(&s, "X-User: 17\r\n", NULL);
	CU_ASSERT(user != 0 && (user & WEIR_SESSION_RETRY) == 0);
	CU_ASSERT_EQUAL(session_of(&s, "X-User: 17\r\nX-Retry-Attempt: 2\r\n", NULL),
	    user | WEIR_SESSION_RETRY);
	server_stop(&s);
}

/* A server with a single class, whose objective is half an hour. */
static struct server deadline_server(const char *mode)
{
	struct server s = hints_server();

	if (mode)
		fixture_set(s.web, "with.deadline", mode);
	weir_spec_add_class(s.spec, "only")->slo_ns = 1800000000000;
	server_start(&s);
	return s;
}

static void test_deadlines(void)
{
	struct server s = deadline_server(NULL);
	long long left_s;

	session_of(&s, "", &left_s);
	CU_ASSERT_EQUAL(left_s, -1);
	session_of(&s, "X-Deadline-Ms: 900000\r\n", &left_s);
	CU_ASSERT(left_s > 0 && left_s < 900);
	server_stop(&s);

	s = deadline_server("slo");
	session_of(&s, "", &left_s);
	CU_ASSERT(left_s > 900 && left_s < 1800);
	session_of(&s, "X-Deadline-Ms: 900000\r\n", &left_s); /* the shorter of both */
	CU_ASSERT(left_s > 0 && left_s < 900);
	session_of(&s, "X-Deadline-Ms: 3600000\r\n", &left_s);
	CU_ASSERT(left_s > 900 && left_s < 1800);
	server_stop(&s);

	s = deadline_server("none");
	session_of(&s, "X-Deadline-Ms: 900000\r\n", &left_s);
	CU_ASSERT_EQUAL(left_s, -1);
	session_of(&s, "X-Deadline-Ms: soon\r\n", &left_s);
	CU_ASSERT_EQUAL(server_metric(&s, "http_hints_ignored_total"), 0);
	server_stop(&s);
}

/* Retry-After of an answer to a request with `fields`. */
static int retry_after(const struct server *s, const char *fields)
{
	struct answer a = {0};

	ask(s, fields, &a);
	CU_ASSERT_EQUAL(a.status, 503);
	const char *text = field_in(a.head, "Retry-After");
	int seconds = text ? atoi(text) : -1;
	answer_free(&a);
	return seconds;
}

static void test_why_and_when(void)
{
	struct server s = hints_server();
	struct answer a = {0};
	struct shed_token t = {.reason_index = (uint8_t)weir_shed_index(WEIR_EPRIORITY),
	    .stage = 1,
	    .user = 192,
	    .part = shed_token_part(0.25),
	    .wait = 64,
	    .at = 12345};
	char id[WEIR_SHED_ID_BYTES];

	fixture_set(s.web, "with.user", "header.x-user");
	fixture_set(s.app, "slo", "3s");
	server_start(&s);
	refusal = WEIR_EPRIORITY;
	token = shed_token_pack(&t);
	shed_token_print(token, id);
	ask(&s, "", &a);
	CU_ASSERT_STRING_EQUAL(field_in(a.head, "X-Weir-Shed-Id"), id);
	CU_ASSERT_STRING_EQUAL(
	    field_in(a.head, "X-Weir-Shed"), "stage=app; reason=priority; class=default");
	CU_ASSERT_EQUAL(retry_after(&s, "X-User: 17\r\n"), 7); /* ceil(10 s * (0.75 - 0.25 / 2)) */
	CU_ASSERT_EQUAL(retry_after(&s, "X-User: 17\r\nX-Retry-Attempt: 1\r\n"), 7);
	int seconds = retry_after(&s, "");
	CU_ASSERT(seconds >= 1 && seconds <= 2);
	seconds = retry_after(&s, "X-Retry-Attempt: 1\r\n"); /* without a user as well */
	CU_ASSERT(seconds >= 1 && seconds <= 2);

	t.reason_index = (uint8_t)weir_shed_index(refusal = WEIR_EDELAY);
	token = shed_token_pack(&t);
	CU_ASSERT_EQUAL(retry_after(&s, "X-User: 17\r\n"), 6); /* twice the objective */
	seconds = retry_after(&s, "X-Retry-Attempt: 1\r\n");
	CU_ASSERT(seconds >= 3 && seconds <= 9);
	CU_ASSERT_NOT_EQUAL(seconds, 6); /* spread by the token, which is always the same */
	CU_ASSERT_EQUAL(retry_after(&s, ""), seconds);

	token = 0; /* a refusal by the stage itself */
	ask(&s, "X-User: 17\r\n", &a);
	CU_ASSERT_PTR_NULL(field_in(a.head, "X-Weir-Shed-Id"));
	CU_ASSERT_PTR_NULL(field_in(a.head, "X-Early"));
	CU_ASSERT_STRING_EQUAL(field_in(a.head, "Retry-After"), "1");

	refusal = WEIR_ECLOSED; /* too late for this server */
	ask(&s, "X-User: 17\r\n", &a);
	CU_ASSERT_EQUAL(a.status, 503);
	CU_ASSERT_PTR_NULL(field_in(a.head, "X-Early"));
	CU_ASSERT_PTR_NULL(field_in(a.head, "X-Weir-Shed"));
	const char *when = field_in(a.head, "Retry-After");
	CU_ASSERT_STRING_EQUAL(when ? when : "none", "1");
	answer_free(&a);
	server_stop(&s);
}

#define TRACE  "4bf92f3577b34da6a3ce929d0e0e4736"
#define TRACED "Traceparent: 00-" TRACE "-00f067aa0ba902b7-01\r\n"

static const struct shed_token longest = {.stage = SHED_TOKEN_STAGE_UNKNOWN,
    .class_id = 7,
    .user = 255,
    .part = SHED_TOKEN_PART_ALL,
    .wait = SHED_TOKEN_WAIT_UNKNOWN,
    .at = SHED_TOKEN_AT_WRAP - 1};

/* Stage and class have names of `n` letters: all fields of a traced refusal are complete, and
 * within their memory. */
static void check_names(size_t n)
{
	struct server s = hints_server();
	struct answer a = {0};
	struct shed_token t = longest;
	char name[WEIR_NAME_MAX + 1], shed[512], id[WEIR_SHED_ID_BYTES];

	memset(name, 'n', sizeof(name));
	name[n] = '\0';
	weir_spec_text(&s.app->name, name);
	weir_spec_text(&s.web->to[0].stage, name);
	weir_spec_add_class(s.spec, name);
	server_start(&s);
	refusal = WEIR_EPRIORITY;
	t.reason_index = (uint8_t)weir_shed_index(refusal);
	token = shed_token_pack(&t);
	shed_token_print(token, id);
	ask(&s, TRACED, &a);
	snprintf(
	    shed, sizeof(shed), "stage=%s; reason=priority; class=%s; trace=" TRACE, name, name);
	CU_ASSERT_EQUAL(a.status, 503);
	CU_ASSERT_STRING_EQUAL(field_in(a.head, "X-Weir-Shed"), shed);
	CU_ASSERT_STRING_EQUAL(field_in(a.head, "X-Weir-Shed-Id"), id);
	CU_ASSERT_PTR_NOT_NULL(field_in(a.head, "Retry-After"));
	answer_free(&a);
	server_stop(&s);
}

/* Up to the longest names; from some length on, the fields exceed the inline memory of a
 * request. */
static void test_names_of_all_lengths(void)
{
	for (size_t n = 1; n <= WEIR_NAME_MAX; n += 9)
		check_names(n);
}

static void test_quality(void)
{
	struct server s = server_new("burn");
	struct answer a = {0};

	fixture_set(s.app, "with.time", "0s");
	fixture_set(s.app, "with.least", "25%");
	server_start(&s);
	ask(&s, "", &a);
	CU_ASSERT_EQUAL(a.status, 204);
	CU_ASSERT_STRING_EQUAL(field_in(a.head, "X-Quality"), "1.00");
	atomic_store(&weir_graph_stage(s.graph, "app")->degraded, 8);
	ask(&s, "", &a);
	CU_ASSERT_STRING_EQUAL(field_in(a.head, "X-Quality"), "0.40");
	CU_ASSERT_EQUAL(server_metric(&s, "burn_degraded_total"), 1);
	answer_free(&a);
	server_stop(&s);
}

CUNIT_MAIN("http hints", {"repeated attempts", test_repeated_attempts},
    {"deadlines", test_deadlines}, {"why and when", test_why_and_when},
    {"names of all lengths", test_names_of_all_lengths}, {"quality", test_quality})
