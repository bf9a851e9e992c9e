/* SPDX-License-Identifier: MIT */
/*
 * The periodic work of the admin thread. Once a second, just after the start of a second of Unix
 * time, a snapshot is taken for the history, its file and the watchers. While there are watchers of
 * 4 Hz ticks, snapshots are taken four times a second. Ticks are built only for rates that have
 * watchers. Each run also reports new decisions and changes. Used by one thread.
 */
#ifndef WEIR_ADMIN_TICKER_H
#define WEIR_ADMIN_TICKER_H

#include <stdint.h>

#include "admin/metrics/alerts.h"
#include "admin/api/graph_source.h"
#include "admin/history/history_file.h"
#include "admin/history/past_file.h"
#include "sse.h"
#include "admin/text/textbuf.h"

struct ticker {
	const struct admin_source *source;
	struct history *history;
	struct history_file *file; /* NULL if there is none */
	struct past_file
	    *past_file;    /* of decisions and changes, beside `file`; NULL if there is none */
	struct past *past; /* buffer for past_file; NULL without it */
	bool past_saved;   /* all of it was in the file at the last save */
	uint64_t past_decisions, past_changes; /* newest ids at the last save */
	int64_t
	    past_until_ns; /* until then, outcomes of decisions may still change (CLOCK_MONOTONIC) */
	struct sse *sse;
	struct sampler *fine; /* for the 4 Hz ticks; NULL while they have no watchers */
	int64_t second_ns;    /* start of the next second (CLOCK_MONOTONIC) */
	int64_t quarter_ns;   /* start of the next quarter */
	bool unfiled;         /* a file is configured for the history but cannot be used */
	struct bottleneck bottleneck;
	struct alerts alerts;
	struct textbuf tick;         /* buffer for the text of one tick */
	uint64_t decisions, changes; /* newest ids reported so far */
	struct {
		int64_t cpu_ns, at_ns; /* CPU time of this thread at the last tick, and its time */
	} self[2];                     /* of the ticks at 1 Hz, and of those at 4 Hz */
};

/** Initialize. `source` is borrowed. Opens `history_path` unless it is NULL or "". Returns 0, or
 *  WEIR_ENOMEM or WEIR_ESYS, after which ticker_fini frees the parts that were allocated. */
int ticker_init(struct ticker *ticker, const struct admin_source *source, const char *history_path);

void ticker_fini(struct ticker *ticker);

/** Return the time until the next run in ms, rounded up. */
int ticker_timeout_ms(const struct ticker *ticker, int64_t now_ns);

/** Do the work that is due at `now_ns` (CLOCK_MONOTONIC). Takes the time of one snapshot (0.9 ms
 *  with 60 threads) plus about 0.1 ms for 30 stages. */
void ticker_run(struct ticker *ticker, int64_t now_ns);

#endif
