/* SPDX-License-Identifier: MIT */
/*
 * A request as routes see it, and the answer they make: plain data, nothing of libmicrohttpd.
 *
 * Mistakes are answered as application/problem+json (RFC 9457) with a sentence in `detail`.
 */
#ifndef WEIR_ADMIN_REPLY_H
#define WEIR_ADMIN_REPLY_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include <weir/annotate.h>

/** Longest body of a request. A knob may hold a whole page of text ("with.body"). */
#define ADMIN_BODY_MAX 8192

/** Digits of a number in JSON: of seconds since 1970 to 10 us; what a double keeps of any decimal number. */
#define ADMIN_JSON_REALS JSON_REAL_PRECISION(15)

struct gate;
struct gate_pass;

struct request {
	const char *method;                             /* "GET" */
	const char *target;                             /* as sent: path and query, not decoded */
	const char *host;                               /* has passed authority_allows_host */
	const char *origin, *fetch_site, *content_type; /* NULL when not sent */
	const char *if_none_match;                      /* likewise */
	const char *body;                               /* `n_body` bytes */
	size_t n_body;
	struct gate *gate;      /* NULL: there is none, and */
	struct gate_pass *pass; /* then this, too: who asks may do all (gate.h) */
};

struct reply {
	int status;
	const char *type; /* Content-Type, static */
	const char *body; /* `n` bytes */
	size_t n;
	char *owned; /* the body again if it came from malloc and goes with the reply, else NULL */
	char allow[64];   /* value of Allow for a 405, else "" */
	char cookie[160]; /* value of Set-Cookie, else ""; wiped by reply_fini */
	char etag
	    [40]; /* it may be asked for again by this, and kept, unless it is weak (W/); "": neither */
};

/** Fields that every answer carries, whoever writes it; a NULL name ends the table. */
struct reply_field {
	const char *name, *value;
};
extern const struct reply_field reply_fields[];

/** `n` bytes made by malloc, which the reply takes over; NULL is answered as out of memory. */
void reply_text(struct reply *reply, int status, const char *type, char *body, size_t n);

/** Static bytes. */
void reply_static(struct reply *reply, int status, const char *type, const char *body, size_t n);

/** `json` is used up; NULL is answered as out of memory. */
void reply_json(struct reply *reply, int status, json_t *json);

/** A problem with its sentence. */
void reply_problem(struct reply *reply, int status, const char *fmt, ...) WEIR_PRINTF(3, 4);

/** "Not Found" for 404; the statuses that the endpoint uses. */
const char *reply_reason(int status);

void reply_fini(struct reply *reply);

#endif
