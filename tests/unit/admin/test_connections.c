/* SPDX-License-Identifier: MIT */
/*
 * The endpoint on real sockets: which requests reach libmicrohttpd, and that no client can keep
 * others from being answered by sending slowly, reading slowly, holding connections or using up all
 * descriptors.
 */
#include "admin/http/connections.h"

#include <fcntl.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/un.h>

#include <weir/log.h>

#include "admin/admin.h"
#include "client.h"
#include "cunit_main.h"
#include "made_up.h"

static struct made_up made_up;
static struct admin *admin;
static int port;
static char answer[1 << 20];

/* From here on the endpoint reads `made_up`, once a second even without requests. */
static void setup_made_up(void)
{
	struct weir_err err = {0};

	weir_log_set_fd(-1);
	struct admin_source source = made_up_source(&made_up);
	CU_ASSERT_EQUAL_FATAL(admin_start_source(&source, "127.0.0.1:0", &admin, &err), 0);
	port = admin_port(admin);
	CU_ASSERT_TRUE_FATAL(port > 0);
}

static void setup(void)
{
	made_up_init(&made_up);
	setup_made_up();
}

static void teardown(void)
{
	admin_stop(admin);
	admin = NULL;
}

/* Requests are still answered. */
static void is_alive(void)
{
	static char own[4096];

	CU_ASSERT_EQUAL(client_get(port, "/healthz", own, sizeof(own)), 200);
}

static void has_fields(void)
{
	char line[512];

	for (const struct reply_field *f = reply_fields; f->name; f++) {
		snprintf(line, sizeof(line), "\r\n%s: %s\r\n", f->name, f->value);
		CU_ASSERT_PTR_NOT_NULL(strstr(answer, line));
	}
}

/* The number of status lines. The text of a problem may contain "HTTP/1.1", too. */
static int answers(const char *buf)
{
	int n = 0;

	for (const char *p = buf; (p = strstr(p, "HTTP/1.1 ")); p++)
		n += client_status(p) > 0;
	return n;
}

static void test_answers(void)
{
	setup();
	CU_ASSERT_EQUAL(client_get(port, "/healthz", answer, sizeof(answer)), 200);
	CU_ASSERT_PTR_NOT_NULL(strstr(answer, "\r\n\r\nok\n"));
	has_fields();
	CU_ASSERT_EQUAL(client_get(port, "/nothing", answer, sizeof(answer)), 404);
	has_fields();
	CU_ASSERT_EQUAL(client_do(port, "POST", "/", "", "", answer, sizeof(answer)), 405);
	CU_ASSERT_PTR_NOT_NULL(strstr(answer, "\r\nAllow: GET, HEAD\r\n"));
	CU_ASSERT_EQUAL(client_do(port, "HEAD", "/", "", "", answer, sizeof(answer)), 200);
	CU_ASSERT_STRING_EQUAL(strstr(answer, "\r\n\r\n"), "\r\n\r\n");
	CU_ASSERT_EQUAL(client_get(port, "/api/v1/graph", answer, sizeof(answer)), 200);
	CU_ASSERT_EQUAL(client_get(port, "/%2e%2e/%00", answer, sizeof(answer)), 400);
	teardown();
}

static void test_set(void)
{
	static const char path[] = "/api/v1/stages/disk/knobs/threads.max";
	static const char json[] = "Content-Type: application/json\r\n";

	setup();
	CU_ASSERT_EQUAL(
	    client_do(port, "PUT", path, json, "{\"value\":\"8\"}", answer, sizeof(answer)), 200);
	CU_ASSERT_EQUAL(
	    client_do(port, "PUT", path, json, "{\"value\":\"x\"}", answer, sizeof(answer)), 422);
	CU_ASSERT_PTR_NOT_NULL(strstr(answer, "'x' is not between 1 and 64"));
	CU_ASSERT_EQUAL(
	    client_do(port, "PUT", path, "", "{\"value\":\"9\"}", answer, sizeof(answer)), 415);
	CU_ASSERT_EQUAL(client_do(port, "PUT", path,
			    "Content-Type: application/json\r\nOrigin: http://evil.example\r\n",
			    "{\"value\":\"9\"}", answer, sizeof(answer)),
	    403);
	CU_ASSERT_STRING_EQUAL(made_up.threads_max, "8");
	teardown();
}

static int refused(const char *format, ...) WEIR_PRINTF(1, 2);

static int refused(const char *format, ...)
{
	char request[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(request, sizeof(request), format, args);
	va_end(args);
	int status = client_ask(port, request, answer, sizeof(answer));
	CU_ASSERT_EQUAL(answers(answer), 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(answer, "application/problem+json"));
	has_fields();
	return status;
}

/* Requests that libmicrohttpd would answer with 200. */
static void test_refused(void)
{
	setup();
	CU_ASSERT_EQUAL(
	    refused("GET / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nHost: x\r\n\r\n", port), 400);
	CU_ASSERT_EQUAL(refused("GET / HTTP/1.1\nHost: 127.0.0.1:%d\n\n", port), 400);
	CU_ASSERT_EQUAL(refused("PUT / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Length: 4\r\n"
				"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\n"
				"Host: 127.0.0.1:%d\r\n\r\n",
			    port, port),
	    400);
	CU_ASSERT_EQUAL(refused("GET / HTTP/1.1\r\nHost: evil.example:%d\r\n\r\n", port), 421);
	CU_ASSERT_EQUAL(refused("%s", "GET / HTTP/1.1\r\n\r\n"), 400);
	CU_ASSERT_EQUAL(refused("PUT / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Length: 9999\r\n"
				"\r\n",
			    port),
	    413);
	teardown();
}

/* The connection ends with the response: bytes after the first request are not a second one. */
static void test_pipelined(void)
{
	char request[512];

	setup();
	snprintf(request, sizeof(request),
	    "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: keep-alive\r\n\r\n"
	    "GET /nothing HTTP/1.1\r\nHost: evil.example\r\n\r\n",
	    port);
	client_ask(port, request, answer, sizeof(answer));
	CU_ASSERT_TRUE(answers(answer) <= 1);
	CU_ASSERT_PTR_NULL(strstr(answer, "404"));
	is_alive();
	teardown();
}

static void test_byte_by_byte(void)
{
	static const char body[] = "{\"value\":\"7\"}";
	char request[512];

	setup();
	int n = snprintf(request, sizeof(request),
	    "PUT /api/v1/stages/disk/knobs/threads.max HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
	    "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
	    port, strlen(body), body);
	int fd = client_connect(port);
	for (int i = 0; i < n; i++)
		CU_ASSERT_EQUAL(send(fd, request + i, 1, MSG_NOSIGNAL), 1);
	client_read(fd, answer, sizeof(answer));
	close(fd);
	CU_ASSERT_EQUAL(client_status(answer), 200);
	CU_ASSERT_STRING_EQUAL(made_up.threads_max, "7");
	teardown();
}

static void test_half_close(void)
{
	char request[128];

	setup();
	snprintf(
	    request, sizeof(request), "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n", port);
	int fd = client_connect(port);
	client_send(fd, request);
	shutdown(fd, SHUT_WR);
	client_read(fd, answer, sizeof(answer));
	CU_ASSERT_EQUAL(client_status(answer), 200);
	close(fd);
	fd = client_connect(port);
	client_send(fd, "GET /healthz HT");
	shutdown(fd, SHUT_WR);
	CU_ASSERT_EQUAL(client_read(fd, answer, sizeof(answer)), 0); /* closed at once */
	close(fd);
	teardown();
}

/* Clients that stop in the middle of a head or body block nobody, and may continue later. */
static void test_slow_senders(void)
{
	char head[128];
	int slow[8];

	setup();
	snprintf(head, sizeof(head), "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n", port);
	for (int i = 0; i < 8; i++) {
		slow[i] = client_connect(port);
		client_send(slow[i], head);
	}
	for (int i = 0; i < 20; i++)
		is_alive();
	for (int i = 0; i < 8; i++) {
		client_send(slow[i], "\r\n");
		client_read(slow[i], answer, sizeof(answer));
		CU_ASSERT_EQUAL(client_status(answer), 200);
		close(slow[i]);
	}
	teardown();
}

/* More silent connections than slots: the oldest ones are evicted. */
static void test_flood(void)
{
	int fd[CONNECTIONS_MAX * 3];

	setup();
	for (int i = 0; i < CONNECTIONS_MAX * 3; i++)
		fd[i] = client_connect(port);
	for (int i = 0; i < 5; i++)
		is_alive();
	CU_ASSERT_EQUAL(client_read(fd[0], answer, sizeof(answer)), 0); /* closed */
	for (int i = 0; i < CONNECTIONS_MAX * 3; i++)
		close(fd[i]);
	is_alive();
	teardown();
}

/* A client with one connection keeps it while another opens many. */
static void test_crowd(void)
{
	int fd[CONNECTIONS_MAX * 3];
	char head[128];

	setup();
	int one = client_connect_from("127.0.0.2", port);
	CU_ASSERT_TRUE_FATAL(one >= 0);
	snprintf(head, sizeof(head), "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n", port);
	client_send(one, head);
	for (int i = 0; i < CONNECTIONS_MAX * 3; i++)
		fd[i] = client_connect(port);
	is_alive(); /* accepted after all of them */
	client_send(one, "\r\n");
	client_read(one, answer, sizeof(answer));
	CU_ASSERT_EQUAL(client_status(answer), 200);
	close(one);
	for (int i = 0; i < CONNECTIONS_MAX * 3; i++)
		close(fd[i]);
	teardown();
}

/* After a refusal the client may send the rest of its request, but not without limit. */
static void test_endless(void)
{
	enum { ENDLESS = 1 << 22 };
	static char block[1 << 14];
	char head[160];
	size_t sent = 0;
	ssize_t n = 1;

	setup();
	snprintf(head, sizeof(head),
	    "PUT / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Length: 999999999\r\n\r\n", port);
	int fd = client_connect(port);
	client_send(fd, head);
	CU_ASSERT_TRUE(recv(fd, answer, 9, MSG_WAITALL) == 9); /* refused */
	/* One block at a time, so that the endpoint reads each separately. */
	while (n > 0 && sent < ENDLESS) {
		n = send(fd, block, sizeof(block), MSG_NOSIGNAL);
		sent += n > 0 ? (size_t)n : 0;
		is_alive();
	}
	CU_ASSERT_TRUE(sent < ENDLESS);
	close(fd);
	teardown();
}

/* Clients that request more than the kernel buffers and read nothing take all connections of
 * libmicrohttpd. */
static void test_slow_readers(void)
{
	enum { COPIES = 60 };
	static char summary[1 << 16]; /* 3.9 MB in total; loopback buffers 2.6 MB */
	char request[128];
	int fd[CONNECTIONS_MAX + 2], small = 1;

	made_up_init(&made_up);
	struct weir_stage_view *many = calloc(COPIES, sizeof(*many));
	CU_ASSERT_PTR_NOT_NULL_FATAL(many);
	memset(summary, 'x', sizeof(summary) - 1);
	for (int i = 0; i < COPIES; i++)
		many[i] = (struct weir_stage_view){.name = "x",
		    .use = "x",
		    .summary = summary,
		    .placement = "x",
		    .group = "x",
		    .mode = "x",
		    .admission = "x",
		    .admission_mode = "x"};
	made_up.view.stages = many;
	made_up.view.n_stages = COPIES;
	setup_made_up();
	snprintf(request, sizeof(request),
	    "GET /api/v1/stages HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n", port);
	for (int i = 0; i < CONNECTIONS_MAX + 2; i++) {
		fd[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		setsockopt(fd[i], SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
		client_connect_with(fd[i], port);
		client_send(fd[i], request);
	}
	for (int i = 0; i < 5; i++)
		is_alive();
	for (int i = 0; i < CONNECTIONS_MAX + 2; i++)
		close(fd[i]);
	is_alive();
	teardown();
	free(many);
}

/* Without a free descriptor in the process two connections are still accepted at a time. The others
 * wait, and are answered when descriptors are free again. */
static void test_no_descriptors(void)
{
	struct rlimit before, low;
	int client[4], hog[256], n = 0;
	char request[128];

	setup();
	snprintf(
	    request, sizeof(request), "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n", port);
	for (int i = 0; i < 4; i++)
		client[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	getrlimit(RLIMIT_NOFILE, &before);
	low = before;
	low.rlim_cur = 128;
	setrlimit(RLIMIT_NOFILE, &low);
	while (n < 256 && (hog[n] = dup(0)) >= 0)
		n++;
	for (int i = 0; i < 4; i++) {
		CU_ASSERT_TRUE(client_connect_with(client[i], port) >= 0);
		client_send(client[i], request);
	}
	client_read(client[0], answer, sizeof(answer));
	CU_ASSERT_EQUAL(client_status(answer), 200);
	CU_ASSERT_PTR_NOT_NULL(strstr(answer, "\nprocess_open_fds 12"));
	for (int i = 0; i < n; i++)
		close(hog[i]);
	setrlimit(RLIMIT_NOFILE, &before);
	for (int i = 1; i < 4; i++) {
		client_read(client[i], answer, sizeof(answer));
		CU_ASSERT_EQUAL(client_status(answer), 200);
	}
	for (int i = 0; i < 4; i++)
		close(client[i]);
	is_alive();
	teardown();
}

static void test_file(void)
{
	char dir[] = "/tmp/weir-test-XXXXXX", at[64];
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	struct weir_err err = {0};

	weir_log_set_fd(-1);
	made_up_init(&made_up);
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/s", dir);
	snprintf(at, sizeof(at), "unix:%.40s/s", dir);
	struct admin_source source = made_up_source(&made_up);
	CU_ASSERT_EQUAL_FATAL(admin_start_source(&source, at, &admin, &err), 0);
	CU_ASSERT_EQUAL(admin_port(admin), 0);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CU_ASSERT_EQUAL(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	client_send(fd, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
	client_read(fd, answer, sizeof(answer));
	CU_ASSERT_EQUAL(client_status(answer), 200);
	close(fd);
	teardown();
	CU_ASSERT_NOT_EQUAL(access(sa.sun_path, F_OK), 0);
	rmdir(dir);
}

static void test_start_refused(void)
{
	struct weir_err err = {0};
	struct admin *other = NULL;
	char at[32];

	setup();
	struct admin_source source = made_up_source(&made_up);
	snprintf(at, sizeof(at), "127.0.0.1:%d", port);
	CU_ASSERT_EQUAL(admin_start_source(&source, at, &other, &err), WEIR_EBUSY);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, at));
	CU_ASSERT_EQUAL(admin_start_source(&source, "0.0.0.0:0", &other, &err), WEIR_EINVAL);
	CU_ASSERT_PTR_NULL(other);
	is_alive();
	teardown();
	admin_stop(NULL);
}

/* Stop with connections in every state; each client sees the end of its connection. */
static void test_stop(void)
{
	char request[128];
	int fd[3];

	setup();
	snprintf(request, sizeof(request),
	    "GET /api/v1/stages HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n", port);
	for (int i = 0; i < 3; i++)
		fd[i] = client_connect(port);
	client_send(fd[1], "GET / HTT");
	client_send(fd[2], request);
	is_alive();
	teardown();
	for (int i = 0; i < 3; i++) {
		CU_ASSERT_TRUE(client_read(fd[i], answer, sizeof(answer)) >= 0);
		close(fd[i]);
	}
	CU_ASSERT_EQUAL(made_up.n_views, 0);
}

CUNIT_MAIN("connections", {"answers", test_answers}, {"set a knob", test_set},
    {"refused before libmicrohttpd", test_refused}, {"pipelined", test_pipelined},
    {"byte by byte", test_byte_by_byte}, {"half-close", test_half_close},
    {"slow senders", test_slow_senders}, {"flood", test_flood}, {"crowd", test_crowd},
    {"endless body", test_endless}, {"slow readers", test_slow_readers},
    {"no descriptors", test_no_descriptors}, {"socket file", test_file},
    {"start refused", test_start_refused}, {"stop", test_stop})
