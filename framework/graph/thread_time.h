/* SPDX-License-Identifier: MIT */
/* Counts how the threads of each stage spend their time (enum weir_thread_time). */
#ifndef WEIR_GRAPH_THREAD_TIME_H
#define WEIR_GRAPH_THREAD_TIME_H

#include "base/schedstat.h"
#include "graph/graph.h"

/** Do no more rounds, or begin again. For bench/micro_times.c, which measures what rounds cost. Any
 *  thread; takes effect with the next round. */
void graph_time_pause(struct weir_graph *g, bool pause);

/** Allocate graph->times. Returns 0 or WEIR_ENOMEM, after which graph_time_free must be called. */
int graph_time_new(struct weir_graph *g);
void graph_time_free(struct weir_graph *g);

/** Take in the CPU and run-queue times of pool `number` (pool_sched). Called by the control thread in
 *  each round, before graph_time. */
void graph_time_sched(
    struct weir_graph *g, int number, bool known, const struct schedstat_sample *sched);

/** Read the counters and split what they have grown by. Called by the control thread in each round,
 *  after graph->changes have been read. Costs about 5 us for each thread that is in a handler or is
 *  a loop, and 1 to 3 us for others, with threads_lock held for the former. */
void graph_time(struct weir_graph *g, int64_t now_ns);

/** Fill in the times of stage `id`. Any thread. */
void graph_time_view(const struct weir_graph *g, int id, struct weir_stage_view *v);

#endif
