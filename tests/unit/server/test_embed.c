/* SPDX-License-Identifier: MIT */
/* A server inside a program: reloads with their results, and the working directory of the program. */
#include <weir/server.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weir/http.h>
#include <weir/operate.h>

#include "cunit_main.h"

static char folder[64], file[96], here[4096];
static struct weir_errs errs;
static struct weir_reload_result result;

static void write_file(const char *path, const char *text)
{
	FILE *out = fopen(path, "we");

	CU_ASSERT_FATAL(out && fputs(text, out) >= 0 && fclose(out) == 0);
}

/* The file of the server; `stage` is the stage that responds. */
static void say(const char *stage)
{
	char text[512];

	snprintf(text, sizeof(text),
	    "weir: 1\nstages:\n"
	    "  web: { use: http.server, with: { listen: '127.0.0.1:0' }, to: { request: it } }\n"
	    "  it: %s\n",
	    stage);
	write_file(file, text);
}

static void begin(void)
{
	char path[128];

	setenv("WEIR_TRUST_FILES", "any", 1);
	snprintf(folder, sizeof(folder), "/tmp/weir-embed-XXXXXX");
	CU_ASSERT_FATAL(mkdtemp(folder) && getcwd(here, sizeof(here)));
	snprintf(file, sizeof(file), "%s/it.yaml", folder);
	snprintf(path, sizeof(path), "%s/site", folder);
	CU_ASSERT_FATAL(mkdir(path, 0700) == 0);
	errs = (struct weir_errs){0};
}

static void end(void)
{
	char path[128], now[4096];

	CU_ASSERT_PTR_NOT_NULL_FATAL(getcwd(now, sizeof(now)));
	CU_ASSERT_STRING_EQUAL(now, here);
	snprintf(path, sizeof(path), "%s/site", folder);
	rmdir(path);
	unlink(file);
	rmdir(folder);
}

static struct weir_server *started(void)
{
	struct weir_server *s;

	CU_ASSERT_EQUAL_FATAL(weir_server_open(file, NULL, 0, &s, &errs), 0);
	CU_ASSERT_EQUAL_FATAL(weir_server_start(s, &errs), 0);
	return s;
}

static void closed(struct weir_server *s)
{
	struct weir_drain_report report;

	weir_server_close(s, &report);
	CU_ASSERT(report.left == 0 && report.closed == 0 && report.law_error == 0);
}

/* The folder `site` is found where the file is, at the start and at a reload. */
static void test_relative_paths(void)
{
	begin();
	say("{ use: file.read, with: { root: site } }");
	struct weir_server *s = started();
	say("{ use: file.read, with: { root: ./site } }");
	CU_ASSERT_EQUAL(weir_server_reload(s, &result, &errs), 0);
	CU_ASSERT(result.changed && result.new_graph);
	say("{ use: file.read, with: { root: absent } }");
	CU_ASSERT_NOT_EQUAL(weir_server_reload(s, &result, &errs), 0);
	CU_ASSERT(errs.n > 0 && errs.err[0].line == 4);
	closed(s);
	end();
}

static void test_results(void)
{
	begin();
	say("{ use: respond, queue: { limit: 100 }, with: { body: a } }");
	struct weir_server *s = started();
	struct weir_graph *first = weir_server_graph(s);

	CU_ASSERT_EQUAL(weir_server_reload(s, &result, &errs), 0);
	CU_ASSERT(!result.changed && !result.new_graph);
	say("{ use: respond, queue: { limit: 200 }, with: { body: a } }");
	CU_ASSERT_EQUAL(weir_server_reload(s, &result, &errs), 0);
	CU_ASSERT(result.changed);
	CU_ASSERT_EQUAL(result.new_graph, weir_server_graph(s) != first);
	say("{ use: echo, with: { body: a } }");
	CU_ASSERT_EQUAL(weir_server_reload(s, &result, &errs), WEIR_EINVAL);
	CU_ASSERT(errs.total > 0 && !result.changed);
	CU_ASSERT_PTR_NOT_NULL(strstr(result.text, "not changed"));
	struct weir_graph *before = weir_server_graph(s);
	errs = (struct weir_errs){0};
	say("{ use: drop }");
	CU_ASSERT_EQUAL(weir_server_reload(s, &result, &errs), 0);
	CU_ASSERT(result.changed && result.new_graph);
	CU_ASSERT_PTR_NOT_EQUAL(weir_server_graph(s), before);
	CU_ASSERT(weir_graph_ready(weir_server_graph(s)));
	closed(s);
	end();
}

/* Many reloads, and a close while the replaced graphs end. */
static void test_many(void)
{
	begin();
	say("{ use: respond, with: { body: a } }");
	struct weir_server *s = started();

	for (int i = 0; i < 20; i++) {
		say(i % 2 ? "{ use: respond, with: { body: a } }" : "{ use: drop }");
		while (weir_server_reload(s, &result, &errs) != 0)
			CU_ASSERT_PTR_NOT_NULL_FATAL(strstr(errs.err[0].text, "too many"));
	}
	closed(s);
	end();
}

static void test_not_started(void)
{
	struct weir_server *s;

	begin();
	say("{ use: drop }");
	CU_ASSERT_EQUAL_FATAL(weir_server_open(file, NULL, 0, &s, &errs), 0);
	CU_ASSERT_EQUAL(weir_server_reload(s, &result, &errs), WEIR_EINVAL);
	CU_ASSERT_STRING_EQUAL(errs.err[0].text, "the server is not started");
	CU_ASSERT_PTR_NOT_NULL(weir_server_graph(s));
	weir_server_close(s, NULL);
	say("{ use: nothing }");
	CU_ASSERT_NOT_EQUAL(weir_server_open(file, NULL, 0, &s, &errs), 0);
	CU_ASSERT_PTR_NULL(s);
	weir_server_close(s, NULL);
	end();
}

CUNIT_MAIN("embed", {"relative paths", test_relative_paths}, {"results", test_results},
    {"many", test_many}, {"not started", test_not_started})
