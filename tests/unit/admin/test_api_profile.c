/* SPDX-License-Identifier: MIT */
/* The route of the profile: its JSON, to the letter, and a source without memory. */
#include "admin/api/routes.h"

#include <jansson.h>

#include "cunit_main.h"
#include "made_up.h"

static struct made_up made_up;
static struct process process;
static struct reply reply;

static int get(bool can)
{
	struct admin_source source = made_up_source(&made_up);

	if (!can)
		source.profile = NULL;
	reply_fini(&reply);
	routes_answer(&source, &process,
	    &(struct request){
		.method = "GET", .target = "/api/v1/profile", .host = "localhost:9900"},
	    &reply);
	return reply.status;
}

/* Compare member `key` of `map` with JSON, which is written with ' instead of ". */
static void is(const json_t *map, const char *key, const char *want)
{
	char text[700];
	size_t n = strlen(want);

	CU_ASSERT_TRUE_FATAL(n < sizeof(text));
	for (size_t i = 0; i <= n; i++)
		text[i] = want[i] == '\'' ? '"' : want[i];
	json_t *expected = json_loads(text, JSON_DECODE_ANY, NULL);
	CU_ASSERT_PTR_NOT_NULL_FATAL(expected);
	if (!json_equal(json_object_get(map, key), expected)) {
		char *have = json_dumps(json_object_get(map, key), JSON_ENCODE_ANY);
		fprintf(stderr, "%s is %s\n", key, have ? have : "missing");
		free(have);
		CU_FAIL("another value");
	}
	json_decref(expected);
}

static void test_json(void)
{
	made_up_init(&made_up);
	CU_ASSERT_EQUAL_FATAL(get(true), 200);
	json_t *doc = json_loadb(reply.body, reply.n, 0, NULL);
	CU_ASSERT_EQUAL(json_object_size(doc), 6);
	is(doc, "name", "'made up'");
	is(doc, "time", "1700000008.0");
	is(doc, "since", "1700000000.0");
	is(doc, "counted_seconds", "8.0");
	is(doc, "arcs",
	    "[{'from': 'disk', 'outlet': 'out', 'to': 'cache', 'on': 'disk/0', 'sent_total': 38, "
	    "'offered_total': 40}]");
	const json_t *stage = json_array_get(json_object_get(doc, "stages"), 0);
	is(stage, "name", "'disk'");
	is(stage, "placement", "'pool'");
	is(stage, "group", "'disk'");
	is(stage, "waiting", "187");
	is(stage, "running", "4");
	is(stage, "held", "0");
	is(stage, "awaiting", "3");
	json_t *rows = json_object_get(stage, "rows");
	CU_ASSERT_EQUAL_FATAL(json_array_size(rows), 2);
	is(json_array_get(rows, 0), "wait_seconds",
	    "{'count': 42, 'sum': 0.084, 'restarted_sum': 0.003, 'buckets': [[0.002, 42]]}");
	is(json_array_get(rows, 1), "wait_seconds",
	    "{'count': 0, 'sum': 0.0, 'restarted_sum': 0.0, 'buckets': []}");
	json_object_del(json_array_get(rows, 0), "wait_seconds");
	json_object_del(json_array_get(rows, 1), "wait_seconds");
	is(stage, "rows",
	    "[{'on': 'disk/0', 'kind': 'thread', 'offered_total': 0, 'refused_total': 0, "
	    "'started_total': 40, 'restarted_total': 2, 'put_back_total': 2, 'dropped_total': 0, "
	    "'completed_total': 38, 'failed_total': 2, 'shed_total': 0, "
	    "'spawned_total': 10, 'departed_total': 9, 'busy_seconds_total': 0.5, "
	    "'batches_total': 21, 'waiting': 0}, "
	    "{'on': 'others', 'kind': 'others', 'offered_total': 233, 'refused_total': 5, "
	    "'started_total': 0, 'restarted_total': 0, 'put_back_total': 0, 'dropped_total': 1, "
	    "'completed_total': 0, 'failed_total': 0, 'shed_total': 6, "
	    "'spawned_total': 0, 'departed_total': 0, 'busy_seconds_total': 0.0, "
	    "'batches_total': 0, 'waiting': 0}]");
	json_decref(doc);
}

static void test_nothing(void)
{
	made_up_init(&made_up);
	CU_ASSERT_EQUAL(get(false), 503);
	made_up.no_memory = true;
	CU_ASSERT_EQUAL(get(true), 503);
	reply_fini(&reply);
}

CUNIT_MAIN("profile route", {"json", test_json}, {"nothing", test_nothing})
