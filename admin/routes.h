/* SPDX-License-Identifier: MIT */
/*
 * What can be asked for: one table of routes. The index at /api/v1 lists its rows and docs/api.md
 * describes them. Used by the admin thread; tests call it directly.
 */
#ifndef WEIR_ADMIN_ROUTES_H
#define WEIR_ADMIN_ROUTES_H

#include "process.h"
#include "reply.h"
#include "graph_source.h"

/** Longest stage or knob name in a path, with its NUL. */
#define ROUTE_NAME_MAX 128

/** One request on its way through the table. */
struct call {
	const struct admin_source *source;
	struct process *process;
	const struct request *request;
	char path[256];
	const char *query;            /* behind '?', may be "" */
	char name[2][ROUTE_NAME_MAX]; /* what stands at the {} of the pattern, in order */
};

struct route {
	const char *method;  /* "GET" also answers HEAD */
	const char *pattern; /* "{stage}" stands for one name; NULL ends the table */
	const char *doc;     /* one sentence, no full stop */
	void (*answer)(const struct call *call, struct reply *reply);
};

/* ---- what answers share ---- */

/** The snapshot that a call answers from (view_free of its source), or NULL with the reply made. */
struct weir_graph_view *take_view(const struct call *c, struct reply *r);

/** Stage `name` of `v`, or NULL with a 404 made that names the nearest one. */
const struct weir_stage_view *find_stage(
    const struct weir_graph_view *v, const char *name, struct reply *r);

/** Take "n=50" out of the query, 1 .. 500; false when it is something else. Left as it was without. */
bool query_n(const char *query, int *n);

/** The status for a WEIR_E code. */
int status_of(int code);

extern const struct route routes_table[];

/** Answer `request`; always leaves a reply, which the caller finishes with reply_fini. `process`
 *  may be used by one call at a time. */
void routes_answer(const struct admin_source *source, struct process *process,
    const struct request *request, struct reply *reply);

#endif
