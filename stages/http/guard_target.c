/* SPDX-License-Identifier: MIT */
/*
 * The byte guard: the request line, targets and hosts; see guard.h.
 *
 * Hosts are names of unreserved bytes (letters, digits, - . _ ~) or bracketed IPv6 addresses. RFC
 * 3986 would also allow sub-delims and %-escapes in names; no host has them, and caches and logs
 * have been fooled with them, so they are refused.
 */
#include "http/guard.h"

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
	return port <= 65535; /* an empty port is the default one (RFC 3986, 3.2.3) */
}

/* Bytes of "[address]" at the start of `s`, 0 when it is none: IPv6 without a zone. */
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

/* Bytes of a host name at the start of `s`, 0 when it is none: longer than a name can be (RFC 3986,
 * 3.2.2), or with nothing in front of a dot, which nginx and lighttpd refuse. */
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

/* Every '%' begins an escape of a byte that is not NUL. */
static bool escapes_good(struct weir_slice s)
{
	const char *p = s.p, *end = s.p + s.n;

	while ((p = memchr(p, '%', (size_t)(end - p))) != NULL) {
		if (end - p < 3 || !guard_is(p[1], GUARD_HEX) || !guard_is(p[2], GUARD_HEX))
			return false;
		if (p[1] == '0' && p[2] == '0')
			return false;
		p += 3;
	}
	return true;
}

/* A target as it was found. */
struct span {
	struct weir_slice target;
	size_t path_n; /* bytes in front of its '?' */
	bool escaped;  /* it has a '%' */
};

static void split_query(const char *p, const char *end, struct http_head *head)
{
	const char *mark = memchr(p, '?', (size_t)(end - p));
	const char *path_end = mark ? mark : end;

	head->path = (struct weir_slice){p, (size_t)(path_end - p)};
	head->query = mark ? (struct weir_slice){mark + 1, (size_t)(end - mark - 1)}
			   : (struct weir_slice){end, 0};
}

/* "http://authority[/path[?query]]", over TLS "https://"; the authority becomes the host. A query right behind it is
 * legal too, but HAProxy and lighttpd take it for a part of the authority. */
static enum guard_verdict absolute_form(struct weir_slice t, struct http_head *head)
{
	const char *scheme = head->secure ? "https://" : "http://";
	const size_t skip = strlen(scheme);
	size_t i = skip;

	if (t.n <= skip || strncasecmp(t.p, scheme, skip) != 0)
		return guard_refuse(head, 400, "the request target is malformed");
	while (i < t.n && t.p[i] != '/')
		i++;
	head->host = (struct weir_slice){t.p + skip, i - skip};
	if (!guard_authority(head->host))
		return guard_refuse(head, 400, "the host of the target is malformed");
	head->absolute = true;
	split_query(t.p + i, t.p + t.n, head);
	if (head->path.n == 0)
		head->path = (struct weir_slice){"/", 1};
	return GUARD_GOOD;
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
	if (span->escaped && !escapes_good(t))
		return guard_refuse(head, 400, "the request target has a bad escape");
	if (t.p[0] == '/') {
		head->path = (struct weir_slice){t.p, mark};
		head->query = mark < t.n ? (struct weir_slice){t.p + mark + 1, t.n - mark - 1}
					 : (struct weir_slice){t.p + t.n, 0};
		return GUARD_GOOD;
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

/* The target at the start of `p`, behind which the line goes on or ends. */
static struct span target_span(const char *p)
{
	struct span s;
	unsigned kinds = 0;
	size_t n = 0;

	for (; guard_is(p[n], GUARD_PATH); n++)
		kinds |= guard_bytes[(uint8_t)p[n]];
	s.path_n = n;
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
