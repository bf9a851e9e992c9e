/* SPDX-License-Identifier: MIT */
/*
 * Notifies the service manager with the protocol of sd_notify(3), without its library. A message is
 * a datagram of NAME=VALUE lines, sent to the socket named by $NOTIFY_SOCKET.
 *
 *   init --ready--> READY=1, then WATCHDOG=1 every $WATCHDOG_USEC / 2 while the control thread
 *                   ticks and no handler hangs
 *        --stopping--> STOPPING=1; WATCHDOG=1 in any case, until the drain has taken too long
 *        --end--> nothing more
 *
 * A separate thread feeds the watchdog, since the main thread waits for signals and then for the
 * drain. The feeding thread acquires no lock of the graph, so a deadlock there cannot block it.
 * Without $NOTIFY_SOCKET nothing is sent, and without $WATCHDOG_USEC the thread is not started.
 *
 * A reload sends RELOADING=1, then READY=1 again. Functions are called by the main thread, except
 * where documented otherwise.
 */
#ifndef WEIR_SERVER_NOTIFY_H
#define WEIR_SERVER_NOTIFY_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <weir/graph.h>

#include "base/task.h"

struct notify {
	/* owned by main, constant from notify_ready on */
	int fd; /* socket, -1 without a service manager */
	struct sockaddr_un addr;
	socklen_t addr_bytes;
	int64_t watchdog_ns; /* $WATCHDOG_USEC in ns, 0 without a watchdog */
	char status[160];
	bool feeding;
	struct task task;
	/* owned by the feeding thread */
	/* why the thread has stopped feeding the watchdog, as last reported: enum notify_trouble */
	int trouble;
	/* shared with the feeding thread, under the mutex */
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	const struct weir_graph *graph WEIR_GUARDED_BY(mutex); /* the graph that is checked */
	int64_t graph_ns WEIR_GUARDED_BY(mutex); /* when `graph` was set, CLOCK_MONOTONIC */
	/* drain deadline, 0 while not stopping */
	int64_t stop_until_ns WEIR_GUARDED_BY(mutex);
	bool ended WEIR_GUARDED_BY(mutex);
};

/** Read $NOTIFY_SOCKET (a path, or @NAME for an abstract socket), $WATCHDOG_USEC and $WATCHDOG_PID.
 *  Remove them from the environment, so that child processes do not send notifications on behalf of
 *  this one. An invalid $NOTIFY_SOCKET is logged. Call this before other threads exist, and
 *  notify_end afterwards. */
void notify_init(struct notify *n);

/** Send `text`, one or more NAME=VALUE lines. Waits 1 s at most. Returns false if there is no
 *  service manager or the send failed. */
bool notify_say(const struct notify *n, const char *text);

/** Report that `graph` is running, and start feeding the watchdog if there is one. `graph` must
 *  exist until notify_graph has replaced it, or until notify_end. */
void notify_ready(struct notify *n, const struct weir_graph *graph);

/** Report that a reload begins (RELOADING=1 with the time), or that it has ended with success or
 *  failure (READY=1); see sd_notify(3). Called by the reload thread. NULL is allowed. */
void notify_reloading(const struct notify *n);
void notify_reloaded(const struct notify *n);

/** From now on, check `graph` for the watchdog. After the function has returned, the previous graph
 *  is no longer accessed. Called by the reload thread, too. NULL is allowed. */
void notify_graph(struct notify *n, const struct weir_graph *graph);

/** Report that the drain begins. */
void notify_stopping(struct notify *n);

/** Stop feeding the watchdog and free everything. notify_ready need not have been called. */
void notify_end(struct notify *n);

/** Return whether a handler call that hangs still allows the watchdog to be fed at `now_ns`.
 *  `since_ns` is the start of a call that has taken more than ten times `threads: { stuck }` of its
 *  stage (weir_graph_hung), or 0 if there is none. The watchdog may be fed until the call has taken
 *  longer than `watchdog_ns`. Pure. */
bool notify_returns(int64_t now_ns, int64_t since_ns, int64_t watchdog_ns);

/** Return whether the last tick of the control thread, at `ticked_ns`, allows the watchdog to be
 *  fed at `now_ns`. The age of the tick may be at most half of `watchdog_ns`, or five tick
 *  intervals if that is longer. Pure. */
bool notify_ticks(int64_t now_ns, int64_t ticked_ns, int64_t watchdog_ns);

#endif
