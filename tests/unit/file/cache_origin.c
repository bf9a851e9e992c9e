/* SPDX-License-Identifier: MIT */
#include "unit/file/cache_origin.h"

/* ---- the origin ---- */

struct origin origin = {
    .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .file = -1};

static void origin_reset(void)
{
	pthread_mutex_lock(&origin.lock);
	origin.shut = origin.no_store = origin.written = false;
	origin.at_gate = origin.asked = origin.validated = 0;
	origin.etag = 1;
	origin.modified = NULL;
	origin.status = 200;
	origin.bytes = 0;
	origin.file = -1;
	pthread_mutex_unlock(&origin.lock);
}

void origin_set(int *member, int value)
{
	pthread_mutex_lock(&origin.lock);
	*member = value;
	pthread_mutex_unlock(&origin.lock);
}

int origin_get(const int *member)
{
	pthread_mutex_lock(&origin.lock);
	int value = *member;
	pthread_mutex_unlock(&origin.lock);
	return value;
}

void origin_gate(bool shut)
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
	if (origin.modified)
		weir_http_add_field(req, "Last-Modified", origin.modified);
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

struct weir_graph *graph;
struct weir_stage *cache;
struct call **calls; /* all calls of the test, freed after the drain */
int n_calls, calls_room;

void set_up(const char *const *knobs)
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

void check_books(int64_t grace_ns)
{
	struct weir_drain_report report;

	weir_graph_drain(graph, grace_ns, &report);
	CU_ASSERT_EQUAL(report.law_error, 0);
	for (int i = 0; i < n_calls; i++)
		CU_ASSERT(atomic_load(&calls[i]->done));
}

void free_all(void)
{
	weir_graph_free(graph);
	while (n_calls > 0)
		call_free(calls[--n_calls]);
	free(calls);
	calls = NULL;
	calls_room = 0;
}

void tear_down(void)
{
	weir_thread_detach();
	check_books(10000000000);
	free_all();
}

int64_t metric(int row)
{
	return metric_of(graph, "cache", row);
}

struct call *make(const char *path)
{
	if (n_calls == calls_room) {
		calls_room = calls_room ? calls_room * 2 : 64;
		calls = realloc(calls, (size_t)calls_room * sizeof(struct call *));
	}
	return calls[n_calls++] = call_new(path);
}

struct call *start(const char *path)
{
	struct call *c = make(path);

	call_send(c, cache);
	return c;
}

struct call *get_with(
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

struct call *get(const char *path)
{
	return get_with(WEIR_HTTP_GET, path, NULL, NULL);
}

struct call *get_until_asked(const char *path, int asked)
{
	struct call *c;

	do
		c = get(path);
	while (origin_get(&origin.asked) < asked);
	return c;
}

struct call *start_at_gate(const char *path)
{
	struct call *c;

	do {
		c = start(path);
		FIXTURE_AWAIT(atomic_load(&c->done) || origin_get(&origin.at_gate) > 0);
	} while (origin_get(&origin.at_gate) == 0);
	return c;
}

void start_held(const char *path, int n)
{
	int64_t before = metric(CACHE_COALESCED);

	origin_gate(true);
	for (int i = 0; i < n; i++)
		start(path);
	FIXTURE_AWAIT(metric(CACHE_COALESCED) == before + n - 1);
	FIXTURE_AWAIT(origin_get(&origin.at_gate) == 1);
}

void await_all(void)
{
	for (int i = 0; i < n_calls; i++)
		call_await(calls[i]);
}

uint64_t queued(void)
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

void test_register(void)
{
	fixture_register(&origin_ops);
}
