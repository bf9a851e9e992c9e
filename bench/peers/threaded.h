/* SPDX-License-Identifier: MIT */
/*
 * What the two threaded servers share. Each is one function that serves until the process is told
 * to stop, then closes every connection and joins every thread.
 */
#ifndef WEIR_BENCH_PEERS_THREADED_H
#define WEIR_BENCH_PEERS_THREADED_H

#include "talk.h"

struct threaded {
	struct work work;
	int listen_fd; /* non-blocking */
	int stop_fd;   /* readable when a signal to stop came */
	int threads;   /* pool: workers; thread: most connections, each with its own */
	int queue;     /* pool: connections with a request that may wait for a worker */
};

/** A thread for each connection, blocking. 0 or WEIR_ENOMEM, WEIR_ESYS. */
int serve_by_thread(struct threaded *s);

/** One thread watches all connections; those with a request go through a bounded queue to a fixed
 *  number of threads. 0 or WEIR_ENOMEM, WEIR_ESYS. */
int serve_by_pool(struct threaded *s);

#endif
