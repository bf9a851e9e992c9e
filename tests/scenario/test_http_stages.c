/* SPDX-License-Identifier: MIT */
/* The stages that accompany http.server, from YAML, on real sockets: respond, router, access_log;
 * and what their configuration refuses. */
#include "fixture/http/yaml.h"

static struct server server;

static void start(const char *yaml)
{
	server = yaml_start(yaml);
}

static void ask(const char *text, struct answer *a)
{
	yaml_ask(&server, text, a);
}

#define WEB YAML_WEB

static void test_respond(void)
{
	struct answer a = {0};

	start("weir: 1\nadmin: { listen: \"\" }\nstages:\n" WEB
	      "  app: { use: respond, with: { status: 418, body: \"short\\n\", type: text/x-tea,\n"
	      "         headers: [ \"X-One: 1\", \"X-Two:  b c\" ] } }\n");
	ask(GET("/any"), &a);
	CU_ASSERT(answer_is(&a, 418, "short\n"));
	CU_ASSERT_STRING_EQUAL(field_in(a.head, "Content-Type"), "text/x-tea");
	CU_ASSERT_STRING_EQUAL(field_in(a.head, "X-One"), "1");
	CU_ASSERT_STRING_EQUAL(field_in(a.head, "X-Two"), "b c");
	answer_free(&a);
	server_stop(&server);
}

static void expect_route(const char *request, const char *body)
{
	struct answer a = {0};

	ask(request, &a);
	CU_ASSERT(answer_is(&a, 200, body));
	answer_free(&a);
}

static void test_router(void)
{
	struct answer a = {0};

	start("weir: 1\nadmin: { listen: \"\" }\nstages:\n" WEB "  app:\n"
	      "    use: router\n"
	      "    with:\n"
	      "      routes:\n"
	      "        - { path: /exact, to: exact }\n"
	      "        - { path: /api/*, method: POST|PUT, to: write }\n"
	      "        - { path: /api/*, to: read }\n"
	      "        - { host: \"*.example.org\", to: sub }\n"
	      "        - { host: example.org, path: /*, to: host }\n"
	      "    to: { exact: exact, write: write, read: read, sub: sub, host: host }\n"
	      "  exact: { use: respond, with: { body: exact } }\n"
	      "  write: { use: respond, with: { body: write } }\n"
	      "  read: { use: respond, with: { body: read } }\n"
	      "  sub: { use: respond, with: { body: sub }, threads: inline }\n"
	      "  host: { use: respond, with: { body: host } }\n");
	expect_route(GET("/exact"), "exact");
	expect_route(GET("/exact?q"), "exact");
	expect_route(GET("/api/x"), "read");
	expect_route("POST /api/ HTTP/1.1\r\nHost: t\r\nContent-Length: 0\r\n\r\n", "write");
	expect_route("PUT /api/ HTTP/1.1\r\nHost: t\r\nContent-Length: 0\r\n\r\n", "write");
	expect_route("GET / HTTP/1.1\r\nHost: a.EXAMPLE.org:80\r\n\r\n", "sub");
	expect_route("GET / HTTP/1.1\r\nHost: Example.org\r\n\r\n", "host");
	static const char *const none[] = {GET("/exactly"), GET("/exac"), GET("/api"), GET("/"),
	    "GET / HTTP/1.1\r\nHost: notexample.org\r\n\r\n"};
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		ask(none[i], &a);
		CU_ASSERT_EQUAL(a.status, 404);
	}
	answer_free(&a);
	server_stop(&server);
}

static void test_router_else(void)
{
	start("weir: 1\nadmin: { listen: \"\" }\nstages:\n" WEB
	      "  app: { use: router, with: { routes: [ { path: /a, to: a } ] }, to: { a: one, "
	      "else: two } }\n"
	      "  one: { use: respond, with: { body: one } }\n"
	      "  two: { use: respond, with: { body: two } }\n");
	expect_route(GET("/a"), "one");
	expect_route(GET("/b"), "two");
	server_stop(&server);
}

/* ---- access_log ---- */

static char log_path[] = "/tmp/weir_log_XXXXXX";

/* The whole log, which is complete once the graph is gone. Static memory. */
static const char *read_log(void)
{
	static char text[65536];
	FILE *f = fopen(log_path, "r");
	size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;

	text[n] = '\0';
	if (f)
		fclose(f);
	unlink(log_path);
	return text;
}

static void start_logged(const char *format)
{
	char yaml[1024];
	int fd;

	strcpy(log_path + sizeof(log_path) - 7, "XXXXXX");
	fd = mkstemp(log_path);
	close(fd);
	snprintf(yaml, sizeof(yaml),
	    "weir: 1\nadmin: { listen: \"\" }\nstages:\n" WEB
	    "  app: { use: access_log, with: { file: %s, format: %s, flush: 10ms }, to: { out: end "
	    "} }\n"
	    "  end: { use: router, with: { routes: [ { path: /full, to: no }, { path: /bad, to: "
	    "bad }, "
	    "{ path: \"*\", to: yes } ] }, to: { no: no, bad: bad, yes: yes } }\n"
	    "  bad: { use: respond, with: { status: 400, body: bad } }\n"
	    "  no: { use: respond, with: { status: 404, body: no } }\n"
	    "  yes: { use: respond, with: { body: hello } }\n",
	    log_path, format);
	start(yaml);
}

static int count_lines(const char *text)
{
	int n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

static void test_log(void)
{
	struct answer a = {0};
	const char *text;

	start_logged("logfmt");
	ask("GET /p?q='x' HTTP/1.1\r\nHost: t\r\nUser-Agent: one \x01\r\n\r\n", &a);
	CU_ASSERT_EQUAL(a.status, 400); /* never in the graph, therefore not in the log */
	ask("GET /p?q='x' HTTP/1.1\r\nHost: t\r\nUser-Agent: \"one\"\\ \xe4\r\n\r\n", &a);
	for (int i = 0; i < 100; i++)
		ask(GET("/"), &a);
	server_stop(&server);
	text = read_log();
	CU_ASSERT_EQUAL(count_lines(text), 101);
	CU_ASSERT_EQUAL(strncmp(text, "ts=", 3), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, " client=127.0.0.1 method=\"GET\" target=\"/p?q='x'\" "
					    "status=200 bytes=5 us="));
	static const char tail[] =
	    " class=default outcome=ok host=\"t\" agent=\"\\\"one\\\"\\\\ \\xe4\"";
	const char *at = strstr(text, tail);
	CU_ASSERT_PTR_NOT_NULL_FATAL(at);
	at += strlen(tail);
	if (strncmp(at, " trace=", 7) == 0) /* one of the slowest, which have an id */
		at += 7 + strspn(at + 7, "0123456789abcdef");
	CU_ASSERT_EQUAL(*at, '\n');
	answer_free(&a);
}

static void test_common_log(void)
{
	struct answer a = {0};
	const char *text;

	start_logged("common");
	ask("GET /x HTTP/1.0\r\n\r\n", &a);
	server_stop(&server);
	text = read_log();
	CU_ASSERT_EQUAL(count_lines(text), 1);
	CU_ASSERT_EQUAL(strncmp(text, "127.0.0.1 - - [", 15), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, " +0000] \"GET /x HTTP/1.0\" 200 5\n"));
	answer_free(&a);
}

static int count_of(const char *text, const char *part)
{
	int n = 0;

	for (const char *p = text; (p = strstr(p, part)); p++)
		n++;
	return n;
}

/* Successes are sampled, failures are all logged. */
static void test_sample(void)
{
	struct answer a = {0};

	start_logged("json, sample: 20%");
	for (int i = 0; i < 500; i++)
		ask(GET("/"), &a);
	for (int i = 0; i < 10; i++)
		ask("POST /full HTTP/1.1\r\nHost: t\r\nContent-Length: 0\r\n\r\n", &a);
	server_stop(&server);
	const char *text = read_log();
	int shares = count_of(text, "\"share\":0.2}");
	CU_ASSERT(shares >= 98 && shares <= 102); /* sampled by consecutive numbers, so evenly */
	CU_ASSERT_EQUAL(count_of(text, "\"target\":\"/full\""), 10);
	CU_ASSERT_EQUAL(count_of(text, "\"status\":404"), 10);
	answer_free(&a);
}

/* No success is logged, but all are counted; 400 is a failure. A slow answer is logged, unless
 * `slow` is 0. */
static void test_errors_alone(void)
{
	struct answer a = {0};

	start_logged("json, sample: 0%, slow: 0s");
	for (int i = 0; i < 20; i++)
		ask(GET("/"), &a);
	ask(GET("/bad"), &a);
	AWAIT_METRIC(&server, "access_log_left_out_total", ==, 20);
	AWAIT_METRIC(&server, "access_log_lines_total", ==, 1);
	server_stop(&server);
	const char *text = read_log();
	CU_ASSERT_EQUAL(count_lines(text), 1);
	CU_ASSERT_EQUAL(count_of(text, "\"target\":\"/bad\",\"status\":400"), 1);
	CU_ASSERT_EQUAL(count_of(text, "\"share\""), 0);
	start_logged("json, sample: 0%, slow: 1ns");
	ask(GET("/"), &a);
	server_stop(&server);
	CU_ASSERT_EQUAL(count_lines(read_log()), 1);
	answer_free(&a);
}

/* An answer that broke off after a good status is not a success. */
static void test_torn_is_told(void)
{
	char yaml[1024];
	int fd;

	strcpy(log_path + sizeof(log_path) - 7, "XXXXXX");
	close(mkstemp(log_path));
	snprintf(yaml, sizeof(yaml),
	    "weir: 1\nadmin: { listen: \"\" }\nstages:\n"
	    "  web: { use: http.server, with: { listen: \"127.0.0.1:0\", threads: 1, stream: 1KiB "
	    "}, "
	    "to: { request: app } }\n"
	    "  app: { use: access_log, with: { file: %s, format: json, sample: 0%%, slow: 0s }, "
	    "to: { out: end } }\n"
	    "  end: { use: mirror }\n",
	    log_path);
	start(yaml);
	fd = client_open(server.port);
	char begin[5000]; /* more than the stage waits for */
	memset(begin, 'b', sizeof(begin));
	CU_ASSERT(
	    client_say(fd, "POST /torn HTTP/1.1\r\nHost: t\r\nContent-Length: 100000\r\n\r\n"));
	CU_ASSERT(client_send(fd, begin, sizeof(begin)));
	char head[500];
	CU_ASSERT(head_read(fd, head, sizeof(head)));
	close(fd);
	AWAIT_METRIC(&server, "access_log_lines_total", ==, 1);
	server_stop(&server);
	const char *text = read_log();
	CU_ASSERT_EQUAL(count_of(text, "\"target\":\"/torn\",\"status\":200"), 1);
	CU_ASSERT_EQUAL(count_of(text, "\"outcome\":\"ok\""), 0);
}

/* ---- refusals of the configuration ---- */

static void test_refused(void)
{
	yaml_refused("  app: { use: respond, with: { status: 600 } }\n", "status");
	yaml_refused("  app: { use: respond, with: { headers: [ \"no colon\" ] } }\n",
	    "'no colon' is not a header field a stage may send");
	yaml_refused("  app: { use: respond, with: { headers: [ \"Content-Length: 5\" ] } }\n",
	    "'Content-Length: 5' is not a header field a stage may send");
	yaml_refused("  app: { use: respond, with: { type: \"a\\r\\nb: c\" } }\n",
	    "'type' is not a valid value of a header field");
	yaml_refused(
	    "  app: { use: router, with: { routes: [ { path: a, to: x } ] }, to: { x: e } }\n"
	    "  e: { use: respond }\n",
	    "route 1: 'path' must begin with '/'");
	yaml_refused("  app: { use: router, with: { routes: [ { to: y } ] }, to: { x: e } }\n"
		     "  e: { use: respond }\n",
	    "route 1 goes to 'y', which is not under 'to:'");
	static const char *const hosts[] = {
	    "t:8080", "t.", "*.t.", "*.", "*", "a b", "[::1]:80", "[::1", "a..b", ".t"};
	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
		char app[256];
		snprintf(app, sizeof(app),
		    "  app: { use: router, with: { routes: [ { host: \"%s\", to: x } ] }, to: { x: "
		    "e "
		    "} }\n  e: { use: respond }\n",
		    hosts[i]);
		yaml_refused(app, "route 1: no request can match this 'host'");
	}
	static const char *const methods[] = {"get", "GET|head", "|", "GET|", "|GET", "GET||HEAD",
	    "G T", "TRACE", "CONNECT", "GET|AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"};
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		char app[256];
		snprintf(app, sizeof(app),
		    "  app: { use: router, with: { routes: [ { method: \"%s\", to: x } ] }, to: "
		    "{ x: e } }\n  e: { use: respond }\n",
		    methods[i]);
		yaml_refused(app, "route 1: no request has this 'method'");
	}
	yaml_refused("  app: { use: access_log, with: { file: /nowhere/log }, to: { out: e } }\n"
		     "  e: { use: respond }\n",
	    "'/nowhere/log' cannot be opened for writing: No such file or directory");
}

CUNIT_MAIN("http stages", {"respond", test_respond}, {"router", test_router},
    {"router with else", test_router_else}, {"access_log", test_log},
    {"access_log, a share", test_sample}, {"access_log, errors alone", test_errors_alone},
    {"access_log, torn", test_torn_is_told}, {"common log format", test_common_log},
    {"refused configurations", test_refused})
