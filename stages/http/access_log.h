/* SPDX-License-Identifier: MIT */
/* The lines of access_log: pure, any thread. */
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

/** Bytes of a client's text that a line takes: what people read; longer ones are cut. A guess. */
#define ACCESS_TEXT_MAX 512
/** And how many times as many escaped, at most. */
#define ACCESS_ESCAPED_MAX 3
/** Room for a line: no more than a pipe takes whole, so that what others write to it never comes between (pipe(7)). */
#define ACCESS_LINE_BYTES PIPE_BUF

/** What a line tells of a request whose answer has left, or never will. */
struct access_line {
	const struct weir_http_request *req;
	const char *class_name;
	struct weir_slice client; /* its address */
	int outcome;              /* WEIR_OK or the error it was finished with */
	bool
	    torn; /* finished with WEIR_OK, but the connection ended before all of the answer was sent */
	int64_t bytes;            /* of the answer's body that the kernel took to send */
	int64_t wall_ns, took_ns; /* now, since 1970; since the request was whole */
	double share;             /* of such requests that are written; 1: all, and not told */
};

/** Put the line, with its newline, into out[ACCESS_LINE_BYTES]. Returns its length. */
size_t access_line(enum access_format format, const struct access_line *l, char *out);

/** Append `s` to `out` at `n`, quoted, with '"', '\' and bytes that are not printable ASCII escaped; at most `most` bytes of
 *  it and ACCESS_ESCAPED_MAX times as many escaped, "..." behind a longer one. `json`: as a string of JSON that reads as what stands in the quotes otherwise, but for
 *  '"' which needs no escape there. Returns the new n. `most` is at least 5; needs room for
 *  ACCESS_ESCAPED_MAX * most + 5. */
size_t access_quote(char *out, size_t n, struct weir_slice s, size_t most, bool json);

#endif
