/* SPDX-License-Identifier: MIT */
/*
 * One client of a threaded server: requests in, answers out, in the thread that calls.
 *
 * Parsing is that of http.server (stages/http/stream.h), so all compared servers read the same way.
 * A talk belongs to one thread at a time; between turns it may go to another.
 */
#ifndef WEIR_BENCH_PEERS_TALK_H
#define WEIR_BENCH_PEERS_TALK_H

#include <stdbool.h>

#include "http/stream.h"
#include "work.h"

struct talk {
	int fd;
	struct pool pool;
	struct stream stream;
};

/** Begin with the accepted, blocking socket `fd`, which the talk owns from now on. */
void talk_init(struct talk *t, int fd);

/** End: free what it owns, close the socket. */
void talk_fini(struct talk *t);

/** How requests of a turn are treated. */
enum talk_mode {
	TALK_WAIT,   /* serve; wait for further requests until the client ends */
	TALK_READY,  /* serve what has arrived */
	TALK_REFUSE, /* answer what has arrived with 503, without touching the work */
};

/** Serve until the connection ends (false) or nothing more has arrived (true). */
bool talk_turn(struct talk *t, const struct work *work, enum talk_mode mode);

#endif
