/* SPDX-License-Identifier: MIT */
/* Writes the metrics that stage types declare as Prometheus text. */
#ifndef WEIR_ADMIN_VIEW_PROM_TYPES_H
#define WEIR_ADMIN_VIEW_PROM_TYPES_H

#include <stdbool.h>

#include <weir/view.h>

#include "admin/text/textbuf.h"

/** Whether "weir_<name>" is the name of another family. */
typedef bool view_prom_taken(const char *name);

/** Append the families that the types of the view's stages declare to `out`, but those that are
 *  `taken` or have no valid name. */
void view_prom_types(
    const struct weir_graph_view *view, view_prom_taken *taken, struct textbuf *out);

#endif
