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
 * | admin_port, _prepare, _switch, _allow_reload | any, between start and stop    |
 * | admin_stop   | main, before weir_graph_free                                   |
 */
#ifndef WEIR_ADMIN_ADMIN_H
#define WEIR_ADMIN_ADMIN_H

#include <stdbool.h>
#include <stdint.h>

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

/** What a new configuration changes of the endpoint itself. */
struct admin_change;

/**
 * Make ready what `spec` says of the endpoint (who may ask, TLS, alerts), reading files of tokens and keys; nothing of it
 * holds before admin_switch. Where it listens and whether it speaks TLS can not change: when `spec` says otherwise, all of
 * `admin:` waits for the next start and only the files are read again. *change is NULL for an `admin` of NULL. 0, or a code
 * with `errs` filled.
 */
int admin_prepare(struct admin *admin, const struct weir_spec *spec, struct admin_change **change,
    struct weir_errs *errs);

/** One that is not wanted after all. NULL is allowed. */
void admin_change_free(struct admin_change *change);

/**
 * Serve `graph` (NULL: the same), the `number`th of this server (that of the start: 0), and `config`
 * from now on, be as `with` says, which is taken over (NULL: as before), tell who watches; who may no longer ask is told no
 * more. NULL for `admin` is allowed. When it returns, nothing of the graph and config before is looked at any more. Any thread but the
 * endpoint's own, one at a time; blocks for what is being answered.
 */
void admin_switch(struct admin *admin, struct weir_graph *graph, const char *config, int64_t number,
    struct admin_change *with);

/** Tell who watches that a reload ordered by `by` failed; `summary` is its sentence. NULL for `admin` is allowed. As admin_switch. */
void admin_tell_failed(struct admin *admin, const char *by, const char *summary);

/** How many reloads there were and what became of them. */
struct admin_reload_counts {
	uint64_t total, failed;
	uint64_t graphs;   /* that followed another one */
	bool last_ok;      /* true before the first */
	double last_ok_at; /* Unix time, 0 before the first that went well */
};

/** By what reloads are ordered and told. The functions may be called by the endpoint's thread at any time, and do not block. */
struct admin_reloading {
	void *arg;
	/** Order one in the name of `by`; its number, 0 when the server is stopping. */
	uint64_t (*ask)(void *arg, bool preview, const char *by);
	/** The body of GET /api/v1/reload, malloc'ed; NULL without memory. */
	char *(*status)(void *arg);
	void (*counts)(void *arg, struct admin_reload_counts *counts);
};

/** From now on reloads can be ordered; `reloading` outlives the endpoint. Before the server is announced. NULL for `admin` is
 *  allowed. Blocks as admin_switch. */
void admin_allow_reload(struct admin *admin, const struct admin_reloading *reloading);

/** Close all connections, join the thread, free. NULL is allowed. Blocks for an answer under way,
 *  at most for as long as one weir_graph_set takes. */
void admin_stop(struct admin *admin);

#endif
