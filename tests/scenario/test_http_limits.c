/* SPDX-License-Identifier: MIT */
/* Answers to clients that do something wrong, or too much, or too slowly: one answer, in order,
 * then the end of the connection, and never a second parse. The server continues to serve
 * others. */
#include <sys/resource.h>
#include <sys/wait.h>

#include "fixture/clock/held_clock.h"
#include "fixture/http/server.h"

static struct server server;

static void start(void)
{
	server = server_new("t.reply");
	fixture_set(server.web, "with.max_body", "1000");
	server_start(&server);
}

/* Send `text` between two good requests: the answers are 200 and `status`, then the connection
 * ends. */
static void expect_refusal(const char *text, size_t n, int status)
{
	struct answer a = {0};
	int fd = client_open(server.port);

	CU_ASSERT(client_say(fd, GET("/good")));
	CU_ASSERT(client_send(fd, text, n));
	client_say(fd, GET("/never"));
	CU_ASSERT(answer_read(fd, &a) && answer_is(&a, 200, "GET /good\n"));
	CU_ASSERT(answer_read(fd, &a));
	if (a.status != status)
		fprintf(stderr, "got %d, expected %d: %.*s\n", a.status, status, (int)n, text);
	CU_ASSERT_EQUAL(a.status, status);
	CU_ASSERT(a.close);
	CU_ASSERT(client_at_end(fd));
	close(fd);
	answer_free(&a);
}

#define EXPECT(text, status) expect_refusal(text, sizeof(text) - 1, status)
#define POST                 "POST / HTTP/1.1\r\nHost: t\r\n"

static void test_refusals(void)
{
	start();
	EXPECT("GET / HTTP/1.1\r\n\r\n", 400);
	EXPECT("GET /\r\n", 400);
	EXPECT("GET / HTTP/1.1\nHost: t\n\n", 400);
	EXPECT("GET / HTTP/1.1\r\nHost: t\r\nX: a\0b\r\n\r\n", 400);
	EXPECT(POST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400);
	EXPECT(POST "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", 400);
	EXPECT(POST "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 400);
	EXPECT(POST "Transfer-Encoding: chunked\r\n\r\n5 \r\nhello\r\n0\r\n\r\n", 400);
	EXPECT(POST "Transfer-Encoding: chunked\r\n\r\n5\r\nhello0\r\n\r\n", 400);
	EXPECT(POST "Content-Length: 1001\r\n\r\n", 413);
	EXPECT(POST "Transfer-Encoding: chunked\r\n\r\n3e9\r\n", 413);
	EXPECT(POST "Expect: the-worst\r\n\r\n", 417);
	EXPECT("BREW / HTTP/1.1\r\nHost: t\r\n\r\n", 501);
	EXPECT("GET / HTTP/3.0\r\nHost: t\r\n\r\n", 505);
	AWAIT_METRIC(&server, "http_bad_requests_total", ==, 14);
	CU_ASSERT_EQUAL(server_offered(&server), 14); /* only the good ones */
	server_stop(&server);
}

static void test_long_heads(void)
{
	char *text = malloc(40000);

	start();
	memset(text, 'a', 40000);
	memcpy(text, "GET /", 5);
	expect_refusal(text, 9000, 414);
	memcpy(text, POST "X: ", sizeof(POST "X: ") - 1);
	expect_refusal(text, 17000, 431);
	expect_refusal(text, 40000, 431);
	free(text);
	server_stop(&server);
}

/* A refused client that keeps sending still gets its answer: no reset destroys it. */
static void test_lingering(void)
{
	struct answer a = {0};
	char *text = malloc(300000);
	int fd;

	start();
	memset(text, 'x', 300000);
	fd = client_open(server.port);
	CU_ASSERT(client_say(fd, POST "Content-Length: 300000\r\n\r\n"));
	CU_ASSERT(client_send(fd, text, 300000));
	CU_ASSERT(answer_read(fd, &a));
	CU_ASSERT_EQUAL(a.status, 413);
	CU_ASSERT(client_at_end(fd));
	close(fd);
	free(text);
	answer_free(&a);
	server_stop(&server);
}

/* A limit changed while the server runs applies to the next request. */
static void test_live_limit(void)
{
	static const char text[] = POST "Content-Length: 1001\r\n\r\n";
	struct answer a = {0};
	char body[1001], why[256];
	int fd;

	start();
	memset(body, 'b', sizeof(body));
	CU_ASSERT_EQUAL(
	    weir_graph_set(server.graph, "web", "with.max_body", "1001", why, sizeof(why)), 0);
	fd = client_open(server.port);
	CU_ASSERT(client_say(fd, text) && client_send(fd, body, sizeof(body)));
	CU_ASSERT(answer_read(fd, &a));
	CU_ASSERT_EQUAL(a.status, 200);
	CU_ASSERT_EQUAL(
	    weir_graph_set(server.graph, "web", "with.max_body", "1000", why, sizeof(why)), 0);
	CU_ASSERT(client_say(fd, text));
	CU_ASSERT(answer_read(fd, &a));
	CU_ASSERT_EQUAL(a.status, 413);
	close(fd);
	answer_free(&a);
	server_stop(&server);
}

/* ---- time ---- */

static void start_with(const char *knob, const char *value)
{
	server = server_new("t.reply");
	fixture_set(server.web, knob, value);
	server_start(&server);
}

/* A server whose time stands still until clock_move: the beginning of a head arrives in time,
 * however slow the client is. */
static void start_held(const char *header_timeout)
{
	server = server_new("t.reply");
	fixture_set(server.web, "with.header_timeout", header_timeout);
	fixture_set(server.app, "threads", "inline");
	clock_hold();
	server_start(&server);
}

static void stop_held(void)
{
	server_stop(&server);
	clock_release();
}

static void test_header_timeout(void)
{
	static const char part[] = "GET / HTTP/1.1\r\nHo";
	struct answer a = {0};
	int fd, silent;

	start_held("50ms");
	silent = client_open(server.port);
	fd = client_open(server.port);
	CU_ASSERT(client_say(fd, part));
	AWAIT_METRIC(&server, "http_connections", ==, 2);
	AWAIT_METRIC(&server, "http_received_bytes_total", ==, (int64_t)strlen(part));
	clock_move(60);
	CU_ASSERT(answer_read(fd, &a));
	CU_ASSERT_EQUAL(a.status, 408);
	CU_ASSERT(client_at_end(fd));
	CU_ASSERT(client_at_end(silent)); /* nothing sent, so no answer */
	AWAIT_METRIC(&server, "http_timeouts_header_total", ==, 1);
	AWAIT_METRIC(&server, "http_timeouts_idle_total", ==, 1);
	close(fd);
	close(silent);
	answer_free(&a);
	stop_held();
}

/* A HEAD request whose fields are late: the answer has no body (RFC 9110, 9.3.2). */
static void test_header_timeout_head(void)
{
	static const char part[] = "HEAD / HTTP/1.1\r\nHo";
	struct answer a = {0};
	int fd;

	start_held("50ms");
	fd = client_open(server.port);
	CU_ASSERT(client_say(fd, part));
	AWAIT_METRIC(&server, "http_received_bytes_total", ==, (int64_t)strlen(part));
	clock_move(60);
	CU_ASSERT(answer_read_as(fd, &a, true));
	CU_ASSERT_EQUAL(a.status, 408);
	CU_ASSERT(client_at_end(fd));
	close(fd);
	answer_free(&a);
	stop_held();
}

static void test_body_timeout(void)
{
	struct answer a = {0};
	int fd;

	start_with("with.body_timeout", "50ms");
	fd = client_open(server.port);
	CU_ASSERT(client_say(fd, POST "Content-Length: 10\r\n\r\n12345"));
	CU_ASSERT(answer_read(fd, &a));
	CU_ASSERT_EQUAL(a.status, 408);
	AWAIT_METRIC(&server, "http_timeouts_body_total", ==, 1);
	CU_ASSERT(client_at_end(fd));
	close(fd);
	answer_free(&a);
	server_stop(&server);
}

/* The last request is answered, with Connection: close, and is counted. */
static void test_keep_alive_requests(void)
{
	struct answer a = {0};
	int fd;

	start_with("with.keep_alive_requests", "3");
	fd = client_open(server.port);
	for (int i = 1; i <= 3; i++) {
		CU_ASSERT(client_say(fd, GET("/")));
		CU_ASSERT(answer_read(fd, &a));
		CU_ASSERT_EQUAL(a.status, 200);
		CU_ASSERT_EQUAL(a.close, i == 3);
	}
	CU_ASSERT(client_at_end(fd));
	AWAIT_METRIC(&server, "http_keep_alive_ends_total", ==, 1);
	close(fd);
	answer_free(&a);
	server_stop(&server);
}

static void test_idle_timeout(void)
{
	struct answer a = {0};
	int fd;

	start_with("with.idle_timeout", "50ms");
	fd = client_open(server.port);
	CU_ASSERT(client_say(fd, GET("/")));
	CU_ASSERT(answer_read(fd, &a));
	CU_ASSERT(client_at_end(fd));
	AWAIT_METRIC(&server, "http_timeouts_idle_total", ==, 1);
	/* The idle time-out does not run while a request is in the graph. */
	close(fd);
	fd = client_open(server.port);
	CU_ASSERT(client_say(fd, GET("/wait/one")));
	gate_await(1);
	int other = client_open(server.port);
	CU_ASSERT(client_say(other, GET("/status/404")));
	gate_open("one");
	CU_ASSERT(answer_read(fd, &a));
	CU_ASSERT_EQUAL(a.status, 200);
	close(fd);
	close(other);
	answer_free(&a);
	server_stop(&server);
}

static void test_write_timeout(void)
{
	int fd;

	start_with("with.write_timeout", "50ms");
	fd = client_open(server.port);
	CU_ASSERT(client_say(fd, GET("/big/100000000")));
	AWAIT_METRIC(&server, "http_timeouts_write_total", ==, 1);
	AWAIT_METRIC(&server, "http_connections", ==, 0);
	close(fd);
	server_stop(&server);
}

/* ---- limits on connections ---- */

static void test_max_connections(void)
{
	struct answer a = {0};
	int fd[4];

	start_with("with.max_connections", "3");
	for (int i = 0; i < 3; i++) {
		fd[i] = client_open(server.port);
		CU_ASSERT(client_say(fd[i], GET("/")));
		CU_ASSERT(answer_read(fd[i], &a));
	}
	CU_ASSERT(client_say(fd[0], GET("/wait/one")));
	gate_await(1);
	AWAIT_METRIC(&server, "http_connections", ==, 3);
	fd[3] = client_open(server.port); /* none has been idle for long: 503 */
	client_say(fd[3], GET("/"));
	CU_ASSERT(answer_read(fd[3], &a));
	CU_ASSERT_EQUAL(a.status, 503);
	CU_ASSERT_PTR_NOT_NULL(field_in(a.head, "Retry-After"));
	CU_ASSERT(client_at_end(fd[3]));
	close(fd[3]);
	close(fd[1]);
	AWAIT_METRIC(&server, "http_connections", ==, 2);
	fd[3] = client_open(server.port);
	CU_ASSERT(client_say(fd[3], GET("/")));
	gate_open("one");
	CU_ASSERT(answer_read(fd[3], &a));
	CU_ASSERT_EQUAL(a.status, 200);
	close(fd[0]);
	close(fd[2]);
	close(fd[3]);
	answer_free(&a);
	server_stop(&server);
}

/* All slots are taken by idle clients: a new one evicts the one that has been idle longest. */
static void test_eviction(void)
{
	struct answer a = {0};
	int fd[3], n;

	start_with("with.max_connections", "2");
	for (int i = 0; i < 2; i++) {
		fd[i] = client_open(server.port);
		CU_ASSERT(client_say(fd[i], GET("/")));
		CU_ASSERT(answer_read(fd[i], &a));
	}
	for (n = 0; server_metric(&server, "http_evicted_total") == 0; n++) {
		fd[2] = client_open(server.port);
		client_say(fd[2], GET("/"));
		CU_ASSERT(answer_read(fd[2], &a));
		close(fd[2]);
	}
	CU_ASSERT_EQUAL(a.status, 200);
	CU_ASSERT(client_at_end(fd[0])); /* the older one */
	CU_ASSERT(client_say(fd[1], GET("/still")));
	CU_ASSERT(answer_read(fd[1], &a) && answer_is(&a, 200, "GET /still\n"));
	close(fd[0]);
	close(fd[1]);
	answer_free(&a);
	server_stop(&server);
}

/* ---- out of descriptors ---- */

enum { FLOOD = 60 };

/* Since descriptors run out in this process, the client side is a child. It connects, reports,
 * closes half on command, and then sends a request on each remaining connection. Its exit status is
 * the number of answers with 200, or 255. */
static void flood(int commands, int reports)
{
	int fd[FLOOD], port, answered = 0;
	struct answer a = {0};
	char go = 'x';

	if (read(commands, &port, sizeof(port)) != sizeof(port))
		_exit(255);
	for (int i = 0; i < FLOOD; i++)
		fd[i] = client_open(port);
	if (write(reports, &go, 1) != 1 || read(commands, &go, 1) != 1)
		_exit(255);
	for (int i = 0; i < FLOOD / 2; i++)
		close(fd[i]);
	for (int i = FLOOD / 2; i < FLOOD; i++)
		if (fd[i] != -1 && client_say(fd[i], GET("/")) && answer_read(fd[i], &a))
			answered += a.status == 200;
	_exit(answered);
}

static int lower_fd_limit(int free_fds)
{
	struct rlimit r;
	int highest = dup(0), old;

	getrlimit(RLIMIT_NOFILE, &r);
	old = (int)r.rlim_cur;
	r.rlim_cur = (rlim_t)(highest + free_fds);
	setrlimit(RLIMIT_NOFILE, &r);
	close(highest);
	return old;
}

static void test_out_of_descriptors(void)
{
	int commands[2], reports[2], status, old;
	struct rlimit r;
	char go;
	pid_t child;

	CU_ASSERT_EQUAL_FATAL(pipe(commands) | pipe(reports), 0);
	child = fork();
	if (child == 0)
		flood(commands[0], reports[1]);
	server = server_new("t.reply");
	server_start(&server);
	old = lower_fd_limit(20);
	CU_ASSERT_EQUAL(write(commands[1], &server.port, sizeof(server.port)), sizeof(server.port));
	CU_ASSERT_EQUAL(read(reports[0], &go, 1), 1);
	AWAIT_METRIC(&server, "http_accept_failures_total", >, 2);
	/* The listener is paused between failures, so there are few: one that spins causes
	 * 100,000/s. */
	CU_ASSERT(server_metric(&server, "http_accept_failures_total") < 1000);
	CU_ASSERT_EQUAL(write(commands[1], &go, 1), 1);
	CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
	CU_ASSERT(WIFEXITED(status));
	CU_ASSERT(WEXITSTATUS(status) > 0 && WEXITSTATUS(status) <= FLOOD / 2);
	getrlimit(RLIMIT_NOFILE, &r);
	r.rlim_cur = (rlim_t)old;
	setrlimit(RLIMIT_NOFILE, &r);
	close(commands[0]);
	close(commands[1]);
	close(reports[0]);
	close(reports[1]);
	server_stop(&server);
}

/* ---- start-up ---- */

static void expect_error(const char *listen, const char *words)
{
	struct server s = server_new("t.reply");
	struct weir_errs *errs = calloc(1, sizeof(*errs));
	struct weir_graph *g = NULL;

	fixture_set(s.web, "with.listen", listen);
	if (weir_graph_build(s.spec, &g, errs) == 0)
		CU_ASSERT_NOT_EQUAL(weir_graph_start(g, errs), 0);
	CU_ASSERT_EQUAL_FATAL(errs->n, 1);
	if (!strstr(errs->err[0].text, words))
		fprintf(stderr, "%s\n", errs->err[0].text);
	CU_ASSERT_PTR_NOT_NULL(strstr(errs->err[0].text, words));
	if (g)
		weir_graph_free(g);
	else
		weir_spec_free(s.spec);
	free(errs);
}

static void test_bad_addresses(void)
{
	char taken[64], words[128];

	start();
	snprintf(taken, sizeof(taken), "127.0.0.1:%d", server.port);
	snprintf(words, sizeof(words), "%s is in use by another process", taken);
	expect_error(taken, words);
	expect_error("192.0.2.1:80", "192.0.2.1:80 is not an address of this host");
	expect_error("8080", "not an address to listen on");
	expect_error("127.0.0.1:99999", "not a number from 0 to 65535");
	expect_error("::1:80", "not an address to listen on");
	expect_error("[::1:80", "not an address to listen on");
	server_stop(&server);
}

CUNIT_MAIN("http limits", {"refusals", test_refusals}, {"long heads", test_long_heads},
    {"lingering close", test_lingering}, {"live limit", test_live_limit},
    {"header timeout", test_header_timeout}, {"header timeout of a HEAD", test_header_timeout_head},
    {"body timeout", test_body_timeout}, {"last request", test_keep_alive_requests},
    {"idle timeout", test_idle_timeout}, {"write timeout", test_write_timeout},
    {"connection limit", test_max_connections}, {"eviction of the idle", test_eviction},
    {"out of descriptors", test_out_of_descriptors}, {"bad addresses", test_bad_addresses})
