/* SPDX-License-Identifier: MIT */
/* file.cache over time: negative responses, revalidation, stale objects, refusal, and drain. */
#include "file/cache_origin.h"

static void test_negative(void)
{
	SET_UP("with.negative", "1h");
	origin.status = 404;
	start_held("/a", 3);
	origin_gate(false);
	await_all();
	CU_ASSERT_EQUAL(call_status(get("/a")), 404);
	CU_ASSERT(call_body_is(calls[1], "404 Not Found\n"));
	CU_ASSERT_EQUAL(origin_get(&origin.asked), 1);
	tear_down();
	SET_UP("with.negative", "1ms");
	origin.status = 404;
	CU_ASSERT_EQUAL(call_status(get_until_asked("/a", 2)), 404);
	tear_down();
	SET_UP("with.negative", "0s");
	origin.status = 404;
	get("/a");
	get("/a");
	CU_ASSERT_EQUAL(origin_get(&origin.asked), 2);
	tear_down();
}

/* An aged object is revalidated with its ETag, and a 304 makes it fresh again. */
static void test_revalidated(void)
{
	SET_UP("with.revalidate", "1ms", "with.stale", "1h");
	struct call *first = get("/a"), *last = get_until_asked("/a", 3);
	CU_ASSERT_EQUAL(origin_get(&origin.validated), 2);
	CU_ASSERT_EQUAL(call_status(last), 200);
	CU_ASSERT_PTR_EQUAL(first->t.req->res.body.p, last->t.req->res.body.p);
	CU_ASSERT_EQUAL(metric(CACHE_REVALIDATED), 2);
	CU_ASSERT_EQUAL(metric(CACHE_MISSES), 1);
	CU_ASSERT_EQUAL(metric(CACHE_OBJECTS), 1);
	for (int i = 0; i < n_calls; i++)
		CU_ASSERT(call_body_is(calls[i], "/a v1"));
	tear_down();
}

/* After a 304 the object counts as just checked. */
static void test_confirmed(void)
{
	SET_UP("with.revalidate", "1ms", "with.stale", "1h");
	struct cache_object *o = get("/a")->t.req->res.release_arg;
	int64_t first_ns = atomic_load(&o->checked_ns);
	struct call *c = get_until_asked("/a", 2);
	CU_ASSERT_PTR_EQUAL(c->t.req->res.release_arg, o);
	CU_ASSERT(atomic_load(&o->checked_ns) >= first_ns + 1000000);
	tear_down();
}

static void test_changed(void)
{
	SET_UP("with.revalidate", "1ms", "with.stale", "1h");
	get("/a");
	origin_set(&origin.etag, 2);
	struct call *c = get_until_asked("/a", 2);
	CU_ASSERT(call_body_is(c, "/a v2"));
	CU_ASSERT(call_has_field(c, "ETag: \"v2\"\r\n"));
	CU_ASSERT_EQUAL(metric(CACHE_OBJECTS), 1);
	origin_set(&origin.status, 404);
	CU_ASSERT_EQUAL(call_status(get_until_asked("/a", 3)), 404);
	tear_down();
}

/* The client's own conditions apply, whatever they are, and those that the cache adds are not
 * visible. */
static void check_asked_aged(
    enum weir_http_method method, const char *name, const char *value, int status)
{
	struct call *c;

	SET_UP("with.revalidate", "1ms", "with.stale", "1h");
	get("/a");
	do {
		c = get_with(method, "/a", name, value);
		CU_ASSERT_EQUAL(call_status(c), status);
		CU_ASSERT_EQUAL(c->t.req->method, method);
		CU_ASSERT_EQUAL(c->t.req->n_headers, name != NULL);
		CU_ASSERT_PTR_EQUAL(c->t.req->headers, c->t.headers);
	} while (origin_get(&origin.validated) == 0);
	CU_ASSERT_EQUAL(metric(CACHE_OBJECTS), 1);
	tear_down();
}

/* The same when the new response may not be kept: then only the cache evaluates the conditions. */
static struct call *ask_not_kept(const char *name, const char *value, const char *modified)
{
	SET_UP("with.revalidate", "1ms", "with.stale", "1h");
	get("/a");
	pthread_mutex_lock(&origin.lock);
	origin.no_store = true;
	origin.etag = 2;
	origin.modified = modified;
	pthread_mutex_unlock(&origin.lock);
	struct call *c;
	do
		c = get_with(WEIR_HTTP_GET, "/a", name, value);
	while (origin_get(&origin.asked) == 1);
	CU_ASSERT_EQUAL(metric(CACHE_REVALIDATED), 1);
	CU_ASSERT_EQUAL(c->outcome, WEIR_OK);
	return c;
}

static void check_not_kept(const char *name, const char *value, int status, const char *body)
{
	struct call *c = ask_not_kept(name, value, NULL);

	CU_ASSERT_EQUAL(call_status(c), status);
	CU_ASSERT(*body ? call_body_is(c, body) : c->t.req->res.body.n == 0);
	CU_ASSERT_EQUAL(c->t.req->res.no_length, status == 304);
	CU_ASSERT_EQUAL(call_has_field(c, "ETag: \"v2\"\r\n"), status != 412 && status != 416);
	CU_ASSERT_EQUAL(
	    call_has_field(c, "Cache-Control: no-store\r\n"), status != 412 && status != 416);
	CU_ASSERT_EQUAL(
	    call_has_field(c, "Content-Type: text/x\r\n"), status == 200 || status == 206);
	CU_ASSERT_EQUAL(call_has_field(c, "Content-Range: bytes 0-1/5\r\n"), status == 206);
	CU_ASSERT_EQUAL(call_has_field(c, "Content-Range: bytes */5\r\n"), status == 416);
	tear_down();
}

static void test_not_kept(void)
{
	check_not_kept("If-None-Match", "\"v2\"", 304, "");
	check_not_kept("If-None-Match", "\"v1\"", 200, "/a v2");
	check_not_kept("If-Match", "\"v1\"", 412, "412 Precondition Failed\n");
	check_not_kept("If-Match", "\"v2\"", 200, "/a v2");
	check_not_kept("Range", "bytes=0-1", 206, "/a");
	check_not_kept("Range", "bytes=9-", 416, "416 Range Not Satisfiable\n");
	check_not_kept("Range", "bytes=0-0,3-4", 200, "/a v2"); /* as RFC 9110, 14.2 allows */
	check_not_kept("X-Other", "1", 200, "/a v2");
}

/* The status of a request with If-Modified-Since: `value`, for a response with this date. */
static int status_since(const char *value, const char *modified)
{
	int status = call_status(ask_not_kept("If-Modified-Since", value, modified));

	tear_down();
	return status;
}

static void test_not_kept_date(void)
{
	static const char first[] = "Thu, 01 Jan 2026 00:00:00 GMT",
			  second[] = "Thu, 01 Jan 2026 00:00:01 GMT";

	CU_ASSERT_EQUAL(status_since(second, second), 304);
	CU_ASSERT_EQUAL(status_since(second, first), 304);
	CU_ASSERT_EQUAL(status_since(first, second), 200);
	CU_ASSERT_EQUAL(status_since(second, NULL), 200);
	CU_ASSERT_EQUAL(status_since(second, "yesterday"), 200);
}

static void test_disguise(void)
{
	check_asked_aged(WEIR_HTTP_GET, "If-None-Match", "\"v1\"", 304);
	check_asked_aged(WEIR_HTTP_GET, "If-None-Match", "\"v0\"", 200);
	check_asked_aged(WEIR_HTTP_GET, "Range", "bytes=0-1", 206);
	check_asked_aged(WEIR_HTTP_GET, "X-Other", "1", 200);
	check_asked_aged(WEIR_HTTP_HEAD, NULL, NULL, 200);
}

/* While one request revalidates, the others get the old object at once. */
static void test_stale_while_asking(void)
{
	SET_UP("with.revalidate", "1ms", "with.stale", "1h");
	get("/a");
	origin_gate(true);
	struct call *asking = start_at_gate("/a");
	for (int i = 0; i < 10; i++)
		CU_ASSERT(call_body_is(get("/a"), "/a v1"));
	FIXTURE_AWAIT(origin_get(&origin.at_gate) == 1);
	origin_gate(false);
	await_all();
	CU_ASSERT_EQUAL(call_status(asking), 200);
	CU_ASSERT_EQUAL(metric(CACHE_COALESCED), 0);
	tear_down();
}

/* A private request neither revalidates nor waits: it gets the old object. */
static void test_stale_for_a_private_request(void)
{
	SET_UP("with.revalidate", "1ms", "with.stale", "1h");
	struct cache_object *o = get("/a")->t.req->res.release_arg;
	do
		weir_thread_flush(); /* reads the clock */
	while (weir_now_ns(cache) <= atomic_load(&o->due_ns));
	CU_ASSERT(call_body_is(get_with(WEIR_HTTP_GET, "/a", "Authorization", "Basic x"), "/a v1"));
	CU_ASSERT_EQUAL(origin_get(&origin.asked), 1);
	tear_down();
}

/* After `stale` the object is not used: requests wait for the one that revalidates. */
static void test_too_old_to_show(void)
{
	SET_UP("with.revalidate", "1ms", "with.stale", "0s");
	get("/a");
	origin_set(&origin.etag, 2);
	origin_gate(true);
	start_at_gate("/a");
	for (int i = 0; i < 5; i++)
		start("/a");
	FIXTURE_AWAIT(metric(CACHE_COALESCED) == 5);
	origin_gate(false);
	await_all();
	for (int i = n_calls - 5; i < n_calls; i++)
		CU_ASSERT(call_body_is(calls[i], "/a v2"));
	tear_down();
}

static void turn(const char *knob, const char *value)
{
	char why[128];

	CU_ASSERT_EQUAL_FATAL(weir_graph_set(graph, "cache", knob, value, why, sizeof(why)), 0);
}

/* A revalidation in progress does not make an object younger than it is. */
static void test_too_old_while_asking(void)
{
	SET_UP("with.revalidate", "1ms", "with.stale", "0s");
	struct cache_object *o = get("/a")->t.req->res.release_arg;
	do
		weir_thread_flush(); /* reads the clock */
	while (weir_now_ns(cache) <= atomic_load(&o->due_ns));
	turn("with.revalidate", "1h"); /* the object may be used again, for an hour */
	origin_gate(true);
	start("/a"); /* revalidates; within this hour no other request may do that */
	FIXTURE_AWAIT(origin_get(&origin.at_gate) == 1);
	CU_ASSERT(call_body_is(get("/a"), "/a v1"));
	turn("with.revalidate", "1ms"); /* now the object may not be used */
	struct call *c = start("/a");
	FIXTURE_AWAIT(atomic_load(&c->done) || metric(CACHE_COALESCED) == 1);
	CU_ASSERT(!atomic_load(&c->done));
	origin_gate(false);
	await_all();
	tear_down();
}

/* Two requests in the origin's handlers and one in its queue, which is then full. */
static void fill_origin(void)
{
	char why[128];

	origin_gate(true);
	CU_ASSERT_EQUAL(weir_graph_set(graph, "origin", "queue.limit", "1", why, sizeof(why)), 0);
	start("/b");
	FIXTURE_AWAIT(origin_get(&origin.at_gate) == 1);
	start("/c");
	FIXTURE_AWAIT(origin_get(&origin.at_gate) == 2);
	start("/d");
	FIXTURE_AWAIT(queued() == 1);
}

/* The next stage refuses under load: old objects are used, requests for new ones are shed. */
static void test_refused(void)
{
	SET_UP("with.revalidate", "1ms", "with.stale", "1h");
	get("/a");
	fill_origin();
	for (int64_t asked = metric(CACHE_REVALIDATED); metric(CACHE_REVALIDATED) < asked + 3;)
		CU_ASSERT(call_body_is(get("/a"), "/a v1"));
	struct call *c = get("/e");
	CU_ASSERT_EQUAL(c->outcome, WEIR_EQUEUE);
	CU_ASSERT_EQUAL(call_status(c), 503);
	origin_gate(false);
	await_all();
	tear_down();
}

/* The next stage refuses, and the object is older than `revalidate` and `stale` together: it is not
 * used. */
static void test_refused_and_too_old(void)
{
	SET_UP("with.revalidate", "1ms", "with.stale", "1ms");
	struct cache_object *o = get("/a")->t.req->res.release_arg;
	fill_origin();
	do
		weir_thread_flush(); /* reads the clock */
	while (weir_now_ns(cache) < atomic_load(&o->checked_ns) + 2000000);
	struct call *c = get("/a");
	CU_ASSERT_EQUAL(c->outcome, WEIR_EQUEUE);
	CU_ASSERT_EQUAL(call_status(c), 503);
	turn("with.stale", "1h"); /* now the object may be used */
	CU_ASSERT(call_body_is(get("/a"), "/a v1"));
	origin_gate(false);
	await_all();
	tear_down();
}

static void *open_gate_when_closed(void *arg)
{
	/* The drain finishes the held requests when it ends, which is before the gate opens. */
	call_await(arg);
	origin_gate(false);
	return NULL;
}

/* When the grace time ends, held requests are finished as closed, and the counters balance. */
static void test_drain_ends_held(void)
{
	pthread_t opener;

	SET_UP(NULL);
	start_held("/a", 10);
	weir_thread_detach();
	pthread_create(&opener, NULL, open_gate_when_closed, calls[9]);
	check_books(1000000);
	pthread_join(opener, NULL);
	for (int i = 1; i < n_calls; i++)
		CU_ASSERT_EQUAL(calls[i]->outcome, WEIR_ECLOSED);
	free_all();
}

static void *open_gate_when_draining(void *arg)
{
	(void)arg;
	FIXTURE_AWAIT(!weir_graph_ready(graph));
	origin_gate(false);
	return NULL;
}

/* With enough time nothing is lost. */
static void test_drain_waits(void)
{
	pthread_t opener;

	SET_UP(NULL);
	start_held("/a", 10);
	weir_thread_detach();
	pthread_create(&opener, NULL, open_gate_when_draining, NULL);
	check_books(60000000000);
	pthread_join(opener, NULL);
	for (int i = 0; i < n_calls; i++)
		CU_ASSERT_EQUAL(calls[i]->outcome, WEIR_OK);
	free_all();
}

CUNIT_MAIN("file.cache over time", {"register", test_register}, {"negative", test_negative},
    {"revalidated", test_revalidated}, {"confirmed", test_confirmed}, {"changed", test_changed},
    {"disguise", test_disguise}, {"not kept", test_not_kept},
    {"date of what is not kept", test_not_kept_date},
    {"stale while asking", test_stale_while_asking}, {"too old to show", test_too_old_to_show},
    {"too old while asking", test_too_old_while_asking}, {"refused", test_refused},
    {"refused and too old", test_refused_and_too_old}, {"drain ends held", test_drain_ends_held},
    {"drain waits", test_drain_waits},
    {"stale for a private request", test_stale_for_a_private_request})
