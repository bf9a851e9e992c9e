/* SPDX-License-Identifier: MIT */
/*
 * Chooses what a core visits next: an urgent stage, else a starved one, else the stage of the
 * present visit while the gate lets it go on, else the stage that the policy picks (next.h).
 *
 * A core has at most two visits at a time: an urgent one, and the one that it has interrupted
 * (cut). The urgent visit ends when its stage is empty; then the other goes on as if no time had
 * passed. A starved stage ends the present visit instead of cutting it: if visits of starved stages
 * were nested, an overloaded core would have one visit open per stage.
 *
 * Starved stages take turns, a batch each, starting after the stage visited last. So a stage that
 * starves waits for the batch in progress and at most one batch of each other stage. To serve the
 * oldest event first would not guarantee that: in overload, all older events of other stages would
 * come first. Urgent stages take turns for the same reason, a visit each.
 */
#include "sched/next.h"

#include <string.h>

#include "sched/next_bits.h"

/* The interval of checks for starvation while no stage is near the limit is starve_ns /
 * STARVE_CHECKS. A stage may become ready with an event that has already waited elsewhere, so a
 * wait can cross the limit between two checks. 16 is a guess: 6 % of the limit is little. */
#define STARVE_CHECKS 16

static const struct next_policy *const policies[] = {
    &next_fifo, &next_wavefront, &next_srpt, &next_dbr, &next_mg1, &next_color};

#define N_POLICIES (int)(sizeof(policies) / sizeof(policies[0]))

const struct next_policy *next_policy_at(int i)
{
	return i >= 0 && i < N_POLICIES ? policies[i] : NULL;
}

const struct next_policy *next_policy_find(const char *name)
{
	for (int i = 0; i < N_POLICIES; i++)
		if (strcmp(policies[i]->name, name) == 0)
			return policies[i];
	return NULL;
}

void next_order_make(const struct next_policy *policy, const struct next_view *v,
    const struct next_limits *l, struct next_order *out)
{
	memset(out, 0, sizeof(*out));
	if (policy->order)
		policy->order(v, l, out);
}

const char *next_why_name(enum next_why why)
{
	static const char *const names[] = {
	    [NEXT_NONE] = "none",
	    [NEXT_URGENT] = "urgent",
	    [NEXT_STARVED] = "starved",
	    [NEXT_STAY] = "stay",
	    [NEXT_POLICY] = "policy",
	};

	return names[why];
}

void next_core_init(struct next_core *core, const struct next_policy *policy)
{
	memset(core, 0, sizeof(*core));
	core->policy = policy;
}

void next_adapt(struct next_core *core, const struct next_limits *l)
{
	core->simple = l->gate == NEXT_ALL && l->urgent_set == 0;
	if (l->starve_ns == 0)
		core->starve_check_ns = INT64_MAX;
	else if (core->starve_check_ns == INT64_MAX)
		core->starve_check_ns = 0;
}

/* Whether a visit has not reached its end. */
static bool goes_on(const struct next_visit *visit, const struct next_view *v)
{
	return visit->open && visit->left > 0 && bits_has(v->ready, visit->stage) &&
	       v->stage[visit->stage].oldest_ns < visit->until_ns;
}

static bool gate_open(
    const struct next_visit *visit, const struct next_limits *l, const struct next_view *v)
{
	if (!goes_on(visit, v) || visit->gate != l->gate)
		return false;
	return visit->gate != NEXT_TIME || v->now_ns - visit->began_ns < l->gate_ns;
}

static uint32_t gate_events(const struct next_limits *l, const struct next_view *v, int stage)
{
	switch (l->gate) {
	case NEXT_ARRIVED:
		return v->stage[stage].length;
	case NEXT_EVENTS:
		return l->gate_events;
	default:
		return UINT32_MAX;
	}
}

static struct next_choice begin(struct next_core *core, const struct next_limits *l,
    const struct next_view *v, int stage, enum next_why why)
{
	core->visit = (struct next_visit){.open = true,
	    .stage = stage,
	    .gate = l->gate,
	    .left = gate_events(l, v, stage),
	    .until_ns = INT64_MAX,
	    .began_ns = v->now_ns};
	core->last = stage;
	return (struct next_choice){
	    .stage = stage, .why = why, .begins = true, .max = core->visit.left};
}

static struct next_choice begin_urgent(struct next_core *core, const struct next_view *v, int stage)
{
	/* An urgent visit empties its stage, so nothing is left for an earlier visit of the same
	 * stage. */
	if (core->visit.stage == stage)
		core->visit.open = false;
	core->urgent = (struct next_visit){.open = true,
	    .stage = stage,
	    .left = UINT32_MAX,
	    .until_ns = INT64_MAX,
	    .began_ns = v->now_ns};
	core->last_urgent = stage;
	return (struct next_choice){
	    .stage = stage, .why = NEXT_URGENT, .begins = true, .max = UINT32_MAX};
}

static void end_urgent(struct next_core *core, const struct next_view *v)
{
	core->urgent.open = false;
	core->visit.began_ns += v->now_ns - core->urgent.began_ns;
}

static bool is_urgent(const struct next_urgent *u, const struct next_stage *s, int64_t now_ns)
{
	return (u->events > 0 && s->length >= u->events) ||
	       (u->wait_ns > 0 && now_ns - s->oldest_ns >= u->wait_ns);
}

/* The two searches are not inlined in next_choose, which usually needs neither: with them,
 * next_choose would save twice as many registers. */

/* Return the urgent stage whose turn it is, or -1. */
static __attribute__((noinline)) int find_urgent(
    const struct next_core *core, const struct next_limits *l, const struct next_view *v)
{
	uint64_t found = 0;

	for (uint64_t set = v->ready & l->urgent_set; set; set &= set - 1) {
		int i = bits_lowest(set);

		if (is_urgent(&l->urgent[i], &v->stage[i], v->now_ns))
			found |= UINT64_C(1) << i;
	}
	return found ? bits_after(found, core->last_urgent) : -1;
}

/* Return the starved stage whose turn it is, or -1. */
static __attribute__((noinline)) int find_starved(
    struct next_core *core, const struct next_limits *l, const struct next_view *v)
{
	uint64_t found = 0;
	int64_t check_ns = v->now_ns + l->starve_ns / STARVE_CHECKS;

	for (uint64_t set = v->ready; set; set &= set - 1) {
		int i = bits_lowest(set);
		int64_t starves_ns = v->stage[i].oldest_ns + l->starve_ns + 1;

		if (v->now_ns >= starves_ns)
			found |= UINT64_C(1) << i;
		if (starves_ns < check_ns)
			check_ns = starves_ns;
	}
	core->starve_check_ns = check_ns;
	return found ? bits_after(found, core->last) : -1;
}

struct next_choice next_choose(
    struct next_core *core, const struct next_limits *l, const struct next_view *v)
{
	int stage;

	if (core->urgent.open) {
		if (goes_on(&core->urgent, v))
			return (struct next_choice){.stage = core->urgent.stage,
			    .why = NEXT_URGENT,
			    .max = core->urgent.left};
		end_urgent(core, v);
	}
	if (v->ready == 0) {
		core->visit.open = false;
		return (struct next_choice){.stage = -1, .why = NEXT_NONE};
	}
	if (v->ready & l->urgent_set) {
		stage = find_urgent(core, l, v);
		if (stage >= 0)
			return begin_urgent(core, v, stage);
	}
	bool stay = gate_open(&core->visit, l, v);

	if (l->starve_ns > 0 && v->now_ns >= core->starve_check_ns) {
		stage = find_starved(core, l, v);
		if (stage >= 0 && !(stay && stage == core->visit.stage))
			return begin(core, l, v, stage, NEXT_STARVED);
	}
	if (stay)
		return (struct next_choice){
		    .stage = core->visit.stage, .why = NEXT_STAY, .max = core->visit.left};
	stage = core->policy->pick(core->state, v);
	return begin(core, l, v, stage, NEXT_POLICY);
}

/* Return the visit to which the last choice belongs. */
static struct next_visit *present(struct next_core *core)
{
	return core->urgent.open ? &core->urgent : &core->visit;
}

void next_took(struct next_core *core, int stage, uint32_t n, uint32_t own)
{
	struct next_visit *visit = present(core);

	if (core->policy->left && own > 0)
		core->policy->left(core->state, stage, own);
	if (n == 0 || n >= visit->left)
		visit->left = 0;
	else if (visit->left != UINT32_MAX)
		visit->left -= n;
}

void next_yielded(struct next_core *core, uint32_t ahead, int64_t at_ns)
{
	struct next_visit *visit = present(core);

	if (ahead < visit->left)
		visit->left = ahead;
	if (at_ns < visit->until_ns)
		visit->until_ns = at_ns;
}
