/* SPDX-License-Identifier: MIT */
/* The server's side of a report: waits of each interval from cumulative histograms, decisions at
 * times of the run, and JSON of any shape. */
#include "report/server.h"

#include <math.h>

#include "cunit_main.h"

static json_t *parse(const char *text)
{
	json_t *run = json_loads(text, 0, NULL);

	CU_ASSERT_PTR_NOT_NULL_FATAL(run);
	return run;
}

static const char two_samples[] =
    "{'server':{'start':{'stages':[{'name':'work','classes':[{'wait_seconds':{'buckets':[[0.5,100]]"
    "}}]}]},"
    "'each':["
    "{'at_s':1.0,'uptime_seconds':31.0,'process_cpu_seconds':2.0,'stages':[{'name':'work','queue':{"
    "'length':3},"
    "'threads':{'busy':2},'classes':[{'wait_seconds':{'buckets':[[0.001,98],[0.5,101],[null,1]]}}]}"
    "]},"
    "{'at_s':2.0,'uptime_seconds':32.0,'process_cpu_seconds':2.5,'stages':[{'name':'other'},{'name'"
    ":'work',"
    "'queue':{'length':7},'classes':[{'wait_seconds':{'buckets':[[0.001,108],[0.5,101]]}}]}]}],"
    "'decisions':[{'uptime_seconds':31.5,'stage':'work','action':'grow','from':2,'to':3},"
    "{'uptime_seconds':30.25,'stage':'work'},{'stage':'lost in time'}]}}";

/* C strings are easier to read with single quotes. */
static json_t *parse_quoted(const char *text)
{
	char buf[2048];
	size_t i = 0;

	for (; text[i] && i < sizeof(buf) - 1; i++)
		buf[i] = text[i] == '\'' ? '"' : text[i];
	buf[i] = '\0';
	return parse(buf);
}

static void test_series(void)
{
	json_t *run = parse_quoted(two_samples);
	struct server_view view;

	CU_ASSERT_EQUAL_FATAL(server_view_init(&view, run), 0);
	CU_ASSERT_EQUAL(view.n, 2);
	CU_ASSERT_EQUAL_FATAL(view.n_stages, 1);
	const struct server_stage *work = &view.stage[0];
	CU_ASSERT_STRING_EQUAL(work->name, "work");
	/* 98 short ones, one up to 0.5 s, one above: the open bucket counts as the last bound */
	CU_ASSERT_DOUBLE_EQUAL(work->value[SERVER_WAIT_P99][0], 0.5, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(work->value[SERVER_WAIT_P99][1], 0.001, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(work->value[SERVER_QUEUE][1], 7, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(work->peak[SERVER_QUEUE], 7, 1e-9);
	CU_ASSERT_TRUE(isnan(work->value[SERVER_BUSY][1]));
	server_view_fini(&view);
	json_decref(run);
}

static void test_decisions(void)
{
	json_t *run = parse_quoted(two_samples);
	struct server_view view;

	CU_ASSERT_EQUAL_FATAL(server_view_init(&view, run), 0);
	CU_ASSERT_EQUAL_FATAL(view.n_decisions, 2); /* one has no time */
	CU_ASSERT_DOUBLE_EQUAL(view.decision[0].at_s, 0.25, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(view.decision[1].at_s, 1.5, 1e-9);
	CU_ASSERT_STRING_EQUAL(view.decision[1].action, "grow");
	CU_ASSERT_EQUAL(view.decision[1].to, 3);
	server_view_fini(&view);
	json_decref(run);
}

static void test_cpu(void)
{
	json_t *run = parse_quoted(two_samples);

	CU_ASSERT_DOUBLE_EQUAL(server_cpu_s(run, 1, 2), 0.5, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(server_cpu_s(run, 1.5, 2), 0.25, 1e-9);
	CU_ASSERT_TRUE(isnan(server_cpu_s(run, 10, 20)));
	json_decref(run);
}

static void test_any_shape(void)
{
	static const char *const shapes[] = {"{}", "{'server':null}", "{'server':{}}",
	    "{'server':{'each':[{}]}}", "{'server':{'each':[1,'x',null]}}",
	    "{'server':{'each':[{'at_s':1,'stages':[{},{'name':3},7]},{'at_s':0,'stages':{}}]}}",
	    ("{'server':{'each':[{'at_s':1,'stages':[{'name':'a','classes':[{'wait_seconds':"
	     "{'buckets':[[],[1],['x',2],5]}}]}]}],'decisions':[[],{'uptime_seconds':'x'}]}}")};
	struct server_view view;

	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		json_t *run = parse_quoted(shapes[i]);
		CU_ASSERT_EQUAL(server_view_init(&view, run), 0);
		CU_ASSERT_TRUE(isnan(server_cpu_s(run, 0, 1)));
		server_view_fini(&view);
		json_decref(run);
	}
}

CUNIT_MAIN("server", {"series", test_series}, {"decisions", test_decisions}, {"CPU", test_cpu},
    {"any shape", test_any_shape})
