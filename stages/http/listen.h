/* SPDX-License-Identifier: MIT */
/*
 * Listening sockets: bound by main before the I/O threads start, then each thread's own.
 *
 *   WATCHED --no descriptors, or full--> PAUSED --a connection closed, or 50 ms--> WATCHED
 *   either  --drain: new handshakes are ignored, the backlog is emptied--> closed
 */
#ifndef WEIR_HTTP_LISTEN_H
#define WEIR_HTTP_LISTEN_H

#include "http/server.h"

/** Bind every address of the configuration once per I/O thread. On failure fills `err`, and what
 * was bound stays for listen_close. Main thread. */
int listen_bind(struct http_server *srv, const struct http_conf *conf, struct weir_err *err);

/** What is wrong is entry `i` of `listen:`. In init and start of `st`. */
void listen_blame(struct weir_stage *st, int i);

/** Watch the listeners of `io`. 0 or WEIR_ESYS. */
int listen_watch(struct http_io *io);

/** Accept nothing until then: there is no room for who comes. Not when the listeners are being closed (accept_rest). */
void listen_hold(struct http_io *io);

/** A connection of `io` was closed, or there is room otherwise: accept again if that was paused, behind who waits for it already. */
void listen_room(struct http_io *io);

/** Accept again if that was paused, unless there is still no room for who waits for it. */
void listen_resume(struct http_io *io);

/** io->paused has changed: accept nothing while it says so. Clients wait in the backlog. */
void listen_pause(struct http_io *io);

/** Begin to stop: no new handshake is answered, those that are complete or under way are accepted.
 */
void listen_drain(struct http_io *io);

/** Close the listeners that an heir has, too: what is in their backlog is its to accept. */
void listen_leave(struct http_io *io);

/** Accept what is left in the backlog, close the listeners. Legal twice. */
void listen_close(struct http_io *io);

#endif
