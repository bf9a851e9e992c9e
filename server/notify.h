/* SPDX-License-Identifier: MIT */
/*
 * Notifies the service manager by the protocol of sd_notify(3), without its library. A message is a
 * datagram of NAME=VALUE lines to the socket named by $NOTIFY_SOCKET.
 *
 *   init --ready--> READY=1, then WATCHDOG=1 every half of $WATCHDOG_USEC while the control thread
 *                   ticks and no handler hangs
 *        --stopping--> STOPPING=1; WATCHDOG=1 in any case, for as long as a drain may take
 *        --end--> nothing more
 *
 * A separate thread feeds the watchdog, since main waits for signals and then for the drain. It
 * takes no lock of the graph, so a deadlock there cannot keep it from reporting. If these variables
 * are not set, none of this happens.
 *
 * A reload sends RELOADING=1, then READY=1 again. All calls are made from the main thread, except
 * where documented.
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
	/* owned by main, constant from notify_ready on */
	int fd; /* -1 without a service manager */
	struct sockaddr_un addr;
	socklen_t addr_bytes;
	int64_t watchdog_ns; /* $WATCHDOG_USEC in ns, 0 without a watchdog */
	char status[160];
	bool feeding;
	struct task task;
	/* owned by the feeding thread */
	bool silent; /* the thread has stopped feeding and reported why */
	/* shared with the feeding thread, under the mutex */
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	const struct weir_graph *graph WEIR_GUARDED_BY(mutex); /* the graph whose ticks count */
	int64_t graph_ns WEIR_GUARDED_BY(mutex); /* when `graph` was set, CLOCK_MONOTONIC */
	/* drain deadline, 0 while not stopping */
	int64_t stop_until_ns WEIR_GUARDED_BY(mutex);
	bool ended WEIR_GUARDED_BY(mutex);
};

/** Read $NOTIFY_SOCKET (a path, or @NAME for an abstract one), $WATCHDOG_USEC and $WATCHDOG_PID,
 *  and remove them from the environment, so that child processes do not notify on behalf of this
 *  one. Invalid values are logged. Call it before other threads exist. Pairs with notify_end. */
void notify_init(struct notify *n);

/** Send `text`, one or more lines NAME=VALUE. Returns false without a manager or on failure; waits
 *  1 s at most. */
bool notify_say(const struct notify *n, const char *text);

/** Report that `graph` is running, and start feeding the watchdog if there is one. `graph` must
 *  exist until notify_graph replaces it, or until notify_end. */
void notify_ready(struct notify *n, const struct weir_graph *graph);

/** Report that a reload begins (RELOADING=1 with the time), or that it has ended, successful or not
 *  (READY=1); see sd_notify(3). Called by the reloading thread. */
void notify_reloading(const struct notify *n);
void notify_reloaded(const struct notify *n);

/** From now on the ticks of `graph` feed the watchdog. After the function returns, the previous
 *  graph is no longer accessed. */
void notify_graph(struct notify *n, const struct weir_graph *graph);

/** Report that the drain begins. */
void notify_stopping(struct notify *n);

/** Stop feeding. May be called after notify_init alone. */
void notify_end(struct notify *n);

/** Whether the watchdog may be fed at `now_ns`. `since_ns` is the start of a handler call that has
 *  taken more than ten times `threads: { stuck }` of its stage (weir_graph_hung), or 0 if there is
 *  none. Returns true until the call has lasted longer than `watchdog_ns`. Pure. */
bool notify_returns(int64_t now_ns, int64_t since_ns, int64_t watchdog_ns);

/** Whether the watchdog may be fed at `now_ns`, when the last tick of the control thread was at
 *  `ticked_ns`. Returns true while `ticked_ns` is at most half of `watchdog_ns` ago, or at most
 *  five ticks if that is longer. Pure. */
bool notify_ticks(int64_t now_ns, int64_t ticked_ns, int64_t watchdog_ns);

#endif
