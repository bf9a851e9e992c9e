/* SPDX-License-Identifier: MIT */
/*
 * Handles the signals of a running server. Main thread only.
 *
 *   STARTING --signals_block--> BLOCKED --signals_hurry_on_next--> DRAINING --> exit
 *            <--signals_start--
 *
 *   STARTING  The first SIGTERM or SIGINT is kept for the state BLOCKED, since the server may already
 *             have accepted clients. If the start takes longer than a second after it, or at the
 *             second signal, the process ends immediately with a message, since a stage may hang in
 *             `init`, `start` or `thread_init`. It is killed by that signal; as process 1 of a
 *             container, it exits with 128 plus the number of the signal.
 *   BLOCKED   signals_wait returns SIGTERM, SIGINT, SIGHUP and SIGUSR1 one by one.
 *   DRAINING  The main thread is in weir_graph_drain, so a handler receives SIGTERM and SIGINT. The
 *             first one shortens the drain, and the second one ends the process immediately with
 *             exit code 1. SIGHUP and SIGUSR1 stay blocked.
 */
#ifndef WEIR_SERVER_SIGNALS_H
#define WEIR_SERVER_SIGNALS_H

#include <weir/graph.h>

/** Enter the state STARTING, and ignore SIGPIPE. Call this before any thread is created. */
void signals_start(void);

/** Enter the state BLOCKED. Threads created from now on inherit the blocked signals. */
void signals_block(void);

/** Wait for one of the blocked signals and return it. */
int signals_wait(void);

/** Enter the state DRAINING, in which the first SIGTERM or SIGINT calls weir_graph_hurry(graph). */
void signals_hurry_on_next(struct weir_graph *graph);

/** Return whether a signal has arrived since signals_hurry_on_next. */
bool signals_hurry(void);

/** Make the handler no longer access the graph. Call this before the graph is freed. */
void signals_forget(void);

#endif
