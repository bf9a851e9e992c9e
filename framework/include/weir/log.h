/* SPDX-License-Identifier: MIT */
/*
 * The server's log: one line a call, logfmt or JSON; control bytes of values are escaped.
 *
 *   ts=2026-01-02T03:04:05.678Z level=warn thread=disk/0 msg="..."
 *   {"ts":"2026-01-02T03:04:05.678Z","level":"warn","thread":"disk/0","msg":"..."}
 *
 * Any thread; lines never mix. They go to stderr, each by one write(2), which blocks as long as nobody reads; or into a
 * log file (weir/log_file.h), which never blocks and loses lines, and says how many, when its buffers are full. Never call
 * it with a lock held (rule 29) nor per event: use a counter for what happens often, weir_log_first for the first.
 */
#ifndef WEIR_LOG_H
#define WEIR_LOG_H

#include <stdatomic.h>
#include <stdbool.h>

#include <weir/annotate.h>

enum weir_log_level { WEIR_LOG_ERROR, WEIR_LOG_WARN, WEIR_LOG_INFO, WEIR_LOG_DEBUG };

WEIR_API void weir_log(enum weir_log_level level, const char *fmt, ...) WEIR_PRINTF(2, 3);

/** Lines above `level` are dropped from now on. Default WEIR_LOG_INFO. */
WEIR_API void weir_log_set_level(enum weir_log_level level);

/** Send lines to `fd` (default 2). The caller keeps the descriptor open. -1 silences the log. */
WEIR_API void weir_log_set_fd(int fd);

enum weir_log_format { WEIR_LOG_LOGFMT, WEIR_LOG_JSON };

/** The shape of lines from now on. Default WEIR_LOG_LOGFMT. */
WEIR_API void weir_log_set_format(enum weir_log_format format);

struct weir_log_file;

/** Send lines into `file`; NULL: to the descriptor again. The caller closes it, after it was replaced here. */
WEIR_API void weir_log_set_file(struct weir_log_file *file);

/** True once per `flag` (static, zero at start): guards a line that must not repeat. */
static inline bool weir_log_first(atomic_bool *flag)
{
	return !atomic_load_explicit(flag, memory_order_relaxed) && !atomic_exchange(flag, true);
}

#endif
