/* SPDX-License-Identifier: MIT */
/*
 * A request head, twice judged: the byte guard takes it apart, llhttp has to agree.
 *
 * llhttp runs strict, over a complete head that the guard found good. It says what the method is
 * and whether the connection stays open, and it is the second opinion on framing: where its body
 * length or coding differ from the guard's, the request is refused. No callback per field.
 *
 * It reads the request line and, as they stand, the fields that it acts upon; what the guard calls good it
 * takes in any other field. That it would say the same of every byte of the head is checked where the guard is
 * fuzzed (fuzz_http_guard).
 */
#ifndef WEIR_HTTP_PARSE_H
#define WEIR_HTTP_PARSE_H

#include "http/guard.h"

/** As guard_head, with llhttp's agreement; also sets method_id and keep_alive. 501 for TRACE
 * and for a method that llhttp does not know. */
enum guard_verdict parse_head(const char *p, size_t n, struct http_head *head);

#endif
