/* SPDX-License-Identifier: MIT */
/*
 * The end of a running server as clients of the admin endpoint see it: they ask for it, and read how
 * it went (`weir stop`).
 *
 *   RUNNING --stop_begin--> STOPPING --stop_done--> STOPPED
 *
 * A request becomes the signal SIGTERM, and one with `now` a second SIGTERM (signals.h), so a server
 * ends in the same way whatever ends it. There is one server in a process, and one such state.
 *
 * | call                      | threads                                     |
 * |---------------------------|---------------------------------------------|
 * | stop_ask, stop_status     | any, while the endpoint exists              |
 * | stop_begin, _done, _await | main, in that order                         |
 */
#ifndef WEIR_SERVER_STOP_H
#define WEIR_SERVER_STOP_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/graph.h>

/** Ask for the end of the server on behalf of `by`: gracefully, or, if `now` is set, without waiting
 *  for accepted work. Asking again has no effect, except for the first time with `now`. Does not
 *  block. */
void stop_ask(bool now, const char *by);

/** Return the body of GET /api/v1/stop (docs/api.md), malloc'ed; NULL if out of memory. When it was
 *  read in the state STOPPED as often as clients have asked, stop_await ends. */
char *stop_status(void);

/** Enter STOPPING: the drain begins and may take `grace_ns`. Call it after signals_hurry_on_next. */
void stop_begin(int64_t grace_ns);

/** Enter STOPPED. `whole`: all accepted work was finished. */
void stop_done(const struct weir_drain_report *report, bool whole);

/** If clients have asked for the end, wait until the report was read as often as they have asked, at
 *  most a second. */
void stop_await(void);

/** Whether stop_await would return at once. Any thread. */
bool stop_is_read(void);

#endif
