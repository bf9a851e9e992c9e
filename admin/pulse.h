/* SPDX-License-Identifier: MIT */
/*
 * The pulse of the admin thread: once a second, just after Unix time's second began, it takes a
 * snapshot for the history, its file and the watchers; four times a second while somebody watches
 * at that rate. Ticks are built only for rates that somebody watches; decisions and acts that are
 * new are told at each pulse. One thread.
 */
#ifndef WEIR_ADMIN_PULSE_H
#define WEIR_ADMIN_PULSE_H

#include <stdint.h>

#include "alerts.h"
#include "graph_source.h"
#include "history_file.h"
#include "live.h"
#include "textbuf.h"

struct pulse {
	const struct admin_source *source;
	struct history *history;
	struct history_file *file; /* NULL: none */
	struct live *live;
	struct sampler *fine; /* of the 4 Hz ticks; NULL while nobody wants them */
	int64_t second_ns;    /* when the next second begins (CLOCK_MONOTONIC) */
	int64_t quarter_ns;   /* and the next quarter */
	bool unfiled;         /* a file was wanted and can not be used */
	struct bottleneck bottleneck;
	struct alerts alerts;
	struct textbuf tick;      /* room for the text of one */
	uint64_t decisions, acts; /* ids told so far */
	struct {
		int64_t cpu_ns, at_ns; /* at the last tick */
	} self[2];
};

/** Made ready; `source` is borrowed. Opens `history_path` unless it is NULL or "". 0, or
 *  WEIR_ENOMEM, WEIR_ESYS, after which pulse_fini frees what there is. */
int pulse_init(struct pulse *pulse, const struct admin_source *source, const char *history_path);

void pulse_fini(struct pulse *pulse);

/** Time to the next beat in ms, rounded up. */
int pulse_timeout_ms(const struct pulse *pulse, int64_t now_ns);

/** Do what is due at `now_ns` (CLOCK_MONOTONIC). One snapshot (0.9 ms with 60 threads) and about 0.1 ms for 30
 *  stages. */
void pulse_run(struct pulse *pulse, int64_t now_ns);

#endif
