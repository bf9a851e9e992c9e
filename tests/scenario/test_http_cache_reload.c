/* SPDX-License-Identifier: MIT */
/* A reload with http.cache: what is stored stays, and requests that wait get their answer. */
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

static int64_t accepted(const struct cached *k, const struct server *next)
{
	return server_metric(&k->s, "http_accepted_total") +
	       server_metric(next, "http_accepted_total");
}

/* Connect to `next`: the server of `k`, which shares its socket, may still accept for a while. */
static int connect_to(const struct cached *k, const struct server *next)
{
	for (;;) {
		int64_t before = accepted(k, next);
		int c = client_open(next->port);
		FIXTURE_AWAIT(accepted(k, next) > before);
		if (server_metric(next, "http_accepted_total") > 0)
			return c;
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
	int old = k.u, c2 = connect_to(&k, &next);
	k.u = -1;
	if (keeps) {
		CU_ASSERT(cached_hit(&k, c2, GET("/a"), 200, "1", NULL));
	} else {
		CU_ASSERT(cached_fetch(&k, c2, GET("/a"), cached_reply(200, FRESH, "2"), 200, "2"));
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
