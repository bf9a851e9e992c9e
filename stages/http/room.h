/* SPDX-License-Identifier: MIT */
/*
 * I/O threads make room for each other.
 *
 * A connection is closed by its own thread alone. So each tells since when the one waits who has waited longest without a
 * request; who has a client in the backlog, no room, and nobody of his own to close, asks the one with the eldest, and pauses:
 *
 *   asker:    room_ask --bit in room_asked, wake--> listeners paused (50 ms at most, listen.c)
 *   asked:    next turn: closes one, which is counted as evicted --room_given, wake-->
 *   asker:    next turn: accepts again
 *
 * Nothing is promised: another client may have come first, or the eldest may have spoken; then it is asked again. A thread that
 * has not answered yet is not asked twice, so one that hangs keeps nobody waiting.
 *
 * Overlap: all calls are the I/O thread's of `io`; the threads of one server may be in them at once.
 */
#ifndef WEIR_HTTP_ROOM_H
#define WEIR_HTTP_ROOM_H

#include "http/server.h"

/** Ask another I/O thread to close a connection that waits. Returns whether one was asked; the caller pauses its listeners. */
bool room_ask(struct http_io *io);

/** In each turn: make the room that others have asked for, accept again when others have made some. Two loads when there is nothing. */
void room_follow(struct http_io *io);

/** At the end of each turn: tell the others since when somebody waits. A store when that has changed. */
void room_tell(struct http_io *io);

#endif
