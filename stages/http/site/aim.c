/* SPDX-License-Identifier: MIT */
/* Builds the URLs of redirects and rewrites; see aim.h. */
#include "http/site/aim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "http/message/guard.h"
#include "http/message/match.h"
#include "http/message/normal_path.h"

enum name { PATH, REST, QUERY, HOST, AUTHORITY, SCHEME };

static const char *const names[] = {"path", "rest", "query", "host", "authority", "scheme", NULL};

/* ---- configuration ---- */

static int refuse(struct weir_err *err, const char *text, const char *hint)
{
	snprintf(err->text, sizeof(err->text), "%s", text);
	snprintf(err->hint, sizeof(err->hint), "%s", hint);
	return WEIR_EINVAL;
}

/* Whether the bytes of `t` are of `kinds`, with complete escapes, and the placeholders are among `allowed`
 * (bits of enum name). */
static bool pieces_good(const struct http_template *t, unsigned kinds, unsigned allowed)
{
	for (int i = 0; i < t->n; i++) {
		const struct template_piece *x = &t->piece[i];
		if (x->name >= 0 ? !(allowed >> x->name & 1)
				 : guard_span(x->p, x->n, kinds) != x->n)
			return false;
		for (size_t k = 0; x->name < 0 && k < x->n; k++)
			if (x->p[k] == '%' && (x->n - k < 3 || !guard_is(x->p[k + 1], GUARD_HEX) ||
						  !guard_is(x->p[k + 2], GUARD_HEX)))
				return false;
	}
	return true;
}

/* Check "https://www.example.org", in which {scheme}, {host} and {authority} may be placeholders. */
static int check_base(const char *base, size_t n, struct weir_err *err)
{
	static const char advice[] = "write http://, https:// or {scheme}://, then {host}, "
				     "{authority} or the name of a host";
	static const char *const schemes[] = {"http://", "https://", "{scheme}://"};
	size_t skip = 0;

	for (int i = 0; i < 3; i++)
		if (strncmp(base, schemes[i], strlen(schemes[i])) == 0)
			skip = strlen(schemes[i]);
	struct weir_slice host = {base + skip, n - skip};
	bool named = weir_slice_is(host, "{host}") || weir_slice_is(host, "{authority}");
	/* a name may follow {host} only as a port: https://{host}:8443 */
	if (!named && host.n > 7 && strncmp(host.p, "{host}:", 7) == 0) {
		char local[16];
		snprintf(local, sizeof(local), "x%.*s", (int)(host.n - 6), host.p + 6);
		named =
		    host.n - 6 < 8 && guard_authority((struct weir_slice){local, strlen(local)});
	}
	if (skip == 0 || (!named && !guard_authority(host)))
		return refuse(err, "the host of this URL is not valid", advice);
	return 0;
}

/* Check that the path is in normal form if its placeholders are. */
static int check_path(const struct http_template *t, struct weir_err *err)
{
	char text[WEIR_HTTP_TARGET_MAX + 1];
	size_t n = 0;

	if (!pieces_good(t, GUARD_PATH, 1U << PATH | 1U << REST))
		return refuse(err, "the path of this URL is not valid",
		    "besides {path} and {rest}, write all but letters, digits and "
		    "-._~!$&'()*+,;=:@[]|/ as %XX");
	for (int i = 0; i < t->n; i++) {
		const struct template_piece *x = &t->piece[i];
		struct weir_slice s = x->name == PATH   ? (struct weir_slice){"/x", 2}
				      : x->name == REST ? (struct weir_slice){"x", 1}
							: (struct weir_slice){x->p, x->n};
		if (x->name == PATH && n > 0 && text[n - 1] == '/')
			n--;
		if (n + s.n >= sizeof(text))
			return refuse(err, "the path of this URL is too long", "");
		memcpy(text + n, s.p, s.n);
		n += s.n;
	}
	if (n > 0 && text[0] != '/')
		return refuse(err, "the path of this URL must begin with '/' or {path}", "");
	if (n > 0 && !normal_path_pattern(text, n, false, err->hint, sizeof(err->hint))) {
		snprintf(
		    err->text, sizeof(err->text), "the path of this URL is not in normal form");
		return WEIR_EINVAL;
	}
	return 0;
}

static int parse_part(struct http_template *t, const char *p, size_t n, struct weir_err *err)
{
	int rc = http_template_parse(t, p, n, names, true, err->hint, sizeof(err->hint));

	if (rc == WEIR_EINVAL)
		snprintf(err->text, sizeof(err->text), "unknown placeholder in '%.100s'", p);
	return rc;
}

/* Split the text at the end of the host and at '?'. */
static int parse(struct aim *a, bool redirect, struct weir_err *err)
{
	const char *p = a->text, *colon = strstr(p, "://"), *mark;
	int rc = 0;

	if (strchr(p, '#'))
		return refuse(
		    err, "a fragment is not possible here", "remove '#' and what follows");
	if (p[0] == '/' && p[1] == '/')
		return refuse(err, "'//' would lead to another host", "write the scheme: https://");
	if (colon && colon < p + strcspn(p, "/?")) {
		if (!redirect)
			return refuse(
			    err, "a rewrite stays on its host", "write a path, or use redirect");
		size_t n = (size_t)(colon - p) + 3;
		n += strcspn(p + n, "/?");
		const char *path = strstr(p, "{path}");
		n = path && path < p + n ? (size_t)(path - p) : n;
		rc = check_base(p, n, err);
		rc = rc == 0 ? parse_part(&a->base, p, n, err) : rc;
		p += n;
	}
	mark = strchr(p, '?');
	size_t path_n = mark ? (size_t)(mark - p) : strlen(p);
	if (rc == 0 && path_n == 0 && a->base.n == 0)
		return refuse(err, "the path of this URL must begin with '/' or {path}", "");
	rc = rc == 0 ? parse_part(&a->path, p, path_n, err) : rc;
	rc = rc == 0 ? check_path(&a->path, err) : rc;
	a->has_query = mark != NULL;
	if (rc == 0 && mark)
		rc = parse_part(&a->query, mark + 1, strlen(mark + 1), err);
	if (rc == 0 && !pieces_good(&a->query, GUARD_QUERY, ~0U))
		return refuse(
		    err, "the query of this URL is not valid", "write other bytes as %XX");
	return rc;
}

int aim_init(struct aim *a, const char *text, bool keep, bool redirect, struct weir_err *err)
{
	a->text = strdup(text);
	if (!a->text)
		return WEIR_ENOMEM;
	a->scheme = http_field("scheme");
	int rc = parse(a, redirect, err);
	a->keeps_query = keep && !a->has_query;
	return rc;
}

void aim_fini(struct aim *a)
{
	free(a->text);
	http_template_fini(&a->base);
	http_template_fini(&a->path);
	http_template_fini(&a->query);
	*a = (struct aim){0};
}

/* ---- requests ---- */

/* The URL so far; `full` once something did not fit. */
struct build {
	struct aimed *out;
	bool full;
};

static void put_bytes(struct build *b, struct weir_slice s)
{
	if (b->full || s.n > AIM_URL_MAX - b->out->n) {
		b->full = true;
		return;
	}
	if (s.n > 0)
		memcpy(b->out->url + b->out->n, s.p, s.n);
	b->out->n += s.n;
}

/* Append `s` as the value of a parameter: all but unreserved bytes and '/' is escaped, so that it can
 * neither end the parameter nor be decoded to something else. */
static void put_escaped(struct build *b, struct weir_slice s)
{
	static const char hex[] = "0123456789ABCDEF";

	for (size_t i = 0; i < s.n; i++) {
		uint8_t c = (uint8_t)s.p[i];
		char escape[3] = {'%', hex[c >> 4], hex[c & 15]};
		bool plain = guard_is((char)c, GUARD_HOST) || c == '/';
		put_bytes(
		    b, plain ? (struct weir_slice){s.p + i, 1} : (struct weir_slice){escape, 3});
	}
}

static struct weir_slice value(const struct aim *a, const struct weir_http_request *req,
    struct weir_slice rest, const struct template_piece *x)
{
	switch (x->name) {
	case PATH:
		return req->path;
	case REST:
		return rest;
	case QUERY:
		return req->query;
	case HOST:
		return weir_http_host_name(req);
	case AUTHORITY:
		return req->host;
	case SCHEME:
		return a->scheme->get(&req->ev, NULL);
	default:
		return (struct weir_slice){x->p, x->n};
	}
}

static void put_template(struct build *b, const struct aim *a, const struct http_template *t,
    const struct weir_http_request *req, struct weir_slice rest, bool in_query)
{
	for (int i = 0; i < t->n; i++) {
		const struct template_piece *x = &t->piece[i];
		struct weir_slice s = value(a, req, rest, x);
		if (in_query && x->name >= 0 && x->name != QUERY)
			put_escaped(b, s);
		else
			put_bytes(b, s);
	}
}

/* Whether a segment of `path` is "." or "..": an aim put it together, since no path of a request has
 * one. */
static bool has_dots(struct weir_slice path)
{
	size_t start = 0;

	for (size_t i = 0; i <= path.n; i++) {
		if (i < path.n && path.p[i] != '/')
			continue;
		size_t n = i - start;
		if ((n == 1 || n == 2) && path.p[start] == '.' && path.p[i - 1] == '.')
			return true;
		start = i + 1;
	}
	return false;
}

/* Convert the path, which begins at `start`, to its normal form: it may have "//". */
static int normalize(struct aimed *out, size_t start)
{
	char normal[AIM_URL_MAX + 1];
	struct weir_slice path = {out->url + start, out->n - start};

	if (path.n > WEIR_HTTP_TARGET_MAX)
		return WEIR_ENOENT;
	if (has_dots(path))
		return WEIR_EINVAL;
	long n = normal_path(path, normal);
	if (n < 0)
		return WEIR_EINVAL;
	memcpy(out->url + start, normal, (size_t)n);
	out->path_n = (size_t)n;
	out->n = start + (size_t)n;
	return 0;
}

static void put_query(struct build *b, const struct aim *a, const struct weir_http_request *req,
    struct weir_slice rest)
{
	struct aimed *out = b->out;
	bool kept = a->keeps_query && req->query.n > 0;

	if (!a->has_query && !kept)
		return;
	put_bytes(b, (struct weir_slice){"?", 1});
	if (kept) {
		put_bytes(b, req->query);
		return;
	}
	put_template(b, a, &a->query, req, rest, true);
	/* "?{query}" and "?a=1&{query}" of a request without a query */
	if (out->url[out->n - 1] == '?' || out->url[out->n - 1] == '&')
		out->n--;
}

int aim_at(const struct aim *a, const struct weir_http_request *req, struct weir_slice rest,
    struct aimed *out)
{
	struct build b = {.out = out};

	out->n = 0;
	if (req->host.n == 0 &&
	    (http_template_has(&a->base, HOST) || http_template_has(&a->base, AUTHORITY)))
		return WEIR_EINVAL;
	put_template(&b, a, &a->base, req, rest, false);
	out->base_n = out->n;
	put_template(&b, a, &a->path, req, rest, false);
	int rc = b.full ? WEIR_ENOENT : normalize(out, out->base_n);
	if (rc != 0)
		return rc;
	put_query(&b, a, req, rest);
	out->url[out->n] = '\0';
	return b.full ? WEIR_ENOENT : 0;
}

bool aim_is_same(
    const struct aimed *to, const struct weir_http_request *req, const struct weir_field *scheme)
{
	const char *path = to->url + to->base_n, *query = path + to->path_n;
	struct weir_slice is = scheme->get(&req->ev, NULL);
	size_t query_n = to->n - to->base_n - to->path_n;

	if (to->base_n > 0) {
		struct weir_slice base = {to->url, to->base_n};
		if (base.n < is.n + 3 || strncmp(base.p, is.p, is.n) != 0 || base.p[is.n] != ':')
			return false;
		base.p += is.n + 3;
		base.n -= is.n + 3;
		if (!guard_same_authority(base, req->host, is.n == strlen("https")))
			return false;
	}
	if (to->path_n != req->path.n || memcmp(path, req->path.p, to->path_n) != 0)
		return false;
	query += query_n > 0;
	query_n -= query_n > 0;
	return query_n == req->query.n &&
	       (query_n == 0 || memcmp(query, req->query.p, query_n) == 0);
}
