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

extern const struct route routes_table[];

/** Answer `request`; always leaves a reply, which the caller finishes with reply_fini. `process`
 *  may be used by one call at a time. */
void routes_answer(const struct admin_source *source, struct process *process,
    const struct request *request, struct reply *reply);

#endif
