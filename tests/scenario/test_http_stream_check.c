/* SPDX-License-Identifier: MIT */
/* `stream` before a stage that does not support bodies in parts is refused, wherever that stage
 * is. */
#include "config/loading.h"
#include "fixture/http/server.h"

#define WEB                                                                                        \
	"weir: 1\n"                                                                                \
	"stages:\n"                                                                                \
	"  web:\n"                                                                                 \
	"    use: http.server\n"                                                                   \
	"    with:\n"                                                                              \
	"      listen: \"127.0.0.1:0\"\n"                                                          \
	"      stream: "
#define BEHIND                                                                                     \
	"\n    to: first\n"                                                                        \
	"  first: { use: burn, with: { time: 1us }, to: { out: route } }\n"                        \
	"  route:\n"                                                                               \
	"    use: router\n"                                                                        \
	"    with: { routes: [ { path: /a, to: a }, { path: /*, to: b } ] }\n"                     \
	"    to: { a: sums, b: "
#define SUMS " }\n  sums: { use: digest, threads: inline }\n"
#define LAST "  last: { use: t.reply, threads: inline }\n"

/* Number of errors of the graph; the first one goes to `err`. */
static int mistakes(const char *yaml, struct weir_err *err)
{
	static struct weir_errs errs;
	struct weir_spec *spec = load_text(yaml);
	struct weir_graph *g = NULL;

	errs = (struct weir_errs){0};
	CU_ASSERT_PTR_NOT_NULL_FATAL(spec);
	if (weir_graph_build(spec, &g, &errs) == 0)
		weir_graph_free(g);
	else
		weir_spec_free(spec);
	*err = errs.err[0];
	return errs.total;
}

static void test_refused(void)
{
	struct weir_err err;

	weir_spec_free(server_new("t.reply").spec); /* registers t.reply */
	CU_ASSERT_EQUAL_FATAL(mistakes(WEB "64KiB" BEHIND "last" SUMS LAST, &err), 1);
	CU_ASSERT_EQUAL(err.line, 7);
	CU_ASSERT_EQUAL(err.col, 15);
	CU_ASSERT_STRING_EQUAL(err.text,
	    "stage 'web' (http.server): with 'stream', stage 'last' (t.reply) would get parts of "
	    "bodies, but it takes only whole ones");
}

static void test_taken(void)
{
	struct weir_err err;

	CU_ASSERT_EQUAL(mistakes(WEB "0" BEHIND "last" SUMS LAST, &err), 0);
	CU_ASSERT_EQUAL(mistakes(WEB "64KiB" BEHIND "sums" SUMS, &err), 0);
}

CUNIT_MAIN("http stream check", {"refused", test_refused}, {"taken", test_taken})
