/* SPDX-License-Identifier: MIT */
/*
 * The byte guard: is this, to the byte, one complete and unambiguous HTTP/1.x request head?
 *
 * A pure function over raw bytes, for every door that hands bytes to a more lenient parser: the
 * data plane runs it before llhttp, the admin endpoint before libmicrohttpd. What it refuses is
 * refused for good: answer with the status and close, never parse again. stages/http/guard.h lists
 * the rules.
 */
#ifndef WEIR_HTTP_GUARD_H
#define WEIR_HTTP_GUARD_H

#include <stddef.h>

#include <weir/annotate.h>

/** Bytes a head may have, from the first to the empty line, and fields in it (else 431). */
#define WEIR_HTTP_HEAD_MAX    16384
#define WEIR_HTTP_HEADERS_MAX 100
/** Bytes a request target may have (else 414). */
#define WEIR_HTTP_TARGET_MAX 8192

/**
 * Check the request head that begins at `p[0..n)`; what follows the head is not looked at.
 *
 * Returns 1 when it is complete and good: `*head_len` is its length with the empty line. Returns 0
 * when it is good as far as it goes and more bytes are needed; n is then below WEIR_HTTP_HEAD_MAX.
 * Returns WEIR_EINVAL when it must be refused: `*status` is the answer, 400, 414, 417, 431 or 505.
 * The answer for a head does not depend on how many bytes beyond the fault are given. Either
 * pointer may be NULL. Any thread; no allocation, no blocking; about 1 ns per 4 bytes.
 */
WEIR_API int weir_http_guard(const char *p, size_t n, size_t *head_len, int *status);

#endif
