/* SPDX-License-Identifier: MIT */
/* The expected work of events, for queues with `discipline: shortest`. */
#include "event/bins.h"
#include "stage/sink.h"

static uint8_t bin_of_event(const struct cost_source *c, const struct weir_event *ev)
{
	uint64_t cost = UINT64_MAX;

	if (c->kind == COST_TYPE)
		cost = ev->type->cost ? ev->type->cost(ev) : UINT64_MAX;
	else if (!field_number(&c->field, ev, &cost))
		cost = UINT64_MAX;
	return cost == UINT64_MAX ? BIN_UNKNOWN : bin_of(cost);
}

void sink_note_cost(const struct sink *s, struct weir_event *ev)
{
	bin_note(ev, bin_of_event(&s->cost, ev));
}
