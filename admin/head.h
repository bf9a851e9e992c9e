/* SPDX-License-Identifier: MIT */
/*
 * The strict look at a request before libmicrohttpd may see it.
 *
 * libmicrohttpd 0.9.75 answers requests with two Hosts, with both Content-Length and
 * Transfer-Encoding, and with lines that end in LF alone, even when asked to be strict. So the
 * bytes are peeked at until the whole request is there, body included, and only a request with one
 * meaning is handed over: one line, fields that appear once, a length that is a number. Pure
 * function.
 */
#ifndef WEIR_ADMIN_HEAD_H
#define WEIR_ADMIN_HEAD_H

#include <stddef.h>

#include "authority.h"
#include "reply.h"

/** Longest request line and fields together. A browser sends about 700 bytes. */
#define HEAD_MAX 8192

/** Room that a peek needs to see the whole of any request that is accepted. */
#define HEAD_PEEK_MAX (HEAD_MAX + ADMIN_BODY_MAX)

enum head_verdict {
	HEAD_MORE,  /* not all there yet */
	HEAD_WHOLE, /* hand it over */
	HEAD_BAD,   /* answer `status` and close */
};

struct head_problem {
	int status;
	const char *why;   /* a sentence; lives until the next problem is found */
	int retry_after_s; /* with a 429; 0: none */
};

/** Judge the first `n` bytes of a connection to `address`. */
enum head_verdict head_check(
    const struct authority *address, const char *p, size_t n, struct head_problem *problem);

/** Of a request that head_check found whole: its target, path and query as sent. */
struct weir_slice head_target(const char *p, size_t n);

/** The value of its field `name` (the first, if there are several), p NULL when it has none. */
struct weir_slice head_field(const char *p, size_t n, const char *name);

#endif
