/* SPDX-License-Identifier: MIT */
/* Conditions on requests, as rules of the configuration state them: path, method, host and scheme. */
#ifndef WEIR_HTTP_MATCH_H
#define WEIR_HTTP_MATCH_H

#include <stdbool.h>
#include <stddef.h>

#include <weir/http.h>

/** The condition of one rule. An empty condition holds for every request. */
struct http_match {
	char *path, *method, *host, *scheme; /* owned; NULL matches any */
	/* `path` without its star: path[0..path_n), and suffix[0..suffix_n) behind the star */
	size_t path_n, suffix_n, host_n;
	const char *suffix;
	bool path_star, host_suffix;
	const struct weir_field *scheme_field; /* set if `scheme` is */
};

/** Texts of the configuration, each of which may be NULL or empty. */
struct http_match_conf {
	const char *path;   /* in normal form; with `amid`, a star may also be inside */
	const char *method; /* "GET|HEAD" */
	const char *host;   /* without a port, or "*.example.org" */
	const char *scheme; /* "http" or "https" */
	bool amid;
};

/**
 * Fill `m`, which must be zeroed, with copies of the texts. Returns NULL; or, if no request can match, a
 * static text that names the member in quotes, with advice in hint[size]. If memory is short, returns
 * the static text "out of memory". Free `m` with http_match_fini in each case. Any thread.
 */
const char *http_match_init(
    struct http_match *m, const struct http_match_conf *conf, char *hint, size_t size);
void http_match_fini(struct http_match *m);

/** Whether `req` meets the condition. If so, *rest is the part of the path that the star stands for; it
 * is empty without a star. `rest` may be NULL. Any thread that may read `req`; about 20 ns. */
bool http_match(
    const struct http_match *m, const struct weir_http_request *req, struct weir_slice *rest);

/** The field of http.request called `name`, which must exist, such as "scheme". Any thread. */
const struct weir_field *http_field(const char *name);

#endif
