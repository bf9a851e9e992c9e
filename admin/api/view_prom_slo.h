/* SPDX-License-Identifier: MIT */
/* Families about classes and their objectives, as Prometheus text. */
#ifndef WEIR_ADMIN_VIEW_PROM_SLO_H
#define WEIR_ADMIN_VIEW_PROM_SLO_H

#include <weir/graph.h>

#include "admin/text/textbuf.h"

/** Append the families weir_class_* and weir_slo_*. */
void view_prom_slo(const struct weir_graph_view *view, struct textbuf *out);

#endif
