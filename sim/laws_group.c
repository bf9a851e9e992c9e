/* SPDX-License-Identifier: MIT */
/*
 * Checks the laws of core groups. What is checked is kept apart from what the groups and next.c
 * keep: a law reads lengths, times and choices, and draws its own conclusions.
 *
 * They are checked only if one of them is asked for, since that takes longer than the simulation.
 *
 * S1 shares: no core idles while another may deal to it or a queue has events.
 *   Check: while a queue has events and a core is idle, a core is on its way. After a turn that left
 *     a core with a surplus (four events or two stages in its cells, 5 us of work), either no core
 *     idles or one was woken. The time in which neither a core is woken nor this ends is at most the
 *     longest batch and a wake-up.
 *
 * S2 starved: once the oldest event of a stage has waited longer than `starve`, a core that may take
 *   it begins at most one batch of each other stage before one of this stage. The batch in progress
 *   at that moment counts as the one of its stage. Batches of urgent visits do not count.
 *   Check: at each choice, for each stage and core. The count begins anew with each batch of the
 *     stage. The wait itself has no bound: in overload, an event that comes to the head of
 *     its queue has already waited longer than `starve` behind those before it.
 *   Not checked: an event that comes into sight of a core after it has waited elsewhere, until
 *     `starve` / 16 after the last choice at which the core did not see it. next.c looks for starved
 *     stages that it does not know only so often. A stage that a core has seen before is found at
 *     once.
 *
 * S3 gate: a visit has at most as many events as its gate allows, and none of its batches begins
 *   after `gate: time`. A visit that an urgent one cuts goes on as if no time had passed.
 *
 * S4 serial: laws_serial.c.
 *
 * S5 alone: an exclusive stage is not visited while a batch of it runs, so no core waits for it.
 *
 * S6 urgent: if a stage is urgent when a core chooses, it chooses an urgent stage.
 *
 * S9 table: the table of `mg1` has 233 entries. Each stage has the share of them that the formula
 *   gives it, to a tenth or one entry, but at least one. No gap is over twice the mean.
 *
 * I11 of a group with a range of cores: at each step, the cores below the number that the resize policy
 *   has chosen are in the group. A core above it has a batch, or wakes up; after that it has left, and
 *   neither its cells nor its inboxes have events.
 *
 * S10 limit: cells and queue together hold at most the limit of the queue. Events that have yielded
 *   do not pass the bound again, so they may exceed it.
 *
 * S11 predicts: over the events that enter the group while it is loaded, the predicted wait is at
 *   least 0.7 of the real one, with `fifo` at most 1.3 of it.
 *   Check: at the end of the measured time, for events whose predicted wait is more than ten
 *     services.
 */
#include <math.h>
#include <string.h>

#include "group.h"

#define CHECKS    16 /* STARVE_CHECKS in sched/next.c */
#define ENTRIES   233
#define LOAD_MAX  0.95
#define TABLE_OFF 0.1
#define LOADED    10 /* services */
#define PREDICTED 1000
#define LEAST     0.7
#define MOST      1.3

static int stage_at(const struct group *g, int place)
{
	return g->stage[place];
}

/* ---- S2, S3, S6: choices ---- */

static bool has(uint64_t set, int i)
{
	return set >> i & 1;
}

void laws_group_new(struct group_core *core)
{
	core->law = (struct core_laws){.place = -1, .last = -1, .chose_ns = INT64_MIN / 2};
}

/* Note what the core sees of stage `i`. Returns whether next.c must know that the stage starves. */
static bool must_know(
    const struct group *g, struct core_laws *law, const struct next_view *v, int i)
{
	uint64_t bit = UINT64_C(1) << i;
	int64_t oldest_ns = v->stage[i].oldest_ns, most_ns = g->conf->limits.starve_ns;

	if (!(v->ready & bit)) {
		law->sees &= ~bit;
		return false;
	}
	if (!(law->sees & bit) || oldest_ns < law->oldest_ns[i])
		law->unseen_ns[i] = law->chose_ns;
	law->sees |= bit;
	law->oldest_ns[i] = oldest_ns;
	return most_ns > 0 && v->now_ns - oldest_ns > most_ns &&
	       v->now_ns - law->unseen_ns[i] >= most_ns / CHECKS;
}

static void check_starved(struct sim *s, struct group *g, struct core_laws *law,
    const struct next_view *v, const struct next_choice *c)
{
	for (int i = 0; i < v->n; i++) {
		uint64_t bit = UINT64_C(1) << i;
		bool starves = must_know(g, law, v, i) && i != c->stage;
		if (starves && !(law->starves & bit))
			law->passed[i] =
			    law->last >= 0 && law->last != i ? UINT64_C(1) << law->last : 0;
		law->starves = starves ? law->starves | bit : law->starves & ~bit;
		if (!starves || c->why == NEXT_URGENT)
			continue;
		if (has(law->passed[i], c->stage))
			laws_break(s, SIM_LAW_STARVED, stage_at(g, i),
			    "a head waits for %.3f ms, and stage %d has a second batch before it",
			    (double)(v->now_ns - v->stage[i].oldest_ns) * 1e-6,
			    stage_at(g, c->stage));
		law->passed[i] |= UINT64_C(1) << c->stage;
		laws_saw(s, SIM_LAW_STARVED,
		    __builtin_popcountll(law->passed[i]) / (double)(v->n > 1 ? v->n - 1 : 1));
	}
	law->chose_ns = v->now_ns;
	if (c->why != NEXT_URGENT)
		law->last = c->stage;
}

static bool crosses(const struct next_urgent *u, const struct next_stage *st, int64_t now_ns)
{
	return (u->events && st->length >= u->events) ||
	       (u->wait_ns && now_ns - st->oldest_ns >= u->wait_ns);
}

static void check_urgent(
    struct sim *s, struct group *g, const struct next_view *v, const struct next_choice *c)
{
	const struct next_limits *l = &g->conf->limits;

	for (int i = 0; i < v->n && l->urgent_set; i++) {
		if (!has(v->ready & l->urgent_set, i))
			continue;
		laws_saw(s, SIM_LAW_URGENT, 0);
		if (c->why != NEXT_URGENT && crosses(&l->urgent[i], &v->stage[i], v->now_ns))
			laws_break(s, SIM_LAW_URGENT, stage_at(g, i),
			    "is urgent, but stage %d is chosen", stage_at(g, c->stage));
	}
}

static void open_visit(struct group *g, struct core_laws *law, const struct next_view *v, int place)
{
	const struct next_limits *l = &g->conf->limits;

	law->place = place;
	law->events = 0;
	law->began_ns = v->now_ns;
	law->most = l->gate == NEXT_ARRIVED  ? v->stage[place].length
		    : l->gate == NEXT_EVENTS ? l->gate_events
					     : UINT64_MAX;
}

static void check_gate(struct sim *s, struct group *g, struct group_core *core,
    const struct next_view *v, const struct next_choice *c, uint32_t n)
{
	struct core_laws *law = &core->law;
	const struct next_limits *l = &g->conf->limits;

	if (c->why == NEXT_URGENT) {
		law->cut_ns = law->cut_ns ? law->cut_ns : v->now_ns;
		return;
	}
	if (law->cut_ns)
		law->began_ns += v->now_ns - law->cut_ns;
	law->cut_ns = 0;
	if (c->begins)
		open_visit(g, law, v, c->stage);
	law->events += n;
	laws_saw(s, SIM_LAW_GATE, (double)law->events / (double)law->most);
	if (law->place != c->stage)
		laws_break(s, SIM_LAW_GATE, stage_at(g, c->stage), "a visit began unseen");
	if (law->events > law->most)
		laws_break(s, SIM_LAW_GATE, stage_at(g, c->stage),
		    "%llu events in a visit whose gate allows %llu",
		    (unsigned long long)law->events, (unsigned long long)law->most);
	if (l->gate == NEXT_TIME && v->now_ns - law->began_ns > 0 &&
	    v->now_ns - law->began_ns >= l->gate_ns)
		laws_break(s, SIM_LAW_GATE, stage_at(g, c->stage),
		    "a batch begins %.3f ms after the visit",
		    (double)(v->now_ns - law->began_ns) * 1e-6);
}

/* The batch has not begun yet. */
static void check_alone(struct sim *s, const struct group *g, const struct next_choice *c)
{
	const struct stage *st = &s->stage[stage_at(g, c->stage)];

	if (!st->conf->exclusive)
		return;
	laws_saw(s, SIM_LAW_ALONE, st->busy);
	if (st->busy > 0)
		laws_break(s, SIM_LAW_ALONE, stage_at(g, c->stage),
		    "a core visits it while another is in its handler");
}

void laws_group_chosen(struct sim *s, struct group *g, struct group_core *core,
    const struct next_view *v, const struct next_choice *c, uint32_t n)
{
	if (!laws_asked(s, SIM_LAWS_GROUPS))
		return;
	check_starved(s, g, &core->law, v, c);
	check_urgent(s, g, v, c);
	check_gate(s, g, core, v, c, n);
	check_alone(s, g, c);
}

void laws_group_yielded(struct group_core *core, uint32_t ahead)
{
	if (core->law.cut_ns == 0 && core->law.events + ahead < core->law.most)
		core->law.most = core->law.events + ahead;
}

/* ---- S1 ---- */

/* Whether a core may deal to another one that idles. */
static bool deals(const struct sim *s, const struct group *g)
{
	for (int k = 0; k < g->conf->cores && !g->conf->unbalanced; k++)
		if (!g->core[k].idle && !g->core[k].waking && group_idles(g, &g->core[k]) &&
		    group_surplus(s, g, &g->core[k]))
			return true;
	return false;
}

void laws_group_began(struct sim *s, struct group *g, struct group_core *core, int64_t batch_ns)
{
	if (batch_ns > g->law.longest_ns)
		g->law.longest_ns = batch_ns;
	if (group_idles(g, core) && !g->law.woke && group_surplus(s, g, core))
		laws_break(s, SIM_LAW_SHARES, stage_at(g, 0),
		    "a core keeps %u events in its cells while %d idle", core->n, g->n_idle);
}

/* No core idles while its own inbox, partitions or connections have events. */
static void check_inboxes(struct sim *s, const struct group *g)
{
	for (int k = 0; k < g->conf->cores; k++)
		if (g->core[k].idle && g->core[k].socket.n > 0)
			laws_break(s, SIM_LAW_SHARES, stage_at(g, 0),
			    "core %d idles, but %u requests wait for it", k, g->core[k].socket.n);
	for (int i = 0; i < g->n_stages; i++) {
		const struct stage *st = &s->stage[stage_at(g, i)];
		uint64_t parts = st->conf->partition ? st->parts & ~st->leased : 0;
		for (; parts; parts &= parts - 1)
			if (g->core[__builtin_ctzll(parts) % g->cores].idle)
				laws_break(s, SIM_LAW_SHARES, stage_at(g, i),
				    "core %d idles, but partition %d has events",
				    __builtin_ctzll(parts) % g->cores, __builtin_ctzll(parts));
	}
	for (uint64_t left = g->serial; left; left &= left - 1) {
		const struct stage *st = &s->stage[stage_at(g, __builtin_ctzll(left))];
		for (uint64_t parts = st->parts; parts; parts &= parts - 1)
			if (g->core[__builtin_ctzll(parts)].idle)
				laws_break(s, SIM_LAW_SHARES, (int)(st - s->stage),
				    "core %d idles, but its inbox has events",
				    __builtin_ctzll(parts));
	}
}

/* Return a stage whose queue has events that the idle core may take, or -1. */
static int waiting_for(const struct sim *s, const struct group *g, int k)
{
	for (int i = 0; i < g->n_stages; i++) {
		const struct stage *st = &s->stage[stage_at(g, i)];
		bool any = st->part ? st->part[group_part(st, k)].n > 0 : group_queue_ready(s, st);
		if (!st->conf->serial && !st->conf->partition && any && !laws_may_linger(s, st))
			return stage_at(g, i);
	}
	return -1;
}

/* Return a stage whose queue has events although a core of `copy` idles, or -1; *none is whether no
 * core of the copy is waking up. */
static int left_waiting(const struct sim *s, const struct group *g, int copy, bool *none)
{
	int queue = -1, idle = -1;

	*none = true;
	for (int k = copy; k < g->conf->cores; k += group_copies(g)) {
		*none &= !g->core[k].waking;
		idle = g->core[k].idle ? k : idle;
	}
	if (idle >= 0)
		queue = waiting_for(s, g, idle);
	return queue;
}

static void check_shares(struct sim *s, struct group *g)
{
	struct group_laws *law = &g->law;
	bool waits = false, none;

	laws_saw(s, SIM_LAW_SHARES, 0);
	if (g->n_idle == 0) {
		law->since_ns = 0;
		return;
	}
	check_inboxes(s, g);
	for (int c = 0; c < group_copies(g); c++) {
		int queue = left_waiting(s, g, c, &none);
		waits |= queue >= 0;
		if (queue >= 0 && none)
			laws_break(s, SIM_LAW_SHARES, queue,
			    "its queue has %u events while %d cores idle",
			    group_queued(&s->stage[queue]), g->n_idle);
	}
	if (law->woke || (!waits && !deals(s, g)))
		law->since_ns = 0;
	else if (law->since_ns == 0)
		law->since_ns = s->now_ns;
	law->woke = false;
	if (law->since_ns == 0)
		return;
	int64_t most_ns = law->longest_ns + g->conf->cost.wake_ns;
	laws_saw(s, SIM_LAW_SHARES, (double)(s->now_ns - law->since_ns) / (double)most_ns);
	if (s->now_ns - law->since_ns > most_ns)
		laws_break(s, SIM_LAW_SHARES, stage_at(g, 0),
		    "a core idles for %.3f ms while another may deal, %.3f ms are a batch and a "
		    "wake-up",
		    (double)(s->now_ns - law->since_ns) * 1e-6, (double)most_ns * 1e-6);
}

static bool has_inbox(const struct sim *s, const struct group *g, int k)
{
	for (uint64_t left = g->serial; left; left &= left - 1)
		if (s->stage[stage_at(g, __builtin_ctzll(left))].parts >> k & 1)
			return true;
	return false;
}

/* I11: the cores that the group should have are there, one that should leave is in its last batch, and
 * one that has left has left nothing behind. */
static void check_cores(struct sim *s, const struct group *g)
{
	int present = 0;

	for (int k = 0; k < g->conf->cores; k++) {
		const struct group_core *core = &g->core[k];
		bool busy = s->worker[g->first + (uint32_t)k].n > 0;
		present += !core->absent;
		if (core->absent ? k < g->cores || busy || core->idle || core->waking ||
				       core->n > 0 || has_inbox(s, g, k)
				 : k >= g->cores && !busy && !core->waking)
			laws_break(s, SIM_LAW_THREADS, stage_at(g, 0),
			    "core %d of %d is %s with %u events, %s", k, g->cores,
			    core->absent ? "absent" : "present", core->n,
			    core->idle ? "idle"
			    : busy     ? "busy"
				       : "between batches");
	}
	laws_saw(s, SIM_LAW_THREADS, 0);
	if (present != g->present || g->cores < sim_fewest_cores(g->conf) ||
	    g->cores > g->conf->cores)
		laws_break(s, SIM_LAW_THREADS, stage_at(g, 0),
		    "%d cores are present, %d counted; it should have %d", present, g->present,
		    g->cores);
}

void laws_group_step(struct sim *s)
{
	if (!laws_asked(s, SIM_LAWS_GROUPS))
		return;
	for (int i = 0; i < s->conf->n_groups; i++) {
		if (s->group[i].n_stages > 0)
			check_shares(s, &s->group[i]);
		if (s->group[i].n_stages > 0 && s->group[i].conf->resize)
			check_cores(s, &s->group[i]);
	}
}

/* ---- S9 ---- */

static double share_of(const struct group *g, int i)
{
	bool exhaustive = g->conf->limits.gate == NEXT_ALL || g->conf->limits.gate == NEXT_CUTOFF;
	double load = fmin(g->load[i], LOAD_MAX);

	return sqrt(load * (exhaustive ? 1 - load : 1 + load));
}

/* The longest gap between two entries of stage `i`, counted around the end of the table. */
static int longest_gap(const struct next_order *o, int i)
{
	int longest = 0, last = -1;

	for (int k = 0; k < 2 * o->n_table; k++) {
		if (o->table[k % o->n_table] != i)
			continue;
		if (last >= 0 && k - last > longest)
			longest = k - last;
		last = k;
	}
	return longest;
}

void laws_group_ordered(struct sim *s, struct group *g)
{
	const struct next_order *o = &g->order;
	double sum = 0;

	if (strcmp(g->conf->policy->name, "mg1") != 0 || s->now_ns == 0)
		return;
	for (int i = 0; i < g->n_stages; i++)
		sum += share_of(g, i);
	for (int i = 0; i < g->n_stages && sum > 0; i++) {
		double want = share_of(g, i) / sum * o->n_table;
		int n = 0;
		for (int k = 0; k < o->n_table; k++)
			n += o->table[k] == i;
		laws_saw(s, SIM_LAW_TABLE, 0);
		/* stages that get an entry although their share is none take it from the others */
		double off = fmax(TABLE_OFF * want, 1) + g->n_stages * want / o->n_table;
		if (o->n_table != ENTRIES || n < 1 || (fabs(n - want) > off && n > 1))
			laws_break(s, SIM_LAW_TABLE, stage_at(g, i),
			    "%d of %d entries, but the formula gives %.1f", n, o->n_table, want);
		else if (n * longest_gap(o, i) > 2 * o->n_table)
			laws_break(s, SIM_LAW_TABLE, stage_at(g, i),
			    "a gap of %d entries between %d visits", longest_gap(o, i), n);
	}
}

/* ---- S10, S11 ---- */

void laws_group_check(struct sim *s, const struct stage *st)
{
	uint32_t most = st->conf->queue_limit + st->again;

	laws_saw(s, SIM_LAW_LIMIT, (double)st->length / most);
	if (st->length > most)
		laws_break(s, SIM_LAW_LIMIT, (int)(st - s->stage),
		    "%u events in cells and queue, but the limit is %u", st->length, most);
}

/* The events wait for what waits in the whole group, and take turns on its cores. */
void laws_group_entered(struct sim *s, struct stage *st, uint32_t slot)
{
	const struct group *g = st->group;
	int64_t mean_ns = 0;

	if (!g || !laws_asked(s, SIM_LAW_PREDICTS) || g->n_idle > 0)
		return;
	for (int i = 0; i < g->n_stages; i++)
		if (s->stage[g->stage[i]].mean_cost_ns > mean_ns)
			mean_ns = s->stage[g->stage[i]].mean_cost_ns;
	int64_t wait_ns = group_work_ns(s, st, queue_work_ns(s, st)) / g->cores;
	s->req[slot].predicted_ns = wait_ns > LOADED * mean_ns ? wait_ns : 0;
}

void laws_group_took(struct sim *s, struct stage *st, uint32_t slot)
{
	struct request *r = &s->req[slot];
	struct group_laws *law = &st->group->law;

	if (r->predicted_ns == 0)
		return;
	law->predicted_ns += (double)r->predicted_ns;
	law->waited_ns += (double)(s->now_ns - r->queued_ns);
	law->n++;
	r->predicted_ns = 0;
}

void laws_group_end(struct sim *s, struct group *g)
{
	double ratio = g->law.predicted_ns / fmax(g->law.waited_ns, 1);

	if (!laws_asked(s, SIM_LAW_PREDICTS) || g->law.n < PREDICTED)
		return;
	laws_saw(s, SIM_LAW_PREDICTS, LEAST / ratio);
	if (ratio < LEAST || (ratio > MOST && strcmp(g->conf->policy->name, "fifo") == 0))
		laws_break(s, SIM_LAW_PREDICTS, stage_at(g, 0),
		    "the predicted wait is %.2f of the wait of %llu events", ratio,
		    (unsigned long long)g->law.n);
}
