/* SPDX-License-Identifier: MIT */
/*
 * Policy `color` of core groups (Gordon 2010, 3.1.4): all stages of a core share one queue of
 * entries. An event that arrives appends the number of its stage, and the stage of the first entry
 * is visited next.
 *
 * A run of events of one stage is one entry. A visit may take more events than the first entry
 * stands for, and thus also events of later entries of the same stage. When such an entry becomes
 * the first, the events already taken are subtracted from it. This is exact if the events of a
 * stage leave in the order in which they came, and an estimate if there are several classes or
 * cells serve the newest event first.
 *
 * Some events have no entry: those in the queue of a stage, which any core may take, and those that
 * came while the entries were full. A stage that is ready but has no entry is compared with the
 * first entry by its oldest event, as `fifo` does.
 */
#include "sched/next.h"
#include "sched/next_bits.h"

#define ENTRIES 256 /* a power of two. A guess: four runs per stage of the largest group */

struct entry {
	uint32_t events;
	uint8_t stage;
};

struct color_state {
	uint32_t first, end;                 /* entries are [first, end) modulo ENTRIES */
	uint64_t known;                      /* stages with events that have entries */
	uint32_t queued[NEXT_STAGES_MAX];    /* events in the entries of a stage */
	uint32_t overtaken[NEXT_STAGES_MAX]; /* of these, events that have left */
	struct entry entry[ENTRIES];
};

_Static_assert(sizeof(struct color_state) <= NEXT_STATE_MAX, "fits the contract");

static struct entry *entry_at(struct color_state *s, uint32_t i)
{
	return &s->entry[i % ENTRIES];
}

static void color_arrived(void *state, int stage, uint32_t k)
{
	struct color_state *s = state;

	if (k == 0)
		return;
	if (s->end != s->first && entry_at(s, s->end - 1)->stage == stage)
		entry_at(s, s->end - 1)->events += k;
	else if (s->end - s->first < ENTRIES)
		*entry_at(s, s->end++) = (struct entry){.events = k, .stage = (uint8_t)stage};
	else
		return;
	s->queued[stage] += k;
	s->known |= UINT64_C(1) << stage;
}

static void color_left(void *state, int stage, uint32_t k)
{
	struct color_state *s = state;
	uint32_t waiting = s->queued[stage] - s->overtaken[stage];

	if (k >= waiting) {
		k = waiting;
		s->known &= ~(UINT64_C(1) << stage);
	}
	s->overtaken[stage] += k;
}

/* Remove entries whose events have left. Each entry is removed once, so this costs O(1) a run. */
static void drop_overtaken(struct color_state *s)
{
	while (s->first != s->end) {
		struct entry *e = entry_at(s, s->first);
		uint32_t gone =
		    s->overtaken[e->stage] < e->events ? s->overtaken[e->stage] : e->events;

		e->events -= gone;
		s->queued[e->stage] -= gone;
		s->overtaken[e->stage] -= gone;
		if (e->events > 0)
			return;
		s->first++;
	}
}

static int color_pick(void *state, const struct next_view *v)
{
	struct color_state *s = state;
	int best = -1;

	drop_overtaken(s);
	/* A stage may have entries and yet not be ready, while it is paused. */
	for (uint32_t i = s->first; i != s->end && best < 0; i++) {
		int stage = entry_at(s, i)->stage;

		if (bits_has(v->ready & s->known, stage))
			best = stage;
	}
	for (uint64_t set = v->ready & ~s->known; set; set &= set - 1) {
		int i = bits_lowest(set);

		if (best < 0 || v->stage[i].oldest_ns < v->stage[best].oldest_ns)
			best = i;
	}
	return best;
}

const struct next_policy next_color = {
    .name = "color",
    .help = "visit stages in the order in which their events came (Gordon)",
    .arrived = color_arrived,
    .left = color_left,
    .pick = color_pick,
    .looks = true,
};
