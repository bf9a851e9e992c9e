/* SPDX-License-Identifier: MIT */
/* Flights without a cache: which request leads, which are reported busy, and the results after
 * close. */
#include "file/cache_flight.h"

#include "cunit_main.h"
#include "file/cache_request.h"

static struct cache_table *table;
static struct cache_flights flights;

static void set_up(void)
{
	CU_ASSERT_EQUAL_FATAL(cache_table_new(1 << 20, &table), 0);
	memset(&flights, 0, sizeof(flights));
	flights_init(&flights, table);
	urcu_memb_register_thread();
}

static void tear_down(void)
{
	urcu_memb_unregister_thread();
	flights_fini(&flights);
	cache_table_put(table);
}

/* A request with a flight of its own, before flights_board. */
struct passenger {
	struct test_request t;
	struct cache_flight *f;
	struct weir_event *ev;
	struct cache_object *found;
};

static void passenger_init(struct passenger *p, const char *path, uint64_t hash)
{
	request_init(&p->t, path);
	p->f = flight_new(NULL, p->t.req, hash, NULL);
	p->ev = &p->t.req->ev;
	p->found = NULL;
}

static void passenger_fini(struct passenger *p)
{
	flight_free(p->f);
	request_fini(&p->t);
}

static enum flight_boarding board(struct passenger *p, bool wait)
{
	return flights_board(&flights, p->f, &p->ev, wait, &p->found);
}

static void test_one_leads(void)
{
	struct passenger a, b, c;

	set_up();
	passenger_init(&a, "/a", 7);
	passenger_init(&b, "/a", 7);
	passenger_init(&c, "/c", 7); /* another key with the same hash */
	CU_ASSERT_EQUAL(board(&a, true), FLIGHT_LEADS);
	CU_ASSERT_EQUAL(board(&b, false), FLIGHT_BUSY);
	CU_ASSERT_EQUAL(board(&c, false), FLIGHT_LEADS);
	CU_ASSERT_PTR_NOT_NULL(b.ev);
	CU_ASSERT_PTR_NULL(flights_land(&flights, a.f));
	CU_ASSERT_EQUAL(board(&b, false), FLIGHT_LEADS);
	CU_ASSERT_PTR_NULL(flights_land(&flights, b.f));
	CU_ASSERT_PTR_NULL(flights_land(&flights, c.f));
	passenger_fini(&a);
	passenger_fini(&b);
	passenger_fini(&c);
	tear_down();
}

static void put(const char *path, uint64_t hash, int64_t now_ns)
{
	const struct cache_limits limits = {1000, 0, 1000000000, 1000000000, 0, INT64_MAX};
	struct test_request t;
	struct cache_object *o;
	struct cache_change change;

	request_init(&t, path);
	weir_http_respond(t.req, 200, NULL, slice("x"), NULL, NULL);
	CU_ASSERT_EQUAL_FATAL(
	    cache_object_new(t.req, 0, hash, t.req->path, 0, &limits, now_ns, &o), 0);
	cache_table_insert(table, o, &change);
	cache_object_put(o);
	request_fini(&t);
}

/* An object inserted after the caller's lookup is found, unless it has expired. */
static void test_found(void)
{
	struct passenger a, b;

	set_up();
	passenger_init(&a, "/a", 7);
	passenger_init(&b, "/b", 8);
	put("/a", 7, weir_now_ns(NULL));
	put("/b", 8, 0);
	CU_ASSERT_EQUAL(board(&a, true), FLIGHT_FOUND);
	CU_ASSERT(a.found && weir_slice_is(a.found->key, "/a"));
	cache_object_put(a.found);
	CU_ASSERT_EQUAL(board(&b, true), FLIGHT_LEADS);
	CU_ASSERT_PTR_NULL(b.found);
	CU_ASSERT_PTR_NULL(flights_land(&flights, b.f));
	passenger_fini(&a);
	passenger_fini(&b);
	tear_down();
}

/* A closed cache holds no more requests; flights in progress can still land. */
static void test_closed(void)
{
	struct passenger a, b;

	set_up();
	passenger_init(&a, "/a", 7);
	passenger_init(&b, "/a", 7);
	CU_ASSERT_EQUAL(board(&a, true), FLIGHT_LEADS);
	CU_ASSERT_PTR_NULL(flights_close(&flights, NULL, 0));
	CU_ASSERT_EQUAL(board(&b, true), FLIGHT_BUSY);
	CU_ASSERT_PTR_NOT_NULL(b.ev);
	CU_ASSERT_PTR_NULL(flights_land(&flights, a.f));
	passenger_fini(&a);
	passenger_fini(&b);
	tear_down();
}

static void test_disguise(void)
{
	static const char *const names[] = {"Host", "If-None-Match", "Range", "if-range", "Accept",
	    "IF-MATCH", "If-Modified-Since"};
	struct cache_object *old = calloc(1, sizeof(*old));
	struct test_request t;

	old->file.etag = slice("\"e\"");
	old->fd = -1;
	atomic_init(&old->refs, 1);
	request_init(&t, "/a");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		request_header(&t, names[i], "v");
	t.req->method = WEIR_HTTP_HEAD;
	struct cache_flight *f = flight_new(NULL, t.req, 7, old);
	flight_disguise(f, t.req);
	CU_ASSERT_EQUAL(t.req->method, WEIR_HTTP_GET);
	CU_ASSERT_EQUAL(t.req->n_headers, 3);
	CU_ASSERT(weir_slice_is(weir_http_header(t.req, "If-None-Match"), "\"e\""));
	CU_ASSERT(weir_slice_is(weir_http_header(t.req, "Accept"), "v"));
	CU_ASSERT_PTR_NULL(weir_http_header(t.req, "Range").p);
	flight_reveal(f, t.req);
	flight_reveal(f, t.req);
	CU_ASSERT_EQUAL(t.req->method, WEIR_HTTP_HEAD);
	CU_ASSERT_EQUAL(t.req->n_headers, 7);
	CU_ASSERT_PTR_EQUAL(t.req->headers, t.headers);
	flight_free(f); /* also drops the reference to the object */
	request_fini(&t);
}

CUNIT_MAIN("cache_flight", {"one leads", test_one_leads}, {"found", test_found},
    {"closed", test_closed}, {"disguise", test_disguise})
