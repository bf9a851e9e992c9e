/* SPDX-License-Identifier: MIT */
/*
 * The two rings of a transfer and their states, without sockets: bytes go in and come out in order,
 * a full ring is reported, each way to end is final, and all memory returns to the budget. Waking
 * and signals need a graph: see tests/scenario.
 */
#include "http/request/transfer.h"

#include <stdlib.h>
#include <string.h>

#include <weir/http.h>

#include "cunit_main.h"
#include "http/request/pool.h"

#define BUDGET 1000

struct rig {
	struct pool pool;
	_Atomic int64_t budget;
	struct http_req *r;
	struct transfer *t;
};

static void rig_init(struct rig *g)
{
	memset(g, 0, sizeof(*g));
	atomic_init(&g->budget, BUDGET);
	pool_init(&g->pool, &g->budget);
	g->r = pool_req(&g->pool);
	weir_event_init(&g->r->pub.ev, &weir_http_request_type, 0);
	g->t = g->r->transfer = transfer_new(g->r, &g->pool);
	CU_ASSERT_PTR_NOT_NULL_FATAL(g->t);
}

static void rig_fini(struct rig *g)
{
	pool_req_drop(&g->pool, g->r);
	CU_ASSERT_EQUAL(atomic_load(&g->budget), BUDGET);
	pool_fini(&g->pool);
}

static struct weir_slice text(const char *p)
{
	return (struct weir_slice){p, strlen(p)};
}

static void expect_next(struct rig *g, int want, const char *bytes)
{
	struct weir_slice part;

	g->t->starved = false; /* no event loop exists to signal */
	CU_ASSERT_EQUAL(weir_http_body_next(&g->r->pub, &part), want);
	CU_ASSERT(part.n == strlen(bytes) && (part.n == 0 || memcmp(part.p, bytes, part.n) == 0));
}

static void test_body(void)
{
	struct rig g;
	char *room;

	rig_init(&g);
	CU_ASSERT_EQUAL(transfer_open_body(g.t, 10), 0);
	CU_ASSERT(weir_http_body_streamed(&g.r->pub));
	expect_next(&g, WEIR_HTTP_BODY_WAIT, "");
	CU_ASSERT(g.t->asked);
	CU_ASSERT_EQUAL(transfer_copy(g.t, text("abcdefg")), 7);
	expect_next(&g, WEIR_HTTP_BODY_PART, "abcdefg");
	/* Lent bytes are not free space. */
	CU_ASSERT_EQUAL(transfer_copy(g.t, text("hijklmn")), 3);
	CU_ASSERT_EQUAL(transfer_room(g.t, &room), 0);
	CU_ASSERT(g.t->starved);
	expect_next(&g, WEIR_HTTP_BODY_PART, "hij");
	/* Across the end of the ring. */
	CU_ASSERT_EQUAL(transfer_copy(g.t, text("klmnopq")), 7);
	expect_next(&g, WEIR_HTTP_BODY_PART, "klmnopq");
	expect_next(&g, WEIR_HTTP_BODY_WAIT, "");
	CU_ASSERT_EQUAL(transfer_copy(g.t, text("rs")), 2);
	transfer_end(g.t);
	expect_next(&g, WEIR_HTTP_BODY_PART, "rs");
	expect_next(&g, WEIR_HTTP_BODY_END, "");
	transfer_tear(g.t, WEIR_EGONE, 400, NULL); /* too late */
	expect_next(&g, WEIR_HTTP_BODY_END, "");
	const char *limit = "not asked";
	CU_ASSERT_EQUAL(transfer_torn_status(g.t, &limit), 0);
	CU_ASSERT_PTR_NULL(limit);
	rig_fini(&g);
}

/* A caller that found too little free space gets a signal, even if it checks again when there is
 * some and does not use it. */
static void test_starved(void)
{
	struct weir_slice part;
	struct rig g;
	char *room;

	rig_init(&g);
	CU_ASSERT_EQUAL(transfer_open_body(g.t, 10), 0);
	CU_ASSERT_EQUAL(transfer_copy(g.t, text("abc")), 3);
	expect_next(&g, WEIR_HTTP_BODY_PART, "abc");
	CU_ASSERT_EQUAL(transfer_copy(g.t, text("defghijkl")), 7);
	CU_ASSERT(g.t->starved);
	CU_ASSERT_EQUAL(weir_http_body_next(&g.r->pub, &part), WEIR_HTTP_BODY_PART);
	CU_ASSERT_EQUAL(transfer_room(g.t, &room), 3);
	CU_ASSERT(g.t->starved); /* the next call frees seven bytes and signals */
	expect_next(&g, WEIR_HTTP_BODY_WAIT, "");
	rig_fini(&g);
}

static void test_torn(void)
{
	struct rig g;

	rig_init(&g);
	CU_ASSERT_EQUAL(transfer_open_body(g.t, 10), 0);
	CU_ASSERT_EQUAL(transfer_copy(g.t, text("abc")), 3);
	transfer_tear(g.t, WEIR_EINVAL, 413, "max_body");
	transfer_gone(g.t, WEIR_EGONE);
	transfer_end(g.t);
	CU_ASSERT_EQUAL(transfer_copy(g.t, text("d")), 0);
	expect_next(&g, WEIR_EINVAL, ""); /* the first bytes of a malformed body are useless */
	expect_next(&g, WEIR_EINVAL, "");
	const char *limit;
	CU_ASSERT_EQUAL(transfer_torn_status(g.t, &limit), 413);
	CU_ASSERT_STRING_EQUAL(limit, "max_body");
	rig_fini(&g);
	rig_init(&g);
	CU_ASSERT_EQUAL(transfer_open_body(g.t, 10), 0);
	CU_ASSERT_EQUAL(transfer_copy(g.t, text("abc")), 3);
	transfer_tear(g.t, WEIR_EGONE, 400, NULL);
	/* the first bytes of a client that left are delivered */
	expect_next(&g, WEIR_HTTP_BODY_PART, "abc");
	expect_next(&g, WEIR_EGONE, "");
	expect_next(&g, WEIR_EGONE, "");
	rig_fini(&g);
}

static void test_whole_body(void)
{
	struct rig g;

	rig_init(&g);
	g.r->pub.body = text("whole");
	CU_ASSERT_FALSE(weir_http_body_streamed(&g.r->pub));
	expect_next(&g, WEIR_HTTP_BODY_PART, "whole");
	expect_next(&g, WEIR_HTTP_BODY_END, "");
	rig_fini(&g);
}

static void test_budget(void)
{
	struct rig g;

	rig_init(&g);
	CU_ASSERT_EQUAL(transfer_open_body(g.t, BUDGET + 1), WEIR_EPRESSURE);
	CU_ASSERT_EQUAL(atomic_load(&g.budget), BUDGET);
	CU_ASSERT_EQUAL(transfer_open_body(g.t, BUDGET - 10), 0);
	CU_ASSERT_EQUAL(transfer_ring(g.t, &g.t->out, 11), WEIR_EPRESSURE);
	CU_ASSERT_EQUAL(transfer_ring(g.t, &g.t->out, 10), 0);
	CU_ASSERT_EQUAL(atomic_load(&g.budget), 0);
	rig_fini(&g);
}

/* The state after weir_http_stream_begin, which needs a connection. */
static void begin(struct rig *g, size_t size)
{
	CU_ASSERT_EQUAL(transfer_ring(g->t, &g->t->out, size), 0);
	g->t->out_state = TRANSFER_BEGUN;
	g->t->chunked = g->r->pub.res.streamed = true;
}

static void test_answer(void)
{
	struct weir_http_request *req;
	struct weir_slice seg[2];
	struct rig g;

	rig_init(&g);
	begin(&g, 8);
	req = &g.r->pub;
	CU_ASSERT_EQUAL(weir_http_stream_write(req, text("abcdefghij")), 8);
	CU_ASSERT_EQUAL(weir_http_stream_write(req, text("ij")), 0);
	CU_ASSERT_FALSE(transfer_due_locked(g.t, WEIR_HTTP_ROOM));
	CU_ASSERT_EQUAL(transfer_look(g.t, seg), TRANSFER_BEGUN);
	CU_ASSERT(seg[0].n == 8 && seg[1].n == 0);
	transfer_sent(g.t, 3);
	CU_ASSERT_FALSE(transfer_due_locked(g.t, WEIR_HTTP_ROOM)); /* not for so little space */
	transfer_sent(g.t, 1);
	CU_ASSERT(transfer_due_locked(g.t, WEIR_HTTP_ROOM));
	CU_ASSERT_EQUAL(weir_http_stream_write(req, text("ijk")), 3);
	transfer_look(g.t, seg);
	CU_ASSERT(seg[0].n == 4 && memcmp(seg[0].p, "efgh", 4) == 0);
	CU_ASSERT(seg[1].n == 3 && memcmp(seg[1].p, "ijk", 3) == 0);
	CU_ASSERT_FALSE(g.t->idle);
	transfer_sent(g.t, 7);
	CU_ASSERT_EQUAL(weir_http_stream_bytes(req), 11);
	CU_ASSERT(transfer_finished(g.t, WEIR_OK));
	CU_ASSERT_EQUAL(transfer_look(g.t, seg), TRANSFER_DONE);
	CU_ASSERT(g.t->idle);
	rig_fini(&g);
}

static void test_answer_ends(void)
{
	struct weir_http_request *req;
	struct weir_slice seg[2];
	struct rig g;

	rig_init(&g);
	CU_ASSERT_FALSE(transfer_finished(g.t, WEIR_OK)); /* no response was begun */
	CU_ASSERT_EQUAL(weir_http_stream_write(&g.r->pub, text("a")), WEIR_EINVAL);
	CU_ASSERT_EQUAL(weir_http_stream_begin(&g.r->pub, 200, NULL), WEIR_EINVAL); /* no server */
	begin(&g, 8);
	req = &g.r->pub;
	CU_ASSERT_EQUAL(weir_http_stream_trailer(req, "X-Sum", "1"), 0);
	CU_ASSERT_EQUAL(weir_http_stream_trailer(req, "X-Sum", "1\n"), WEIR_EINVAL);
	CU_ASSERT_EQUAL(weir_http_stream_trailer(req, "Content-Length", "1"), WEIR_EINVAL);
	CU_ASSERT(g.t->n_trailers == 10 && memcmp(g.t->trailers, "X-Sum: 1\r\n", 10) == 0);
	transfer_gone(g.t, WEIR_EGONE);
	CU_ASSERT(transfer_due_locked(g.t, WEIR_HTTP_ROOM));
	CU_ASSERT_EQUAL(weir_http_stream_write(req, text("a")), WEIR_EGONE);
	CU_ASSERT(transfer_finished(g.t, WEIR_EFAILED));
	CU_ASSERT_EQUAL(transfer_look(g.t, seg), TRANSFER_ABORTED);
	rig_fini(&g);
}

static void test_frozen(void)
{
	struct weir_http_request *req;
	struct rig g;

	rig_init(&g);
	req = &g.r->pub;
	CU_ASSERT_EQUAL(weir_http_respond(req, 200, "a/b", text(""), NULL, NULL), 0);
	begin(&g, 8);
	uint32_t n = req->n_fields;
	CU_ASSERT_EQUAL(weir_http_add_field(req, "X", "y"), WEIR_EINVAL);
	char *mem = malloc(1);
	CU_ASSERT_EQUAL(weir_http_respond(req, 404, "a/b", (struct weir_slice){mem, 1}, free, mem),
	    WEIR_EINVAL);
	CU_ASSERT_EQUAL(weir_http_respond_status(req, 404), WEIR_EINVAL);
	weir_http_response_reset(req);
	CU_ASSERT(req->res.status == 200 && req->n_fields == n);
	rig_fini(&g);
}

CUNIT_MAIN("transfer", {"a body", test_body}, {"room that was seen", test_starved},
    {"a torn body", test_torn}, {"a whole body", test_whole_body}, {"the budget", test_budget},
    {"an answer", test_answer}, {"ends of an answer", test_answer_ends},
    {"nothing changes behind the head", test_frozen})
