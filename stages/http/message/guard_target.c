/* SPDX-License-Identifier: MIT */
/*
 * Checks request lines, targets and hosts; see guard.h.
 *
 * Hosts are names of unreserved bytes (letters, digits, - . _ ~) or bracketed IPv6 addresses. RFC
 * 3986 would also allow sub-delims and %-escapes in names; no real host name contains them, and
 * they have been used to deceive caches and logs, so they are refused.
 */
#include "http/message/guard.h"
#include "http/message/normal_path.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

static bool port_good(const char *p, size_t n)
{
	long port = 0;

	if (n > 5)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (p[i] < '0' || p[i] > '9')
			return false;
		port = port * 10 + (p[i] - '0');
	}
	return port <= 65535; /* an empty port means the default one (RFC 3986, 3.2.3) */
}

/* Return the length of "[address]" at the start of `s`, an IPv6 address without a zone, or 0 if `s`
 * does not begin with one. */
WEIR_COLD static size_t bracketed(struct weir_slice s)
{
	char text[INET6_ADDRSTRLEN];
	struct in6_addr addr;
	size_t i = 1;

	while (i < s.n && i <= sizeof(text) &&
	       (guard_is(s.p[i], GUARD_HEX) || s.p[i] == ':' || s.p[i] == '.'))
		i++;
	if (i == s.n || i > sizeof(text) || s.p[i] != ']')
		return 0;
	memcpy(text, s.p + 1, i - 1);
	text[i - 1] = '\0';
	return inet_pton(AF_INET6, text, &addr) == 1 ? i + 1 : 0;
}

/* Return the length of the host name at the start of `s`. Returns 0 if `s` does not begin with one,
 * if the name is longer than a name can be (RFC 3986, 3.2.2), or if a label before a dot is empty
 * (nginx and lighttpd refuse that, too). */
static size_t name_span(struct weir_slice s)
{
	size_t n = 0;

	if (s.p[0] == '.')
		return 0;
	for (; guard_is(s.p[n], GUARD_HOST); n++)
		if (s.p[n] == '.' && s.p[n + 1] == '.')
			return 0;
	return n <= GUARD_NAME_MAX ? n : 0;
}

/* Remove the port from `s`, and return it. The result is empty if the port is missing or the
 * default one. */
static struct weir_slice cut_port(struct weir_slice *s, bool secure)
{
	const char *known = secure ? "443" : "80";
	size_t n = s->n;

	while (n > 0 && s->p[n - 1] >= '0' && s->p[n - 1] <= '9')
		n--;
	if (n == 0 || s->p[n - 1] != ':')
		return (struct weir_slice){s->p, 0};
	struct weir_slice port = {s->p + n, s->n - n};
	s->n = n - 1;
	if (port.n == strlen(known) && memcmp(port.p, known, port.n) == 0)
		port.n = 0;
	return port;
}

bool guard_authority(struct weir_slice s)
{
	size_t host;

	if (s.n == 0)
		return false;
	host = s.p[0] == '[' ? bracketed(s) : name_span(s);
	if (host == 0)
		return false;
	return host == s.n || (s.p[host] == ':' && port_good(s.p + host + 1, s.n - host - 1));
}

bool guard_same_authority(struct weir_slice a, struct weir_slice b, bool secure)
{
	struct weir_slice port_a = cut_port(&a, secure), port_b = cut_port(&b, secure);

	return a.n == b.n && strncasecmp(a.p, b.p, a.n) == 0 && port_a.n == port_b.n &&
	       memcmp(port_a.p, port_b.p, port_a.n) == 0;
}

bool guard_host_differs(struct weir_slice host)
{
	for (size_t i = 0; i < host.n; i++) {
		if (host.p[i] >= 'A' && host.p[i] <= 'Z')
			return true;
		if (host.p[i] == '.' && (i + 1 == host.n || host.p[i + 1] == ':'))
			return true;
	}
	return false;
}

/* Whether the escapes of the target `s` are valid. No escape may represent NUL. In the path, the
 * first `path_n` bytes, each '%' must begin an escape. In the query a lone '%' is allowed, since
 * browsers send it as the user typed it. */
static bool escapes_good(struct weir_slice s, size_t path_n)
{
	const char *p = s.p, *end = s.p + s.n;

	while ((p = memchr(p, '%', (size_t)(end - p))) != NULL) {
		bool whole = end - p >= 3 && guard_is(p[1], GUARD_HEX) && guard_is(p[2], GUARD_HEX);
		if (whole ? p[1] == '0' && p[2] == '0' : p < s.p + path_n)
			return false;
		p += whole ? 3 : 1;
	}
	return true;
}

/* A target as found in the line. */
struct span {
	struct weir_slice target;
	size_t path_n; /* bytes of `target` before its '?' */
	bool escaped;  /* `target` has a '%' */
	/* the bytes before '?' are in normal spelling, if they are a path at all */
	bool plain;
};

WEIR_COLD enum guard_verdict guard_path(struct http_head *head)
{
	char normal[WEIR_HTTP_TARGET_MAX + 1];
	long n = normal_path(head->path, normal);

	if (n < 0)
		return guard_refuse(head, 400, "the path leads above the root");
	head->path_differs =
	    (size_t)n != head->path.n || memcmp(normal, head->path.p, (size_t)n) != 0;
	return GUARD_GOOD;
}

static void split_query(const char *p, const char *end, struct http_head *head)
{
	const char *mark = memchr(p, '?', (size_t)(end - p));
	const char *path_end = mark ? mark : end;

	head->path = (struct weir_slice){p, (size_t)(path_end - p)};
	head->query = mark ? (struct weir_slice){mark + 1, (size_t)(end - mark - 1)}
			   : (struct weir_slice){end, 0};
}

/* Check "http://authority[/path][?query]", or over TLS "https://..."; the authority becomes the
 * host. */
static enum guard_verdict absolute_form(struct weir_slice t, struct http_head *head)
{
	const char *scheme = head->secure ? "https://" : "http://";
	const size_t skip = strlen(scheme);
	size_t i = skip;

	if (t.n <= skip || strncasecmp(t.p, scheme, skip) != 0)
		return guard_refuse(head, 400, "the request target is malformed");
	while (i < t.n && t.p[i] != '/' && t.p[i] != '?')
		i++;
	head->host = (struct weir_slice){t.p + skip, i - skip};
	if (!guard_authority(head->host))
		return guard_refuse(head, 400, "the host of the target is malformed");
	head->absolute = true;
	head->host_differs = guard_host_differs(head->host);
	split_query(t.p + i, t.p + t.n, head);
	return guard_path(head); /* an empty path becomes "/" */
}

static bool method_is(const struct http_head *head, const char *name)
{
	return head->method.n == strlen(name) && memcmp(head->method.p, name, head->method.n) == 0;
}

static enum guard_verdict target(const struct span *span, struct http_head *head)
{
	const struct weir_slice t = span->target;
	const size_t mark = span->path_n;

	head->target = t;
	if (t.n > WEIR_HTTP_TARGET_MAX)
		return guard_refuse(head, 414, "the request target is too long");
	if (method_is(head, "CONNECT"))
		return guard_refuse(head, 400, "CONNECT is not served");
	if (span->escaped && !escapes_good(t, mark))
		return guard_refuse(head, 400, "the request target has a bad escape");
	if (t.p[0] == '/') {
		head->path = (struct weir_slice){t.p, mark};
		head->query = mark < t.n ? (struct weir_slice){t.p + mark + 1, t.n - mark - 1}
					 : (struct weir_slice){t.p + t.n, 0};
		return WEIR_LIKELY(span->plain) ? GUARD_GOOD : guard_path(head);
	}
	if (t.n == 1 && t.p[0] == '*' && method_is(head, "OPTIONS")) {
		head->path = t;
		head->query = (struct weir_slice){t.p + 1, 0};
		return GUARD_GOOD;
	}
	return absolute_form(t, head);
}

static enum guard_verdict version(struct weir_slice v, struct http_head *head)
{
	if (v.n != 8 || memcmp(v.p, "HTTP/", 5) != 0 || v.p[6] != '.' || v.p[5] < '0' ||
	    v.p[5] > '9' || v.p[7] < '0' || v.p[7] > '9')
		return guard_refuse(head, 400, "the request line is malformed");
	if (v.p[5] != '1' || v.p[7] > '1')
		return guard_refuse(head, 505, "only HTTP/1.0 and HTTP/1.1 are served");
	head->minor = (uint8_t)(v.p[7] - '0');
	return GUARD_GOOD;
}

/* Find the target at the start of `p`. It must be followed by a byte that no target contains. */
static struct span target_span(const char *p)
{
	struct span s;
	unsigned kinds = 0, before = 0, pairs = 0;
	size_t n = 0;

	for (; guard_is(p[n], GUARD_PATH); n++) {
		unsigned kind = guard_bytes[(uint8_t)p[n]];
		kinds |= kind;
		pairs |= before << 1 & kind; /* GUARD_SLASH, then GUARD_DOT */
		before = kind;
	}
	s.path_n = n;
	s.plain = !(kinds & GUARD_ESCAPE) && !(pairs & GUARD_DOT);
	if (p[n] == '?')
		for (; guard_is(p[n], GUARD_QUERY); n++)
			kinds |= guard_bytes[(uint8_t)p[n]];
	s.target = (struct weir_slice){p, n};
	s.escaped = kinds & GUARD_ESCAPE;
	return s;
}

enum guard_verdict guard_request_line(struct weir_slice line, struct http_head *head)
{
	size_t m = guard_run(line.p, GUARD_TOKEN);
	const char *end = line.p + line.n, *behind;
	enum guard_verdict v;

	if (m == 0 || line.p[m] != ' ')
		return guard_refuse(head, 400, "the request line is malformed");
	head->method = (struct weir_slice){line.p, m};
	struct span span = target_span(line.p + m + 1);
	behind = span.target.p + span.target.n;
	if (span.target.n == 0 || *behind != ' ')
		return guard_refuse(head, 400, "the request line is malformed");
	v = version((struct weir_slice){behind + 1, (size_t)(end - behind - 1)}, head);
	return v == GUARD_GOOD ? target(&span, head) : v;
}
