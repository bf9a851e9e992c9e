/* SPDX-License-Identifier: MIT */
/*
 * The log: one line a call, logfmt, to stderr; control bytes of values are escaped.
 *
 *   ts=2026-01-02T03:04:05.678Z level=warn thread=disk/0 msg="..."
 *
 * Any thread; a line is written with one write(2), so lines never mix. Never call it with a lock
 * held (rule 29) nor per event: use a counter for what happens often, weir_log_once for the first.
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

/** True once per `flag` (static, zero at start): guards a line that must not repeat. */
static inline bool weir_log_first(atomic_bool *flag)
{
	return !atomic_load_explicit(flag, memory_order_relaxed) && !atomic_exchange(flag, true);
}

#endif
