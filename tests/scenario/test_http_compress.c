/* SPDX-License-Identifier: MIT */
/* http.compress: negotiation, whole answers and answers in parts decoded by the libraries, flushes, answers that are
 * left alone, levels under degrade, bounded memory, and the configurations that are refused. */
#include <weir/operate.h>

#include "fixture/http/decode.h"
#include "fixture/http/origin.h"
#include "fixture/http/yaml.h"

static struct server server;
static struct origin origin;

static void start(const char *knobs)
{
	char yaml[4096];

	origin = origin_new();
	snprintf(yaml, sizeof(yaml),
	    YAML_TOP
	    "  web: { use: http.server, with: { listen: \"127.0.0.1:0\", threads: 1, linger: 0ms, "
	    "stream: 64KiB }, to: { "
	    "request: app } }\n"
	    "  app: { use: http.compress, threads: inline, to: end, with: { %s } }\n"
	    "  end: { use: http.client, threads: inline, with: { origins: [\"http://%s\"] } }\n",
	    knobs, origin.text);
	server = yaml_start(yaml);
}

static void stop(void)
{
	server_stop(&server);
	origin_free(&origin);
}

/* A body of 3,000 bytes. */
static const char *body(void)
{
	static char text[3001];

	for (int i = 0; i < 3000; i++)
		text[i] = "some text, again and again; "[i % 28];
	return text;
}

/* The answer of the origin with `fields` and the body, as a client gets it that asks with `more`. */
static void get(
    const char *method, const char *more, const char *status, const char *fields, struct answer *a)
{
	char text[5000];
	int c = client_open(server.port);

	snprintf(text, sizeof(text), "%s / HTTP/1.1\r\nHost: t\r\n%s\r\n", method, more);
	int u = origin_ask(&origin, c, text);
	bool head = strcmp(method, "HEAD") == 0;
	snprintf(text, sizeof(text), "HTTP/1.1 %s\r\nContent-Length: 3000\r\n%s\r\n%s", status,
	    fields, head ? "" : body());
	client_say(u, text);
	CU_ASSERT_FATAL(answer_read_as(c, a, head));
	close(u);
	close(c);
}

#define TYPE   "Content-Type: text/html; charset=utf-8\r\n"
#define ACCEPT "Accept-Encoding: gzip, br, zstd\r\n"

static void is_plain(const struct answer *a)
{
	CU_ASSERT_PTR_NULL(field_in(a->head, "Content-Encoding"));
	CU_ASSERT(a->n == 3000 && memcmp(a->body, body(), 3000) == 0);
}

static void is_coded(const struct answer *a, const char *coding)
{
	const char *is = field_in(a->head, "Content-Encoding");

	CU_ASSERT_STRING_EQUAL(is ? is : "", coding);
	if (!is)
		return;
	CU_ASSERT_EQUAL(a->length, (long)a->n);
	struct decoded d =
	    decode(encoding_find((struct weir_slice){coding, strlen(coding)}), a->body, a->n);
	CU_ASSERT(d.ended && d.n == 3000 && memcmp(d.p, body(), 3000) == 0);
	CU_ASSERT(a->n < 500);
	free(d.p);
}

static void negotiation(void)
{
	static const struct {
		const char *accept, *coding;
	} rows[] = {{"gzip", "gzip"}, {"GZIP", "gzip"}, {"br", "br"}, {"zstd", "zstd"},
	    {"gzip, br, zstd", "zstd"}, {"gzip, br", "br"}, {"gzip;q=1, br;q=0.5", "gzip"},
	    {"gzip;q=0.4, br;q=0.5, zstd;q=0.1", "br"}, {"*", "zstd"}, {"*, zstd;q=0", "br"},
	    {"gzip, identity;q=0", "gzip"}, {"identity", NULL}, {"", NULL}, {"gzip;q=0", NULL},
	    {"deflate, compress", NULL}, {"identity;q=1, gzip;q=0.5", NULL}, {"*;q=0", NULL},
	    {"gzip;q=2", NULL}, {"gzip;q=0.0001", NULL}, {"gzip x", NULL}, {"x-gzip", "gzip"},
	    {",,gzip,,", "gzip"}};
	struct answer a = {0};

	start("");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char field[100];
		snprintf(field, sizeof(field), "Accept-Encoding: %s\r\n", rows[i].accept);
		get("GET", field, "200 OK", TYPE, &a);
		CU_ASSERT_STRING_EQUAL(field_in(a.head, "Vary"), "Accept-Encoding");
		const char *is = field_in(a.head, "Content-Encoding");
		if (strcmp(is ? is : "", rows[i].coding ? rows[i].coding : "") != 0)
			fprintf(stderr, "%s: %s\n", rows[i].accept, is ? is : "plain");
		if (rows[i].coding)
			is_coded(&a, rows[i].coding);
		else
			is_plain(&a);
	}
	get("GET", "", "200 OK", TYPE, &a);
	is_plain(&a);
	answer_free(&a);
	stop();
}

static void fields_change(void)
{
	struct answer a = {0};

	start("codings: [gzip]");
	get("GET", ACCEPT, "200 OK",
	    TYPE "ETag: \"abc\"\r\nVary: Accept, accept-encoding\r\nAccept-Ranges: "
		 "bytes\r\nCache-Control: max-age=5\r\n",
	    &a);
	is_coded(&a, "gzip");
	CU_ASSERT_STRING_EQUAL(field_in(a.head, "ETag"), "W/\"abc\"");
	CU_ASSERT_STRING_EQUAL(field_in(a.head, "Vary"), "Accept, accept-encoding");
	CU_ASSERT_PTR_NULL(field_in(a.head, "Accept-Ranges"));
	CU_ASSERT_STRING_EQUAL(field_in(a.head, "Cache-Control"), "max-age=5");
	get("GET", ACCEPT, "200 OK", TYPE "ETag: W/\"abc\"\r\n", &a);
	CU_ASSERT_STRING_EQUAL(field_in(a.head, "ETag"), "W/\"abc\"");
	get("GET", "", "200 OK", TYPE "ETag: \"abc\"\r\n", &a);
	is_plain(&a);
	CU_ASSERT_STRING_EQUAL(field_in(a.head, "ETag"), "\"abc\"");
	get("GET", ACCEPT, "404 No", TYPE, &a);
	CU_ASSERT_EQUAL(a.status, 404);
	is_coded(&a, "gzip");
	answer_free(&a);
	stop();
}

static void left_alone(void)
{
	static const char *const fields[] = {"Content-Type: image/png\r\n", "",
	    "Content-Type: application/jsonx\r\n", TYPE "Content-Encoding: x\r\n",
	    TYPE "Cache-Control: public, no-transform\r\n",
	    TYPE "Cache-Control: max-age=1, Private\r\n", TYPE "Cache-Control: private=\"x\"\r\n",
	    TYPE "Set-Cookie: a=b\r\n"};
	struct answer a = {0};

	start("");
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		get("GET", ACCEPT, "200 OK", fields[i], &a);
		CU_ASSERT(a.n == 3000 && memcmp(a.body, body(), 3000) == 0);
		CU_ASSERT_PTR_NULL(field_in(a.head, "Vary"));
	}
	get("GET", ACCEPT, "206 Part", TYPE "Content-Range: bytes 0-2999/4000\r\n", &a);
	is_plain(&a);
	get("HEAD", ACCEPT, "200 OK", TYPE, &a);
	CU_ASSERT_PTR_NULL(field_in(a.head, "Content-Encoding"));
	CU_ASSERT_STRING_EQUAL(field_in(a.head, "Vary"), "Accept-Encoding");
	answer_free(&a);
	stop();
	start("min_length: 3001");
	get("GET", ACCEPT, "200 OK", TYPE, &a);
	is_plain(&a);
	stop();
	start("max_whole: 2999, types: [ \"application/*+json\", text/plain ]");
	get("GET", ACCEPT, "200 OK", TYPE, &a);
	is_plain(&a);
	stop();
	start("types: [ \"application/*+json\" ]");
	get("GET", ACCEPT, "200 OK", "Content-Type: Application/Problem+JSON\r\n", &a);
	is_coded(&a, "zstd");
	answer_free(&a);
	stop();
}

/* Read chunks up to the end, or until `want` decoded bytes are there. Appends to out[*n). */
static bool read_chunks(int c, enum encoding e, size_t want, char *out, size_t *n)
{
	for (;;) {
		struct decoded d = decode(e, out, *n);
		bool there = d.n >= want && want > 0;
		free(d.p);
		if (there)
			return true;
		char line[32];
		size_t i = 0;
		while (i < sizeof(line) - 1 && client_take(c, line + i, 1) && line[i] != '\n')
			i++;
		size_t m = strtoul(line, NULL, 16);
		if (!client_take(c, out + *n, m) || !client_take(c, line, 2))
			return false;
		*n += m;
		if (m == 0)
			return true;
	}
}

static void parts(const char *accept, enum encoding e)
{
	char head[4096], text[200], *out = malloc(1 << 20);
	size_t n = 0;
	int c = client_open(server.port);

	snprintf(text, sizeof(text),
	    "GET /events HTTP/1.1\r\nHost: t\r\nAccept-Encoding: %s\r\n\r\n", accept);
	int u = origin_ask(&origin, c, text);
	client_say(u, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: "
		      "text/event-stream\r\nETag: \"1\"\r\n\r\n8\r\ndata: 1\n\r\n");
	CU_ASSERT_FATAL(head_read(c, head, sizeof(head)));
	CU_ASSERT_STRING_EQUAL(field_in(head, "Content-Encoding"), accept);
	CU_ASSERT_STRING_EQUAL(field_in(head, "ETag"), "W/\"1\"");
	CU_ASSERT_PTR_NULL(field_in(head, "Content-Length"));
	/* the origin pauses after each event, and the client gets it nevertheless */
	CU_ASSERT_FATAL(read_chunks(c, e, 8, out, &n));
	client_say(u, "8\r\ndata: 2\n\r\n");
	CU_ASSERT_FATAL(read_chunks(c, e, 16, out, &n));
	for (int i = 0; i < 30; i++) {
		snprintf(text, sizeof(text), "bb8\r\n");
		client_say(u, text);
		client_send(u, body(), 3000);
		client_say(u, "\r\n");
	}
	client_say(u, "0\r\n\r\n");
	CU_ASSERT_FATAL(read_chunks(c, e, 0, out, &n));
	struct decoded d = decode(e, out, n);
	CU_ASSERT(d.ended && d.n == 16 + 90000);
	CU_ASSERT(memcmp(d.p, "data: 1\ndata: 2\n", 16) == 0);
	CU_ASSERT(memcmp(d.p + 16 + 87000, body(), 3000) == 0);
	CU_ASSERT(n < 10000);
	free(d.p);
	free(out);
	close(u);
	close(c);
}

static void in_parts(void)
{
	start("");
	parts("gzip", ENCODING_GZIP);
	parts("zstd", ENCODING_ZSTD);
	parts("br", ENCODING_BR);
	stop();
}

/* An answer of the origin that breaks off is aborted for the client, not ended. */
static void torn(void)
{
	char head[4096], out[20000];
	size_t n = 0;

	start("codings: [gzip]");
	int c = client_open(server.port);
	int u = origin_ask(&origin, c, "GET / HTTP/1.1\r\nHost: t\r\n" ACCEPT "\r\n");
	client_say(
	    u, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n" TYPE "\r\n8\r\ndata: 1\n\r\n");
	CU_ASSERT_FATAL(head_read(c, head, sizeof(head)));
	CU_ASSERT_FATAL(read_chunks(c, ENCODING_GZIP, 8, out, &n));
	close(u);
	CU_ASSERT_FALSE(read_chunks(c, ENCODING_GZIP, 0, out, &n));
	close(c);
	stop();
}

static void set(const char *knob, const char *value)
{
	char why[200] = "";

	CU_ASSERT_EQUAL(weir_graph_set(server.graph, "app", knob, value, why, sizeof(why)), 0);
}

static void without_memory(void)
{
	struct answer a = {0};

	start("memory: 100KiB");
	get("GET", ACCEPT, "200 OK", TYPE, &a);
	is_plain(&a);
	CU_ASSERT_STRING_EQUAL(field_in(a.head, "Vary"), "Accept-Encoding");
	set("with.memory", "10MiB");
	get("GET", ACCEPT, "200 OK", TYPE, &a);
	is_coded(&a, "zstd");
	answer_free(&a);
	stop();
}

static void refused(void)
{
	yaml_refused("  app: { use: http.compress, to: b }\n  b: { use: http.headers, to: c }\n"
		     "  c: { use: http.compress, to: e }\n  e: { use: respond }\n",
	    "answers would be compressed twice, here and by stage 'c'");
	yaml_refused("  app: { use: http.compress, to: e, with: { codings: [deflate] } }\n  e: { "
		     "use: respond }\n",
	    "there is no coding 'deflate'");
	yaml_refused("  app: { use: http.compress, to: e, with: { codings: [gzip, GZIP] } }\n  e: "
		     "{ use: respond }\n",
	    "'GZIP' is named twice");
	yaml_refused(
	    "  app: { use: http.compress, to: e, with: { level: 0 } }\n  e: { use: respond }\n",
	    "level");
}

CUNIT_MAIN("http compress", {"negotiation", negotiation}, {"fields change", fields_change},
    {"left alone", left_alone}, {"in parts", in_parts}, {"torn", torn},
    {"without memory", without_memory}, {"refused configurations", refused})
