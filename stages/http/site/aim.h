/* SPDX-License-Identifier: MIT */
/*
 * The aims of redirects and rewrites: templates of URLs.
 *
 * An aim is PATH[?QUERY] or, for redirects, SCHEME://HOST[PATH][?QUERY]. Placeholders: {path}, {rest} (the
 * part of the path that a rule's star stands for), {query}, {host} (without its port), {authority} (with
 * it) and {scheme}. No text of a client can change what kind of URL an aim is: the host is either written
 * in the configuration or the one that the request names, and the path is a path, never "//host".
 */
#ifndef WEIR_HTTP_SITE_AIM_H
#define WEIR_HTTP_SITE_AIM_H

#include <weir/error.h>
#include <weir/http.h>

#include "http/message/template.h"

struct aim {
	char *text;                       /* owned */
	struct http_template base;        /* "https://{host}"; without pieces if there is none */
	struct http_template path, query; /* without pieces if there is none */
	bool has_query;
	bool keeps_query; /* the query of the request is appended */
	const struct weir_field *scheme;
};

/** Largest URL that a redirect may lead to, in bytes. */
#define AIM_URL_MAX 12288

/** Parse `text`. With `keep`, the query of the request is kept if the text has none. With `redirect`, a
 * scheme and a host are allowed. Returns 0; WEIR_EINVAL with err->text and err->hint; WEIR_ENOMEM. Free with
 * aim_fini in each case. */
int aim_init(struct aim *a, const char *text, bool keep, bool redirect, struct weir_err *err);
void aim_fini(struct aim *a);

/** What an aim is for a request. */
struct aimed {
	char url[AIM_URL_MAX + 1]; /* all of it, NUL-terminated; may be relative to the host */
	size_t base_n;             /* length of "https://host"; 0 if there is none */
	size_t path_n;             /* length of the path behind that, at least 1, in normal form */
	size_t n;                  /* length of all */
};

/**
 * Write the URL for `req` to *out. Returns 0; WEIR_EINVAL if the result is no valid URL: the request has no
 * host, or the new path has a segment "." or ".."; WEIR_ENOENT if it is too long. The owner of `req`.
 */
int aim_at(const struct aim *a, const struct weir_http_request *req, struct weir_slice rest,
    struct aimed *out);

/** Whether `to` is the URL of `req` itself. */
bool aim_is_same(
    const struct aimed *to, const struct weir_http_request *req, const struct weir_field *scheme);

#endif
