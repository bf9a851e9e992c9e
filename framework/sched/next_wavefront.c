/* SPDX-License-Identifier: MIT */
/*
 * Policy `wavefront` of core groups (Larus and Parkes, USENIX 2002, 4.1.2): visits the stages
 * forward and backward in turn, in the order of `visit`, and skips empty ones.
 *
 * Requests move to the stages downstream and their results move back, so on its way in either
 * direction the core finds events that move with it. The direction changes when no stage ahead is
 * ready. The stage visited last is not visited twice in a row unless no other is ready.
 */
#include <weir/annotate.h>

#include "sched/next.h"
#include "sched/next_bits.h"

struct wavefront_state {
	uint8_t position; /* of the last visit, plus 1; 0: none yet */
	bool backward;
};

_Static_assert(sizeof(struct wavefront_state) <= NEXT_STATE_MAX, "fits the contract");

static WEIR_HOT int wavefront_pick(void *state, const struct next_view *v)
{
	struct wavefront_state *s = state;
	int last = s->position - 1, stage;

	if (last < 0) {
		stage = bits_lowest(v->ready);
	} else {
		uint64_t above = bits_above(v->ready, last), below = bits_below(v->ready, last);

		if (s->backward ? !below : !above)
			s->backward = !s->backward;
		uint64_t ahead = s->backward ? below : above;

		stage = !ahead ? last : s->backward ? bits_highest(ahead) : bits_lowest(ahead);
	}
	s->position = (uint8_t)(stage + 1);
	return stage;
}

const struct next_policy next_wavefront = {
    .name = "wavefront",
    .help = "go forward and backward through the stages (Larus and Parkes)",
    .pick = wavefront_pick,
};
