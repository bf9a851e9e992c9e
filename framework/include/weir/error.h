/* SPDX-License-Identifier: MIT */
/*
 * Error codes, event outcomes and start-up errors.
 *
 * Three kinds, never mixed (rule 16): our own bug dies in WEIR_ASSERT; the world's trouble is a
 * negative WEIR_E code; load is a verdict, which for an event is an outcome of kind SHED.
 * One table holds them all: codes, words for logs, metrics and JSON, and sentences for people.
 */
#ifndef WEIR_ERROR_H
#define WEIR_ERROR_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/annotate.h>

/* name, code, kind, word (metric label, JSON), sentence */
#define WEIR_ERROR_TABLE(X)                                                                        \
	X(OK, 0, DONE, "ok", "completed")                                                          \
	X(EINVAL, -1, FAILED, "invalid", "a value is not acceptable")                              \
	X(ENOMEM, -2, FAILED, "memory", "out of memory")                                           \
	X(ESYS, -3, FAILED, "system", "the operating system refused")                              \
	X(ENOENT, -4, FAILED, "not_found", "there is no such thing")                               \
	X(EABI, -5, FAILED, "abi", "built for another version of weir")                            \
	X(ETYPE, -6, FAILED, "type", "an event of another type")                                   \
	X(ELINK, -7, FAILED, "unlinked", "the outlet is not linked")                               \
	X(EBUSY, -8, FAILED, "busy", "in use")                                                     \
	X(EFAILED, -9, FAILED, "failed", "the stage could not do the work")                        \
	X(EDROPPED, -10, FAILED, "unhandled", "the handler left the event behind")                 \
	X(ECLOSED, -11, FAILED, "closed", "the server stopped first")                              \
	X(EGONE, -12, FAILED, "gone", "the client left before the answer")                         \
	X(EDIED, -13, FAILED, "died", "the handler thread died while it held the event")           \
	X(EQUEUE, -32, SHED, "queue_full", "the queue of the stage was full")                      \
	X(ETHRESHOLD, -33, SHED, "threshold", "the queue was over the admission threshold")        \
	X(ERATE, -34, SHED, "rate", "the stage admits no more per second")                         \
	X(EDEADLINE, -35, SHED, "deadline", "the deadline passed before a handler could start")    \
	X(ESTOPPING, -36, SHED, "stopping", "the server is stopping")                              \
	X(EPRESSURE, -37, SHED, "pressure", "the server is out of a resource")                     \
	X(EPRIORITY, -38, SHED, "priority", "more important work needs the capacity")              \
	X(EDELAY, -39, SHED, "delay", "it would have waited, or did wait, too long in the queue")  \
	X(EHOPELESS, -40, SHED, "hopeless", "it could not have been done before its deadline")     \
	X(ELIMIT, -41, SHED, "limit", "as many as the stage can bear were under way")              \
	X(EDRAINING, -42, SHED, "draining", "an operator is draining the stage")

enum weir_error {
#define WEIR_ERROR_ENUM(name, code, kind, word, text) WEIR_##name = (code),
	WEIR_ERROR_TABLE(WEIR_ERROR_ENUM)
#undef WEIR_ERROR_ENUM
};

/** How an event may end. */
enum weir_outcome { WEIR_OUTCOME_DONE, WEIR_OUTCOME_SHED, WEIR_OUTCOME_FAILED };

/** Number of distinct SHED reasons; weir_shed_index() maps a code into [0, this). */
#define WEIR_SHED_REASONS 11

/** Kind of outcome of `code`. Unknown codes are FAILED. Any thread, no blocking. */
WEIR_API enum weir_outcome weir_outcome_of(int code);

/** The word of `code` for labels and JSON, static storage; "unknown" when there is none. */
WEIR_API const char *weir_error_word(int code);

/** The sentence of `code` for people, static storage. */
WEIR_API const char *weir_error_text(int code);

/** Position of a SHED code among the shed reasons, -1 when `code` is no shed reason. */
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

/** A place in a configuration text. `excerpt` is that line, owned by whoever owns the tree. */
struct weir_mark {
	const char *file;    /* NULL when the place is not known */
	const char *excerpt; /* the source line without its newline, or NULL */
	int line;            /* from 1; 0 unknown */
	int col;             /* from 1, in bytes */
	int len;             /* bytes to underline, at least 1 */
};

/** One start-up error: where, what was found, what would have been right. Plain data, copyable. */
struct weir_err {
	int code;
	int line, col, len; /* as in weir_mark; line 0: no place known */
	int caret;          /* column of the place inside `excerpt` */
	char file[256];
	char text[256];    /* "unknown key 'treads' in stage 'parse'" */
	char hint[160];    /* "did you mean 'threads'?", or "" */
	char excerpt[200]; /* the source line, or "" */
};

/** At most this many errors are kept; later ones are only counted. */
#define WEIR_ERRS_MAX 20

/** All the errors of one load. Owned by the caller; zero it before the first use. One thread. */
struct weir_errs {
	int n;     /* kept in `err` */
	int total; /* seen */
	struct weir_err err[WEIR_ERRS_MAX];
};

/**
 * Add an error at `mark` (may be NULL). `hint` may be NULL. Returns `code`, so that a caller can
 * `return weir_errs_add(...)`. Texts longer than the fields are cut. No allocation.
 */
WEIR_API int weir_errs_add(struct weir_errs *errs, const struct weir_mark *mark, int code,
    const char *hint, const char *fmt, ...) WEIR_PRINTF(5, 6);

/** Write all errors in compiler style with source lines and carets into `buf[size]`.
 *  Returns the length that the whole text has, as snprintf does. */
WEIR_API size_t weir_errs_format(const struct weir_errs *errs, char *buf, size_t size);

/** Our own bug: say where and die. Stays in release builds. */
#define WEIR_ASSERT(cond)                                                                          \
	(WEIR_LIKELY(cond) ? (void)0 : weir_assert_failed(#cond, __FILE__, __LINE__, __func__))
WEIR_API void weir_assert_failed(const char *cond, const char *file, int line, const char *func)
    __attribute__((noreturn));

#endif
