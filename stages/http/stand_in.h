/* SPDX-License-Identifier: MIT */
/*
 * Accepts on behalf of an I/O thread that is held up by a handler (weir_loop_held). Each I/O thread
 * has its own listening sockets, and the kernel goes on assigning clients to those of the held
 * thread, which cannot accept them.
 *
 *   RUNNING --another thread is held up--> STANDING IN: also watches duplicates of its sockets
 *   STANDING IN --that thread continues, or a reload--> closes the duplicates
 *               --the server stops--> accepts the rest of the backlog, closes the duplicates
 *
 * All other threads watch the duplicates, and the kernel wakes one of them per client
 * (EPOLLEXCLUSIVE). Open connections of the held thread wait.
 */
#ifndef WEIR_HTTP_STAND_IN_H
#define WEIR_HTTP_STAND_IN_H

#include "http/server.h"

/** Begin or stop standing in, as other threads become or cease to be held up. Called in each
 * iteration; costs a relaxed load when there is nothing to do. The I/O thread. */
void stand_in_follow(struct http_io *io);

/** Close the duplicates; the owner keeps its sockets. The I/O thread. */
void stand_in_end(struct http_io *io);

#endif
