/* SPDX-License-Identifier: MIT */
/* Bodies in pieces of memory and of a file (weir_http_respond_pieces), plain and over TLS: every
 * byte in order, also for slow clients and between other answers. A file that becomes shorter
 * breaks only its answer. */
#include "fixture/http/server.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "fixture/http/tls.h"

/* More than the socket buffers hold. */
#define FILE_BYTES (6 << 20)
#define MANY       1000

static char file_name[] = "/tmp/weir-pieces-XXXXXX";
static char *bytes; /* of the file */
static atomic_int released;

struct pieces {
	int fd;
	struct weir_http_piece piece[MANY];
};

static void on_release(void *arg)
{
	struct pieces *p = arg;

	close(p->fd);
	free(p);
	atomic_fetch_add(&released, 1);
}

/* Memory, nothing, much of the file, more memory than a socket takes, the end of the file, one
 * byte. */
static int mixed(struct weir_http_piece *p)
{
	p[0] = (struct weir_http_piece){.p = "head\n", .n = 5};
	p[1] = (struct weir_http_piece){.p = "", .n = 0};
	p[2] = (struct weir_http_piece){.offset = 1, .n = FILE_BYTES / 2};
	p[3] = (struct weir_http_piece){.p = bytes, .n = FILE_BYTES};
	p[4] = (struct weir_http_piece){.p = bytes + 7, .n = FILE_BYTES - 7};
	p[5] = (struct weir_http_piece){.offset = FILE_BYTES - 3, .n = 3};
	p[6] = (struct weir_http_piece){.offset = 5, .n = 0};
	p[7] = (struct weir_http_piece){.p = "!", .n = 1};
	return 8;
}

static int many(struct weir_http_piece *p)
{
	for (int i = 0; i < MANY; i++) {
		p[i] = (struct weir_http_piece){.offset = i, .n = i % 50};
		if (i % 3)
			p[i].p = bytes + i;
	}
	return MANY;
}

static int pieces_of(const struct weir_http_request *req, struct weir_http_piece *p)
{
	if (weir_slice_is(req->path, "/mixed"))
		return mixed(p);
	if (weir_slice_is(req->path, "/many"))
		return many(p);
	p[0] = (struct weir_http_piece){
	    .offset = 0, .n = weir_slice_is(req->path, "/empty") ? 0 : FILE_BYTES};
	return 1;
}

static void pieces_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	for (int i = 0; i < n; i++) {
		struct weir_http_request *req = weir_http_request(ev[i]);
		struct pieces *p = malloc(sizeof(*p));
		p->fd = open(file_name, O_RDONLY | O_CLOEXEC);
		int rc = weir_http_respond_pieces(
		    req, 200, "text/x", p->piece, pieces_of(req, p->piece), p->fd, on_release, p);
		weir_event_finish(&ev[i], rc);
	}
}

static const struct weir_stage_ops pieces_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.pieces",
    .summary = "answers in pieces",
    .accepts = &weir_http_request_type,
    .handle = pieces_handle};

/* The concatenation of the pieces. */
static char *expected(int (*make)(struct weir_http_piece *p), size_t *n)
{
	struct weir_http_piece *p = malloc(MANY * sizeof(*p));
	char *all = malloc(4 * FILE_BYTES);
	int pieces = make(p);

	*n = 0;
	for (int i = 0; i < pieces; i++) {
		memcpy(all + *n, p[i].p ? p[i].p : bytes + p[i].offset, (size_t)p[i].n);
		*n += (size_t)p[i].n;
	}
	free(p);
	return all;
}

static void test_begin(void)
{
	int fd = mkstemp(file_name);

	bytes = malloc(FILE_BYTES);
	for (size_t i = 0; i < FILE_BYTES; i++)
		bytes[i] = (char)(i * 31 + i / 1000);
	CU_ASSERT_EQUAL_FATAL(write(fd, bytes, FILE_BYTES), FILE_BYTES);
	close(fd);
	fixture_register(&pieces_ops);
	tls_begin();
}

static void test_end(void)
{
	unlink(file_name);
	free(bytes);
	tls_end();
}

static bool is_whole(const struct answer *a, const char *all, size_t n)
{
	return a->status == 200 && a->n == n && (n == 0 || memcmp(a->body, all, n) == 0);
}

/* Answers in pieces are pipelined with other answers, and do not mix. */
static void test_plain(void)
{
	struct server s = server_new("t.pieces");
	struct answer a = {0};
	size_t n_mixed, n_many;
	char *all_mixed = expected(mixed, &n_mixed), *all_many = expected(many, &n_many);
	int before = atomic_load(&released);

	server_start(&s);
	int fd = client_open(s.port);
	CU_ASSERT(client_say(fd,
	    GET("/many") GET("/mixed")
		GET("/empty") "HEAD /mixed HTTP/1.1\r\nHost: t\r\n\r\n" GET("/many")));
	CU_ASSERT(answer_read(fd, &a) && is_whole(&a, all_many, n_many));
	CU_ASSERT(answer_read(fd, &a) && is_whole(&a, all_mixed, n_mixed));
	CU_ASSERT(answer_read(fd, &a) && is_whole(&a, "", 0));
	CU_ASSERT(answer_read_as(fd, &a, true) && a.length == (long)n_mixed);
	CU_ASSERT(answer_read(fd, &a) && is_whole(&a, all_many, n_many));
	close(fd);
	server_stop(&s);
	CU_ASSERT_EQUAL(atomic_load(&released), before + 5);
	answer_free(&a);
	free(all_mixed);
	free(all_many);
}

/* A small window: many short writes. */
static void test_slow(void)
{
	struct server s = server_new("t.pieces");
	struct answer a = {0};
	size_t n;
	char *all = expected(mixed, &n);
	int small = 65536;

	server_start(&s);
	int fd = client_open(s.port);
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	CU_ASSERT(client_say(fd, GET("/mixed")));
	CU_ASSERT(answer_read(fd, &a) && is_whole(&a, all, n));
	CU_ASSERT(client_say(fd, GET("/empty")) && answer_read(fd, &a) && is_whole(&a, "", 0));
	close(fd);
	server_stop(&s);
	answer_free(&a);
	free(all);
}

static void test_tls(void)
{
	struct server s = tls_server_new("t.pieces", "one");
	struct tls_wish wish = {0};
	struct answer a = {0};
	size_t n_mixed, n_many;
	char *all_mixed = expected(mixed, &n_mixed), *all_many = expected(many, &n_many);

	server_start(&s);
	struct tls_client k = tls_client_open(s.port, &wish);
	CU_ASSERT_FATAL(tls_shake_hands(&k));
	CU_ASSERT(tls_say(&k, GET("/mixed") GET("/many")));
	CU_ASSERT(tls_answer(&k, &a) && is_whole(&a, all_mixed, n_mixed));
	CU_ASSERT(tls_answer(&k, &a) && is_whole(&a, all_many, n_many));
	tls_client_close(&k);
	server_stop(&s);
	answer_free(&a);
	free(all_mixed);
	free(all_many);
}

/* A client that leaves, and a file that is truncated: each ends only that answer. */
static void test_broken_off(void)
{
	struct server s = server_new("t.pieces");
	struct answer a = {0};
	char head[1024], *rest = malloc(FILE_BYTES);
	int before = atomic_load(&released);
	ssize_t got;
	size_t n = 0;

	server_start(&s);
	int leaves = client_open(s.port), fd = client_open(s.port);
	CU_ASSERT(client_say(leaves, GET("/mixed")) && head_read(leaves, head, sizeof(head)));
	close(leaves);
	FIXTURE_AWAIT(atomic_load(&released) == before + 1);
	CU_ASSERT(client_say(fd, GET("/file")) && head_read(fd, head, sizeof(head)));
	CU_ASSERT_EQUAL_FATAL(truncate(file_name, 10), 0);
	while ((got = recv(fd, rest, FILE_BYTES, 0)) > 0)
		n += (size_t)got;
	CU_ASSERT(n < FILE_BYTES);
	close(fd);
	fd = client_open(s.port);
	CU_ASSERT(client_say(fd, GET("/empty")) && answer_read(fd, &a) && is_whole(&a, "", 0));
	close(fd);
	server_stop(&s);
	CU_ASSERT_EQUAL(atomic_load(&released), before + 3);
	answer_free(&a);
	free(rest);
}

CUNIT_MAIN("http pieces", {"begin", test_begin}, {"plain", test_plain}, {"slow", test_slow},
    {"TLS", test_tls}, {"broken off", test_broken_off}, {"end", test_end})
