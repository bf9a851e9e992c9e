/* SPDX-License-Identifier: MIT */
/*
 * Reloads a running server: reads its file again and replaces the graph with a new one.
 *
 *   ask --> load, check --> compare --no difference--------------------> as it was
 *                              |-----live knobs only--> set in place --> same graph
 *                              '--> build, start beside it --> admin switches --> old one drains
 *   an error before "admin switches" leaves the server as it was, and is reported
 *
 * A separate thread does this, one reload at a time, so that main can wait for signals and the
 * admin thread for requests. The replaced graph is drained by yet another thread, for as long as
 * its requests take but at most `drain: { old }` of the new configuration, and freed; several may
 * be draining.
 *
 * | call                             | threads                            |
 * |----------------------------------|------------------------------------|
 * | reload_start, _stop, _ended      | main                               |
 * | reload_wait, _end                | main                               |
 * | reload_ask, _status, _counts     | any, between start and end         |
 */
#ifndef WEIR_CLI_RELOAD_H
#define WEIR_CLI_RELOAD_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/graph.h>

#include "admin/admin.h"
#include "notify.h"
#include "otlp.h"
#include "retire.h"
#include "cli/verb.h"

/** The author recorded for a reload by SIGHUP, which has no user; its changes are listed as those
 *  of "reload". */
#define RELOAD_BY_SIGNAL "signal"

struct reloader;

/** The parts of a running server. The graph and `config` belong to the reloader from reload_start
 *  to reload_stop. */
struct running {
	const struct verb_args *args; /* operand 0 is the file */
	struct weir_graph *graph;
	struct admin *admin; /* NULL without an endpoint */
	struct otlp *otlp;   /* trace export of the graph, or NULL */
	char *config;        /* body of /api/v1/config, owned */
	char *values;        /* config_values of the running configuration, owned */
	struct notify *notify;
	/* some threads never return, so the process must end without freeing anything */
	bool left;
};

/** Start accepting reload requests for the file at the absolute `path`. 0, WEIR_ENOMEM,
 *  WEIR_ESYS. */
int reload_start(const struct running *running, const char *path, struct reloader **reloader);

/** Request a reload on behalf of `by`, which is RELOAD_BY_SIGNAL for SIGHUP. With `preview`, only
 *  report what the reload would change. Pending requests are merged. Returns the number of the
 *  request, or 0 after reload_stop. */
uint64_t reload_ask(struct reloader *reloader, bool preview, const char *by);

/** The results of reloads as JSON (docs/api.md), malloc'ed; NULL if out of memory. */
char *reload_status(struct reloader *reloader);

/** The number of reloads and their results. */
void reload_counts(struct reloader *reloader, struct admin_reload_counts *counts);

/** Accept no more requests. The current reload is abandoned if it may hang in a stage. This is
 *  logged, and an abandoned reload no longer changes anything. *running is set to the parts that
 *  run now. */
void reload_stop(struct reloader *reloader, struct running *running);

/** Wait until an abandoned reload has ended, at most until `until_ns` (CLOCK_MONOTONIC). Returns
 *  false if it has not ended; then nothing that it accesses may be freed, and the process must end.
 *  Call it after reload_stop. */
bool reload_ended(struct reloader *reloader, int64_t until_ns);

/** Let draining graphs end by themselves, at most until `until_ns` (CLOCK_MONOTONIC) or until
 *  hurried() returns true. Call it after reload_stop. */
void reload_wait(struct reloader *reloader, int64_t until_ns, bool (*hurried)(void));

/** End draining graphs now and free everything. Call it after reload_ended. */
void reload_end(struct reloader *reloader, struct retire_losses *losses);

#endif
