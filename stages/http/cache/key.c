/* SPDX-License-Identifier: MIT */
/* Makes keys; see key.h. */
#include "http/cache/key.h"

#include <string.h>
#include <strings.h>

#include "http/cache/control.h"
#include "http/message/guard.h"
#include "http/message/normal_path.h"
#include "http/request/request.h"
#include "text/ows.h"

static bool add(struct hcache_key *k, const char *p, size_t n)
{
	if (n > sizeof(k->p) - k->n)
		return false;
	if (n > 0)
		memcpy(k->p + k->n, p, n);
	k->n += n;
	return true;
}

static bool add_slice(struct hcache_key *k, struct weir_slice s)
{
	return add(k, s.p, s.n);
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

static bool add_lower(struct hcache_key *k, struct weir_slice s)
{
	size_t from = k->n;

	if (!add_slice(k, s))
		return false;
	for (size_t i = from; i < k->n; i++)
		k->p[i] = lower(k->p[i]);
	return true;
}

static bool ends_with(struct weir_slice s, const char *end, size_t n)
{
	return s.n >= n && memcmp(s.p + s.n - n, end, n) == 0;
}

/* Scheme and host, without the default port of the scheme. */
static bool add_site(struct hcache_key *k, bool secure, struct weir_slice host)
{
	if (secure && ends_with(host, ":443", 4))
		host.n -= 4;
	else if (!secure && ends_with(host, ":80", 3))
		host.n -= 3;
	return (secure ? add(k, "https://", 8) : add(k, "http://", 7)) && add_slice(k, host);
}

/* ---- of requests ---- */

bool hcache_is_secure(const struct weir_http_request *req)
{
	for (const struct weir_field *f = weir_http_request_type.fields; f->name; f++)
		if (f->name[0] == 's' && strcmp(f->name, "scheme") == 0)
			return f->get(&req->ev, NULL).n == 5; /* "https" */
	return false;
}

static bool add_field(struct hcache_key *k, struct weir_slice name, struct weir_slice value)
{
	return add(k, "\n", 1) && add_lower(k, name) && add(k, ":", 1) && add_slice(k, value);
}

static bool names_field(const struct weir_strings *fields, struct weir_slice name)
{
	for (int i = 0; i < fields->n; i++)
		if (weir_slice_is(name, fields->items[i]))
			return true;
	return false;
}

/* Members of Forwarded other than the addresses, which every client has others of. */
static bool add_forwarded(struct hcache_key *k, struct weir_slice value)
{
	static const struct weir_slice forwarded = {"forwarded", 9};
	struct weir_slice hop;

	while (hcache_member_next(&value, &hop))
		for (const char *p = hop.p, *end = hop.p + hop.n; p < end;) {
			const char *semi = memchr(p, ';', (size_t)(end - p));
			struct weir_slice part = ows_trim(p, semi ? semi : end);
			bool address = (part.n > 4 && strncasecmp(part.p, "for=", 4) == 0) ||
				       (part.n > 3 && strncasecmp(part.p, "by=", 3) == 0);
			if (part.n > 0 && !address && !add_field(k, forwarded, part))
				return false;
			p = semi ? semi + 1 : end;
		}
	return true;
}

/* What a proxy in `trust` says reaches the origin as it is, so it belongs to the key. */
static bool add_trusted(struct hcache_key *k, const struct weir_http_header *h)
{
	if (weir_slice_is(h->name, "forwarded"))
		return add_forwarded(k, h->value);
	if (h->name.n < 12 || strncasecmp(h->name.p, "x-forwarded-", 12) != 0 ||
	    weir_slice_is(h->name, "x-forwarded-for"))
		return true;
	return add_field(k, h->name, h->value);
}

bool hcache_key_make(
    const struct weir_http_request *req, const struct weir_strings *fields, struct hcache_key *k)
{
	const struct http_req *r = (const struct http_req *)req;
	bool asks =
	    req->query.n > 0 || (req->target.n > 0 && req->target.p[req->target.n - 1] == '?');

	k->n = 0;
	if (!add_site(k, hcache_is_secure(req), req->host) || !add_slice(k, req->path))
		return false;
	if (asks && !(add(k, "?", 1) && add_slice(k, req->query)))
		return false;
	if (fields->n == 0 && r->client_n == 0)
		return true;
	for (int i = 0; i < req->n_headers; i++) {
		const struct weir_http_header *h = &req->headers[i];
		if (names_field(fields, h->name) && !add_field(k, h->name, h->value))
			return false;
		if (r->client_n > 0 && !add_trusted(k, h))
			return false;
	}
	return true;
}

/* ---- of URLs ---- */

static bool all_of(struct weir_slice s, unsigned kinds)
{
	return guard_span(s.p, s.n, kinds) == s.n;
}

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = lower(c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Whether `path` has only what normal_path accepts. */
static bool path_good(struct weir_slice path)
{
	if (!all_of(path, GUARD_PATH) || (path.n > 0 && path.p[0] != '/'))
		return false;
	for (size_t i = 0; i < path.n; i++)
		if (path.p[i] == '%' &&
		    (path.n - i < 3 || hex(path.p[i + 1]) < 0 || hex(path.p[i + 2]) < 0))
			return false;
	return true;
}

/* Take scheme and host from *url. */
static bool take_site(struct weir_slice *url, struct hcache_key *k)
{
	bool secure = url->n >= 8 && strncasecmp(url->p, "https://", 8) == 0;
	size_t skip = secure ? 8 : 7, n = 0;
	int ports = 0;
	bool bracket = false; /* in "[::1]" */
	struct hcache_key host = {0};

	if (!secure && (url->n < 7 || strncasecmp(url->p, "http://", 7) != 0))
		return false;
	url->p += skip;
	url->n -= skip;
	while (n < url->n && !memchr("/?#", url->p[n], 3))
		n++;
	for (size_t i = 0; i < n; i++) {
		char c = url->p[i];
		if (c <= ' ' || c >= 0x7f || c == '@' || c == '\\')
			return false;
		bracket = c == '[' || (bracket && c != ']');
		ports += c == ':' && !bracket;
		if (c == '.' && i > 0 && url->p[i - 1] == '.')
			return false;
		if (c != '.' || (i + 1 < n && url->p[i + 1] != ':')) /* no dot at the end */
			add_lower(&host, (struct weir_slice){&c, 1});
	}
	url->p += n;
	url->n -= n;
	if (host.n == 0 || host.p[0] == ':' || n >= 256 || ports > 1 || bracket)
		return false;
	return add_site(k, secure, hcache_key_text(&host));
}

bool hcache_key_of_url(
    struct weir_slice url, const struct weir_http_request *base, struct hcache_key *k)
{
	struct hcache_key site = {0};
	char normal[HCACHE_KEY_MAX + 1];

	k->n = 0;
	if (base && !add_site(&site, hcache_is_secure(base), base->host))
		return false;
	if (base && url.n > 0 && url.p[0] == '/' && !(url.n > 1 && url.p[1] == '/'))
		add_slice(k, hcache_key_text(&site));
	else if (!take_site(&url, k))
		return false;
	if (base && (k->n != site.n || memcmp(k->p, site.p, k->n) != 0))
		return false;
	const char *hash = url.n > 0 ? memchr(url.p, '#', url.n) : NULL;
	url.n = hash ? (size_t)(hash - url.p) : url.n;
	const char *ask = url.n > 0 ? memchr(url.p, '?', url.n) : NULL;
	struct weir_slice path = {url.p, ask ? (size_t)(ask - url.p) : url.n};
	struct weir_slice query = {url.p + path.n, url.n - path.n};
	if (path.n > HCACHE_KEY_MAX || !path_good(path))
		return false;
	for (size_t i = 0; i < query.n; i++)
		if (query.p[i] <= ' ' || query.p[i] >= 0x7f)
			return false;
	long n = normal_path(path, normal);
	return n > 0 && add(k, normal, (size_t)n) && add_slice(k, query);
}

/* ---- fields that override the key ---- */

bool hcache_is_unkeyed(struct weir_slice name)
{
	/* Fields by which frameworks and proxies replace the method, the host or the URL of a request, or
	 * the address of its client. None is needed for a GET that may be answered from a cache. */
	static const char *const names[] = {"x-http-method-override", "x-http-method",
	    "x-method-override", "x-original-url", "x-rewrite-url", "x-original-host", "x-host",
	    "x-http-host-override", "x-http-destinationurl", "x-original-forwarded-for",
	    "x-client-ip", "x-cluster-client-ip", "client-ip", "true-client-ip", "cf-connecting-ip",
	    "x-originating-ip", "x-remote-ip", "x-remote-addr", "x-proxyuser-ip", "x-backend-host",
	    "x-forwarded-server", "x-amz-website-redirect-location", "max-forwards"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		size_t n = strlen(names[i]), at = 0;
		if (n != name.n)
			continue;
		while (at < n && (name.p[at] == '_' ? '-' : lower(name.p[at])) == names[i][at])
			at++;
		if (at == n)
			return true;
	}
	return false;
}
