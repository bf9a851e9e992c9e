/* SPDX-License-Identifier: MIT */
/* Sockets that are full at the worst moment, just when the last few bytes are to be sent. On
 * demand, send() of this program reports a full socket for writes of given lengths; the clients of
 * these tests write in other ways or other lengths. */
#include <stdatomic.h>
#include <sys/syscall.h>

#include "fixture/http/tls.h"

/* ---- send() ---- */

static atomic_size_t full_from, full_to; /* lengths of the writes that fail */
static atomic_int full_times;            /* how often they fail */
static atomic_size_t full_bit;           /* bytes that the first of them sends */
/* The first write that succeeds waits at gate "room" for a while. */
static atomic_bool full_gate;

static void fill(size_t from, size_t to, size_t bit, int times)
{
	full_from = from;
	full_to = to;
	full_bit = bit;
	full_times = times;
}

ssize_t send(int fd, const void *p, size_t n, int flags)
{
	if (n >= full_from && n <= full_to && full_times > 0) {
		size_t bit = atomic_exchange(&full_bit, 0);
		full_times--;
		if (bit == 0) {
			errno = EAGAIN;
			return -1;
		}
		full_from = full_to = n - bit; /* then the rest follows */
		n = bit;
	} else if (n >= full_from && n <= full_to && atomic_exchange(&full_gate, false)) {
		gate_pass("room", 4);
	}
	return syscall(SYS_sendto, fd, p, n, flags, NULL, 0);
}

/* ---- close_notify ---- */

/* The length of a record with an alert. Without a nonce it has a header of 5 bytes, the alert of 2,
 * a type of 1 and a tag of at most 16 (RFC 8446, 5.2). With TLS 1.2 a nonce of 8 may replace the
 * type. */
#define ALERT_FROM 19
#define ALERT_TO   31

static void ask_last(struct server *s, const char *request, int version, size_t bit)
{
	struct tls_wish wish = {.version = version};
	struct tls_client k = tls_client_open(s->port, &wish);
	struct answer a = {0};

	fill(ALERT_FROM, ALERT_TO, bit, 4);
	CU_ASSERT(tls_say(&k, request));
	CU_ASSERT(tls_answer(&k, &a));
	CU_ASSERT_EQUAL(a.status, 200);
	CU_ASSERT(tls_at_end(&k));
	CU_ASSERT_EQUAL(full_times, 0);
	answer_free(&a);
	tls_client_close(&k);
	AWAIT_METRIC(s, "http_connections", ==, 0);
}

/* The end of the stream is announced, so that no client takes the answer for a torn one. */
static void test_close_notify(void)
{
	struct server s = tls_server_start("t.reply");

	for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++)
		for (size_t bit = 0; bit <= 7; bit += 7) {
			ask_last(&s, GET("/close"), version, bit);
			ask_last(&s, "GET /x HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n",
			    version, bit);
		}
	CU_ASSERT_EQUAL(server_metric(&s, "http_timeouts_write_total"), 0);
	server_stop(&s);
}

/* The client has sent everything and shut down its side. */
static void test_close_notify_at_eof(void)
{
	struct tls_wish wish = {0};
	struct server s = tls_server_start("t.reply");

	struct tls_client k = tls_client_open(s.port, &wish);
	CU_ASSERT(tls_ask(&k, GET("/x"), "GET /x\n"));
	fill(ALERT_FROM, ALERT_TO, 0, 4);
	shutdown(k.fd, SHUT_WR);
	CU_ASSERT(tls_at_end(&k));
	CU_ASSERT_EQUAL(full_times, 0);
	tls_client_close(&k);
	AWAIT_METRIC(&s, "http_connections", ==, 0);
	server_stop(&s);
}

/* The socket stays full: the connection still ends after write_timeout. */
static void test_never_room(void)
{
	struct tls_wish wish = {0};
	struct server s = tls_server_new("t.reply", "one");

	fixture_set(s.web, "with.write_timeout", "100ms");
	server_start(&s);
	struct tls_client k = tls_client_open(s.port, &wish);
	fill(ALERT_FROM, ALERT_TO, 0, INT_MAX);
	CU_ASSERT(tls_say(&k, GET("/close")));
	AWAIT_METRIC(&s, "http_timeouts_write_total", ==, 1);
	AWAIT_METRIC(&s, "http_connections", ==, 0);
	fill(0, 0, 0, 0);
	tls_client_close(&k);
	server_stop(&s);
}

/* While the client reads nothing, close_notify cannot be sent. When the client reads at last, it
 * still gets everything sent before. */
static void test_late_reader(void)
{
	struct server s = tls_server_new("t.reply", "one");
	struct tls_wish wish = {0};
	struct answer a = {0};
	int little = 4096, fd;

	fixture_set(s.web, "with.write_timeout", "100ms");
	server_start(&s);
	fd = client_open(s.port);
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &little, sizeof(little));
	struct tls_client k = tls_client_over(fd, &wish);
	CU_ASSERT_EQUAL(SSL_do_handshake(k.ssl), 1);
	fill(ALERT_FROM, ALERT_TO, 0, INT_MAX);
	CU_ASSERT(tls_say(&k, "GET /big/200000 HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n"));
	AWAIT_METRIC(&s, "http_timeouts_write_total", ==, 1);
	CU_ASSERT(tls_answer(&k, &a));
	CU_ASSERT_EQUAL(a.n, 200000);
	fill(0, 0, 0, 0);
	answer_free(&a);
	tls_client_close(&k);
	AWAIT_METRIC(&s, "http_connections", ==, 0);
	server_stop(&s);
}

/* A request after the last answer is ignored, and the end of the connection does not wait for
 * it. */
static void test_nothing_behind(void)
{
	struct tls_wish wish = {0};
	struct server s = tls_server_new("t.reply", "one");
	struct answer a = {0};

	fixture_set(s.app, "threads.min", "2");
	fixture_set(s.app, "threads.max", "2");
	fixture_set(s.app, "cohort.max", "1");
	server_start(&s);
	struct tls_client k = tls_client_open(s.port, &wish);
	fill(ALERT_FROM, ALERT_TO, 0, 4);
	CU_ASSERT(tls_say(&k, GET("/close") GET("/wait/behind")));
	CU_ASSERT(tls_answer(&k, &a) && answer_is(&a, 200, "GET /close\n"));
	gate_await(1);
	CU_ASSERT(tls_at_end(&k));
	CU_ASSERT_EQUAL(full_times, 0);
	gate_open("behind");
	answer_free(&a);
	tls_client_close(&k);
	AWAIT_METRIC(&s, "http_connections", ==, 0);
	server_stop(&s);
}

/* ---- 100 Continue ---- */

#define CONTINUE "HTTP/1.1 100 Continue\r\n\r\n"
#define EXPECT   "POST /c HTTP/1.1\r\nHost: t\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"

/* "100 Continue" is sent when the socket has space, and completely, before the answer. */
static void test_continue(void)
{
	const size_t n = strlen(CONTINUE);
	struct server s = server_new("t.reply");
	struct answer a = {0};
	char text[64];

	server_start(&s);
	int fd = client_open(s.port);
	for (size_t bit = 0; bit < n; bit += 8) {
		fill(n, n, bit, 4);
		CU_ASSERT(client_say(fd, EXPECT));
		CU_ASSERT(client_take(fd, text, n));
		CU_ASSERT_EQUAL(memcmp(text, CONTINUE, n), 0);
		CU_ASSERT_EQUAL(full_times, 0);
		CU_ASSERT(client_say(fd, "ab"));
		CU_ASSERT(answer_read(fd, &a) && answer_is(&a, 200, "POST /c\nab"));
	}
	/* A client that does not wait for "100 Continue" gets it and the answer, in order. */
	uint64_t offered = server_offered(&s);
	fill(n, n, 3, INT_MAX);
	CU_ASSERT(client_say(fd, EXPECT));
	FIXTURE_AWAIT(full_times < INT_MAX - 1);
	CU_ASSERT(client_say(fd, "ab" GET("/d")));
	FIXTURE_AWAIT(server_offered(&s) == offered + 2);
	full_times = 0;
	CU_ASSERT(answer_read(fd, &a));
	CU_ASSERT_EQUAL(a.status, 100);
	CU_ASSERT(answer_read(fd, &a));
	CU_ASSERT(answer_is(&a, 200, "POST /c\nab"));
	CU_ASSERT(answer_read(fd, &a) && answer_is(&a, 200, "GET /d\n"));
	answer_free(&a);
	close(fd);
	server_stop(&s);
}

static void test_continue_over_tls(void)
{
	const size_t n = strlen(CONTINUE);
	struct server s = tls_server_new("t.reply", "one");
	struct answer a = {0};
	char text[64];

	server_start(&s);
	for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
		struct tls_wish wish = {.version = version};
		struct tls_client k = tls_client_open(s.port, &wish);
		for (size_t bit = 0; bit < n; bit += 8) {
			fill(n + 5, n + 5 + 8 + 17, bit, 4); /* as a TLS record */
			CU_ASSERT(tls_say(&k, EXPECT));
			CU_ASSERT(tls_read_bytes(&k, text, n));
			CU_ASSERT_EQUAL(memcmp(text, CONTINUE, n), 0);
			CU_ASSERT_EQUAL(full_times, 0);
			CU_ASSERT(tls_say(&k, "ab"));
			CU_ASSERT(tls_answer(&k, &a) && answer_is(&a, 200, "POST /c\nab"));
		}
		tls_client_close(&k);
	}
	answer_free(&a);
	server_stop(&s);
}

/* The client's end arrives just when the rest can be sent; the server notices it at an earlier or a
 * later poll of the socket. */
static void test_continue_to_nobody(void)
{
	const size_t n = strlen(CONTINUE);
	struct tls_wish wish = {.version = TLS1_3_VERSION};

	for (int looks = 3; looks <= 6; looks++) {
		struct server s = tls_server_start("t.reply");
		struct tls_client k = tls_client_open(s.port, &wish);
		full_gate = true;
		fill(n + 5, n + 5 + 8 + 17, 0, looks);
		CU_ASSERT(tls_say(&k, EXPECT));
		gate_await(1);
		SSL_shutdown(k.ssl);
		gate_open("room");
		AWAIT_METRIC(&s, "http_connections", ==, 0);
		tls_client_close(&k);
		server_stop(&s);
	}
}

CUNIT_MAIN("http full socket", {"make files", tls_begin}, {"close_notify", test_close_notify},
    {"close_notify at the client's end", test_close_notify_at_eof}, {"never room", test_never_room},
    {"late reader", test_late_reader}, {"nothing behind the end", test_nothing_behind},
    {"100 continue", test_continue}, {"100 continue over TLS", test_continue_over_tls},
    {"100 continue to nobody", test_continue_to_nobody}, {"remove files", tls_end})
