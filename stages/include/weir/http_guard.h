/* SPDX-License-Identifier: MIT */
/*
 * The byte guard: checks whether bytes form one complete and unambiguous HTTP/1.x request head.
 *
 * A pure function over raw bytes, used wherever bytes are passed on to a more lenient parser:
 * http.server calls it before llhttp, the admin endpoint before libmicrohttpd. A refusal is final:
 * the caller responds with the status, closes the connection and never parses the head again.
 * stages/http/message/guard.h lists the rules.
 */
#ifndef WEIR_HTTP_GUARD_H
#define WEIR_HTTP_GUARD_H

#include <stddef.h>

#include <weir/annotate.h>

WEIR_C_BEGIN

/** Maximum size of a head in bytes, including the empty line, and its maximum number of fields. A
 * larger head is answered with 431. */
#define WEIR_HTTP_HEAD_MAX    16384
#define WEIR_HTTP_HEADERS_MAX 100
/** Maximum length of a request target in bytes. A longer one is answered with 414. */
#define WEIR_HTTP_TARGET_MAX 8192

/**
 * Check the request head at the start of `p[0..n)`. Bytes after the head are ignored.
 *
 * Returns 1 if the head is complete and valid, with its length including the empty line in
 * `*head_len`. Returns 0 if it is valid so far and more bytes are needed; n is then below
 * WEIR_HTTP_HEAD_MAX. Returns WEIR_EINVAL if it must be refused, with the status for the response
 * in `*status`: 400, 414, 417, 431 or 505. The result does not depend on the number of bytes given
 * after the error. Either pointer may be NULL. Any thread; allocates nothing and does not block. A
 * call costs about 1 ns per 4 bytes.
 */
WEIR_API int weir_http_guard(const char *p, size_t n, size_t *head_len, int *status);

WEIR_C_END

#endif
