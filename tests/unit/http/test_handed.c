/* SPDX-License-Identifier: MIT */
/* The rest of a response that is handed over: wherever it was, the new connection continues there;
 * and how much may be copied for that. */
#include "http/conn_rig.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "http/conn/write.h"
#include "http/server/handed.h"
#include "http/server/handed_file.h"

#define IO (&conn_rig.io)
#define N  2000

static struct http_server heir, other;
static char bytes[N];

static void begin(void)
{
	conn_rig_begin();
	memset(&heir, 0, sizeof(heir));
	memset(&other, 0, sizeof(other));
	heir.memory_limit = INT64_MAX;
	IO->net.handover.to = &heir.net;
	for (size_t i = 0; i < N; i++)
		bytes[i] = (char)('a' + i % 26);
	strcpy(IO->stamp.text, "Date: d\r\n");
	IO->stamp.n = strlen(IO->stamp.text);
	IO->stamp.until_ns = INT64_MAX;
}

static void end(void)
{
	handed_files_forget(&IO->handed_files);
	conn_rig_end();
	CU_ASSERT_EQUAL(atomic_load(&heir.copied_bytes), 0);
}

/* A connection whose only response cannot be sent at once. */
static struct conn *sender(void)
{
	struct conn *c = conn_rig_conn();
	struct http_req *r = conn_rig_request(c);

	r->pub.method = WEIR_HTTP_GET;
	r->pub.minor = 1;
	r->keep_alive = r->answered = true;
	c->socket.blocked = true;
	CU_ASSERT_EQUAL_FATAL(
	    weir_http_respond(&r->pub, 200, "a/b", (struct weir_slice){bytes, N}, NULL, NULL), 0);
	return c;
}

static size_t gather(struct conn *c, struct run *g, char *text)
{
	size_t n = 0;

	*g = write_alone(IO);
	write_gather(c, g);
	for (int i = 0; i < g->n_iov; i++) {
		memcpy(text + n, g->iov[i].iov_base, g->iov[i].iov_len);
		n += g->iov[i].iov_len;
	}
	return n;
}

/* A new connection that continues with `h`. */
static struct conn *take_over(struct handed *h)
{
	struct conn *c = conn_rig_conn();
	struct http_req *r = handed_request(IO);

	CU_ASSERT_PTR_NOT_NULL_FATAL(r);
	handed_begin(c, r, h);
	CU_ASSERT_TRUE(r->answered && c->net.ready && c->part.begun);
	CU_ASSERT_PTR_EQUAL(c->first, r);
	CU_ASSERT_EQUAL(c->in_flight, 1);
	return c;
}

/* ---- where it continues ---- */

static void test_every_place(void)
{
	static char whole[N + 1000], rest[N + 1000];
	size_t n = 1;

	for (size_t k = 0; k < n; k++) {
		struct run g;
		struct handed *h;
		struct conn *c;
		begin();
		c = sender();
		n = gather(c, &g, whole);
		g.sent = (ssize_t)k;
		CU_ASSERT_EQUAL(write_book(c, &g), SENT_BLOCKED);
		h = handed_take(c);
		CU_ASSERT_PTR_NOT_NULL_FATAL(h);
		CU_ASSERT_PTR_NULL(c->first);
		CU_ASSERT_EQUAL(c->in_flight, 0);
		CU_ASSERT_EQUAL(IO->count[SERVER_ANSWERS_2XX], 0); /* the other server counts */
		conn_close(c);
		c = take_over(h);
		CU_ASSERT_EQUAL(gather(c, &g, rest), n - k);
		CU_ASSERT_EQUAL(memcmp(whole + k, rest, n - k), 0);
		CU_ASSERT_FALSE(g.close);
		g.sent = (ssize_t)(n - k);
		CU_ASSERT_EQUAL(write_book(c, &g), SENT);
		CU_ASSERT_EQUAL(IO->count[SERVER_ANSWERS_2XX], 1);
		end();
	}
	CU_ASSERT(n > N);
}

/* A response that was announced as the last one closes the new connection, too. */
static void test_close(void)
{
	static char text[N + 1000];
	struct run g;
	struct conn *c;

	begin();
	c = sender();
	c->first->pub.res.close = true;
	c = take_over(handed_take(c));
	gather(c, &g, text);
	CU_ASSERT_TRUE(g.close);
	end();
}

/* HEAD has no body to hand over, only its length in the head. */
static void test_head(void)
{
	static char text[N + 1000];
	struct run g;
	struct conn *c;
	size_t n;

	begin();
	c = sender();
	c->first->pub.method = WEIR_HTTP_HEAD;
	n = gather(c, &g, text);
	c = take_over(handed_take(c));
	CU_ASSERT_EQUAL(gather(c, &g, text), n);
	CU_ASSERT_PTR_NOT_NULL(memmem(text, n, "Content-Length: 2000\r\n", 22));
	end();
}

/* ---- how much may be copied ---- */

/* Whether a body of N bytes is copied. If not, the connection still has all of it. */
static bool copies(void)
{
	static char whole[N + 1000], rest[N + 1000];
	struct run g;
	struct conn *c = sender();
	size_t n = gather(c, &g, whole);
	int64_t before = atomic_load(&heir.copied_bytes);
	struct handed *h = handed_take(c);

	CU_ASSERT_EQUAL(atomic_load(&heir.copied_bytes), before + (h ? N : 0));
	CU_ASSERT_EQUAL(c->in_flight, h ? 0 : 1);
	if (!h) {
		CU_ASSERT_EQUAL(gather(c, &g, rest), n);
		CU_ASSERT_EQUAL(memcmp(whole, rest, n), 0);
	}
	handed_free(h);
	CU_ASSERT_EQUAL(atomic_load(&heir.copied_bytes), before);
	return h;
}

/* A copy is made if the new server's memory in use, with all copies made for it, stays within half
 * of its limit. */
static void test_limit(void)
{
	begin();
	heir.memory_limit = 2 * N;
	CU_ASSERT_TRUE(copies());
	heir.memory_limit = 2 * N - 1;
	CU_ASSERT_FALSE(copies());
	heir.memory_limit = 2 * N + 2;
	heir.memory_used = 1;
	CU_ASSERT_TRUE(copies());
	heir.memory_used = 2;
	CU_ASSERT_FALSE(copies());
	heir.memory_used = 0;
	heir.copied_bytes = 1;
	CU_ASSERT_TRUE(copies());
	heir.copied_bytes = 2;
	CU_ASSERT_FALSE(copies());
	heir.copied_bytes = 0;
	end();
}

/* The same limit for the memory of this server, which makes the copy. */
static void test_own_limit(void)
{
	static char text[N + 1000];
	struct handed *h;
	struct conn *c;
	struct run g;

	begin();
	c = sender();
	gather(c, &g, text);
	g.sent = 0;
	CU_ASSERT_EQUAL(write_book(c, &g), SENT_BLOCKED); /* its head is held, too */
	IO->pool.limit_bytes = 2 * (IO->pool.held_bytes + N) - 2;
	CU_ASSERT_PTR_NULL(handed_take(c));
	IO->pool.limit_bytes += 2;
	h = handed_take(c);
	CU_ASSERT_PTR_NOT_NULL(h);
	handed_free(h);
	end();
}

/* A body with its own memory changes owner. */
static void test_owned(void)
{
	static char whole[N + 1000], rest[N + 1000];
	char *own = malloc(N);
	struct run g;
	struct conn *c;
	size_t n;

	begin();
	heir.memory_limit = 0;
	memcpy(own, bytes, N);
	c = sender();
	CU_ASSERT_EQUAL(
	    weir_http_respond(&c->first->pub, 200, "a/b", (struct weir_slice){own, N}, free, own),
	    0);
	n = gather(c, &g, whole);
	g.sent = (ssize_t)n - 100;
	CU_ASSERT_EQUAL(write_book(c, &g), SENT_BLOCKED);
	struct handed *h = handed_take(c);
	CU_ASSERT_PTR_NOT_NULL_FATAL(h);
	CU_ASSERT_EQUAL(atomic_load(&heir.copied_bytes), 0);
	c = take_over(h);
	CU_ASSERT_EQUAL(gather(c, &g, rest), 100);
	CU_ASSERT_EQUAL(memcmp(rest, bytes + N - 100, 100), 0);
	end();
}

/* A copy that is passed on counts for the server that has it. */
static void test_passed_on(void)
{
	struct handed *h;

	begin();
	h = handed_take(sender());
	CU_ASSERT_PTR_NOT_NULL_FATAL(h);
	CU_ASSERT_EQUAL(atomic_load(&heir.copied_bytes), N);
	handed_on(h, &other);
	CU_ASSERT_EQUAL(atomic_load(&heir.copied_bytes), 0);
	CU_ASSERT_EQUAL(atomic_load(&other.copied_bytes), N);
	handed_on(NULL, &heir);
	handed_free(h);
	handed_free(NULL);
	CU_ASSERT_EQUAL(atomic_load(&other.copied_bytes), 0);
	end();
}

/* ---- files and pieces ---- */

/* The file of a response goes on at its offset; responses with the same file share a
 * descriptor. */
static void test_file(void)
{
	static char text[N + 1000];
	char name[] = "/tmp/weir-handed-XXXXXX";
	int fd = mkstemp(name);
	struct run g;
	struct conn *c[2];

	unlink(name);
	begin();
	for (int i = 0; i < 2; i++) {
		c[i] = sender();
		struct http_req *r = c[i]->first;
		weir_http_respond_status(&r->pub, 200);
		r->pub.res.body = (struct weir_slice){NULL, 0};
		r->pub.res.fd = fd;
		r->pub.res.offset = 30 + i;
		r->pub.res.length = 70;
		c[i] = take_over(handed_take(c[i]));
	}
	for (int i = 0; i < 2; i++) {
		const struct weir_http_response *res = &c[i]->first->pub.res;
		CU_ASSERT_NOT_EQUAL(res->fd, fd);
		CU_ASSERT_EQUAL(res->fd, c[0]->first->pub.res.fd);
		CU_ASSERT_EQUAL(res->offset, 30 + i);
		CU_ASSERT_EQUAL(res->length, 70);
		gather(c[i], &g, text);
		CU_ASSERT_TRUE(g.file);
	}
	end();
	close(fd);
}

/* Pieces are copied, their array and their bytes, if the limit allows it. If not, the connection
 * still has them. */
static void test_pieces(void)
{
	struct weir_http_piece piece[] = {{bytes, 0, 40}, {bytes + 100, 0, 60}};
	const int64_t n = sizeof(piece) + 100;
	struct weir_http_response *res;
	struct handed *h;
	struct conn *c;

	begin();
	c = sender();
	CU_ASSERT_EQUAL_FATAL(
	    weir_http_respond_pieces(&c->first->pub, 200, "a/b", piece, 2, -1, NULL, NULL), 0);
	res = &c->first->pub.res;
	heir.memory_limit = 2 * n - 1;
	CU_ASSERT_PTR_NULL(handed_take(c));
	CU_ASSERT_EQUAL(c->in_flight, 1);
	CU_ASSERT_TRUE(res->n_pieces == 2 && res->piece == piece);
	heir.memory_limit++;
	h = handed_take(c);
	CU_ASSERT_PTR_NOT_NULL_FATAL(h);
	CU_ASSERT_EQUAL(atomic_load(&heir.copied_bytes), n);
	memset(piece, 0, sizeof(piece));
	c = take_over(h);
	res = &c->first->pub.res;
	CU_ASSERT_EQUAL(res->length, 100);
	CU_ASSERT_EQUAL_FATAL(res->n_pieces, 2);
	CU_ASSERT_TRUE(res->piece[0].n == 40 && res->piece[1].n == 60);
	CU_ASSERT_PTR_NOT_EQUAL(res->piece[0].p, bytes);
	CU_ASSERT_EQUAL(memcmp(res->piece[0].p, bytes, 40), 0);
	CU_ASSERT_EQUAL(memcmp(res->piece[1].p, bytes + 100, 60), 0);
	end();
}

CUNIT_MAIN("handed", {"every place", test_every_place}, {"close", test_close}, {"head", test_head},
    {"limit", test_limit}, {"own limit", test_own_limit}, {"owned", test_owned},
    {"passed on", test_passed_on}, {"file", test_file}, {"pieces", test_pieces})
