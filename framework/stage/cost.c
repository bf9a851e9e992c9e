/* SPDX-License-Identifier: MIT */
/* The expected work of events, for queues with `discipline: shortest`. */
#include "event/bins.h"
#include "stage/sink.h"

/* Read a decimal number. A fraction is left out. Returns whether `s` is a number. */
static bool read_number(struct weir_slice s, uint64_t *value)
{
	size_t i = 0;

	*value = 0;
	for (; i < s.n && s.p[i] >= '0' && s.p[i] <= '9'; i++)
		if (__builtin_mul_overflow(*value, 10, value) ||
		    __builtin_add_overflow(*value, (uint64_t)(s.p[i] - '0'), value))
			*value = UINT64_MAX - 1; /* too large, but known */
	bool whole = i > 0;
	if (i < s.n && s.p[i] == '.')
		for (i++; i < s.n && s.p[i] >= '0' && s.p[i] <= '9'; i++)
			;
	return whole && i == s.n;
}

static uint8_t bin_of_event(const struct cost_source *c, const struct weir_event *ev)
{
	uint64_t cost = UINT64_MAX;

	if (c->kind == COST_TYPE)
		cost = ev->type->cost ? ev->type->cost(ev) : UINT64_MAX;
	else if (!read_number(c->field->get(ev, c->arg), &cost))
		cost = UINT64_MAX;
	return cost == UINT64_MAX ? BIN_UNKNOWN : bin_of(cost);
}

void sink_note_cost(const struct sink *s, struct weir_event *ev)
{
	bin_note(ev, bin_of_event(&s->cost, ev));
}
