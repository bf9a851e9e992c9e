/* SPDX-License-Identifier: MIT */
/* Tests of stages (weir/test.h): outlets, events of an own type, answers in parts, and the clock. The
 * example of the guide, tests/plugin/vote, has the rest. */
#include <weir/test.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/clock.h>
#include <weir/http.h>

#include "cunit_main.h"

static struct weir_errs errs;

/* ---- a stage of requests ---- */

enum { LEFT, RIGHT };
static const struct weir_outlet tell_outlets[] = {{.name = "left", .type = &weir_http_request_type},
    {.name = "right", .type = &weir_http_request_type}, {0}};

/* /left and /right leave; /parts is answered in chunks; others get the time in seconds. */
static void tell_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		struct weir_http_request *req = weir_http_request(ev[i]);
		char text[32];
		int size = snprintf(text, sizeof(text), "%lld",
		    (long long)(weir_clock_ns(CLOCK_MONOTONIC) / 1000000000));
		if (weir_slice_is(req->path, "/left")) {
			weir_emit(st, LEFT, &ev[i]);
		} else if (weir_slice_is(req->path, "/right")) {
			weir_emit(st, RIGHT, &ev[i]);
		} else if (weir_slice_is(req->path, "/parts")) {
			int rc = weir_http_stream_begin(req, 200, "text/plain");
			if (rc == 0)
				weir_http_stream_write(req, (struct weir_slice){"one ", 4});
			if (rc == 0)
				weir_http_stream_write(req, (struct weir_slice){"two", 3});
			weir_event_finish(&ev[i], rc);
		} else {
			weir_http_add_field(req, "X-Test", "yes");
			weir_event_finish(&ev[i], weir_http_respond_copy(req, 200, "text/plain",
						      (struct weir_slice){text, (size_t)size}));
		}
	}
}

static const struct weir_stage_ops tell_ops = {.abi = WEIR_STAGE_ABI,
    .name = "tell",
    .summary = "Tells the time",
    .accepts = &weir_http_request_type,
    .outlets = tell_outlets,
    .handle = tell_handle};

static struct weir_test *opened(const struct weir_stage_ops *ops, const char *members)
{
	struct weir_test *t;

	setenv("WEIR_TRUST_FILES", "any", 1);
	errs = (struct weir_errs){0};
	CU_ASSERT_EQUAL_FATAL(weir_test_open(ops, members, &t, &errs), 0);
	return t;
}

static void note_left(void *arg, const char *outlet, struct weir_event *ev)
{
	snprintf(arg, 32, "%s %d", outlet, (int)weir_http_request(ev)->path.n);
}

static void test_outlets(void)
{
	struct weir_test *t = opened(&tell_ops, NULL), *other;
	struct weir_test_answer answer;
	char seen[32] = "";

	weir_test_on_left(t, note_left, seen);
	CU_ASSERT_EQUAL(weir_test_open(&tell_ops, NULL, &other, &errs), WEIR_EBUSY);
	CU_ASSERT_EQUAL(weir_test_get(t, "/left", &answer), 0);
	CU_ASSERT_EQUAL(answer.status, 204);
	weir_test_answer_free(&answer);
	CU_ASSERT(weir_test_await(t, "left", 1));
	CU_ASSERT_STRING_EQUAL(seen, "left 5");
	CU_ASSERT_EQUAL(weir_test_left(t, "right"), 0);
	CU_ASSERT_EQUAL(weir_test_left(t, "up"), -1);
	CU_ASSERT_EQUAL(weir_test_metric(t, "no_such_total"), -1);
	CU_ASSERT_EQUAL(weir_test_close(t), 0);
	CU_ASSERT_EQUAL(weir_test_close(NULL), 0);
}

static void test_answers(void)
{
	struct weir_test *t = opened(&tell_ops, "threads: { max: 2 }");
	struct weir_test_answer answer;

	CU_ASSERT_EQUAL_FATAL(weir_test_get(t, "/parts", &answer), 0);
	CU_ASSERT_STRING_EQUAL(answer.body, "one two");
	CU_ASSERT_EQUAL(answer.body_n, 7);
	weir_test_answer_free(&answer);
	CU_ASSERT_EQUAL_FATAL(
	    weir_test_receive(weir_test_send(t, "POST", "/", "A: b\r\n", "text", 4), &answer), 0);
	CU_ASSERT_EQUAL(answer.status, 200);
	CU_ASSERT(weir_slice_is(weir_test_field(&answer, "x-test"), "yes"));
	CU_ASSERT_PTR_NULL(weir_test_field(&answer, "x-tes").p);
	CU_ASSERT_EQUAL(answer.body_n, strlen(answer.body));
	weir_test_answer_free(&answer);
	CU_ASSERT_EQUAL(weir_test_close(t), 0);
}

/* ---- the clock ---- */

static atomic_bool over;

static void *hurry(void *arg)
{
	(void)arg;
	while (!atomic_load(&over))
		weir_test_clock_advance(1000000000);
	return NULL;
}

static long seconds(struct weir_test *t)
{
	struct weir_test_answer answer;

	CU_ASSERT_EQUAL_FATAL(weir_test_get(t, "/", &answer), 0);
	long s = strtol(answer.body, NULL, 10);
	weir_test_answer_free(&answer);
	return s;
}

/* An hour passes in the handlers; and the timer of a request whose body does not come expires. */
static void test_clock(void)
{
	struct weir_test *t = opened(&tell_ops, NULL);
	struct weir_test_answer answer;
	pthread_t thread;
	long before = seconds(t);

	weir_test_clock_advance(INT64_C(3600000000000));
	CU_ASSERT(seconds(t) >= before + 3600);
	struct weir_test_call *call =
	    weir_test_send(t, "POST", "/", "Content-Length: 5\r\n", NULL, 0);
	atomic_store(&over, false);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, hurry, NULL), 0);
	CU_ASSERT_EQUAL(weir_test_receive(call, &answer), 0);
	CU_ASSERT_EQUAL(answer.status, 408);
	weir_test_answer_free(&answer);
	atomic_store(&over, true);
	pthread_join(thread, NULL);
	CU_ASSERT_EQUAL(weir_test_close(t), 0);
}

/* ---- a stage of other events ---- */

struct item {
	struct weir_event ev;
	int status;
	atomic_bool done;
};

static void item_finish(struct weir_event *ev, int status)
{
	struct item *item = (struct item *)ev;

	item->status = status;
	atomic_store(&item->done, true);
}

static const struct weir_event_type item_type = {.name = "item", .finish = item_finish};
static const struct weir_outlet pass_outlets[] = {{.name = "out", .type = &item_type}, {0}};

static void pass_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	weir_emit_run(st, 0, ev, n);
}

static const struct weir_stage_ops pass_ops = {.abi = WEIR_STAGE_ABI,
    .name = "pass",
    .summary = "Passes items on",
    .accepts = &item_type,
    .outlets = pass_outlets,
    .handle = pass_handle};

static void test_events(void)
{
	struct weir_test *t = opened(&pass_ops, NULL);
	struct item item[3] = {{.done = false}};
	struct weir_event *ev[3];

	for (int i = 0; i < 3; i++) {
		ev[i] = &item[i].ev;
		weir_event_init(ev[i], &item_type, 1);
	}
	CU_ASSERT_PTR_NULL(weir_test_send(t, "GET", "/", NULL, NULL, 0)); /* no http.server */
	CU_ASSERT_EQUAL(weir_test_offer(t, ev, 3), 3);
	CU_ASSERT(weir_test_await(t, "out", 3));
	CU_ASSERT_EQUAL(weir_test_close(t), 0);
	for (int i = 0; i < 3; i++)
		CU_ASSERT(atomic_load(&item[i].done) && item[i].status == WEIR_OK);
}

static void test_refused(void)
{
	struct weir_test *t;

	errs = (struct weir_errs){0};
	CU_ASSERT_NOT_EQUAL(weir_test_open(&tell_ops, "with: { nothing: 1 }", &t, &errs), 0);
	CU_ASSERT_PTR_NULL(t);
	CU_ASSERT_PTR_NOT_NULL(strstr(errs.err[0].text, "nothing"));
}

CUNIT_MAIN("harness", {"outlets", test_outlets}, {"answers", test_answers}, {"clock", test_clock},
    {"events", test_events}, {"refused", test_refused})
