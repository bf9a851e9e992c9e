/* SPDX-License-Identifier: MIT */
/*
 * file.cache: answer requests for files from memory.
 *
 *            +-- fresh ----------------------------> answered immediately: a hit
 *   path --> |-- due for a check: one request goes to `miss` with If-None-Match, others get the
 *            |   old object
 *            |-- too old to serve: like unknown, but with If-None-Match
 *            +-- unknown: the first goes to `miss`, the others are held until the response arrives
 *
 * A hit takes no lock and copies nothing. It costs a hash, a lookup in an RCU read section and one
 * reference, and the response points into the object. A response from `miss` is processed by a tap
 * on the request, in the thread that finished the request; see cache_fetch.c.
 *
 * The key is the path and, for responses that vary by Accept-Encoding, the codings that the client
 * accepts. The responses of file.read depend on nothing else. The cache must not be used in front
 * of a stage whose responses depend on the query or the host, because it would serve wrong
 * responses.
 *
 * The first lookup uses the path alone. If the responses for a path vary, its entry is either the
 * variant for clients that accept no coding, or a CACHE_FORKS marker. In both cases a client that
 * accepts codings needs a second lookup, by path and encoding_code(). Accept-Encoding is therefore
 * parsed only for paths whose responses vary. By listing codings in different orders, a client can
 * create at most some 150 variants of a file; objects requested only once are evicted early
 * (cache_table.c).
 *
 * A request other than a plain GET (HEAD, a range, conditions) is sent to `miss` as a plain GET,
 * and the response is then adapted to the original request. Some requests are answered from an
 * existing object but never fetch one: a request with Authorization or a body, since the response
 * to it must not be served to other clients, and a request for several ranges, since it would get
 * the whole body if the response turned out not to be cacheable.
 *
 * This stage revalidates an object by a conditional request to `miss`, as any HTTP cache asks its
 * origin. It does not call stat on the path, which may block, since this stage must be able to run
 * inline in an I/O thread. The pool of `miss` is intended for blocking calls; a 304 costs an open,
 * an fstat and a close there, once per object and `revalidate` interval. If `miss` refuses requests
 * under load, the old object is served for up to `stale` longer, so that an overloaded site serves
 * outdated content rather than responding slowly. The cache never reads `root`. If `root` is set,
 * it is only checked at startup, so that a wrong directory is detected before the first request.
 *
 * A file too large for `max_object` that arrives as an open descriptor is kept open: the object
 * holds the header fields and its own descriptor. A hit saves the request to `miss`, the open and
 * the stat; the body is sent by sendfile. If the file is changed in place, the bytes no longer
 * match the fields, so each hit checks the descriptor with fstat, which does not block on local
 * disks. Such an object is charged size / open_files bytes. In this way `size` bounds the number of
 * descriptors as well as memory, and one eviction policy serves both.
 *
 * An object's due_ns is the time of its next revalidation. The request that advances due_ns by
 * compare-and-swap does the revalidation. Only one request per `revalidate` interval therefore goes
 * to `miss`, even if the revalidation fails.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cache.h"
#include "cache_rcu.h"
#include "encoding.h"
#include "open.h"

/* Minimum charge for an open file. It limits the number of evicted files that wait for the end of a
 * grace period to about 500 (8 MiB, see cache_table.c). */
#define CACHE_FILE_BYTES (16 << 10)

/* Lookups per read section. 32 is a guess: enough to amortise the cost of entering a section. */
#define CACHE_CHUNK 32

/* Whether the response to `req` may also be served to other clients. If not, `req` must not lead a
 * flight (cache_flight.h). */
static bool is_public(const struct weir_http_request *req)
{
	return req->body.n == 0 && !weir_http_body_streamed(req) &&
	       !weir_http_header(req, "Authorization").p;
}

static bool has_several_ranges(const struct weir_http_request *req)
{
	struct condition asked;

	condition_scan(req, &asked);
	const struct weir_slice *range = &asked.field[CONDITION_RANGE];
	return range->n > 0 && memchr(range->p, ',', range->n);
}

static void miss(struct weir_stage *st, struct weir_event **ev, uint64_t hash)
{
	const struct weir_http_request *req = weir_http_request(*ev);

	if (is_public(req) && !has_several_ranges(req))
		cache_fetch(st, ev, hash, NULL, true);
	else
		cache_pass(st, ev);
}

/* Try to become the request that revalidates `o`. On success the next revalidation is due at
 * `next_ns`. */
static bool claim(struct cache_object *o, int64_t due_ns, int64_t next_ns)
{
	int_fast64_t expected = due_ns;

	return atomic_compare_exchange_strong_explicit(
	    &o->due_ns, &expected, next_ns, memory_order_relaxed, memory_order_relaxed);
}

/* Return `o` if it is `showable`; the caller then answers *ev from it. Otherwise drop the reference
 * to `o`, send *ev to `miss` and return NULL. */
static struct cache_object *show_or_pass(
    struct weir_stage *st, struct weir_event **ev, struct cache_object *o, bool showable)
{
	if (showable)
		return o;
	cache_object_put(o);
	cache_pass(st, ev);
	return NULL;
}

/* Handle a whole object that is due for revalidation or too old to serve. Returns the object, with
 * the reference, if *ev is to be answered from it. Otherwise takes over *ev and the reference and
 * returns NULL. */
static struct cache_object *revalidate(struct weir_stage *st, struct weir_event **ev,
    struct cache_object *o, uint64_t hash, int64_t due_ns, bool showable)
{
	const struct cache_conf *conf = weir_conf(st);

	if (!is_public(weir_http_request(*ev)))
		return show_or_pass(st, ev, o, showable);
	if (showable && !claim(o, due_ns, weir_now_ns(st) + conf->revalidate_ns))
		return o;
	cache_fetch(st, ev, hash, o, !showable);
	return NULL;
}

/* Decide how *ev is answered, given the object from the table (may be NULL). Returns the object,
 * with the reference, if *ev is to be answered from it. Otherwise takes over *ev and the reference
 * and returns NULL. */
static struct cache_object *choose(
    struct weir_stage *st, struct weir_event **ev, struct cache_object *o, uint64_t hash)
{
	const struct cache_conf *conf = weir_conf(st);
	int64_t now_ns = weir_now_ns(st);

	if (!o) {
		miss(st, ev, hash);
		return NULL;
	}
	int64_t due_ns = atomic_load_explicit(&o->due_ns, memory_order_relaxed);
	int64_t age_ns = now_ns - atomic_load_explicit(&o->checked_ns, memory_order_relaxed);
	bool showable = age_ns < conf->revalidate_ns + conf->stale_ns && cache_object_intact(o);
	if (o->kind == CACHE_WHOLE) {
		if (WEIR_LIKELY(now_ns < due_ns && showable))
			return o;
		return revalidate(st, ev, o, hash, due_ns, showable);
	}
	if (o->kind == CACHE_GONE && now_ns < due_ns)
		return o;
	bool passing = o->kind == CACHE_PASS && now_ns < due_ns;
	cache_object_put(o);
	if (passing)
		cache_pass(st, ev);
	else
		miss(st, ev, hash);
	return NULL;
}

static void cache_chunk(struct weir_stage *st, struct weir_event **ev, int n)
{
	struct cache_state *state = weir_state(st);
	struct cache_object *found[CACHE_CHUNK];
	uint64_t hash[CACHE_CHUNK];
	int hits = 0;

	for (int i = 0; i < n; i++)
		hash[i] = cache_table_hash(state->table, weir_http_request(ev[i])->path);
	cache_rcu_read_lock();
	for (int i = 0; i < n; i++) {
		const struct weir_http_request *req = weir_http_request(ev[i]);
		found[i] = cache_table_find(state->table, hash[i], req->path, 0);
		if (WEIR_UNLIKELY(found[i] && found[i]->varies))
			found[i] = cache_table_variant(
			    state->table, found[i], hash[i], encoding_code(req));
	}
	cache_rcu_read_unlock();
	/* Move the hits to the front and answer them together. */
	for (int i = 0; i < n; i++) {
		struct cache_object *o = choose(st, &ev[i], found[i], hash[i]);
		if (!o)
			continue;
		struct weir_event *hit = ev[i];
		ev[i] = NULL;
		ev[hits] = hit;
		found[hits++] = o;
	}
	cache_hits(st, ev, found, hits);
}

static bool may_be_cached(struct weir_event *ev)
{
	enum weir_http_method m = weir_http_request(ev)->method;

	return m == WEIR_HTTP_GET || m == WEIR_HTTP_HEAD;
}

static void cache_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int at = 0; at < n;) {
		int run = 0;
		while (run < CACHE_CHUNK && at + run < n && may_be_cached(ev[at + run]))
			run++;
		if (run == 0)
			cache_pass(st, &ev[at++]);
		else
			cache_chunk(st, ev + at, run);
		at += run;
	}
}

/* Handle the refusal of ev[0..n) by `miss`. Requests that can be answered from an old object are
 * answered. The framework then refuses the others, with `reason`. */
static void cache_refused(
    struct weir_stage *st, int outlet, struct weir_event **ev, int n, int reason)
{
	const struct cache_conf *conf = weir_conf(st);

	(void)outlet;
	for (int i = 0; i < n; i++)
		cache_fetch_refused(st, &ev[i], conf->revalidate_ns + conf->stale_ns, reason);
}

/* ---- lifecycle ---- */

static int check_root(const char *root, struct weir_err *err)
{
	int fd;

	if (*root == '\0')
		return 0;
	if (file_root(root, &fd) == 0) {
		close(fd);
		return 0;
	}
	snprintf(err->text, sizeof(err->text), "root '%.150s' cannot be opened: %s", root,
	    strerror(errno));
	snprintf(err->hint, sizeof(err->hint),
	    "write the directory that the stage behind 'miss' reads, or leave 'root' out");
	return WEIR_ESYS;
}

/* The charge for an open file. The cache uses at most an eighth of the process's descriptors, since
 * client connections need the others. */
static int64_t file_charge(const struct cache_conf *conf)
{
	int64_t most = conf->open_files;
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur / 8 < (rlim_t)most)
		most = (int64_t)(r.rlim_cur / 8);
	if (most == 0)
		return 0;
	int64_t share = conf->size_bytes / most;
	return share > CACHE_FILE_BYTES ? share : CACHE_FILE_BYTES;
}

static int cache_init(struct weir_stage *st, struct weir_err *err)
{
	const struct cache_conf *conf = weir_conf(st);
	struct cache_state *state = weir_state(st);

	int rc = check_root(conf->root, err);
	if (rc < 0)
		return rc;
	if (conf->max_object_bytes > conf->size_bytes) {
		snprintf(err->text, sizeof(err->text), "'max_object' is larger than 'size'");
		return WEIR_EINVAL;
	}
	state->file_charge_bytes = file_charge(conf);
	rc = cache_table_new(conf->size_bytes, &state->table);
	if (rc < 0) {
		snprintf(err->text, sizeof(err->text), "no memory for the cache table");
		return rc;
	}
	flights_init(&state->flights, state->table);
	return 0;
}

/* Take over the objects of the old graph after a reload, if this stage and all stages downstream
 * are unchanged apart from live knobs. Runs before the first event. */
static int cache_start(struct weir_stage *st, struct weir_err *err)
{
	struct cache_state *state = weir_state(st);
	bool unchanged = false;
	const struct weir_stage *old = weir_predecessor(st, &unchanged);

	(void)err;
	if (!old || !unchanged)
		return 0;
	const struct cache_state *had = weir_state(old);
	cache_table_put(state->table);
	state->table = state->flights.table = cache_table_hold(had->table);
	return 0;
}

static void cache_fini(struct weir_stage *st)
{
	struct cache_state *state = weir_state(st);

	flights_fini(&state->flights);
	cache_table_put(state->table);
}

/* Assign requests for the same path to one cohort. */
static uint64_t cache_key(struct weir_stage *st, const struct weir_event *ev)
{
	(void)st;
	return weir_hash(((const struct weir_http_request *)ev)->path);
}

static const struct weir_knob cache_knobs[] = {
    {.name = "root",
	.type = WEIR_KNOB_STRING,
	.offset = offsetof(struct cache_conf, root),
	.def = "",
	.help = "directory that the stage behind 'miss' reads, which must exist at the start; \"\" "
		"omits the check"},
    {.name = "size",
	.type = WEIR_KNOB_BYTES,
	.offset = offsetof(struct cache_conf, size_bytes),
	.def = "64MiB",
	.min = 1 << 16,
	.max = 0x1p40,
	.help = "memory for cached objects; objects evicted while clients still read them may hold "
		"more, at most a quarter of 'size' plus 8 MiB"},
    /* Measured here (bench/peers, 8 connections, cycles of the server): the cost of an open file
     * relative to an object in memory is 1.05 at 16 KiB, 0.95 at 32 and 40, 0.88 at 48, 0.82 at 64,
     * 0.65 to 0.85 at 256, 0.57 at 1024. */
    {.name = "max_object",
	.type = WEIR_KNOB_BYTES,
	.offset = offsetof(struct cache_conf, max_object_bytes),
	.def = "32KiB",
	.min = 0,
	.max = 1 << 30,
	.help = "longest body that is kept in memory; longer files are kept open"},
    /* 1000 is a guess, taken from the open_file_cache example in the nginx manual. */
    {.name = "open_files",
	.type = WEIR_KNOB_INT,
	.offset = offsetof(struct cache_conf, open_files),
	.def = "1000",
	.min = 0,
	.max = 1e6,
	.help = "files above 'max_object' that are kept open, at most an eighth of the files that "
		"the process may open; each counts as 'size' divided by this number, at least 16 "
		"KiB; 0 keeps "
		"none open"},
    {.name = "revalidate",
	.type = WEIR_KNOB_DURATION,
	.offset = offsetof(struct cache_conf, revalidate_ns),
	.def = "1s",
	.min = 1e6,
	.max = 864e11,
	.flags = WEIR_KNOB_LIVE,
	.help = "age at which an object is checked against its file"},
    /* 10 s is a guess: long enough to bridge a disk stall, short enough that a lasting failure is
     * noticed. */
    {.name = "stale",
	.type = WEIR_KNOB_DURATION,
	.offset = offsetof(struct cache_conf, stale_ns),
	.def = "10s",
	.min = 0,
	.max = 864e11,
	.flags = WEIR_KNOB_LIVE,
	.help = "how much longer an object is served while its check is in progress"},
    {.name = "negative",
	.type = WEIR_KNOB_DURATION,
	.offset = offsetof(struct cache_conf, negative_ns),
	.def = "1s",
	.min = 0,
	.max = 864e11,
	.flags = WEIR_KNOB_LIVE,
	.help = "how long a 404 answer is kept; 0s keeps none"},
    {0},
};

static const struct weir_outlet cache_outlets[] = {
    [CACHE_MISS] = {.name = "miss",
	.type = &weir_http_request_type,
	.help = "requests that the cache cannot answer"},
    {0},
};

static const struct weir_metric cache_metrics[] = {
    [CACHE_HITS] = {"cache_hits_total", WEIR_METRIC_COUNTER, "requests",
	"Requests answered at once"},
    [CACHE_MISSES] = {"cache_misses_total", WEIR_METRIC_COUNTER, "requests",
	"Requests sent to 'miss', excluding revalidations"},
    [CACHE_COALESCED] = {"cache_coalesced_total", WEIR_METRIC_COUNTER, "requests",
	"Requests held because another request was fetching the same object"},
    [CACHE_REVALIDATED] = {"cache_revalidations_total", WEIR_METRIC_COUNTER, "requests",
	"Requests sent to 'miss' to check an aged object"},
    [CACHE_BYTES] = {"cache_bytes", WEIR_METRIC_GAUGE, "bytes",
	"Memory held by the cached objects"},
    [CACHE_OBJECTS] = {"cache_objects", WEIR_METRIC_GAUGE, "objects", "Cached objects"},
    [CACHE_EVICTIONS] = {"cache_evictions_total", WEIR_METRIC_COUNTER, "objects",
	"Objects evicted to make room"},
    [CACHE_NEGATIVE] = {"cache_negative_hits_total", WEIR_METRIC_COUNTER, "requests",
	"Hits answered with a cached 404"},
    [CACHE_FILES] = {"cache_open_files", WEIR_METRIC_GAUGE, "files",
	"Cached objects that are open files"},
    {0},
};

const struct weir_stage_ops weir_stage_file_cache = {
    .abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_IN_PARTS,
    .name = "file.cache",
    .summary = "Answers requests for files from memory",
    .accepts = &weir_http_request_type,
    .outlets = cache_outlets,
    .knobs = cache_knobs,
    .conf_size = sizeof(struct cache_conf),
    .metrics = cache_metrics,
    .state_size = sizeof(struct cache_state),
    .init = cache_init,
    .start = cache_start,
    .handle = cache_handle,
    .stop = cache_fetch_stop,
    .fini = cache_fini,
    .key = cache_key,
    .refused = cache_refused,
};
