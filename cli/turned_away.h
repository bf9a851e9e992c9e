/* SPDX-License-Identifier: MIT */
/*
 * What sources turned away in front of the graph (WEIR_METRIC_TURNED_AWAY), as /api/v1/stages tells
 * it: no event was made of it, so no total of events has it. For ps and why.
 */
#ifndef WEIR_CLI_TURNED_AWAY_H
#define WEIR_CLI_TURNED_AWAY_H

#include <jansson.h>

/** Since the start, over all limits of `stage`, an element of `stages`. */
double turned_away(const json_t *stage);

/** Print "NAME turned away 12 in front of the graph: 12 connections refused over max_per_address\n",
 *  or, with `then`, the same stage `span_s` earlier, the rates in between. Nothing when nothing was. */
void turned_away_print(const json_t *stage, const json_t *then, double span_s);

#endif
