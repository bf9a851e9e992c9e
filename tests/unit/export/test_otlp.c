/* SPDX-License-Identifier: MIT */
/* The export of traces to a collector of the test, which answers with the statuses that the test
 * chooses: what is sent, what is counted, and what happens if the collector does not answer. Built
 * without the export, only its refusal is tested. */
#include "otlp.h"

#include "fixture/http/server.h"

#include <jansson.h>
#include <sys/mman.h>

#include "otlp_send.h"

/* ---- the collector ---- */

#define POSTS_MAX 16

static struct {
	int listen_fd, port;
	pthread_t thread;
	int n_statuses, status[POSTS_MAX]; /* the last one is repeated */
	/* what has come; read after collector_end */
	int n_posts;
	char *head[POSTS_MAX], *body[POSTS_MAX];
} collector;

/* Read one request of the connection. Returns false when the connection has ended. */
static bool read_post(int fd)
{
	static char text[1 << 20];
	size_t n = 0, whole = SIZE_MAX;

	while (n < whole && n < sizeof(text) - 1) {
		ssize_t got = recv(fd, text + n, 1, 0); /* no byte of the next request */
		if (got <= 0)
			return false;
		n += (size_t)got;
		text[n] = '\0';
		const char *end =
		    whole == SIZE_MAX && n > 3 && strcmp(text + n - 4, "\r\n\r\n") == 0 ? text + n
											: NULL;
		const char *length = end ? strcasestr(text, "\r\nContent-Length: ") : NULL;
		if (end)
			whole = n + (length ? strtoul(length + 18, NULL, 10) : 0);
	}
	char *body = strstr(text, "\r\n\r\n") + 4;
	int i = collector.n_posts++;
	collector.head[i] = strndup(text, (size_t)(body - text));
	collector.body[i] = strdup(body);
	return true;
}

static void answer_posts(int fd)
{
	char text[100];

	while (collector.n_posts < POSTS_MAX && read_post(fd)) {
		int i = collector.n_posts - 1;
		int k = i < collector.n_statuses ? i : collector.n_statuses - 1;
		int n = snprintf(text, sizeof(text),
		    "HTTP/1.1 %d Status\r\nContent-Length: 2\r\n\r\nok", collector.status[k]);
		send(fd, text, (size_t)n, MSG_NOSIGNAL);
	}
}

static void *collect(void *arg)
{
	int fd;

	while ((fd = accept(collector.listen_fd, NULL, NULL)) >= 0) {
		answer_posts(fd);
		close(fd);
	}
	return arg;
}

/* A collector that answers with these statuses, 0 after the last. */
static void collector_begin(int first, ...)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(sa);
	va_list args;

	memset(&collector, 0, sizeof(collector));
	va_start(args, first);
	for (int s = first; s != 0; s = va_arg(args, int))
		collector.status[collector.n_statuses++] = s;
	va_end(args);
	collector.listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CU_ASSERT_EQUAL_FATAL(bind(collector.listen_fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	CU_ASSERT_EQUAL_FATAL(listen(collector.listen_fd, 16), 0);
	getsockname(collector.listen_fd, (struct sockaddr *)&sa, &n);
	collector.port = ntohs(sa.sin_port);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&collector.thread, NULL, collect, NULL), 0);
}

/* All connections must have ended. */
static void collector_end(void)
{
	shutdown(collector.listen_fd, SHUT_RDWR); /* accept returns */
	pthread_join(collector.thread, NULL);
	close(collector.listen_fd);
}

static void collector_free(void)
{
	for (int i = 0; i < collector.n_posts; i++) {
		free(collector.head[i]);
		free(collector.body[i]);
	}
}

static const char *url_of(int port)
{
	static char url[80];

	snprintf(url, sizeof(url), "http://127.0.0.1:%d/v1/traces", port);
	return url;
}

static bool is_built_in(void)
{
	struct weir_err err = {0};

	return sender_check("http://127.0.0.1:4318/v1/traces", &err) == 0;
}

/* ---- tests ---- */

static void test_urls(void)
{
	static const char *const bad[] = {"", "127.0.0.1:4318", "ftp://127.0.0.1/", "http://",
	    "file:///etc/passwd", "http//x", "httpx://127.0.0.1/"};
	struct weir_err err = {0};
	struct weir_errs errs = {0};
	struct weir_trace_spec spec = {0};

	if (!is_built_in()) {
		CU_ASSERT_EQUAL(sender_check("http://127.0.0.1/", &err), WEIR_EINVAL);
		CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "built without"));
		return;
	}
	CU_ASSERT_EQUAL(sender_check("https://collector.example/v1/traces", &err), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct sender *s = NULL;
		err = (struct weir_err){0};
		CU_ASSERT_EQUAL(sender_check(bad[i], &err), WEIR_EINVAL);
		CU_ASSERT_EQUAL(err.code, WEIR_EINVAL);
		CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "is not an address of a collector"));
		CU_ASSERT_PTR_NOT_NULL(strstr(err.hint, "http://127.0.0.1:4318/v1/traces"));
		CU_ASSERT_EQUAL(sender_new(bad[i], NULL, &s, &err), WEIR_EINVAL);
		CU_ASSERT_PTR_NULL(s);
	}
	/* none is configured, a good one, a bad one */
	otlp_check(&spec, &errs);
	char empty[] = "", good[] = "http://127.0.0.1:1", wrong[] = "x";
	spec.otlp = empty;
	otlp_check(&spec, &errs);
	spec.otlp = good;
	otlp_check(&spec, &errs);
	CU_ASSERT_EQUAL(errs.total, 0);
	spec.otlp = wrong;
	spec.mark = (struct weir_mark){.file = "t.yaml", .line = 3, .col = 5};
	otlp_check(&spec, &errs);
	CU_ASSERT_EQUAL_FATAL(errs.total, 1);
	CU_ASSERT_EQUAL(errs.err[0].line, 3);
	CU_ASSERT_PTR_NOT_NULL(strstr(errs.err[0].hint, "use an address such as"));
}

static void test_results(void)
{
	static const struct {
		int status;
		enum sender_result result;
	} row[] = {{200, SENDER_SENT}, {202, SENDER_SENT}, {204, SENDER_SENT}, {299, SENDER_SENT},
	    {300, SENDER_REFUSED}, {400, SENDER_REFUSED}, {404, SENDER_REFUSED},
	    {429, SENDER_LATER}, {500, SENDER_REFUSED}, {502, SENDER_LATER}, {503, SENDER_LATER},
	    {504, SENDER_LATER}, {505, SENDER_REFUSED}};
	const _Atomic int64_t never = 0;
	struct weir_err err = {0};
	struct sender *s = NULL;

	if (!is_built_in())
		return;
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		char why[100] = "", expected[100] = "";
		collector_begin(row[i].status, 0);
		CU_ASSERT_EQUAL_FATAL(sender_new(url_of(collector.port), &never, &s, &err), 0);
		for (int k = 0; k < 2; k++)
			CU_ASSERT_EQUAL(sender_post(s, k ? "{\"k\":1}" : "{}", why, sizeof(why)),
			    row[i].result);
		if (row[i].result != SENDER_SENT)
			snprintf(expected, sizeof(expected), "it answered %d", row[i].status);
		CU_ASSERT_STRING_EQUAL(why, expected);
		sender_free(s);
		collector_end();
		CU_ASSERT_EQUAL_FATAL(collector.n_posts, 2);
		CU_ASSERT_EQUAL(strncmp(collector.head[0], "POST /v1/traces HTTP/1.1\r\n", 26), 0);
		CU_ASSERT_PTR_NOT_NULL(
		    strstr(collector.head[0], "\r\nContent-Type: application/json\r\n"));
		CU_ASSERT_STRING_EQUAL(collector.body[0], "{}");
		CU_ASSERT_STRING_EQUAL(collector.body[1], "{\"k\":1}");
		collector_free();
	}
	sender_free(NULL);
}

/* Nobody listens, or it is already time to give up. */
static void test_no_collector(void)
{
	const _Atomic int64_t never = 0, past = 1;
	struct weir_err err = {0};
	struct sender *s = NULL;
	char why[100] = "";

	if (!is_built_in())
		return;
	collector_begin(200, 0);
	collector_end();
	CU_ASSERT_EQUAL_FATAL(sender_new(url_of(collector.port), &never, &s, &err), 0);
	CU_ASSERT_EQUAL(sender_post(s, "{}", why, sizeof(why)), SENDER_LATER);
	CU_ASSERT_TRUE(why[0]);
	sender_free(s);
	/* a listener that never answers */
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(sa);
	CU_ASSERT_EQUAL(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	CU_ASSERT_EQUAL(listen(fd, 4), 0);
	getsockname(fd, (struct sockaddr *)&sa, &n);
	CU_ASSERT_EQUAL_FATAL(sender_new(url_of(ntohs(sa.sin_port)), &past, &s, &err), 0);
	CU_ASSERT_EQUAL(sender_post(s, "{}", why, sizeof(why)), SENDER_LATER);
	sender_free(s);
	close(fd);
}

/* ---- the export of a graph ---- */

static struct server server;
static struct otlp *otlp;

static void begin(const char *url)
{
	struct weir_err err = {0};

	server = server_new("t.reply");
	weir_spec_text(&server.spec->trace.otlp, url);
	server.spec->trace.sample = 1;
	server_start(&server);
	CU_ASSERT_EQUAL_FATAL(otlp_start(server.graph, &otlp, &err), 0);
}

static struct weir_collect_state state(void)
{
	struct weir_collect_state s;

	weir_graph_collect_state(server.graph, &s);
	return s;
}

/* Answer `n` requests and wait until they are collected. */
static void pass(int n)
{
	uint64_t before = state().collected;
	struct answer a = {0};
	int fd = client_open(server.port);

	for (int i = 0; i < n; i++) {
		CU_ASSERT(client_say(fd, GET("/x")));
		CU_ASSERT(answer_read(fd, &a) && a.status == 200);
	}
	close(fd);
	answer_free(&a);
	FIXTURE_AWAIT(state().collected == before + (uint64_t)n);
}

/* The requests in the posts: spans of kind 2. */
static int requests_sent(void)
{
	int n = 0;

	for (int i = 0; i < collector.n_posts; i++)
		for (const char *p = collector.body[i]; (p = strstr(p, "\"kind\":2")); p++)
			n++;
	return n;
}

static void end(uint64_t sent, uint64_t failed)
{
	otlp_stop(otlp);
	CU_ASSERT_EQUAL(state().sent, sent);
	CU_ASSERT_EQUAL(state().failed, failed);
	CU_ASSERT_EQUAL(state().dropped, 0);
	server_stop(&server);
}

/* All that was collected is sent, at the latest when the export stops. */
static void test_sent(void)
{
	if (!is_built_in())
		return;
	collector_begin(200, 0);
	begin(url_of(collector.port));
	pass(3);
	FIXTURE_AWAIT(state().sent == 3); /* at most about a second later */
	pass(2);
	end(5, 0);
	collector_end();
	CU_ASSERT_EQUAL(requests_sent(), 5);
	json_t *json = json_loads(collector.body[0], 0, NULL);
	CU_ASSERT_PTR_NOT_NULL(json_object_get(json, "resourceSpans"));
	CU_ASSERT_PTR_NOT_NULL(
	    strstr(collector.body[0], "\"stringValue\":\"test\"")); /* its name */
	json_decref(json);
	collector_free();
}

/* A batch that the collector will never accept is not sent again. */
static void test_refused(void)
{
	if (!is_built_in())
		return;
	collector_begin(400, 0);
	begin(url_of(collector.port));
	pass(2);
	FIXTURE_AWAIT(state().failed == 2);
	pass(1);
	end(0, 3);
	collector_end();
	CU_ASSERT_EQUAL(requests_sent(), 3);
	collector_free();
}

/* A batch that it may accept later is sent again. */
static void test_later(void)
{
	if (!is_built_in())
		return;
	collector_begin(503, 200, 0);
	begin(url_of(collector.port));
	pass(1);
	FIXTURE_AWAIT(state().sent == 1);
	end(1, 0);
	collector_end();
	CU_ASSERT_EQUAL_FATAL(collector.n_posts, 2);
	CU_ASSERT_STRING_EQUAL(collector.body[0], collector.body[1]);
	collector_free();
}

/* When the export stops, there is one last attempt. */
static void test_last(void)
{
	if (!is_built_in())
		return;
	collector_begin(503, 0);
	begin(url_of(collector.port));
	pass(4);
	end(0, 4);
	collector_end();
	CU_ASSERT_TRUE(collector.n_posts >= 1);
	collector_free();
}

/* Lines with these words in the log. */
static int lines_with(const char *log, const char *words)
{
	int n = 0;

	for (const char *p = log; (p = strstr(p, words)); p++)
		n++;
	return n;
}

/* The first failure after a success is logged, and the first success after a failure. */
static void test_log(void)
{
	static char log[1 << 16];
	char words[200];

	if (!is_built_in())
		return;
	int fd = memfd_create("log", MFD_CLOEXEC);
	collector_begin(200, 400, 400, 200, 200, 400, 0);
	begin(url_of(collector.port));
	weir_log_set_fd(fd);
	weir_log_set_level(WEIR_LOG_INFO);
	for (int i = 0; i < 6; i++) {
		pass(1);
		FIXTURE_AWAIT(state().sent + state().failed == (uint64_t)i + 1);
	}
	end(3, 3);
	weir_log_set_fd(2);
	collector_end();
	log[pread(fd, log, sizeof(log) - 1, 0)] = '\0';
	close(fd);
	snprintf(words, sizeof(words), "traces cannot be sent to %s: it answered 400",
	    url_of(collector.port));
	CU_ASSERT_EQUAL(lines_with(log, words), 2);
	CU_ASSERT_EQUAL(lines_with(log, "the collector accepts traces again"), 1);
	collector_free();
}

/* A collector takes the spans and never answers: the end of the export aborts the POST, says so and
 * counts the span as failed. */
static void test_silent(void)
{
	static char log[1 << 16];
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(sa);
	char byte;

	if (!is_built_in())
		return;
	int silent = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CU_ASSERT_EQUAL_FATAL(bind(silent, (struct sockaddr *)&sa, sizeof(sa)), 0);
	CU_ASSERT_EQUAL_FATAL(listen(silent, 16), 0);
	getsockname(silent, (struct sockaddr *)&sa, &n);
	int fd = memfd_create("log", MFD_CLOEXEC);
	begin(url_of(ntohs(sa.sin_port)));
	weir_log_set_fd(fd);
	weir_log_set_level(WEIR_LOG_INFO);
	pass(1);
	int conn = accept(silent, NULL, NULL);
	CU_ASSERT_EQUAL(recv(conn, &byte, 1, 0), 1); /* the POST has begun */
	end(0, 1);
	weir_log_set_fd(2);
	log[pread(fd, log, sizeof(log) - 1, 0)] = '\0';
	close(fd);
	close(conn);
	close(silent);
	CU_ASSERT_EQUAL(lines_with(log, "it did not answer before the server ended"), 1);
}

static void test_start(void)
{
	struct weir_err err = {0};
	struct otlp *second = NULL;

	/* no collector is configured */
	server = server_new("t.reply");
	server_start(&server);
	otlp = (struct otlp *)&server;
	CU_ASSERT_EQUAL(otlp_start(server.graph, &otlp, &err), 0);
	CU_ASSERT_PTR_NULL(otlp);
	otlp_stop(NULL);
	server_stop(&server);
	if (!is_built_in())
		return;
	collector_begin(200, 0);
	begin(url_of(collector.port));
	CU_ASSERT_EQUAL(otlp_start(server.graph, &second, &err), WEIR_EBUSY);
	CU_ASSERT_PTR_NULL(second);
	CU_ASSERT_EQUAL(err.code, WEIR_EBUSY);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "the trace export cannot start: "));
	pass(1);
	end(1, 0);
	collector_end();
	collector_free();
}

CUNIT_MAIN("OTLP", {"addresses", test_urls}, {"results", test_results},
    {"no collector", test_no_collector}, {"sent", test_sent}, {"refused", test_refused},
    {"later", test_later}, {"the last attempt", test_last}, {"the log", test_log},
    {"a silent collector", test_silent}, {"start", test_start})
