/* SPDX-License-Identifier: MIT */
/* Compares requests with the conditions of rules; see match.h. */
#include "http/message/match.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "http/message/guard.h"
#include "http/message/normal_path.h"
#include "http/message/parse.h"

const struct weir_field *http_field(const char *name)
{
	const struct weir_field *f = weir_http_request_type.fields;

	while (strcmp(f->name, name) != 0)
		f++;
	return f;
}

/* ---- requests ---- */

/* Whether path[0..at) ends inside an escape. */
static bool splits_escape(struct weir_slice path, size_t at)
{
	return at < path.n &&
	       ((at >= 1 && path.p[at - 1] == '%') || (at >= 2 && path.p[at - 2] == '%'));
}

static bool path_matches(
    const struct http_match *m, struct weir_slice path, struct weir_slice *rest)
{
	if (!m->path)
		return true;
	if (m->path_star ? path.n < m->path_n + m->suffix_n : path.n != m->path_n)
		return false;
	if (memcmp(path.p, m->path, m->path_n) != 0)
		return false;
	size_t end = path.n - m->suffix_n;
	*rest = (struct weir_slice){path.p + m->path_n, end - m->path_n};
	return m->suffix_n == 0 ||
	       (memcmp(path.p + end, m->suffix, m->suffix_n) == 0 && !splits_escape(path, end));
}

/* Whether `method` is in `list`, such as "GET|HEAD". */
static bool method_matches(const char *list, struct weir_slice method)
{
	while (list) {
		const char *bar = strchr(list, '|');
		size_t n = bar ? (size_t)(bar - list) : strlen(list);
		if (n == method.n && memcmp(list, method.p, n) == 0)
			return true;
		list = bar ? bar + 1 : NULL;
	}
	return false;
}

static bool host_matches(const struct http_match *m, struct weir_slice host)
{
	if (!m->host)
		return true;
	if (m->host_suffix ? host.n <= m->host_n : host.n != m->host_n)
		return false;
	return strncasecmp(host.p + host.n - m->host_n, m->host, m->host_n) == 0;
}

static bool scheme_matches(const struct http_match *m, const struct weir_http_request *req)
{
	return !m->scheme || weir_slice_is(m->scheme_field->get(&req->ev, NULL), m->scheme);
}

bool http_match(
    const struct http_match *m, const struct weir_http_request *req, struct weir_slice *rest)
{
	struct weir_slice none = {NULL, 0};

	rest = rest ? rest : &none;
	*rest = (struct weir_slice){"", 0};
	return path_matches(m, req->path, rest) &&
	       (!m->method || method_matches(m->method, req->method_text)) &&
	       host_matches(m, weir_http_host_name(req)) && scheme_matches(m, req);
}

/* ---- configuration ---- */

static const char no_memory[] = "out of memory";

static bool copy_text(char **to, const char *from)
{
	if (!from || !from[0])
		return true;
	*to = strdup(from);
	return *to != NULL;
}

/* Whether a request can have the host `name` or, if `name` begins with "*.", a host that ends in
 * the rest of it. Hosts are compared without a port and without a trailing dot. */
static bool host_good(const char *name)
{
	bool suffix = strncmp(name, "*.", 2) == 0;
	struct weir_slice s = {name + (suffix ? 2 : 0), strlen(name) - (suffix ? 2 : 0)};

	if (!guard_authority(s) || s.p[s.n - 1] == '.')
		return false;
	return s.p[0] == '[' ? !suffix && s.p[s.n - 1] == ']' : !memchr(s.p, ':', s.n);
}

/* Write `name` in upper case to `up`, which has space for it. */
static void upper_case(const char *name, char *up)
{
	for (; *name; name++)
		*up++ = *name >= 'a' && *name <= 'z' ? (char)(*name - 'a' + 'A') : *name;
	*up = '\0';
}

/* Whether a request can have the method `name`: one that is always served, or one that `methods` of
 * http.server may name. Fills `hint` if not. */
static bool method_good(const char *name, char *hint, size_t size)
{
	char up[GUARD_METHOD_MAX + 1];

	if (parse_method_served(name))
		return true;
	if (!parse_method_good(name)) {
		snprintf(hint, size,
		    name[0]
			? "a method is a token of at most %d characters, but not CONNECT or TRACE"
			: "put one '|' between two methods, as in GET|HEAD",
		    GUARD_METHOD_MAX);
		return false;
	}
	upper_case(name, up);
	if (!parse_method_served(up) || strcmp(up, name) == 0)
		return true;
	snprintf(hint, size, "methods are case-sensitive: write %s", up);
	return false;
}

/* Whether requests can have each method in `list`, such as "GET|HEAD". Fills `hint` if not. */
static bool methods_good(const char *list, char *hint, size_t size)
{
	while (list) {
		char name[GUARD_METHOD_MAX + 2]; /* a longer name stays too long when truncated */
		const char *bar = strchr(list, '|');
		int n = bar ? (int)(bar - list) : (int)strlen(list);
		snprintf(name, sizeof(name), "%.*s", n, list);
		if (!method_good(name, hint, size))
			return false;
		list = bar ? bar + 1 : NULL;
	}
	return true;
}

/* The bytes behind a star can follow any bytes, so they need no normal form of their own, only that of
 * a path that ends in them. */
static bool suffix_good(const struct http_match *m, char *hint, size_t size)
{
	char text[WEIR_HTTP_TARGET_MAX + 3];

	if (m->suffix_n == 0)
		return true;
	snprintf(text, sizeof(text), "/x%s", m->suffix);
	if (strchr(m->suffix, '*')) {
		snprintf(hint, size, "a path has at most one '*'");
		return false;
	}
	return normal_path_pattern(text, strlen(text), false, hint, size);
}

static const char *init_path(
    struct http_match *m, const struct http_match_conf *conf, char *hint, size_t size)
{
	if (m->path[0] != '/' && m->path[0] != '*')
		return "'path' must begin with '/'";
	const char *star = conf->amid ? strchr(m->path, '*') : NULL;
	m->path_n = strlen(m->path);
	if (star) {
		m->path_star = true;
		m->path_n = (size_t)(star - m->path);
		m->suffix = star + 1;
		m->suffix_n = strlen(m->suffix);
	} else {
		m->path_star = m->path[m->path_n - 1] == '*';
		m->path_n -= m->path_star;
	}
	if (normal_path_pattern(m->path, m->path_n, m->path_star, hint, size) &&
	    suffix_good(m, hint, size))
		return NULL;
	return "no request can match this 'path'";
}

static const char *init_host(struct http_match *m, char *hint, size_t size)
{
	if (!host_good(m->host)) {
		snprintf(hint, size,
		    "write the name without a port or a trailing dot, as in www.example.org or "
		    "*.example.org");
		return "no request can match this 'host'";
	}
	m->host_suffix = strncmp(m->host, "*.", 2) == 0;
	if (m->host_suffix)
		memmove(m->host, m->host + 1, strlen(m->host));
	m->host_n = strlen(m->host);
	return NULL;
}

const char *http_match_init(
    struct http_match *m, const struct http_match_conf *conf, char *hint, size_t size)
{
	const char *why = NULL;

	if (!copy_text(&m->path, conf->path) || !copy_text(&m->method, conf->method) ||
	    !copy_text(&m->host, conf->host) || !copy_text(&m->scheme, conf->scheme))
		return no_memory;
	if (m->path)
		why = init_path(m, conf, hint, size);
	if (!why && m->method && !methods_good(m->method, hint, size))
		why = "no request has this 'method'";
	if (!why && m->host)
		why = init_host(m, hint, size);
	if (!why && m->scheme && strcmp(m->scheme, "http") != 0 &&
	    strcmp(m->scheme, "https") != 0) {
		snprintf(hint, size, "write http or https");
		why = "no request has this 'scheme'";
	}
	if (m->scheme)
		m->scheme_field = http_field("scheme");
	return why;
}

void http_match_fini(struct http_match *m)
{
	free(m->path);
	free(m->method);
	free(m->host);
	free(m->scheme);
	*m = (struct http_match){0};
}
