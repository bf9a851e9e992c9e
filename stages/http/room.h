/* SPDX-License-Identifier: MIT */
/*
 * I/O threads make room for each other.
 *
 * A connection is closed by its own thread alone. So each tells since when the one waits who has waited longest without a
 * request; who has a newcomer that nothing but room keeps out, and nobody of his own to close, asks the one with the eldest, and
 * pauses:
 *
 *   asker:    room_ask --room_wanted, bit in room_asked, wake--> listeners paused, the newcomer waits (50 ms, listen.c)
 *   asked:    next turn: closes one if it is still wanted, which is counted as evicted --room_none if not, room_news, wake-->
 *   asker:    next turn: lets him in, accepts again
 *
 * Nothing is promised: another client may have come first, or the eldest may have spoken; then it is asked again, for one newcomer as
 * many times as there are threads, but nobody who has answered that it has none (room_none). A thread that has not answered yet
 * is not asked twice, so one that hangs keeps nobody waiting. Before there is an answer, or the time is over, the newcomer waits
 * on: connections that go meanwhile let him in if they leave all that he needs (ROOM_GONE), and use up none of the times.
 * When the asker finds room in the moment in which the asked makes some, what was made is for the next one to come.
 *
 * Overlap: all calls are the I/O thread's of `io`; the threads of one server may be in them at once.
 */
#ifndef WEIR_HTTP_ROOM_H
#define WEIR_HTTP_ROOM_H

#include "http/server.h"

/** Ask another I/O thread to close a connection that waits, for `wanted` (bits of enum room_wanted), `first`: for another newcomer
 *  than before. Returns whether one was asked; the caller keeps its newcomer and pauses its listeners, until accept_newcomer
 *  lets go of him. */
bool room_ask(struct http_io *io, unsigned wanted, bool first);

/** The newcomer has found room, or is gone: nobody need make any. */
void room_unask(struct http_io *io);

/** A connection has gone, and there may be room for the newcomer: let the next room_follow look. */
void room_retry(struct http_io *io);

/** In each turn: make the room that others have asked for, accept again when others have made some. Two loads when there is nothing. */
void room_follow(struct http_io *io);

/** At the end of each turn: tell the others since when somebody waits who has a place. A store when that has changed. */
void room_tell(struct http_io *io);

#endif
