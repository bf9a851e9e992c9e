/* SPDX-License-Identifier: MIT */
/* What is wrong with a word, a line or a file, as one sentence in err->text. */
#ifndef WEIR_LOAD_SENTENCE_H
#define WEIR_LOAD_SENTENCE_H

#include <stddef.h>

#include <weir/error.h>

/** Set err->code and err->text (and nothing else of err); control bytes of words become '?'.
 *  Returns `code`. */
int sentence(struct weir_err *err, int code, const char *fmt, ...) WEIR_PRINTF(3, 4);

/** "FILE: what the system says of errno". WEIR_ESYS. */
int sentence_errno(struct weir_err *err, const char *file);

/** WEIR_ENOMEM in words. */
int sentence_nomem(struct weir_err *err);

/** Units, bounds and words as all of weir has them: a rate per second, above 0, and a duration
 *  of at most a year, 0 allowed. 0 or WEIR_EINVAL with err->text. */
int sentence_rate(const char *word, double *per_s, struct weir_err *err);
int sentence_duration(const char *word, int64_t *ns, struct weir_err *err);

#endif
