/* SPDX-License-Identifier: MIT */
/* More handshakes than their stage can handle: they are refused at its entry like any other load,
 * and connected clients are served as usual. The stage is paused, so the numbers are exact. */
#include "fixture/graph/descriptors.h"
#include "fixture/http/tls.h"

static const struct tls_wish plain_wish;

/* A server whose handshake stage has a queue limit of `limit`. */
static struct server start(const char *limit, const char *timeout)
{
	struct server s = tls_server_new("t.reply", "one");
	struct weir_stage_spec *shake = &s.spec->stages[2];

	fixture_set(shake, "queue.limit", limit);
	fixture_set(shake, "admission.policy", "none");
	fixture_set(s.web, "with.header_timeout", timeout);
	server_start(&s);
	return s;
}

/* A new connection. */
static struct tls_client hello(struct server *s)
{
	return tls_client_hello(client_open(s->port), &plain_wish);
}

static uint64_t shed_at_stage(const struct server *s)
{
	struct weir_graph_view *view;
	uint64_t n = 0;

	if (weir_graph_view(s->graph, &view) != 0)
		return 0;
	for (int i = 0; i < view->n_stages; i++)
		for (int r = 0; r < WEIR_SHED_REASONS; r++)
			if (strcmp(view->stages[i].name, "shake") == 0)
				n += view->stages[i].class_view[0].shed[r];
	weir_graph_view_free(view);
	return n;
}

static void test_storm(void)
{
	enum { ROOM = 4, N = 60 };
	struct server s = start("4", "60s");
	struct tls_client friend = tls_client_open(s.port, &plain_wish), k[N];
	int done = 0;

	CU_ASSERT(tls_ask(&friend, GET("/before"), "GET /before\n"));
	server_steer(&s, "shake", WEIR_STEER_PAUSE);
	for (int i = 0; i < N; i++) {
		k[i] = hello(&s);
		CU_ASSERT(tls_ask(&friend, GET("/amid"), "GET /amid\n"));
	}
	AWAIT_METRIC(&s, "http_tls_failed_shed_total", ==, N - ROOM);
	CU_ASSERT_EQUAL(shed_at_stage(&s), N - ROOM);
	CU_ASSERT(tls_ask(&friend, GET("/still"), "GET /still\n"));
	server_steer(&s, "shake", WEIR_STEER_RUN);
	for (int i = 0; i < N; i++) {
		ERR_clear_error();
		if (SSL_do_handshake(k[i].ssl) == 1 && tls_ask(&k[i], GET("/in"), "GET /in\n"))
			done++;
		else /* closed with a TLS alert, not cut off */
			CU_ASSERT_EQUAL(ERR_GET_REASON(ERR_peek_error()),
			    SSL_AD_REASON_OFFSET + SSL_AD_INTERNAL_ERROR);
	}
	CU_ASSERT_EQUAL(done, ROOM);
	for (int i = 0; i < N; i++)
		tls_client_close(&k[i]);
	CU_ASSERT_EQUAL(server_metric(&s, "http_tls_handshakes_full_total"), ROOM + 1);
	AWAIT_METRIC(&s, "http_connections", ==, 1);
	CU_ASSERT_EQUAL(server_offered(&s), 1 + N + 1 + ROOM);
	tls_client_close(&friend);
	server_stop(&s);
}

/* Clients that leave, or whose time is over, while the stage has their handshake: their sockets are
 * closed when they are back in their I/O thread, never while the stage uses them. */
static void test_gone_meanwhile(void)
{
	enum { N = 5 };
	struct server s = start("100", "60s");
	struct tls_client k[N];
	int before = sockets_open();

	server_steer(&s, "shake", WEIR_STEER_PAUSE);
	for (int i = 0; i < N; i++)
		k[i] = hello(&s);
	AWAIT_METRIC(&s, "http_accepted_total", ==, N);
	for (int i = 0; i < N; i++)
		tls_client_close(&k[i]);
	server_steer(&s, "shake", WEIR_STEER_RUN);
	AWAIT_METRIC(&s, "http_tls_failed_closed_total", ==, N);
	AWAIT_METRIC(&s, "http_connections", ==, 0);
	FIXTURE_AWAIT(sockets_open() == before);
	server_stop(&s);
}

static void test_late_meanwhile(void)
{
	enum { N = 5 };
	struct server s = start("100", "80ms");
	struct tls_client k[N];
	int before = sockets_open();

	server_steer(&s, "shake", WEIR_STEER_PAUSE);
	for (int i = 0; i < N; i++)
		k[i] = hello(&s);
	for (int i = 0; i < N; i++)
		CU_ASSERT(client_at_end(k[i].fd));
	AWAIT_METRIC(&s, "http_tls_failed_timeout_total", ==, N);
	AWAIT_METRIC(&s, "http_connections", ==, 0);
	CU_ASSERT_EQUAL(sockets_open(), before + 2 * N); /* both ends */
	server_steer(&s, "shake", WEIR_STEER_RUN);
	for (int i = 0; i < N; i++)
		tls_client_close(&k[i]);
	FIXTURE_AWAIT(sockets_open() == before);
	CU_ASSERT_EQUAL(shed_at_stage(&s), N); /* too late to be handled */
	server_stop(&s);
}

/* The server stops while handshakes are queued: they are refused, and nothing is left behind. */
static void test_stop_meanwhile(void)
{
	enum { N = 5 };
	struct server s = start("100", "60s");
	struct tls_client k[N];
	int before = sockets_open();

	server_steer(&s, "shake", WEIR_STEER_PAUSE);
	for (int i = 0; i < N; i++)
		k[i] = hello(&s);
	AWAIT_METRIC(&s, "http_accepted_total", ==, N);
	server_stop(&s); /* resumes paused stages */
	for (int i = 0; i < N; i++)
		tls_client_close(&k[i]);
	CU_ASSERT_EQUAL(sockets_open(), before - 1); /* the listening socket is gone, too */
}

static void begin(void)
{
	tls_folder_make();
	tls_make("one", "DNS:localhost", true, 30);
}

CUNIT_MAIN("http_tls_storm", {"make files", begin}, {"storm", test_storm},
    {"gone meanwhile", test_gone_meanwhile}, {"late meanwhile", test_late_meanwhile},
    {"stop meanwhile", test_stop_meanwhile}, {"remove files", tls_end})
