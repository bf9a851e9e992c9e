/* SPDX-License-Identifier: MIT */
/*
 * Enforces one memory budget for all connections of a server, in steps as it fills.
 *
 *   step          from   effect, in addition to the steps before
 *   MEMORY_PLENTY        nothing
 *   MEMORY_HURRY  85 %   time-outs are a quarter as long; clients that read no responses are reset
 *   MEMORY_CLOSE  92 %   connections are closed after their responses
 *   MEMORY_REFUSE 95 %   requests are answered with 503, and so are incomplete heads, to free their
 *                        memory, longest-waiting first; idle connections with TLS are closed
 *   MEMORY_DEAF   98 %   nothing is accepted
 *                 100 %  no buffer and no body memory is allocated (pool.h)
 *
 * A step ends 5 % below the level at which it begins. (The steps follow Envoy's overload
 * manager.)
 *
 * Every I/O thread counts in its pool what its connections hold: connections, read buffers,
 * requests, bodies, and the heads and bodies of waiting responses. At the end of an iteration it
 * adds the change to the server's sum, if the change is at least 1/2048 of the budget or memory is
 * short. Requests therefore need no shared counter. The budget may be exceeded by 1/2048 per I/O
 * thread, and by requests that are refused.
 */
#ifndef WEIR_HTTP_MEMORY_H
#define WEIR_HTTP_MEMORY_H

#include "http/conn/io.h"

/** Right shift that turns the budget into the number of bytes that an I/O thread may hold without
 * having reported them: 1/2048, which is 64 KiB of 128 MiB, or about 12 requests with their read
 * buffers. 11 is a guess. */
#define MEMORY_SLACK_SHIFT 11

/** Apply the measures of the current step. Called at the end of an iteration, before responses are
 * written. Costs a load when there is nothing to do. */
void memory_follow(struct http_io *io);
/** Report the bytes held. Called after responses have been written. Costs a few loads when nothing
 * has changed. */
void memory_tell(struct http_io *io);

/** Return the step that follows `now` (enum memory_step) when `used` of `limit` bytes are held. */
int memory_step_at(int now, int64_t used, int64_t limit);

#endif
