/* SPDX-License-Identifier: MIT */
/* Sessions as routes: begun with a token, shown, and ended; refused where there is nothing to begin
 * or to end. */
#include "admin/api/login.h"

#include <time.h>

#include "auth_rig.h"
#include "made_up.h"
#include "admin/api/routes.h"

#define SESSION "/api/v1/session"

static struct made_up made_up;
static struct process process = {.stat_fd = -1};
static struct reply reply;

/* The response is in `reply`; the pass is that of the last ask_at. */
static int answer_at(const char *method, const char *target, struct auth *g)
{
	struct admin_source source = made_up_source(&made_up);
	struct request q = {.method = method,
	    .target = target,
	    .host = "localhost:9900",
	    .content_type = "application/json",
	    .auth = g,
	    .pass = g ? &pass : NULL};

	reply_fini(&reply);
	routes_answer(&source, &process, &q, &reply);
	return reply.status;
}

static int answer(const char *method, struct auth *g)
{
	return answer_at(method, SESSION, g);
}

static bool says(const char *words)
{
	return memmem(reply.body, reply.n, words, strlen(words)) != NULL;
}

static int64_t clock_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * S + t.tv_nsec;
}

static void test_session(void)
{
	char fields[200];

	begin_tokens();
	made_up_init(&made_up);
	CU_ASSERT_EQUAL(ask("POST", SESSION, bearer(BOSS)), 200);
	CU_ASSERT_EQUAL(answer("GET", auth), 200);
	CU_ASSERT(says("\"name\":\"boss\"") && says("\"role\":\"operator\""));
	CU_ASSERT(says("\"tokens\":true") && says("\"ends_in_seconds\":null"));
	CU_ASSERT_STRING_EQUAL(reply.cookie, "");
	CU_ASSERT_EQUAL(answer("DELETE", auth), 409); /* a token is not a session */
	CU_ASSERT(says("this request has no session"));

	CU_ASSERT_EQUAL(answer("POST", auth), 200);
	CU_ASSERT(says("\"name\":\"boss\"") && !says("\"ends_in_seconds\":null"));
	CU_ASSERT_EQUAL(strncmp(reply.cookie, "weir-9900=", 10), 0);
	snprintf(fields, sizeof(fields), "Cookie: %.*s\r\nOrigin: http://localhost\r\n",
	    (int)strcspn(reply.cookie, ";"), reply.cookie);
	CU_ASSERT_EQUAL(ask_at("192.0.2.1", clock_now_ns(), "POST", SESSION, fields), 200);
	CU_ASSERT_EQUAL(answer("POST", auth), 409);
	CU_ASSERT(says("you already have a session"));
	CU_ASSERT_STRING_EQUAL(reply.cookie, "");
	CU_ASSERT_EQUAL(answer("GET", auth), 200);
	CU_ASSERT(says("\"ends_in_seconds\":") && !says("\"ends_in_seconds\":null"));

	CU_ASSERT_EQUAL(answer("DELETE", auth), 200);
	CU_ASSERT_PTR_NOT_NULL(strstr(reply.cookie, "Max-Age=0"));
	CU_ASSERT_EQUAL(answer("DELETE", auth), 409); /* the session has ended */
	CU_ASSERT_EQUAL(ask_at("192.0.2.1", clock_now_ns(), "GET", SESSION, fields), 401);
	reply_fini(&reply);
	end_all();
}

/* An endpoint that requires no token, or has no auth at all. */
static void test_nothing_to_begin(void)
{
	begin("127.0.0.1:9900");
	made_up_init(&made_up);
	open_gate();
	CU_ASSERT_EQUAL(ask("POST", SESSION, ""), 200);
	for (int with = 0; with < 2; with++) {
		struct auth *g = with ? auth : NULL;
		CU_ASSERT_EQUAL(answer("POST", g), 409);
		CU_ASSERT(says("no token is needed here"));
		CU_ASSERT_EQUAL(answer("DELETE", g), 409);
		CU_ASSERT(says("this request has no session"));
		CU_ASSERT_EQUAL(answer("GET", g), 200);
		CU_ASSERT(says("\"name\":\"operator\"") && says("\"role\":\"operator\""));
		CU_ASSERT(says("\"tokens\":false") && says("\"ends_in_seconds\":null"));
	}
	reply_fini(&reply);
	end_all();
}

/* A viewer may begin and end a session. The 403 for a change gives the reason. */
static void test_viewer(void)
{
	begin_tokens();
	made_up_init(&made_up);
	CU_ASSERT_EQUAL(ask("POST", SESSION, bearer(EYE)), 200);
	CU_ASSERT_EQUAL(answer_at("POST", "/api/v1/undo", auth), 403);
	CU_ASSERT(says("this request needs the role operator, and 'eye' is a viewer"));
	CU_ASSERT_EQUAL(answer("POST", auth), 200);
	CU_ASSERT(says("\"role\":\"viewer\""));
	reply_fini(&reply);
	end_all();
}

CUNIT_MAIN("login", {"a session", test_session}, {"nothing to begin", test_nothing_to_begin},
    {"a viewer", test_viewer})
