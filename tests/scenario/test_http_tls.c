/* SPDX-License-Identifier: MIT */
/* HTTPS as clients see it: versions, protocols, names, tickets, records split anywhere, large
 * bodies in both directions, all kinds of ends, and input that is not TLS. */
#include "fixture/http/tls.h"

static const struct tls_wish plain_wish;

static void test_versions(void)
{
	static const struct {
		int version;
		const char *text;
	} good[] = {{TLS1_2_VERSION, "TLSv1.2"}, {TLS1_3_VERSION, "TLSv1.3"}};
	struct server s = tls_server_start("t.reply");

	for (size_t i = 0; i < 2; i++) {
		struct tls_wish wish = {.version = good[i].version};
		struct tls_client k = tls_client_open(s.port, &wish);
		CU_ASSERT_STRING_EQUAL(SSL_get_version(k.ssl), good[i].text);
		AWAIT_METRIC(&s, "http_tls_connections", ==, 1);
		for (int n = 0; n < 3; n++)
			CU_ASSERT(tls_ask(&k, GET("/x"), "GET /x\n"));
		CU_ASSERT(SSL_get_cipher_bits(k.ssl, NULL) >= 128);
		CU_ASSERT_PTR_NOT_NULL(strstr(SSL_get_cipher(k.ssl), "GCM"));
		tls_client_close(&k);
		AWAIT_METRIC(&s, "http_tls_connections", ==, 0);
	}
	CU_ASSERT_EQUAL(server_metric(&s, "http_tls_handshakes_full_total"), 2);
	CU_ASSERT_EQUAL(server_offered(&s), 6);
	server_stop(&s);
}

/* The handshake fails, and the counter `metric` shows the reason. */
static void expect_failure(struct server *s, const struct tls_wish *wish, const char *metric)
{
	struct tls_client k = tls_client_over(client_open(s->port), wish);
	int64_t before = server_metric(s, metric);

	CU_ASSERT_FALSE(tls_shake_hands(&k));
	AWAIT_METRIC(s, metric, ==, before + 1);
	tls_client_close(&k);
}

static void test_nothing_in_common(void)
{
	struct tls_wish old = {.version = TLS1_1_VERSION}, h2 = {.alpn = "\x02h2"};
	struct server s = tls_server_start("t.reply");

	expect_failure(&s, &old, "http_tls_failed_version_total");
	expect_failure(&s, &h2, "http_tls_failed_version_total");
	AWAIT_METRIC(&s, "http_connections", ==, 0);
	server_stop(&s);
}

static void test_min_version(void)
{
	struct server s = tls_server_new("t.reply", "one");
	struct tls_wish old = {.version = TLS1_2_VERSION};

	fixture_set(s.web, "with.tls.min_version", "1.3");
	server_start(&s);
	expect_failure(&s, &old, "http_tls_failed_version_total");
	struct tls_client k = tls_client_open(s.port, &plain_wish);
	CU_ASSERT(tls_ask(&k, GET("/x"), "GET /x\n"));
	tls_client_close(&k);
	server_stop(&s);
}

static void test_alpn(void)
{
	struct tls_wish wish = {.alpn = "\x02h2\x08http/1.1"};
	struct server s = tls_server_start("t.reply");
	struct tls_client k = tls_client_open(s.port, &wish);
	const unsigned char *p;
	unsigned n;

	SSL_get0_alpn_selected(k.ssl, &p, &n);
	CU_ASSERT(n == 8 && memcmp(p, "http/1.1", 8) == 0);
	CU_ASSERT(tls_ask(&k, GET("/x"), "GET /x\n"));
	tls_client_close(&k);
	server_stop(&s);
}

static void resume(int version)
{
	struct tls_wish wish = {.version = version};
	struct server s = tls_server_start("t.reply");
	struct tls_client k = tls_client_open(s.port, &wish);

	CU_ASSERT(tls_ask(&k, GET("/x"), "GET /x\n")); /* tickets of 1.3 arrive with the answer */
	tls_client_close(&k);
	for (int i = 1; i <= 3; i++) {
		SSL_SESSION_free(wish.session);
		wish.session = tls_newest;
		tls_newest = NULL;
		CU_ASSERT_PTR_NOT_NULL_FATAL(wish.session);
		k = tls_client_open(s.port, &wish);
		CU_ASSERT_EQUAL(SSL_session_reused(k.ssl), 1);
		CU_ASSERT(tls_ask(&k, GET("/y"), "GET /y\n"));
		CU_ASSERT_EQUAL(server_metric(&s, "http_tls_handshakes_resumed_total"), i);
		/* Only with TLS 1.3 do OpenSSL's clients report a renewed session. */
		if (version == TLS1_2_VERSION)
			tls_newest = SSL_get1_session(k.ssl);
		tls_client_close(&k);
	}
	SSL_SESSION_free(wish.session);
	CU_ASSERT_EQUAL(server_metric(&s, "http_tls_handshakes_full_total"), 1);
	server_stop(&s);
}

static void test_tickets(void)
{
	resume(TLS1_2_VERSION);
	resume(TLS1_3_VERSION);
}

/* A TLS 1.2 session cannot be resumed under another name (RFC 6066, 3). A TLS 1.3 session can, and
 * gets the new name. */
static void check_name(int version, const char *first, const char *then, bool resumed)
{
	struct tls_wish wish = {.version = version, .sni = first};
	struct server s = tls_server_start("t.reply");
	struct tls_client k = tls_client_open(s.port, &wish);

	CU_ASSERT(tls_ask(&k, GET("/x"), "GET /x\n"));
	tls_client_close(&k);
	wish.sni = then;
	wish.session = tls_newest;
	tls_newest = NULL;
	CU_ASSERT_PTR_NOT_NULL_FATAL(wish.session);
	k = tls_client_open(s.port, &wish);
	CU_ASSERT_EQUAL(SSL_session_reused(k.ssl), resumed);
	CU_ASSERT(tls_ask(&k, GET("/y"), "GET /y\n"));
	CU_ASSERT_EQUAL(server_metric(&s, "http_tls_handshakes_resumed_total"), resumed);
	tls_client_close(&k);
	SSL_SESSION_free(wish.session);
	server_stop(&s);
}

static void test_ticket_name(void)
{
	check_name(TLS1_2_VERSION, "a.example", "b.example", false);
	check_name(TLS1_2_VERSION, "a.example", "a.example.b", false);
	check_name(TLS1_2_VERSION, "a.example", NULL, false);
	check_name(TLS1_2_VERSION, NULL, "a.example", false);
	check_name(TLS1_2_VERSION, "a.example", "a.example", true);
	check_name(TLS1_2_VERSION, "a.example", "A.EXAMPLE", true);
	check_name(TLS1_2_VERSION, NULL, NULL, true);
	check_name(TLS1_3_VERSION, "a.example", "b.example", true);
}

static void test_no_tickets(void)
{
	struct server s = tls_server_new("t.reply", "one");

	SSL_SESSION_free(tls_newest);
	tls_newest = NULL;
	fixture_set(s.web, "with.tls.tickets", "0s");
	server_start(&s);
	struct tls_client k = tls_client_open(s.port, &plain_wish);
	CU_ASSERT(tls_ask(&k, GET("/x"), "GET /x\n"));
	tls_client_close(&k);
	CU_ASSERT_PTR_NULL(tls_newest);
	server_stop(&s);
}

/* All requests in few records, and the answers too. */
static void test_pipelining(void)
{
	enum { N = 300 };
	struct server s = tls_server_start("t.reply");
	struct tls_client k = tls_client_open(s.port, &plain_wish);
	char *text = calloc(N, 64), body[64];
	struct answer a = {0};

	for (int i = 0; i < N; i++)
		sprintf(text + strlen(text), "GET /%d HTTP/1.1\r\nHost: t\r\n\r\n", i);
	CU_ASSERT(tls_say(&k, text));
	for (int i = 0; i < N; i++) {
		snprintf(body, sizeof(body), "GET /%d\n", i);
		CU_ASSERT(tls_answer(&k, &a) && answer_is(&a, 200, body));
	}
	free(text);
	answer_free(&a);
	tls_client_close(&k);
	server_stop(&s);
}

static void test_byte_by_byte(void)
{
	struct server s = tls_server_start("t.reply");

	for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
		struct tls_wish wish = {.version = version, .bytewise = true};
		struct tls_client k = tls_client_open(s.port, &wish);
		CU_ASSERT(tls_ask(&k, GET("/slow"), "GET /slow\n"));
		CU_ASSERT(
		    tls_ask(&k, "POST /p HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\n\r\nhello",
			"POST /p\nhello"));
		tls_client_close(&k);
	}
	server_stop(&s);
}

static bool is_pattern(const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] != (char)('a' + i % 26))
			return false;
	return true;
}

/* More than the socket buffers hold, for a client that begins to read when the server can write no
 * more. */
static void test_large_answers(void)
{
	enum { N = 12000000 };
	struct server s = tls_server_start("t.reply");
	struct tls_client k = tls_client_open(s.port, &plain_wish);
	struct answer a = {0};

	CU_ASSERT(tls_say(&k, GET("/big/12000000") GET("/big/1") GET("/big/70000") GET("/end")));
	AWAIT_METRIC(&s, "http_sent_bytes_total", >, 10000);
	CU_ASSERT(tls_answer(&k, &a));
	CU_ASSERT(a.n == N && is_pattern(a.body, N));
	CU_ASSERT(tls_answer(&k, &a) && answer_is(&a, 200, "a"));
	CU_ASSERT(tls_answer(&k, &a) && a.n == 70000 && is_pattern(a.body, a.n));
	CU_ASSERT(tls_answer(&k, &a) && answer_is(&a, 200, "GET /end\n"));
	CU_ASSERT(tls_ask(&k, GET("/more"), "GET /more\n"));
	answer_free(&a);
	tls_client_close(&k);
	server_stop(&s);
}

/* The last answer is large, and the connection ends after it: no byte is lost, and close_notify is
 * sent. */
static void test_end_behind_large(void)
{
	enum { N = 12000000 };
	struct server s = tls_server_start("t.reply");
	struct tls_client k = tls_client_open(s.port, &plain_wish);
	struct answer a = {0};

	CU_ASSERT(
	    tls_say(&k, "GET /big/12000000 HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n"));
	AWAIT_METRIC(&s, "http_sent_bytes_total", >, 10000);
	CU_ASSERT(tls_answer(&k, &a));
	CU_ASSERT(a.close && a.n == N && is_pattern(a.body, N));
	CU_ASSERT(tls_at_end(&k));
	answer_free(&a);
	tls_client_close(&k);
	AWAIT_METRIC(&s, "http_connections", ==, 0);
	server_stop(&s);
}

static void test_upload(void)
{
	enum { N = 900000 };
	struct server s = tls_server_start("t.reply");
	struct tls_client k = tls_client_open(s.port, &plain_wish);
	char *text = malloc(N + 200);
	struct answer a = {0};
	int head = sprintf(text, "POST /up HTTP/1.1\r\nHost: t\r\nContent-Length: %d\r\n\r\n", N);

	for (int i = 0; i < N; i++)
		text[head + i] = (char)('a' + i % 26);
	for (int i = 0; i < 2; i++) {
		CU_ASSERT(tls_send_bytes(&k, text, (size_t)(head + N)));
		CU_ASSERT(tls_answer(&k, &a));
		CU_ASSERT(a.n == N + 9 && is_pattern(a.body + 9, N));
	}
	free(text);
	answer_free(&a);
	tls_client_close(&k);
	server_stop(&s);
}

/* "100 Continue" works over TLS as well. */
static void test_continue(void)
{
	struct server s = tls_server_start("t.reply");
	struct tls_client k = tls_client_open(s.port, &plain_wish);
	struct answer a = {0};
	char text[25];

	CU_ASSERT(tls_say(&k, "POST /c HTTP/1.1\r\nHost: t\r\nContent-Length: 2\r\n"
			      "Expect: 100-continue\r\n\r\n"));
	CU_ASSERT(tls_read_bytes(&k, text, sizeof(text)));
	CU_ASSERT_EQUAL(memcmp(text, "HTTP/1.1 100 Continue\r\n\r\n", sizeof(text)), 0);
	CU_ASSERT(tls_say(&k, "ab"));
	CU_ASSERT(tls_answer(&k, &a) && answer_is(&a, 200, "POST /c\nab"));
	answer_free(&a);
	tls_client_close(&k);
	server_stop(&s);
}

/* A client that has sent everything, with and without close_notify, still gets its answer. */
static void test_half_close(void)
{
	struct server s = tls_server_start("t.reply");
	struct answer a = {0};

	for (int politely = 0; politely < 2; politely++) {
		struct tls_client k = tls_client_open(s.port, &plain_wish);
		CU_ASSERT(tls_say(&k, politely ? GET("/wait/b") : GET("/wait/a")));
		gate_await(1);
		if (politely)
			SSL_shutdown(k.ssl);
		else
			shutdown(k.fd, SHUT_WR);
		gate_open(politely ? "b" : "a");
		CU_ASSERT(tls_answer(&k, &a));
		CU_ASSERT_EQUAL(a.status, 200);
		CU_ASSERT(tls_at_end(&k));
		tls_client_close(&k);
	}
	AWAIT_METRIC(&s, "http_connections", ==, 0);
	answer_free(&a);
	server_stop(&s);
}

/* close_notify alone, without closing the socket: no epoll edge reports it after the request. */
static void test_close_notify_with_request(void)
{
	struct server s = tls_server_start("t.reply");
	struct tls_client k = tls_client_open(s.port, &plain_wish);
	struct answer a = {0};
	BIO *mem = BIO_new(BIO_s_mem()), *wire = SSL_get_wbio(k.ssl);
	char *p;

	BIO_up_ref(wire);
	SSL_set0_wbio(k.ssl, mem);
	CU_ASSERT(tls_say(&k, GET("/last")));
	SSL_shutdown(k.ssl);
	long n = BIO_get_mem_data(mem, &p);
	CU_ASSERT(client_send(k.fd, p, (size_t)n));
	SSL_set0_wbio(k.ssl, wire);
	CU_ASSERT(tls_answer(&k, &a) && answer_is(&a, 200, "GET /last\n"));
	CU_ASSERT(tls_at_end(&k));
	AWAIT_METRIC(&s, "http_connections", ==, 0);
	answer_free(&a);
	tls_client_close(&k);
	server_stop(&s);
}

static void test_key_update(void)
{
	struct tls_wish wish = {.version = TLS1_3_VERSION};
	struct server s = tls_server_start("t.reply");
	struct tls_client k = tls_client_open(s.port, &wish);

	for (int i = 0; i < 3; i++) {
		CU_ASSERT_EQUAL(SSL_key_update(k.ssl, SSL_KEY_UPDATE_REQUESTED), 1);
		CU_ASSERT(tls_ask(&k, GET("/x"), "GET /x\n"));
	}
	tls_client_close(&k);
	server_stop(&s);
}

/* Nothing but key updates: the client is disconnected, and others are served meanwhile. */
static void test_key_updates_alone(void)
{
	struct tls_wish wish = {.version = TLS1_3_VERSION};
	struct server s = tls_server_start("t.reply");
	struct tls_client k = tls_client_open(s.port, &wish);
	bool going = true;

	for (int i = 0; going; i++) {
		going = SSL_key_update(k.ssl, SSL_KEY_UPDATE_NOT_REQUESTED) == 1 &&
			SSL_do_handshake(k.ssl) == 1;
		CU_ASSERT_FATAL(i < 1000000);
	}
	AWAIT_METRIC(&s, "http_connections", ==, 0);
	tls_client_close(&k);
	server_stop(&s);
}

static void test_no_renegotiation(void)
{
	struct tls_wish wish = {.version = TLS1_2_VERSION};
	struct server s = tls_server_start("t.reply");
	struct tls_client k = tls_client_open(s.port, &wish);

	CU_ASSERT(tls_ask(&k, GET("/x"), "GET /x\n"));
	SSL_renegotiate(k.ssl);
	CU_ASSERT_NOT_EQUAL(SSL_do_handshake(k.ssl), 1);
	CU_ASSERT_EQUAL(server_metric(&s, "http_tls_handshakes_full_total"), 1);
	tls_client_close(&k);
	AWAIT_METRIC(&s, "http_connections", ==, 0);
	server_stop(&s);
}

/* ---- input that is not TLS ---- */

static void test_plain(void)
{
	struct server s = tls_server_start("t.reply");
	struct answer a = {0};
	int fd = client_open(s.port);

	CU_ASSERT(client_say(fd, GET("/secret")));
	CU_ASSERT(answer_read(fd, &a));
	CU_ASSERT(answer_is(&a, 400, "400 Bad Request: this port accepts only HTTPS\n"));
	CU_ASSERT(a.close && client_at_end(fd));
	close(fd);
	AWAIT_METRIC(&s, "http_tls_failed_plain_total", ==, 1);
	AWAIT_METRIC(&s, "http_memory_bytes", ==, 0);
	CU_ASSERT_EQUAL(server_offered(&s), 0);
	answer_free(&a);
	server_stop(&s);
}

static void test_garbage(void)
{
	static const struct {
		const char *p;
		size_t n;
	} bad[] = {{"\0", 1}, {"\x80\x2e\x01\x03\x01", 5}, {"\x16\x04", 2},
	    {"\x15\x03\x01\0\2\2\0", 7}, {"\x16\x03\x01\x40\x01", 5}, {"\x16\x03\x01\0\0", 5},
	    {"\x16\x03\x01\0\4abcd", 9}, {"\x16\x03\x03\0\5\1\0\0\1\3", 10}};
	struct server s = tls_server_start("t.reply");

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char byte[64];
		int fd = client_open(s.port);
		CU_ASSERT(client_send(fd, bad[i].p, bad[i].n));
		while (client_recv(fd, byte, sizeof(byte), 0) > 0)
			continue; /* possibly an alert */
		close(fd);
		AWAIT_METRIC(&s, "http_tls_failed_protocol_total", ==, (int64_t)i + 1);
	}
	AWAIT_METRIC(&s, "http_connections", ==, 0);
	server_stop(&s);
}

/* Silent clients, and clients that stop in the middle of a hello. */
static void test_too_late(void)
{
	struct server s = tls_server_new("t.reply", "one");

	fixture_set(s.web, "with.header_timeout", "50ms");
	server_start(&s);
	int silent = client_open(s.port), half = client_open(s.port);
	CU_ASSERT(client_send(half, "\x16\x03\x01\x01\0\1\0\0", 8));
	CU_ASSERT(client_at_end(silent));
	CU_ASSERT(client_at_end(half));
	close(silent);
	close(half);
	AWAIT_METRIC(&s, "http_tls_failed_timeout_total", ==, 2);
	server_stop(&s);
}

static void test_gone(void)
{
	struct server s = tls_server_start("t.reply");
	int fd = client_open(s.port);

	CU_ASSERT(client_send(fd, "\x16\x03\x01\x01\0\1\0\0", 8));
	AWAIT_METRIC(&s, "http_connections", ==, 1);
	close(fd);
	AWAIT_METRIC(&s, "http_tls_failed_closed_total", ==, 1);
	AWAIT_METRIC(&s, "http_connections", ==, 0);
	server_stop(&s);
}

static void test_full(void)
{
	struct server s = tls_server_new("t.reply", "one");

	fixture_set(s.web, "with.max_connections", "1");
	server_start(&s);
	struct tls_client k = tls_client_open(s.port, &plain_wish);
	CU_ASSERT(tls_say(&k, GET("/wait/full")));
	gate_await(1);
	int fd = client_open(s.port);
	CU_ASSERT(client_at_end(fd));
	close(fd);
	AWAIT_METRIC(&s, "http_refused_total", ==, 1);
	gate_open("full");
	struct answer a = {0};
	CU_ASSERT(tls_answer(&k, &a) && answer_is(&a, 200, "GET /wait/full\n"));
	answer_free(&a);
	tls_client_close(&k);
	server_stop(&s);
}

CUNIT_MAIN("http_tls", {"make files", tls_begin}, {"versions", test_versions},
    {"nothing in common", test_nothing_in_common}, {"min_version", test_min_version},
    {"alpn", test_alpn}, {"tickets and names", test_ticket_name}, {"tickets", test_tickets},
    {"no tickets", test_no_tickets}, {"pipelining", test_pipelining},
    {"byte by byte", test_byte_by_byte}, {"large answers", test_large_answers},
    {"end behind a large answer", test_end_behind_large}, {"upload", test_upload},
    {"100 continue", test_continue}, {"half close", test_half_close},
    {"close_notify with a request", test_close_notify_with_request},
    {"key update", test_key_update}, {"key updates alone", test_key_updates_alone},
    {"no renegotiation", test_no_renegotiation}, {"plain HTTP", test_plain},
    {"garbage", test_garbage}, {"too late", test_too_late}, {"gone", test_gone},
    {"full", test_full}, {"remove files", tls_end})
