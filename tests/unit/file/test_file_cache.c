/* SPDX-License-Identifier: MIT */
/* file.cache: hits, which responses are kept, coalescing, the size limit, many threads at once. */
#include "file/cache_origin.h"

static void test_hit(void)
{
	SET_UP(NULL);
	struct call *a = get("/a"), *b = get("/a"), *c = get("/b");
	CU_ASSERT(call_body_is(a, "/a v1"));
	CU_ASSERT(call_body_is(b, "/a v1"));
	CU_ASSERT(call_body_is(c, "/b v1"));
	CU_ASSERT_PTR_EQUAL(a->t.req->res.body.p, b->t.req->res.body.p); /* nothing is copied */
	CU_ASSERT(call_has_field(b, "Content-Type: text/x\r\n"));
	CU_ASSERT(call_has_field(b, "ETag: \"v1\"\r\n"));
	CU_ASSERT_EQUAL(origin_get(&origin.asked), 2);
	CU_ASSERT_EQUAL(metric(CACHE_HITS), 1);
	CU_ASSERT_EQUAL(metric(CACHE_MISSES), 2);
	CU_ASSERT_EQUAL(metric(CACHE_OBJECTS), 2);
	CU_ASSERT(metric(CACHE_BYTES) > 0);
	tear_down();
}

static void test_queries_share(void)
{
	SET_UP(NULL);
	get("/a");
	struct call *c = make("/a");
	c->t.req->query = slice("v=2");
	call_send(c, cache);
	call_await(c);
	CU_ASSERT_EQUAL(metric(CACHE_HITS), 1);
	tear_down();
}

static void test_conditions_and_head(void)
{
	SET_UP(NULL);
	get("/a");
	struct call *c = get_with(WEIR_HTTP_GET, "/a", "If-None-Match", "\"v1\"");
	CU_ASSERT_EQUAL(call_status(c), 304);
	c = get_with(WEIR_HTTP_GET, "/a", "Range", "bytes=0-1");
	CU_ASSERT_EQUAL(call_status(c), 206);
	CU_ASSERT(call_body_is(c, "/a"));
	CU_ASSERT(call_has_field(c, "Content-Range: bytes 0-1/5\r\n"));
	c = get_with(WEIR_HTTP_GET, "/a", "Range", "bytes=5-");
	CU_ASSERT_EQUAL(call_status(c), 416);
	c = get_with(WEIR_HTTP_HEAD, "/a", NULL, NULL);
	CU_ASSERT_EQUAL(call_status(c), 200);
	CU_ASSERT_EQUAL(origin_get(&origin.asked), 1);
	CU_ASSERT_EQUAL(metric(CACHE_HITS), 4);
	tear_down();
}

/* A first request for less than the whole fetches the whole and gets the part it requested. */
static void test_part_first(void)
{
	static const struct {
		enum weir_http_method method;
		const char *path, *name, *value, *body;
		int status;
	} asks[] = {
	    {WEIR_HTTP_HEAD, "/a", NULL, NULL, NULL, 200},
	    {WEIR_HTTP_GET, "/b", "Range", "bytes=1-3", "b v", 206},
	    {WEIR_HTTP_GET, "/c", "Range", "bytes=5-", "416 Range Not Satisfiable\n", 416},
	    {WEIR_HTTP_GET, "/d", "If-None-Match", "\"v1\"", "", 304},
	    {WEIR_HTTP_GET, "/e", "If-None-Match", "\"x\"", "/e v1", 200},
	    {WEIR_HTTP_GET, "/f", "If-Match", "\"x\"", "412 Precondition Failed\n", 412},
	};

	SET_UP(NULL);
	for (int i = 0; i < 6; i++) {
		const char *path = asks[i].path;
		struct call *c = get_with(asks[i].method, path, asks[i].name, asks[i].value);
		CU_ASSERT_EQUAL(call_status(c), asks[i].status);
		CU_ASSERT(!asks[i].body || call_body_is(c, asks[i].body));
		CU_ASSERT_EQUAL(metric(CACHE_OBJECTS), i + 1);
		CU_ASSERT_EQUAL(c->t.req->method, asks[i].method); /* restored */
		CU_ASSERT_EQUAL(c->t.req->n_headers, asks[i].name != NULL);
		c = get(path);
		CU_ASSERT_EQUAL(c->t.req->res.body.n, 5);
	}
	CU_ASSERT_EQUAL(origin_get(&origin.asked), 6);
	CU_ASSERT_EQUAL(origin_get(&origin.validated), 0);
	CU_ASSERT_EQUAL(metric(CACHE_HITS), 6);
	CU_ASSERT_EQUAL(metric(CACHE_MISSES), 6);
	tear_down();
}

/* The same with a response that may not be kept: only the range is sent. */
static void test_part_of_not_cacheable(void)
{
	SET_UP(NULL);
	origin.no_store = true;
	/* The second passes through: the path is known as not kept. The origin has no ranges. */
	for (int i = 0; i < 2; i++) {
		struct call *c = get_with(WEIR_HTTP_GET, "/a", "Range", "bytes=1-3");
		CU_ASSERT_EQUAL(call_status(c), i == 0 ? 206 : 200);
		CU_ASSERT(call_body_is(c, i == 0 ? "a v" : "/a v1"));
	}
	CU_ASSERT_EQUAL(origin_get(&origin.asked), 2);
	tear_down();
}

/* A response for one client, or one of which the cache cannot send all requested parts, is not
 * fetched whole. */
static void test_not_public(void)
{
	SET_UP(NULL);
	get_with(WEIR_HTTP_GET, "/a", "Range", "bytes=0-0,2-2");
	get_with(WEIR_HTTP_GET, "/a", "Authorization", "Basic x");
	CU_ASSERT_EQUAL(metric(CACHE_OBJECTS), 0);
	get("/a");
	CU_ASSERT_EQUAL(metric(CACHE_OBJECTS), 1);
	CU_ASSERT_EQUAL(origin_get(&origin.asked), 3);
	get_with(WEIR_HTTP_POST, "/a", NULL, NULL);
	get_with(WEIR_HTTP_OTHER, "/a", NULL, NULL);
	CU_ASSERT_EQUAL(origin_get(&origin.asked), 5);
	CU_ASSERT_EQUAL(metric(CACHE_MISSES), 5);
	tear_down();
}

static void test_coalesced(void)
{
	SET_UP(NULL);
	start_held("/a", 50);
	CU_ASSERT_EQUAL(metric(CACHE_MISSES), 1);
	origin_gate(false);
	await_all();
	for (int i = 0; i < n_calls; i++) {
		CU_ASSERT_EQUAL(calls[i]->outcome, WEIR_OK);
		CU_ASSERT(call_body_is(calls[i], "/a v1"));
	}
	CU_ASSERT_EQUAL(origin_get(&origin.asked), 1);
	CU_ASSERT_EQUAL(metric(CACHE_COALESCED), 49);
	CU_ASSERT_EQUAL(metric(CACHE_HITS), 0);
	tear_down();
}

/* A response may not be kept: the waiting requests are sent on by themselves, and later ones do not
 * wait. */
static void test_not_cacheable(void)
{
	SET_UP(NULL);
	origin.no_store = true;
	start_held("/a", 5);
	origin_gate(false);
	await_all();
	CU_ASSERT_EQUAL(origin_get(&origin.asked), 5);
	origin_gate(true);
	start("/a");
	start("/a");
	FIXTURE_AWAIT(origin_get(&origin.at_gate) == 2); /* both at once */
	origin_gate(false);
	await_all();
	for (int i = 0; i < n_calls; i++)
		CU_ASSERT(call_body_is(calls[i], "/a v1"));
	CU_ASSERT_EQUAL(metric(CACHE_HITS), 0);
	tear_down();
}

static void test_too_large(void)
{
	SET_UP("with.max_object", "100");
	origin.bytes = 101;
	get("/a");
	CU_ASSERT_EQUAL(call_status(get("/a")), 200);
	CU_ASSERT_EQUAL(metric(CACHE_HITS), 0);
	origin.bytes = 100;
	get("/b");
	get("/b");
	CU_ASSERT_EQUAL(metric(CACHE_HITS), 1);
	tear_down();
}

/* The leader fails, but the requests that waited for it do not. */
static void test_leader_fails(void)
{
	SET_UP(NULL);
	origin.status = WEIR_EFAILED;
	start_held("/a", 5);
	origin_gate(false);
	await_all();
	for (int i = 0; i < n_calls; i++) {
		CU_ASSERT_EQUAL(calls[i]->outcome, WEIR_EFAILED);
		CU_ASSERT_EQUAL(call_status(calls[i]), 500);
	}
	CU_ASSERT_EQUAL(origin_get(&origin.asked), 5);
	CU_ASSERT_EQUAL(metric(CACHE_OBJECTS), 0);
	origin_set(&origin.status, 200);
	CU_ASSERT(call_body_is(get("/a"), "/a v1"));
	tear_down();
}

static void test_bound(void)
{
	SET_UP("with.size", "64KiB", "with.max_object", "8KiB");
	origin.bytes = 3000;
	for (int i = 0; i < 200; i++) {
		char path[32];
		snprintf(path, sizeof(path), "/%d", i);
		struct call *c = make(path);
		call_send(c, cache);
		call_await(c);
		CU_ASSERT(metric(CACHE_BYTES) <= 65536);
		weir_http_response_reset(c->t.req); /* sent */
	}
	CU_ASSERT(metric(CACHE_OBJECTS) > 5);
	CU_ASSERT(metric(CACHE_EVICTIONS) > 0);
	CU_ASSERT(metric(CACHE_OBJECTS) + metric(CACHE_EVICTIONS) <= 200);
	tear_down();
}

static void test_inline(void)
{
	SET_UP("threads", "inline");
	get("/a");
	start_held("/b", 5);
	CU_ASSERT(call_body_is(get("/a"), "/a v1"));
	origin_gate(false);
	await_all();
	CU_ASSERT_EQUAL(metric(CACHE_HITS), 1);
	CU_ASSERT_EQUAL(metric(CACHE_COALESCED), 4);
	tear_down();
}

/* Fields added by stages before the cache stay with their request. */
static void test_fields_before(void)
{
	SET_UP(NULL);
	for (int i = 0; i < 2; i++) {
		struct call *c = make("/a");
		weir_http_add_field(c->t.req, "X-Mine", i ? "two" : "one");
		call_send(c, cache);
		call_await(c);
		CU_ASSERT_EQUAL(call_has_field(c, "X-Mine: one\r\n"), i == 0);
		CU_ASSERT_EQUAL(call_has_field(c, "X-Mine: two\r\n"), i == 1);
		/* The leader has the origin's fields only once. */
		char *fields = request_fields(&c->t);
		char *etag = strstr(fields, "ETag: \"v1\"\r\n");
		CU_ASSERT(etag && !strstr(etag + 1, "ETag:"));
		free(fields);
	}
	tear_down();
}

/* Hits, negative hits, misses and responses that are never kept, all offered at once: each request
 * gets its own response. */
static void test_mixed_run(void)
{
	enum { KINDS = 4, CALLS = 40 };
	static const char *const names[KINDS] = {"/a", "/gone", "/new", "/a"};
	struct weir_event *ev[CALLS];
	struct call *c[CALLS];
	int reason = 0;

	SET_UP("with.negative", "1h");
	get("/a");
	origin_set(&origin.status, 404);
	get("/gone");
	origin_set(&origin.status, 200);
	for (int i = 0; i < CALLS; i++) {
		c[i] = make(names[i % KINDS]);
		if (i % KINDS == 3)
			c[i]->t.req->method = WEIR_HTTP_POST;
		ev[i] = &c[i]->t.req->ev;
		weir_event_init(ev[i], &weir_http_request_type, 1);
		weir_http_add_tap(c[i]->t.req, &c[i]->tap);
	}
	CU_ASSERT_EQUAL(weir_offer(cache, ev, CALLS, &reason), CALLS);
	await_all();
	for (int i = 0; i < CALLS; i++) {
		CU_ASSERT_EQUAL(c[i]->outcome, WEIR_OK);
		CU_ASSERT_EQUAL(call_status(c[i]), i % KINDS == 1 ? 404 : 200);
		CU_ASSERT(i % KINDS != 2 || call_body_is(c[i], "/new v1"));
		CU_ASSERT(i % KINDS == 2 || i % KINDS == 1 || call_body_is(c[i], "/a v1"));
	}
	/* One of the requests for /new leads; the others wait for it or find its object. */
	CU_ASSERT_EQUAL(metric(CACHE_HITS) + metric(CACHE_COALESCED), CALLS / KINDS * 3 - 1);
	CU_ASSERT_EQUAL(metric(CACHE_NEGATIVE), CALLS / KINDS);
	CU_ASSERT_EQUAL(metric(CACHE_MISSES), 2 + 1 + CALLS / KINDS);
	tear_down();
}

/* ---- torture: four clients, a small cache whose objects age at once, a root that changes ---- */

#define ASKERS 4
#define ROUNDS 1500

static atomic_int wrong;

static void *asker(void *arg)
{
	unsigned seed = (unsigned)(size_t)arg;
	struct call **mine = calloc(ROUNDS, sizeof(*mine));

	if (weir_thread_attach(graph, "asker") != 0)
		abort();
	for (int i = 0; i < ROUNDS; i++) {
		char path[16];
		seed = seed * 1103515245 + 12345;
		snprintf(path, sizeof(path), "/%u", (seed >> 16) % 60);
		struct call *c = mine[i] = call_new(path);
		call_send(c, cache);
		call_await(c);
		char letter = (char)('a' + (int)(weir_hash(slice(path)) % 26));
		const struct weir_slice *b = &c->t.req->res.body;
		if (call_status(c) != 200 || b->n != 2000 || b->p[0] != letter ||
		    b->p[1999] != letter)
			atomic_fetch_add(&wrong, 1);
		weir_http_response_reset(c->t.req);
		c->t.req->path = slice("/gone");
		if (i % 100 == 0)
			origin_set(&origin.etag, i);
	}
	weir_thread_detach();
	return mine;
}

static void test_torture(void)
{
	pthread_t th[ASKERS];
	struct call **made[ASKERS];

	SET_UP("with.size", "64KiB", "with.max_object", "4KiB", "with.revalidate", "1ms",
	    "with.stale", "1ms");
	origin.bytes = 2000;
	for (size_t i = 0; i < ASKERS; i++)
		pthread_create(&th[i], NULL, asker, (void *)(i + 1));
	for (int i = 0; i < ASKERS; i++)
		pthread_join(th[i], (void **)&made[i]);
	CU_ASSERT_EQUAL(atomic_load(&wrong), 0);
	CU_ASSERT(metric(CACHE_EVICTIONS) > 0);
	CU_ASSERT(metric(CACHE_BYTES) <= 65536);
	tear_down();
	for (int i = 0; i < ASKERS; i++) {
		for (int k = 0; k < ROUNDS; k++)
			call_free(made[i][k]);
		free(made[i]);
	}
}

static void check_init(const char *knob, const char *value, const char *words)
{
	struct weir_spec *spec = weir_spec_new("bad");
	struct weir_stage_spec *c = weir_spec_add_stage(spec, "cache", "file.cache");
	struct weir_errs *errs = calloc(1, sizeof(*errs));
	struct weir_graph *g = NULL;

	weir_spec_link(c, "miss", "origin", false);
	fixture_set(c, knob, value);
	/* may reallocate, so c is invalid from here */
	weir_spec_add_stage(spec, "origin", "t.origin");
	CU_ASSERT(weir_graph_build(spec, &g, errs) < 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(errs->err[0].text, words));
	weir_spec_free(spec);
	free(errs);
}

static void test_bad_configuration(void)
{
	check_init("with.root", "/nowhere/at/all", "cannot be opened: No such file or directory");
	check_init("with.max_object", "65MiB", "'max_object' is larger than 'size'");
}

CUNIT_MAIN("file.cache", {"register", test_register}, {"hit", test_hit},
    {"queries share", test_queries_share}, {"conditions and HEAD", test_conditions_and_head},
    {"part first", test_part_first}, {"part of what is not kept", test_part_of_not_cacheable},
    {"not public", test_not_public}, {"coalesced", test_coalesced},
    {"not cacheable", test_not_cacheable}, {"too large", test_too_large},
    {"leader fails", test_leader_fails}, {"bound", test_bound}, {"inline", test_inline},
    {"fields before", test_fields_before}, {"mixed run", test_mixed_run}, {"torture", test_torture},
    {"bad configuration", test_bad_configuration})
