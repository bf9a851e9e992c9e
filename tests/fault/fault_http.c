/* SPDX-License-Identifier: MIT */
/*
 * The n-th allocation fails, n = 1, 2, ... while a server serves one connection: a head with more
 * fields than fit inline and more bytes than a small buffer, a body with a length and a chunked
 * one, a response with many fields, and one far longer than the socket buffers.
 *
 * Whatever fails, the client gets its responses, a response that reports the failure, or the end of
 * its connection. The next client is served normally. Nothing crashes, hangs or leaks, and the
 * counters balance.
 */
#include "fixture/http/server.h"

#include "fault/inject.h"

enum { BIG = 6000000, REQUESTS = 5 };

static char big[BIG], said[60000], heard[BIG + 65536];
static size_t n_said;

/* Answers without allocating: a failure here is not what is tested. */
static void handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	for (int i = 0; i < n; i++) {
		struct weir_http_request *req = weir_http_request(ev[i]);
		if (target_starts(req, "/refused")) {
			weir_event_finish(&ev[i], WEIR_EDELAY);
			continue;
		}
		if (target_starts(req, "/big")) {
			weir_http_respond(
			    req, 200, "text/plain", (struct weir_slice){big, BIG}, NULL, NULL);
		} else {
			weir_http_respond_copy(req, 200, "text/plain", req->target);
			for (int k = 0; k < 20; k++)
				weir_http_add_field(req, "X-Field", "a value of some length");
		}
		weir_event_finish(&ev[i], WEIR_OK);
	}
}

static const struct weir_stage_ops ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.answer",
    .summary = "answers",
    .accepts = &weir_http_request_type,
    .handle = handle};

static void say(const char *text)
{
	n_said += (size_t)sprintf(said + n_said, "%s", text);
}

static void write_script(void)
{
	memset(big, 'b', BIG);
	say("GET /fields HTTP/1.1\r\nHost: t\r\n");
	for (int i = 0; i < 60; i++)
		say("X-Field: 0123456789 0123456789 0123456789 0123456789 0123456789 "
		    "0123456789\r\n");
	say("\r\nPOST /post HTTP/1.1\r\nHost: t\r\nContent-Length: 20000\r\n\r\n");
	for (int i = 0; i < 2000; i++)
		say("0123456789");
	say("PUT /put HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n");
	for (int i = 0; i < 1000; i++)
		say("a\r\n0123456789\r\n");
	say("0\r\n\r\n" GET("/big"));
	say("GET /last HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n");
}

/* Play the script. Returns how many responses with 200 arrived before the end. */
static int serve_one(int port)
{
	int fd = client_open(port), found = 0;
	size_t n = 0;
	ssize_t got;

	client_send(fd, said, n_said);
	while (n < sizeof(heard) - 1 && (got = recv(fd, heard + n, sizeof(heard) - 1 - n, 0)) > 0)
		n += (size_t)got;
	close(fd);
	heard[n] = '\0';
	for (const char *at = heard; (at = strstr(at, "HTTP/1.1 200 OK\r\n")) != NULL; at++)
		found++;
	return found;
}

static struct server answering_server(void)
{
	static bool registered;

	if (!registered)
		fixture_register(&ops);
	registered = true;
	return server_new("t.answer");
}

static void test_requests(void)
{
	struct server s = answering_server();
	long n = 0;
	bool fired = true;

	weir_log_set_fd(-1);
	server_start(&s);
	write_script();
	CU_ASSERT_EQUAL_FATAL(serve_one(s.port), REQUESTS);
	while (fired) {
		atomic_store(&fault_fired, 0);
		atomic_store(&fault_alloc_in, n++);
		int answers = serve_one(s.port);
		atomic_store(&fault_alloc_in, -1);
		fired = atomic_load(&fault_fired) > 0;
		CU_ASSERT(answers <= REQUESTS);
		CU_ASSERT(fired || answers == REQUESTS);
		CU_ASSERT_EQUAL(serve_one(s.port), REQUESTS);
	}
	printf("(%ld failures) ", n - 1);
	CU_ASSERT(n > 10);
	AWAIT_METRIC(&s, "http_connections", ==, 0);
	AWAIT_METRIC(&s, "http_memory_bytes", ==, 0); /* all its memory is accounted for */
	server_stop(&s);
}

/* A single request on a new connection is answered whatever fails, at worst with 503. */
static void sweep_one(const struct server *s, atomic_long *which, long at_least)
{
	struct answer a = {0};
	bool fired = true;
	long n = 0;

	for (; fired; n++) {
		atomic_store(&fault_fired, 0);
		atomic_store(which, n);
		int fd = client_open(s->port);
		CU_ASSERT(client_say(fd, GET("/one")));
		CU_ASSERT(answer_read_as(fd, &a, true)); /* does not allocate */
		atomic_store(which, -1);
		fired = atomic_load(&fault_fired) > 0;
		CU_ASSERT(a.status == (fired ? a.status : 200));
		CU_ASSERT(a.status == 200 || a.status == 503);
		close(fd);
		AWAIT_METRIC(s, "http_connections", ==, 0);
	}
	printf("(%ld failures) ", n - 1);
	CU_ASSERT(n > at_least);
	answer_free(&a);
}

static void test_one_request(void)
{
	struct server s = answering_server();

	fixture_set(s.app, "threads", "inline");
	server_start(&s);
	sweep_one(&s, &fault_alloc_in, 2);
	sweep_one(&s, &fault_epoll_in, 1);
	server_stop(&s);
}

/* Names so long that the fields of a refusal need memory. */
static struct server long_names_server(void)
{
	struct server s = answering_server();
	char name[WEIR_NAME_MAX + 1];

	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	weir_spec_text(&s.app->name, name);
	weir_spec_text(&s.web->to[0].stage, name);
	weir_spec_add_class(s.spec, name);
	fixture_set(s.app, "threads", "inline");
	server_start(&s);
	return s;
}

/* Send a request that is refused while allocation `n` fails (-1: none). Returns whether one
 * failed. */
static bool ask_refused(const struct server *s, long n, struct answer *a)
{
	int fd = client_open(s->port);

	atomic_store(&fault_fired, 0);
	atomic_store(&fault_alloc_in, n);
	CU_ASSERT(client_say(fd,
	    "GET /refused HTTP/1.1\r\nHost: t\r\n"
	    "Traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\n\r\n"));
	CU_ASSERT(answer_read_as(fd, a, true)); /* does not allocate */
	atomic_store(&fault_alloc_in, -1);
	CU_ASSERT_EQUAL(a->status, 503);
	close(fd);
	AWAIT_METRIC(s, "http_connections", ==, 0);
	return atomic_load(&fault_fired) > 0;
}

/* Without memory for its fields a refusal has none: 503 with a valid head. */
static void test_refusal(void)
{
	struct server s = long_names_server();
	struct answer a = {0};
	int bare = 0;

	/* Memory of connections is kept for the next one, so only the fields need an allocation. */
	CU_ASSERT_FALSE(ask_refused(&s, -1, &a));
	/* The failure may hit the control thread, which allocates at times of its own: then
	 * repeat. */
	for (int round = 0; bare == 0 && round < 50; round++)
		for (long n = 0; ask_refused(&s, n, &a); n++)
			bare += !field_in(a.head, "Retry-After");
	CU_ASSERT(bare > 0);
	CU_ASSERT_PTR_NOT_NULL(field_in(a.head, "X-Weir-Shed"));
	server_stop(&s);
}

CUNIT_MAIN("fault http", {"n-th allocation while serving", test_requests},
    {"a request alone", test_one_request}, {"a refusal", test_refusal})
