/* SPDX-License-Identifier: MIT */
/*
 * file.cache in front of an origin whose responses vary by Accept-Encoding: which request gets
 * which variant, how often each is fetched, coalescing per coding, negative hits, and a scan that
 * must not empty the cache.
 *
 * In the torture at the end four clients with six values of Accept-Encoding use a cache that is too
 * small and whose objects age at once, while paths start and stop varying. It fails when a client
 * gets a coding that it does not accept or a body of another path or variant, by a report of ASan
 * or TSan, or by counters that do not balance.
 */
#include "cunit_main.h"
#include "file/cache.h"
#include "file/encoding.h"
#include "file/http_call.h"

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool shut;
	int at_gate;
	atomic_int asked;
	atomic_int no_vary; /* the same response for all */
} origin = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void origin_wait(void)
{
	pthread_mutex_lock(&origin.lock);
	origin.at_gate++;
	while (origin.shut)
		pthread_cond_wait(&origin.changed, &origin.lock);
	origin.at_gate--;
	pthread_mutex_unlock(&origin.lock);
}

static void origin_shut(bool shut)
{
	pthread_mutex_lock(&origin.lock);
	origin.shut = shut;
	pthread_cond_broadcast(&origin.changed);
	pthread_mutex_unlock(&origin.lock);
}

static int origin_at_gate(void)
{
	pthread_mutex_lock(&origin.lock);
	int n = origin.at_gate;
	pthread_mutex_unlock(&origin.lock);
	return n;
}

/* br, else gzip, else identity: "/path br", padded to 2,000 bytes. */
static int origin_answer(struct weir_http_request *req)
{
	static const enum encoding both[] = {ENCODING_BR, ENCODING_GZIP};
	struct encoding_wish w;
	char body[2000], etag[64];
	bool alike = atomic_load(&origin.no_vary);

	encoding_wish(req, &w);
	enum encoding e = alike ? ENCODING_IDENTITY : encoding_choose(&w, both, 2);
	if (req->path.n > 1 && req->path.p[1] == '!')
		return weir_http_respond_status(req, 404);
	memset(body, '.', sizeof(body));
	int n = snprintf(
	    body, sizeof(body), "%.*s %s", (int)req->path.n, req->path.p, encoding_token(e));
	body[n] = '.';
	snprintf(
	    etag, sizeof(etag), "\"%.*s-%s\"", (int)req->path.n, req->path.p, encoding_token(e));
	if (weir_slice_is(weir_http_header(req, "If-None-Match"), etag))
		weir_http_respond_status(req, 304);
	else
		weir_http_respond_copy(req, 200, "text/x", (struct weir_slice){body, sizeof(body)});
	weir_http_add_field(req, "ETag", etag);
	if (e != ENCODING_IDENTITY)
		weir_http_add_field(req, "Content-Encoding", encoding_token(e));
	return alike ? 0 : weir_http_add_field(req, "Vary", "Accept-Encoding");
}

static void origin_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	for (int i = 0; i < n; i++) {
		origin_wait();
		atomic_fetch_add(&origin.asked, 1);
		int rc = origin_answer(weir_http_request(ev[i]));
		weir_event_finish(&ev[i], rc);
	}
}

static const struct weir_stage_ops origin_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.varied",
    .summary = "answers by Accept-Encoding",
    .flags = WEIR_STAGE_BLOCKS,
    .accepts = &weir_http_request_type,
    .handle = origin_handle};

static struct weir_graph *graph;
static struct weir_stage *cache;
static struct call *calls[4096];
static int n_calls;

static void set_up(const char *size, const char *revalidate)
{
	struct weir_spec *spec = weir_spec_new("vary");
	struct weir_stage_spec *c = weir_spec_add_stage(spec, "cache", "file.cache");

	weir_spec_link(c, "miss", "origin", false);
	fixture_set(c, "with.size", size);
	fixture_set(c, "with.max_object", "8KiB");
	fixture_set(c, "with.revalidate", revalidate);
	fixture_set(c, "with.stale", revalidate);
	fixture_set(c, "with.negative", "1h");
	/* no request is refused because the host has stalled during an earlier one */
	fixture_set(c, "slo", "1h");
	struct weir_stage_spec *origin_stage = weir_spec_add_stage(spec, "origin", "t.varied");
	fixture_set(origin_stage, "threads", "4");
	fixture_set(origin_stage, "slo", "1h");
	atomic_store(&origin.asked, 0);
	atomic_store(&origin.no_vary, false);
	graph = fixture_start(spec);
	CU_ASSERT_EQUAL_FATAL(weir_thread_attach(graph, "test"), 0);
	cache = weir_graph_stage(graph, "cache");
}

static void tear_down(void)
{
	struct weir_drain_report report;

	weir_thread_detach();
	weir_graph_drain(graph, 10000000000, &report);
	CU_ASSERT_EQUAL(report.law_error, 0);
	weir_graph_free(graph);
	while (n_calls > 0)
		call_free(calls[--n_calls]);
}

static struct call *start(const char *path, const char *accept)
{
	struct call *c = calls[n_calls++] = call_new(path);

	if (accept)
		request_header(&c->t, "Accept-Encoding", accept);
	call_send(c, cache);
	return c;
}

static struct call *get(const char *path, const char *accept)
{
	struct call *c = start(path, accept);

	call_await(c);
	return c;
}

/* Is it the body of `path` in `coding`, with the right Content-Encoding? */
static bool is_for(const struct call *c, const char *path, const char *coding)
{
	char text[64], field[64];
	int n = snprintf(text, sizeof(text), "%s %s.", path, coding);
	struct weir_slice b = c->t.req->res.body;

	snprintf(field, sizeof(field), "Content-Encoding: %s\r\n", coding);
	return c->outcome == WEIR_OK && call_status(c) == 200 && b.n == 2000 &&
	       memcmp(b.p, text, (size_t)n) == 0 &&
	       call_has_field(c, field) == (strcmp(coding, "identity") != 0);
}

static int64_t metric(int row)
{
	return metric_of(graph, "cache", row);
}

static void test_register(void)
{
	fixture_register(&origin_ops);
}

/* In any order, each client gets its variant, and each variant is fetched once. */
static void test_each_its_own(void)
{
	static const struct {
		const char *accept, *coding;
	} cases[] = {
	    {"br", "br"}, {NULL, "identity"}, {"gzip", "gzip"}, {"gzip, br;q=0.1", "gzip"}};

	for (int first = 0; first < 4; first++) {
		set_up("1MiB", "1h");
		for (int i = 0; i < 12; i++) {
			int k = (first + i) % 4;
			CU_ASSERT(is_for(get("/a", cases[k].accept), "/a", cases[k].coding));
		}
		CU_ASSERT_EQUAL(atomic_load(&origin.asked), 4);
		CU_ASSERT_EQUAL(metric(CACHE_MISSES), 4);
		CU_ASSERT_EQUAL(metric(CACHE_HITS), 8);
		tear_down();
	}
}

/* Each client finds its variant, also when none has requested identity. */
static void test_forks(void)
{
	set_up("1MiB", "1h");
	for (int i = 0; i < 6; i++)
		CU_ASSERT(is_for(get("/a", i % 2 ? "br" : "gzip"), "/a", i % 2 ? "br" : "gzip"));
	CU_ASSERT_EQUAL(atomic_load(&origin.asked), 2);
	CU_ASSERT_EQUAL(metric(CACHE_OBJECTS), 3); /* including the fork */
	CU_ASSERT(is_for(get("/a", NULL), "/a", "identity"));
	CU_ASSERT_EQUAL(metric(CACHE_OBJECTS), 3); /* identity replaces the fork */
	tear_down();
}

/* A response that does not vary is fetched once, whatever codings clients accept. */
static void test_alike(void)
{
	set_up("1MiB", "1h");
	atomic_store(&origin.no_vary, true);
	get("/a", "br");
	get("/a", "gzip");
	get("/a", NULL);
	CU_ASSERT(is_for(get("/a", "*;q=0"), "/a", "identity"));
	CU_ASSERT_EQUAL(atomic_load(&origin.asked), 1);
	CU_ASSERT_EQUAL(metric(CACHE_OBJECTS), 1);
	tear_down();
}

/* A miss waits only for one that accepts the same codings. */
static void test_coalesced(void)
{
	enum { N = 30 };

	set_up("1MiB", "1h");
	origin_shut(true);
	for (int i = 0; i < N; i++)
		start("/a", i % 3 == 0 ? NULL : i % 3 == 1 ? "br" : "gzip");
	FIXTURE_AWAIT(metric(CACHE_COALESCED) == N - 3);
	FIXTURE_AWAIT(origin_at_gate() == 3);
	origin_shut(false);
	for (int i = 0; i < N; i++) {
		call_await(calls[i]);
		CU_ASSERT(is_for(calls[i], "/a",
		    i % 3 == 0   ? "identity"
		    : i % 3 == 1 ? "br"
				 : "gzip"));
	}
	CU_ASSERT_EQUAL(atomic_load(&origin.asked), 3);
	tear_down();
}

static void test_negative(void)
{
	set_up("1MiB", "1h");
	for (int i = 0; i < 5; i++)
		CU_ASSERT_EQUAL(call_status(get("/!", i % 2 ? "br" : NULL)), 404);
	CU_ASSERT_EQUAL(atomic_load(&origin.asked), 1);
	CU_ASSERT_EQUAL(metric(CACHE_HITS), 4);
	CU_ASSERT_EQUAL(metric(CACHE_NEGATIVE), 4);
	get("/a", NULL);
	get("/a", NULL);
	CU_ASSERT_EQUAL(metric(CACHE_HITS), 5);
	CU_ASSERT_EQUAL(metric(CACHE_NEGATIVE), 4);
	tear_down();
}

/* After a scan of ten times the size of the cache the hot set is still hit. */
static void test_scan(void)
{
	enum { HOT = 10, SIZE = 64 << 10, SCAN = 10 * SIZE / 2000 };
	char path[32];

	set_up("64KiB", "1h");
	for (int i = 0; i < 2 * HOT; i++) {
		snprintf(path, sizeof(path), "/hot%d", i % HOT);
		struct call *c = call_new(path);
		calls[n_calls++] = c;
		call_send(c, cache);
		call_await(c);
		weir_http_response_reset(c->t.req); /* sent */
	}
	CU_ASSERT_EQUAL(metric(CACHE_HITS), HOT);
	atomic_store(&origin.no_vary, true);
	for (int i = 0; i < SCAN; i++) {
		snprintf(path, sizeof(path), "/%d", i);
		weir_http_response_reset(get(path, "br")->t.req);
	}
	CU_ASSERT(metric(CACHE_EVICTIONS) > SCAN / 2);
	CU_ASSERT_EQUAL(metric(CACHE_HITS), HOT);
	for (int i = 0; i < HOT; i++) {
		snprintf(path, sizeof(path), "/hot%d", i);
		weir_http_response_reset(get(path, NULL)->t.req);
	}
	CU_ASSERT_EQUAL(metric(CACHE_HITS), 2 * HOT);
	CU_ASSERT(metric(CACHE_BYTES) <= SIZE);
	tear_down();
}

/* ---- torture ---- */

#define ASKERS 4
#define ROUNDS 1500
#define PATHS  25

static const struct {
	const char *accept, *coding;
} wishes[] = {{NULL, "identity"}, {"br", "br"}, {"gzip", "gzip"}, {"gzip, br", "br"},
    {"br;q=0.5, gzip", "gzip"}, {"deflate", "identity"}};

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
		unsigned k = (seed >> 8) % 6;
		snprintf(path, sizeof(path), "/%u", (seed >> 16) % PATHS);
		struct call *c = mine[i] = call_new(path);
		if (wishes[k].accept)
			request_header(&c->t, "Accept-Encoding", wishes[k].accept);
		call_send(c, cache);
		call_await(c);
		if (!is_for(c, path, wishes[k].coding) && !is_for(c, path, "identity"))
			atomic_fetch_add(&wrong, 1);
		weir_http_response_reset(c->t.req);
		c->t.req->path = slice("/gone");
		if (i % 50 == 0)
			atomic_store(&origin.no_vary, i % 100 == 0);
	}
	weir_thread_detach();
	return mine;
}

static void test_torture(void)
{
	pthread_t th[ASKERS];
	struct call **made[ASKERS];

	set_up("64KiB", "1ms");
	for (size_t i = 0; i < ASKERS; i++)
		pthread_create(&th[i], NULL, asker, (void *)(i + 1));
	for (int i = 0; i < ASKERS; i++)
		pthread_join(th[i], (void **)&made[i]);
	CU_ASSERT_EQUAL(atomic_load(&wrong), 0);
	CU_ASSERT(metric(CACHE_HITS) > 0);
	CU_ASSERT(metric(CACHE_EVICTIONS) > 0);
	CU_ASSERT(metric(CACHE_BYTES) <= 65536);
	tear_down();
	for (int i = 0; i < ASKERS; i++) {
		for (int k = 0; k < ROUNDS; k++)
			call_free(made[i][k]);
		free(made[i]);
	}
}

CUNIT_MAIN("file.cache, variants", {"register", test_register}, {"each its own", test_each_its_own},
    {"forks", test_forks}, {"alike", test_alike}, {"coalesced", test_coalesced},
    {"negative", test_negative}, {"scan", test_scan}, {"torture", test_torture})
