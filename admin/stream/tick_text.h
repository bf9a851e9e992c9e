/* SPDX-License-Identifier: MIT */
/* Builds the data of a `tick` (docs/api.md): the rates of all stages over the last step. Pure
 * functions. */
#ifndef WEIR_ADMIN_TICK_TEXT_H
#define WEIR_ADMIN_TICK_TEXT_H

#include "admin/metrics/bottleneck.h"
#include "admin/metrics/sample.h"
#include "admin/text/textbuf.h"

/** The contents of a tick besides the samples. */
struct tick_about {
	int hz;
	enum weir_admission_mode overload;
	double self_cpu; /* of the admin thread, share of a core */
	int watchers;
	const struct bottleneck *bottleneck; /* of the last second; NULL if unknown */
};

/** Append the JSON of a tick to `out`, on one line. `sample` has one element per stage of `view`.
 *  Does not use jansson, since a tree of 500 numbers would take ten times as long. Takes 25 us for
 *  30 stages (bench/micro_beat.c). */
void tick_text(struct textbuf *out, const struct tick_about *about,
    const struct weir_graph_view *view, const struct sample *sample);

#endif
