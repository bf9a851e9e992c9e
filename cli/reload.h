/* SPDX-License-Identifier: MIT */
/*
 * Reloading a running server: read its file again, and let a new graph follow the old one.
 *
 *   ask --> load, check --> compare --nothing--------------------------------------> as it was
 *                              |-----live knobs alone--> turned where they run ----> same graph
 *                              '--> build, start beside --> admin looks there --> the old one drains
 *   whatever goes wrong before "admin looks there" leaves the server as it was, and says why
 *
 * A thread of its own does it, one at a time, so that main can wait for signals and the admin thread for requests. The
 * graph that was followed is drained by yet another thread, for as long as its requests take, and freed; several may be at it.
 *
 * | call                             | threads                            |
 * |----------------------------------|------------------------------------|
 * | reload_start, _stop, _wait, _end | main                               |
 * | reload_ask, _status, _counts     | any, between start and end         |
 */
#ifndef WEIR_CLI_RELOAD_H
#define WEIR_CLI_RELOAD_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/graph.h>

#include "admin.h"
#include "notify.h"
#include "otlp.h"
#include "verb.h"

/** Graphs that may have requests at the same time while another one runs; one more reload is refused. A guess: each has its
 *  threads. */
#define RELOAD_RETIRED_MAX 8
/** And of those that only wait for one before them, whose connections they pass on: each has I/O threads and about 2 MiB. */
#define RELOAD_WAITING_MAX 32

/** Whose a reload by SIGHUP is: nobody's, so its acts are those of "reload". */
#define RELOAD_BY_SIGNAL "signal"

struct reloader;

/** What a running server consists of. The graph and `config` are the reloader's from reload_start to reload_stop. */
struct running {
	const struct verb_args *args; /* operand 0 is the file */
	struct weir_graph *graph;
	struct admin *admin; /* NULL: none */
	struct otlp *otlp;   /* of the graph; NULL: none */
	char *config;        /* body of /api/v1/config, owned */
	char *values;        /* config_values of what runs, owned */
	struct notify *notify;
};

/** Begin to take orders for the file at the absolute `path`. 0, WEIR_ENOMEM, WEIR_ESYS. */
int reload_start(const struct running *running, const char *path, struct reloader **reloader);

/** Order one in the name of `by`, RELOAD_BY_SIGNAL for SIGHUP; `preview`: only say what it would change. Orders that wait become one. Its number; 0 after reload_stop. */
uint64_t reload_ask(struct reloader *reloader, bool preview, const char *by);

/** What reloads have come to, as JSON (docs/api.md), malloc'ed; NULL without memory. */
char *reload_status(struct reloader *reloader);

/** The same in numbers. */
void reload_counts(struct reloader *reloader, struct admin_reload_counts *counts);

/** Finish the order under way, take no more. What runs now is in *running. */
void reload_stop(struct reloader *reloader, struct running *running);

/** Let graphs that still drain end by themselves, at most until `until_ns` (CLOCK_MONOTONIC) or until hurried() says so.
 *  Behind reload_stop. */
void reload_wait(struct reloader *reloader, int64_t until_ns, bool (*hurried)(void));

/** End graphs that still drain, now; free all. Returns the events that were ended unfinished, over all reloads. */
uint64_t reload_end(struct reloader *reloader);

#endif
