/* SPDX-License-Identifier: MIT */
#include "sched/serial_choose.h"

int64_t serial_choose(const int64_t *work_ns, const uint32_t *events, struct slots *slots)
{
	uint32_t chosen = 0, n = 0;
	int64_t gain_ns = 0;

	for (unsigned s = 0; s < QUEUE_SLOTS; s++)
		n += events[s];
	for (unsigned s = 0; s < QUEUE_SLOTS; s++) {
		if (events[s] == 0 || chosen + events[s] > n / 2)
			continue;
		slots_add(slots, s);
		chosen += events[s];
		gain_ns += work_ns[s] - SERIAL_TIMES * SERIAL_EVENT_NS * (int64_t)events[s];
	}
	return chosen > 0 ? gain_ns : INT64_MIN;
}
