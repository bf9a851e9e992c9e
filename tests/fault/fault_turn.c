/* SPDX-License-Identifier: MIT */
/*
 * The n-th allocation of the I/O thread fails, n = 1, 2, ..., or all from the n-th on, while many
 * connections are ready in one iteration of its event loop (read_turn.c, write_turn.c): three
 * batches, a slab of read buffers that is mapped between them, and several clients of every kind.
 * All of them send again while the release of a response of the second batch runs. Each time the
 * server is new, so nothing that an earlier iteration has left helps this one.
 *
 * Whatever fails, each client gets its response, a response that reports the failure, or the end of
 * its connection. Every offered request has a response that arrived, or is counted as undelivered.
 * No descriptor, request or buffer is left afterwards, and as many new clients are served normally.
 *
 * The stage is inline: a request that waits at a gate blocks the I/O thread until all have sent.
 */
#include "fixture/graph/descriptors.h"
#include "fixture/http/server.h"

#include "fault/inject.h"
#include "http/request/slab.h"

/* Three batches. */
enum { CLIENTS = 72, FIELDS = 20, BODY = 20000, BIG = 5000000 };
/* Clients that have sent half a request before, each with a buffer: a batch then needs more buffers
 * than the slab has left. */
enum { PARKED = SLAB_PIECES - 10 };
#define HALF "GET /half HTTP/1.1\r\n"

enum kind { COPY, WIDE, LONG, SIZED, CHUNKED, THREE, KINDS };

/* This client requests more than Linux buffers for a client that reads nothing: 4 MB (tcp_wmem) and
 * the client's own buffer. */
#define BIG_ONE 40
/* The release of this client's response, in the second batch, makes all others send again: they
 * become readable while responses are written to them. */
#define AGAIN 42

static struct server server;
static int parked[PARKED], clients[CLIENTS];
/* The request of AGAIN is in the stage; the release of its response has run. */
static atomic_bool asked_again, said_again;
static char big[BIG];
static char long_text[60000], sized_text[60000], chunked_text[60000];
/* The allocation that fails, counted from the start of the iteration; -1: none. */
static atomic_long fail_at;

/* ---- the stage: does not allocate ---- */

static void answer_wide(struct weir_http_request *req)
{
	weir_http_respond_copy(req, 200, "text/plain", req->target);
	for (int i = 0; i < FIELDS; i++)
		weir_http_add_field(req, "X-Field", "a value of some length");
}

static void again(void *arg)
{
	(void)arg;
	for (int i = 0; i < CLIENTS; i++)
		if (i != AGAIN)
			/* the connection may have ended */
			(void)client_say(clients[i], GET("/again"));
	atomic_store(&said_again, true);
}

/* Responds with the length of the body. */
static void answer_length(struct weir_http_request *req)
{
	char text[32];
	int n = snprintf(text, sizeof(text), "%zu", req->body.n);

	weir_http_respond_copy(req, 200, "text/plain", (struct weir_slice){text, (size_t)n});
}

static void handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	for (int i = 0; i < n; i++) {
		struct weir_http_request *req = weir_http_request(ev[i]);
		if (target_starts(req, "/wait")) {
			gate_pass("spoken", 6);
			fault_mine = true;
			weir_http_respond_status(req, 200);
			atomic_store(&fault_alloc_in, atomic_load(&fail_at));
		} else if (target_starts(req, "/wide")) {
			answer_wide(req);
		} else if (target_starts(req, "/release")) {
			atomic_store(&asked_again, true);
			weir_http_respond(req, 200, "text/plain",
			    (struct weir_slice){"/release", 8}, again, NULL);
		} else if (target_starts(req, "/big")) {
			weir_http_respond(
			    req, 200, "text/plain", (struct weir_slice){big, BIG}, NULL, NULL);
		} else if (target_starts(req, "/length")) {
			answer_length(req);
		} else {
			weir_http_respond_copy(req, 200, "text/plain", req->target);
		}
		weir_event_finish(&ev[i], WEIR_OK);
	}
}

static const struct weir_stage_ops ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.turn",
    .summary = "answers",
    .accepts = &weir_http_request_type,
    .handle = handle};

/* ---- what clients send and receive ---- */

static void write_texts(void)
{
	char *at = long_text;

	memset(big, 'b', BIG);
	at += sprintf(at, "GET /long HTTP/1.1\r\nHost: t\r\n");
	for (int i = 0; i < 60; i++)
		at += sprintf(
		    at, "X-Field: 0123456789 0123456789 0123456789 0123456789 0123456789\r\n");
	sprintf(at, "\r\n");
	at = sized_text;
	at += sprintf(at, "POST /length HTTP/1.1\r\nHost: t\r\nContent-Length: %d\r\n\r\n", BODY);
	memset(at, 's', BODY);
	at = chunked_text;
	at += sprintf(at, "POST /length HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n");
	for (int i = 0; i < BODY / 10; i++)
		at += sprintf(at, "a\r\n0123456789\r\n");
	sprintf(at, "0\r\n\r\n");
}

static enum kind kind_of(int i)
{
	return (enum kind)(i % KINDS);
}

static const char *text_of(int i)
{
	static const char *const texts[KINDS] = {[COPY] = GET("/copy"),
	    [WIDE] = GET("/wide"),
	    [LONG] = long_text,
	    [SIZED] = sized_text,
	    [CHUNKED] = chunked_text,
	    [THREE] = GET("/a") GET("/wide") GET("/c")};

	if (i == AGAIN)
		return GET("/release");
	return i == BIG_ONE ? GET("/big") GET("/c") : texts[kind_of(i)];
}

/* The expected bodies of client `i` in order; NULL after the last. */
static const char *body_of(int i, int k)
{
	static const char *const release[] = {"/release", NULL};
	static const char *const one[KINDS] = {[COPY] = "/copy",
	    [WIDE] = "/wide",
	    [LONG] = "/long",
	    [SIZED] = "20000",
	    [CHUNKED] = "20000"};
	static const char *const three[] = {"/a", "/wide", "/c", NULL};
	static const char *const two[] = {big, "/c", NULL};

	if (i == AGAIN)
		return release[k];
	if (i == BIG_ONE)
		return two[k];
	if (kind_of(i) == THREE)
		return three[k];
	return k == 0 ? one[kind_of(i)] : NULL;
}

/* The result of one iteration, as received by its clients. */
struct heard {
	int good;    /* responses with 200 */
	int failed;  /* 500: the stage's copy failed */
	int refused; /* 503 */
	int curt;    /* responses without memory for the fields */
	int ends;    /* connections that ended with fewer responses than requests */
};

/* Whether the body is complete and right. */
static bool is_right(const struct answer *a, const char *body)
{
	size_t n = body == big ? BIG : strlen(body);

	return a->n == n && memcmp(a->body, body, n) == 0;
}

/* Count a response other than 200. */
static void note_failed(const struct answer *a, struct heard *h)
{
	CU_ASSERT(a->status == 500 || a->status == 503);
	h->failed += a->status == 500;
	h->refused += a->status == 503;
	h->curt += a->status == 503 && !field_in(a->head, "Date");
}

static void hear(int fd, int i, struct heard *h)
{
	struct answer a = {0};
	bool ended = false, last = false;

	for (int k = 0; !ended && !last; k++) {
		const char *body = body_of(i, k);
		last = !body;
		if (last && (i == AGAIN || !atomic_load(&said_again)))
			break;
		if (last)
			body = "/again";
		if (!answer_read(fd, &a)) {
			/* No part of a response, except where the socket took one and there is no
			 * memory for the rest of a head. */
			CU_ASSERT(a.head[0] == '\0' || i == BIG_ONE);
			h->ends++;
			break;
		}
		if (a.status == 200) {
			CU_ASSERT(is_right(&a, body));
			h->good++;
		} else {
			note_failed(&a, h);
		}
		ended = a.close;
		CU_ASSERT(!ended || a.status == 503);
	}
	if (ended)
		CU_ASSERT(client_at_end(fd));
	answer_free(&a);
}

/* ---- iterations ---- */

static void park(void)
{
	const int64_t before = server_metric(&server, "http_received_bytes_total");

	for (int i = 0; i < PARKED; i++) {
		parked[i] = client_open(server.port);
		CU_ASSERT(client_say(parked[i], HALF));
	}
	AWAIT_METRIC(
	    &server, "http_received_bytes_total", ==, before + PARKED * (int64_t)strlen(HALF));
}

/* The parked connections took no part in the iteration. */
static void unpark(void)
{
	struct answer a = {0};

	for (int i = 0; i < PARKED; i++) {
		CU_ASSERT(client_say(parked[i], "Host: t\r\n\r\n"));
		CU_ASSERT(answer_read(parked[i], &a) && answer_is(&a, 200, "/half"));
		close(parked[i]);
	}
	answer_free(&a);
}

/* All clients send, then the I/O thread continues and allocation `n` fails; -1: none. */
static struct heard turn_of(long n)
{
	const int small = 65536, before = sockets_open();
	int first = client_open(server.port), *fd = clients;
	struct heard h = {0};
	struct answer a = {0};

	gates_reset();
	park();
	atomic_store(&fail_at, n);
	atomic_store(&asked_again, false);
	atomic_store(&said_again, false);
	for (int i = 0; i < CLIENTS; i++)
		fd[i] = client_open(server.port);
	setsockopt(fd[BIG_ONE], SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	AWAIT_METRIC(&server, "http_connections", ==, PARKED + CLIENTS + 1);
	CU_ASSERT(client_say(first, GET("/wait")));
	gate_await(1);
	for (int i = 0; i < CLIENTS; i++)
		CU_ASSERT(client_say(fd[i], text_of(i)));
	gate_open("spoken");
	CU_ASSERT(answer_read(first, &a) && a.status == 200);
	hear(fd[AGAIN], AGAIN, &h);
	if (atomic_load(&asked_again))
		FIXTURE_AWAIT(atomic_load(&said_again));
	for (int i = 0; i < CLIENTS; i++)
		if (i != AGAIN)
			hear(fd[i], i, &h);
	atomic_store(&fault_alloc_in, -1);
	unpark();
	for (int i = 0; i < CLIENTS; i++)
		close(fd[i]);
	close(first);
	answer_free(&a);
	AWAIT_METRIC(&server, "http_connections", ==, 0);
	AWAIT_METRIC(&server, "http_memory_bytes", ==, 0);
	FIXTURE_AWAIT(sockets_open() == before);
	return h;
}

/* The counters agree with what was received in two iterations. */
static void check_sums(const struct heard *a, const struct heard *b)
{
	/* in each iteration also the request that blocks the thread, and the parked ones */
	const int good = a->good + b->good + 2 * (1 + PARKED);
	const int long_refusals = a->refused - a->curt;
	const int64_t undelivered = server_metric(&server, "http_undelivered_total");
	const int64_t refused = server_metric(&server, "http_refused_memory_total");

	CU_ASSERT_EQUAL(server_metric(&server, "http_responses_2xx_total"), good);
	CU_ASSERT_EQUAL(
	    server_metric(&server, "http_responses_5xx_total"), a->failed + long_refusals);
	CU_ASSERT_EQUAL(server_metric(&server, "http_responses_4xx_total"), 0);
	CU_ASSERT_EQUAL(server_offered(&server), (uint64_t)(good + a->failed + undelivered));
	/* A client without a response has an end that is counted. */
	CU_ASSERT(refused >= a->refused && refused <= a->refused + a->ends);
	CU_ASSERT(a->ends == 0 || undelivered + refused - a->refused > 0);
}

static struct server turn_new(void)
{
	static bool registered;

	if (!registered)
		fixture_register(&ops);
	registered = true;
	struct server s = server_new("t.turn");
	fixture_set(s.app, "threads", "inline");
	fixture_set(s.web, "with.max_per_address", "0");
	/* No client counts as slow, however slow the host is. */
	fixture_set(s.web, "with.min_send_rate", "0");
	fixture_set(s.web, "with.write_timeout", "1h");
	fixture_set(s.web, "with.header_timeout", "1h");
	weir_log_set_fd(-1);
	return s;
}

/* One server, one failure. Returns whether there was an allocation to fail. */
static bool fails_once(long n, int *touched)
{
	const int before = sockets_open();
	struct heard whole, faulty;
	bool fired;

	server = turn_new();
	server_start(&server);
	atomic_store(&fault_fired, 0);
	faulty = turn_of(n);
	fired = atomic_load(&fault_fired) > 0;
	whole = turn_of(-1);
	CU_ASSERT_EQUAL(whole.failed + whole.refused + whole.ends, 0);
	*touched += faulty.good < whole.good;
	CU_ASSERT(fired || faulty.good == whole.good);
	check_sums(&faulty, &whole);
	server_stop(&server);
	FIXTURE_AWAIT(sockets_open() == before);
	return fired;
}

static void sweep(long step)
{
	long n = 0;
	int touched = 0;

	atomic_store(&fault_of_mine, true);
	while (fails_once(n, &touched))
		n += step;
	printf("(to allocation %ld, %d turns were other for it) ", n, touched);
	CU_ASSERT(n > CLIENTS);
	CU_ASSERT(touched > 0);
	atomic_store(&fault_of_mine, false);
}

/* Under TSan an iteration takes ten times as long, so only every fifth allocation fails there. A
 * prime step, as below. */
#ifdef __SANITIZE_THREAD__
#define STEP 5
#else
#define STEP 1
#endif

static void test_one(void)
{
	write_texts();
	sweep(STEP);
}

/* No memory from the n-th allocation on, until all responses have arrived. The step is prime, so
 * all kinds of allocations are among those that fail first. */
static void test_from_then_on(void)
{
	atomic_store(&fault_goes_on, true);
	sweep(7);
	atomic_store(&fault_goes_on, false);
}

CUNIT_MAIN("fault turn", {"the n-th allocation in a turn", test_one},
    {"all allocations from the n-th on", test_from_then_on})
