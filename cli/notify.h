/* SPDX-License-Identifier: MIT */
/*
 * What the service manager is told: the protocol of sd_notify(3), which needs no library. A message is a datagram
 * of NAME=VALUE lines to the socket that $NOTIFY_SOCKET names.
 *
 *   init --ready--> READY=1, then WATCHDOG=1 each half of $WATCHDOG_USEC while the control thread ticks
 *        --stopping--> STOPPING=1; WATCHDOG=1 whatever ticks, since a drain has time limits of its own
 *        --end--> nothing more
 *
 * The feeding is a thread of its own: main waits for signals, and then for the drain. It takes no lock of the
 * graph, so what is stuck there can not keep it from saying so. Without the variables nothing of this happens.
 *
 * A reload says RELOADING=1, then READY=1 again. All calls: main thread, but where they say otherwise.
 */
#ifndef WEIR_CLI_NOTIFY_H
#define WEIR_CLI_NOTIFY_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <weir/graph.h>

#include "base/task.h"

struct notify {
	/* main's, constant from notify_ready on */
	int fd; /* -1: there is nobody to tell */
	struct sockaddr_un addr;
	socklen_t addr_bytes;
	int64_t watchdog_ns; /* $WATCHDOG_USEC, 0: nobody watches */
	char status[160];
	bool feeding;
	struct task task;
	/* the feeding thread's */
	bool silent; /* it feeds no more, and has said why */
	/* told to the feeding thread, under the mutex */
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	const struct weir_graph *graph WEIR_GUARDED_BY(mutex); /* that ticks */
	int64_t graph_ns WEIR_GUARDED_BY(mutex); /* since when it is that one, CLOCK_MONOTONIC */
	bool stopping WEIR_GUARDED_BY(mutex);
	bool ended WEIR_GUARDED_BY(mutex);
};

/** Read $NOTIFY_SOCKET (a path, or @NAME for an abstract one), $WATCHDOG_USEC and $WATCHDOG_PID, and remove them
 *  from the environment, so that no child speaks for this process. What can not be used is said in the log. Before
 *  other threads. Pairs with notify_end. */
void notify_init(struct notify *n);

/** Send `text`, one or more lines NAME=VALUE. False when there is nobody or it could not be sent; waits 1 s at most. */
bool notify_say(const struct notify *n, const char *text);

/** `graph`, which stays until notify_end, runs: say so, and feed the watchdog if there is one. */
void notify_ready(struct notify *n, const struct weir_graph *graph);

/** A reload begins, and is over, well or not: RELOADING=1 with the time, READY=1 (sd_notify(3)). The reloading thread. */
void notify_reloading(const struct notify *n);
void notify_reloaded(const struct notify *n);

/** From now on the ticks of `graph` feed the watchdog. Returns when nobody looks at the graph before any more. */
void notify_graph(struct notify *n, const struct weir_graph *graph);

/** The drain begins. */
void notify_stopping(struct notify *n);

/** End the feeding. Legal after notify_init alone. */
void notify_end(struct notify *n);

/** May the watchdog be fed at `now_ns`, when the control thread last ticked at `ticked_ns`? Yes while that is not
 *  longer ago than half of `watchdog_ns`, or than five ticks if that is more. Pure. */
bool notify_ticks(int64_t now_ns, int64_t ticked_ns, int64_t watchdog_ns);

#endif
