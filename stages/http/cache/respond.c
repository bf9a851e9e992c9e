/* SPDX-License-Identifier: MIT */
/* Answers requests from objects, without copying the body; see object.h. */
#include <stdlib.h>
#include <string.h>

#include "file/multipart.h"
#include "http/cache/object.h"
#include "http/message/put.h"
#include "http/request/request.h"

/* Room for "Age: N", "Cache-Status: weir; TEXT; ttl=-N" */
#define TOLD_BYTES (2 * PUT_NUMBER_MAX + 64)

static void release(void *arg)
{
	hcache_object_put(arg);
}

/* Add Age and Cache-Status. Without memory for them the answer goes without Cache-Status, and fails without
 * Age, which others must know (RFC 9111, 4). */
static int tell(struct weir_http_request *req, const struct hcache_object *o, int64_t now_ns,
    const struct hcache_told *told)
{
	int64_t age_ns = hcache_object_age_ns(o, now_ns), left_ns = o->fresh_ns - age_ns;
	size_t n = told->text ? strlen(told->text) : 0;
	char *at = request_fields_room(req, TOLD_BYTES + n);

	if (!at)
		return WEIR_ENOMEM;
	at = PUT(at, "Age: ");
	at = PUT(put_number(at, age_ns > 0 ? (uint64_t)age_ns / 1000000000u : 0), "\r\n");
	if (told->text) {
		at = put(PUT(at, "Cache-Status: weir; "), told->text, n);
		if (told->ttl) {
			at = left_ns < 0 ? PUT(at, "; ttl=-") : PUT(at, "; ttl=");
			at = put_number(
			    at, (uint64_t)(left_ns < 0 ? -left_ns : left_ns) / 1000000000u);
		}
		at = PUT(at, "\r\n");
	}
	request_fields_to(req, at);
	return 0;
}

/* 412 and 416, without the body and the stored fields. */
static int refuse(
    struct hcache_object *o, struct weir_http_request *req, const struct condition_verdict *v)
{
	char range[CONDITION_RANGE_SIZE];

	condition_content_range(v, o->file.size_bytes, range);
	hcache_object_put(o);
	int rc = weir_http_respond_status(req, v->status);
	return rc == 0 && v->status == 416 ? weir_http_add_field(req, "Content-Range", range) : rc;
}

/* The release argument of an answer with several ranges; `text` has the lines between them. */
struct parts {
	struct hcache_object *o;
	struct weir_http_piece piece[MULTIPART_PIECES];
	char text[];
};

static void parts_release(void *arg)
{
	struct parts *p = arg;

	hcache_object_put(p->o);
	free(p);
}

static int respond_parts(
    struct hcache_object *o, struct weir_http_request *req, const struct condition *asked)
{
	char type[MULTIPART_TYPE_SIZE];
	struct range_set set;
	struct multipart m;

	condition_ranges(asked, &o->file, &set);
	multipart_init(&m, &set, o->type, o->file.size_bytes);
	multipart_type(&m, type);
	struct parts *p = malloc(sizeof(*p) + multipart_text_bytes(&m));
	if (!p) {
		hcache_object_put(o);
		return WEIR_EPRESSURE;
	}
	p->o = o;
	int n = multipart_pieces(&m, p->text, o->body->bytes, p->piece);
	int rc = weir_http_respond_pieces(req, 206, NULL, p->piece, n, -1, parts_release, p);
	if (rc < 0)
		return rc;
	req->res.fields = o->fields_parts;
	return weir_http_add_field(req, "Content-Type", type);
}

static void respond_bytes(
    struct hcache_object *o, struct weir_http_request *req, const struct condition_verdict *v)
{
	struct weir_http_response *res = &req->res;
	const char *bytes = o->body ? o->body->bytes : NULL;

	res->status = (uint16_t)v->status;
	res->no_length = v->status == 304 || v->status == 204;
	res->fields = v->status == 304 ? o->fields_304 : o->fields;
	res->body = (struct weir_slice){NULL, 0};
	if (v->length > 0)
		res->body = (struct weir_slice){bytes + v->offset, (size_t)v->length};
	res->fd = -1;
	res->release = release;
	res->release_arg = o;
}

static int respond_range(
    struct hcache_object *o, struct weir_http_request *req, const struct condition_verdict *v)
{
	char range[CONDITION_RANGE_SIZE];

	condition_content_range(v, o->file.size_bytes, range);
	respond_bytes(o, req, v);
	int rc = weir_http_add_field(req, "Content-Range", range);
	if (rc < 0)
		weir_http_response_reset(req); /* without Content-Range it would be wrong */
	return rc;
}

int hcache_object_head(const struct hcache_object *o, struct weir_http_request *req, int64_t now_ns,
    const struct hcache_told *told)
{
	char *at = request_fields_room(req, o->fields.n);

	if (!at)
		return WEIR_ENOMEM;
	request_fields_to(req, o->fields.n > 0 ? put(at, o->fields.p, o->fields.n) : at);
	req->res.status = o->status;
	req->res.no_length = o->status == 204;
	return tell(req, o, now_ns, told);
}

int hcache_object_respond(struct hcache_object *o, struct weir_http_request *req, int64_t now_ns,
    const struct hcache_told *told)
{
	struct condition_verdict v = {o->status, 0, o->file.size_bytes, 0};
	struct condition asked;

	if (WEIR_UNLIKELY(req->res.status != 0)) /* a stage before the cache has set a response */
		weir_http_response_reset(req);
	int rc = tell(req, o, now_ns, told);
	if (rc < 0) {
		hcache_object_put(o);
		return rc;
	}
	if (!told->plain && o->status == 200) {
		condition_scan(req, &asked);
		if (WEIR_UNLIKELY(asked.any))
			v = condition_judge(&asked, req->method, &o->file);
	}
	if (WEIR_UNLIKELY(v.status == 412 || v.status == 416))
		return refuse(o, req, &v);
	if (WEIR_UNLIKELY(v.parts > 1))
		return respond_parts(o, req, &asked);
	if (WEIR_UNLIKELY(v.status == 206))
		return respond_range(o, req, &v);
	respond_bytes(o, req, &v);
	return 0;
}
