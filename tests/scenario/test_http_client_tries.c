/* SPDX-License-Identifier: MIT */
/* What http.client tries again, and what it gives up; the clock of its loops is held. */
#include <poll.h>
#include <stdatomic.h>

#include "fixture/clock/held_clock.h"
#include "fixture/http/origin.h"

#define S 1000000000LL

/* http.client before an origin that is away, and `o`. */
static struct server server_before_two(const struct origin *a, const struct origin *b)
{
	struct server s = server_before(a);
	const char *texts[] = {a->text, b->text};

	server_list(s.app, "origins", texts, 2);
	fixture_set(s.app, "with.retry_budget", "100%");
	fixture_set(s.app, "with.fails", "0");
	return s;
}

/* Accept at one of both. Sets *at to the other one. */
static int accept_any(struct origin *a, struct origin *b, struct origin **other)
{
	struct pollfd p[] = {{.fd = a->fd, .events = POLLIN}, {.fd = b->fd, .events = POLLIN}};

	CU_ASSERT_FATAL(poll(p, 2, WAIT_MS) > 0);
	*other = p[0].revents ? b : a;
	return origin_accept(p[0].revents ? a : b);
}

/* Send `text`, answer it with `status` at the origin that gets it, and return the connection at the other
 * origin on which it is tried again. */
static int refuse(struct origin *a, struct origin *b, int c, const char *text, int status)
{
	struct origin *other;
	char head[2048], answer[100];

	client_say(c, text);
	int u = accept_any(a, b, &other);
	CU_ASSERT_FATAL(head_read(u, head, sizeof(head)));
	snprintf(answer, sizeof(answer), "HTTP/1.1 %d No\r\nContent-Length: 2\r\n\r\nno", status);
	client_say(u, answer);
	CU_ASSERT(client_at_end(u));
	close(u);
	u = origin_accept(other);
	CU_ASSERT_FATAL(head_read(u, head, sizeof(head)));
	return u;
}

/* Answers with a status of `retry_on` are tried again, within `retries`. */
static void statuses(void)
{
	struct origin a = origin_new(), b = origin_new();
	struct server s = server_before_two(&a, &b);
	static const char *const words[] = {"connect", "reset", "503", "504"};

	fixture_set(s.app, "with.retry_on", "reset");
	server_list(s.app, "retry_on", words, 4);
	server_start(&s);
	int c = client_open(s.port), u = refuse(&a, &b, c, GET("/"), 503);
	client_say(u, ANSWER("Connection: close\r\nContent-Length: 2\r\n", "ok"));
	CU_ASSERT(client_gets(c, 200, "ok"));
	close(u);
	/* the second one refuses, too: its answer is passed on */
	u = refuse(&a, &b, c, GET("/"), 504);
	client_say(u, "HTTP/1.1 503 No\r\nConnection: close\r\nContent-Length: 4\r\n\r\nlast");
	CU_ASSERT(client_gets(c, 503, "last"));
	close(u);
	AWAIT_COUNT(&s, "origin_retries_total", 2);
	/* what is not listed, and what must not be repeated */
	static const char *const text[] = {
	    GET("/"), "POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 2\r\n\r\nhi"};
	static const int status[] = {502, 503};
	for (int i = 0; i < 2; i++) {
		struct origin *other;
		char head[2048], answer[100];
		client_say(c, text[i]);
		u = accept_any(&a, &b, &other);
		CU_ASSERT_FATAL(head_read(u, head, sizeof(head)));
		snprintf(answer, sizeof(answer),
		    "HTTP/1.1 %d No\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno",
		    status[i]);
		client_say(u, answer);
		CU_ASSERT(client_gets(c, status[i], "no"));
		close(u);
	}
	AWAIT_COUNT(&s, "origin_retries_total", 2);
	close(c);
	server_stop(&s);
	origin_free(&a);
	origin_free(&b);
}

/* Without `connect` in `retry_on`, a refused connection is final. */
static void connect_is_not_listed(void)
{
	struct origin a = origin_new(), b = origin_new();
	struct server s = server_before_two(&a, &b);

	fixture_set(s.app, "with.retry_on", "503");
	origin_shut(&a);
	origin_shut(&b);
	server_start(&s);
	int c = client_open(s.port);
	client_say(c, GET("/"));
	CU_ASSERT(client_gets(c, 502, "502 Bad Gateway\n"));
	AWAIT_COUNT(&s, "origin_connect_failures_total", 1);
	close(c);
	server_stop(&s);
	origin_free(&a);
	origin_free(&b);
}

/* A body that trickles is given up; the rate counts from its begin. */
static void trickle(void)
{
	struct origin o = origin_new();
	struct server s = server_before(&o);
	struct answer a = {0};

	fixture_set(s.app, "with.min_rate", "100");
	fixture_set(s.app, "with.timeout", "1h");
	clock_hold();
	server_start(&s);
	int c = client_open(s.port), u = origin_ask(&o, c, GET("/"));
	client_say(u, "HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n");
	for (int i = 0; i < 600; i++)
		client_say(u, "x"); /* 600 bytes are enough for 6 s */
	AWAIT_COUNT(&s, "origin_answer_bytes_total", 641);
	atomic_fetch_add(&held_ns, 5 * S + S / 2);
	client_say(u, "y");
	AWAIT_COUNT(&s, "origin_answer_bytes_total", 642);
	CU_ASSERT_EQUAL(server_metric(&s, "origin_slow_total"), 0);
	atomic_fetch_add(&held_ns, S);
	AWAIT_COUNT(&s, "origin_slow_total", 1);
	CU_ASSERT_FATAL(answer_read(c, &a));
	CU_ASSERT_EQUAL(a.status, 504);
	CU_ASSERT_STRING_EQUAL(field_in(a.head, "x-weir-failed"), "stage=app; reason=slow");
	answer_free(&a);
	close(c);
	close(u);
	server_stop(&s);
	clock_release();
	origin_free(&o);
}

CUNIT_MAIN("tries of http.client", {"statuses", statuses},
    {"connect is not listed", connect_is_not_listed}, {"a body trickles", trickle})
