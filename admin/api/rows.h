/* SPDX-License-Identifier: MIT */
/* The rows that stages offer (weir/rows.h), as JSON and as Prometheus text. Any thread. */
#ifndef WEIR_ADMIN_ROWS_H
#define WEIR_ADMIN_ROWS_H

#include <jansson.h>

#include "admin/text/textbuf.h"
#include "graph_source.h"
#include "routes.h"

/** Return the table of a stage: {what, columns, rows}, empty if it offers none. The caller owns it; NULL if out
 * of memory. */
json_t *rows_json(const struct admin_source *source, const char *stage);

/** Answer with the table of the stage c->name[0]. */
void answer_rows(const struct call *c, struct reply *r);

/** Append the numbers of all stages of `view`, with a label for each label of a row. */
void rows_prom(
    const struct admin_source *source, const struct weir_graph_view *view, struct textbuf *out);

#endif
