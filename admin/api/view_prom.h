/* SPDX-License-Identifier: MIT */
/*
 * A snapshot as Prometheus text.
 *
 * Labels are bounded by the configuration: stages x classes x reasons, never anything a client
 * sent. Pure function of its arguments, any thread.
 */
#ifndef WEIR_ADMIN_VIEW_PROM_H
#define WEIR_ADMIN_VIEW_PROM_H

#include <weir/graph.h>

#include "admin/text/textbuf.h"

/** Append every family of `view` to `out`: those of all stages, then those of stage types. */
void view_prom(const struct weir_graph_view *view, struct textbuf *out);

#endif
