/* SPDX-License-Identifier: MIT */
/*
 * The routes of the endpoint in one table. The index at /api/v1 lists its rows, and docs/api.md
 * describes them. Used by the admin thread; tests call the functions directly.
 */
#ifndef WEIR_ADMIN_ROUTES_H
#define WEIR_ADMIN_ROUTES_H

#include "admin/metrics/process.h"
#include "admin/request/reply.h"
#include "graph_source.h"
#include "owners.h"

/** Longest stage or knob name in a path, with its NUL. */
#define ROUTE_NAME_MAX 128

/** A request that is being handled. */
struct call {
	const struct admin_source *source;
	struct process *process;
	const struct request *request;
	char path[256];
	const char *query;            /* the part after '?', may be "" */
	char name[2][ROUTE_NAME_MAX]; /* the names at the {} of the pattern, in order */
};

struct route {
	const char *method;  /* "GET" also answers HEAD */
	const char *pattern; /* "{stage}" matches one name; NULL ends the table */
	const char *doc;     /* one sentence, no full stop */
	void (*answer)(const struct call *call, struct reply *reply);
};

/* ---- shared by the handlers ---- */

/** Return a snapshot for a call, to be freed with the source's view_free, or NULL with the reply
 *  filled. */
struct weir_graph_view *take_view(const struct call *c, struct reply *r);

/** Parse parameter n of the query, "n=50", into *n, from 1 to 500. Returns false if its value is
 *  invalid. *n is unchanged if the parameter is missing. */
bool query_n(const char *query, int *n);

/** Return the HTTP status for a WEIR_E code. */
int status_of(int code);

extern const struct route routes_table[];

/** Answer `request`; always fills the reply, which the caller frees with reply_fini. `process` may
 *  be used by one call at a time. */
void routes_answer(const struct admin_source *source, struct process *process,
    const struct request *request, struct reply *reply);

#endif
