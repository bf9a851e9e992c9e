/* SPDX-License-Identifier: MIT */
/*
 * Checks requests strictly before libmicrohttpd parses them.
 *
 * libmicrohttpd 0.9.75 answers requests with two Hosts, with both Content-Length and
 * Transfer-Encoding, and with lines that end in a bare LF, even in strict mode. Therefore the
 * endpoint peeks at the socket until the whole request, including its body, has arrived, and hands
 * over only unambiguous requests: one request line, fields that appear once, a numeric length. Pure
 * functions.
 */
#ifndef WEIR_ADMIN_HEAD_H
#define WEIR_ADMIN_HEAD_H

#include <stddef.h>

#include "authority.h"
#include "reply.h"

/** Maximum size of the request line and fields together. A browser sends about 700 bytes. */
#define HEAD_MAX 8192

/** Buffer size for a peek at the largest request that is accepted. */
#define HEAD_PEEK_MAX (HEAD_MAX + ADMIN_BODY_MAX)

enum head_verdict {
	HEAD_MORE,  /* not complete yet */
	HEAD_WHOLE, /* complete: hand it over */
	HEAD_BAD,   /* respond with `status` and close */
};

struct head_problem {
	int status;
	const char *why;   /* message, valid until the next problem is found */
	int retry_after_s; /* value of Retry-After for a 429, else 0 */
};

/** Check the first `n` bytes of a connection to `address`. */
enum head_verdict head_check(
    const struct authority *address, const char *p, size_t n, struct head_problem *problem);

/** Return the target (path and query, as sent) of a request that head_check found complete. */
struct weir_slice head_target(const char *p, size_t n);

/** Return the value of field `name` in a request that head_check found complete. If there are
 *  several such fields, return the first; if there is none, p of the result is NULL. */
struct weir_slice head_field(const char *p, size_t n, const char *name);

#endif
