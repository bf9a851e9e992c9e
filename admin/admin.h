/* SPDX-License-Identifier: MIT */
/*
 * The admin endpoint: JSON, Prometheus text, live events, health and the dashboard, over HTTP.
 *
 * One thread called "admin" owns everything: the listening socket, the connections and the
 * libmicrohttpd daemon that answers them. It reads the graph through weir_graph_view and turns
 * knobs through weir_graph_set; it shares nothing with the data plane and is not behind its
 * admission, so it answers while the server is overloaded or draining.
 *
 * | call         | threads                                                        |
 * |--------------|----------------------------------------------------------------|
 * | admin_check  | any                                                            |
 * | admin_start  | main, after weir_graph_build; before or after weir_graph_start |
 * | admin_port, admin_reloaded | any, between start and stop                      |
 * | admin_stop   | main, before weir_graph_free                                   |
 */
#ifndef WEIR_ADMIN_ADMIN_H
#define WEIR_ADMIN_ADMIN_H

#include <weir/error.h>
#include <weir/graph.h>
#include <weir/spec.h>

struct admin;
struct admin_source;

/** Could an endpoint be as `spec` says: its address, who may ask, what is in the files of tokens and
 *  keys? 0, or a code with all that is wrong added to `errs`. Listens nowhere; any thread. */
int admin_check(const struct weir_admin_spec *spec, struct weir_errs *errs);

/**
 * Listen on `listen` and serve `graph`, which must outlive the endpoint. `config` is the body of /api/v1/config,
 * which must outlive it, too, or NULL. `listen` is an
 * address with a port, "127.0.0.1:9900", "[::1]:9900" or "localhost:9900" (port 0: any free one),
 * or a socket file, "unix:/run/weir/admin.sock". Who may ask is what the graph's spec says under
 * `admin` (gate.h); an address that others can reach is refused without tokens and TLS. Returns 0, or WEIR_EINVAL (a bad or refused
 * address), WEIR_EBUSY (in use), WEIR_ESYS, WEIR_ENOMEM with the sentence in `err->text` and, where
 * there is something to try, `err->hint`. Does not block.
 */
int admin_start(struct weir_graph *graph, const char *config, const char *listen,
    struct admin **admin, struct weir_err *err);

/** The same over any source of views, whose `admin` says who may ask: tests and the page's own try-out server. */
int admin_start_source(const struct admin_source *source, const char *listen, struct admin **admin,
    struct weir_err *err);

/** The TCP port that is bound, 0 for a socket file. */
int admin_port(const struct admin *admin);

/** Tell who watches that the graph is now number `graph` (of the server's start: 0), and read the
 *  files of tokens and of TLS again. NULL is
 *  allowed. Any thread; does not block. */
void admin_reloaded(struct admin *admin, int64_t graph);

/** Close all connections, join the thread, free. NULL is allowed. Blocks for an answer under way,
 *  at most for as long as one weir_graph_set takes. */
void admin_stop(struct admin *admin);

#endif
