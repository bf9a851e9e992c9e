/* SPDX-License-Identifier: MIT */
/* Reloads as HTTPS clients see them: connections keep their keys, tickets stay valid, handshakes in
 * progress continue, and a replaced certificate file is used for the next client, whether or not
 * anything else has changed. */
#include "fixture/graph/drain.h"
#include "fixture/http/tls.h"

static const struct tls_wish plain_wish;

static struct weir_graph *build(struct weir_spec *spec)
{
	struct weir_errs errs = {0};
	struct weir_graph *g = NULL;
	int rc = weir_graph_build(spec, &g, &errs);

	if (rc != 0)
		fprintf(stderr, "%s\n", errs.err[0].text);
	CU_ASSERT_EQUAL_FATAL(rc, 0);
	return g;
}

/* Replace `s` by a server like it; `s` ends. */
static struct server followed(struct server *s, struct server next)
{
	struct weir_drain_report report = {0};
	struct weir_errs errs = {0};

	next.graph = build(next.spec);
	CU_ASSERT_EQUAL_FATAL(weir_graph_succeed(next.graph, s->graph, &errs), 0);
	next.port = weir_http_port(weir_graph_stage(next.graph, "web"), 0);
	weir_graph_drain(s->graph, 10000000000LL, &report);
	CU_ASSERT_EQUAL(report.law_error, 0);
	CU_ASSERT_EQUAL(report.closed, 0);
	weir_graph_free(s->graph);
	return next;
}

static void test_open_stay(void)
{
	struct server s = tls_server_new("t.reply", "one");
	struct answer a = {0};

	server_start(&s);
	struct tls_client idle = tls_client_open(s.port, &plain_wish);
	struct tls_client half = tls_client_open(s.port, &plain_wish);
	CU_ASSERT(tls_ask(&idle, GET("/old"), "GET /old\n"));
	CU_ASSERT(tls_say(&half, "GET /half HTTP/1.1\r\nHo"));
	AWAIT_METRIC(&s, "http_tls_connections", ==, 2);
	s = followed(&s, tls_server_new("t.reply", "one"));
	CU_ASSERT(tls_ask(&idle, GET("/new"), "GET /new\n"));
	CU_ASSERT(tls_say(&half, "st: t\r\n\r\n"));
	CU_ASSERT(tls_answer(&half, &a) && answer_is(&a, 200, "GET /half\n"));
	CU_ASSERT_EQUAL(server_metric(&s, "http_accepted_total"), 2); /* by the old server */
	CU_ASSERT_EQUAL(server_metric(&s, "http_tls_connections"), 2);
	AWAIT_METRIC(&s, "http_memory_bytes", >=, 2 * 16384);
	CU_ASSERT(tls_say(&idle, GET("/big/5000000")));
	CU_ASSERT(tls_answer(&idle, &a) && a.n == 5000000);
	tls_client_close(&idle);
	tls_client_close(&half);
	AWAIT_METRIC(&s, "http_tls_connections", ==, 0);
	AWAIT_METRIC(&s, "http_memory_bytes", ==, 0);
	answer_free(&a);
	server_stop(&s);
}

static void resume(int version)
{
	struct server s = tls_server_new("t.reply", "one");
	struct tls_wish wish = {.version = version};

	server_start(&s);
	struct tls_client k = tls_client_open(s.port, &wish);
	CU_ASSERT(tls_ask(&k, GET("/x"), "GET /x\n"));
	tls_client_close(&k);
	for (int i = 0; i < 2; i++)
		s = followed(&s, tls_server_new("t.reply", "one"));
	wish.session = tls_newest;
	tls_newest = NULL;
	CU_ASSERT_PTR_NOT_NULL_FATAL(wish.session);
	k = tls_client_open(s.port, &wish);
	CU_ASSERT_EQUAL(SSL_session_reused(k.ssl), 1);
	CU_ASSERT(tls_ask(&k, GET("/y"), "GET /y\n"));
	CU_ASSERT_EQUAL(server_metric(&s, "http_tls_handshakes_resumed_total"), 1);
	SSL_SESSION_free(wish.session);
	tls_client_close(&k);
	server_stop(&s);
}

static void test_tickets(void)
{
	resume(TLS1_2_VERSION);
	resume(TLS1_3_VERSION);
}

/* Write the output of `k` to *bytes, which the caller frees. */
static size_t hello_of(struct tls_client *k, char **bytes)
{
	BIO *mem = BIO_new(BIO_s_mem());
	char *p;

	SSL_set0_rbio(k->ssl, BIO_new(BIO_s_mem()));
	SSL_set0_wbio(k->ssl, mem);
	CU_ASSERT_NOT_EQUAL(SSL_do_handshake(k->ssl), 1);
	size_t n = (size_t)BIO_get_mem_data(mem, &p);
	*bytes = malloc(n);
	memcpy(*bytes, p, n);
	SSL_set_fd(k->ssl, k->fd);
	return n;
}

/* Half a hello before the reload, half after it; and a silent client. */
static void test_shaking(void)
{
	struct server s = tls_server_new("t.reply", "one");
	char *bytes;

	server_start(&s);
	struct tls_client k = tls_client_over(client_open(s.port), &plain_wish);
	struct tls_client silent = tls_client_over(client_open(s.port), &plain_wish);
	size_t n = hello_of(&k, &bytes);
	CU_ASSERT(client_send(k.fd, bytes, n / 2));
	AWAIT_METRIC(&s, "http_accepted_total", ==, 2);
	s = followed(&s, tls_server_new("t.reply", "one"));
	CU_ASSERT(client_send(k.fd, bytes + n / 2, n - n / 2));
	free(bytes);
	CU_ASSERT(tls_shake_hands(&k) && tls_shake_hands(&silent));
	CU_ASSERT(tls_ask(&k, GET("/k"), "GET /k\n"));
	CU_ASSERT(tls_ask(&silent, GET("/s"), "GET /s\n"));
	CU_ASSERT_EQUAL(server_metric(&s, "http_tls_handshakes_full_total"), 2);
	tls_client_close(&k);
	tls_client_close(&silent);
	server_stop(&s);
}

/* The handshake is in the stage at the reload: it is completed there, and the connection is handed
 * over. */
static void test_away(void)
{
	struct server s = tls_server_new("t.reply", "one"), next;
	struct weir_drain_report report = {0};
	struct weir_errs errs = {0};
	char why[256], *bytes;

	server_start(&s);
	CU_ASSERT_EQUAL(weir_graph_steer(s.graph, "shake", WEIR_STEER_PAUSE, why, sizeof(why)), 0);
	struct tls_client k = tls_client_over(client_open(s.port), &plain_wish);
	size_t n = hello_of(&k, &bytes);
	CU_ASSERT(client_send(k.fd, bytes, n));
	free(bytes);
	AWAIT_METRIC(&s, "http_accepted_total", ==, 1);
	next = tls_server_new("t.reply", "one");
	next.graph = build(next.spec);
	CU_ASSERT_EQUAL_FATAL(weir_graph_succeed(next.graph, s.graph, &errs), 0);
	weir_graph_steer(next.graph, "shake", WEIR_STEER_RUN, why, sizeof(why));
	weir_graph_drain(s.graph, 10000000000LL, &report); /* resumes paused stages */
	CU_ASSERT_EQUAL(report.law_error, 0);
	weir_graph_free(s.graph);
	CU_ASSERT(tls_shake_hands(&k));
	CU_ASSERT(tls_ask(&k, GET("/k"), "GET /k\n"));
	tls_client_close(&k);
	server_stop(&next);
}

/* A record of many requests: the old server has decrypted more of it than it has processed, and no
 * epoll edge reports that to the new one. */
static void test_decrypted(void)
{
	enum { N = 300 };
	struct server s = tls_server_new("t.reply", "one"), next = tls_server_new("t.reply", "one");
	char text[16000] = GET("/wait/decrypted"), body[64];
	struct weir_errs errs = {0};
	struct answer a = {0};
	struct drain d;

	fixture_set(s.web, "with.threads", "1");
	fixture_set(next.web, "with.threads", "1");
	server_start(&s);
	struct tls_client idle = tls_client_open(s.port, &plain_wish);
	struct tls_client k = tls_client_open(s.port, &plain_wish);
	for (int i = 0; i < N; i++)
		sprintf(text + strlen(text), "GET /%d HTTP/1.1\r\nHost: t\r\n\r\n", i);
	CU_ASSERT(tls_say(&k, text));
	gate_await(1);
	next.graph = build(next.spec);
	CU_ASSERT_EQUAL_FATAL(weir_graph_succeed(next.graph, s.graph, &errs), 0);
	drain_call(&d, s.graph, DRAIN_ALL_NS);
	AWAIT_METRIC(&next, "http_tls_connections", ==, 1); /* the handover has begun */
	gate_open("decrypted");
	CU_ASSERT(tls_answer(&k, &a) && answer_is(&a, 200, "GET /wait/decrypted\n"));
	for (int i = 0; i < N; i++) {
		snprintf(body, sizeof(body), "GET /%d\n", i);
		CU_ASSERT_FATAL(tls_answer(&k, &a) && answer_is(&a, 200, body));
	}
	drain_end(&d);
	answer_free(&a);
	tls_client_close(&idle);
	tls_client_close(&k);
	server_stop(&next);
}

/* Expect the certificate `name` to be in use. */
static void expect_shown(struct server *s, const char *name)
{
	struct tls_client k = tls_client_open(s->port, &plain_wish);

	CU_ASSERT_STRING_EQUAL(tls_shown(&k), name);
	tls_client_close(&k);
}

static void move_pair(const char *from, const char *to)
{
	char a[64], b[64];

	for (int i = 0; i < 2; i++) {
		snprintf(a, sizeof(a), "%s.%s", from, i ? "key" : "pem");
		snprintf(b, sizeof(b), "%s.%s", to, i ? "key" : "pem");
		CU_ASSERT_EQUAL_FATAL(rename(tls_path(a), tls_path(b)), 0);
	}
}

struct renewed {
	int n;
	char stage[32], text[512];
};

static void note_renewed(void *arg, const char *stage, const char *text)
{
	struct renewed *r = arg;

	r->n++;
	snprintf(r->stage, sizeof(r->stage), "%s", stage);
	snprintf(r->text, sizeof(r->text), "%s", text);
}

/* The stage, the name, and the expiry of both certificates. */
static void check_renewed(const struct renewed *r)
{
	CU_ASSERT_STRING_EQUAL(r->stage, "web");
	CU_ASSERT_PTR_NOT_NULL(strstr(r->text, "certificate for second, valid until 20"));
	CU_ASSERT_PTR_NOT_NULL(strstr(r->text, " (before: first, until 20"));
}

/* Nothing changes in the YAML: the graph continues with the new certificate. */
static void test_new_certificate(void)
{
	struct server s;

	tls_make("first", NULL, false, 30);
	tls_make("second", NULL, false, 30);
	move_pair("first", "site");
	s = tls_server_new("t.reply", "site");
	server_start(&s);
	struct tls_client old = tls_client_open(s.port, &plain_wish);
	CU_ASSERT_STRING_EQUAL(tls_shown(&old), "first");
	move_pair("second", "site");
	expect_shown(&s, "first");
	for (int i = 0; i < 2; i++) { /* the second time with the same files */
		struct weir_graph *wanted = build(tls_server_new("t.reply", "site").spec);
		int turned = -1;
		struct renewed renewed = {0};
		weir_graph_renewed(s.graph, wanted, note_renewed, &renewed);
		CU_ASSERT_EQUAL(renewed.n, i == 0);
		if (i == 0)
			check_renewed(&renewed);
		CU_ASSERT_EQUAL(weir_graph_configure(s.graph, wanted, &turned), 0);
		CU_ASSERT_EQUAL(turned, 0);
		weir_graph_free(wanted);
		expect_shown(&s, "second");
	}
	CU_ASSERT(tls_ask(&old, GET("/old"), "GET /old\n"));
	tls_client_close(&old);
	server_stop(&s);
}

CUNIT_MAIN("http_tls_reload", {"make files", tls_begin}, {"open ones stay", test_open_stay},
    {"tickets stay good", test_tickets}, {"shaking", test_shaking}, {"away", test_away},
    {"decrypted bytes", test_decrypted}, {"a new certificate", test_new_certificate},
    {"remove files", tls_end})
