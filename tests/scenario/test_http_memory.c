/* SPDX-License-Identifier: MIT */
/* The memory of connections: how much a client can make the server hold for the bytes it sends,
 * what the server does as its budget fills, and that all of it is released. */
#include <stdint.h>

#include "net/memory_auto.h"
#include "fixture/http/server.h"

static struct server server;

static void start(void)
{
	server = server_new("t.reply");
	server_start(&server);
}

static int64_t held(void)
{
	return server_metric(&server, "http_memory_bytes");
}

/* Update the maximum of the memory held. */
static void look(int64_t *most)
{
	int64_t now = held();

	*most = now > *most ? now : *most;
}

/* ---- amplification ---- */

/* What any connection may hold, whatever it sends: itself, a read buffer, a first piece of a body,
 * PIPELINE_FREE. */
#define BASE_BYTES (28 * 1024)
#define FACTOR     16

struct misuse {
	const char *name;
	void (*write)(char *text, size_t *n);
};

static void say(char *text, size_t *n, const char *what, int times)
{
	for (int i = 0; i < times; i++)
		*n += (size_t)sprintf(text + *n, "%s", what);
}

static void half_head(char *text, size_t *n)
{
	say(text, n, "GET /", 1);
}

static void half_long_head(char *text, size_t *n)
{
	say(text, n, "GET / HTTP/1.1\r\nHost: t\r\n", 1);
	say(text, n, "X: 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789\r\n",
	    80);
}

static void half_body(char *text, size_t *n)
{
	say(text, n, "POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 1000000\r\n\r\nx", 1);
}

static void half_long_body(char *text, size_t *n)
{
	half_body(text, n);
	say(text, n, "0123456789", 6600); /* a size just over a power of two would be the worst */
}

static void half_chunked(char *text, size_t *n)
{
	say(text, n, "POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n", 1);
	say(text, n, "1\r\nx\r\n", 5000);
}

static void many_fields(char *text, size_t *n)
{
	say(text, n, "GET /wait/end HTTP/1.1\r\nHost: t\r\n", 1);
	say(text, n, "a:\r\n", 98);
	say(text, n, "\r\n", 1);
}

static void pipeline(char *text, size_t *n)
{
	say(text, n, "GET /wait/end HTTP/1.1\r\nHost: t\r\n\r\n", 1);
	say(text, n, "GET / HTTP/1.1\r\nHost:t\r\n\r\n", 63);
}

static void long_pipeline(char *text, size_t *n)
{
	say(text, n, "GET /wait/end HTTP/1.1\r\nHost: t\r\n\r\n", 1);
	say(text, n, "GET / HTTP/1.1\r\nHost:t\r\n\r\n", 3000);
}

static void pipeline_of_fields(char *text, size_t *n)
{
	for (int i = 0; i < 64; i++)
		many_fields(text, n);
}

static const struct misuse misuses[] = {{"half head", half_head},
    {"half head, 5 KB", half_long_head}, {"half body", half_body},
    {"half body, 66 KB", half_long_body}, {"half chunked body", half_chunked},
    {"98 fields", many_fields}, {"64 small requests", pipeline},
    {"3,000 small requests", long_pipeline}, {"64 requests of 98 fields", pipeline_of_fields}};

/* Send what fits; the rest stays in the socket buffers. Returns how much was sent. */
static size_t send_some(int fd, const char *text, size_t n)
{
	struct timeval soon = {.tv_usec = 100000};
	ssize_t sent = 0;
	size_t all = 0;

	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &soon, sizeof(soon));
	while (all < n && (sent = send(fd, text + all, n - all, MSG_NOSIGNAL)) > 0)
		all += (size_t)sent;
	return all;
}

static void test_amplification(void)
{
	char *text = malloc(1 << 20);

	start();
	for (size_t i = 0; i < sizeof(misuses) / sizeof(misuses[0]); i++) {
		size_t n = 0;
		int fd;
		int64_t most = 0;
		gates_reset();
		misuses[i].write(text, &n);
		int64_t before = server_metric(&server, "http_received_bytes_total");
		fd = client_open(server.port);
		n = send_some(fd, text, n);
		/* Wait until the server has read all it will: a full pipeline leaves the rest
		 * unread. */
		FIXTURE_AWAIT(
		    (look(&most), most > 0) &&
		    (server_metric(&server, "http_received_bytes_total") - before == (int64_t)n ||
			server_metric(&server, "http_pipeline_full_total") > 0));
		for (int k = 0; k < 20; k++) {
			look(&most);
			sched_yield();
		}
		printf("\n    %-26s %7zu bytes sent, %7lld held ", misuses[i].name, n,
		    (long long)most);
		CU_ASSERT(most > 0);
		CU_ASSERT(most <= BASE_BYTES + FACTOR * (int64_t)n);
		gate_open("end");
		close(fd);
		AWAIT_METRIC(&server, "http_memory_bytes", ==, 0);
	}
	free(text);
	server_stop(&server);
}

/* A client that does not read makes the server hold its answers, at most one pipeline of them. */
static void test_unread(void)
{
	enum { ANSWER = 1000000, PIPELINE = 4 };
	int fd;

	server = server_new("t.reply");
	fixture_set(server.web, "with.pipeline", "4");
	server_start(&server);
	fd = client_open(server.port);
	for (int i = 0; i < 100; i++)
		CU_ASSERT(client_say(fd, GET("/big/1000000")));
	/* The sockets take some megabytes; after that the server holds the rest. */
	AWAIT_METRIC(&server, "http_memory_bytes", >, ANSWER);
	FIXTURE_AWAIT(held() > (PIPELINE - 1) * ANSWER);
	CU_ASSERT(held() <= PIPELINE * (ANSWER + 2048) + BASE_BYTES);
	close(fd);
	AWAIT_METRIC(&server, "http_memory_bytes", ==, 0);
	server_stop(&server);
}

/* ---- the budget ---- */

enum { LIMIT_BYTES = 1 << 20, FILLERS = 200 };

static int filler[FILLERS], n_fillers;

/* Send half bodies until `percent` of the budget is held: about 8 KB each. */
static void fill_to(int percent, int step)
{
	static const char text[] = "POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 3000\r\n\r\nx";

	while (held() < (int64_t)LIMIT_BYTES * percent / 100) {
		int64_t before = server_metric(&server, "http_received_bytes_total");
		CU_ASSERT_FATAL(n_fillers < FILLERS);
		filler[n_fillers] = client_open(server.port);
		client_say(filler[n_fillers++], text);
		AWAIT_METRIC(
		    &server, "http_received_bytes_total", ==, before + (int64_t)sizeof(text) - 1);
	}
	AWAIT_METRIC(&server, "http_memory_step", ==, step);
}

static void expect(int fd, int status, bool close_after)
{
	struct answer a = {0};

	CU_ASSERT(client_say(fd, GET("/")));
	CU_ASSERT(answer_read(fd, &a));
	CU_ASSERT_EQUAL(a.status, status);
	CU_ASSERT_EQUAL(a.close, close_after);
	if (status == 503) {
		const char *code = field_in(a.head, "X-Weir-Limit");
		CU_ASSERT(code && strcmp(code, "memory") == 0);
		CU_ASSERT_PTR_NOT_NULL(field_in(a.head, "Retry-After"));
	}
	if (close_after) {
		CU_ASSERT(client_at_end(fd));
		close(fd);
	}
	answer_free(&a);
}

static void test_steps(void)
{
	static const char long_post[] =
	    "POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 200000\r\n\r\nx";
	struct answer a = {0};
	char *piece = calloc(1, 100000);
	int fd[3], grows, late;
	int64_t accepted;

	server = server_new("t.reply");
	fixture_set(server.web, "with.memory", "1MiB");
	server_start(&server);
	for (int i = 0; i < 3; i++)
		expect(fd[i] = client_open(server.port), 200, false);
	grows = client_open(server.port);
	client_say(grows, long_post);
	/* `long_post` has arrived. (More may be held for a moment while another request is in the
	 * graph.) */
	AWAIT_METRIC(&server, "http_received_bytes_total", ==,
	    (int64_t)(3 * strlen(GET("/")) + strlen(long_post)));
	n_fillers = 0;
	fill_to(85, 1);
	expect(fd[0], 200, false);
	fill_to(92, 2);
	expect(fd[0], 200, true);
	fill_to(95, 3);
	expect(fd[1], 503, true);
	AWAIT_METRIC(&server, "http_refused_memory_total", ==, 1);
	fill_to(98, 4);
	accepted = server_metric(&server, "http_accepted_total");
	late = client_open(server.port); /* waits in the backlog */
	/* A body that needs more memory than is left. */
	client_send(grows, piece, 100000);
	CU_ASSERT(answer_read(grows, &a));
	CU_ASSERT_EQUAL(a.status, 503);
	CU_ASSERT_EQUAL(server_metric(&server, "http_accepted_total"), accepted);
	CU_ASSERT(held() <= LIMIT_BYTES);
	close(grows);
	while (n_fillers > 0)
		close(filler[--n_fillers]);
	AWAIT_METRIC(&server, "http_memory_step", ==, 0);
	expect(late, 200, false);
	expect(fd[2], 200, false);
	close(fd[2]);
	close(late);
	AWAIT_METRIC(&server, "http_memory_bytes", ==, 0);
	free(piece);
	answer_free(&a);
	server_stop(&server);
}

/* Half heads that fill the memory are evicted, so others are served again long before
 * header_timeout. */
static void relief(int n_idle)
{
	char *text = calloc(1, 16384);
	struct answer a = {0};
	int fd[FILLERS], n = 0, probe;

	server = server_new("t.reply");
	fixture_set(server.web, "with.memory", "1MiB");
	fixture_set(server.web, "with.header_timeout", "1h");
	server_start(&server);
	for (; n < n_idle; n++)
		fd[n] = client_open(server.port);
	AWAIT_METRIC(&server, "http_connections", ==, n_idle);
	memset(text, 'a', 16384);
	memcpy(text, "GET / HTTP/1.1\r\nHost: t\r\nX: ", 27);
	while (server_metric(&server, "http_memory_step") < 3 && n < FILLERS) {
		fd[n] = client_open(server.port);
		client_send(fd[n++], text, 16000);
	}
	AWAIT_METRIC(&server, "http_refused_memory_total", >, 0);
	/* Bytes still in flight may fill the memory once more. The test runner ends a test that
	 * waits forever. */
	do {
		AWAIT_METRIC(&server, "http_memory_step", <, 3);
		probe = client_open(server.port);
		CU_ASSERT_FATAL(client_say(probe, GET("/")));
		CU_ASSERT_FATAL(answer_read(probe, &a));
		CU_ASSERT_FATAL(a.status == 200 || a.status == 503);
		close(probe);
	} while (a.status != 200);
	while (n > 0)
		close(fd[--n]);
	AWAIT_METRIC(&server, "http_memory_bytes", ==, 0);
	free(text);
	answer_free(&a);
	server_stop(&server);
}

static void test_relief(void)
{
	relief(0);
}

/* Clients that have been idle for longer do not prevent the eviction of those with half a head. */
static void test_relief_behind_idle(void)
{
	relief(40);
}

/* Readers that were reset: they were evicted or, on a slow machine, exceeded the 5 s of
 * min_send_rate. */
static int64_t n_reset(void)
{
	return server_metric(&server, "http_evicted_total") +
	       server_metric(&server, "http_slow_readers_total");
}

/* Large answers that a client does not read fill the memory: the client is reset, so others need
 * not wait for its time-outs. */
static void test_relief_of_answers(void)
{
	struct answer a = {0};
	int fd, probe, tries = 0;

	server = server_new("t.reply");
	fixture_set(server.web, "with.memory", "8MiB");
	fixture_set(server.web, "with.write_timeout", "1h");
	fixture_set(server.web, "with.min_send_rate", "1");
	server_start(&server);
	fd = client_open(server.port);
	for (int i = 0; i < 18; i++)
		CU_ASSERT(client_say(fd, GET("/big/1000000")));
	FIXTURE_AWAIT(server_metric(&server, "http_memory_step") > 0 || n_reset() > 0);
	do {
		probe = client_open(server.port);
		client_say(probe, GET("/"));
		if (!answer_read(probe, &a)) /* nothing is accepted */
			a.status = 0;
		close(probe);
	} while (a.status != 200 && tries++ < 100000);
	CU_ASSERT_EQUAL(a.status, 200);
	CU_ASSERT_EQUAL(n_reset(), 1);
	close(fd);
	AWAIT_METRIC(&server, "http_memory_bytes", ==, 0);
	answer_free(&a);
	server_stop(&server);
}

/* Large answers are evicted before the memory is full: from the first step on, at which nothing is
 * refused yet. */
static void test_early_relief_of_answers(void)
{
	struct timespec rest = {.tv_nsec = 1000000};
	struct answer a = {0};
	int fd, n = 0, tries = 0;

	server = server_new("t.reply");
	fixture_set(server.web, "with.memory", "12MiB");
	fixture_set(server.web, "with.write_timeout", "1h");
	fixture_set(server.web, "with.min_send_rate", "1");
	server_start(&server);
	fd = client_open(server.port);
	while (server_metric(&server, "http_memory_step") == 0 && n_reset() == 0) {
		CU_ASSERT_FATAL(n++ < 18);                  /* the number of requests read ahead */
		if (!client_say(fd, GET("/big/1000000"))) { /* just evicted */
			FIXTURE_AWAIT(n_reset() == 1);
			break;
		}
		while (held() + server_metric(&server, "http_sent_bytes_total") < n * 1000000 &&
		       n_reset() == 0)
			nanosleep(&rest, NULL);
	}
	while (n_reset() == 0 && tries++ < 20000) {
		int probe = client_open(server.port);
		CU_ASSERT(client_say(probe, GET("/")));
		CU_ASSERT_FATAL(answer_read(probe, &a));
		CU_ASSERT_EQUAL(a.status, 200);
		close(probe);
	}
	CU_ASSERT_EQUAL(n_reset(), 1);
	CU_ASSERT_EQUAL(server_metric(&server, "http_refused_memory_total"), 0);
	answer_free(&a);
	close(fd);
	AWAIT_METRIC(&server, "http_memory_bytes", ==, 0);
	server_stop(&server);
}

/* The default limit, and a changed live knob: the metric shows both. */
static void test_limit(void)
{
	server = server_new("t.reply");
	struct answer a = {0};
	char why[256];

	server_start(&server);
	int fd = client_open(server.port);
	CU_ASSERT(client_say(fd, GET("/")) && answer_read(fd, &a));
	AWAIT_METRIC(&server, "http_memory_limit_bytes", ==, memory_auto());
	CU_ASSERT_EQUAL(
	    weir_graph_set(server.graph, "web", "with.memory", "2MiB", why, sizeof(why)), 0);
	CU_ASSERT(client_say(fd, GET("/")) && answer_read(fd, &a));
	AWAIT_METRIC(&server, "http_memory_limit_bytes", ==, 2 << 20);
	CU_ASSERT_EQUAL(
	    weir_graph_set(server.graph, "web", "with.memory", "auto", why, sizeof(why)), 0);
	CU_ASSERT(client_say(fd, GET("/")) && answer_read(fd, &a));
	AWAIT_METRIC(&server, "http_memory_limit_bytes", ==, memory_auto());
	close(fd);
	answer_free(&a);
	server_stop(&server);
}

CUNIT_MAIN("http memory", {"amplification", test_amplification}, {"unread answers", test_unread},
    {"steps", test_steps}, {"relief", test_relief},
    {"relief behind idle ones", test_relief_behind_idle},
    {"relief of answers", test_relief_of_answers},
    {"early relief of answers", test_early_relief_of_answers}, {"limit", test_limit})
