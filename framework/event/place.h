/* SPDX-License-Identifier: MIT */
/* Stage, class and state of an event, the last four bytes of its header, compared and written as one
 * word. Most events of a batch have the same word, so a loop looks at its parts only where it changes.
 *
 * The word is written whole where it is soon read whole: a load that spans several younger stores waits
 * until these have reached the cache. */
#ifndef WEIR_EVENT_PLACE_H
#define WEIR_EVENT_PLACE_H

#include <string.h>

#include <weir/event.h>

struct event_place {
	uint16_t stage;
	uint8_t class_id, state;
};
static_assert(sizeof(struct event_place) == sizeof(uint32_t), "it is one word");
static_assert(offsetof(struct weir_event, class_id) == offsetof(struct weir_event, stage) + 2 &&
		  offsetof(struct weir_event, state) == offsetof(struct weir_event, stage) + 3,
    "the members are in one word");

static inline uint32_t event_place(const struct weir_event *ev)
{
	uint32_t word;

	memcpy(&word, (const char *)ev + offsetof(struct weir_event, stage), sizeof(word));
	return word;
}

static inline uint32_t event_place_of(unsigned stage, unsigned class_id, unsigned state)
{
	struct event_place place = {
	    .stage = (uint16_t)stage, .class_id = (uint8_t)class_id, .state = (uint8_t)state};
	uint32_t word;

	memcpy(&word, &place, sizeof(word));
	return word;
}

static inline void event_set_place(struct weir_event *ev, uint32_t word)
{
	memcpy((char *)ev + offsetof(struct weir_event, stage), &word, sizeof(word));
}

/** Set only the state. */
static inline void event_set_state(struct weir_event *ev, enum weir_event_state state)
{
	const uint32_t all = event_place_of(0, 0, UINT8_MAX);

	event_set_place(ev, (event_place(ev) & ~all) | event_place_of(0, 0, state));
}

#endif
