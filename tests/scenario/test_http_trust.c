/* SPDX-License-Identifier: MIT */
/* Clients behind proxies: whose word counts, what stages see, and whom the limits hit. The proxies of
 * these tests have the address 127.0.0.1, other clients 127.0.0.2. */
#include "fixture/http/tls.h"

#include "fixture/graph/drain.h"

#define V2_SIGNATURE "\r\n\r\n\0\r\nQUIT\n"
#define V1(client)   "PROXY TCP4 " client " 10.0.0.1 1 2\r\n"
#define ASKED        "GET /x HTTP/1.1\r\nHost: t\r\nX-Forwarded-For: 192.0.2.9\r\n\r\n"

static struct weir_slice field(const struct weir_event *ev, const char *name)
{
	for (const struct weir_field *f = weir_http_request_type.fields; f->name; f++)
		if (strcmp(f->name, name) == 0)
			return f->get(ev, NULL);
	return (struct weir_slice){NULL, 0};
}

/* Answers with "ADDRESS PEER SCHEME SESSION". */
static void who_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	for (int i = 0; i < n; i++) {
		struct weir_slice a = field(ev[i], "address"), p = field(ev[i], "peer"),
				  s = field(ev[i], "scheme");
		char text[200];
		int bytes = snprintf(text, sizeof(text), "%.*s %.*s %.*s %08x", (int)a.n, a.p,
		    (int)p.n, p.p, (int)s.n, s.p, ev[i]->session);
		weir_event_finish(
		    &ev[i], weir_http_respond_copy(weir_http_request(ev[i]), 200, "text/plain",
				(struct weir_slice){text, (size_t)bytes}));
	}
}

static const struct weir_stage_ops who_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.who",
    .summary = "says who asks",
    .accepts = &weir_http_request_type,
    .handle = who_handle};

static struct server who_server(const char *from)
{
	struct server s = server_new("t.who");

	fixture_set(s.web, "with.trust", "127.0.0.1");
	if (from)
		fixture_set(s.web, "with.client_from", from);
	return s;
}

/* Whether the answer on `fd` begins with `text`. */
static bool answers(int fd, const char *text)
{
	struct answer a = {0};
	bool ok = answer_read(fd, &a) && a.body && strncmp(a.body, text, strlen(text)) == 0;

	if (!ok)
		fprintf(stderr, "%d '%s' instead of '%s'\n", a.status, a.body ? a.body : "", text);
	answer_free(&a);
	return ok;
}

/* Whether a request with `fields`, on a connection of its own, is answered with `text`. */
static bool asks(const struct server *s, const char *own, const char *fields, const char *text)
{
	char request[1000];
	int fd = client_open_from(s->port, own);

	snprintf(request, sizeof(request), "GET / HTTP/1.1\r\nHost: t\r\n%s\r\n", fields);
	bool ok = client_say(fd, request) && answers(fd, text);
	close(fd);
	return ok;
}

static void test_fields(void)
{
	struct server s = who_server(NULL);

	server_start(&s);
	CU_ASSERT(asks(&s, "127.0.0.1", "", "127.0.0.1 127.0.0.1 http"));
	CU_ASSERT(asks(&s, "127.0.0.1", "X-Forwarded-For: 6.6.6.6, 2001:DB8::1\r\n",
	    "2001:db8::1 127.0.0.1 http"));
	CU_ASSERT(
	    asks(&s, "127.0.0.1", "X-Forwarded-Proto: https\r\n", "127.0.0.1 127.0.0.1 https"));
	CU_ASSERT(asks(&s, "127.0.0.1", "Forwarded: for=192.0.2.1;proto=https\r\n",
	    "127.0.0.1 127.0.0.1 http"));
	CU_ASSERT(
	    asks(&s, "127.0.0.2", "X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: https\r\n",
		"127.0.0.2 127.0.0.2 http"));
	AWAIT_METRIC(&s, "http_forwarded_ignored_total", ==, 0);
	CU_ASSERT(asks(&s, "127.0.0.1", "X-Forwarded-For: unknown\r\n", "127.0.0.1 127.0.0.1"));
	AWAIT_METRIC(&s, "http_forwarded_ignored_total", ==, 1);
	server_stop(&s);
}

static void test_forwarded(void)
{
	struct server s = who_server("forwarded");

	server_start(&s);
	CU_ASSERT(asks(&s, "127.0.0.1",
	    "X-Forwarded-For: 6.6.6.6\r\nForwarded: for=\"[2001:db8::1]:80\";proto=https\r\n",
	    "2001:db8::1 127.0.0.1 https"));
	CU_ASSERT(
	    asks(&s, "127.0.0.1", "X-Forwarded-For: 6.6.6.6\r\n", "127.0.0.1 127.0.0.1 http"));
	server_stop(&s);
}

/* Requests of one connection are those of several users, and one that names no client is the proxy's. */
static void test_users(void)
{
	static const char *const lines[] = {"X-Forwarded-For: 192.0.2.1\r\n",
	    "X-Forwarded-For: 192.0.2.2\r\n", "", "X-Forwarded-For: 192.0.2.1\r\n"};
	struct server s = who_server(NULL);
	char session[4][16], all[1000] = "";

	fixture_set(s.web, "with.user", "address");
	server_start(&s);
	int fd = client_open(s.port);
	for (int i = 0; i < 4; i++)
		snprintf(all + strlen(all), sizeof(all) - strlen(all),
		    "GET / HTTP/1.1\r\nHost: t\r\n%s\r\n", lines[i]);
	CU_ASSERT(client_say(fd, all));
	for (int i = 0; i < 4; i++) {
		struct answer a = {0};
		CU_ASSERT_FATAL(answer_read(fd, &a) && a.body);
		snprintf(session[i], sizeof(session[i]), "%s", strrchr(a.body, ' ') + 1);
		CU_ASSERT_STRING_NOT_EQUAL(session[i], "00000000");
		answer_free(&a);
	}
	CU_ASSERT_STRING_EQUAL(session[0], session[3]);
	CU_ASSERT_STRING_NOT_EQUAL(session[0], session[1]);
	CU_ASSERT_STRING_NOT_EQUAL(session[0], session[2]);
	CU_ASSERT_STRING_NOT_EQUAL(session[1], session[2]);
	close(fd);
	server_stop(&s);
}

/* The limits of an address are for clients, not for the proxy through which they come. */
static void test_limits(void)
{
	struct server s = who_server(NULL);
	int fd[3], other;

	fixture_set(s.web, "with.max_per_address", "1");
	server_start(&s);
	for (int i = 0; i < 3; i++) {
		fd[i] = client_open(s.port);
		CU_ASSERT(client_say(fd[i], ASKED) && answers(fd[i], "192.0.2.9"));
	}
	other = client_open_from(s.port, "127.0.0.2");
	CU_ASSERT(client_say(other, ASKED) && answers(other, "127.0.0.2"));
	CU_ASSERT_EQUAL(server_metric(&s, "http_connections"), 4);
	for (int i = 0; i < 3; i++) {
		CU_ASSERT(client_say(fd[i], ASKED) && answers(fd[i], "192.0.2.9"));
		close(fd[i]);
	}
	close(other);
	server_stop(&s);
}

/* ---- socket files ---- */

/* Whether a request with `fields` over the socket file is answered with `text`. */
static bool asks_file(const char *fields, const char *text)
{
	char path[200], request[1000];

	snprintf(path, sizeof(path), "%s/sock", tls_folder);
	snprintf(request, sizeof(request), "%s", fields);
	int fd = client_connect_file(path);
	bool ok = fd != -1 && client_say(fd, request) && answers(fd, text);
	close(fd);
	return ok;
}

static struct server file_server(const char *trust, const char *from)
{
	struct server s = server_new("t.who");
	char listen[200];

	snprintf(listen, sizeof(listen), "unix:%s/sock", tls_folder);
	server_listen_also(&s, listen);
	if (trust)
		fixture_set(s.web, "with.trust", trust);
	fixture_set(s.web, "with.client_from", from);
	server_start(&s);
	return s;
}

/* Clients of a socket file are trusted if `trust` lists "unix", and not because of an address. */
static void test_unix(void)
{
	struct server s = file_server("0.0.0.0/0", "x-forwarded-for");

	CU_ASSERT(asks_file(ASKED, "unix unix http"));
	server_stop(&s);
	s = file_server("unix", "x-forwarded-for");
	CU_ASSERT(asks_file(ASKED, "192.0.2.9 unix http"));
	CU_ASSERT(asks_file(GET("/"), "unix unix http"));
	CU_ASSERT(
	    asks(&s, "127.0.0.1", "X-Forwarded-For: 6.6.6.6\r\n", "127.0.0.1 127.0.0.1 http"));
	server_stop(&s);
	s = file_server("unix", "proxy");
	CU_ASSERT(asks_file(V1("192.0.2.1") ASKED, "192.0.2.1 192.0.2.1 http"));
	server_stop(&s);
	s = file_server(NULL, "proxy");
	CU_ASSERT(asks_file(ASKED, "unix unix http"));
	server_stop(&s);
}

/* ---- PROXY headers ---- */

/* Open a connection of the proxy that begins with `text`, a whole or a part of a header. */
static int proxied(const struct server *s, const char *text)
{
	int fd = client_open(s->port);

	CU_ASSERT(client_say(fd, text));
	return fd;
}

static void test_proxy(void)
{
	static const char v2[] = V2_SIGNATURE "\x21\x11\0\x0c\xc0\0\2\7\x0a\0\0\1\0\1\0\2" ASKED;
	static const char local[] = V2_SIGNATURE "\x20\0\0\0" ASKED;
	struct server s = who_server("proxy");
	int fd;

	server_start(&s);
	fd = proxied(&s, V1("192.0.2.1") ASKED ASKED);
	CU_ASSERT(answers(fd, "192.0.2.1 192.0.2.1 http") && answers(fd, "192.0.2.1"));
	CU_ASSERT(client_say(fd, ASKED) && answers(fd, "192.0.2.1"));
	close(fd);
	fd = client_open(s.port);
	CU_ASSERT(client_send(fd, v2, sizeof(v2) - 1) && answers(fd, "192.0.2.7"));
	close(fd);
	fd = client_open(s.port);
	CU_ASSERT(client_send(fd, local, sizeof(local) - 1) && answers(fd, "127.0.0.1"));
	close(fd);
	CU_ASSERT(asks(&s, "127.0.0.2", "", "127.0.0.2")); /* others come without one */
	server_stop(&s);
}

/* Every cut of header and request. */
static void test_pieces(void)
{
	static const char all[] = V1("192.0.2.1") GET("/x");
	struct server s = who_server("proxy");

	server_start(&s);
	for (size_t n = 1; n < sizeof(all) - 1; n += 3) {
		int fd = client_open(s.port);
		CU_ASSERT(client_send(fd, all, n));
		AWAIT_METRIC(&s, "http_connections", ==, 1);
		CU_ASSERT(
		    client_send(fd, all + n, sizeof(all) - 1 - n) && answers(fd, "192.0.2.1"));
		close(fd);
		AWAIT_METRIC(&s, "http_connections", ==, 0);
	}
	CU_ASSERT_EQUAL(server_metric(&s, "http_proxy_failed_total"), 0);
	server_stop(&s);
}

static void test_bad(void)
{
	struct server s = who_server("proxy");
	int fd;

	fixture_set(s.web, "with.header_timeout", "50ms");
	server_start(&s);
	fd = proxied(&s, GET("/x")); /* no header */
	CU_ASSERT(client_at_end(fd));
	close(fd);
	AWAIT_METRIC(&s, "http_proxy_failed_total", ==, 1);
	fd = proxied(&s, V1("192.0.2")); /* a bad one */
	CU_ASSERT(client_at_end(fd));
	close(fd);
	AWAIT_METRIC(&s, "http_proxy_failed_total", ==, 2);
	fd = proxied(&s, "PROXY TCP4 192."); /* a late one */
	CU_ASSERT(client_at_end(fd));
	close(fd);
	AWAIT_METRIC(&s, "http_proxy_failed_total", ==, 3);
	fd = proxied(&s, "PROXY TCP4 192."); /* half of one */
	close(fd);
	AWAIT_METRIC(&s, "http_proxy_failed_total", ==, 4);
	fd = client_open_from(s.port, "127.0.0.2"); /* one of somebody who may not send any */
	struct answer a = {0};
	CU_ASSERT(client_say(fd, V1("192.0.2.1") GET("/x")) && answer_read(fd, &a));
	CU_ASSERT_EQUAL(a.status, 400);
	answer_free(&a);
	close(fd);
	AWAIT_METRIC(&s, "http_connections", ==, 0);
	CU_ASSERT_EQUAL(server_offered(&s), 0);
	server_stop(&s);
}

/* The limits of an address count the clients that headers name. */
static void test_proxy_limits(void)
{
	struct server s = who_server("proxy");
	struct answer a = {0};

	fixture_set(s.web, "with.max_per_address", "1");
	server_start(&s);
	int first = proxied(&s, V1("192.0.2.1") ASKED), other, second;
	CU_ASSERT(answers(first, "192.0.2.1"));
	other = proxied(&s, V1("192.0.2.2") ASKED);
	CU_ASSERT(answers(other, "192.0.2.2"));
	/* the connections of its clients do not count for the proxy, which may be a client, too */
	second = proxied(&s, V1("127.0.0.1") ASKED);
	CU_ASSERT(answers(second, "127.0.0.1"));
	close(second);
	AWAIT_METRIC(&s, "http_connections", ==, 2);
	second = proxied(&s, V1("192.0.2.1") ASKED);
	CU_ASSERT(answer_read(second, &a));
	CU_ASSERT_EQUAL(a.status, 503);
	answer_free(&a);
	AWAIT_METRIC(&s, "http_refused_address_total", ==, 1);
	close(second);
	AWAIT_METRIC(&s, "http_connections", ==, 2);
	close(first);
	AWAIT_METRIC(&s, "http_connections", ==, 1);
	first = proxied(&s, V1("192.0.2.1") ASKED); /* its place is free again */
	CU_ASSERT(answers(first, "192.0.2.1"));
	close(first);
	close(other);
	server_stop(&s);
}

static void test_tls(void)
{
	struct server s = tls_server_new("t.who", "one");
	struct tls_wish plain = {0};

	fixture_set(s.web, "with.trust", "127.0.0.1");
	fixture_set(s.web, "with.client_from", "proxy");
	server_start(&s);
	struct tls_client k = tls_client_over(proxied(&s, V1("192.0.2.1")), &plain);
	CU_ASSERT_FATAL(tls_shake_hands(&k));
	struct answer a = {0};
	CU_ASSERT(tls_say(&k, GET("/x")) && tls_answer(&k, &a));
	CU_ASSERT_FATAL(a.body != NULL);
	CU_ASSERT_EQUAL(strncmp(a.body, "192.0.2.1 192.0.2.1 https", 25), 0);
	answer_free(&a);
	tls_client_close(&k);
	int fd = proxied(&s, V1("192.0.2.1") GET("/x")); /* plain behind the header */
	CU_ASSERT(answer_read(fd, &a));
	CU_ASSERT_EQUAL(a.status, 400);
	answer_free(&a);
	close(fd);
	server_stop(&s);
}

/* ---- pause, reload, drain ---- */

static void test_pause(void)
{
	struct server s = who_server("proxy");

	server_start(&s);
	int fd = proxied(&s, "PROXY ");
	AWAIT_METRIC(&s, "http_connections", ==, 1);
	server_steer(&s, "web", WEIR_STEER_PAUSE);
	CU_ASSERT(client_say(fd, "TCP4 192.0.2.1 10.0.0.1 1 2\r\n" ASKED));
	server_steer(&s, "web", WEIR_STEER_RUN);
	CU_ASSERT(answers(fd, "192.0.2.1"));
	close(fd);
	server_stop(&s);
}

static void succeed(struct server *s, struct server *next)
{
	struct weir_errs errs = {0};

	CU_ASSERT_EQUAL_FATAL(weir_graph_build(next->spec, &next->graph, &errs), 0);
	CU_ASSERT_EQUAL_FATAL(weir_graph_succeed(next->graph, s->graph, &errs), 0);
	next->port = s->port;
}

/* In a reload, a connection keeps its client. One whose header has not arrived waits for it at the old
 * server, then goes on to the new one. */
static void test_reload(void)
{
	struct server s = who_server("proxy"), next = who_server("proxy");
	struct drain d;

	server_start(&s);
	int fd = proxied(&s, V1("192.0.2.1") ASKED), late = proxied(&s, "PROXY TCP4 192.0.2.2 ");
	CU_ASSERT(answers(fd, "192.0.2.1"));
	AWAIT_METRIC(&s, "http_connections", ==, 2);
	succeed(&s, &next);
	drain_call(&d, s.graph, 20000000000LL);
	CU_ASSERT(client_say(late, "10.0.0.1 1 2\r\n" ASKED) && answers(late, "192.0.2.2"));
	drain_end(&d);
	CU_ASSERT(client_say(fd, ASKED) && answers(fd, "192.0.2.1 192.0.2.1"));
	CU_ASSERT(client_say(late, ASKED) && answers(late, "192.0.2.2 192.0.2.2"));
	close(fd);
	close(late);
	server_stop(&next);
}

/* The new configuration says who is trusted. */
static void test_reload_trust(void)
{
	struct server s = who_server(NULL), next = server_new("t.who"), third = who_server(NULL);
	struct drain d;

	server_start(&s);
	int fd = proxied(&s, ASKED);
	CU_ASSERT(answers(fd, "192.0.2.9"));
	succeed(&s, &next);
	drain_call(&d, s.graph, 20000000000LL);
	drain_end(&d);
	CU_ASSERT(client_say(fd, ASKED) && answers(fd, "127.0.0.1"));
	succeed(&next, &third);
	drain_call(&d, next.graph, 20000000000LL);
	drain_end(&d);
	CU_ASSERT(client_say(fd, ASKED) && answers(fd, "192.0.2.9"));
	close(fd);
	server_stop(&third);
}

/* A drain does not wait for a header. */
static void test_drain(void)
{
	struct server s = who_server("proxy");

	fixture_set(s.web, "with.linger", "10ms");
	server_start(&s);
	int fd = proxied(&s, "PROXY TCP4");
	AWAIT_METRIC(&s, "http_connections", ==, 1);
	server_stop(&s);
	CU_ASSERT(client_at_end(fd));
	close(fd);
}

static void test_begin(void)
{
	tls_begin();
	fixture_register(&who_ops);
}

CUNIT_MAIN("http_trust", {"begin", test_begin}, {"fields", test_fields},
    {"Forwarded", test_forwarded}, {"users", test_users}, {"limits", test_limits},
    {"socket file", test_unix}, {"PROXY header", test_proxy}, {"in pieces", test_pieces},
    {"bad headers", test_bad}, {"limits of its clients", test_proxy_limits},
    {"TLS behind it", test_tls}, {"pause", test_pause}, {"reload", test_reload},
    {"reload with other trust", test_reload_trust}, {"drain", test_drain}, {"end", tls_end})
