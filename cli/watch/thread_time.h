/* SPDX-License-Identifier: MIT */
/* Prints how the threads of a stage spend their time, and its last stuck call, for show. */
#ifndef WEIR_CLI_THREAD_TIME_H
#define WEIR_CLI_THREAD_TIME_H

#include <jansson.h>

/** Print a line with the shares of the time of the threads since the start, largest first; none if
 *  they have spent no time. `stage` is an element of /api/v1/stages. */
void thread_time_print(const json_t *stage);

/** Print the last stuck call with its call stack, if there was one. */
void thread_stuck_print(const json_t *stage);

#endif
