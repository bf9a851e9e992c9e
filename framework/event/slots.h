/* SPDX-License-Identifier: MIT */
/* Slots of serial keys (sched/serial.h). Plain data, which the simulator uses, too. */
#ifndef WEIR_EVENT_SLOTS_H
#define WEIR_EVENT_SLOTS_H

#include <stdbool.h>
#include <stdint.h>

/** Number of slots. An event has slot `key % QUEUE_SLOTS`. */
#define QUEUE_SLOTS 1024

/** A set of slots. */
struct slots {
	uint64_t word[QUEUE_SLOTS / 64];
};

static inline bool slots_has(const struct slots *s, uint64_t key)
{
	return s->word[key % QUEUE_SLOTS / 64] >> (key % 64) & 1;
}

static inline void slots_add(struct slots *s, unsigned slot)
{
	s->word[slot / 64] |= 1ULL << (slot % 64);
}

#endif
