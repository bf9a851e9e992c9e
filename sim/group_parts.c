/* SPDX-License-Identifier: MIT */
/*
 * Partitioned stages of core groups, as in event/queue.c: the queue has as many partitions as the group may
 * have cores, by the hash of a field. Of n cores, core k serves the partitions p with p mod n = k, the one
 * served least recently first. A partition is leased while a batch of it runs, since another core may come
 * to serve it if the number of cores changes.
 */
#include <stdlib.h>

#include "group.h"
#include "load/rng.h"

int parts_open(struct stage *st)
{
	st->part = calloc((size_t)st->group->conf->cores, sizeof(*st->part));
	return st->part ? 0 : WEIR_ENOMEM;
}

void parts_push(struct sim *s, struct stage *st, uint32_t slot)
{
	const struct request *r = &s->req[slot];
	uint64_t hash = weir_random_at(s->serial_key, keys_value(s, st, r));
	int p = (int)(hash % (uint64_t)st->group->conf->cores);

	lane_push(s, &st->part[p].lane[r->class_id], slot);
	st->part[p].n++;
	st->parts |= UINT64_C(1) << p;
	st->lane[r->class_id].n++;
}

uint32_t parts_pop(struct sim *s, struct stage *st, int p)
{
	struct line *part = &st->part[p];
	int c = lanes_next(s, st, part->lane);

	st->lane[c].n--;
	if (--part->n == 0)
		st->parts &= ~(UINT64_C(1) << p);
	return lane_pop(s, &part->lane[c]);
}

int parts_pick(const struct stage *st, int k)
{
	const struct group *g = st->group;
	bool any = g->conf->mutant == SIM_ANY_PART;
	int best = -1;

	for (uint64_t left = any ? st->parts : st->parts & ~st->leased; left; left &= left - 1) {
		int p = __builtin_ctzll(left);
		if ((any || p % g->cores == k) &&
		    (best < 0 || st->part[p].served < st->part[best].served))
			best = p;
	}
	return best >= 0 ? best : k;
}

uint32_t parts_share(const struct stage *st, int k)
{
	int p = parts_pick(st, k);
	bool free = !(st->leased >> p & 1) || st->group->conf->mutant == SIM_ANY_PART;

	return p % st->group->cores == k || st->group->conf->mutant == SIM_ANY_PART
		   ? free * st->part[p].n
		   : 0;
}

void parts_lease(struct stage *st, struct group_core *core, int p)
{
	core->leases = p;
	st->leased |= UINT64_C(1) << p;
	st->part[p].served = ++st->served;
}

void parts_release(struct sim *s, struct stage *st, struct group_core *core)
{
	if (core->leases < 0)
		return;
	st->leased &= ~(UINT64_C(1) << core->leases);
	core->leases = -1;
	parts_poke(s, st);
}

void parts_poke(struct sim *s, struct stage *st)
{
	struct group *g = st->group;

	for (uint64_t left = st->parts & ~st->leased; left; left &= left - 1) {
		int k = __builtin_ctzll(left) % g->cores;
		if (g->core[k].idle)
			group_wake(s, g, k);
	}
}
