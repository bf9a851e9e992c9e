/* SPDX-License-Identifier: MIT */
/* Writes the core groups of a snapshot as Prometheus text. */
#ifndef WEIR_ADMIN_VIEW_PROM_GROUPS_H
#define WEIR_ADMIN_VIEW_PROM_GROUPS_H

#include <weir/view.h>

#include "admin/text/textbuf.h"

/** Append the families of core groups, and of the stages in them, to `out`. */
void view_prom_groups(const struct weir_graph_view *view, struct textbuf *out);

#endif
