/* SPDX-License-Identifier: MIT */
/*
 * A server from a YAML file inside a program: the file's stages, its admin endpoint, its log and its
 * export of traces, as under `weir run`. The program keeps its signals and its main loop.
 *
 *   open --start--> running --reload--> running --close--> gone
 *
 * All calls are for one thread at a time. weir/graph.h has the calls for a running graph: other
 * threads may offer events to its stages, read its counters and set its knobs.
 */
#ifndef WEIR_SERVER_H
#define WEIR_SERVER_H

#include <stdbool.h>
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
 * Paths in the file are relative to its folder. The working directory of the program does not matter for
 * them and is not changed: the threads of the server have one of their own, by unshare(2). Where that is
 * forbidden, as in some containers, the folder of the file must be the working directory of the program
 * (WEIR_ESYS otherwise), and the program must not change it. `path` itself is relative to the working
 * directory of the program. `user:` of the file has no effect, since the program decides which user it
 * is.
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

/** What a reload has done. */
struct weir_reload_result {
	bool changed;   /* false if the file says what is running already */
	bool new_graph; /* a new graph has replaced the old one, which finishes its events */
	char text[768]; /* what has changed, or the number of errors: one sentence */
};

/**
 * Read the file again and make the server what the file says, as SIGHUP does with `weir run`
 * (docs/reload.md): live settings are set in place; for others a new graph is started beside the old
 * one, takes over its sockets and connections, and the old one finishes the events that it has. Changed
 * plug-ins are loaded.
 *
 * Returns 0 with *result filled in. Otherwise returns a WEIR_E code with `errs` filled in, with the place
 * of each mistake; the server then runs as before. Blocks for as long as reading files and starting
 * stages take, not for the events of the old graph.
 *
 * If result->new_graph is set, pointers to the old graph and its stages are no longer valid: other
 * threads of the program must not be in a call with them during weir_server_reload, and take new ones
 * from weir_server_graph.
 */
WEIR_API int weir_server_reload(
    struct weir_server *server, struct weir_reload_result *result, struct weir_errs *errs);

/** Return the running graph. It is valid until weir_server_close, or until weir_server_reload has
 *  replaced it. */
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
