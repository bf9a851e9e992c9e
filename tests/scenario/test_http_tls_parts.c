/* SPDX-License-Identifier: MIT */
/* Bodies in parts over TLS: the rings of transfer.h with the records of tls_io.c. The clients read
 * late, write byte by byte, leave, or see a reload or the end of the graph in the middle of a
 * body. */
#include <poll.h>

#include "fixture/graph/drain.h"
#include "fixture/http/tls.h"
#include "fixture/http/parts.h"

static const struct tls_wish plain_wish;

static struct server tls_parts_new(void)
{
	static bool registered;

	if (!registered)
		fixture_register(&parts_ops);
	registered = true;
	struct server s = tls_server_new("t.parts", "one");
	fixture_set(s.web, "with.stream", "1KiB");
	fixture_set(s.web, "with.max_body", "10GiB");
	fixture_set(s.app, "threads.max", "3");
	fixture_set(s.app, "threads.min", "3");
	fixture_set(s.app, "cohort.max", "1");
	atomic_store(&parts_error, 0);
	return s;
}

static struct server tls_parts(void)
{
	struct server s = tls_parts_new();

	server_start(&s);
	return s;
}

/* ---- clients that read and write at once ---- */

struct duplex {
	struct tls_client *k;
	const char *out;
	size_t n_out, piece; /* at most this much at once, each way */
	char *in;            /* everything received */
	size_t n_in, room;
	bool late; /* read only when writing blocks */
	bool ended, polite;
};

static bool wants(SSL *ssl, int rc)
{
	int e = SSL_get_error(ssl, rc);

	return e == SSL_ERROR_WANT_READ || e == SSL_ERROR_WANT_WRITE;
}

static bool push(struct duplex *d)
{
	size_t n = d->n_out < d->piece ? d->n_out : d->piece;

	if (n == 0)
		return false;
	ERR_clear_error();
	int rc = SSL_write(d->k->ssl, d->out, (int)n);
	if (rc <= 0)
		return false;
	d->out += rc;
	d->n_out -= (size_t)rc;
	return true;
}

static bool pull(struct duplex *d)
{
	size_t n = d->room - d->n_in < d->piece ? d->room - d->n_in : d->piece;

	ERR_clear_error();
	int rc = SSL_read(d->k->ssl, d->in + d->n_in, (int)n);
	if (rc > 0) {
		d->n_in += (size_t)rc;
		return true;
	}
	d->ended = !wants(d->k->ssl, rc);
	d->polite = SSL_get_error(d->k->ssl, rc) == SSL_ERROR_ZERO_RETURN;
	return false;
}

static bool seen(const struct duplex *d, const char *text)
{
	size_t n = strlen(text);

	return d->n_in >= n && memcmp(d->in + d->n_in - n, text, n) == 0;
}

/* Run until the received bytes end with `until`, or the connection ends. */
static void duplex_run(struct duplex *d, const char *until)
{
	struct pollfd p = {.fd = d->k->fd};
	int flags = fcntl(d->k->fd, F_GETFL);

	fcntl(d->k->fd, F_SETFL, flags | O_NONBLOCK);
	SSL_set_mode(d->k->ssl, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	while (!d->ended && !(d->n_out == 0 && seen(d, until))) {
		bool moved = push(d);
		if ((!d->late || !moved) && pull(d))
			moved = true;
		p.events = (short)(POLLIN | (d->n_out > 0 ? POLLOUT : 0));
		if (!moved && !d->ended && poll(&p, 1, WAIT_MS) != 1) {
			CU_FAIL("the server stands still");
			break;
		}
	}
	fcntl(d->k->fd, F_SETFL, flags);
}

/* Is it a head with `status`, then `n` bytes of the pattern in chunks and `trailers`? */
static bool is_whole(const struct duplex *d, int status, uint64_t n, const char *trailers)
{
	char *at = memmem(d->in, d->n_in, "\r\n\r\n", 4), *end = d->in + d->n_in;
	uint64_t got = 0;
	int code = 0;
	size_t m;

	if (!at || sscanf(d->in, "HTTP/1.1 %d ", &code) != 1 || code != status)
		return false;
	at += 4;
	while (at < end && (m = strtoul(at, &at, 16)) > 0) {
		at += 2;
		for (size_t i = 0; i < m && at + i < end; i++)
			if (at[i] != parts_byte(got + i))
				return false;
		got += m;
		at += m + 2;
	}
	return got == n && strcmp(at, trailers) == 0;
}

static char *pattern(size_t n)
{
	char *p = malloc(n + 1);

	for (size_t i = 0; i < n; i++)
		p[i] = parts_byte(i);
	p[n] = '\0';
	return p;
}

/* Send `head` and `n` bytes of the pattern; receive an answer in parts of the same size. */
static void swap(struct tls_client *k, const char *head, size_t n, size_t piece, bool late)
{
	char *body = pattern(n), *out = malloc(n + 1000), trailers[64];
	struct duplex d = {.k = k, .piece = piece, .late = late, .room = 2 * n + 100000};

	d.in = calloc(1, d.room + 1);
	d.out = out;
	d.n_out = (size_t)sprintf(out, "%s", head);
	memcpy(out + d.n_out, body, n);
	d.n_out += n;
	snprintf(trailers, sizeof(trailers), "\r\nX-Bytes: %zu\r\n\r\n", n);
	duplex_run(&d, trailers);
	CU_ASSERT(is_whole(&d, 200, n, trailers));
	free(body);
	free(out);
	free(d.in);
}

/* ---- regular clients ---- */

static void test_uploads(void)
{
	struct server s = tls_parts();
	struct answer a = {0};

	for (int bytewise = 0; bytewise < 2; bytewise++) {
		struct tls_wish wish = {.bytewise = bytewise};
		struct tls_client k = tls_client_open(s.port, &wish);
		size_t n = bytewise ? 9000 : 3000000; /* no buffer holds them completely */
		char *body = pattern(n), head[200];
		snprintf(head, sizeof(head),
		    "POST /sum HTTP/1.1\r\nHost: t\r\nContent-Length: %zu\r\n\r\n", n);
		CU_ASSERT(tls_say(&k, head) && tls_send_bytes(&k, body, n));
		CU_ASSERT(tls_answer(&k, &a) && answer_is(&a, 200, pattern_sum(n)));
		CU_ASSERT(tls_say(&k, POST_HEAD("/sum", "Transfer-Encoding: chunked\r\n")));
		snprintf(head, sizeof(head), "%zx\r\n", n);
		CU_ASSERT(tls_say(&k, head) && tls_send_bytes(&k, body, n));
		CU_ASSERT(tls_say(&k, "\r\n0\r\n\r\n" GET("/sum")));
		CU_ASSERT(tls_answer(&k, &a) && answer_is(&a, 200, pattern_sum(n)));
		CU_ASSERT(tls_answer(&k, &a) && answer_is(&a, 200, "0 0\n"));
		free(body);
		tls_client_close(&k);
	}
	CU_ASSERT_EQUAL(server_metric(&s, "http_streamed_bodies_total"), 4);
	answer_free(&a);
	parts_server_stop(&s);
}

/* A client that reads nothing until the server has stopped writing, then little at a time. */
static void test_late_reader(void)
{
	enum { N = 12000000 };
	struct server s = tls_parts();
	struct tls_client k = tls_client_open(s.port, &plain_wish);
	struct duplex d = {.k = &k, .piece = 3001, .room = N + 3000000};
	int64_t before;

	CU_ASSERT(tls_say(&k, GET("/count/12000000")));
	do {
		before = server_metric(&s, "http_sent_bytes_total");
		poll(NULL, 0, 50);
	} while (before == 0 || server_metric(&s, "http_sent_bytes_total") != before);
	CU_ASSERT(before < N);
	d.in = calloc(1, d.room + 1);
	duplex_run(&d, "\r\n0\r\n\r\n");
	CU_ASSERT(is_whole(&d, 200, N, "\r\n\r\n"));
	CU_ASSERT_EQUAL(server_metric(&s, "http_stream_buffer_peak_bytes"), 65536);
	CU_ASSERT(tls_say(&k, GET("/sum")));
	struct answer a = {0};
	CU_ASSERT(tls_answer(&k, &a) && answer_is(&a, 200, "0 0\n"));
	answer_free(&a);
	free(d.in);
	tls_client_close(&k);
	parts_server_stop(&s);
}

static void test_mirror(void)
{
	struct server s = tls_parts();
	struct tls_client k = tls_client_open(s.port, &plain_wish);
	static const char head[] = POST_HEAD("/mirror", "Content-Length: 9000000\r\n");

	swap(&k, head, 9000000, 16384, false);
	swap(&k, head, 9000000, 16384, true);
	swap(&k, head, 9000000, 4099, true);
	swap(&k, POST_HEAD("/mirror", "Content-Length: 20000\r\n"), 20000, 1, false);
	CU_ASSERT(server_metric(&s, "http_stream_buffer_peak_bytes") <= 2 * 65536);
	tls_client_close(&k);
	parts_server_stop(&s);
}

/* The smallest buffers allowed: less than a record, so that a part waits in OpenSSL, which no epoll
 * edge reports. */
static void test_small_buffers(void)
{
	struct server s = tls_parts_new();

	fixture_set(s.web, "with.stream_buffer", "16KiB");
	server_start(&s);
	struct tls_client k = tls_client_open(s.port, &plain_wish);
	static const char head[] = POST_HEAD("/mirror", "Content-Length: 3000000\r\n");
	swap(&k, head, 3000000, 16384, false);
	swap(&k, head, 3000000, 16384, true);
	tls_client_close(&k);
	parts_server_stop(&s);
}

static void test_continue(void)
{
	struct server s = tls_parts();
	struct tls_client k = tls_client_open(s.port, &plain_wish);
	struct answer a = {0};
	char text[25], *body = pattern(40000);

	CU_ASSERT(
	    tls_say(&k, POST_HEAD("/sum", "Content-Length: 40000\r\nExpect: 100-continue\r\n")));
	CU_ASSERT(tls_read_bytes(&k, text, sizeof(text)));
	CU_ASSERT_EQUAL(memcmp(text, "HTTP/1.1 100 Continue\r\n\r\n", sizeof(text)), 0);
	CU_ASSERT(tls_send_bytes(&k, body, 40000));
	CU_ASSERT(tls_answer(&k, &a) && answer_is(&a, 200, pattern_sum(40000)));
	free(body);
	answer_free(&a);
	tls_client_close(&k);
	parts_server_stop(&s);
}

/* ---- ends ---- */

/* A client that closes without notice, in the middle of an upload and of a download. */
static void test_client_goes(void)
{
	static const char *const text[] = {POST_HEAD("/sum", "Content-Length: 900000\r\n") "begun",
	    GET("/count/2000000000"), POST_HEAD("/mirror", "Content-Length: 900000\r\n") "abc"};
	struct server s = tls_parts();
	char *body = pattern(100000);

	for (int i = 0; i < 6; i++) {
		struct tls_client k = tls_client_open(s.port, &plain_wish);
		atomic_store(&parts_error, 0);
		CU_ASSERT(tls_say(&k, text[i % 3]));
		bool ok =
		    i % 3 == 0 ? tls_send_bytes(&k, body, 100000) : tls_read_bytes(&k, body, 30);
		CU_ASSERT(ok);
		if (i >= 3)
			SSL_shutdown(k.ssl);
		tls_client_close(&k);
		FIXTURE_AWAIT(atomic_load(&parts_error) == WEIR_EGONE);
		AWAIT_METRIC(&s, "http_connections", ==, 0);
	}
	free(body);
	parts_server_stop(&s);
}

/* Read to the end: is there a close_notify? */
static bool ends_politely(struct tls_client *k)
{
	char piece[8192];
	int rc;

	do
		rc = tls_receive(k, piece, sizeof(piece));
	while (rc > 0);
	return SSL_get_error(k->ssl, rc) == SSL_ERROR_ZERO_RETURN;
}

/* An answer that ends with the connection is complete only if TLS announces the end. */
static void test_old_client(void)
{
	struct server s = tls_parts();
	struct tls_client k = tls_client_open(s.port, &plain_wish);

	CU_ASSERT(tls_say(&k, "GET /count/300000 HTTP/1.0\r\n\r\n") && ends_politely(&k));
	tls_client_close(&k);
	k = tls_client_open(s.port, &plain_wish);
	CU_ASSERT(tls_say(&k, "GET /tear HTTP/1.0\r\n\r\n"));
	CU_ASSERT_FALSE(ends_politely(&k));
	tls_client_close(&k);
	parts_server_stop(&s);
}

/* The grace time is over: an answer that ends with the connection must not look complete. */
static void test_drain_forced(void)
{
	struct server s = tls_parts();
	struct weir_drain_report report = {0};
	struct tls_client old = tls_client_open(s.port, &plain_wish);
	struct tls_client up = tls_client_open(s.port, &plain_wish);
	struct answer a = {0};
	char byte;

	CU_ASSERT(tls_say(&old, "POST /mirror HTTP/1.0\r\nContent-Length: 50000\r\n\r\nabc"));
	CU_ASSERT(tls_read_bytes(&old, &byte, 1));
	CU_ASSERT(tls_say(&up, POST_HEAD("/sum", "Content-Length: 900000\r\n") "abc"));
	AWAIT_METRIC(&s, "http_streamed_bodies_total", ==, 2);
	weir_graph_drain(s.graph, 0, &report);
	CU_ASSERT_FALSE(ends_politely(&old));
	CU_ASSERT(tls_answer(&up, &a) && a.status == 503 && a.close && tls_at_end(&up));
	CU_ASSERT_EQUAL(report.law_error, 0);
	weir_graph_free(s.graph);
	CU_ASSERT_EQUAL(atomic_load(&parts_states), 0);
	answer_free(&a);
	tls_client_close(&old);
	tls_client_close(&up);
}

/* The body continues in the graph where it began; the next request goes to the new graph. */
static void test_reload(void)
{
	enum { N = 3000000, HALF = N / 2 };
	struct server s = tls_parts(), next = tls_parts_new();
	struct tls_client k = tls_client_open(s.port, &plain_wish);
	struct duplex up = {.k = &k, .piece = 16384, .room = 2 * N};
	struct weir_errs errs = {0};
	struct answer a = {0};
	struct drain d;
	char *body = pattern(N);

	CU_ASSERT(tls_say(&k, POST_HEAD("/mirror", "Content-Length: 3000000\r\n")));
	up.in = calloc(1, up.room + 1);
	CU_ASSERT(tls_send_bytes(&k, body, 50000) && tls_read_bytes(&k, up.in, 10000));
	up.n_in = 10000;
	CU_ASSERT_EQUAL_FATAL(weir_graph_build(next.spec, &next.graph, &errs), 0);
	CU_ASSERT_EQUAL_FATAL(weir_graph_succeed(next.graph, s.graph, &errs), 0);
	drain_call(&d, s.graph, DRAIN_ALL_NS);
	up.out = body + 50000;
	up.n_out = N - 50000;
	duplex_run(&up, "\r\nX-Bytes: 3000000\r\n\r\n");
	CU_ASSERT(is_whole(&up, 200, N, "\r\nX-Bytes: 3000000\r\n\r\n"));
	CU_ASSERT(tls_say(&k, POST_HEAD("/sum", "Content-Length: 40000\r\n")));
	CU_ASSERT(tls_send_bytes(&k, body, 40000));
	CU_ASSERT(tls_answer(&k, &a) && answer_is(&a, 200, pattern_sum(40000)));
	drain_end(&d);
	CU_ASSERT_EQUAL(d.report.closed, 0);
	CU_ASSERT_EQUAL(server_metric(&next, "http_streamed_bodies_total"), 2); /* of both graphs */
	free(body);
	free(up.in);
	answer_free(&a);
	tls_client_close(&k);
	parts_server_stop(&next);
}

CUNIT_MAIN("http_tls_parts", {"make files", tls_begin}, {"uploads", test_uploads},
    {"late reader", test_late_reader}, {"mirror", test_mirror},
    {"small buffers", test_small_buffers}, {"100 continue", test_continue},
    {"client goes", test_client_goes}, {"old client", test_old_client},
    {"forced drain", test_drain_forced}, {"reload", test_reload}, {"remove files", tls_end})
