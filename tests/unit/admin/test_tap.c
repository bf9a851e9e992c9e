/* SPDX-License-Identifier: MIT */
/* The route of taps: what it requests from its source, and how it presents the result. */
#include "admin/api/routes.h"

#include <weir/log.h>

#include "cunit_main.h"
#include "made_up.h"

#define MS 1000000LL

static struct made_up made_up;
static struct process process;
static struct reply reply;
static struct weir_tap asked;
static char asked_stage[64];
static uint64_t asked_after;
static int asked_n, answer;

static int tap(void *arg, const struct weir_tap *want, uint64_t after, struct weir_slow *out, int n,
    struct weir_tap_state *state)
{
	(void)arg;
	asked = *want;
	/* want->stage is valid during the call only. */
	snprintf(asked_stage, sizeof(asked_stage), "%s", want->stage);
	asked.stage = asked_stage;
	asked_after = after;
	asked_n = n;
	*state = (struct weir_tap_state){.next = 77, .dropped = 5};
	for (int i = 0; i < answer && i < n; i++)
		out[i] = (struct weir_slow){.id = 76 + (unsigned)i,
		    .class_name = "bulk",
		    .end = "disk",
		    .status = WEIR_EQUEUE,
		    .trace = {.id = {1, 2}},
		    .what = "GET /"};
	return answer;
}

static int get(const char *target, bool can)
{
	struct admin_source source = made_up_source(&made_up);

	source.tap = can ? tap : NULL;
	reply_fini(&reply);
	asked_n = 0;
	routes_answer(&source, &process,
	    &(struct request){.method = "GET", .target = target, .host = "localhost:9900"}, &reply);
	CU_ASSERT_EQUAL(made_up.n_views, 0);
	return reply.status;
}

static void test_shape(void)
{
	weir_log_set_fd(-1);
	made_up_init(&made_up);
	process = (struct process){.stat_fd = -1};
	answer = 2;
	CU_ASSERT_EQUAL(get("/api/v1/stages/disk/tap", true), 200);
	CU_ASSERT(asked.class_id == -1 && asked.outcome == -1 && asked.slow_ns == 0);
	CU_ASSERT(asked_after == 0 && asked_n == 256);
	json_t *doc = json_loadb(reply.body, reply.n, JSON_REJECT_DUPLICATES, NULL);
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(doc, "after")), 77);
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(doc, "dropped")), 5);
	const json_t *list = json_object_get(doc, "requests"), *r = json_array_get(list, 1);
	CU_ASSERT_EQUAL(json_array_size(list), 2);
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(r, "id")), 77);
	CU_ASSERT_STRING_EQUAL(
	    json_string_value(json_object_get(r, "trace")), "00000000000000010000000000000002");
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(r, "end")), "disk");
	CU_ASSERT_STRING_EQUAL(
	    json_string_value(json_object_get(r, "outcome")), weir_error_word(WEIR_EQUEUE));
	CU_ASSERT_EQUAL(json_array_size(json_object_get(r, "spans")), 0);
	json_decref(doc);
}

static void test_queries(void)
{
	static const struct {
		const char *word;
		int outcome;
	} outcomes[] = {{"ok", WEIR_OUTCOME_DONE}, {"shed", WEIR_OUTCOME_SHED},
	    {"failed", WEIR_OUTCOME_FAILED}};
	static const char *const bad[] = {"slow=5", "slow=-1ms", "slow=x", "slow=2h",
	    "outcome=done", "outcome=okay-then", "after=-1", "after=x", "after=1234567890123456789",
	    "n=0", "n=501"};
	char target[128];

	answer = 0;
	CU_ASSERT_EQUAL(get("/api/v1/stages/disk/tap?slow=1.5ms&after=76&n=3", true), 200);
	CU_ASSERT(asked.slow_ns == 3 * MS / 2 && asked_after == 76 && asked_n == 3);
	CU_ASSERT_STRING_EQUAL(asked.stage, "disk");
	for (size_t i = 0; i < sizeof(outcomes) / sizeof(outcomes[0]); i++) {
		snprintf(
		    target, sizeof(target), "/api/v1/stages/disk/tap?outcome=%s", outcomes[i].word);
		CU_ASSERT_EQUAL(get(target, true), 200);
		CU_ASSERT_EQUAL(asked.outcome, outcomes[i].outcome);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(target, sizeof(target), "/api/v1/stages/disk/tap?%s", bad[i]);
		CU_ASSERT_EQUAL(get(target, true), 400);
		CU_ASSERT_EQUAL(asked_n, 0);
	}
	CU_ASSERT_EQUAL(get("/api/v1/stages/disk/tap?class=nobody", true), 404);
}

static void test_refusals(void)
{
	answer = WEIR_EBUSY;
	CU_ASSERT_EQUAL(get("/api/v1/stages/disk/tap", true), 503);
	answer = WEIR_ENOMEM;
	CU_ASSERT_EQUAL(get("/api/v1/stages/disk/tap", true), 503);
	answer = WEIR_ENOENT;
	CU_ASSERT_EQUAL(get("/api/v1/stages/nosuch/tap", true), 404);
	CU_ASSERT_EQUAL(get("/api/v1/stages/nosuch/tap", false), 404);
	reply_fini(&reply);
}

CUNIT_MAIN("tap", {"shape", test_shape}, {"queries", test_queries}, {"refusals", test_refusals})
