/* SPDX-License-Identifier: MIT */
/*
 * Requests sent through a graph without a server: created by the test, offered to a stage, awaited.
 *
 * A call may be freed only when the graph has drained: the thread that finished it may still be
 * running code after the tap that set `done`.
 */
#ifndef WEIR_TESTS_FILE_HTTP_CALL_H
#define WEIR_TESTS_FILE_HTTP_CALL_H

#include <stdatomic.h>

#include "file/cache_request.h"
#include "fixture/graph/graph.h"

struct call {
	struct weir_http_tap tap; /* first member: a tap pointer is cast to the call */
	struct test_request t;
	atomic_bool done;
	int outcome;
};

/** A GET of `path`, not yet sent. */
struct call *call_new(const char *path);

/** Send the call. If it is refused at admission, it ends with the reason. */
void call_send(struct call *c, struct weir_stage *to);
void call_await(struct call *c);
void call_free(struct call *c);

/** Status of the response, once `done` is set. */
int call_status(const struct call *c);
bool call_body_is(const struct call *c, const char *text);
bool call_has_field(const struct call *c, const char *line);

/** Value of metric `row` of the stage called `name`. */
int64_t metric_of(struct weir_graph *g, const char *name, int row);

#endif
