/* SPDX-License-Identifier: MIT */
/*
 * Answers that clients read slowly, or not at all, during a reload. The old graph ends without
 * waiting for them, and their clients get every byte: from memory of the answer, memory of a stage,
 * a file, and pieces of both, over plain connections and TLS. Clients read nothing before the old
 * graph has ended. The answers are larger than all socket buffers.
 */
#include <fcntl.h>
#include <sys/mman.h>

#include "fixture/graph/drain.h"
#include "fixture/http/tls.h"

#define BYTES (24 << 20)

static char *bytes; /* memory of the stage; the file has the same content */
static int file = -1;
static atomic_int released;

/* ---- answers ---- */

static void on_release(void *arg)
{
	free(arg);
	atomic_fetch_add(&released, 1);
}

static void reply_own(struct weir_http_request *req)
{
	char *own = malloc(BYTES);

	memcpy(own, bytes, BYTES);
	weir_http_respond(req, 200, NULL, (struct weir_slice){own, BYTES}, free, own);
	atomic_fetch_add(&released, 1);
}

static void reply_pieces(struct weir_http_request *req)
{
	struct weir_http_piece *p = calloc(3, sizeof(*p));

	p[0] = (struct weir_http_piece){.p = bytes, .n = 1000};
	p[1] = (struct weir_http_piece){.offset = 1000, .n = BYTES - 9000};
	p[2] = (struct weir_http_piece){.p = bytes + BYTES - 8000, .n = 8000};
	weir_http_respond_pieces(req, 200, NULL, p, 3, file, on_release, p);
}

static void handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	for (int i = 0; i < n; i++) {
		struct weir_http_request *req = weir_http_request(ev[i]);
		struct weir_slice all = {bytes, BYTES};
		if (target_starts(req, "/own"))
			reply_own(req);
		else if (target_starts(req, "/stage"))
			weir_http_respond(req, 200, NULL, all, on_release, NULL);
		else if (target_starts(req, "/file"))
			weir_http_respond_file(req, 200, NULL, file, 0, BYTES, on_release, NULL);
		else if (target_starts(req, "/pieces"))
			reply_pieces(req);
		else
			reply_echo(req);
		weir_event_finish(&ev[i], WEIR_OK);
	}
}

static const struct weir_stage_ops download_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.download",
    .summary = "answers that are long",
    .accepts = &weir_http_request_type,
    .handle = handle};

static void begin(void)
{
	char name[] = "/tmp/weir-handed-XXXXXX";
	static bool registered;

	if (!registered)
		fixture_register(&download_ops);
	registered = true;
	file = mkostemp(name, O_CLOEXEC);
	unlink(name);
	CU_ASSERT_EQUAL_FATAL(ftruncate(file, BYTES), 0);
	bytes = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	CU_ASSERT_PTR_NOT_EQUAL_FATAL(bytes, MAP_FAILED);
	for (size_t i = 0; i < BYTES; i++)
		bytes[i] = (char)('a' + i * 7 % 26 + i / 65536 % 3);
	atomic_store(&released, 0);
}

static void end(void)
{
	munmap(bytes, BYTES);
	close(file);
	file = -1;
}

/* ---- servers ---- */

/* Let `next` replace `s`, which ends only when no connection refers to it any more. */
static void follow(struct server *s, struct server next)
{
	struct weir_errs errs = {0};
	struct drain d;

	CU_ASSERT_EQUAL_FATAL(weir_graph_build(next.spec, &next.graph, &errs), 0);
	CU_ASSERT_EQUAL_FATAL(weir_graph_succeed(next.graph, s->graph, &errs), 0);
	next.port = weir_http_port(weir_graph_stage(next.graph, "web"), 0);
	drain_call(&d, s->graph, DRAIN_ALL_NS);
	drain_end(&d);
	CU_ASSERT_EQUAL(d.report.closed, 0);
	*s = next;
}

static struct server fresh(void)
{
	struct server s = server_new("t.download");

	fixture_set(s.web, "with.pipeline", "1");
	return s;
}

static bool is_all(const struct answer *a)
{
	return a->status == 200 && a->n == BYTES && memcmp(a->body, bytes, BYTES) == 0;
}

/* Send a request, reload `times` times while nothing is read, then read everything. */
static void download(const char *target, const char *more, int times)
{
	bool closes = strstr(more, "close") != NULL;
	struct server s = fresh();
	struct answer a = {0};
	char text[200];

	begin();
	server_start(&s);
	int fd = client_open(s.port);
	snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: t\r\n%s\r\n", target, more);
	CU_ASSERT(client_say(fd, text));
	AWAIT_METRIC(&s, "http_sent_bytes_total", >, 0);
	if (!closes)
		CU_ASSERT(client_say(fd, GET("/behind"))); /* read by the next server, or by none */
	for (int i = 0; i < times; i++)
		follow(&s, fresh());
	CU_ASSERT_EQUAL(atomic_load(&released), 1); /* nothing of the old graph is referenced */
	AWAIT_METRIC(&s, "http_connections", ==, 1);
	CU_ASSERT(answer_read(fd, &a) && is_all(&a));
	if (closes) {
		CU_ASSERT(client_at_end(fd));
	} else {
		CU_ASSERT(answer_read(fd, &a) && answer_is(&a, 200, "GET /behind\n"));
		CU_ASSERT(client_say(fd, GET("/then")));
		CU_ASSERT(answer_read(fd, &a) && answer_is(&a, 200, "GET /then\n"));
	}
	AWAIT_METRIC(&s, "http_responses_2xx_total", ==, closes ? 1 : 3);
	close(fd);
	AWAIT_METRIC(&s, "http_memory_bytes", ==, 0);
	CU_ASSERT_EQUAL(server_metric(&s, "http_undelivered_total"), 0);
	CU_ASSERT_EQUAL(server_metric(&s, "http_accepted_total"), 1);
	answer_free(&a);
	server_stop(&s);
	end();
}

static void test_own(void)
{
	download("/own", "", 1);
	download("/own", "Connection: close\r\n", 1);
}

static void test_stage(void)
{
	download("/stage", "", 1);
	download("/stage", "Connection: close\r\n", 1);
}

static void test_file(void)
{
	download("/file", "", 1);
	download("/file", "Connection: close\r\n", 1);
}

static void test_pieces(void)
{
	download("/pieces", "", 1);
	download("/pieces", "Connection: close\r\n", 1);
}

/* Nine reloads while a client reads nothing. */
static void test_again(void)
{
	download("/file", "", 9);
	download("/own", "", 3);
}

/* A client that has shut down its sending side is answered, and its connection ends. */
static void test_half_closed(void)
{
	struct server s = fresh();
	struct answer a = {0};

	begin();
	server_start(&s);
	int fd = client_open(s.port);
	CU_ASSERT(client_say(fd, GET("/file")));
	shutdown(fd, SHUT_WR);
	AWAIT_METRIC(&s, "http_sent_bytes_total", >, 0);
	follow(&s, fresh());
	CU_ASSERT(answer_read(fd, &a) && is_all(&a));
	CU_ASSERT(client_at_end(fd));
	close(fd);
	AWAIT_METRIC(&s, "http_connections", ==, 0);
	answer_free(&a);
	server_stop(&s);
	end();
}

/* A client that leaves after the reload: its answer is counted as undelivered, once. */
static void test_gone(void)
{
	static const char *const what[] = {
	    GET("/own"), GET("/stage"), GET("/file"), GET("/pieces")};

	for (size_t i = 0; i < sizeof(what) / sizeof(what[0]); i++) {
		struct server s = fresh();
		begin();
		server_start(&s);
		int fd = client_open(s.port);
		CU_ASSERT(client_say(fd, what[i]));
		AWAIT_METRIC(&s, "http_sent_bytes_total", >, 0);
		follow(&s, fresh());
		close(fd);
		AWAIT_METRIC(&s, "http_connections", ==, 0);
		AWAIT_METRIC(&s, "http_memory_bytes", ==, 0);
		AWAIT_METRIC(&s, "http_undelivered_total", ==, 1);
		CU_ASSERT_EQUAL(server_metric(&s, "http_responses_2xx_total"), 0);
		server_stop(&s);
		end();
	}
}

/* If the memory limit does not allow a copy, the answer stays in the old graph, which ends when the
 * client has read everything. */
static void test_no_memory(void)
{
	struct server s = fresh(), next = fresh();
	struct weir_errs errs = {0};
	struct answer a = {0};
	struct drain d;

	begin();
	fixture_set(s.web, "with.memory", "16MiB");
	server_start(&s);
	int fd = client_open(s.port);
	CU_ASSERT(client_say(fd, GET("/stage")));
	AWAIT_METRIC(&s, "http_sent_bytes_total", >, 0);
	CU_ASSERT_EQUAL_FATAL(weir_graph_build(next.spec, &next.graph, &errs), 0);
	CU_ASSERT_EQUAL_FATAL(weir_graph_succeed(next.graph, s.graph, &errs), 0);
	drain_call(&d, s.graph, DRAIN_ALL_NS);
	CU_ASSERT(answer_read(fd, &a) && is_all(&a));
	drain_end(&d);
	next.port = s.port;
	CU_ASSERT(client_say(fd, GET("/then")));
	CU_ASSERT(answer_read(fd, &a) && answer_is(&a, 200, "GET /then\n"));
	close(fd);
	answer_free(&a);
	server_stop(&next);
	end();
}

/* A server whose clients may wait for as long as the test takes. */
static struct server patient(void)
{
	struct server s = fresh();

	fixture_set(s.web, "with.memory", "64MiB");
	fixture_set(s.web, "with.min_send_rate", "0");
	fixture_set(s.web, "with.write_timeout", "10m");
	return s;
}

/* Open descriptors of the file. */
static int descriptors(void)
{
	struct stat all, one;
	char name[40];
	int n = 0;

	CU_ASSERT_EQUAL_FATAL(fstat(file, &all), 0);
	for (int fd = 0; fd < 1024; fd++) {
		snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
		n += stat(name, &one) == 0 && one.st_dev == all.st_dev && one.st_ino == all.st_ino;
	}
	return n;
}

static struct server with_one_thread(void)
{
	struct server s = patient(); /* clients read one after the other */

	fixture_set(s.web, "threads", "1");
	return s;
}

/* Slow clients of one file share its descriptor after a reload, and after the next one. */
static void test_shared_file(void)
{
	enum { CLIENTS = 20 };
	struct server s = with_one_thread();
	struct answer a = {0};
	int fd[CLIENTS];

	begin();
	server_start(&s);
	for (int i = 0; i < CLIENTS; i++) {
		int64_t before = server_metric(&s, "http_sent_bytes_total");
		fd[i] = client_open(s.port);
		CU_ASSERT(client_say(fd[i], GET("/file")));
		AWAIT_METRIC(&s, "http_sent_bytes_total", >, before);
	}
	for (int i = 0; i < 2; i++) {
		follow(&s, with_one_thread());
		AWAIT_METRIC(&s, "http_connections", ==, CLIENTS);
		CU_ASSERT_EQUAL(descriptors(), 2); /* the stage's, and the shared one */
	}
	for (int i = 0; i < CLIENTS; i++) {
		CU_ASSERT(answer_read(fd[i], &a) && is_all(&a));
		close(fd[i]);
	}
	AWAIT_METRIC(&s, "http_connections", ==, 0);
	CU_ASSERT_EQUAL(descriptors(), 1);
	answer_free(&a);
	server_stop(&s);
	end();
}

/* Many clients of one object: copying it for all of them would exceed the memory limit, and clients
 * would be reset. So some answers stay in the old graph, and no client loses anything. */
static void test_many_copies(void)
{
	enum { CLIENTS = 4, HALF = 32 << 20 };
	struct server s = patient(), next = patient();
	struct weir_errs errs = {0};
	struct answer a = {0};
	int fd[CLIENTS];
	struct drain d;

	begin();
	server_start(&s);
	for (int i = 0; i < CLIENTS; i++) {
		int64_t before = server_metric(&s, "http_sent_bytes_total");
		fd[i] = client_open(s.port);
		CU_ASSERT(client_say(fd[i], GET("/stage")));
		AWAIT_METRIC(&s, "http_sent_bytes_total", >, before);
	}
	CU_ASSERT_EQUAL_FATAL(weir_graph_build(next.spec, &next.graph, &errs), 0);
	CU_ASSERT_EQUAL_FATAL(weir_graph_succeed(next.graph, s.graph, &errs), 0);
	next.port = s.port;
	drain_call(&d, s.graph, DRAIN_ALL_NS);
	AWAIT_METRIC(&next, "http_connections", >=, 1);
	int also = client_open(next.port);
	CU_ASSERT(client_say(also, GET("/also")));
	CU_ASSERT(answer_read(also, &a) && answer_is(&a, 200, "GET /also\n"));
	close(also);
	for (int i = 0; i < CLIENTS; i++) {
		/* I/O threads report their memory after each iteration, so a copy that was sent may
		 * still be counted. */
		AWAIT_METRIC(&next, "http_memory_bytes", <=, HALF);
		CU_ASSERT(answer_read(fd[i], &a) && is_all(&a));
		close(fd[i]);
	}
	drain_end(&d);
	CU_ASSERT_EQUAL(d.report.closed, 0);
	AWAIT_METRIC(&next, "http_memory_bytes", ==, 0);
	CU_ASSERT_EQUAL(server_metric(&next, "http_undelivered_total"), 0);
	answer_free(&a);
	server_stop(&next);
	end();
}

static void over_tls(const char *text, int version)
{
	const struct tls_wish wish = {.version = version};
	struct server s = tls_server_new("t.download", "one");
	struct answer a = {0};

	begin();
	server_start(&s);
	struct tls_client k = tls_client_open(s.port, &wish);
	CU_ASSERT(tls_say(&k, text));
	AWAIT_METRIC(&s, "http_sent_bytes_total", >, 0);
	for (int i = 0; i < 2; i++)
		follow(&s, tls_server_new("t.download", "one"));
	CU_ASSERT(tls_answer(&k, &a) && is_all(&a));
	CU_ASSERT(tls_ask(&k, GET("/then"), "GET /then\n"));
	tls_client_close(&k);
	AWAIT_METRIC(&s, "http_connections", ==, 0);
	AWAIT_METRIC(&s, "http_memory_bytes", ==, 0);
	answer_free(&a);
	server_stop(&s);
	end();
}

static void test_tls(void)
{
	tls_begin();
	over_tls(GET("/own"), TLS1_3_VERSION);
	over_tls(GET("/file"), TLS1_3_VERSION);
	over_tls(GET("/pieces"), TLS1_3_VERSION);
	over_tls(GET("/stage"), TLS1_2_VERSION);
	tls_end();
}

CUNIT_MAIN("http handed", {"memory of its own", test_own}, {"memory of a stage", test_stage},
    {"a file", test_file}, {"a shared file", test_shared_file}, {"pieces", test_pieces},
    {"reload after reload", test_again}, {"half-closed clients", test_half_closed},
    {"clients that go", test_gone}, {"no memory for a copy", test_no_memory},
    {"many copies", test_many_copies}, {"TLS", test_tls})
