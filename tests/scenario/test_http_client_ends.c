/* SPDX-License-Identifier: MIT */
/* http.client when something goes wrong: origins that are silent, away or slow, clients that go or do not
 * read, and a server that stops. */
#include <fcntl.h>
#include <poll.h>

#include "fixture/http/origin.h"

static void origin_is_silent(void)
{
	struct origin o = origin_new();
	struct server s = server_before(&o);

	fixture_set(s.app, "with.timeout", "50ms");
	server_start(&s);
	int c = client_open(s.port), u = origin_ask(&o, c, GET("/"));
	CU_ASSERT(client_gets(c, 504, "504 Gateway Timeout\n"));
	CU_ASSERT(client_at_end(u));
	AWAIT_COUNT(&s, "origin_timeouts_total", 1);
	close(u);
	/* bytes of a head that does not end do not count, a body that pauses ends the connection */
	u = origin_ask(&o, c, GET("/"));
	client_say(u, "HTTP/1.1 200 OK\r\nX: ");
	CU_ASSERT(client_gets(c, 504, "504 Gateway Timeout\n"));
	close(u);
	u = origin_ask(&o, c, GET("/"));
	client_say(u, "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nsome");
	char head[2048], body[5];
	CU_ASSERT(head_read(c, head, sizeof(head)));
	CU_ASSERT(client_take(c, body, 4));
	CU_ASSERT(client_at_end(c));
	close(c);
	close(u);
	server_stop(&s);
	origin_free(&o);
}

/* The deadline of the client goes on, and ends the wait. */
static void deadline_passes(void)
{
	struct origin o = origin_new();
	struct server s = server_before(&o);
	struct answer a = {0};
	char head[2048];

	server_start(&s);
	int c = client_open(s.port);
	client_say(c, "GET / HTTP/1.1\r\nHost: t\r\nx-deadline-ms: 150\r\n\r\n");
	int u = origin_accept(&o);
	CU_ASSERT_FATAL(head_read(u, head, sizeof(head)));
	CU_ASSERT_PTR_NOT_NULL_FATAL(field_in(head, "x-deadline-ms"));
	CU_ASSERT(atoi(field_in(head, "x-deadline-ms")) <= 150);
	CU_ASSERT_FATAL(answer_read(c, &a));
	CU_ASSERT_EQUAL(a.status, 503);
	CU_ASSERT_PTR_NOT_NULL(strstr(a.head, "reason=deadline"));
	CU_ASSERT(client_at_end(u));
	answer_free(&a);
	close(c);
	close(u);
	server_stop(&s);
	origin_free(&o);
}

/* The client goes before the answer, within it, and while it uploads: the origin's connection ends. */
static void client_goes(void)
{
	struct origin o = origin_new();
	struct server s = server_before(&o);
	char head[2048];

	fixture_set(s.web, "with.stream", "1KiB");
	server_start(&s);
	int c = client_open(s.port), u = origin_ask(&o, c, GET("/"));
	close(c);
	CU_ASSERT(client_at_end(u));
	close(u);
	c = client_open(s.port);
	u = origin_ask(&o, c, GET("/"));
	client_say(u, "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nsome");
	CU_ASSERT(head_read(c, head, sizeof(head)));
	close(c);
	CU_ASSERT(client_at_end(u));
	close(u);
	c = client_open(s.port);
	u = origin_ask(&o, c, "PUT / HTTP/1.1\r\nHost: t\r\nContent-Length: 100000\r\n\r\n");
	close(c);
	CU_ASSERT(client_at_end(u));
	close(u);
	FIXTURE_AWAIT(server_metric(&s, "origin_cancelled_total") == 3);
	FIXTURE_AWAIT(server_metric(&s, "origin_connections") == 0);
	server_stop(&s);
	origin_free(&o);
}

/* Send what the socket takes. Returns the number of bytes. */
static size_t fill(int fd, size_t most)
{
	static char bytes[65536];
	size_t all = 0;

	while (all < most) {
		size_t want = most - all < sizeof(bytes) ? most - all : sizeof(bytes);
		ssize_t n = send(fd, bytes, want, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n <= 0)
			break;
		all += (size_t)n;
	}
	return all;
}

/* Neither direction takes more than its buffers hold while the other side does not read, and everything
 * arrives when it does. */
static void sides_that_do_not_read(void)
{
	struct origin o = origin_new();
	struct server s = server_before(&o);
	static char sink[65536];
	char head[2048];
	const size_t all = 64 << 20;

	fixture_set(s.web, "with.stream", "1KiB");
	fixture_set(s.web, "with.max_body", "1GiB");
	server_start(&s);
	int c = client_open(s.port), u = origin_ask(&o, c, GET("/"));
	client_say(u, "HTTP/1.1 200 OK\r\nContent-Length: 67108864\r\n\r\n");
	size_t sent = fill(u, all);
	CU_ASSERT(sent < all);
	CU_ASSERT(head_read(c, head, sizeof(head)));
	for (size_t got = 0; got < all;) {
		size_t n = all - got < sizeof(sink) ? all - got : sizeof(sink);
		sent += fill(u, all - sent);
		if (sent - got <
		    n) /* so that this thread, which plays both, does not wait for itself */
			n = sent - got;
		CU_ASSERT_FATAL(client_take(c, sink, n));
		got += n;
	}
	client_say(c, "PUT / HTTP/1.1\r\nHost: t\r\nContent-Length: 67108864\r\n\r\n");
	sent = fill(c, all);
	CU_ASSERT(sent < all);
	CU_ASSERT_FATAL(head_read(u, head, sizeof(head)));
	for (size_t got = 0; got < all;) {
		size_t n = all - got < sizeof(sink) ? all - got : sizeof(sink);
		sent += fill(c, all - sent);
		if (sent - got < n)
			n = sent - got;
		CU_ASSERT_FATAL(client_take(u, sink, n));
		got += n;
	}
	client_say(u, ANSWER("Content-Length: 2\r\n", "ok"));
	CU_ASSERT(client_gets(c, 200, "ok"));
	CU_ASSERT(server_metric(&s, "http_stream_buffer_peak_bytes") <= 65536);
	close(c);
	close(u);
	server_stop(&s);
	origin_free(&o);
}

/* Serve `n` requests over `c` at `o`, each over a connection of its own. */
static void serve(struct origin *o, int c, int n)
{
	for (int i = 0; i < n; i++) {
		int u = origin_ask(o, c, GET("/"));
		client_say(u, ANSWER("Connection: close\r\nContent-Length: 2\r\n", "ok"));
		CU_ASSERT(client_gets(c, 200, "ok"));
		close(u);
	}
}

static struct server server_before_two(const struct origin *a, const struct origin *b)
{
	struct server s = server_before(a);
	const char *texts[] = {a->text, b->text};

	server_list(s.app, "origins", texts, 2);
	return s;
}

/* One of two origins is away: its requests go to the other one, until it is left out; one request tries
 * it later. */
static void one_origin_is_away(void)
{
	struct origin away = origin_new(), o = origin_new();
	struct server s = server_before_two(&away, &o);

	fixture_set(s.app, "with.retry_budget", "100%");
	fixture_set(s.app, "with.eject", "20ms");
	origin_shut(&away);
	server_start(&s);
	int c = client_open(s.port);
	while (server_metric(&s, "origin_ejections_total") == 0)
		serve(&o, c, 1);
	CU_ASSERT_EQUAL(server_metric(&s, "origin_retries_total"), 3);
	CU_ASSERT_EQUAL(server_metric(&s, "origins_out"), 1);
	/* trials find it away, and then back */
	while (server_metric(&s, "origin_connect_failures_total") < 5)
		serve(&o, c, 1);
	CU_ASSERT_EQUAL(server_metric(&s, "origin_ejections_total"), 1);
	origin_open(&away);
	fcntl(away.fd, F_SETFL, O_NONBLOCK);
	fcntl(o.fd, F_SETFL, O_NONBLOCK);
	while (server_metric(&s, "origins_out") > 0) {
		char head[2048];
		int u = -1;
		client_say(c, GET("/"));
		while (u < 0) {
			u = accept(o.fd, NULL, NULL);
			u = u < 0 ? accept(away.fd, NULL, NULL) : u;
		}
		CU_ASSERT_FATAL(head_read(u, head, sizeof(head)));
		client_say(u, ANSWER("Connection: close\r\nContent-Length: 2\r\n", "ok"));
		CU_ASSERT(client_gets(c, 200, "ok"));
		close(u);
	}
	close(c);
	server_stop(&s);
	origin_free(&o);
	origin_free(&away);
}

/* Without a budget nothing is sent again; a POST that the origin may have got is not, either. */
static void retries_have_limits(void)
{
	struct origin away = origin_new(), o = origin_new();
	struct server s = server_before_two(&away, &o);
	int failed = 0;

	fixture_set(s.app, "with.retry_budget", "0%");
	fixture_set(s.app, "with.fails", "0");
	origin_shut(&away);
	server_start(&s);
	int c = client_open(s.port);
	fcntl(o.fd, F_SETFL, O_NONBLOCK);
	for (int i = 0; i < 100; i++) {
		struct answer a = {0};
		char head[2048], more;
		int u = -1;
		client_say(c, GET("/"));
		while (u < 0 && recv(c, &more, 1, MSG_PEEK | MSG_DONTWAIT) != 1)
			u = accept(o.fd, NULL, NULL);
		if (u >= 0) {
			CU_ASSERT_FATAL(head_read(u, head, sizeof(head)));
			client_say(u, ANSWER("Connection: close\r\nContent-Length: 2\r\n", "ok"));
		}
		CU_ASSERT_FATAL(answer_read(c, &a));
		failed += a.status == 502;
		CU_ASSERT(a.status == (u >= 0 ? 200 : 502));
		answer_free(&a);
		if (u >= 0)
			close(u);
	}
	CU_ASSERT(failed > 10);
	CU_ASSERT_EQUAL(server_metric(&s, "origin_retries_total"), 2); /* those of the start */
	CU_ASSERT_EQUAL(server_metric(&s, "origin_retries_refused_total"), failed);
	close(c);
	server_stop(&s);
	origin_free(&o);
	origin_free(&away);
}

static void requests_wait_for_a_connection(void)
{
	struct origin o = origin_new();
	struct server s = server_before(&o);
	int c[3];
	char head[2048];

	fixture_set(s.app, "with.max_connections", "1");
	server_start(&s);
	c[0] = client_open(s.port);
	int u = origin_ask(&o, c[0], GET("/0"));
	for (int i = 1; i < 3; i++) {
		c[i] = client_open(s.port);
		client_say(c[i], i == 1 ? GET("/1") : GET("/2"));
		FIXTURE_AWAIT(server_offered(&s) == (uint64_t)i + 1);
	}
	client_say(u, ANSWER("Content-Length: 1\r\n", "0"));
	CU_ASSERT(client_gets(c[0], 200, "0"));
	CU_ASSERT_FATAL(head_read(u, head, sizeof(head)));
	CU_ASSERT_EQUAL(strncmp(head, "GET /1 ", 7), 0);
	close(c[1]); /* this client goes, and its connection with it */
	AWAIT_COUNT(&s, "origin_cancelled_total", 1);
	close(u);
	u = origin_accept(&o);
	CU_ASSERT_FATAL(head_read(u, head, sizeof(head)));
	CU_ASSERT_EQUAL(strncmp(head, "GET /2 ", 7), 0);
	client_say(u, ANSWER("Content-Length: 1\r\n", "2"));
	CU_ASSERT(client_gets(c[2], 200, "2"));
	close(c[0]);
	close(c[2]);
	close(u);
	server_stop(&s);
	origin_free(&o);
}

/* A request waits only if no origin has room: those that are full are passed over. */
static void full_origins_are_passed_over(void)
{
	enum { N = 3 };
	struct origin o[N];
	const char *texts[N];
	struct pollfd p[N];
	int c[N], u[N];
	char head[2048];

	for (int i = 0; i < N; i++) {
		o[i] = origin_new();
		texts[i] = o[i].text;
		p[i] = (struct pollfd){.fd = o[i].fd, .events = POLLIN};
	}
	struct server s = server_before(&o[0]);
	server_list(s.app, "origins", texts, N);
	fixture_set(s.app, "with.max_connections", "1");
	server_start(&s);
	for (int round = 0; round < 8; round++) {
		for (int i = 0; i < N; i++) {
			int at = 0;
			c[i] = client_open(s.port);
			client_say(c[i], GET("/"));
			CU_ASSERT_FATAL(poll(p, N, WAIT_MS) == 1);
			while (!p[at].revents)
				at++;
			u[i] = origin_accept(&o[at]);
			CU_ASSERT(head_read(u[i], head, sizeof(head)));
		}
		for (int i = 0; i < N; i++) {
			client_say(u[i], ANSWER("Connection: close\r\nContent-Length: 0\r\n", ""));
			CU_ASSERT(client_gets(c[i], 200, ""));
			close(c[i]);
			close(u[i]);
		}
	}
	server_stop(&s);
	for (int i = 0; i < N; i++)
		origin_free(&o[i]);
}

/* Answer the checks that arrive at `o` with `answer` until the server's metric `name` is `value`. */
static void answer_checks(
    struct origin *o, const struct server *s, const char *answer, const char *name, int64_t value)
{
	char head[2048];

	while (server_metric(s, name) != value) {
		int u = accept(o->fd, NULL, NULL);
		if (u < 0)
			continue;
		if (head_read(u, head, sizeof(head))) { /* or the check was too late */
			CU_ASSERT_EQUAL(strncmp(head, "GET /up HTTP/1.1\r\n", 18), 0);
			client_say(u, answer);
		}
		close(u);
	}
}

static void checks(void)
{
	struct origin o = origin_new();
	struct server s = server_before(&o);

	fixture_set(s.app, "with.health.path", "/up");
	fixture_set(s.app, "with.health.every", "30ms");
	fixture_set(s.app, "with.eject", "1h");
	fcntl(o.fd, F_SETFL, O_NONBLOCK);
	server_start(&s);
	answer_checks(&o, &s, "HTTP/1.1 500 No\r\n\r\n", "origins_out", 1);
	int c = client_open(s.port);
	client_say(c, GET("/"));
	CU_ASSERT(client_gets(c, 502, "502 Bad Gateway\n"));
	answer_checks(&o, &s, "HTTP/1.1 204 Fine\r\n\r\n", "origins_out", 0);
	CU_ASSERT(server_metric(&s, "origin_checks_passed_total") >= 1);
	CU_ASSERT(server_metric(&s, "origin_checks_failed_total") >= 3);
	origin_shut(&o); /* refused and silent ones fail, too */
	FIXTURE_AWAIT(server_metric(&s, "origins_out") == 1);
	close(c);
	server_stop(&s);
	origin_free(&o);
}

/* An answer with 503 is passed on, and is a refusal in the books of the stage. */
static void origin_refuses(void)
{
	struct origin o = origin_new();
	struct server s = server_before(&o);
	struct weir_graph_view *view;

	server_start(&s);
	int c = client_open(s.port), u = origin_ask(&o, c, GET("/"));
	client_say(u, "HTTP/1.1 503 Busy\r\nRetry-After: 7\r\nContent-Length: 2\r\n\r\nno");
	CU_ASSERT(client_gets(c, 503, "no"));
	CU_ASSERT_EQUAL_FATAL(weir_graph_view(s.graph, &view), 0);
	for (int i = 0; i < view->n_stages; i++)
		if (strcmp(view->stages[i].name, "app") == 0)
			CU_ASSERT_EQUAL(view->stages[i].refusals, 1);
	weir_graph_view_free(view);
	close(c);
	close(u);
	server_stop(&s);
	origin_free(&o);
}

static void idle_connections_close(void)
{
	struct origin o = origin_new();
	struct server s = server_before(&o);

	fixture_set(s.app, "with.idle", "20ms");
	server_start(&s);
	int c = client_open(s.port), u = origin_ask(&o, c, GET("/"));
	client_say(u, ANSWER("Content-Length: 2\r\n", "ok"));
	CU_ASSERT(client_gets(c, 200, "ok"));
	CU_ASSERT(client_at_end(u));
	AWAIT_COUNT(&s, "origin_connections", 0);
	close(c);
	close(u);
	server_stop(&s);
	origin_free(&o);
}

/* The origin is this server. */
static void request_comes_back(void)
{
	struct origin o = origin_new();
	struct server s = server_before(&o);
	char text[32];

	snprintf(text, sizeof(text), "127.0.0.1:%d", o.port);
	origin_shut(&o);
	fixture_set(s.web, "with.listen", text);
	server_start(&s);
	int c = client_open(o.port);
	client_say(c, GET("/"));
	CU_ASSERT(client_gets(c, 508, "508 Loop Detected\n"));
	close(c);
	server_stop(&s);
	origin_free(&o);
}

static void *stop(void *s)
{
	server_stop(s);
	return NULL;
}

/* A drain waits for the answer. */
static void drain_waits(void)
{
	struct origin o = origin_new();
	struct server s = server_before(&o);
	pthread_t thread;

	server_start(&s);
	int c = client_open(s.port), u = origin_ask(&o, c, GET("/"));
	CU_ASSERT_FATAL(pthread_create(&thread, NULL, stop, &s) == 0);
	while (client_open(s.port) >= 0) /* until the server listens no more */
		continue;
	client_say(u, "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n");
	static char body[100001];
	memset(body, 'x', sizeof(body) - 1);
	client_say(u, body);
	CU_ASSERT(client_gets(c, 200, body));
	pthread_join(thread, NULL);
	CU_ASSERT(client_at_end(u));
	close(c);
	close(u);
	origin_free(&o);
}

CUNIT_MAIN("ends of http.client", {"the origin is silent", origin_is_silent},
    {"the deadline passes", deadline_passes}, {"the client goes", client_goes},
    {"sides that do not read", sides_that_do_not_read}, {"one origin is away", one_origin_is_away},
    {"retries have limits", retries_have_limits},
    {"requests wait for a connection", requests_wait_for_a_connection},
    {"full origins are passed over", full_origins_are_passed_over}, {"checks", checks},
    {"the origin refuses", origin_refuses}, {"idle connections close", idle_connections_close},
    {"a request comes back", request_comes_back}, {"a drain waits", drain_waits})
