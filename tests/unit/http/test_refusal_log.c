/* SPDX-License-Identifier: MIT */
/* Log lines about refused requests: at most so many a second, and the rest are counted. */
#include "http/request/refusal_log.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/graph.h>
#include <weir/log.h>
#include <weir/spec.h>

#include "cunit_main.h"

#define S 1000000000LL

static int count_of(const char *text, const char *part)
{
	int n = 0;

	for (const char *p = text; (p = strstr(p, part)); p++)
		n++;
	return n;
}

static void test_bound(void)
{
	static char text[65536];
	char name[] = "/tmp/weir-log-XXXXXX";
	struct weir_errs errs = {0};
	struct weir_spec *spec = weir_spec_new("t");
	struct weir_graph *g = NULL;
	struct refusal_log log = {0};
	int fd = mkstemp(name);

	CU_ASSERT_FATAL(fd >= 0 && spec);
	unlink(name);
	CU_ASSERT_PTR_NOT_NULL_FATAL(weir_spec_add_stage(spec, "web", "drop"));
	CU_ASSERT_EQUAL_FATAL(weir_graph_build(spec, &g, &errs), 0);
	const struct weir_stage *st = weir_graph_stage(g, "web");
	weir_log_set_fd(fd);
	for (int i = 0; i < 1000; i++)
		refusal_log(&log, st, 7 * S + i, "192.0.2.1", 400, "so");
	refusal_log(&log, st, 8 * S, "192.0.2.2", 408, "late");
	refusal_log(&log, st, 9 * S, "192.0.2.2", 408, "late");
	for (int i = 0; i < REFUSAL_LOG_MOST + 1; i++)
		refusal_log(&log, st, 10 * S, "192.0.2.3", 414, "long");
	refusal_log(&log, st, 11 * S, "192.0.2.4", 431, "wide");
	weir_log_set_fd(STDERR_FILENO);
	CU_ASSERT(pread(fd, text, sizeof(text) - 1, 0) > 0);
	CU_ASSERT_EQUAL(
	    count_of(text, "msg=\"web: 192.0.2.1: refused with 400: so\""), REFUSAL_LOG_MOST);
	CU_ASSERT_EQUAL(count_of(text, "msg=\"web: 990 more requests were refused\""), 1);
	CU_ASSERT_EQUAL(count_of(text, "refused with 408: late"), 2);
	CU_ASSERT_EQUAL(count_of(text, "refused with 414: long"), REFUSAL_LOG_MOST);
	CU_ASSERT_EQUAL(count_of(text, "msg=\"web: 1 more requests were refused\""), 1);
	CU_ASSERT_EQUAL(count_of(text, "\n"), 2 * REFUSAL_LOG_MOST + 5);
	weir_graph_free(g);
	close(fd);
}

CUNIT_MAIN("refusal log", {"bound", test_bound})
