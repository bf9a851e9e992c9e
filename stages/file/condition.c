/* SPDX-License-Identifier: MIT */
/*
 * Evaluates conditional and range requests, in the order of RFC 9110, 13.2.2:
 *
 *   If-Match, else If-Unmodified-Since: false -> 412
 *   If-None-Match, else If-Modified-Since: false -> 304
 *   Range, if there is no If-Range or it is true: 206 or 416; else 200
 *
 * ETags are compared weakly for If-None-Match and strongly for If-Match and If-Range.
 */
#include "condition.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "httpdate.h"
#include "text/ows.h"

/* Whether a header may be a condition field. The length and the first letter rule out nearly all
 * others. */
static inline bool may_be_field(struct weir_slice name)
{
	return name.n >= 5 && ((name.p[0] | 0x20) == 'i' || (name.p[0] | 0x20) == 'r');
}

bool condition_is_field(struct weir_slice name, enum condition_field *which)
{
	static const struct weir_slice names[CONDITION_N] = {
#define CONDITION_NAME(id, text) {text, sizeof(text) - 1},
	    CONDITION_FIELDS(CONDITION_NAME)
#undef CONDITION_NAME
	};
	if (!may_be_field(name))
		return false;
	for (int i = 0; i < CONDITION_N; i++) {
		if (name.n == names[i].n && strncasecmp(name.p, names[i].p, name.n) == 0) {
			*which = (enum condition_field)i;
			return true;
		}
	}
	return false;
}

void condition_scan(const struct weir_http_request *req, struct condition *c)
{
	unsigned seen = 0;

	memset(c, 0, sizeof(*c));
	c->req = req;
	for (int i = 0; i < req->n_headers; i++) {
		enum condition_field f;
		struct weir_slice name = req->headers[i].name;
		if (!may_be_field(name) || !condition_is_field(name, &f))
			continue;
		c->any = true;
		if (!(seen & 1u << f))
			c->field[f] = req->headers[i].value;
		else if (f != CONDITION_IF_MATCH && f != CONDITION_IF_NONE_MATCH)
			c->field[f] = (struct weir_slice){NULL, 0};
		c->twice |= seen & 1u << f;
		seen |= 1u << f;
	}
}

/* The opaque part of an entity tag, with its quotes. */
static struct weir_slice tag_opaque(struct weir_slice tag)
{
	if (tag.n > 2 && tag.p[0] == 'W' && tag.p[1] == '/')
		return (struct weir_slice){tag.p + 2, tag.n - 2};
	return tag;
}

static bool tag_equal(struct weir_slice a, struct weir_slice b, bool weakly)
{
	struct weir_slice x = tag_opaque(a), y = tag_opaque(b);

	if (!weakly && (x.n != a.n || y.n != b.n))
		return false;
	return x.n == y.n && x.n > 0 && memcmp(x.p, y.p, x.n) == 0;
}

/* Remove the first tag from a list and return it. The result has n = 0 at the end, or if the list
 * is malformed. */
static struct weir_slice tag_next(struct weir_slice *list)
{
	const char *p = list->p, *end = p + list->n, *start;

	while (p < end && (ows_is(*p) || *p == ','))
		p++;
	start = p;
	if (end - p > 2 && p[0] == 'W' && p[1] == '/')
		p += 2;
	const char *close = p < end && *p == '"' ? memchr(p + 1, '"', (size_t)(end - p - 1)) : NULL;
	struct weir_slice tag = {start, close ? (size_t)(close + 1 - start) : 0};
	for (p = close ? close + 1 : end; p < end && ows_is(*p); p++)
		;
	if (p < end && *p != ',') /* more than one tag between two commas */
		tag.n = 0;
	*list = (struct weir_slice){p, (size_t)(end - p)};
	return tag;
}

static bool tag_listed(struct weir_slice list, struct weir_slice etag, bool weakly)
{
	struct weir_slice tag;

	if (list.n == 1 && list.p[0] == '*')
		return true;
	while ((tag = tag_next(&list)).n > 0)
		if (tag_equal(tag, etag, weakly))
			return true;
	return false;
}

/* Whether any line of the field `f` lists `etag`. The client must have sent the field. */
static bool tag_sent(
    const struct condition *c, enum condition_field f, struct weir_slice etag, bool weakly)
{
	enum condition_field other;

	if (!(c->twice & 1u << f))
		return tag_listed(c->field[f], etag, weakly);
	for (int i = 0; i < c->req->n_headers; i++)
		if (condition_is_field(c->req->headers[i].name, &other) && other == f &&
		    tag_listed(c->req->headers[i].value, etag, weakly))
			return true;
	return false;
}

/* Whether the file was changed after the date in `text`. Returns `otherwise` if that date is
 * invalid or the file's date is unknown. */
static bool modified_after(
    struct weir_slice text, const struct condition_file *file, bool otherwise)
{
	int64_t at_s;

	if (file->modified_s < 0 || httpdate_parse(text, &at_s) < 0)
		return otherwise;
	return file->modified_s > at_s;
}

int condition_judge_whole(const struct condition *c, const struct condition_file *file)
{
	const struct weir_slice *f = c->field;

	if (f[CONDITION_IF_MATCH].p) {
		if (!tag_sent(c, CONDITION_IF_MATCH, file->etag, false))
			return 412;
	} else if (f[CONDITION_IF_UNMODIFIED_SINCE].p) {
		if (modified_after(f[CONDITION_IF_UNMODIFIED_SINCE], file, false))
			return 412;
	}
	if (f[CONDITION_IF_NONE_MATCH].p)
		return tag_sent(c, CONDITION_IF_NONE_MATCH, file->etag, true) ? 304 : 200;
	if (f[CONDITION_IF_MODIFIED_SINCE].p)
		return modified_after(f[CONDITION_IF_MODIFIED_SINCE], file, true) ? 200 : 304;
	return 200;
}

/* Whether If-Range is true: it has the file's ETag, compared strongly, or exactly the file's date.
 * A date identifies the file only if no other variant exists and the file can no longer change
 * within the same second (as long as it can, its ETag is weak). */
static bool range_wanted(const struct condition *c, const struct condition_file *file)
{
	struct weir_slice t = c->field[CONDITION_IF_RANGE];
	int64_t at_s;

	if (!t.p)
		return !(c->twice & 1u << CONDITION_IF_RANGE);
	if (memchr(t.p, '"', t.n))
		return tag_equal(t, file->etag, false);
	if (file->varies || tag_opaque(file->etag).n != file->etag.n)
		return false;
	return file->modified_s >= 0 && httpdate_parse(t, &at_s) == 0 && at_s == file->modified_s;
}

static struct condition_verdict judge_range(
    struct weir_slice text, const struct condition_file *file)
{
	struct range_set set;
	int status = range_read(text, file->size_bytes, &set);

	if (status == 200)
		return (struct condition_verdict){200, 0, file->size_bytes, 0};
	if (status == 416)
		return (struct condition_verdict){416, 0, 0, 0};
	if (set.n > 1 && !file->one_part)
		return (struct condition_verdict){206, 0, 0, set.n};
	return (struct condition_verdict){206, set.range[0].offset, set.range[0].length, 1};
}

struct condition_verdict condition_judge(
    const struct condition *c, enum weir_http_method method, const struct condition_file *file)
{
	struct condition_verdict whole = {200, 0, file->size_bytes, 0};

	if (!c->any)
		return whole;
	int status = condition_judge_whole(c, file);
	if (status != 200)
		return (struct condition_verdict){status, 0, 0, 0};
	if (method != WEIR_HTTP_GET || !c->field[CONDITION_RANGE].p || file->no_ranges ||
	    !range_wanted(c, file))
		return whole;
	return judge_range(c->field[CONDITION_RANGE], file);
}

void condition_ranges(
    const struct condition *c, const struct condition_file *file, struct range_set *set)
{
	range_read(c->field[CONDITION_RANGE], file->size_bytes, set);
}

void condition_content_range(
    const struct condition_verdict *v, int64_t size_bytes, char out[CONDITION_RANGE_SIZE])
{
	if (v->status == 416)
		snprintf(out, CONDITION_RANGE_SIZE, "bytes */%" PRId64, size_bytes);
	else
		snprintf(out, CONDITION_RANGE_SIZE, "bytes %" PRId64 "-%" PRId64 "/%" PRId64,
		    v->offset, v->offset + v->length - 1, size_bytes);
}
