/* SPDX-License-Identifier: MIT */
/* Accepting, and what becomes of whom there is no room for. The I/O thread. */
#ifndef WEIR_HTTP_ACCEPT_H
#define WEIR_HTTP_ACCEPT_H

#include "http/server.h"

/** Accept from the listening socket `fd`, as many as a turn has time for. May pause all (listen_hold). */
void accept_some(struct http_io *io, int fd);

/** Look again whether there is room for who waits for it, if anybody does: let him in, ask once more, or refuse him, and accept
 *  again unless there is none. `answered`: who was asked has answered, or the time is over; else he is let in or waits on.
 *  Not while a list of connections is gone through. */
void accept_newcomer(struct http_io *io, bool answered);

/** Have the reserve of a descriptor that shows who is next when descriptors are out (http_io.reserve_fd) if it can be had. Returns
 *  whether there is a descriptor to spare: where there can be none for another reason than want of them, nobody is kept out. */
bool accept_reserve(struct http_io *io);

/** Accepting ends: let in whom there is room for now in a drain, tell him that there is none otherwise. */
void accept_end(struct http_io *io);

/** `fd` is about to be closed, which resets whoever waits in its backlog: take them all, at most a backlog's worth, and tell those
 *  for whom there is no room so. */
void accept_rest(struct http_io *io, int fd);

#endif
