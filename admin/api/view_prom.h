/* SPDX-License-Identifier: MIT */
/*
 * Converts a snapshot to Prometheus text.
 *
 * The configuration bounds the number of label values (stages x classes x reasons); labels never
 * contain anything that a client sent. Pure function of its arguments; any thread may call it.
 */
#ifndef WEIR_ADMIN_VIEW_PROM_H
#define WEIR_ADMIN_VIEW_PROM_H

#include <weir/graph.h>

#include "admin/text/textbuf.h"

/** Append every family of `view` to `out`: those of all stages, then those of stage types. */
void view_prom(const struct weir_graph_view *view, struct textbuf *out);

#endif
