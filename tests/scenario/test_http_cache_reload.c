/* SPDX-License-Identifier: MIT */
/* A reload with http.cache: what is stored stays, and requests that wait get their answer. */
#include <poll.h>

#include "fixture/graph/drain.h"
#include "fixture/http/cached.h"

#define FRESH "Cache-Control: max-age=1000\r\n"

/* Let `next` replace the server of `k`, which drains in a thread of its own. */
static void replace(struct cached *k, struct server *next, struct drain *d)
{
	struct weir_errs errs = {0};

	CU_ASSERT_EQUAL_FATAL(weir_graph_build(next->spec, &next->graph, &errs), 0);
	CU_ASSERT_EQUAL_FATAL(weir_graph_succeed(next->graph, k->s.graph, &errs), 0);
	next->port = weir_http_port(weir_graph_stage(next->graph, "web"), 0);
	drain_call(d, k->s.graph, DRAIN_ALL_NS);
}

/* Ask `next` for /a over a new connection, whose cache has nothing. The server of `k`, which shares its socket, may
 * still accept for a while; it answers from its own. */
static int ask_next(const struct cached *k, const struct server *next)
{
	for (;;) {
		int c = client_open(next->port);
		struct pollfd p[] = {{c, POLLIN, 0}, {k->o.fd, POLLIN, 0}};
		client_say(c, GET("/a"));
		CU_ASSERT_FATAL(poll(p, 2, WAIT_MS) > 0);
		if (p[1].revents)
			return c;
		CU_ASSERT(client_gets(c, 200, "1"));
		close(c);
	}
}

static void reload(bool keeps)
{
	struct cached k = cached_new();
	struct weir_stage_spec *cache;
	struct server next = cached_server(&k.o, &cache);
	struct drain d;

	if (!keeps)
		fixture_set(cache, "with.memory", "2MiB");
	fixture_set(cache, "with.stale_if_error", "5s");
	cached_start(&k);
	CU_ASSERT(cached_fetch(&k, k.c, GET("/a"), cached_reply(200, FRESH, "1"), 200, "1"));
	/* one request leads, one waits */
	int c = client_open(k.s.port);
	client_say(k.c, GET("/b"));
	cached_head(&k);
	client_say(c, GET("/b"));
	CACHED_AWAIT(&k, "collapsed_total", 1);
	replace(&k, &next, &d);
	int old = k.u, c2;
	k.u = -1;
	if (keeps) {
		c2 = client_open(next.port);
		CU_ASSERT(cached_hit(&k, c2, GET("/a"), 200, "1", NULL));
	} else {
		c2 = ask_next(&k, &next);
		cached_head(&k);
		client_say(k.u, cached_reply(200, FRESH, "2"));
		CU_ASSERT(client_gets(c2, 200, "2"));
	}
	client_say(old, cached_reply(200, FRESH, "3"));
	CU_ASSERT(client_gets(k.c, 200, "3"));
	CU_ASSERT(client_gets(c, 200, "3"));
	drain_end(&d);
	CU_ASSERT_EQUAL(d.report.closed, 0);
	/* what the old server has stored is there */
	if (keeps) {
		CU_ASSERT(cached_hit(&k, c2, GET("/b"), 200, "3", NULL));
	}
	close(c);
	close(c2);
	close(k.c);
	close(old);
	if (k.u >= 0)
		close(k.u);
	server_stop(&next);
	origin_free(&k.o);
}

static void reload_keeps(void)
{
	reload(true);
}

static void reload_drops(void)
{
	reload(false);
}

CUNIT_MAIN("http.cache reload", {"what is stored stays", reload_keeps},
    {"another limit begins anew", reload_drops})
