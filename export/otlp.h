/* SPDX-License-Identifier: MIT */
/*
 * Export of traces: the requests that the graph collects (weir_graph_collect) go to a collector by OTLP over HTTP with JSON
 * (OpenTelemetry protocol 1.x, POST /v1/traces).
 *
 * One thread called "otlp" takes them from the graph's queue and sends them once a second, or when they are 512 spans. It
 * has a connection of its own and never holds up the data path: a collector that is slow or down makes the queue fill, and
 * what finds it full is counted alone. A batch that is not taken is tried five times, over 15 s; a collector
 * that answered too late may so have it twice.
 *
 * | call                  | threads                                              |
 * |-----------------------|------------------------------------------------------|
 * | otlp_start            | main, after weir_graph_build                         |
 * | otlp_stop             | main, after weir_graph_drain, before weir_graph_free |
 */
#ifndef WEIR_EXPORT_OTLP_H
#define WEIR_EXPORT_OTLP_H

#include <weir/error.h>
#include <weir/graph.h>
#include <weir/spec.h>

struct otlp;

/**
 * Export as `trace:` of the graph's spec says; *otlp is NULL when it says nothing. 0, WEIR_EINVAL (no such URL, or this
 * weir was built without the export), WEIR_EBUSY, WEIR_ESYS or WEIR_ENOMEM with the sentence in `err`. Does not ask whether
 * the collector is there.
 */
int otlp_start(struct weir_graph *graph, struct otlp **otlp, struct weir_err *err);

/** Send what is left, for a second at most, end the thread, free. NULL is allowed. */
void otlp_stop(struct otlp *otlp);

#endif
