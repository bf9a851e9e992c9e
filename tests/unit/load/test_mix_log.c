/* SPDX-License-Identifier: MIT */
/* Replay: parsed log lines, logs in order with their times, and files that are not logs. */
#include "load/mix.h"

#include "load_text.h"

#define S   1000000000LL
#define GET "1.2.3.4 - - [10/Oct/2000:13:55:36 -0700] \"GET /a.gif HTTP/1.0\" 200 2326"

static struct load_plan plan;
static struct load_class *cls = &plan.class[0];
static struct mix_log_line line;
static struct weir_err err;

static const struct mix_head head = {.method = "PUT", .host = "h"};

static void check_line(const char *text, const char *method, const char *path, int64_t at_s)
{
	CU_ASSERT_EQUAL_FATAL(mix_log_parse(text, &line, &err), 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(line.path);
	CU_ASSERT_STRING_EQUAL(line.method, method);
	CU_ASSERT_STRING_EQUAL(line.path, path);
	CU_ASSERT_EQUAL(line.at_s, at_s);
}

static void test_lines(void)
{
	check_line(GET, "GET", "/a.gif", 971211336);
	CU_ASSERT_EQUAL(line.status, 200);
	check_line(
	    "::1 - frank [01/Jan/1970:00:00:00 +0000] \"POST / HTTP/2.0\" 503 -", "POST", "/", 0);
	check_line(
	    "h - a b [29/Feb/2024:23:59:60 +0530] \"HEAD /x?y=%20 HTTP/1.1\" 304 0 \"r\" \"u [x]\"",
	    "HEAD", "/x?y=%20", 1709231400);
	check_line(
	    "h - - [31/Dec/1999:23:59:59 +0000] \"GET /old\" 200 5", "GET", "/old", 946684799);
	check_line("h - - [01/Mar/2100:00:00:00 +0000] \"OPTIONS * HTTP/1.0\" 200 5", "OPTIONS",
	    "*", 4107542400);
	/* bytes escaped in the log become percent codes in the path */
	check_line(
	    "h - - [01/Jan/1970:00:00:01 +0000] \"GET /\\xC3\\xa9\\\"\\\\\\n\xc3 HTTP/1.1\" 200 5",
	    "GET", "/%C3%A9%22%5C%0A%C3", 1);
}

/* Malformed requests, as in the logs of every public server, are left out if they were refused. */
static void test_left_out(void)
{
	static const char *const requests[] = {"-", "", "\\x16\\x03\\x01", "GET",
	    "GET /a b HTTP/1.1", "get / HTTP/1.1", "CONNECT /x HTTP/1.1", "GET http://x/ HTTP/1.1"};
	char text[200];

	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
		snprintf(text, sizeof(text), "h - - [01/Jan/1970:00:00:01 +0000] \"%s\" 400 0",
		    requests[i]);
		CU_ASSERT_EQUAL(mix_log_parse(text, &line, &err), 0);
		CU_ASSERT_PTR_NULL(line.path);
		snprintf(text, sizeof(text), "h - - [01/Jan/1970:00:00:01 +0000] \"%s\" 200 0",
		    requests[i]);
		check_refused(mix_log_parse(text, &line, &err), &err, "is not a request");
		snprintf(text, sizeof(text), "h - - [01/Jan/1970:00:00:01 +0000] \"%s\" 500 0",
		    requests[i]);
		check_refused(mix_log_parse(text, &line, &err), &err, "is not a request");
	}
}

static void test_bad_lines(void)
{
	static const char *const bad[][2] = {{"hello", "'hello' is not a log line"},
	    {"[10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.0\" 200 1", "is not a log line"},
	    {"h - - [10/Okt/2000:13:55:36 -0700] \"GET / HTTP/1.0\" 200 1", "'[10/Okt/2000"},
	    {"h - - [32/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.0\" 200 1", "'[32/Oct/2000"},
	    {"h - - [10/Oct/2000:24:55:36 -0700] \"GET / HTTP/1.0\" 200 1", "not a log time"},
	    {"h - - [10/Oct/2000:13:55:36 0700] \"GET / HTTP/1.0\" 200 1", "not a log time"},
	    {"h - - [10/Oct/2000:13:55:36] \"GET / HTTP/1.0\" 200 1", "not a log time"},
	    {"h - - [10/Oct/2000:13:55:36 -0700", "not a log time"}, {"h - - [", "not a log time"},
	    {"h - - [10/Oct/2000:13:55:36 -0700] GET / 200 1", "not a request in quotes"},
	    {"h - - [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.0 200 1",
		"not a request in quotes"},
	    {"h - - [10/Oct/2000:13:55:36 -0700] \"GET /\\q HTTP/1.0\" 200",
		"not a request in quotes"},
	    {"h - - [10/Oct/2000:13:55:36 -0700] \"GET /\\x4", "not a request in quotes"},
	    {"h - - [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.0\"",
		"'' after the request is not a status"},
	    {"h - - [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.0\" 20 5",
		"' 20 5' after the request is not a status"},
	    {"h - - [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.0\" 2000", "is not a status"},
	    {"h - - [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.0\" -", "is not a status"}};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		check_refused(mix_log_parse(bad[i][0], &line, &err), &err, bad[i][1]);
	char overlong[20000];
	memset(overlong, 'a', sizeof(overlong));
	memcpy(overlong, "h - - [10/Oct/2000:13:55:36 -0700] \"GET /", 41);
	overlong[sizeof(overlong) - 1] = '\0';
	check_refused(mix_log_parse(overlong, &line, &err), &err, "not a request in quotes");
}

static int add_text(const char *text, size_t n, char *path)
{
	load_plan_fini(&plan);
	plan.n_classes = 1;
	strcpy(path, "log.XXXXXX");
	make_file(path, text, n);
	int rc = mix_add_log(cls, &head, path, &err);
	unlink(path);
	return rc;
}

/* Requests are ordered by time, those of one second are spread over it, and methods are those of
 * the log. */
static void test_log(void)
{
	static const char text[] =
	    "h - - [01/Jan/2000:00:00:03 +0000] \"GET /3 HTTP/1.1\" 200 5\r\n"
	    "h - - [01/Jan/2000:00:00:01 +0000] \"POST /1a HTTP/1.1\" 200 5\n"
	    "\n"
	    "h - - [01/Jan/2000:00:00:01 +0000] \"HEAD /1b HTTP/1.1\" 404 5\n"
	    "h - - [01/Jan/2000:00:00:01 +0000] \"-\" 408 -\n"
	    "h - - [01/Jan/2000:00:00:03 +0000] \"GET /3b HTTP/1.1\" 200 5";
	static const char *const lines[] = {
	    "POST /1a HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n",
	    "HEAD /1b HTTP/1.1\r\nHost: h\r\n\r\n", "GET /3 HTTP/1.1\r\nHost: h\r\n\r\n",
	    "GET /3b HTTP/1.1\r\nHost: h\r\n\r\n"};
	const int64_t at_ns[] = {0, S / 2, 2 * S, 2 * S + S / 2};
	char path[16];

	CU_ASSERT_EQUAL(add_text(text, sizeof(text) - 1, path), 0);
	CU_ASSERT_EQUAL_FATAL(cls->n_requests, 4);
	CU_ASSERT_TRUE(cls->in_order);
	for (int i = 0; i < 4; i++) {
		const struct load_request *r = &cls->request[i];
		CU_ASSERT_EQUAL(r->at_ns, at_ns[i]);
		CU_ASSERT_EQUAL(r->cumulative, 1);
		CU_ASSERT_EQUAL_FATAL(r->n_bytes, strlen(lines[i]));
		CU_ASSERT_EQUAL(memcmp(r->bytes, lines[i], r->n_bytes), 0);
	}
	CU_ASSERT_TRUE(cls->request[1].no_body);
	load_plan_fini(&plan);
}

static void test_bad_logs(void)
{
	static char overlong[70000];
	char path[16], words[40];

	check_refused(add_text("", 0, path), &err, "has no request to replay");
	check_refused(add_text(GET "\n\nhello\n", strlen(GET) + 8, path), &err, ":3: 'hello'");
	snprintf(words, sizeof(words), "%s:3: ", path);
	CU_ASSERT_EQUAL(strncmp(err.text, words, strlen(words)), 0);
	check_refused(add_text("a\0b\n", 4, path), &err, ":1: the line contains a NUL byte");
	check_refused(
	    add_text("h - - [01/Jan/2000:00:00:01 +0000] \"GET * HTTP/1.1\" 200 5", 56, path), &err,
	    ":1: '*' is not a path");
	check_refused(add_text("h - - [01/Jan/0001:00:00:01 +0000] \"GET / HTTP/1.1\" 200 5\n" GET,
			  56 + strlen(GET), path),
	    &err, "292 years");
	memset(overlong, 'x', sizeof(overlong));
	check_refused(add_text(overlong, sizeof(overlong), path), &err, ":1: the line is longer");
	CU_ASSERT_EQUAL(mix_add_log(cls, &head, "no/such.log", &err), WEIR_ESYS);
	CU_ASSERT_STRING_EQUAL(err.text, "no/such.log: No such file or directory");
	CU_ASSERT_EQUAL(mix_add_log(cls, &head, ".", &err), WEIR_ESYS);
	load_plan_fini(&plan);
}

CUNIT_MAIN("mix_log", {"lines", test_lines}, {"left out", test_left_out},
    {"bad lines", test_bad_lines}, {"a log", test_log}, {"bad logs", test_bad_logs})
