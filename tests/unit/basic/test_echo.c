/* SPDX-License-Identifier: MIT */
/* echo, the stage type to copy: its response, its knobs, its outlet, its metric, its key. */
#include "cunit_main.h"
#include "file/http_call.h"

static struct weir_graph *graph;
static struct call *calls[16];
static int n_calls;

static void set_up_greeting(bool large, const char *greeting)
{
	struct weir_spec *spec = weir_spec_new("echo");
	struct weir_stage_spec *s = weir_spec_add_stage(spec, "echo", "echo");

	fixture_set(s, "with.greeting", greeting);
	fixture_set(s, "with.max_body", "10B");
	if (large) {
		weir_spec_link(s, "large", "other", false);
		weir_spec_add_stage(spec, "other", "drop");
	}
	graph = fixture_start(spec);
	CU_ASSERT_EQUAL_FATAL(weir_thread_attach(graph, "test"), 0);
}

static void set_up(bool large)
{
	set_up_greeting(large, "hi");
}

static void tear_down(void)
{
	struct weir_drain_report report;

	weir_thread_detach();
	weir_graph_drain(graph, 10000000000, &report);
	CU_ASSERT_EQUAL(report.law_error, 0);
	weir_graph_free(graph);
	while (n_calls > 0)
		call_free(calls[--n_calls]);
}

static struct call *post(const char *path, const char *body)
{
	struct call *c = calls[n_calls++] = call_new(path);

	c->t.req->method = WEIR_HTTP_POST;
	c->t.req->method_text = slice("POST");
	c->t.req->body = slice(body);
	call_send(c, weir_graph_stage(graph, "echo"));
	call_await(c);
	return c;
}

static void test_answer(void)
{
	set_up(false);
	struct call *c = post("/a?b", "some text");
	CU_ASSERT_EQUAL(call_status(c), 200);
	CU_ASSERT(call_body_is(c, "hi (1)\nPOST /a?b\nsome text"));
	CU_ASSERT(call_has_field(c, "Content-Type: text/plain; charset=utf-8\r\n"));
	CU_ASSERT(call_body_is(post("/", ""), "hi (2)\nPOST /\n"));
	CU_ASSERT_EQUAL(metric_of(graph, "echo", 0), 26 + 14);
	tear_down();
}

/* The response has room for any greeting. */
static void test_long_greeting(void)
{
	char greeting[501], want[600];

	memset(greeting, 'g', 500);
	greeting[500] = '\0';
	snprintf(want, sizeof(want), "%s (1)\nPOST /\nsome text", greeting);
	set_up_greeting(false, greeting);
	CU_ASSERT(call_body_is(post("/", "some text"), want));
	tear_down();
}

static void test_live_knob(void)
{
	char why[128];

	set_up(false);
	CU_ASSERT_EQUAL(call_status(post("/", "eleven byte")), 413);
	CU_ASSERT_EQUAL(weir_graph_set(graph, "echo", "with.max_body", "11B", why, sizeof(why)), 0);
	CU_ASSERT_EQUAL(call_status(post("/", "eleven byte")), 200);
	CU_ASSERT(weir_graph_set(graph, "echo", "with.greeting", "x", why, sizeof(why)) < 0);
	tear_down();
}

static void test_outlet(void)
{
	set_up(true);
	/* the response of the other stage */
	CU_ASSERT_EQUAL(call_status(post("/", "eleven byte")), 204);
	CU_ASSERT_EQUAL(call_status(post("/", "ten bytes.")), 200);
	tear_down();
}

static void test_key(void)
{
	const struct weir_stage_ops *ops = weir_stage_type_find("echo");
	struct call *a = call_new("/a"), *b = call_new("/b"), *c = call_new("/a");

	CU_ASSERT_EQUAL(ops->key(NULL, &a->t.req->ev), ops->key(NULL, &c->t.req->ev));
	CU_ASSERT_NOT_EQUAL(ops->key(NULL, &a->t.req->ev), ops->key(NULL, &b->t.req->ev));
	call_free(a);
	call_free(b);
	call_free(c);
}

static void test_bad_greeting(void)
{
	struct weir_spec *spec = weir_spec_new("echo");
	struct weir_errs *errs = calloc(1, sizeof(*errs));
	struct weir_graph *g = NULL;

	fixture_set(weir_spec_add_stage(spec, "echo", "echo"), "with.greeting", "two\nlines");
	CU_ASSERT(weir_graph_build(spec, &g, errs) < 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(errs->err[0].text, "'greeting' must be one line"));
	weir_spec_free(spec);
	free(errs);
}

CUNIT_MAIN("echo", {"answer", test_answer}, {"long greeting", test_long_greeting},
    {"live knob", test_live_knob}, {"outlet", test_outlet}, {"key", test_key},
    {"bad greeting", test_bad_greeting})
