/* SPDX-License-Identifier: MIT */
/* Tells whether a thread of this process sleeps: it is neither on a CPU nor ready to run. */
#ifndef WEIR_BASE_ASLEEP_H
#define WEIR_BASE_ASLEEP_H

#include <stdbool.h>

/** Whether the thread with kernel id `tid` sleeps now, interruptibly or not (states S and D of
 *  /proc/self/task/TID/stat). False if it has ended or the file cannot be read. Costs about 5 us. Any
 *  thread. */
bool asleep(int tid);

#endif
