/* SPDX-License-Identifier: MIT */
/*
 * Exports traces: sends the requests that the graph collects (weir_graph_collect) to a collector,
 * as OTLP in JSON over HTTP (OpenTelemetry protocol 1.x, POST /v1/traces).
 *
 * One thread called "otlp" takes the requests from the graph's queue. It sends them every second,
 * or as soon as it has 512 spans. The thread has its own connection and never delays the data path:
 * if the collector is slow or unreachable, the queue fills up, and further requests are counted as
 * dropped. A batch is sent up to five times over 15 s if the collector may accept it later. A
 * collector that responds too late may therefore receive a batch more than once.
 *
 * | call                  | threads                                              |
 * |-----------------------|------------------------------------------------------|
 * | otlp_check            | any                                                  |
 * | otlp_start            | main, after weir_graph_build                         |
 * | otlp_stop             | main, after weir_graph_drain, before weir_graph_free |
 */
#ifndef WEIR_EXPORT_OTLP_H
#define WEIR_EXPORT_OTLP_H

#include <weir/error.h>
#include <weir/graph.h>
#include <weir/spec.h>

struct otlp;

/** Check the collector of `spec`, without connecting to it. Errors are added to `errs`. */
void otlp_check(const struct weir_trace_spec *spec, struct weir_errs *errs);

/**
 * Start the export as configured in `trace:` of the graph's spec. *otlp is NULL if no collector is
 * configured there. Returns 0, or WEIR_EINVAL (the URL is invalid, or weir was built without the
 * export), WEIR_EBUSY, WEIR_ESYS or WEIR_ENOMEM with a message in `err`. Does not check whether the
 * collector is reachable.
 */
int otlp_start(struct weir_graph *graph, struct otlp **otlp, struct weir_err *err);

/** Send the remaining requests, for a second at most, then stop the thread and free `otlp`. NULL is
 *  allowed. */
void otlp_stop(struct otlp *otlp);

#endif
