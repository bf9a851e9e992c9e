/* SPDX-License-Identifier: MIT */
/*
 * Serves one client of a threaded server in the calling thread: reads its requests and writes the
 * responses.
 *
 * Requests are parsed by the code of http.server (stages/http/request/stream.h), so all compared
 * servers use the same parser. A struct talk is used by one thread at a time; between calls of
 * talk_turn it may be passed to another thread.
 */
#ifndef WEIR_BENCH_PEERS_TALK_H
#define WEIR_BENCH_PEERS_TALK_H

#include <stdbool.h>

#include "http/request/stream.h"
#include "work.h"

struct talk {
	int fd;
	struct pool pool;
	struct stream stream;
};

/** Initialise `t` for the accepted, blocking socket `fd`, which `t` owns from now on. */
void talk_init(struct talk *t, int fd);

/** Free all resources and close the socket. */
void talk_fini(struct talk *t);

/** How talk_turn treats requests. */
enum talk_mode {
	/* serve, and wait for further requests until the client closes the connection */
	TALK_WAIT,
	TALK_READY,  /* serve the requests that have arrived */
	TALK_REFUSE, /* refuse the requests that have arrived with 503, without running the work */
};

/** Serve requests. Returns false if the connection has ended, or true if no more bytes have
 * arrived. */
bool talk_turn(struct talk *t, const struct work *work, enum talk_mode mode);

#endif
