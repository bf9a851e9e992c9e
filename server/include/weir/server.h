/* SPDX-License-Identifier: MIT */
/*
 * A server from a YAML file inside a program: the file's stages, its admin endpoint, its log and its
 * export of traces, as under `weir run`. The program keeps its signals and its main loop.
 *
 *   open --start--> running --close--> gone
 *
 * All calls are for one thread at a time. weir/graph.h has the calls for a running graph: other
 * threads may offer events to its stages, read its counters and set its knobs.
 */
#ifndef WEIR_SERVER_H
#define WEIR_SERVER_H

#include <stdint.h>

#include <weir/annotate.h>
#include <weir/error.h>
#include <weir/graph.h>

WEIR_C_BEGIN

struct weir_server;

/**
 * Load and check the YAML file at `path`, load the plug-ins that it names, and build its graph.
 * `sets` has `n_sets` overrides of the file, each "STAGE.KNOB=VALUE"; they are copied. The stages open
 * their files; no address is bound and no thread is started.
 *
 * The working directory of the process becomes the folder of the file, since paths in the file are
 * relative to it. `user:` of the file has no effect, since the program decides which user it is.
 *
 * Returns 0 and stores the server in *server, to be passed to weir_server_close. Otherwise returns a
 * WEIR_E code and fills in `errs`, with the place of each mistake in the file (weir_errs_format); all
 * resources have then been released. Blocks for as long as reading files and resolving host names
 * take.
 */
WEIR_API int weir_server_open(const char *path, const char *const *sets, int n_sets,
    struct weir_server **server, struct weir_errs *errs);

/** Start the log, the admin endpoint, the export of traces, and all stages; the sources then listen.
 *  Returns 0, or a WEIR_E code with `errs` filled in; the server can then only be closed. A server is
 *  started at most once, and a process runs one server at a time (WEIR_EBUSY). */
WEIR_API int weir_server_start(struct weir_server *server, struct weir_errs *errs);

/** Return the graph, which lives until weir_server_close. */
WEIR_API struct weir_graph *weir_server_graph(struct weir_server *server);

/** Return the TCP port of the admin endpoint, or 0 if it is not started or uses a socket file. Of the
 *  stages, weir_http_port (weir/http.h) has the ports. */
WEIR_API int weir_server_admin_port(const struct weir_server *server);

/**
 * Drain the server as weir_graph_drain does, for at most the `grace` of the file, then stop the
 * endpoint and free everything. NULL is allowed. `report` may be NULL; it is zeroed for a server that
 * was not started.
 *
 * If handlers did not return (report->left > 0), their threads still use the memory of the graph.
 * The call then frees nothing, and the process should exit soon.
 */
WEIR_API void weir_server_close(struct weir_server *server, struct weir_drain_report *report);

WEIR_C_END

#endif
