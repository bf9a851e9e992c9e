/* SPDX-License-Identifier: MIT */
/* Accepts clients, and makes space or refuses them when the server is full. Runs in the I/O
 * thread. */
#ifndef WEIR_HTTP_ACCEPT_H
#define WEIR_HTTP_ACCEPT_H

#include "http/server.h"

/** Accept from the listening socket `fd`, as many clients as one iteration has time for. May pause
 *  all listeners (listen_hold). */
void accept_some(struct http_io *io, int fd);

/** Check again whether there is space for the newcomer, if one waits. The newcomer is admitted, or
 * another eviction is requested, or it is refused. Then accepting resumes unless the server is
 * still full. `answered` means that the thread that was asked for an eviction has replied, or that
 * the time is over; unless it is set, a newcomer that does not fit yet keeps waiting. Must not be
 * called while a list of connections is iterated. */
void accept_newcomer(struct http_io *io, bool answered);

/** Make sure there is a reserve descriptor (io_accept.reserve_fd), which is closed to accept the
 * next client when descriptors run out. Returns false only if descriptors have run out; a reserve
 * that cannot be made for another reason does not cause a refusal. */
bool accept_reserve(struct http_io *io);

/** Settle the newcomer when accepting stops: in a drain, admit it if there is space now; otherwise
 * refuse it. */
void accept_end(struct http_io *io);

/** Accept all clients in the backlog of `fd`, which is about to be closed: the close would reset
 * them. Accepts at most as many as the backlog holds, and answers 503 to those for which there is
 * no space. */
void accept_rest(struct http_io *io, int fd);

#endif
