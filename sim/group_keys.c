/* SPDX-License-Identifier: MIT */
/*
 * Serial keys: the slots of a core group, the inboxes of its serial stages, and moves of slots from
 * core to core. The rules are those of sched/serial.h.
 *
 * The value that a request has in a field follows from its number, so a retry has the same. Its hash
 * is the key, and the key modulo QUEUE_SLOTS the slot.
 */
#include <stdlib.h>

#include "group.h"
#include "load/rng.h"
#include "sched/serial_choose.h"

/* ---- keys ---- */

uint32_t keys_value(const struct sim *s, const struct stage *st, const struct request *r)
{
	int i = (st->conf->serial ? st->conf->serial : st->conf->partition) - 1;
	const struct sim_field *f = &s->conf->field[i];
	uint64_t bits = weir_random_at(rng_key(s->serial_key, (uint64_t)i), r->serial);

	if (f->values == 0)
		return r->class_id;
	if (weir_random_unit(bits) < f->first_share)
		return 0;
	return (uint32_t)rng_below(weir_random_at(s->serial_key, bits), f->values);
}

static unsigned slot_of(const struct sim *s, const struct stage *st, const struct request *r)
{
	return (unsigned)(weir_random_at(s->serial_key, keys_value(s, st, r)) % QUEUE_SLOTS);
}

int keys_owner(const struct sim *s, const struct stage *st, const struct request *r)
{
	return st->group->map[slot_of(s, st, r)];
}

/* ---- inboxes ---- */

int keys_open(struct sim *s, struct stage *st)
{
	struct group *g = st->group;

	(void)s;
	st->part = calloc((size_t)g->conf->cores, sizeof(*st->part));
	if (!st->part)
		return WEIR_ENOMEM;
	for (int i = 0; i < QUEUE_SLOTS && !g->serial; i++)
		g->map[i] = g->given_by[i] = (uint8_t)(i % sim_fewest_cores(g->conf));
	g->serial |= UINT64_C(1) << st->conf->place;
	g->kept |= UINT64_C(1) << st->conf->place;
	return 0;
}

/* Append to the inbox of core `k`. */
static void push_to(struct sim *s, struct stage *st, int k, uint32_t slot)
{
	lane_push(s, &st->part[k].lane[0], slot);
	st->part[k].n++;
	st->parts |= UINT64_C(1) << k;
	st->lane[s->req[slot].class_id].n++;
}

void keys_push(struct sim *s, struct stage *st, uint32_t slot)
{
	push_to(s, st, keys_owner(s, st, &s->req[slot]), slot);
}

struct line *keys_inbox(const struct stage *st, int k)
{
	if (st->part[k].n == 0 && st->parts && st->group->conf->mutant == SIM_ANY_INBOX)
		k = __builtin_ctzll(st->parts);
	return &st->part[k];
}

static uint32_t pop_highest(struct sim *s, struct lane *l)
{
	uint32_t best = l->head, before = NONE;

	for (uint32_t at = l->head; s->req[at].next != NONE; at = s->req[at].next) {
		uint32_t next = s->req[at].next;
		if (s->req[next].class_id < s->req[best].class_id) {
			best = next;
			before = at;
		}
	}
	if (before == NONE)
		return lane_pop(s, l);
	s->req[before].next = s->req[best].next;
	if (l->tail == best)
		l->tail = before;
	l->n--;
	return best;
}

uint32_t keys_pop(struct sim *s, struct stage *st, struct line *inbox)
{
	bool by_class = st->group->conf->mutant == SIM_BY_CLASS;
	uint32_t slot = by_class ? pop_highest(s, &inbox->lane[0]) : lane_pop(s, &inbox->lane[0]);

	st->lane[s->req[slot].class_id].n--;
	if (--inbox->n == 0)
		st->parts &= ~(UINT64_C(1) << (inbox - st->part));
	return slot;
}

bool keys_enters(const struct sim *s, const struct stage *st, int k, uint32_t slot)
{
	const struct group *g = st->group;
	unsigned at = slot_of(s, st, &s->req[slot]);
	bool owns = g->map[at] == k || (g->conf->mutant == SIM_TWO_OWNERS && g->given_by[at] == k);
	bool first = st->part[k].n == 0 || g->conf->mutant == SIM_CELL_OVERTAKES;

	return owns && first && st->conf->local != SIM_LOCAL_NEVER;
}

int64_t keys_work_ns(const struct sim *s, const struct stage *st, uint32_t slot)
{
	int k = keys_owner(s, st, &s->req[slot]);

	return (st->part[k].n + st->group->core[k].cell[st->conf->place].n) * st->mean_cost_ns;
}

void keys_poke(struct sim *s, struct stage *st)
{
	for (uint64_t left = st->parts; left; left &= left - 1)
		if (st->group->core[__builtin_ctzll(left)].idle)
			group_wake(s, st->group, __builtin_ctzll(left));
}

/* ---- moves ---- */

/* Take the requests of `slots` out of `l`, in order. */
static struct lane split(
    struct sim *s, const struct stage *st, struct lane *l, const struct slots *slots)
{
	struct lane out = {0}, left = {0};

	for (uint32_t at = l->n ? l->head : NONE, next; at != NONE; at = next) {
		next = s->req[at].next;
		lane_push(s, slots_has(slots, slot_of(s, st, &s->req[at])) ? &out : &left, at);
	}
	*l = left;
	return out;
}

/* Take the requests of `slots` out of the cell of core `k`. */
static struct lane leave_cell(struct sim *s, struct stage *st, int k, const struct slots *slots)
{
	struct group_core *core = &st->group->core[k];
	int place = st->conf->place;
	struct lane out = split(s, st, &core->cell[place].lane[0], slots);

	core->n -= out.n;
	core->cell[place].n -= out.n;
	if (core->cell[place].n == 0)
		core->filled &= ~(UINT64_C(1) << place);
	st->celled -= out.n;
	for (uint32_t at = out.n ? out.head : NONE; at != NONE; at = s->req[at].next)
		st->in_cells[s->req[at].class_id]--;
	if (out.n > 0)
		next_gave(&core->next, place, out.n);
	return out;
}

static struct lane leave_inbox(struct sim *s, struct stage *st, int k, const struct slots *slots)
{
	struct lane out = split(s, st, &st->part[k].lane[0], slots);

	st->part[k].n -= out.n;
	if (st->part[k].n == 0)
		st->parts &= ~(UINT64_C(1) << k);
	for (uint32_t at = out.n ? out.head : NONE; at != NONE; at = s->req[at].next)
		st->lane[s->req[at].class_id].n--;
	return out;
}

static uint32_t append(struct sim *s, struct stage *st, int k, const struct lane *l)
{
	for (uint32_t at = l->n ? l->head : NONE, next; at != NONE; at = next) {
		next = s->req[at].next;
		push_to(s, st, k, at);
	}
	return l->n;
}

/* Give `slots` of core `from` to core `to`. Returns the number of events that moved. */
static uint32_t move(struct sim *s, struct group *g, int from, int to, const struct slots *slots)
{
	uint32_t n = 0;

	for (uint64_t left = g->serial; left && g->conf->mutant != SIM_MOVE_LEAVES;
	     left &= left - 1) {
		struct stage *st = &s->stage[g->stage[__builtin_ctzll(left)]];
		struct lane cell = leave_cell(s, st, from, slots);
		struct lane inbox = leave_inbox(s, st, from, slots);
		bool turned = g->conf->mutant == SIM_MOVE_TURNED;
		n += append(s, st, to, turned ? &inbox : &cell);
		n += append(s, st, to, turned ? &cell : &inbox);
	}
	for (unsigned i = 0; i < QUEUE_SLOTS; i++)
		if (slots_has(slots, i)) {
			g->map[i] = (uint8_t)to;
			g->given_by[i] = (uint8_t)from;
			g->sum.moved++;
		}
	return n;
}

static void poke_all(struct sim *s, struct group *g)
{
	for (uint64_t left = g->serial; left; left &= left - 1)
		group_poke(s, g->stage[__builtin_ctzll(left)]);
}

/* ---- dealing ---- */

static int idle_core(const struct group *g, int k)
{
	for (int i = 1; i < g->conf->cores; i++)
		if (g->core[(k + i) % g->conf->cores].idle)
			return (k + i) % g->conf->cores;
	return -1;
}

static int64_t waiting_ns(const struct sim *s, const struct group *g, int k, uint32_t *n)
{
	int64_t ns = 0;

	*n = 0;
	for (uint64_t left = g->serial; left; left &= left - 1) {
		int i = __builtin_ctzll(left);
		const struct stage *st = &s->stage[g->stage[i]];
		uint32_t m = g->core[k].cell[i].n + st->part[k].n;
		*n += m;
		ns += m * st->mean_cost_ns;
	}
	return ns;
}

static void look_at(const struct sim *s, const struct stage *st, const struct lane *l,
    int64_t *work_ns, uint32_t *events)
{
	uint32_t n = 0;

	for (uint32_t at = l->n ? l->head : NONE; at != NONE && n < SERIAL_LOOK;
	     at = s->req[at].next, n++) {
		unsigned i = slot_of(s, st, &s->req[at]);
		work_ns[i] += st->mean_cost_ns;
		events[i]++;
	}
}

static int64_t choose(const struct sim *s, const struct group *g, int k, struct slots *slots)
{
	int64_t work_ns[QUEUE_SLOTS] = {0};
	uint32_t events[QUEUE_SLOTS] = {0};

	for (uint64_t left = g->serial; left; left &= left - 1) {
		int i = __builtin_ctzll(left);
		const struct stage *st = &s->stage[g->stage[i]];
		look_at(s, st, &g->core[k].cell[i].lane[0], work_ns, events);
		look_at(s, st, &st->part[k].lane[0], work_ns, events);
	}
	return serial_choose(work_ns, events, slots);
}

void keys_deal(struct sim *s, struct group *g, int k)
{
	struct group_core *core = &g->core[k];
	struct slots slots = {0};
	uint32_t n;

	if (!g->serial || g->conf->unbalanced || g->n_idle == 0 || s->now_ns < core->deal_ns ||
	    waiting_ns(s, g, k, &n) < SERIAL_TIMES * SERIAL_MOVE_NS || n < 2)
		return;
	int to = idle_core(g, k);
	if (to < 0 || choose(s, g, k, &slots) < SERIAL_TIMES * SERIAL_MOVE_NS) {
		core->deal_ns = s->now_ns + SERIAL_AGAIN_NS;
		return;
	}
	core->owed_ns += SERIAL_MOVE_NS + SERIAL_EVENT_NS * (int64_t)move(s, g, k, to, &slots);
	poke_all(s, g);
}

/* ---- the death of a core ---- */

/* Put the cell of core `k` in front of its inbox. */
static void clear(struct sim *s, struct stage *st, int k)
{
	struct slots all;

	for (int i = 0; i < QUEUE_SLOTS / 64; i++)
		all.word[i] = ~UINT64_C(0);
	struct lane cell = leave_cell(s, st, k, &all), inbox = leave_inbox(s, st, k, &all);
	append(s, st, k, &cell);
	append(s, st, k, &inbox);
}

/* A core that died begins again at once, without slots, unless it is the only one. */
void keys_died(struct sim *s, struct group *g, int k)
{
	struct slots of[SIM_CORES_MAX] = {0};
	bool others = g->cores > (k < g->cores);
	int to = k;

	for (uint64_t left = g->serial; left; left &= left - 1)
		clear(s, &s->stage[g->stage[__builtin_ctzll(left)]], k);
	for (unsigned i = 0; i < QUEUE_SLOTS && others; i++) {
		if (g->map[i] != k)
			continue;
		to = (to + 1) % g->cores;
		to = to == k ? (to + 1) % g->cores : to;
		slots_add(&of[to], i);
	}
	for (int i = 0; i < g->cores && others; i++)
		if (i != k)
			move(s, g, k, i, &of[i]);
	poke_all(s, g);
}
