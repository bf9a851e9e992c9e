/* SPDX-License-Identifier: MIT */
/* Accepting, and what becomes of whom there is no room for. The I/O thread. */
#ifndef WEIR_HTTP_ACCEPT_H
#define WEIR_HTTP_ACCEPT_H

#include "http/server.h"

/** Accept from the listening socket `fd`, as many as a turn has time for. May pause all (listen_hold). */
void accept_some(struct http_io *io, int fd);

/** `fd` is about to be closed, which resets whoever waits in its backlog: take them all, at most a backlog's worth, and tell those
 *  for whom there is no room so. */
void accept_rest(struct http_io *io, int fd);

#endif
