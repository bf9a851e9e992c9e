/* SPDX-License-Identifier: MIT */
/* Links of children (weir/op.h) in `weir simulate`; see simulate.h. */
#include "simulate.h"

#include <string.h>

#include <weir/stage.h>

/* Return the number of the outlet of link `k`, or -1. */
static int outlet_of(const struct weir_stage_ops *ops, const char *name)
{
	for (int i = 0; ops && ops->outlets && ops->outlets[i].name; i++)
		if (!*name || strcmp(ops->outlets[i].name, name) == 0)
			return i;
	return -1;
}

const char *simulate_outlet(const struct weir_stage_spec *st, int k)
{
	const struct weir_stage_ops *ops = weir_stage_type_find(st->use);
	int i = outlet_of(ops, st->to[k].outlet);

	return i < 0 ? st->to[k].outlet : ops->outlets[i].name;
}

bool simulate_awaits(const struct weir_stage_spec *st, int k)
{
	const struct weir_stage_ops *ops = weir_stage_type_find(st->use);
	int i = outlet_of(ops, st->to[k].outlet);

	return i >= 0 && i < 32 && ops->children >> i & 1;
}

bool simulate_splits(const struct weir_stage_spec *st)
{
	for (int k = 0; k < st->n_to; k++)
		if (simulate_awaits(st, k))
			return true;
	return false;
}
