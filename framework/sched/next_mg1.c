/* SPDX-License-Identifier: MIT */
/*
 * Policy `mg1` of core groups (Gordon 2010, 3.1.1): visits follow a cyclic table, in which stages
 * with more load have more entries. Entries of stages that are not ready are skipped.
 *
 * The shares of the stages in the visits minimise the mean work in the system (O. Boxma, H. Levy,
 * J. Weststrate, Efficient visit frequencies for polling tables: minimization of waiting cost,
 * Queueing Systems 9, 1991, and Efficient visit orders for polling systems, Performance Evaluation
 * 18, 1993). A visit is exhaustive if it lasts until the stage is empty, and gated if it ends with
 * the last event that waited when it began. If stage i has the share f of all visits, and a switch
 * to it takes s, then its visits begin at intervals of C = sum(f s) / (f (1 - rho)), where rho
 * without an index is the load of all stages. Work that arrives at a stage waits about (1 - rho_i)
 * C / 2 if visits are exhaustive, and (1 + rho_i) C / 2 if they are gated. The mean over the load,
 * sum(f s) sum(rho_i (1 -+ rho_i) / f), is least for
 *
 *   f ~ sqrt(rho_i (1 - rho_i) / s)  exhaustive: gates `all`, `cutoff`
 *   f ~ sqrt(rho_i (1 + rho_i) / s)  gated: `arrived`; used for `events` and `time`, too, for which
 *                                    no closed form is known
 *
 * Compared with the exact law for polling tables, these shares leave at most 7 % more work waiting
 * than the best ones (test_next_mg1).
 *
 * All switches cost the same here, so s is left out. Where the shares give a stage no entry, the
 * stage gets one.
 *
 * Entries are spaced by the golden ratio (M. Hofri, Z. Rosberg, Packet delay under the golden ratio
 * weighted TDM policy in a multiple-access channel, IEEE Trans. Information Theory 33, 1987), as
 * Boxma, Levy and Weststrate do: the j-th entry goes to position j / 1.618 mod 1 of the cycle.
 * Since the number of entries is a Fibonacci number (233 here, 144 in Gordon's table), the position
 * is the integer j * 144 mod 233. No gap between two visits of a stage is over twice its mean gap
 * (test_next_policies checks each number of entries), and no search for a table is needed. A random
 * or a sorted table guarantees nothing of the kind.
 */
#include <math.h>

#include "sched/next.h"
#include "sched/next_bits.h"

/* Neighbours among the Fibonacci numbers. 233 is the largest that fits the table. */
#define ENTRIES 233
#define STRIDE  144

/* Largest load used in the formulas, which hold only below 1. With 0.95, a guess, a stage at
 * saturation still has a share. */
#define LOAD_MAX 0.95

struct mg1_state {
	int next; /* entry of the table to check next */
};

_Static_assert(sizeof(struct mg1_state) <= NEXT_STATE_MAX, "fits the contract");

static double share(double load, enum next_gate gate)
{
	bool exhaustive = gate == NEXT_ALL || gate == NEXT_CUTOFF;

	load = load > 0 ? fmin(load, LOAD_MAX) : 0;
	return sqrt(load * (exhaustive ? 1 - load : 1 + load));
}

/* Divide the entries in proportion to `weight`, at least one each, by Webster's method of
 * apportionment: the next entry goes to the stage that is furthest below its share. */
static void apportion(const double *weight, int n, int *entries)
{
	for (int i = 0; i < n; i++)
		entries[i] = 1;
	for (int rest = ENTRIES - n; rest > 0; rest--) {
		int best = 0;

		for (int i = 1; i < n; i++)
			if (weight[i] * (entries[best] + 0.5) > weight[best] * (entries[i] + 0.5))
				best = i;
		entries[best]++;
	}
}

static void mg1_order(
    const struct next_view *v, const struct next_limits *l, struct next_order *out)
{
	double weight[NEXT_STAGES_MAX] = {0}, sum = 0;
	int entries[NEXT_STAGES_MAX] = {0}, at = 0;

	for (int i = 0; i < v->n; i++)
		sum += weight[i] = share(v->stage[i].load, l->gate);
	for (int i = 0; i < v->n && !(sum > 0); i++)
		weight[i] = 1;
	apportion(weight, v->n, entries);
	for (int i = 0; i < v->n; i++)
		for (int k = 0; k < entries[i]; k++) {
			out->table[at] = (uint8_t)i;
			at = (at + STRIDE) % ENTRIES;
		}
	out->n_table = ENTRIES;
}

static int mg1_pick(void *state, const struct next_view *v)
{
	struct mg1_state *s = state;
	const struct next_order *o = v->order;

	for (int k = 0, at = s->next; k < o->n_table; k++, at++) {
		if (at >= o->n_table)
			at = 0;
		if (bits_has(v->ready, o->table[at])) {
			s->next = at + 1;
			return o->table[at];
		}
	}
	return bits_lowest(v->ready); /* reached only if there is no table */
}

const struct next_policy next_mg1 = {
    .name = "mg1",
    .help = "follow a table in which stages with more load have more visits (Gordon; Boxma et al.)",
    .order = mg1_order,
    .pick = mg1_pick,
};
