/* SPDX-License-Identifier: MIT */
/*
 * Interface of the two threaded servers. Each is one function, which serves until a stop signal
 * arrives, and then closes all connections and joins all threads.
 */
#ifndef WEIR_BENCH_PEERS_THREADED_H
#define WEIR_BENCH_PEERS_THREADED_H

#include "talk.h"

struct threaded {
	struct work work;
	int listen_fd; /* non-blocking */
	int stop_fd;   /* readable after a stop signal */
	int threads;   /* --mode pool: workers; --mode thread: maximum connections */
	int queue;     /* --mode pool: maximum connections that wait for a worker */
};

/** Serve with one blocking thread per connection. Returns 0, WEIR_ENOMEM or WEIR_ESYS. */
int serve_by_thread(struct threaded *s);

/** Serve with a fixed pool: one thread watches all connections and passes those with a request
 * through a bounded queue to a fixed number of threads. Returns 0, WEIR_ENOMEM or WEIR_ESYS. */
int serve_by_pool(struct threaded *s);

#endif
