/* SPDX-License-Identifier: MIT */
/*
 * Parses request heads twice: the byte guard splits them into fields, and llhttp must agree with
 * it.
 *
 * llhttp runs in its strict mode, on a complete head that the guard has accepted. It determines the
 * method and whether the connection stays open, and is a cross-check of framing: if its body length
 * or coding differs from the guard's, the request is refused. There is no callback per field.
 *
 * llhttp reads the request line and, unchanged, the fields that it acts upon. The other fields are
 * not passed to it, since it accepts all of them that the guard accepts. The guard's fuzzer
 * (fuzz_http_guard) checks that llhttp would agree on every byte of a head.
 */
#ifndef WEIR_HTTP_PARSE_H
#define WEIR_HTTP_PARSE_H

#include "http/message/guard.h"

/** Like guard_head, but llhttp must agree; also sets method_id and keep_alive. TRACE is refused
 * with 501, and so is a method that llhttp does not know, unless it is one of head->methods. */
enum guard_verdict parse_head(const char *p, size_t n, struct http_head *head);

/** Like guard_answer, but llhttp must agree; also sets keep_alive. */
enum guard_verdict parse_answer(const char *p, size_t n, struct http_head *head);

/** Whether `method` may be in head->methods. Methods that are always served or never served
 * (CONNECT, TRACE) may not. */
bool parse_method_good(const char *method);

/** Whether http.server serves `method` whatever its configuration is. */
bool parse_method_served(const char *method);

#endif
