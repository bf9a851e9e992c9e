/* SPDX-License-Identifier: MIT */
/*
 * Reloads a running server: reads its configuration file again, and replaces the graph if
 * necessary.
 *
 *   ask --> load, check --> compare --no difference--------------------> unchanged
 *                              |-----live knobs only--> set in place --> same graph
 *                              '--> build, start beside it --> admin switches --> old one drains
 *
 *   An error before "admin switches" leaves the server as it was, and is reported.
 *
 * A separate thread performs the reloads, one at a time. They therefore block neither the main
 * thread, which waits for signals, nor the admin thread. Another thread drains and frees the
 * replaced graph. The drain takes as long as the requests of the graph, but at most
 * `drain: { old }` of the new configuration. Several graphs may be draining at the same time.
 *
 * | call                                     | threads                    |
 * |------------------------------------------|----------------------------|
 * | reload_start, reload_begin, reload_stop  | main                       |
 * | reload_ended, reload_wait, reload_end    | main                       |
 * | reload_ask, reload_status, reload_counts | any, between start and end |
 * | reload_save                              | any, between start and end |
 */
#ifndef WEIR_SERVER_RELOAD_H
#define WEIR_SERVER_RELOAD_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/graph.h>

#include "admin/admin.h"
#include "build.h"
#include "notify.h"
#include "otlp.h"
#include "retire.h"

/** The name recorded for a reload that SIGHUP requested, since a signal has no user. Its changes
 *  are listed with the actor "reload". */
#define RELOAD_BY_SIGNAL "signal"

struct reloader;

/** The parts of a running server. From reload_begin to reload_stop, the reloader owns the graph
 *  and `config`. */
struct running {
	struct build_input input; /* as at startup */
	struct weir_graph *graph;
	struct admin *admin; /* NULL without an endpoint */
	struct otlp *otlp;   /* trace export of the graph, or NULL */
	char *config;        /* body of /api/v1/config, owned */
	char *values;        /* config_values of the running configuration, owned */
	struct notify *notify;
	/* some threads may never return, so the process must exit without freeing anything */
	bool left;
};

/** Start accepting requests to reload the file at the absolute `path`. None is carried out before
 *  reload_begin. Returns 0, WEIR_ENOMEM or WEIR_ESYS. */
int reload_start(const struct running *running, const char *path, struct reloader **reloader);

/** Carry out the requests, those before this call too. */
void reload_begin(struct reloader *reloader);

/** Request a reload on behalf of `by`, which is RELOAD_BY_SIGNAL for SIGHUP. With `preview`, the
 *  reload only reports what it would change. Pending requests are merged. Returns the number of the
 *  request, or 0 after reload_stop. */
uint64_t reload_ask(struct reloader *reloader, bool preview, const char *by);

/** Return the results of reloads as JSON (docs/api.md), to be freed by the caller; NULL if out of
 *  memory. */
char *reload_status(struct reloader *reloader);

/** Write saved[0..n) into the file, as admin_reloading.save does (admin.h). No reload runs meanwhile. */
int reload_save(struct reloader *reloader, const struct admin_saved *saved, int n, bool preview,
    char **file, char **changes);

/** Store the number of reloads, by result, in *counts. */
void reload_counts(struct reloader *reloader, struct admin_reload_counts *counts);

/** Accept no more requests, and wait for the current reload. If the reload may hang in a stage, it
 *  is abandoned instead: that is logged, and the reload can no longer change anything. Sets
 *  *running to the parts that are running now. */
void reload_stop(struct reloader *reloader, struct running *running);

/** Wait until an abandoned reload has ended, at most until `until_ns` (CLOCK_MONOTONIC). If the
 *  result is false, the reload is still in progress: nothing that it accesses may be freed, and the
 *  process must exit. Call this after reload_stop. */
bool reload_ended(struct reloader *reloader, int64_t until_ns);

/** Wait for draining graphs to finish, at most until `until_ns` (CLOCK_MONOTONIC) or until
 *  hurried() returns true. Call this after reload_stop. */
void reload_wait(struct reloader *reloader, int64_t until_ns, bool (*hurried)(void));

/** End all drains now, report the losses and free everything. Call this after reload_ended. */
void reload_end(struct reloader *reloader, struct retire_losses *losses);

#endif
