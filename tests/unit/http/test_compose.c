/* SPDX-License-Identifier: MIT */
/* Heads of responses, byte by byte: which fields they have, and which buffer is too small. */
#include "http/conn_rig.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "http/message/status.h"
#include "http/request/transfer.h"

#define IO (&conn_rig.io)
#define S  1000000000LL

static char out[SERVER_OUT_BYTES];

/* Compose into out[room] with a stamp that is always the same. Returns the text. */
static const char *compose(struct http_req *r, bool close, size_t room)
{
	size_t n;

	strcpy(IO->stamp.text, "Server: s\r\nDate: d\r\n");
	IO->stamp.n = strlen(IO->stamp.text);
	IO->stamp.until_ns = INT64_MAX;
	n = compose_head(IO, r, close, out, room);
	CU_ASSERT_FATAL(n < sizeof(out));
	out[n] = '\0';
	return out;
}

static struct http_req *request(void)
{
	struct http_req *r;

	conn_rig_begin();
	r = conn_rig_request(conn_rig_conn());
	r->pub.method = WEIR_HTTP_GET;
	r->pub.minor = 1;
	return r;
}

#define STAMP "Server: s\r\nDate: d\r\n"

static void test_connection(void)
{
	struct http_req *r = request();

	weir_http_respond_copy(&r->pub, 200, "text/plain", (struct weir_slice){"hello", 5});
	CU_ASSERT_STRING_EQUAL(compose(r, false, sizeof(out)),
	    "HTTP/1.1 200 OK\r\n" STAMP "Content-Type: text/plain\r\nContent-Length: 5\r\n\r\n");
	CU_ASSERT_STRING_EQUAL(compose(r, true, sizeof(out)),
	    "HTTP/1.1 200 OK\r\n" STAMP
	    "Content-Type: text/plain\r\nContent-Length: 5\r\nConnection: close\r\n\r\n");
	r->pub.minor = 0; /* HTTP/1.0 closes unless keep-alive is announced */
	CU_ASSERT_STRING_EQUAL(compose(r, false, sizeof(out)),
	    "HTTP/1.1 200 OK\r\n" STAMP
	    "Content-Type: text/plain\r\nContent-Length: 5\r\nConnection: keep-alive\r\n\r\n");
	CU_ASSERT_STRING_EQUAL(compose(r, true, sizeof(out)),
	    "HTTP/1.1 200 OK\r\n" STAMP
	    "Content-Type: text/plain\r\nContent-Length: 5\r\nConnection: close\r\n\r\n");
	conn_rig_end();
}

/* HEAD has the length of the body that GET would have; 204 has none. */
static void test_body(void)
{
	struct http_req *r = request();

	weir_http_respond_copy(&r->pub, 200, "a/b", (struct weir_slice){"hello", 5});
	CU_ASSERT_TRUE(compose_has_body(r));
	r->pub.method = WEIR_HTTP_HEAD;
	CU_ASSERT_FALSE(compose_has_body(r));
	CU_ASSERT_PTR_NOT_NULL(strstr(compose(r, false, sizeof(out)), "Content-Length: 5\r\n"));
	r->pub.method = WEIR_HTTP_GET;
	weir_http_respond_status(&r->pub, 204);
	CU_ASSERT_FALSE(compose_has_body(r));
	CU_ASSERT_STRING_EQUAL(
	    compose(r, false, sizeof(out)), "HTTP/1.1 204 No Content\r\n" STAMP "\r\n");
	conn_rig_end();
}

/* A streamed response has chunks, or ends with the connection. */
static void test_streamed(void)
{
	struct http_req *r = request();

	r->transfer = r->known_transfer = transfer_new(r, &IO->pool);
	r->pub.res.status = 200;
	r->pub.res.streamed = true;
	r->known_transfer->chunked = true;
	CU_ASSERT_STRING_EQUAL(compose(r, false, sizeof(out)),
	    "HTTP/1.1 200 OK\r\n" STAMP "Transfer-Encoding: chunked\r\n\r\n");
	r->known_transfer->chunked = false;
	CU_ASSERT_STRING_EQUAL(
	    compose(r, true, sizeof(out)), "HTTP/1.1 200 OK\r\n" STAMP "Connection: close\r\n\r\n");
	conn_rig_end();
}

/* A head that may not fit is not composed: space is reserved for the longest form of its fixed
 * parts. */
static void test_room(void)
{
	struct http_req *r = request();
	const size_t fixed = 64 + SERVER_STAMP_MAX + 96;

	weir_http_respond_status(&r->pub, 404);
	size_t n = fixed + r->pub.res.fields.n + r->pub.n_fields;
	CU_ASSERT_STRING_EQUAL(compose(r, false, n - 1), "");
	CU_ASSERT_STRING_NOT_EQUAL(compose(r, false, n), "");
	weir_http_add_field(&r->pub, "X", "yy");
	CU_ASSERT_STRING_EQUAL(compose(r, false, n + 6), "");
	CU_ASSERT_PTR_NOT_NULL(strstr(compose(r, false, n + 7), "X: yy\r\n"));
	conn_rig_end();
}

/* The date is that of the clock, and is composed again in the next second. */
static void test_stamp(void)
{
	struct http_req *r = request();
	char date[64];
	struct tm tm = {0};
	time_t before = time(NULL);

	weir_http_respond_status(&r->pub, 200);
	strcpy(conn_rig.srv.server_field, "Server: weir\r\n");
	CU_ASSERT_FATAL(compose_head(IO, r, false, out, sizeof(out)) > 0);
	CU_ASSERT_EQUAL(memcmp(out, "HTTP/1.1 200 OK\r\nServer: weir\r\nDate: ", 37), 0);
	CU_ASSERT_EQUAL(sscanf(out + 37, "%60[^\r]", date), 1);
	CU_ASSERT_PTR_NOT_NULL(strptime(date, "%a, %d %b %Y %H:%M:%S GMT", &tm));
	CU_ASSERT(timegm(&tm) >= before && timegm(&tm) <= time(NULL));
	CU_ASSERT_EQUAL(strlen(date), 29);
	CU_ASSERT(IO->stamp.until_ns > IO->net.loop->now_ns);
	CU_ASSERT(IO->stamp.until_ns <= IO->net.loop->now_ns + S);
	IO->net.loop->now_ns = IO->stamp.until_ns - 1;
	IO->stamp.text[0] = 's';
	CU_ASSERT(compose_head(IO, r, false, out, sizeof(out)) > 0);
	CU_ASSERT_EQUAL(out[17], 's');
	IO->net.loop->now_ns++;
	CU_ASSERT(compose_head(IO, r, false, out, sizeof(out)) > 0);
	CU_ASSERT_EQUAL(out[17], 'S');
	conn_rig_end();
}

static void test_bare(void)
{
	out[compose_bare(503, 7, out)] = '\0';
	CU_ASSERT_STRING_EQUAL(out, "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 7\r\n"
				    "Content-Length: 0\r\nConnection: close\r\n\r\n");
	out[compose_bare(431, 0, out)] = '\0';
	CU_ASSERT_STRING_EQUAL(out, "HTTP/1.1 431 Request Header Fields Too Large\r\n"
				    "Content-Length: 0\r\nConnection: close\r\n\r\n");
	for (int code = 200; code < 600; code++)
		CU_ASSERT(compose_bare(code, 1000000, out) <= COMPOSE_BARE_MAX);
}

/* Each known status has its own line, and the others have none. */
static void test_statuses(void)
{
	char line[100];
	int known = 0;

	for (int code = 0; code < 1000; code++) {
		const struct status *s = status_find(code);
		CU_ASSERT_STRING_EQUAL(weir_http_reason(code), s ? s->reason : "Unknown");
		if (!s)
			continue;
		known++;
		snprintf(line, sizeof(line), "HTTP/1.1 %d %s\r\n", code, s->reason);
		CU_ASSERT_EQUAL(s->code, code);
		CU_ASSERT_EQUAL(s->line.n, strlen(line));
		CU_ASSERT_EQUAL(memcmp(s->line.p, line, s->line.n), 0);
	}
	CU_ASSERT_EQUAL(known, 47);
	CU_ASSERT_PTR_NOT_NULL(status_find(200));
	CU_ASSERT_PTR_NOT_NULL(status_find(507));
	CU_ASSERT_PTR_NULL(status_find(306));
	struct http_req *r = request();
	r->pub.res.status = 299;
	CU_ASSERT_EQUAL(memcmp(compose(r, false, sizeof(out)), "HTTP/1.1 299 Unknown\r\n", 22), 0);
	conn_rig_end();
}

CUNIT_MAIN("compose", {"connection", test_connection}, {"body", test_body},
    {"streamed", test_streamed}, {"room", test_room}, {"stamp", test_stamp}, {"bare", test_bare},
    {"statuses", test_statuses})
