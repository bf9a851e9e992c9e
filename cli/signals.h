/* SPDX-License-Identifier: MIT */
/*
 * Signals of a running server, all of them taken by the main thread.
 *
 *   blocked --signals_wait--> one arrived --signals_hurry_on_next--> drain --signals_calm--> exit
 *
 * While the server runs, SIGTERM, SIGINT, SIGHUP and SIGUSR1 are blocked and fetched one by one. While it
 * drains, main is busy in weir_graph_drain, so the next SIGTERM or SIGINT is delivered to a handler
 * that makes the drain hurry. Main thread only.
 */
#ifndef WEIR_CLI_SIGNALS_H
#define WEIR_CLI_SIGNALS_H

#include <weir/graph.h>

/** Block what signals_wait fetches, ignore SIGPIPE. Before any thread is made: they inherit it. */
void signals_block(void);

/** Wait for one of them and return which. */
int signals_wait(void);

/** From now on SIGTERM and SIGINT call weir_graph_hurry(graph). */
void signals_hurry_on_next(struct weir_graph *graph);

/** Has one of them come since? */
bool signals_hurry(void);

/** The same; and forget the graph; to be called before it is freed. */
bool signals_calm(void);

#endif
