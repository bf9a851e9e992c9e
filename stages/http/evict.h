/* SPDX-License-Identifier: MIT */
/*
 * Eviction across I/O threads.
 *
 * Only the I/O thread of a connection may close it. So each thread publishes the start of the
 * longest wait among its connections without a request. If a thread has a newcomer that is kept out
 * only because the server is full, and no connection of its own to close, it asks the thread with
 * the longest wait, and pauses its own listeners:
 *
 *   asker:  evict_ask --wanted, bit in `asked`, wake--> listeners paused, the newcomer waits
 *           (50 ms, listen.c)
 *   asked:  next iteration: if still wanted, evicts one (http_evicted_total), else sets evict.none
 *           --evict.news, wake-->
 *   asker:  next iteration: admits the newcomer, accepts again
 *
 * Nothing is guaranteed: another client may take the slot first, or the waiting connection may have
 * sent a request. Then the asker asks again: for one newcomer as many times as there are threads,
 * but never a thread that has replied that it has nothing to evict (evict.none). A thread that has
 * not replied yet is not asked twice, so a thread that hangs does not delay the replies of others.
 * The newcomer waits until there is a reply, or the time is over. If a connection of the asker
 * closes meanwhile and frees all that the newcomer needs (ROOM_GONE), the newcomer is admitted
 * without using up an attempt. If the asker finds a free slot at the moment when the other thread
 * evicts for it, the evicted connection's slot serves the next client.
 *
 * Concurrency: each call runs in the I/O thread of `io`; several threads of a server may be in them
 * at once.
 */
#ifndef WEIR_HTTP_EVICT_H
#define WEIR_HTTP_EVICT_H

#include "http/server.h"

/** Ask another I/O thread to evict a connection that waits. `wanted` has bits of enum evict_wanted.
 * `first` means that no thread has been asked for this newcomer yet. Returns whether a thread was
 * asked; if so, the caller keeps its newcomer and pauses its listeners until accept_newcomer. */
bool evict_ask(struct http_io *io, unsigned wanted, bool first);

/** Withdraw the request for an eviction: the newcomer has been admitted, or is gone. */
void evict_unask(struct http_io *io);

/** Make the next evict_follow check whether the newcomer fits now: a connection was closed. */
void evict_retry(struct http_io *io);

/** Called in each iteration: evict for other threads that asked; if there is news for this thread,
 * admit its newcomer or resume accepting. Costs two loads when there is nothing to do. */
void evict_follow(struct http_io *io);

/** Called at the end of each iteration: publish the start of the longest wait among connections
 * with a slot. Stores it only if it has changed. */
void evict_tell(struct http_io *io);

#endif
