/* SPDX-License-Identifier: MIT */
/*
 * JSON views: printed, parsed again, and compared value by value. At the end each allocation of
 * jansson fails in turn: the result is complete or NULL, and nothing leaks (ASan).
 */
#include "admin/api/view_json.h"

#include <math.h>
#include <stdarg.h>
#include <stdint.h>

#include "cunit_main.h"
#include "made_up.h"

/* Through text and back, as a client sees it. Takes ownership of `json`. */
static json_t *reparsed(json_t *json)
{
	char *text = json_dumps(json, JSON_COMPACT);
	json_t *back = text ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;

	json_decref(json);
	free(text);
	CU_ASSERT_PTR_NOT_NULL_FATAL(back);
	return back;
}

/* The value at a path of names and positions: at(json, "stages", "2", "name", NULL). */
static json_t *at(json_t *json, ...)
{
	va_list args;

	va_start(args, json);
	for (const char *key = va_arg(args, const char *); key; key = va_arg(args, const char *))
		json = json_is_array(json) ? json_array_get(json, (size_t)atoi(key))
					   : json_object_get(json, key);
	va_end(args);
	return json;
}

#define INT(json, ...)  json_integer_value(at(json, __VA_ARGS__, NULL))
#define REAL(json, ...) json_number_value(at(json, __VA_ARGS__, NULL))
#define TEXT(json, ...) json_string_value(at(json, __VA_ARGS__, NULL))

static void test_graph(void)
{
	struct made_up m;

	made_up_init(&m);
	json_t *g = reparsed(view_json_graph(&m.view));
	CU_ASSERT_STRING_EQUAL(TEXT(g, "name"), "made up");
	CU_ASSERT_EQUAL(REAL(g, "time"), 1.7e9);
	CU_ASSERT_EQUAL(REAL(g, "uptime_seconds"), 10);
	CU_ASSERT_TRUE(json_is_true(at(g, "ready", NULL)));
	CU_ASSERT_TRUE(json_is_false(at(g, "draining", NULL)));
	CU_ASSERT_STRING_EQUAL(TEXT(g, "classes", "1"), "bulk");
	CU_ASSERT_EQUAL(json_array_size(at(g, "stages", NULL)), MADE_UP_STAGES);
	CU_ASSERT_STRING_EQUAL(TEXT(g, "stages", "2", "use"), "file.read");
	CU_ASSERT_EQUAL(INT(g, "stages", "2", "depth"), 2);
	/* An outlet that leads nowhere is not a link of the graph. */
	CU_ASSERT_EQUAL(json_array_size(at(g, "links", NULL)), 4);
	CU_ASSERT_STRING_EQUAL(TEXT(g, "links", "3", "from"), "disk");
	CU_ASSERT_STRING_EQUAL(TEXT(g, "links", "3", "to"), "cache");
	CU_ASSERT_TRUE(json_is_true(at(g, "links", "3", "loop", NULL)));
	CU_ASSERT_EQUAL(INT(g, "links", "1", "events_total"), 1001);
	json_decref(g);
}

static void test_stage(void)
{
	struct made_up m;

	made_up_init(&m);
	json_t *s = reparsed(view_json_stage(&m.view, &m.stage[MADE_DISK]));
	CU_ASSERT_STRING_EQUAL(TEXT(s, "name"), "disk");
	CU_ASSERT_EQUAL(REAL(s, "uptime_seconds"), 10);
	CU_ASSERT_STRING_EQUAL(TEXT(s, "admission", "policy"), "threshold");
	CU_ASSERT_EQUAL(INT(s, "queue", "length"), 187);
	CU_ASSERT_EQUAL(INT(s, "queue", "limit"), 4096);
	CU_ASSERT_DOUBLE_EQUAL(REAL(s, "queue", "oldest_wait_seconds"), 0.0312, 1e-12);
	CU_ASSERT_EQUAL(INT(s, "threads", "busy"), 4);
	CU_ASSERT_EQUAL(INT(s, "threads", "idle"), 1);
	CU_ASSERT_EQUAL(INT(s, "threads", "target"), 5);
	CU_ASSERT_EQUAL(INT(s, "threads", "max"), 32);
	CU_ASSERT_DOUBLE_EQUAL(REAL(s, "busy_seconds_total"), 1.500000001, 1e-12);
	CU_ASSERT_EQUAL(REAL(s, "thread_seconds_total", "running"), 0.5);
	CU_ASSERT_EQUAL(REAL(s, "thread_seconds_total", "runnable"), 1);
	CU_ASSERT_EQUAL(REAL(s, "thread_seconds_total", "downstream"), 4);
	CU_ASSERT_EQUAL(REAL(s, "thread_seconds_total", "idle"), 4.5);
	CU_ASSERT_EQUAL(INT(s, "stuck_call", "id"), 23);
	CU_ASSERT_EQUAL(REAL(s, "stuck_call", "seconds"), 1.5);
	CU_ASSERT_TRUE(json_is_true(at(s, "stuck_call", "running", NULL)));
	CU_ASSERT_STRING_EQUAL(TEXT(s, "stuck_call", "thread"), "disk/0");
	CU_ASSERT_EQUAL(json_array_size(at(s, "stuck_call", "stack", NULL)), 2);
	CU_ASSERT_STRING_EQUAL(TEXT(s, "stuck_call", "stack", "1"), "?? (libc.so.6+0x891f5)");
	CU_ASSERT_EQUAL(REAL(s, "slo_seconds"), 2);
	CU_ASSERT_EQUAL(REAL(s, "pressure"), 0.25);
	CU_ASSERT_EQUAL(REAL(s, "degradation"), 0.3);
	CU_ASSERT_EQUAL(INT(s, "law", "slack"), 3);
	CU_ASSERT_EQUAL(INT(s, "held"), 3);
	CU_ASSERT_EQUAL(INT(s, "awaiting"), 2);
	CU_ASSERT_EQUAL(INT(s, "children", "limit"), 16);
	CU_ASSERT_EQUAL(INT(s, "children", "spawned_total"), 40);
	CU_ASSERT_EQUAL(INT(s, "children", "joined_total"), 20);
	CU_ASSERT_EQUAL(INT(s, "children", "orphaned_total"), 5);
	CU_ASSERT_EQUAL(INT(s, "children", "refused_total"), 4);
	CU_ASSERT_EQUAL(INT(s, "children", "cancelled_total"), 4);
	CU_ASSERT_EQUAL(INT(s, "children", "in_flight"), 11);
	CU_ASSERT_EQUAL(INT(s, "classes", "1", "spawned_total"), 40);
	CU_ASSERT_EQUAL(INT(s, "classes", "1", "departed_total"), 38);
	CU_ASSERT_EQUAL(INT(s, "classes", "1", "offered_total"), 900);
	CU_ASSERT_EQUAL(INT(s, "classes", "1", "shed_total", "threshold"), 20);
	CU_ASSERT_EQUAL(INT(s, "classes", "1", "shed_total", "rate"), 0);
	CU_ASSERT_EQUAL(
	    json_object_size(at(s, "classes", "1", "shed_total", NULL)), WEIR_SHED_REASONS);
	CU_ASSERT_STRING_EQUAL(TEXT(s, "metrics", "0", "kind"), "counter");
	CU_ASSERT_EQUAL(INT(s, "metrics", "0", "value"), 123456789);
	CU_ASSERT_TRUE(json_is_null(at(s, "links", "1", "to", NULL)));
	json_decref(s);
}

/* Quantiles are upper bounds of buckets. Without values there are none, and past the last bucket no
 * number would be right. Buckets add up to the count. */
static void test_times(void)
{
	struct made_up m;
	long long sum = 0;

	made_up_init(&m);
	json_t *s = reparsed(view_json_stage(&m.view, &m.stage[MADE_DISK]));
	json_t *wait = at(s, "classes", "1", "wait_seconds", NULL);
	CU_ASSERT_EQUAL(INT(wait, "count"), 610);
	CU_ASSERT_TRUE(REAL(wait, "p50") >= 0.031 && REAL(wait, "p50") < 0.036);
	CU_ASSERT_DOUBLE_EQUAL(REAL(wait, "sum"), 268.600354, 1e-6);
	json_t *buckets = at(wait, "buckets", NULL);
	for (size_t i = 0; i < json_array_size(buckets); i++)
		sum += json_integer_value(json_array_get(json_array_get(buckets, i), 1));
	CU_ASSERT_EQUAL(sum, 610);
	CU_ASSERT_EQUAL(REAL(buckets, "0", "0"), 0.00005);
	CU_ASSERT_TRUE(json_is_null(at(buckets, "4", "0", NULL)));
	json_t *none = at(s, "classes", "0", "wait_seconds", NULL);
	CU_ASSERT_EQUAL(INT(none, "count"), 0);
	CU_ASSERT_TRUE(json_is_null(at(none, "p99", NULL)));
	json_decref(s);
}

/* The response names the server, and has the CPU time of the process since its start. */
static void test_stages(void)
{
	struct made_up m;

	made_up_init(&m);
	json_t *first = reparsed(view_json_stages(&m.view));
	CU_ASSERT_STRING_EQUAL(TEXT(first, "name"), "made up");
	CU_ASSERT_EQUAL(REAL(first, "uptime_seconds"), 10);
	CU_ASSERT_EQUAL(json_array_size(at(first, "stages", NULL)), MADE_UP_STAGES);
	double cpu_s = REAL(first, "process_cpu_seconds");
	CU_ASSERT(cpu_s > 0);
	json_t *then = first;
	while (REAL(then, "process_cpu_seconds") <= cpu_s) { /* producing responses uses CPU */
		json_t *next = reparsed(view_json_stages(&m.view));
		CU_ASSERT(REAL(next, "process_cpu_seconds") >= REAL(then, "process_cpu_seconds"));
		json_decref(then);
		then = next;
	}
	json_decref(then);
}

static void test_odd_values(void)
{
	struct made_up m;

	made_up_init(&m);
	m.stage[MADE_DISK].pressure = NAN; /* JSON cannot express NAN */
	m.stage[MADE_DISK].slo_ns = 0;
	m.stage[MADE_DISK].class_view[0].offered = UINT64_C(1) << 62;
	m.view.started_ns = 0;
	json_t *all = reparsed(view_json_stages(&m.view));
	CU_ASSERT_EQUAL(REAL(all, "uptime_seconds"), 0);
	CU_ASSERT_EQUAL(REAL(all, "stages", "2", "pressure"), 0);
	CU_ASSERT_TRUE(json_is_null(at(all, "stages", "2", "slo_seconds", NULL)));
	CU_ASSERT_EQUAL(INT(all, "stages", "2", "classes", "0", "offered_total"), 1LL << 62);
	CU_ASSERT_STRING_EQUAL(
	    TEXT(all, "stages", "4", "name"), "<img src=x onerror=alert(1)>\"\\\n");
	json_decref(all);
}

static void test_decisions(void)
{
	struct made_up m;

	made_up_init(&m);
	json_t *d = reparsed(view_json_decisions(&m.view, m.decision, 2));
	CU_ASSERT_EQUAL(INT(d, "decisions_total"), 2);
	CU_ASSERT_EQUAL(INT(d, "decisions", "0", "id"), 2);
	CU_ASSERT_STRING_EQUAL(TEXT(d, "decisions", "0", "rule"), "queue 187 over threshold 64");
	CU_ASSERT_EQUAL(INT(d, "decisions", "0", "from"), 4);
	CU_ASSERT_STRING_EQUAL(TEXT(d, "decisions", "0", "outcome_5s"), "helped");
	CU_ASSERT_TRUE(json_is_null(at(d, "decisions", "0", "outcome_30s", NULL)));
	CU_ASSERT_EQUAL(REAL(d, "decisions", "0", "uptime_seconds"), 8.5);
	json_decref(d);
	d = reparsed(view_json_decisions(&m.view, m.decision, 0));
	CU_ASSERT_EQUAL(json_array_size(at(d, "decisions", NULL)), 0);
	json_decref(d);
}

/* ---- allocation failures ---- */

static long failing; /* the number of the allocation that fails, from 1 */

static void *failing_malloc(size_t size)
{
	return --failing == 0 ? NULL : malloc(size);
}

static json_t *make(struct made_up *m, int which)
{
	switch (which) {
	case 0:
		return view_json_graph(&m->view);
	case 1:
		return view_json_stages(&m->view);
	default:
		return view_json_decisions(&m->view, m->decision, 2);
	}
}

static void test_no_memory(void)
{
	struct made_up m;

	made_up_init(&m);
	json_set_alloc_funcs(failing_malloc, free);
	for (int which = 0; which < 3; which++) {
		json_t *json = NULL;
		long n = 0;
		while (!json) {
			failing = ++n;
			json = make(&m, which);
		}
		CU_ASSERT_TRUE(failing > 0); /* a result only when no allocation failed */
		CU_ASSERT_TRUE(n > 20);
		json_decref(json);
	}
	json_set_alloc_funcs(malloc, free);
}

CUNIT_MAIN("view_json", {"graph", test_graph}, {"stage", test_stage}, {"stages", test_stages},
    {"times", test_times}, {"odd values", test_odd_values}, {"decisions", test_decisions},
    {"no memory, at any point", test_no_memory})
