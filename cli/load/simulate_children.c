/* SPDX-License-Identifier: MIT */
/* Shares of links, and links of children (weir/op.h), in `weir simulate`; see simulate.h. */
#include "simulate.h"

#include <string.h>

#include <weir/knob.h>
#include <weir/stage.h>

/* Largest number of children for each event at an outlet, as in admission/route.c. */
#define CHILDREN_MOST 4096.0

/* Return the number of the outlet of link `k`, or -1. */
static int outlet_of(const struct weir_stage_ops *ops, const char *name)
{
	for (int i = 0; ops && ops->outlets && ops->outlets[i].name; i++)
		if (!*name || strcmp(ops->outlets[i].name, name) == 0)
			return i;
	return -1;
}

static const char *name_of(const struct weir_stage_spec *st, int k)
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

double simulate_share(const struct simulate_options *opt, const struct weir_stage_spec *st, int k)
{
	const struct weir_knob row = {.name = "share",
	    .type = WEIR_KNOB_RATIO,
	    .min = 0,
	    .max = simulate_awaits(st, k) ? CHILDREN_MOST : 1};
	const char *outlet = name_of(st, k);
	size_t n_stage = strlen(st->name), n_outlet = strlen(outlet);

	for (int i = 0; i < opt->share.n; i++) {
		const char *word = opt->share.word[i];
		double share;
		char why[200];
		if (strncmp(word, st->name, n_stage) == 0 && word[n_stage] == '.' &&
		    strncmp(word + n_stage + 1, outlet, n_outlet) == 0 &&
		    word[n_stage + 1 + n_outlet] == '=' &&
		    weir_knob_parse(
			&row, word + n_stage + 2 + n_outlet, &share, why, sizeof(why)) == 0)
			return share;
	}
	return -1;
}
