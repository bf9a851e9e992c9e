/* SPDX-License-Identifier: MIT */
/*
 * Signals of a running server, all handled by the main thread.
 *
 *   STARTING --signals_block--> BLOCKED --signals_wait--> one arrived
 *            <--signals_start--
 *   one arrived --signals_hurry_on_next--> DRAINING --> exit
 *
 * STARTING: SIGTERM and SIGINT end the process at once, by that signal (as process 1 of a
 * container, with exit code 128 plus its number) and with a message, since a stage may hang in
 * `init`, `start` or `thread_init`. BLOCKED: SIGTERM, SIGINT, SIGHUP and SIGUSR1 are fetched one by
 * one. DRAINING: main is busy in weir_graph_drain, so the next SIGTERM or SIGINT is delivered to a
 * handler that makes the drain hurry, and the one after it ends the process with exit code 1 at
 * once. SIGHUP and SIGUSR1 are always blocked. Main thread only.
 */
#ifndef WEIR_CLI_SIGNALS_H
#define WEIR_CLI_SIGNALS_H

#include <weir/graph.h>

/** Enter STARTING. Ignores SIGPIPE. Call it before any thread is created. */
void signals_start(void);

/** Enter BLOCKED: threads created from now on inherit the blocked signals. */
void signals_block(void);

/** Wait for one of the signals and return it. */
int signals_wait(void);

/** From now on SIGTERM and SIGINT call weir_graph_hurry(graph). */
void signals_hurry_on_next(struct weir_graph *graph);

/** Whether a signal has arrived since signals_hurry_on_next. */
bool signals_hurry(void);

/** Forget the graph. Call it before the graph is freed. */
void signals_forget(void);

#endif
