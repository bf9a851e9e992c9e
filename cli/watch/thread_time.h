/* SPDX-License-Identifier: MIT */
/* Prints how the threads of a stage spend their time, and its last stuck call, for show and why. */
#ifndef WEIR_CLI_THREAD_TIME_H
#define WEIR_CLI_THREAD_TIME_H

#include <stdbool.h>

#include <jansson.h>

/** Print a line with the shares of the time of the threads since the start, largest first; none if
 *  they have spent no time. `stage` is an element of /api/v1/stages. */
void thread_time_print(const json_t *stage);

/** Whether a handler of the stage is stuck now. */
bool thread_is_stuck(const json_t *stage);
/** Print the last stuck call after `label`, if there was one, and its call stack if `whole`. */
void thread_stuck_print(const json_t *stage, const char *label, bool whole);

#endif
