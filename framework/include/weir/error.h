/* SPDX-License-Identifier: MIT */
/*
 * Error codes, event outcomes and start-up errors.
 *
 * Errors are of three kinds, which are never mixed:
 *   - A bug in weir itself aborts the process in WEIR_ASSERT.
 *   - A code of kind FAILED stands for an attempt that failed: because of the environment, an invalid
 *     value, or a mistake of a stage.
 *   - A code of kind SHED stands for a decision of weir: because of overload, a deadline or a stop.
 * One table holds all codes, their words for logs, metrics and JSON, and their human-readable
 * messages.
 */
#ifndef WEIR_ERROR_H
#define WEIR_ERROR_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/annotate.h>

WEIR_C_BEGIN

/* name, code, kind, word (metric label, JSON), message */
#define WEIR_ERROR_TABLE(X)                                                                        \
	X(OK, 0, DONE, "ok", "completed")                                                          \
	X(EINVAL, -1, FAILED, "invalid", "a value is not acceptable")                              \
	X(ENOMEM, -2, FAILED, "memory", "out of memory")                                           \
	X(ESYS, -3, FAILED, "system", "the operating system refused")                              \
	X(ENOENT, -4, FAILED, "not_found", "not found")                                            \
	X(EABI, -5, FAILED, "abi", "built for another version of weir")                            \
	X(ETYPE, -6, FAILED, "type", "the event has another type")                                 \
	X(ELINK, -7, FAILED, "unlinked", "the outlet is not linked")                               \
	X(EBUSY, -8, FAILED, "busy", "in use")                                                     \
	X(EFAILED, -9, FAILED, "failed", "the stage could not do the work")                        \
	X(EDROPPED, -10, FAILED, "unhandled",                                                      \
	    "the handler returned without emitting, finishing or holding the event")               \
	X(ECLOSED, -11, FAILED, "closed", "the server stopped first")                              \
	X(EGONE, -12, FAILED, "gone", "the client left before the answer")                         \
	X(EDIED, -13, FAILED, "died", "the handler thread died while it held the event")           \
	X(ECANCELLED, -14, FAILED, "cancelled", "it was begun for something that has ended")       \
	X(EQUEUE, -32, SHED, "queue_full", "the queue of the stage was full")                      \
	X(ETHRESHOLD, -33, SHED, "threshold", "the queue was over the admission threshold")        \
	X(ERATE, -34, SHED, "rate", "the rate that the stage admits was exceeded")                 \
	X(EDEADLINE, -35, SHED, "deadline",                                                        \
	    "the deadline passed before a handler could start, or while a stage held the event")   \
	X(ESTOPPING, -36, SHED, "stopping", "the server is stopping")                              \
	X(EPRESSURE, -37, SHED, "pressure", "the server is out of a resource")                     \
	X(EPRIORITY, -38, SHED, "priority", "the stage can serve only part of what is offered")    \
	X(EDELAY, -39, SHED, "delay", "the wait in the queue was, or would have been, too long")   \
	X(EHOPELESS, -40, SHED, "hopeless", "the work could not be done before its deadline")      \
	X(ELIMIT, -41, SHED, "limit", "the limit on events in flight was reached")                 \
	X(EDRAINING, -42, SHED, "draining", "an operator is draining the stage")

enum weir_error {
#define WEIR_ERROR_ENUM(name, code, kind, word, text) WEIR_##name = (code),
	WEIR_ERROR_TABLE(WEIR_ERROR_ENUM)
#undef WEIR_ERROR_ENUM
};

/** The kinds of outcome of an event. */
enum weir_outcome { WEIR_OUTCOME_DONE, WEIR_OUTCOME_SHED, WEIR_OUTCOME_FAILED, WEIR_OUTCOMES };

/** Number of SHED reasons; weir_shed_index() maps their codes to [0, WEIR_SHED_REASONS). */
#define WEIR_SHED_REASONS 11

/** The kind of outcome that `code` stands for. Unknown codes are FAILED. Any thread, does not
 *  block. */
WEIR_API enum weir_outcome weir_outcome_of(int code);

/** The word for `code` in labels and JSON, "unknown" if the code is not in the table. Static
 *  storage. */
WEIR_API const char *weir_error_word(int code);

/** The human-readable message for `code`. Static storage. */
WEIR_API const char *weir_error_text(int code);

/** Index of `code` among the shed reasons, or -1 if it is not a shed reason. */
static inline int weir_shed_index(int code)
{
	return code <= WEIR_EQUEUE && code > WEIR_EQUEUE - WEIR_SHED_REASONS ? WEIR_EQUEUE - code
									     : -1;
}

/** The code of shed reason `index` in [0, WEIR_SHED_REASONS). */
static inline int weir_shed_code(int index)
{
	return WEIR_EQUEUE - index;
}

/** A position in a configuration file. The owner of the configuration tree owns `excerpt`. */
struct weir_mark {
	const char *file;    /* NULL if the position is unknown */
	const char *excerpt; /* the source line without its newline, or NULL */
	int line;            /* line number from 1; 0 if unknown */
	int col;             /* column from 1, in bytes */
	int len;             /* number of bytes to underline, at least 1 */
};

/** A start-up error, with its position, a message and a hint. Plain data that may be copied. */
struct weir_err {
	int code;
	int line, col, len; /* as in weir_mark; line is 0 if the position is unknown */
	int caret;          /* column of the error in `excerpt`, from 1 */
	char file[256];
	char text[256];    /* "unknown key 'treads' in stage 'parse'" */
	char hint[160];    /* "did you mean 'threads'?", or "" */
	char excerpt[200]; /* the source line, or "" */
};

/** Largest number of errors stored; later ones are only counted. */
#define WEIR_ERRS_MAX 20

/** The errors found while loading a configuration. Owned by the caller, which must zero it before
 *  the first use. One thread. */
struct weir_errs {
	int n;     /* errors stored in `err` */
	int total; /* all errors, including those not stored */
	struct weir_err err[WEIR_ERRS_MAX];
};

/**
 * Add an error at `mark` (may be NULL). `hint` may be NULL. Returns `code`, so that a caller can
 * `return weir_errs_add(...)`. Texts longer than the fields are truncated. Allocates nothing.
 */
WEIR_API int weir_errs_add(struct weir_errs *errs, const struct weir_mark *mark, int code,
    const char *hint, const char *fmt, ...) WEIR_PRINTF(5, 6);

/** Write all stored errors into buf[size] in the style of a compiler, with source lines and carets.
 *  Returns the length of the whole text, as snprintf does. */
WEIR_API size_t weir_errs_format(const struct weir_errs *errs, char *buf, size_t size);

/** For bugs in weir itself: log the location and abort. Stays in release builds. */
#define WEIR_ASSERT(cond)                                                                          \
	(WEIR_LIKELY(cond) ? (void)0 : weir_assert_failed(#cond, __FILE__, __LINE__, __func__))
WEIR_API void weir_assert_failed(const char *cond, const char *file, int line, const char *func)
    __attribute__((noreturn));

WEIR_C_END

#endif
