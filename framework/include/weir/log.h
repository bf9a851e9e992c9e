/* SPDX-License-Identifier: MIT */
/*
 * The server's log: one line per call, in logfmt or JSON. Control bytes in values are escaped.
 *
 *   ts=2026-01-02T03:04:05.678Z level=warn thread=disk/0 msg="..."
 *   {"ts":"2026-01-02T03:04:05.678Z","level":"warn","thread":"disk/0","msg":"..."}
 *
 * Any thread; lines are never interleaved. By default each line is written to stderr with one
 * write(2), which may block if nobody reads. A log file (weir/log_file.h) never blocks the caller:
 * when its buffers are full, it drops lines and reports how many.
 *
 * Never log with a lock held, or for every event. Count frequent conditions, and log only
 * the first of them with weir_log_first.
 */
#ifndef WEIR_LOG_H
#define WEIR_LOG_H

#include <stdbool.h>

#include <weir/annotate.h>

WEIR_C_BEGIN

enum weir_log_level { WEIR_LOG_ERROR, WEIR_LOG_WARN, WEIR_LOG_INFO, WEIR_LOG_DEBUG };

WEIR_API void weir_log(enum weir_log_level level, const char *fmt, ...) WEIR_PRINTF(2, 3);

/** Drop lines less severe than `level` from now on. The default is WEIR_LOG_INFO. */
WEIR_API void weir_log_set_level(enum weir_log_level level);

/** Send lines to `fd`; the default is 2, and -1 silences the log. The caller must keep the
 *  descriptor open. */
WEIR_API void weir_log_set_fd(int fd);

enum weir_log_format { WEIR_LOG_LOGFMT, WEIR_LOG_JSON };

/** Set the line format. The default is WEIR_LOG_LOGFMT. */
WEIR_API void weir_log_set_format(enum weir_log_format format);

struct weir_log_file;

/** Send lines to `file`, or to the descriptor again if `file` is NULL. The caller owns `file` and
 *  may close it once another call to weir_log_set_file has replaced it. */
WEIR_API void weir_log_set_file(struct weir_log_file *file);

/** Return true on the first call with `flag` and false on later ones. For a line that must not be
 *  repeated; `flag` is static and initially false. */
static inline bool weir_log_first(bool *flag)
{
	return !__atomic_load_n(flag, __ATOMIC_RELAXED) &&
	       !__atomic_exchange_n(flag, true, __ATOMIC_RELAXED);
}

WEIR_C_END

#endif
