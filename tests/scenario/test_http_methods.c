/* SPDX-License-Identifier: MIT */
/* Unknown methods are answered with 501, but those named by `methods` reach the stages unchanged,
 * with their bodies. */
#include "fixture/http/server.h"

static void expect(int fd, const char *request, int status, const char *body)
{
	struct answer a = {0};

	CU_ASSERT(client_say(fd, request));
	CU_ASSERT(answer_read(fd, &a));
	CU_ASSERT(answer_is(&a, status, body));
	answer_free(&a);
}

#define QUERY "QUERY /q HTTP/1.1\r\nHost: t\r\nContent-Length: 3\r\n\r\na=b"

static void test_named(void)
{
	struct server s = server_new("t.reply");
	struct answer a = {0};

	fixture_set(s.web, "with.methods", "QUERY");
	server_start(&s);
	int fd = client_open(s.port);
	expect(fd, QUERY, 200, "QUERY /q\na=b");
	expect(fd,
	    "QUERY /c HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: "
	    "chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
	    200, "QUERY /c\nab");
	expect(fd, GET("/g"), 200, "GET /g\n");
	CU_ASSERT(client_say(fd, "BREW / HTTP/1.1\r\nHost: t\r\n\r\n"));
	CU_ASSERT(answer_read(fd, &a) && a.status == 501);
	CU_ASSERT(client_at_end(fd));
	close(fd);
	answer_free(&a);
	server_stop(&s);
}

static void test_default(void)
{
	struct server s = server_new("t.reply");
	struct answer a = {0};

	server_start(&s);
	int fd = client_open(s.port);
	CU_ASSERT(client_say(fd, QUERY));
	CU_ASSERT(answer_read(fd, &a) && a.status == 501);
	CU_ASSERT(client_at_end(fd));
	close(fd);
	answer_free(&a);
	server_stop(&s);
}

/* Methods that are always or never served cannot be extensions. */
static void test_refused(void)
{
	static const char *const names[] = {"GET", "TRACE", "CONNECT", "A B"};
	struct weir_errs *errs = calloc(1, sizeof(*errs));

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct server s = server_new("t.reply");
		struct weir_graph *g = NULL;
		fixture_set(s.web, "with.methods", names[i]);
		*errs = (struct weir_errs){.total = 0};
		CU_ASSERT(weir_graph_build(s.spec, &g, errs) != 0);
		CU_ASSERT_PTR_NOT_NULL(strstr(errs->err[0].text, "'methods' cannot contain"));
		weir_spec_free(s.spec);
	}
	free(errs);
}

CUNIT_MAIN("methods", {"named", test_named}, {"default", test_default}, {"refused", test_refused})
