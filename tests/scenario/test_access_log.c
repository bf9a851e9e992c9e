/* SPDX-License-Identifier: MIT */
/* Access log lines of answers in flight: a line is written when the answer has been sent or its
 * connection has ended, with the number of bytes sent, for every form of a body. The answers are
 * larger than all socket buffers. */
#include "fixture/http/server.h"

#include <fcntl.h>
#include <sys/mman.h>

#include "config.h"
#include "fixture/graph/drain.h"

#define BYTES (32 << 20)
/* Bytes that a client reads of an answer; it leaves the rest. */
#define READ (64 << 10)

static char log_path[] = "/tmp/weir-access-XXXXXX";
static struct server server;
static char *bytes;
static int file;
static struct weir_http_piece piece[3];

/* ---- answers of BYTES ---- */

/* Returns false while it waits for free space. */
static bool stream(struct weir_stage *st, struct weir_event **ev)
{
	struct weir_http_request *req = weir_http_request(*ev);
	int64_t at;

	if (!req->res.streamed)
		weir_http_stream_begin(req, 200, "text/plain");
	while ((at = weir_http_stream_bytes(req)) < BYTES) {
		struct weir_slice rest = {bytes + at, (size_t)(BYTES - at)};
		int64_t n = weir_http_stream_write(req, rest);
		if (n < 0) /* the client has closed the connection */
			return true;
		if (n < (int64_t)rest.n) {
			weir_http_wait(st, ev, WEIR_HTTP_ROOM);
			return false;
		}
	}
	return true;
}

static void big_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		struct weir_http_request *req = weir_http_request(ev[i]);
		if (target_starts(req, "/stream") && !stream(st, &ev[i]))
			continue;
		if (target_starts(req, "/memory"))
			weir_http_respond(
			    req, 200, NULL, (struct weir_slice){bytes, BYTES}, NULL, NULL);
		if (target_starts(req, "/file"))
			weir_http_respond_file(req, 200, NULL, file, 0, BYTES, NULL, NULL);
		if (target_starts(req, "/pieces")) {
			piece[0] = (struct weir_http_piece){.p = bytes, .n = 10};
			piece[1] = (struct weir_http_piece){.n = BYTES - 20};
			piece[2] = (struct weir_http_piece){.p = bytes, .n = 10};
			weir_http_respond_pieces(req, 200, NULL, piece, 3, file, NULL, NULL);
		}
		weir_event_finish(&ev[i], WEIR_OK);
	}
}

static const struct weir_stage_ops big_ops = {.abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_IN_PARTS,
    .name = "t.big",
    .summary = "answers at length",
    .accepts = &weir_http_request_type,
    .handle = big_handle};

/* ---- the server and its log ---- */

/* A server that logs to `path`. */
static struct weir_spec *make(const char *path, const char *with)
{
	struct weir_errs *errs = calloc(1, sizeof(*errs));
	struct weir_spec *spec = NULL;
	char yaml[1024];

	snprintf(yaml, sizeof(yaml),
	    "weir: 1\nadmin: { listen: \"\" }\nstages:\n"
	    "  web: { use: http.server, with: { listen: \"127.0.0.1:0\", threads: 1, linger: 0ms "
	    "}, "
	    "to: { request: log } }\n"
	    "  log: { use: access_log, with: { file: %s, flush: 1ms, slow: 0s%s }, to: { out: "
	    "other } }\n"
	    "  other: { use: access_log, with: { file: /dev/null }, to: { out: end } }\n"
	    "  end: { use: t.big }\n",
	    path, with);
	CU_ASSERT_EQUAL_FATAL(config_load_text(yaml, strlen(yaml), "test.yaml", &spec, errs), 0);
	free(errs);
	return spec;
}

static void start(const char *with)
{
	static bool registered;

	if (!registered) {
		fixture_register(&big_ops);
		bytes = calloc(1, BYTES);
		file = memfd_create("big", MFD_CLOEXEC);
		CU_ASSERT_EQUAL_FATAL(ftruncate(file, BYTES), 0);
	}
	registered = true;
	strcpy(log_path + sizeof(log_path) - 7, "XXXXXX");
	close(mkstemp(log_path));
	weir_log_set_level(WEIR_LOG_ERROR);
	server = (struct server){.spec = make(log_path, with)};
	server_start(&server);
}

/* Stop the server within `grace_ns` and return the log, which is complete then. Static memory. */
static const char *lines_within(int64_t grace_ns)
{
	struct weir_drain_report report = {0};
	static char text[65536];

	weir_graph_drain(server.graph, grace_ns, &report);
	CU_ASSERT_EQUAL(report.law_error, 0);
	weir_graph_free(server.graph);
	int fd = open(log_path, O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	close(fd);
	unlink(log_path);
	return text;
}

static const char *lines(void)
{
	return lines_within(10000000000LL);
}

/* The line of `target` must contain `part`. Returns its `bytes`. */
static long long bytes_of(const char *text, const char *target, const char *part)
{
	char line[1024], find[100];
	long long n = -1;

	snprintf(find, sizeof(find), "target=\"%s\" ", target);
	const char *at = strstr(text, find);
	CU_ASSERT_PTR_NOT_NULL_FATAL(at);
	snprintf(line, sizeof(line), "%.*s", (int)strcspn(at, "\n"), at);
	CU_ASSERT_PTR_NOT_NULL(strstr(line, part));
	CU_ASSERT_EQUAL(sscanf(strstr(line, " bytes="), " bytes=%lld", &n), 1);
	CU_ASSERT_PTR_NULL(strstr(at + 1, find)); /* logged once */
	return n;
}

static const char *const targets[] = {"/memory", "/file", "/pieces", "/stream"};

/* Send a request, read the head and READ bytes, and leave the rest unread. */
static int begin_reading(const char *request)
{
	static char taken[READ];
	char head[1000];
	int fd = client_open(server.port);

	CU_ASSERT(client_say(fd, request));
	CU_ASSERT(head_read(fd, head, sizeof(head)));
	CU_ASSERT(client_take(fd, taken, sizeof(taken)));
	return fd;
}

/* A client reads a little and leaves: its answer is not logged as a success with all bytes, and it
 * is logged although no successes are sampled. */
static void test_left(void)
{
	char request[200];

	start(", sample: 0%");
	for (int i = 0; i < 4; i++) {
		snprintf(request, sizeof(request),
		    "GET %s HTTP/1.1\r\nHost: t\r\n\r\nGET /behind%d HTTP/1.1\r\nHost: t\r\n\r\n",
		    targets[i], i);
		close(begin_reading(request)); /* with unread bytes: a reset */
	}
	AWAIT_METRIC(&server, "access_log_lines_total", >=, 8);
	const char *text = lines();
	for (int i = 0; i < 4; i++) {
		long long n = bytes_of(text, targets[i], " status=200 ");
		CU_ASSERT(n >= READ && n < BYTES);
		bytes_of(text, targets[i], i == 3 ? " outcome=" : " outcome=torn ");
		snprintf(request, sizeof(request), "/behind%d", i);
		CU_ASSERT_EQUAL(bytes_of(text, request, " outcome=torn "), 0);
	}
}

/* A client reads everything, but late: no line is written before it has. */
static void test_taken(void)
{
	char request[200];
	static char rest[1 << 16];
	int fd[4];

	start("");
	for (int i = 0; i < 4; i++) {
		snprintf(request, sizeof(request),
		    "GET %s HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n", targets[i]);
		fd[i] = begin_reading(request);
	}
	CU_ASSERT_EQUAL(server_metric(&server, "access_log_lines_total"), 0);
	for (int i = 0; i < 4; i++) {
		while (client_recv(fd[i], rest, sizeof(rest), 0) > 0)
			;
		close(fd[i]);
	}
	const char *text = lines();
	for (int i = 0; i < 4; i++)
		CU_ASSERT_EQUAL(bytes_of(text, targets[i], " outcome=ok "), BYTES);
}

/* No bytes of a body are logged where none is sent. */
static void test_no_body(void)
{
	struct answer a = {0};

	start("");
	int fd = client_open(server.port);
	CU_ASSERT(client_say(fd, "HEAD /memory HTTP/1.1\r\nHost: t\r\n\r\n"));
	CU_ASSERT(answer_read_as(fd, &a, true));
	CU_ASSERT(client_say(fd, GET("/none")));
	CU_ASSERT(answer_read(fd, &a));
	close(fd);
	answer_free(&a);
	const char *text = lines();
	CU_ASSERT_EQUAL(bytes_of(text, "/memory", " status=200 "), 0);
	CU_ASSERT_EQUAL(bytes_of(text, "/none", " status=204 "), 0);
}

/* The server is stopped by force while an answer is in flight: it is still logged before the log
 * closes. */
static void test_ended(void)
{
	start("");
	int fd = begin_reading(GET("/memory"));
	const char *text = lines_within(0);
	long long n = bytes_of(text, "/memory", " outcome=torn ");
	CU_ASSERT(n >= READ && n < BYTES);
	close(fd);
}

/* A reload while answers are in flight: the bytes sent so far are logged, because the rest is sent
 * by another server. */
static void test_handed(void)
{
	struct server next = {.spec = make("/dev/null", "")};
	struct weir_errs errs = {0};
	char request[200];
	int fd[3];

	start("");
	for (int i = 0; i < 3; i++) {
		snprintf(
		    request, sizeof(request), "GET %s HTTP/1.1\r\nHost: t\r\n\r\n", targets[i]);
		fd[i] = begin_reading(request);
	}
	CU_ASSERT_EQUAL_FATAL(weir_graph_build(next.spec, &next.graph, &errs), 0);
	CU_ASSERT_EQUAL_FATAL(weir_graph_succeed(next.graph, server.graph, &errs), 0);
	const char *text = lines_within(DRAIN_ALL_NS);
	for (int i = 0; i < 3; i++) {
		long long n = bytes_of(text, targets[i], " outcome=handed ");
		CU_ASSERT(n >= READ && n < BYTES);
		close(fd[i]);
	}
	AWAIT_METRIC(&next, "http_connections", ==, 0);
	server_stop(&next);
}

CUNIT_MAIN("access log", {"the client leaves", test_left}, {"taken late", test_taken},
    {"no body", test_no_body}, {"ended by force", test_ended},
    {"handed over by a reload", test_handed})
