/* SPDX-License-Identifier: MIT */
/*
 * Runs of responses: wherever a send stops, the rest that is composed next continues exactly there.
 * And how many unsent bytes the kernel may hold.
 */
#include "http/conn_rig.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "http/conn/write.h"
#include "http/request/sent.h"

#define IO (&conn_rig.io)

static char big[3000];

/* ---- where a send stops ---- */

/* The waiters of responses: how each ended, in order, and how many bytes of bodies were sent. */
static char ends[16];
static int64_t sent_bytes;
static struct http_sent waiters[4];

static void ended(struct http_sent *s, struct http_req *r, enum http_sent_how how)
{
	(void)r;
	ends[strlen(ends)] = "twh"[how];
	sent_bytes += s->bytes;
}

static struct http_req *respond(struct conn *c, int status, const char *body, size_t n)
{
	struct http_req *r = conn_rig_request(c);

	r->pub.method = WEIR_HTTP_GET;
	r->pub.minor = 1;
	r->keep_alive = r->answered = true;
	r->wire_bytes = 40;
	c->wire_bytes += 40;
	CU_ASSERT_EQUAL_FATAL(
	    weir_http_respond(&r->pub, status, "a/b", (struct weir_slice){body, n}, NULL, NULL), 0);
	sent_await(r, &waiters[c->in_flight - 1]);
	return r;
}

/* Four responses: a short body, which is copied, a long one, none for HEAD, and another short
 * one. */
static struct conn *four(void)
{
	struct conn *c;

	conn_rig_begin();
	memset(ends, 0, sizeof(ends));
	sent_bytes = 0;
	for (int i = 0; i < 4; i++)
		waiters[i] = (struct http_sent){.fn = ended};
	for (size_t i = 0; i < sizeof(big); i++)
		big[i] = (char)('a' + i % 26);
	strcpy(IO->stamp.text, "Date: d\r\n");
	IO->stamp.n = strlen(IO->stamp.text);
	IO->stamp.until_ns = INT64_MAX;
	c = conn_rig_conn();
	respond(c, 200, "hello", 5);
	respond(c, 201, big, sizeof(big));
	respond(c, 200, "unseen", 6)->pub.method = WEIR_HTTP_HEAD;
	waiters[2].bytes = 0;
	respond(c, 404, "none", 4);
	return c;
}

/* Compose what is next. Returns its length. */
static size_t gather(struct conn *c, struct run *g, char *text)
{
	size_t n = 0;

	*g = write_alone(IO);
	write_gather(c, g);
	for (int i = 0; i < g->n_iov; i++) {
		memcpy(text + n, g->iov[i].iov_base, g->iov[i].iov_len);
		n += g->iov[i].iov_len;
	}
	CU_ASSERT_EQUAL(n, g->bytes);
	return n;
}

static void test_text(void)
{
	static char text[8000];
	struct conn *c = four();
	struct run g;

	text[gather(c, &g, text)] = '\0';
	CU_ASSERT_EQUAL(g.n_pieces, 4);
	CU_ASSERT_FALSE(g.close);
	CU_ASSERT_PTR_EQUAL(strstr(text, "HTTP/1.1 200 OK\r\nDate: d\r\nContent-Type: a/b\r\n"
					 "Content-Length: 5\r\n\r\nhelloHTTP/1.1 201 Created\r\n"),
	    text);
	const char *end = strstr(text, "HTTP/1.1 404 Not Found\r\n");
	CU_ASSERT_PTR_NOT_NULL_FATAL(end);
	CU_ASSERT_EQUAL(memcmp(end - 4, "\r\n\r\n", 4), 0); /* HEAD has no body */
	CU_ASSERT_EQUAL(strcmp(text + strlen(text) - 8, "\r\n\r\nnone"), 0);
	conn_rig_end();
}

/* Whatever number of bytes the socket takes, the rest follows. */
static void test_every_stop(void)
{
	static char whole[8000], rest[8000];
	struct run g;
	size_t n = 1;

	for (size_t k = 0; k <= n; k++) {
		struct conn *c = four();
		n = gather(c, &g, whole);
		g.sent = (ssize_t)k;
		CU_ASSERT_EQUAL(write_book(c, &g), k < n ? SENT_BLOCKED : SENT);
		CU_ASSERT_EQUAL(IO->count[SERVER_BYTES_OUT], (int64_t)k);
		CU_ASSERT_EQUAL(c->wire_bytes, 40 * c->in_flight);
		CU_ASSERT_EQUAL(IO->count[SERVER_ANSWERS_2XX] + IO->count[SERVER_ANSWERS_4XX],
		    4 - (int64_t)c->in_flight);
		CU_ASSERT_EQUAL(strlen(ends), 4 - c->in_flight);
		CU_ASSERT_EQUAL(c->part.begun, k < n);
		size_t left = gather(c, &g, rest);
		CU_ASSERT_EQUAL(left, n - k);
		CU_ASSERT_EQUAL(memcmp(whole + k, rest, left), 0);
		/* and once more in the middle of the rest */
		g.sent = (ssize_t)(left / 2);
		CU_ASSERT_EQUAL(write_book(c, &g), left > 0 ? SENT_BLOCKED : SENT);
		size_t last = gather(c, &g, rest);
		CU_ASSERT_EQUAL(last, left - left / 2);
		CU_ASSERT_EQUAL(memcmp(whole + n - last, rest, last), 0);
		conn_rig_end();
	}
	CU_ASSERT(n > sizeof(big));
}

/* Those who wait for a response learn how much of its body was sent. */
static void test_torn(void)
{
	static char whole[8000];
	struct run g;
	struct conn *c = four();
	size_t n = gather(c, &g, whole);
	const char *second = memmem(whole, n, "\r\n\r\nabcd", 8);

	CU_ASSERT_PTR_NOT_NULL_FATAL(second);
	g.sent = second + 4 + 100 - whole; /* 100 bytes of the second body */
	CU_ASSERT_EQUAL(write_book(c, &g), SENT_BLOCKED);
	CU_ASSERT_STRING_EQUAL(ends, "w");
	conn_rig_end();
	CU_ASSERT_STRING_EQUAL(ends, "wttt");
	CU_ASSERT_EQUAL(sent_bytes, 5 + 100);
	CU_ASSERT_EQUAL(IO->count[SERVER_UNDELIVERED], 3);
}

/* A response after which the connection closes is the last one of its run. */
static void test_close(void)
{
	static char whole[8000];
	struct run g;
	struct conn *c = four();

	c->first->next->pub.res.close = true;
	gather(c, &g, whole);
	CU_ASSERT_EQUAL(g.n_pieces, 2);
	CU_ASSERT_TRUE(g.close);
	CU_ASSERT_FALSE(g.client_done); /* the client may have sent more */
	c->first->next->pub.res.close = false;
	c->first->next->keep_alive = false;
	gather(c, &g, whole);
	CU_ASSERT_EQUAL(g.n_pieces, 2);
	CU_ASSERT_TRUE(g.close && g.client_done);
	c->first->next->refusal = true;
	gather(c, &g, whole);
	CU_ASSERT_TRUE(g.close && !g.client_done);
	c->first->next->refusal = false;
	conn_rig_receive(c, "G");
	gather(c, &g, whole);
	CU_ASSERT_TRUE(g.close && !g.client_done);
	conn_rig_end();
}

/* A response that has not returned, or that is streamed, ends the run before it. */
static void test_order(void)
{
	static char whole[8000];
	struct run g;
	struct conn *c = four();

	c->first->next->next->answered = false;
	gather(c, &g, whole);
	CU_ASSERT_EQUAL(g.n_pieces, 2);
	c->first->next->streams = true;
	gather(c, &g, whole);
	CU_ASSERT_EQUAL(g.n_pieces, 1);
	c->first->answered = false;
	gather(c, &g, whole);
	CU_ASSERT_EQUAL(g.n_pieces, 0);
	CU_ASSERT_EQUAL(g.bytes, 0);
	c->first->next->streams = false;
	conn_rig_end();
}

static void test_failures(void)
{
	static char whole[8000];
	struct run g;
	struct conn *c = four();

	gather(c, &g, whole);
	g.sent = -EAGAIN;
	CU_ASSERT_EQUAL(write_book(c, &g), SENT_BLOCKED);
	g.sent = -EPIPE;
	CU_ASSERT_EQUAL(write_book(c, &g), SENT_BROKEN);
	CU_ASSERT_EQUAL(c->in_flight, 4);
	CU_ASSERT_EQUAL(IO->count[SERVER_BYTES_OUT], 0);
	conn_rig_end();
}

/* ---- unsent bytes ---- */

/* The limit in KiB that a send of `bytes` sets if `n` connections may have unsent bytes. */
static int unsent_kib(struct conn *c, int n, size_t bytes, bool file)
{
	struct iovec iov = {.iov_base = big, .iov_len = 1};
	struct run g = {.iov = &iov, .n_iov = 1, .bytes = bytes, .file = file};

	IO->memory.n_swallowed = n;
	write_send(c, &g);
	IO->memory.n_swallowed = 0;
	return c->socket.unsent_kib;
}

static void test_unsent(void)
{
	static const int n[] = {63, 64, 256, 257, 512, 4096, 5000, 100000};
	static const int kib[] = {0, 64, 64, 63, 32, 4, 4, 4};

	conn_rig_begin();
	for (int i = 0; i < 8; i++)
		CU_ASSERT_EQUAL(unsent_kib(conn_rig_conn(), n[i], 5000, false), kib[i]);
	/* A small response needs no limit, but a file does, of which no bytes are in the run. */
	CU_ASSERT_EQUAL(unsent_kib(conn_rig_conn(), 64, 4096, false), 0);
	CU_ASSERT_EQUAL(unsent_kib(conn_rig_conn(), 64, 4097, false), 64);
	CU_ASSERT_EQUAL(unsent_kib(conn_rig_conn(), 64, 100, true), 64);
	conn_rig_end();
}

/* The limit is not changed for little, and never raised. */
static void test_unsent_again(void)
{
	struct conn *c;

	conn_rig_begin();
	c = conn_rig_conn();
	CU_ASSERT_EQUAL(unsent_kib(c, 256, 5000, false), 64);
	CU_ASSERT_EQUAL(unsent_kib(c, 512, 5000, false), 64); /* half of the limit: not set */
	CU_ASSERT_EQUAL(unsent_kib(c, 528, 5000, false), 31);
	CU_ASSERT_EQUAL(unsent_kib(c, 64, 5000, false), 31);
	conn_rig_end();
}

/* A connection whose socket took more than 16 KiB at once may have unsent bytes, until a later
 * response was small. */
static void test_swallowed(void)
{
	struct run g = {.bytes = 20000};
	struct conn *c, *other;

	conn_rig_begin();
	c = conn_rig_conn();
	other = conn_rig_conn();
	g.sent = 16384;
	CU_ASSERT_EQUAL(write_book(c, &g), SENT);
	CU_ASSERT_EQUAL(IO->memory.n_swallowed, 0);
	g.sent = 16385;
	for (int i = 0; i < 2; i++)
		CU_ASSERT_EQUAL(write_book(c, &g), SENT);
	CU_ASSERT_EQUAL(IO->memory.n_swallowed, 1);
	CU_ASSERT_EQUAL(write_book(other, &g), SENT);
	CU_ASSERT_EQUAL(IO->memory.n_swallowed, 2);
	g.sent = 100;
	CU_ASSERT_EQUAL(write_book(c, &g), SENT);
	CU_ASSERT_EQUAL(IO->memory.n_swallowed, 1);
	conn_rig_end();
	CU_ASSERT_EQUAL(IO->memory.n_swallowed, 0); /* a closed connection does not count */
}

CUNIT_MAIN("write", {"text", test_text}, {"every stop", test_every_stop}, {"torn", test_torn},
    {"close", test_close}, {"order", test_order}, {"failures", test_failures},
    {"unsent", test_unsent}, {"unsent, again", test_unsent_again}, {"swallowed", test_swallowed})
