/* SPDX-License-Identifier: MIT */
/*
 * Connections and requests that sources refused before they became events
 * (WEIR_METRIC_TURNED_AWAY), according to /api/v1/stages. The totals of events do not include them.
 * Used by `weir ps` and `weir why`.
 */
#ifndef WEIR_CLI_TURNED_AWAY_H
#define WEIR_CLI_TURNED_AWAY_H

#include <jansson.h>

/** Return the number of connections and requests that `stage`, an element of `stages`, has refused
 *  since startup, over all its limits. */
double turned_away(const json_t *stage);

/** Print "NAME turned away 12 in front of the graph: 12 connections refused for
 *  exceeding max_per_address\n". If `then` is not NULL, it is the same stage `span_s` seconds
 *  earlier, and the rates since then are printed instead. Prints nothing if nothing was refused. */
void turned_away_print(const json_t *stage, const json_t *then, double span_s);

/** The same as JSON: a list of {"metric": NAME, "limit": HELP, "per_second": N}, one for each limit that has turned
 *  away clients in the last `span_s` seconds. Returns a new reference, NULL if out of memory. */
json_t *turned_away_json(const json_t *stage, const json_t *then, double span_s);

#endif
