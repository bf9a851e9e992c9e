/* SPDX-License-Identifier: MIT */
/* Formats the lines of access_log. Pure functions, for any thread. */
#ifndef WEIR_HTTP_ACCESS_LOG_H
#define WEIR_HTTP_ACCESS_LOG_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/http.h>
#include <weir/stage.h>

/* Order of the choices of `format:`. */
enum access_format { ACCESS_LOGFMT, ACCESS_JSON, ACCESS_COMMON, ACCESS_COMBINED };

/** Maximum number of bytes of one client-supplied text in a line; longer texts are truncated. 512
 * is a guess: about as much as people read. */
#define ACCESS_TEXT_MAX 512
/** Escapes lengthen a text. A text of n bytes is truncated so that at most n times this many bytes
 * are written. */
#define ACCESS_ESCAPED_MAX 3
/** Longest line: the largest atomic write to a pipe, so that writes by other processes cannot split
 * it (pipe(7)). */
#define ACCESS_LINE_BYTES PIPE_BUF

/** The contents of one line. They are known once the response has been sent or can no longer be
 * sent. */
struct access_line {
	const struct weir_http_request *req;
	const char *class_name;
	struct weir_slice client; /* address of the client */
	int outcome;              /* WEIR_OK, or the error with which the request was finished */
	/* finished with WEIR_OK, but the connection was closed before the whole response was
	 * sent */
	bool torn;
	bool handed;   /* finished with WEIR_OK; a reload handed over the rest of the response */
	int64_t bytes; /* bytes of the response's body that the kernel accepted */
	int64_t wall_ns, took_ns; /* time since 1970; time since the request was complete */
	double share; /* fraction of such requests that is logged; not printed if it is 1 */
};

/** Write the line, including its newline, to out[ACCESS_LINE_BYTES]. Returns its length. */
size_t access_line(enum access_format format, const struct access_line *l, char *out);

/** Append `s` to `out` at `n`, quoted, with '"', '\' and bytes that are not printable ASCII
 * escaped. At most `most` bytes of `s` are used, and at most ACCESS_ESCAPED_MAX times as many are
 * written; "..." marks a truncated text. With `json`, the result is a JSON string. A reader of the
 * JSON gets the text that is written without `json`, except that '"' is not escaped in it. Returns
 * the new n. `most` must be at least 5; `out` must have space for ACCESS_ESCAPED_MAX * most + 5
 * bytes at `n`. */
size_t access_quote(char *out, size_t n, struct weir_slice s, size_t most, bool json);

#endif
