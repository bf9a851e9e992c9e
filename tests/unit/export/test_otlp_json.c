/* SPDX-License-Identifier: MIT */
/* Requests as OTLP in JSON: the whole of it, number by number. */
#include "otlp_json.h"

#include <string.h>

#include "cunit_main.h"

/* A request through two stages, in the trace of a client. */
static struct weir_slow request_of_a_client(void)
{
	return (struct weir_slow){.id = 5,
	    .class_name = "bulk",
	    .status = WEIR_OK,
	    .wall_ns = 1700000000000001000,
	    .took_ns = 1000,
	    .what = "GET /x?y=z",
	    .end = "answer",
	    .trace = {.id = {0x0af7651916cd43dd, 0x8448eb211c80319c},
		.parent = 0xb7ad6b7169203331,
		.span = 0x00f067aa0ba902b7},
	    .n_hops = 12,
	    .n_spans = 2,
	    .span = {{.stage = "work", .id = 0x1, .at_ns = 100, .wait_ns = 30, .service_ns = 20},
		{.stage = "answer", .id = 0xfedcba9876543210, .at_ns = 150, .service_ns = 850}}};
}

/* `expected` is JSON with ' in place of ". */
static void same(const json_t *found, const char *expected)
{
	char *text = strdup(expected);

	for (char *p = text; *p; p++)
		if (*p == '\'')
			*p = '"';
	json_t *want = json_loads(text, JSON_DECODE_ANY, NULL);
	CU_ASSERT_PTR_NOT_NULL(want);
	CU_ASSERT_TRUE(json_equal(found, want));
	if (!json_equal(found, want)) {
		char *said = json_dumps(found, JSON_ENCODE_ANY);
		fprintf(stderr, "expected\n%s\nbut found\n%s\n", text, said);
		free(said);
	}
	json_decref(want);
	free(text);
}

static const json_t *spans_of(const json_t *json)
{
	const json_t *resource = json_array_get(json_object_get(json, "resourceSpans"), 0);
	const json_t *scope = json_array_get(json_object_get(resource, "scopeSpans"), 0);

	return json_object_get(scope, "spans");
}

static void test_spans(void)
{
	const struct weir_slow slow = request_of_a_client();
	json_t *json = otlp_json("shop", &slow, 1);
	const json_t *spans = spans_of(json);

	CU_ASSERT_EQUAL(otlp_spans(&slow), 3);
	CU_ASSERT_EQUAL_FATAL(json_array_size(spans), 3);
	same(json_array_get(spans, 0),
	    "{'traceId': '0af7651916cd43dd8448eb211c80319c', 'spanId': '00f067aa0ba902b7',"
	    " 'parentSpanId': 'b7ad6b7169203331', 'name': 'GET', 'kind': 2,"
	    " 'startTimeUnixNano': '1700000000000000000',"
	    " 'endTimeUnixNano': '1700000000000001000', 'attributes': ["
	    "{'key': 'weir.request', 'value': {'stringValue': 'GET /x?y=z'}},"
	    "{'key': 'weir.class', 'value': {'stringValue': 'bulk'}},"
	    "{'key': 'weir.outcome', 'value': {'stringValue': 'ok'}},"
	    "{'key': 'weir.end', 'value': {'stringValue': 'answer'}},"
	    "{'key': 'weir.hops', 'value': {'intValue': '12'}}]}");
	same(json_array_get(spans, 1),
	    "{'traceId': '0af7651916cd43dd8448eb211c80319c', 'spanId': '0000000000000001',"
	    " 'parentSpanId': '00f067aa0ba902b7', 'name': 'work', 'kind': 1,"
	    " 'startTimeUnixNano': '1700000000000000100',"
	    " 'endTimeUnixNano': '1700000000000000150', 'attributes': ["
	    "{'key': 'weir.stage', 'value': {'stringValue': 'work'}},"
	    "{'key': 'weir.wait_ns', 'value': {'intValue': '30'}},"
	    "{'key': 'weir.service_ns', 'value': {'intValue': '20'}}]}");
	same(json_array_get(spans, 2),
	    "{'traceId': '0af7651916cd43dd8448eb211c80319c', 'spanId': 'fedcba9876543210',"
	    " 'parentSpanId': '00f067aa0ba902b7', 'name': 'answer', 'kind': 1,"
	    " 'startTimeUnixNano': '1700000000000000150',"
	    " 'endTimeUnixNano': '1700000000000001000', 'attributes': ["
	    "{'key': 'weir.stage', 'value': {'stringValue': 'answer'}},"
	    "{'key': 'weir.wait_ns', 'value': {'intValue': '0'}},"
	    "{'key': 'weir.service_ns', 'value': {'intValue': '850'}}]}");
	json_decref(json);
}

/* A request whose trace began here, that failed, and has neither a description nor an end. */
static void test_failure(void)
{
	struct weir_slow slow = request_of_a_client();

	slow.trace.parent = 0;
	slow.status = WEIR_EFAILED;
	slow.what[0] = '\0';
	slow.end = NULL;
	slow.n_spans = slow.n_hops = 0;
	json_t *json = otlp_json("shop", &slow, 1);
	const json_t *spans = spans_of(json), *span = json_array_get(spans, 0);
	CU_ASSERT_EQUAL(otlp_spans(&slow), 1);
	CU_ASSERT_EQUAL(json_array_size(spans), 1);
	same(json_object_get(span, "name"), "'request'");
	same(json_object_get(span, "parentSpanId"), "''");
	json_t *status =
	    json_pack("{s:i, s:s}", "code", 2, "message", weir_error_text(WEIR_EFAILED));
	CU_ASSERT_TRUE(json_equal(json_object_get(span, "status"), status));
	json_decref(status);
	const json_t *attributes = json_object_get(span, "attributes");
	const json_t *outcome = json_object_get(json_array_get(attributes, 2), "value");
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(outcome, "stringValue")),
	    weir_error_word(WEIR_EFAILED));
	same(json_array_get(attributes, 3), "{'key': 'weir.end', 'value': {'stringValue': ''}}");
	json_decref(json);
}

/* A child is below the span of the stage that made it, and a stage lasts until the children have
 * ended that the request awaits there. */
static void test_child(void)
{
	struct weir_slow slow = request_of_a_client();

	slow.span[0].await_ns = 30;
	slow.depth = 1;
	json_t *json = otlp_json("shop", &slow, 1);
	const json_t *spans = spans_of(json), *work = json_array_get(spans, 1);
	same(json_object_get(json_array_get(spans, 0), "kind"), "1");
	same(json_object_get(json_array_get(spans, 0), "parentSpanId"), "'b7ad6b7169203331'");
	same(json_object_get(work, "endTimeUnixNano"), "'1700000000000000180'");
	same(json_array_get(json_object_get(work, "attributes"), 3),
	    "{'key': 'weir.awaiting_ns', 'value': {'intValue': '30'}}");
	json_decref(json);
}

/* The spans of all requests are in one list, under the name of the server. */
static void test_several(void)
{
	struct weir_slow slow[3] = {
	    request_of_a_client(), request_of_a_client(), request_of_a_client()};

	slow[1].n_spans = 0;
	slow[2].n_spans = 1;
	json_t *json = otlp_json("shop", slow, 3);
	CU_ASSERT_EQUAL(json_array_size(spans_of(json)), 3 + 1 + 2);
	const json_t *list = json_object_get(json, "resourceSpans");
	CU_ASSERT_EQUAL(json_array_size(list), 1);
	const json_t *one = json_array_get(list, 0);
	const json_t *about = json_object_get(json_object_get(one, "resource"), "attributes");
	same(json_array_get(about, 0), "{'key': 'service.name', 'value': {'stringValue': 'shop'}}");
	same(json_array_get(about, 1),
	    "{'key': 'telemetry.sdk.name', 'value': {'stringValue': 'weir'}}");
	CU_ASSERT_EQUAL(json_array_size(about), 3);
	const json_t *scopes = json_object_get(one, "scopeSpans");
	CU_ASSERT_EQUAL(json_array_size(scopes), 1);
	const json_t *scope = json_object_get(json_array_get(scopes, 0), "scope");
	same(json_object_get(scope, "name"), "'weir'");
	CU_ASSERT_TRUE(*json_string_value(json_object_get(scope, "version")));
	json_decref(json);
	json = otlp_json("shop", slow, 0);
	CU_ASSERT_EQUAL(json_array_size(spans_of(json)), 0);
	json_decref(json);
}

/* ---- allocation failures ---- */

/* the number of the allocation that fails, from 1; allocations not yet freed */
static long failing, in_use;

static void *failing_malloc(size_t size)
{
	void *p = --failing == 0 ? NULL : malloc(size);

	in_use += p != NULL;
	return p;
}

static void counted_free(void *p)
{
	in_use -= p != NULL;
	free(p);
}

/* The result is complete or NULL, and nothing leaks. */
static void test_no_memory(void)
{
	struct weir_slow slow = request_of_a_client();
	json_t *json = NULL;
	long n = 0;

	slow.status = WEIR_EFAILED;
	json_set_alloc_funcs(failing_malloc, counted_free);
	while (!json) {
		failing = ++n;
		json = otlp_json("shop", &slow, 1);
		if (!json)
			CU_ASSERT_EQUAL(in_use, 0);
	}
	CU_ASSERT_TRUE(failing > 0 && n > 50); /* a result only when no allocation failed */
	json_decref(json);
	CU_ASSERT_EQUAL(in_use, 0);
	json_set_alloc_funcs(malloc, free);
}

CUNIT_MAIN("OTLP JSON", {"spans", test_spans}, {"failure", test_failure}, {"child", test_child},
    {"several", test_several}, {"no memory, at any point", test_no_memory})
