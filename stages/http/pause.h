/* SPDX-License-Identifier: MIT */
/* Pausing a server by an operator; see pause.c for what happens. */
#ifndef WEIR_HTTP_PAUSE_H
#define WEIR_HTTP_PAUSE_H

#include "http/server.h"

/** ops->pause: from its return nothing new is accepted or read, unless an I/O thread was busy for longer than 1 s: then
 *  from the end of what keeps it. Whoever acts, but no I/O thread. */
void pause_server(struct weir_stage *st, bool paused);

/** The I/O thread starts, perhaps paused. */
void pause_begin(struct http_io *io);

/** Obey what was said last. The I/O thread, at the end of each turn: a load when nothing is new. */
void pause_check(struct http_io *io);

/** `io` hands its connections over: what it keeps, requests of which a part was read, goes on, since nobody can resume it
 *  here any more. The I/O thread. */
void pause_leave(struct http_io *io);

#endif
