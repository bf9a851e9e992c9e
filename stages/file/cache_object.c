/* SPDX-License-Identifier: MIT */
/*
 * Creates the objects of file.cache and answers requests from them. See cache_object.h.
 *
 * The fields of a response are sorted while they are copied. Content-Type comes first, because a
 * response with several ranges replaces it. The other fields that describe the body follow. The
 * fields that a 304 repeats (RFC 9110, 15.4.5) come last. Each kind of response is then one slice
 * of the object, and a hit neither formats nor copies anything.
 */
#include "cache_object.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <weir/clock.h>

#include "cache_answer.h"
#include "httpdate.h"
#include "multipart.h"
#include "open.h"

static void object_learn(struct cache_object *o, const struct cache_line *copy)
{
	if (weir_slice_is(copy->name, "Content-Type"))
		o->type = copy->value;
	if (weir_slice_is(copy->name, "Content-Encoding"))
		o->file.one_part = true;
	if (cache_line_has_no_ranges(copy))
		o->file.no_ranges = true;
	if (weir_slice_is(copy->name, "ETag"))
		o->file.etag = copy->value;
	if (weir_slice_is(copy->name, "Last-Modified") &&
	    httpdate_parse(copy->value, &o->file.modified_s) < 0)
		o->file.modified_s = -1;
}

/* The part of an object's fields to which a line belongs. */
enum line_place { LINE_TYPE, LINE_OTHER, LINE_WITH_304 };

static enum line_place line_place(const struct cache_line *l)
{
	if (cache_line_goes_with_304(l))
		return LINE_WITH_304;
	return weir_slice_is(l->name, "Content-Type") ? LINE_TYPE : LINE_OTHER;
}

/* Copy the lines that belong to `place` to `to`. Returns the end of the copy. */
static char *fields_copy(
    const struct cache_fields *f, enum line_place place, char *to, struct cache_object *o)
{
	for (int i = 0; i < 2; i++) {
		struct weir_slice rest = f->part[i];
		struct cache_line l, copy;
		while (cache_line_next(&rest, &l)) {
			if (line_place(&l) != place)
				continue;
			memcpy(to, l.whole.p, l.whole.n);
			struct weir_slice at = {to, l.whole.n};
			if (cache_line_next(&at, &copy))
				object_learn(o, &copy);
			to += l.whole.n;
		}
	}
	return to;
}

/* Copy the body of a response to `to`. The read may wait for the disk. It runs in the thread that
 * has just opened the file; this thread belongs to a pool intended for blocking calls. */
static int body_copy(const struct weir_http_response *res, char *to, int64_t n)
{
	int64_t done = 0;

	if (res->fd < 0) {
		if (n > 0)
			memcpy(to, res->body.p, (size_t)n);
		return 0;
	}
	while (done < n) {
		ssize_t got = pread(res->fd, to + done, (size_t)(n - done), res->offset + done);
		if (got == -1 && errno == EINTR)
			continue;
		if (got <= 0)
			return WEIR_ESYS;
		done += got;
	}
	return 0;
}

/* Allocate an object with a copy of the key and `more` bytes after it. */
static struct cache_object *object_alloc(uint64_t hash, struct weir_slice key, size_t more)
{
	size_t size = sizeof(struct cache_object) + key.n + more;

	size = (size + WEIR_CACHE_LINE - 1) & -(size_t)WEIR_CACHE_LINE;
	struct cache_object *o = aligned_alloc(WEIR_CACHE_LINE, size);
	if (!o)
		return NULL;
	memset(o, 0, sizeof(*o));
	if (key.n > 0)
		memcpy(o->bytes, key.p, key.n);
	o->hash = hash;
	o->key = (struct weir_slice){o->bytes, key.n};
	o->charge_bytes = (int64_t)size;
	o->file.modified_s = -1;
	o->fd = -1;
	atomic_init(&o->refs, 1);
	return o;
}

/* Whether the file may have been written since `asked_ns`, when the request was sent to `miss`, or
 * in the same clock tick. The ETag of the response may then belong to other bytes. The comparison
 * uses the time of the last status change (ctime), which a writer cannot set back. A ctime in the
 * future does not count as a recent write. */
static bool maybe_written(const struct stat *st, int64_t asked_ns)
{
	int64_t changed_ns = file_time_ns(st->st_ctim);

	return changed_ns >= asked_ns && changed_ns <= weir_clock_ns(CLOCK_REALTIME);
}

static bool same_time(struct timespec a, struct timespec b)
{
	return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

/* Duplicate the descriptor of the open file for the object, since the response closes the
 * original. */
static int object_open(struct cache_object *o, const struct weir_http_response *res,
    const struct stat *st, int64_t charge_bytes)
{
	if (st->st_size != res->length)
		return WEIR_ESYS;
	o->fd_modified = st->st_mtim;
	o->fd_changed = st->st_ctim;
	o->fd = fcntl(res->fd, F_DUPFD_CLOEXEC, 0);
	if (o->charge_bytes < charge_bytes)
		o->charge_bytes = charge_bytes;
	return o->fd == -1 ? WEIR_ESYS : 0;
}

bool cache_object_file_intact(const struct cache_object *o)
{
	struct stat st;

	return fstat(o->fd, &st) == 0 && st.st_size == o->file.size_bytes &&
	       same_time(st.st_mtim, o->fd_modified) && same_time(st.st_ctim, o->fd_changed);
}

/* Store the body of `res` in `o`. If `kept_open` is above 0, the file is kept open and charged that
 * many bytes; otherwise the body is copied to `to`. */
static int body_keep(struct cache_object *o, const struct weir_http_response *res, char *to,
    int64_t kept_open, int64_t asked_ns)
{
	struct stat st;
	int rc = 0;

	if (kept_open == 0) {
		o->body = (struct weir_slice){to, (size_t)o->file.size_bytes};
		rc = body_copy(res, to, o->file.size_bytes);
	}
	if (rc < 0 || res->fd < 0)
		return rc;
	/* Must follow the copy, so that a write during the copy is detected. */
	if (fstat(res->fd, &st) == -1 || maybe_written(&st, asked_ns))
		return WEIR_ESYS;
	return kept_open > 0 ? object_open(o, res, &st, kept_open) : 0;
}

static int object_fill(struct cache_object *o, const struct weir_http_request *req,
    const struct cache_fields *f, int64_t kept_open, int64_t asked_ns)
{
	char *start = o->bytes + o->key.n;
	char *rest = fields_copy(f, LINE_TYPE, start, o);
	char *tail = fields_copy(f, LINE_OTHER, rest, o);
	char *end = fields_copy(f, LINE_WITH_304, tail, o);

	o->fields = (struct weir_slice){start, (size_t)(end - start)};
	o->fields_parts = (struct weir_slice){rest, (size_t)(end - rest)};
	o->fields_304 = (struct weir_slice){tail, (size_t)(end - tail)};
	o->file.size_bytes = weir_http_body_bytes(&req->res);
	return body_keep(o, &req->res, end, kept_open, asked_ns);
}

/* Whether the body is too large to be kept in memory. */
static bool is_large(const struct weir_http_request *req, const struct cache_limits *limits)
{
	return weir_http_body_bytes(&req->res) > limits->max_object_bytes;
}

static bool is_whole_file(const struct weir_http_request *req)
{
	return req->res.status == 200 && req->res.fd >= 0 && req->res.offset == 0;
}

/* Decide how to cache a response. Returns an enum cache_kind, or -1 to cache nothing. */
static int kind_of(const struct weir_http_request *req, const struct cache_fields *f,
    const struct cache_limits *limits)
{
	int status = req->res.status;

	if (status == 404 && limits->negative_ns == 0)
		return CACHE_PASS;
	if (status != 200 && status != 404)
		return status >= 200 && status < 500 ? CACHE_PASS : -1;
	if (req->res.close || req->res.streamed || req->res.n_pieces > 0 ||
	    cache_fields_forbid(f) ||
	    (is_large(req, limits) && (limits->file_charge_bytes == 0 || !is_whole_file(req))))
		return CACHE_PASS;
	return status == 200 ? CACHE_WHOLE : CACHE_GONE;
}

int cache_object_new(const struct weir_http_request *req, uint32_t fields_start, uint64_t hash,
    struct weir_slice key, unsigned code, const struct cache_limits *limits, int64_t now_ns,
    struct cache_object **object)
{
	struct cache_fields f = cache_fields_of(req, fields_start);
	int kind = kind_of(req, &f, limits);
	int64_t kept_open = is_large(req, limits) ? limits->file_charge_bytes : 0;
	size_t body = kept_open > 0 ? 0 : (size_t)weir_http_body_bytes(&req->res);
	size_t more = kind == CACHE_PASS ? 0 : f.part[0].n + f.part[1].n + body;

	if (kind < 0)
		return WEIR_EINVAL;
	struct cache_object *o = object_alloc(hash, key, more);
	if (!o)
		return WEIR_ENOMEM;
	o->kind = (enum cache_kind)kind;
	o->varies = o->file.varies = cache_answer_varies(req, fields_start);
	o->code = (uint16_t)(o->varies ? code : 0);
	o->hash = cache_variant_hash(hash, o->code);
	int64_t keep_ns = kind == CACHE_GONE ? limits->negative_ns : limits->revalidate_ns;
	atomic_init(&o->checked_ns, now_ns);
	atomic_init(&o->due_ns, now_ns + keep_ns);
	int rc = kind == CACHE_PASS ? 0 : object_fill(o, req, &f, kept_open, limits->asked_ns);
	if (rc < 0) {
		cache_object_put(o);
		return rc;
	}
	*object = o;
	return 0;
}

struct cache_object *cache_object_fork(uint64_t hash, struct weir_slice key)
{
	struct cache_object *o = object_alloc(hash, key, 0);

	if (!o)
		return NULL;
	o->kind = CACHE_FORKS;
	o->varies = true;
	return o;
}

static void account_leave(struct cache_object *o)
{
	struct cache_account *a = o->account;

	atomic_fetch_sub_explicit(&a->pinned_bytes, o->charge_bytes, memory_order_relaxed);
	if (atomic_fetch_sub_explicit(&a->refs, 1, memory_order_acq_rel) == 1)
		free(a);
}

void cache_object_put(struct cache_object *o)
{
	/* acq_rel: the accesses of all other holders happen before the free. */
	if (atomic_fetch_sub_explicit(&o->refs, 1, memory_order_acq_rel) != 1)
		return;
	if (o->account)
		account_leave(o);
	if (o->fd != -1)
		close(o->fd);
	free(o);
}

static void object_release(void *arg)
{
	cache_object_put(arg);
}

/* Respond with 412 or 416, which carry neither the body nor the stored fields. */
static int respond_refusal(
    struct cache_object *o, struct weir_http_request *req, const struct condition_verdict *v)
{
	char range[CONDITION_RANGE_SIZE];
	bool varies = o->varies;

	condition_content_range(v, o->file.size_bytes, range);
	cache_object_put(o);
	int rc = weir_http_respond_status(req, v->status);
	if (rc == 0 && varies)
		rc = weir_http_add_field(req, "Vary", "Accept-Encoding");
	if (rc == 0 && v->status == 416)
		rc = weir_http_add_field(req, "Content-Range", range);
	return rc;
}

/* The release argument of a response with several ranges. The bytes of `o` are sent without
 * copying; `text` has the lines between the ranges. */
struct parts {
	struct cache_object *o; /* one reference */
	struct weir_http_piece piece[MULTIPART_PIECES];
	char text[];
};

static void parts_release(void *arg)
{
	struct parts *p = arg;

	cache_object_put(p->o);
	free(p);
}

static int respond_parts(
    struct cache_object *o, struct weir_http_request *req, const struct condition *asked)
{
	char type[MULTIPART_TYPE_SIZE];
	struct range_set set;
	struct multipart m;

	condition_ranges(asked, &o->file, &set);
	multipart_init(&m, &set, o->type, o->file.size_bytes);
	multipart_type(&m, type);
	struct parts *p = malloc(sizeof(*p) + multipart_text_bytes(&m));
	if (!p) {
		cache_object_put(o);
		return WEIR_EPRESSURE;
	}
	p->o = o;
	int n = multipart_pieces(&m, p->text, o->fd == -1 ? o->body.p : NULL, p->piece);
	int rc = weir_http_respond_pieces(req, 206, NULL, p->piece, n, o->fd, parts_release, p);
	if (rc < 0)
		return rc;
	req->res.fields = o->fields_parts;
	return weir_http_add_field(req, "Content-Type", type);
}

/* Respond with bytes [offset, offset+length) of the object, without copying them or taking a
 * lock. */
static void respond_bytes(
    struct cache_object *o, struct weir_http_request *req, const struct condition_verdict *v)
{
	struct weir_http_response *res = &req->res;

	res->status = (uint16_t)v->status;
	res->no_length = v->status == 304;
	res->fields = v->status == 304 ? o->fields_304 : o->fields;
	if (WEIR_LIKELY(o->fd == -1)) {
		res->body = (struct weir_slice){o->body.p + v->offset, (size_t)v->length};
		res->fd = -1;
	} else {
		res->fd = o->fd;
		res->offset = v->offset;
		res->length = v->length;
	}
	res->release = object_release;
	res->release_arg = o;
}

int cache_object_respond(struct cache_object *o, struct weir_http_request *req)
{
	struct condition_verdict v = {o->kind == CACHE_GONE ? 404 : 200, 0, o->file.size_bytes, 0};
	char range[CONDITION_RANGE_SIZE];
	struct condition asked;

	if (WEIR_UNLIKELY(req->res.status != 0)) /* a stage before the cache has set a response */
		weir_http_response_reset(req);
	if (o->kind == CACHE_WHOLE) {
		condition_scan(req, &asked);
		v = condition_judge(&asked, req->method, &o->file);
	}
	if (WEIR_UNLIKELY(v.status == 412 || v.status == 416))
		return respond_refusal(o, req, &v);
	if (WEIR_UNLIKELY(v.parts > 1))
		return respond_parts(o, req, &asked);
	respond_bytes(o, req, &v);
	if (WEIR_LIKELY(v.status != 206))
		return 0;
	condition_content_range(&v, o->file.size_bytes, range);
	int rc = weir_http_add_field(req, "Content-Range", range);
	if (rc < 0)
		/* a partial body without Content-Range would be wrong */
		weir_http_response_reset(req);
	return rc;
}
