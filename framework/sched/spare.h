/* SPDX-License-Identifier: MIT */
/*
 * Spare threads of core groups: while a core is blocked in a handler (blocked.h), a spare thread stands
 * in for it.
 *
 * A spare is a core with a number above those of all cores that the group may ever have; the body of
 * its thread is that of any core (core.c). It serves the queues of the group's stages, and has the
 * seat, the CPU and the copy of the core that it stands in for. It has no share of any cell, so what it
 * sends passes through queues. Some events wait for the blocked core, or for another one:
 *
 *   in the cells of the blocked core      | they belong to its thread
 *   of serial stages                      | the blocked handler may have an event of their slot
 *   of replicated stages                  | their state belongs to a core
 *   held until a deadline, if the group   | the spare cannot tell them apart
 *     has both these and the two above    |
 *
 * A parked spare is behind all cores in the list of parked threads. So a spare gets the wake-up for an
 * event that it may not take only if no core is parked, and a core looks at the queues before it parks.
 *
 * There is at most one spare per core, and none for a spare that sleeps as well: then the stages
 * block habitually, and further threads would sleep, too (docs/scheduling.md). The control thread
 * reports it. When its core is back, a spare ends after its batch.
 *
 * | call                      | threads            |
 * |---------------------------|--------------------|
 * | spare_start, spare_stop   | the control thread |
 */
#ifndef WEIR_SCHED_SPARE_H
#define WEIR_SCHED_SPARE_H

#include "sched/cores.h"

/** Core `k` is blocked: let its spare run, if it does not. Does nothing if the group begins or ends, is
 *  too large, or could not create a thread lately. */
void spare_start(struct core_group *group, int k, int64_t now_ns);
/** Core `k` is back. */
void spare_stop(struct core_group *group, int k);

#endif
