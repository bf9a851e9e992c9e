/* SPDX-License-Identifier: MIT */
/* Which slots of serial keys a core gives to an idle one (serial.h). Pure, so that the simulator runs
 * the same code. */
#ifndef WEIR_SCHED_SERIAL_CHOOSE_H
#define WEIR_SCHED_SERIAL_CHOOSE_H

#include "event/slots.h"

/** Price of a move of slots, and of each event that moves. Measured: 0.5 us and 25 ns
 *  (bench/micro_serial). Since the misses of the other core's caches add to the 0.5 us, 2 us is a
 *  guess. A move must be worth SERIAL_TIMES its price, since the event runtime Mely showed that a
 *  steal which costs more than it brings makes a server slower. SERIAL_TIMES is a guess. */
#define SERIAL_MOVE_NS  2000
#define SERIAL_EVENT_NS 25
#define SERIAL_TIMES    4

/** Number of events of a cell, or of a lane of an inbox, that are looked at to choose slots. A guess,
 *  like LOOK_MAX of cell_peek.c. */
#define SERIAL_LOOK 1024

/** Pause after a look that has found nothing to give: 50 us, ten times as long as the longest look. */
#define SERIAL_AGAIN_NS 50000

/** Choose slots with up to half of the events that were looked at: events[s] are of slot s, with
 *  work_ns[s] of work. Each event that waits is looked at, or the oldest SERIAL_LOOK of each list. So a
 *  slot with more than half of the events stays, however many wait. Returns the work of the slots minus
 *  the cost of moving their events, times SERIAL_TIMES; INT64_MIN if there are no such slots. */
int64_t serial_choose(const int64_t *work_ns, const uint32_t *events, struct slots *slots);

#endif
