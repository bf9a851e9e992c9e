/* SPDX-License-Identifier: MIT */
/*
 * A request as the routes see it, and the reply they fill: plain data, independent of
 * libmicrohttpd.
 *
 * Errors are sent as application/problem+json (RFC 9457) with a message in `detail`.
 */
#ifndef WEIR_ADMIN_REPLY_H
#define WEIR_ADMIN_REPLY_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include <weir/annotate.h>

/** Maximum length of a request body. The value of a knob may be a whole page of text
 * ("with.body"). */
#define ADMIN_BODY_MAX 8192

/** Significant digits of numbers in JSON. 15 is the number of decimal digits that a double always
 *  preserves; it shows Unix times to 10 us. */
#define ADMIN_JSON_REALS JSON_REAL_PRECISION(15)

struct auth;
struct auth_pass;

struct request {
	const char *method;                             /* "GET" */
	const char *target;                             /* as sent: path and query, not decoded */
	const char *host;                               /* has passed authority_allows_host */
	const char *origin, *fetch_site, *content_type; /* NULL when not sent */
	const char *if_none_match, *accept_encoding;    /* NULL when not sent */
	const char *body;                               /* `n_body` bytes */
	size_t n_body;
	/* both NULL if there is no authentication; everything is allowed then (auth.h) */
	struct auth *auth;
	struct auth_pass *pass;
};

struct reply {
	int status;
	const char *type; /* Content-Type, static */
	const char *body; /* `n` bytes */
	size_t n;
	const char *coding; /* Content-Encoding, static; NULL if the body is as it is */
	bool varies;        /* another Accept-Encoding gets another body, or another tag */
	char *owned;    /* `body` if it was malloc'ed and must be freed with the reply, else NULL */
	char allow[64]; /* value of Allow for a 405, else "" */
	char cookie[160]; /* value of Set-Cookie, else ""; wiped by reply_fini */
	/* entity tag for revalidation, "" if none; the response may be cached unless the tag is
	 * weak (W/) */
	char etag[40];
};

/** Header fields of every response, whichever code writes it; a NULL name ends the table. */
struct reply_field {
	const char *name, *value;
};
extern const struct reply_field reply_fields[];

/** Reply with `n` malloc'ed bytes and take ownership of them. If `body` is NULL, the reply is a
 *  problem: "out of memory". */
void reply_text(struct reply *reply, int status, const char *type, char *body, size_t n);

/** Reply with static bytes. */
void reply_static(struct reply *reply, int status, const char *type, const char *body, size_t n);

/** Reply with `json`, which is consumed. If `json` is NULL, the reply is a problem: "out of
 *  memory". */
void reply_json(struct reply *reply, int status, json_t *json);

/** Reply with a problem whose `detail` is a formatted message. */
void reply_problem(struct reply *reply, int status, const char *fmt, ...) WEIR_PRINTF(3, 4);

/** Return the reason phrase, such as "Not Found" for 404; covers the statuses that the endpoint
 *  uses. */
const char *reply_reason(int status);

void reply_fini(struct reply *reply);

#endif
