/* SPDX-License-Identifier: MIT */
/*
 * The admin endpoint: JSON, Prometheus text, live events, health and the dashboard, over HTTP.
 *
 * One thread called "admin" owns everything: the listening socket, the connections and the
 * libmicrohttpd daemon that answers them. It reads the graph through weir_graph_view and sets knobs
 * through weir_graph_set. It shares nothing with the data plane and bypasses its admission, so it
 * answers while the server is overloaded or draining.
 *
 * | call                      | threads                                                        |
 * |---------------------------|----------------------------------------------------------------|
 * | admin_check               | any                                                            |
 * | admin_start               | main, after weir_graph_build; before or after weir_graph_start |
 * | admin_port, admin_prepare | any, between start and stop                                    |
 * | admin_switch              | any but "admin", between start and stop                        |
 * | admin_tell_failed         | any but "admin", between start and stop                        |
 * | admin_allow_reload        | any but "admin", between start and stop                        |
 * | admin_stop                | main, before weir_graph_free                                   |
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

/** Check whether an endpoint could start with `spec`: its address, its users, its token and key
 *  files. Returns 0, or an error code with every error added to `errs`. Does not listen. Any
 *  thread. */
int admin_check(const struct weir_admin_spec *spec, struct weir_errs *errs);

/**
 * Listen on `listen` and serve `graph`, which must outlive the endpoint. `config` is the body of
 * /api/v1/config or NULL; like `graph`, it must outlive the endpoint. `listen` is an address with a
 * port, "127.0.0.1:9900", "[::1]:9900" or "localhost:9900" (port 0 selects any free port), or a
 * socket file, "unix:/run/weir/admin.sock". The section `admin` of the graph's spec determines who
 * has access (auth.h). An address that other hosts can reach is refused unless tokens and TLS are
 * configured. Returns 0, or WEIR_EINVAL (a bad or refused address), WEIR_EBUSY (in use), WEIR_ESYS,
 * WEIR_ENOMEM with a message in `err->text` and, if there is a remedy, a suggestion in `err->hint`.
 * Does not block.
 */
int admin_start(struct weir_graph *graph, const char *config, const char *listen,
    struct admin **admin, struct weir_err *err);

/** Like admin_start, but serves the views of `source`. Its member `admin` defines who has access.
 *  Used by tests, and by the server with which the dashboard is developed. */
int admin_start_source(const struct admin_source *source, const char *listen, struct admin **admin,
    struct weir_err *err);

/** Return the bound TCP port, or 0 for a socket file. */
int admin_port(const struct admin *admin);

/** The changes that a new configuration makes to the endpoint itself. */
struct admin_change;

/**
 * Prepare the part of `spec` that concerns the endpoint (users, TLS, alerts), reading token and key
 * files. Nothing takes effect before admin_switch. The listen address and the use of TLS cannot
 * change: if `spec` differs in either, none of its `admin:` settings take effect before the next
 * start, and only the current token and key files are read again. *change is set to NULL if `admin`
 * is NULL. Returns 0, or an error code with `errs` filled.
 */
int admin_prepare(struct admin *admin, const struct weir_spec *spec, struct admin_change **change,
    struct weir_errs *errs);

/** Free a change that is not applied after all. NULL is allowed. */
void admin_change_free(struct admin_change *change);

/**
 * From now on, serve `config` and `graph` (the current graph if that is NULL). `number` counts the
 * configurations that this server has used, from 0 at startup. `with` holds the changes to the
 * endpoint itself and is consumed; if it is NULL, the endpoint does not change. Watchers receive an
 * event; those whose access has been revoked are disconnected within a second. `admin` may be NULL.
 * After the function has returned, the previous graph and config are no longer accessed. Any thread
 * except the endpoint's own may call it, one thread at a time. Blocks until responses in progress
 * are complete.
 */
void admin_switch(struct admin *admin, struct weir_graph *graph, const char *config, int64_t number,
    struct admin_change *with);

/** Notify the watchers that a reload requested by `by` failed; `summary` is the message to show.
 *  `admin` may be NULL. The same threads may call it as admin_switch, and it blocks like that
 *  function. */
void admin_tell_failed(struct admin *admin, const char *by, const char *summary);

/** Number of reloads and their results. */
struct admin_reload_counts {
	uint64_t total, failed;
	uint64_t graphs;   /* reloads that replaced the graph */
	bool last_ok;      /* also true before the first reload */
	double last_ok_at; /* Unix time, 0 before the first success */
};

/** A knob with an override that is to be saved; `owner` is a stage or a group. */
struct admin_saved {
	const char *owner, *knob, *value;
	bool plain; /* `value` is a boolean */
};

/** The functions by which clients request a reload and read its results. The endpoint's thread may
 *  call them at any time; they do not block, except `save`. */
struct admin_reloading {
	void *arg;
	/** Request a reload on behalf of `by`. Returns its number, or 0 when the server is
	 *  stopping. */
	uint64_t (*ask)(void *arg, bool preview, const char *by);
	/** The body of GET /api/v1/reload, malloc'ed; NULL if out of memory. */
	char *(*status)(void *arg);
	void (*counts)(void *arg, struct admin_reload_counts *counts);
	/** Write saved[0..n) into the file of the configuration, or with `preview` only find out what
	 *  would change. Returns 0 with *changes, the lines that change ("- old", "+ new"), and *file,
	 *  the name of the file, or a WEIR_E code with the reason in *changes; both are malloc'ed, or
	 *  NULL if memory ran out. WEIR_EBUSY: a reload is in progress, or the server is stopping.
	 *  Blocks until the file is on the disk. */
	int (*save)(void *arg, const struct admin_saved *saved, int n, bool preview, char **file,
	    char **changes);
};

/** Enable reload requests; `reloading` must outlive the endpoint. Call it before the server is
 *  announced as ready. `admin` may be NULL. Blocks like admin_switch. */
void admin_allow_reload(struct admin *admin, const struct admin_reloading *reloading);

/** Close all connections, join the thread and free `admin`. NULL is allowed. Blocks until a
 *  response in progress is complete, at most for as long as one weir_graph_set takes. */
void admin_stop(struct admin *admin);

#endif
