/* SPDX-License-Identifier: MIT */
/* Which events of a core group wait in cells and which in queues, and which core wakes up; see
 * group.h. The rules are those of sched/splice.c and sched/give.c, with the numbers there and in
 * sched/cores.h. */
#include "base/clock.h"
#include "group.h"

#define SLOW_NS     (20 * NS_PER_US)
#define QUICK_NS    (10 * NS_PER_US)
#define DEAL_EVENTS 4
#define DEAL_NS     (5 * NS_PER_US)

static bool several(uint64_t set)
{
	return (set & (set - 1)) != 0;
}

/* A stage whose service takes long needs no cell: its queue balances. */
static bool is_slow(struct group *g, const struct stage *st)
{
	uint64_t bit = UINT64_C(1) << st->conf->place;

	if (st->conf->local != SIM_LOCAL_AUTO)
		return st->conf->local == SIM_LOCAL_NEVER;
	if (st->mean_cost_ns == 0 || st->mean_cost_ns > SLOW_NS) /* an unknown one may be long */
		g->slow |= bit;
	else if (st->mean_cost_ns < QUICK_NS)
		g->slow &= ~bit;
	return g->slow & bit;
}

uint32_t group_room(const struct stage *st, const struct group_core *core)
{
	uint32_t n = core->cell[st->conf->place].n;

	return n < st->cell_max && group_queued(st) <= st->own ? st->cell_max - n : 0;
}

struct group_core *group_cell(struct sim *s, struct stage *st, int from, int n, uint32_t slot)
{
	struct group *g = st->group;

	bool inside = from < 0 ? g && g->reads : s->stage[from].group == g;

	if (!g || !inside || st->conf->exclusive || stage_shortest(st) || st->conf->linger_ns > 0 ||
	    st->conf->partition)
		return NULL;
	struct group_core *core = g->sender;
	if (st->conf->serial)
		return keys_enters(s, st, group_core_number(g, core), slot) ? core : NULL;
	uint64_t filled = core->filled | UINT64_C(1) << st->conf->place;
	bool slow = is_slow(g, st);
	bool worth = from >= 0 || (core->n + (uint32_t)n) * st->mean_cost_ns >= DEAL_NS;
	bool deal = !slow && worth && st->conf->local != SIM_LOCAL_KEPT && group_idles(g, core) &&
		    (core->n + (uint32_t)n >= DEAL_EVENTS || several(filled));
	bool fits = group_queued(st) + (uint32_t)n <= st->own;
	if (group_room(st, core) == 0 || ((slow || deal) && fits)) {
		g->sum.dealt += deal && fits ? (uint64_t)n : 0;
		return NULL;
	}
	return core;
}

void group_push(struct sim *s, struct stage *st, struct group_core *core, uint32_t slot)
{
	struct request *r = &s->req[slot];
	struct line *cell = &core->cell[st->conf->place];
	struct lane *l = &cell->lane[st->conf->serial ? 0 : r->class_id];

	if (st->group->conf->newest && l->n > 0) {
		r->next = l->head;
		l->head = slot;
		l->n++;
	} else {
		lane_push(s, l, slot);
	}
	cell->n++;
	core->n++;
	core->filled |= UINT64_C(1) << st->conf->place;
	st->celled++;
	st->in_cells[r->class_id]++;
	next_arrived(&core->next, st->conf->place, 1);
}

/* The caller tells the policy. */
uint32_t group_pop(struct sim *s, struct stage *st, struct group_core *core)
{
	struct line *cell = &core->cell[st->conf->place];
	int c = st->conf->serial ? 0 : lanes_next(s, st, cell->lane);
	uint32_t slot = lane_pop(s, &cell->lane[c]);

	core->n--;
	if (--cell->n == 0)
		core->filled &= ~(UINT64_C(1) << st->conf->place);
	st->celled--;
	st->in_cells[s->req[slot].class_id]--;
	return slot;
}

uint32_t group_give(
    struct sim *s, struct group *g, struct group_core *core, int place, uint32_t most)
{
	struct stage *st = &s->stage[g->stage[place]];
	int part = group_part(st, group_core_number(g, core));
	uint32_t given = 0;

	for (; given < most && core->cell[place].n > 0; given++) {
		uint32_t slot = group_pop(s, st, core);
		waiting_push(s, st, part, slot);
	}
	if (given > 0)
		next_gave(&core->next, place, given);
	return given;
}

bool group_surplus(const struct sim *s, const struct group *g, const struct group_core *core)
{
	uint64_t filled = core->filled & ~g->kept;
	int64_t work_ns = 0;
	uint32_t n = 0;

	for (uint64_t left = filled; left; left &= left - 1) {
		int i = __builtin_ctzll(left);
		n += core->cell[i].n;
		work_ns += core->cell[i].n * s->stage[g->stage[i]].mean_cost_ns;
	}
	return (n >= DEAL_EVENTS || several(filled)) && work_ns >= DEAL_NS;
}

bool group_deal(struct sim *s, struct group *g, struct group_core *core)
{
	uint64_t filled = core->filled & ~g->kept;
	int most = -1;

	if (!group_idles(g, core) || !group_surplus(s, g, core))
		return false;
	for (uint64_t left = filled; left; left &= left - 1) {
		int i = __builtin_ctzll(left);
		if (most < 0 || core->cell[i].n > core->cell[most].n)
			most = i;
	}
	uint32_t n = core->cell[most].n;
	n = group_give(s, g, core, most, several(filled) && n < DEAL_EVENTS ? n : n / 2);
	g->sum.dealt += n;
	group_poke(s, g->stage[most]);
	return true;
}

void group_wake(struct sim *s, struct group *g, int k)
{
	const struct sim_group_costs *cost = &g->conf->cost;
	struct group_core *core = &g->core[k];
	bool spins = s->now_ns - core->idle_ns < cost->spin_ns;

	core->idle = false;
	core->waking = true;
	g->n_idle--;
	g->n_waking++;
	g->law.woke = true;
	sim_at(s, s->now_ns + (spins ? cost->poll_ns : cost->wake_ns), STEP_WOKEN,
	    g->first + (uint32_t)k);
}

bool group_idles(const struct group *g, const struct group_core *core)
{
	int copies = group_copies(g), k = group_core_number(g, core) % copies;

	if (g->conf->unbalanced || g->n_idle == 0 || copies == 1)
		return !g->conf->unbalanced && g->n_idle > 0;
	while (k < g->conf->cores && !g->core[k].idle)
		k += copies;
	return k < g->conf->cores;
}

/* The core that became idle last may still spin. */
static void poke_copy(struct sim *s, struct group *g, int copy)
{
	int last = -1;

	for (int i = copy; i < g->conf->cores; i += group_copies(g))
		if (g->core[i].idle && (last < 0 || g->core[i].idle_ns > g->core[last].idle_ns))
			last = i;
	if (last >= 0)
		group_wake(s, g, last);
}

void group_poke(struct sim *s, int stage)
{
	struct stage *st = &s->stage[stage];
	struct group *g = st->group;

	if (g->n_idle == 0 || !group_queue_ready(s, st))
		return;
	if (st->conf->serial || st->conf->partition) {
		if (st->conf->serial)
			keys_poke(s, st);
		else
			parts_poke(s, st);
		return;
	}
	for (int c = 0; c < group_copies(g); c++)
		if (!st->part || st->part[c].n > 0)
			poke_copy(s, g, c);
}

/* In a group with replicas, only for the queues of the own copy. */
void group_share(struct sim *s, struct group *g, const struct group_core *core)
{
	int copy = group_core_number(g, core) % group_copies(g);

	for (int i = 0; i < g->n_stages; i++) {
		const struct stage *st = &s->stage[g->stage[i]];
		if (group_copies(g) == 1 && !g->law.woke)
			group_poke(s, g->stage[i]);
		if (group_copies(g) > 1 && st->part[copy].n > 0) {
			poke_copy(s, g, copy);
			return;
		}
	}
}
