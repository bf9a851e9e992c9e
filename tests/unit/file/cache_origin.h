/* SPDX-License-Identifier: MIT */
/*
 * file.cache in front of an origin that the test controls: it answers from a script, counts its
 * requests, and can be blocked by a gate. To let objects age, tests send requests until the origin
 * gets one; they never sleep.
 */
#ifndef WEIR_TESTS_FILE_CACHE_ORIGIN_H
#define WEIR_TESTS_FILE_CACHE_ORIGIN_H

#include "cunit_main.h"
#include "file/cache.h"
#include "file/http_call.h"

/* ---- the origin ---- */

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool shut;     /* the gate: handlers block at it */
	int at_gate;   /* handlers that block now */
	int asked;     /* requests so far */
	int validated; /* those with If-None-Match */
	int etag;      /* number of the current version */
	int status;    /* the response: 200, 404, 503; negative: the outcome */
	bool no_store;
	size_t bytes; /* length of the body, when not 0 */
	/* before each response is sent the file is written, so that the next one has another tag */
	bool written;
	int file; /* the body is all of this file, when not -1 */
} origin = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .file = -1};

static inline void origin_reset(void)
{
	pthread_mutex_lock(&origin.lock);
	origin.shut = origin.no_store = origin.written = false;
	origin.at_gate = origin.asked = origin.validated = 0;
	origin.etag = 1;
	origin.status = 200;
	origin.bytes = 0;
	origin.file = -1;
	pthread_mutex_unlock(&origin.lock);
}

static inline void origin_set(int *member, int value)
{
	pthread_mutex_lock(&origin.lock);
	*member = value;
	pthread_mutex_unlock(&origin.lock);
}

static inline int origin_get(const int *member)
{
	pthread_mutex_lock(&origin.lock);
	int value = *member;
	pthread_mutex_unlock(&origin.lock);
	return value;
}

static inline void origin_gate(bool shut)
{
	pthread_mutex_lock(&origin.lock);
	origin.shut = shut;
	pthread_cond_broadcast(&origin.changed);
	pthread_mutex_unlock(&origin.lock);
}

static void close_file(void *arg)
{
	close((int)(intptr_t)arg);
}

static void respond_file(struct weir_http_request *req, int file)
{
	int fd = dup(file);

	weir_http_respond_file(
	    req, 200, "text/x", fd, 0, lseek(fd, 0, SEEK_END), close_file, (void *)(intptr_t)fd);
}

static void respond_body(struct weir_http_request *req, int etag, size_t bytes)
{
	char text[128], field[32];
	int n = snprintf(text, sizeof(text), "%.*s v%d", (int)req->path.n, req->path.p, etag);

	if (origin.file != -1) {
		respond_file(req, origin.file);
	} else if (bytes == 0) {
		weir_http_respond_copy(req, 200, "text/x", (struct weir_slice){text, (size_t)n});
	} else {
		char *body = malloc(bytes);
		memset(body, 'a' + (int)(weir_hash(req->path) % 26), bytes);
		weir_http_respond(req, 200, "text/x", (struct weir_slice){body, bytes}, free, body);
	}
	snprintf(field, sizeof(field), "\"v%d\"", etag);
	weir_http_add_field(req, "ETag", field);
}

/* One response. Called with the lock, so the script does not change meanwhile. */
static int origin_answer(struct weir_http_request *req)
{
	struct weir_slice known = weir_http_header(req, "If-None-Match");
	char etag[32];

	snprintf(etag, sizeof(etag), "\"v%d\"", origin.etag);
	origin.asked++;
	origin.validated += known.p != NULL;
	if (origin.status < 0)
		return origin.status;
	if (origin.status != 200)
		return weir_http_respond_status(req, origin.status);
	if (known.p && weir_slice_is(known, etag))
		return weir_http_respond_status(req, 304);
	respond_body(req, origin.etag, origin.bytes);
	if (origin.written && pwrite(origin.file, "x", 1, origin.etag++) != 1)
		abort();
	if (origin.no_store)
		weir_http_add_field(req, "Cache-Control", "no-store");
	return WEIR_OK;
}

static void origin_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	for (int i = 0; i < n; i++) {
		pthread_mutex_lock(&origin.lock);
		origin.at_gate++;
		while (origin.shut)
			pthread_cond_wait(&origin.changed, &origin.lock);
		origin.at_gate--;
		int rc = origin_answer(weir_http_request(ev[i]));
		pthread_mutex_unlock(&origin.lock);
		weir_event_finish(&ev[i], rc);
	}
}

static const struct weir_stage_ops origin_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.origin",
    .summary = "answers by a script",
    .flags = WEIR_STAGE_BLOCKS,
    .accepts = &weir_http_request_type,
    .handle = origin_handle};

/* ---- the graph ---- */

static struct weir_graph *graph;
static struct weir_stage *cache;
static struct call **calls; /* all calls of the test, freed after the drain */
static int n_calls, calls_room;

/* A cache with up to four knobs set, as "name", "value", ..., NULL. */
static inline void set_up(const char *const *knobs)
{
	struct weir_spec *spec = weir_spec_new("cache");
	struct weir_stage_spec *c = weir_spec_add_stage(spec, "cache", "file.cache");

	weir_spec_link(c, "miss", "origin", false);
	fixture_set(c, "with.revalidate", "1h");
	for (; *knobs; knobs += 2)
		fixture_set(c, knobs[0], knobs[1]);
	struct weir_stage_spec *o = weir_spec_add_stage(spec, "origin", "t.origin");
	fixture_set(o, "threads", "2");
	origin_reset();
	graph = fixture_start(spec);
	CU_ASSERT_EQUAL_FATAL(weir_thread_attach(graph, "test"), 0);
	cache = weir_graph_stage(graph, "cache");
}

#define SET_UP(...) set_up((const char *const[]){__VA_ARGS__, NULL})

/* The counters of every stage must balance exactly once everything has ended. */
static inline void check_books(int64_t grace_ns)
{
	struct weir_drain_report report;

	weir_graph_drain(graph, grace_ns, &report);
	CU_ASSERT_EQUAL(report.law_error, 0);
	for (int i = 0; i < n_calls; i++)
		CU_ASSERT(atomic_load(&calls[i]->done));
}

static inline void free_all(void)
{
	weir_graph_free(graph);
	while (n_calls > 0)
		call_free(calls[--n_calls]);
	free(calls);
	calls = NULL;
	calls_room = 0;
}

static inline void tear_down(void)
{
	weir_thread_detach();
	check_books(10000000000);
	free_all();
}

static inline int64_t metric(int row)
{
	return metric_of(graph, "cache", row);
}

static inline struct call *make(const char *path)
{
	if (n_calls == calls_room) {
		calls_room = calls_room ? calls_room * 2 : 64;
		calls = realloc(calls, (size_t)calls_room * sizeof(struct call *));
	}
	return calls[n_calls++] = call_new(path);
}

/* Send a GET without waiting. */
static inline struct call *start(const char *path)
{
	struct call *c = make(path);

	call_send(c, cache);
	return c;
}

static inline struct call *get_with(
    enum weir_http_method method, const char *path, const char *name, const char *value)
{
	struct call *c = make(path);

	c->t.req->method = method;
	if (name)
		request_header(&c->t, name, value);
	call_send(c, cache);
	call_await(c);
	return c;
}

static inline struct call *get(const char *path)
{
	return get_with(WEIR_HTTP_GET, path, NULL, NULL);
}

/* Request `path` until the origin has got `asked` requests. Returns the last call. */
static inline struct call *get_until_asked(const char *path, int asked)
{
	struct call *c;

	do
		c = get(path);
	while (origin_get(&origin.asked) < asked);
	return c;
}

/* Start requests for `path`, which is kept, until one stands at the shut gate. Returns that one. The
 * others have ended before the next starts, so the cache is not overloaded and refuses none. */
static inline struct call *start_at_gate(const char *path)
{
	struct call *c;

	do {
		c = start(path);
		FIXTURE_AWAIT(atomic_load(&c->done) || origin_get(&origin.at_gate) > 0);
	} while (origin_get(&origin.at_gate) == 0);
	return c;
}

/* Start `n` requests for `path` while the gate is shut. Returns when all but the leader are
 * held. */
static inline void start_held(const char *path, int n)
{
	int64_t before = metric(CACHE_COALESCED);

	origin_gate(true);
	for (int i = 0; i < n; i++)
		start(path);
	FIXTURE_AWAIT(metric(CACHE_COALESCED) == before + n - 1);
	FIXTURE_AWAIT(origin_get(&origin.at_gate) == 1);
}

static inline void await_all(void)
{
	for (int i = 0; i < n_calls; i++)
		call_await(calls[i]);
}

/* Length of the origin's queue. */
static inline uint64_t queued(void)
{
	struct weir_graph_view *v = NULL;
	uint64_t n = 0;

	if (weir_graph_view(graph, &v) != 0)
		abort();
	for (int i = 0; i < v->n_stages; i++)
		if (strcmp(v->stages[i].name, "origin") == 0)
			n = v->stages[i].queue_length;
	weir_graph_view_free(v);
	return n;
}

static inline void test_register(void)
{
	fixture_register(&origin_ops);
}

#endif
