/* SPDX-License-Identifier: MIT */
/* Parses and adapts the responses that file.cache gets from `miss`. See cache_answer.h. */
#include "cache_answer.h"

#include <string.h>

#include "condition.h"
#include "httpdate.h"

bool cache_line_next(struct weir_slice *text, struct cache_line *l)
{
	const char *p = text->p;
	const char *end = text->n > 0 ? memchr(p, '\n', text->n) : NULL;
	const char *colon = end ? memchr(p, ':', (size_t)(end - p)) : NULL;

	if (!colon)
		return false;
	size_t n = (size_t)(end - p) + 1;
	const char *value = colon + 1;
	while (value < end && *value == ' ')
		value++;
	while (end > value && (end[-1] == '\r' || end[-1] == ' '))
		end--;
	l->whole = (struct weir_slice){p, n};
	l->name = (struct weir_slice){p, (size_t)(colon - p)};
	l->value = (struct weir_slice){value, (size_t)(end - value)};
	*text = (struct weir_slice){p + n, text->n - n};
	return true;
}

struct cache_fields cache_fields_of(const struct weir_http_request *req, uint32_t start)
{
	uint32_t from = start < req->n_fields ? start : req->n_fields;
	const char *added = req->fields ? req->fields : req->fields_inline;

	return (struct cache_fields){
	    {req->res.fields, {added + from, (size_t)(req->n_fields - from)}}};
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == ',';
}

/* Remove the first directive from a Cache-Control list. `value` is unquoted, and empty if the
 * directive has none. Returns false at the end of the list. */
static bool directive_next(
    struct weir_slice *rest, struct weir_slice *name, struct weir_slice *value)
{
	const char *p = rest->p, *end = p + rest->n;
	bool quoted = false;

	while (p < end && is_blank(*p))
		p++;
	const char *from = p, *equals = NULL;
	for (; p < end && (quoted || *p != ','); p++) {
		quoted ^= *p == '"';
		if (quoted && *p == '\\' && p + 1 < end)
			p++; /* an escaped quote does not end the string (RFC 9110, 5.6.4) */
		if (*p == '=' && !equals)
			equals = p;
	}
	*rest = (struct weir_slice){p, (size_t)(end - p)};
	const char *last = p;
	while (last > from && is_blank(last[-1]))
		last--;
	*name = (struct weir_slice){from, (size_t)((equals ? equals : last) - from)};
	*value = equals ? (struct weir_slice){equals + 1, (size_t)(last - equals - 1)}
			: (struct weir_slice){NULL, 0};
	if (value->n >= 2 && value->p[0] == '"' && value->p[value->n - 1] == '"')
		*value = (struct weir_slice){value->p + 1, value->n - 2};
	return last > from;
}

static bool is_zero(struct weir_slice seconds)
{
	for (size_t i = 0; i < seconds.n; i++)
		if (seconds.p[i] != '0')
			return false;
	return seconds.n > 0;
}

/* Whether Cache-Control forbids caching the response. A maximum age of zero means the same as
 * `no-cache`. s-maxage, which is meant for shared caches like this one, takes precedence over
 * max-age (RFC 9111, 5.2.2.10). Other ages need not be considered, since file.cache revalidates
 * objects after `revalidate` anyway. */
static bool control_forbids(struct weir_slice control)
{
	bool aged = false, shared = false;
	struct weir_slice name, value;

	while (directive_next(&control, &name, &value)) {
		if (weir_slice_is(name, "no-store") || weir_slice_is(name, "private") ||
		    weir_slice_is(name, "no-cache"))
			return true;
		if (weir_slice_is(name, "s-maxage")) {
			if (is_zero(value))
				return true;
			shared = true;
		}
		aged = aged || (weir_slice_is(name, "max-age") && is_zero(value));
	}
	return aged && !shared;
}

/* Whether this field forbids serving the response to other clients, or to any client later. */
static bool line_forbids(const struct cache_line *l)
{
	if (weir_slice_is(l->name, "Cache-Control"))
		return control_forbids(l->value);
	if (weir_slice_is(l->name, "Vary"))
		return !weir_slice_is(l->value, "Accept-Encoding");
	return weir_slice_is(l->name, "Set-Cookie");
}

bool cache_line_goes_with_304(const struct cache_line *l)
{
	static const char *const names[] = {
	    "ETag", "Last-Modified", "Cache-Control", "Content-Location", "Expires", "Vary"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (weir_slice_is(l->name, names[i]))
			return true;
	return false;
}

static bool any_line(const struct cache_fields *f, bool (*is_meant)(const struct cache_line *l))
{
	for (int i = 0; i < 2; i++) {
		struct weir_slice rest = f->part[i];
		struct cache_line l;
		while (cache_line_next(&rest, &l))
			if (is_meant(&l))
				return true;
	}
	return false;
}

static bool line_varies(const struct cache_line *l)
{
	return weir_slice_is(l->name, "Vary") && weir_slice_is(l->value, "Accept-Encoding");
}

bool cache_line_has_no_ranges(const struct cache_line *l)
{
	return weir_slice_is(l->name, "Accept-Ranges") && weir_slice_is(l->value, "none");
}

bool cache_fields_forbid(const struct cache_fields *f)
{
	return any_line(f, line_forbids);
}

bool cache_answer_varies(const struct weir_http_request *req, uint32_t start)
{
	struct cache_fields f = cache_fields_of(req, start);

	return any_line(&f, line_varies);
}

/* ---- responses that are not cached ---- */

/* The representation that the response describes. The slices point into the fields of the
 * response. */
static struct condition_file answer_file(
    const struct weir_http_request *req, const struct cache_fields *f)
{
	struct condition_file file = {.modified_s = -1,
	    .size_bytes = weir_http_body_bytes(&req->res),
	    .varies = any_line(f, line_varies),
	    .no_ranges = any_line(f, cache_line_has_no_ranges)};

	for (int i = 0; i < 2; i++) {
		struct weir_slice rest = f->part[i];
		struct cache_line l;
		while (cache_line_next(&rest, &l)) {
			if (weir_slice_is(l.name, "ETag"))
				file.etag = l.value;
			else if (weir_slice_is(l.name, "Last-Modified") &&
				 httpdate_parse(l.value, &file.modified_s) < 0)
				file.modified_s = -1;
		}
	}
	return file;
}

void cache_answer_drop(struct weir_http_request *req, uint32_t start)
{
	if (req->res.release)
		req->res.release(req->res.release_arg);
	req->res = (struct weir_http_response){.fd = -1};
	if (req->n_fields > start)
		req->n_fields = start;
}

/* Turn the response into a 304. Fields that were added one by one are removed unless a 304 repeats
 * them. The preformatted fields are one slice, of which only the beginning can be removed: the part
 * before the first field that a 304 repeats. Stages therefore put the fields that a 304 omits at
 * the beginning. If such a field comes later, it is sent all the same, which is legal. */
static void answer_shrink_304(struct weir_http_request *req, uint32_t start)
{
	struct weir_slice rest = req->res.fields, from = rest;
	struct cache_line l;

	while (cache_line_next(&rest, &l) && !cache_line_goes_with_304(&l))
		from = rest;
	req->res.fields = from;
	if (req->n_fields > start) {
		char *to = req->fields + start;
		rest = (struct weir_slice){to, req->n_fields - start};
		while (cache_line_next(&rest, &l))
			if (cache_line_goes_with_304(&l)) {
				memmove(to, l.whole.p, l.whole.n);
				to += l.whole.n;
			}
		req->n_fields = (uint32_t)(to - req->fields);
	}
	req->res.status = 304;
	req->res.no_length = true;
	req->res.body = (struct weir_slice){NULL, 0};
	req->res.fd = -1;
	req->res.n_pieces = 0;
}

static void answer_narrow(
    struct weir_http_request *req, const struct condition_verdict *v, int64_t size_bytes)
{
	struct weir_http_response *res = &req->res;
	char range[CONDITION_RANGE_SIZE];

	condition_content_range(v, size_bytes, range);
	if (res->n_pieces > 0 || weir_http_add_field(req, "Content-Range", range) < 0)
		return; /* sending the whole body is also correct */
	res->status = 206;
	if (res->fd >= 0) {
		res->offset += v->offset;
		res->length = v->length;
	} else {
		res->body = (struct weir_slice){res->body.p + v->offset, (size_t)v->length};
	}
}

static void answer_refuse(struct weir_http_request *req, uint32_t start,
    const struct condition_verdict *v, const struct condition_file *file)
{
	char range[CONDITION_RANGE_SIZE];

	condition_content_range(v, file->size_bytes, range);
	cache_answer_drop(req, start);
	if (weir_http_respond_status(req, v->status) == 0 && file->varies)
		weir_http_add_field(req, "Vary", "Accept-Encoding");
	if (v->status == 416)
		weir_http_add_field(req, "Content-Range", range);
}

void cache_answer_judge(struct weir_http_request *req, uint32_t start)
{
	struct cache_fields f = cache_fields_of(req, start);
	struct condition asked;

	condition_scan(req, &asked);
	if (req->res.status != 200 || req->res.streamed || !asked.any)
		return;
	struct condition_file file = answer_file(req, &f);
	struct condition_verdict v = condition_judge(&asked, req->method, &file);
	if (v.status == 304)
		answer_shrink_304(req, start);
	else if (v.status == 412 || v.status == 416)
		answer_refuse(req, start, &v, &file);
	else if (v.status == 206 && v.parts == 1)
		answer_narrow(req, &v, file.size_bytes);
}
