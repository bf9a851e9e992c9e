/* SPDX-License-Identifier: MIT */
/* Writes error messages to err->text. A message is one sentence about a word, a line or a file. */
#ifndef WEIR_LOAD_SENTENCE_H
#define WEIR_LOAD_SENTENCE_H

#include <stddef.h>

#include <weir/error.h>

/** Set err->code and err->text, but no other member of err. Each byte that is not printable ASCII
 * is replaced by '?'. Returns `code`. */
int sentence(struct weir_err *err, int code, const char *fmt, ...) WEIR_PRINTF(3, 4);

/** Set err to "FILE: " and the system's text for errno. Returns WEIR_ESYS. */
int sentence_errno(struct weir_err *err, const char *file);

/** Set err to the message for WEIR_ENOMEM. Returns WEIR_ENOMEM. */
int sentence_nomem(struct weir_err *err);

/** Parse a rate per second (0.001 to 1e9) or a duration (0 to a year), in the notation used
 * throughout weir. Returns 0, or WEIR_EINVAL with err->text. */
int sentence_rate(const char *word, double *per_s, struct weir_err *err);
int sentence_duration(const char *word, int64_t *ns, struct weir_err *err);

#endif
