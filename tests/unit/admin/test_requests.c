/* SPDX-License-Identifier: MIT */
/* The route of the slowest requests: what it requests from its source, and how it presents the
 * result. */
#include "admin/api/routes.h"

#include <weir/log.h>

#include "cunit_main.h"
#include "made_up.h"

#define MS 1000000LL

static struct made_up made_up;
static struct process process;
static struct reply reply;
static int asked_class, asked_n, found;

static int slowest(void *arg, int class_id, struct weir_slow *out, int n)
{
	(void)arg;
	asked_class = class_id;
	asked_n = n;
	for (int i = 0; i < found && i < n; i++)
		out[i] = (struct weir_slow){.id = 7,
		    .class_name = "bulk",
		    .status = i ? WEIR_EFAILED : WEIR_OK,
		    .wall_ns = 1500 * MS,
		    .took_ns = 250 * MS,
		    .what = "GET /\"x\\",
		    .n_hops = 12,
		    .n_spans = 2,
		    .span = {{.stage = "web", .service_ns = 1 * MS}, {.stage = "disk",
									 .at_ns = 1 * MS,
									 .wait_ns = 200 * MS,
									 .service_ns = 39 * MS,
									 .await_ns = 10 * MS}},
		    .n_children = 5,
		    .n_child_spans = 1,
		    .child_span = {
			{.stage = "tile", .at_ns = 241 * MS, .service_ns = 8 * MS, .child = 3}}};
	return found < n ? found : n;
}

static int get(const char *target, bool can)
{
	struct admin_source source = made_up_source(&made_up);

	source.slowest = can ? slowest : NULL;
	reply_fini(&reply);
	asked_n = 0;
	routes_answer(&source, &process,
	    &(struct request){.method = "GET", .target = target, .host = "localhost:9900"}, &reply);
	CU_ASSERT_EQUAL(made_up.n_views, 0);
	return reply.status;
}

static double number(const json_t *map, const char *key)
{
	return json_number_value(json_object_get(map, key));
}

static const char *text(const json_t *map, const char *key)
{
	return json_string_value(json_object_get(map, key));
}

static void test_shape(void)
{
	weir_log_set_fd(-1);
	made_up_init(&made_up);
	process = (struct process){.stat_fd = -1};
	found = 2;
	CU_ASSERT_EQUAL(get("/api/v1/requests/slowest", true), 200);
	CU_ASSERT_EQUAL(asked_class, -1);
	CU_ASSERT_TRUE(asked_n >= 2 * WEIR_SLOWEST_MAX);
	json_t *doc = json_loadb(reply.body, reply.n, JSON_REJECT_DUPLICATES, NULL);
	const json_t *list = json_object_get(doc, "requests");
	CU_ASSERT_EQUAL_FATAL(json_array_size(list), 2);
	const json_t *r = json_array_get(list, 0);
	CU_ASSERT_EQUAL(number(r, "id"), 7);
	CU_ASSERT_STRING_EQUAL(text(r, "class"), "bulk");
	CU_ASSERT_STRING_EQUAL(text(r, "outcome"), weir_error_word(WEIR_OK));
	CU_ASSERT_STRING_EQUAL(text(r, "path"), "GET /\"x\\");
	CU_ASSERT_DOUBLE_EQUAL(number(r, "at"), 1.5, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(number(r, "took"), 0.25, 1e-9);
	CU_ASSERT_EQUAL(number(r, "hops"), 12);
	const json_t *span = json_array_get(json_object_get(r, "spans"), 1);
	CU_ASSERT_STRING_EQUAL(text(span, "stage"), "disk");
	CU_ASSERT_DOUBLE_EQUAL(number(span, "after"), 0.001, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(number(span, "wait"), 0.2, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(number(span, "service"), 0.039, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(number(span, "awaiting"), 0.01, 1e-9);
	CU_ASSERT_EQUAL(number(r, "children"), 5);
	CU_ASSERT_EQUAL_FATAL(json_array_size(json_object_get(r, "child_spans")), 1);
	span = json_array_get(json_object_get(r, "child_spans"), 0);
	CU_ASSERT_STRING_EQUAL(text(span, "stage"), "tile");
	CU_ASSERT_EQUAL(number(span, "child"), 4);
	CU_ASSERT_DOUBLE_EQUAL(number(span, "after"), 0.241, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(number(span, "service"), 0.008, 1e-9);
	CU_ASSERT_STRING_EQUAL(
	    text(json_array_get(list, 1), "outcome"), weir_error_word(WEIR_EFAILED));
	json_decref(doc);
}

static void test_query(void)
{
	const char *last = made_up.view.class_name[made_up.view.n_classes - 1];
	char target[200];

	found = 1;
	snprintf(target, sizeof(target), "/api/v1/requests/slowest?n=3&class=%s", last);
	CU_ASSERT_EQUAL(get(target, true), 200);
	CU_ASSERT_EQUAL(asked_class, made_up.view.n_classes - 1);
	CU_ASSERT_TRUE(asked_n >= 3);
	CU_ASSERT_EQUAL(get("/api/v1/requests/slowest?class=", true), 200);
	CU_ASSERT_EQUAL(asked_class, -1);
	/* another parameter */
	CU_ASSERT_EQUAL(get("/api/v1/requests/slowest?subclass=x", true), 200);
	CU_ASSERT_EQUAL(asked_class, -1);
	CU_ASSERT_EQUAL(get("/api/v1/requests/slowest?class=nobody", true), 404);
	CU_ASSERT_EQUAL(asked_n, 0);
	CU_ASSERT_EQUAL(get("/api/v1/requests/slowest?n=501", true), 400);
	CU_ASSERT_EQUAL(get("/api/v1/requests/slowest?n=-1", true), 400);
	memset(target, 'x', sizeof(target));
	memcpy(
	    target, "/api/v1/requests/slowest?class=", strlen("/api/v1/requests/slowest?class="));
	target[sizeof(target) - 1] = '\0';
	CU_ASSERT_EQUAL(get(target, true), 400);
	CU_ASSERT_EQUAL(get("/api/v1/requests/slowest", false), 200); /* no requests are kept */
	CU_ASSERT_EQUAL(strncmp(reply.body, "{\"requests\":[],\"next\":null}", reply.n), 0);
	found = WEIR_ENOMEM;
	CU_ASSERT_EQUAL(get("/api/v1/requests/slowest", true), 503);
	reply_fini(&reply);
}

CUNIT_MAIN("slowest requests", {"shape", test_shape}, {"query", test_query})
