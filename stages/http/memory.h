/* SPDX-License-Identifier: MIT */
/*
 * One budget of bytes for all connections of a server, and what is done as it fills.
 *
 *   step          from   does, beside the steps before
 *   MEMORY_PLENTY        nothing
 *   MEMORY_HURRY  85 %   time-outs are a quarter
 *   MEMORY_CLOSE  92 %   answers end their connections
 *   MEMORY_REFUSE 95 %   requests are answered 503; half a head that has waited longest gives its memory back, and so does
 *                        an idle connection with TLS; who does not take its answers is reset
 *   MEMORY_DEAF   98 %   nothing is accepted
 *                 100 %  no buffer and no body memory is given out (pool.h)
 *
 * A step ends 5 % below where it begins. (Steps after Envoy's overload manager; the numbers are reliability.md's.)
 *
 * Every I/O thread counts what its connections hold, in its pool: connections, read buffers, requests, bodies, heads and
 * bodies of answers that wait. It tells the server at the end of a turn when that has changed by 1/2048 of the budget, or while
 * memory is short by any byte, so requests share nothing. The budget may be overdrawn by that much per I/O thread, and by
 * requests that are refused.
 */
#ifndef WEIR_HTTP_MEMORY_H
#define WEIR_HTTP_MEMORY_H

#include "http/server.h"

enum memory_step { MEMORY_PLENTY, MEMORY_HURRY, MEMORY_CLOSE, MEMORY_REFUSE, MEMORY_DEAF };

/** An I/O thread may hold the budget shifted by this more or less than it has told: one part in 2,048, 64 KiB of 128
 *  MiB, some 12 requests. A guess. */
#define MEMORY_SLACK_SHIFT 11

/** At the end of a turn, before answers are written: follow the step. A load when there is nothing to do. */
void memory_follow(struct http_io *io);
/** And behind that: tell what is held. A few loads when that has not changed. */
void memory_tell(struct http_io *io);

/** The step at `used` of `limit` bytes when it was `now` (enum memory_step). */
int memory_step_at(int now, int64_t used, int64_t limit);

/** How long `timeout_ns` is at the present step. */
static inline int64_t memory_timeout_ns(const struct http_io *io, int64_t timeout_ns)
{
	return io->memory_step >= MEMORY_HURRY ? timeout_ns / 4 : timeout_ns;
}

#endif
