/* SPDX-License-Identifier: MIT */
/* next_choose by hand: each gate, urgent and starved stages, and visits that are cut. The policy is
 * `fifo` with equal ages, so it picks the first ready stage. */
#include "sched/next.h"

#include <string.h>

#include "cunit_main.h"

#define STAGES 4
#define NOW    1000000

/* A core and what it sees. */
struct scene {
	struct next_core core;
	struct next_limits limits;
	struct next_order order;
	struct next_stage stage[STAGES];
	int64_t now_ns;
};

static struct scene *scene_new(enum next_gate gate)
{
	static struct scene s;

	s = (struct scene){.limits = {.gate = gate, .gate_events = 10, .gate_ns = 500}};
	next_core_init(&s.core, &next_fifo);
	s.now_ns = NOW;
	for (int i = 0; i < STAGES; i++)
		s.stage[i].oldest_ns = NOW;
	return &s;
}

static void waits(struct scene *s, int stage, uint32_t length)
{
	s->stage[stage].length = length;
}

static void urgent_at(struct scene *s, int stage, uint32_t events, int64_t wait_ns)
{
	s->limits.urgent_set |= UINT64_C(1) << stage;
	s->limits.urgent[stage] = (struct next_urgent){.events = events, .wait_ns = wait_ns};
}

static struct next_choice choose(struct scene *s)
{
	struct next_view v = {
	    .n = STAGES, .stage = s->stage, .order = &s->order, .now_ns = s->now_ns};

	for (int i = 0; i < STAGES; i++)
		if (s->stage[i].length > 0)
			v.ready |= UINT64_C(1) << i;
	return next_choose(&s->core, &s->limits, &v);
}

/* Take `n` events of a stage, for `ns`. */
static void take(struct scene *s, int stage, uint32_t n, int64_t ns)
{
	next_took(&s->core, stage, n, n);
	s->stage[stage].length -= n;
	s->now_ns += ns;
}

#define EXPECT(s, at, reason, new, most)                                                           \
	do {                                                                                       \
		struct next_choice got = choose(s);                                                \
		CU_ASSERT_EQUAL(got.stage, at);                                                    \
		CU_ASSERT_EQUAL(got.why, reason);                                                  \
		CU_ASSERT_EQUAL(got.begins, new);                                                  \
		CU_ASSERT_EQUAL(got.max, most);                                                    \
	} while (0)

static void test_table(void)
{
	static const char *const names[] = {"fifo", "wavefront", "srpt", "dbr", "mg1", "color"};

	for (int i = 0; i < 6; i++) {
		CU_ASSERT_STRING_EQUAL(next_policy_at(i)->name, names[i]);
		CU_ASSERT_PTR_EQUAL(next_policy_find(names[i]), next_policy_at(i));
		CU_ASSERT(strlen(next_policy_at(i)->help) > 10);
	}
	CU_ASSERT_PTR_NULL(next_policy_at(6));
	CU_ASSERT_PTR_NULL(next_policy_at(-1));
	CU_ASSERT_PTR_NULL(next_policy_find("shared"));
	CU_ASSERT_STRING_EQUAL(next_why_name(NEXT_NONE), "none");
	CU_ASSERT_STRING_EQUAL(next_why_name(NEXT_POLICY), "policy");
}

static void test_nothing_ready(void)
{
	struct scene *s = scene_new(NEXT_ALL);

	EXPECT(s, -1, NEXT_NONE, false, 0);
	waits(s, 1, 2);
	EXPECT(s, 1, NEXT_POLICY, true, UINT32_MAX);
	take(s, 1, 2, 100);
	EXPECT(s, -1, NEXT_NONE, false, 0);
	waits(s, 1, 2); /* the visit ended when the stage was empty */
	EXPECT(s, 1, NEXT_POLICY, true, UINT32_MAX);
}

/* What arrives during the visit belongs to it (Larus). */
static void test_gate_all(void)
{
	struct scene *s = scene_new(NEXT_ALL);

	waits(s, 2, 5);
	EXPECT(s, 2, NEXT_POLICY, true, UINT32_MAX);
	take(s, 2, 5, 100);
	waits(s, 0, 9);
	waits(s, 2, 1);
	EXPECT(s, 2, NEXT_STAY, false, UINT32_MAX);
	take(s, 2, 1, 100);
	EXPECT(s, 0, NEXT_POLICY, true, UINT32_MAX);
}

static void test_gate_arrived(void)
{
	struct scene *s = scene_new(NEXT_ARRIVED);

	waits(s, 2, 5);
	EXPECT(s, 2, NEXT_POLICY, true, 5);
	take(s, 2, 3, 100);
	waits(s, 2, 100);
	waits(s, 3, 1);
	EXPECT(s, 2, NEXT_STAY, false, 2);
	take(s, 2, 2, 100);
	EXPECT(s, 2, NEXT_POLICY, true, 98); /* of fifo: the first of equals, a new visit */
}

static void test_gate_events(void)
{
	struct scene *s = scene_new(NEXT_EVENTS);

	waits(s, 1, 100);
	EXPECT(s, 1, NEXT_POLICY, true, 10);
	take(s, 1, 9, 100);
	EXPECT(s, 1, NEXT_STAY, false, 1);
	take(s, 1, 1, 100);
	waits(s, 0, 1);
	EXPECT(s, 0, NEXT_POLICY, true, 10);
}

static void test_gate_time(void)
{
	struct scene *s = scene_new(NEXT_TIME);

	waits(s, 1, 100);
	EXPECT(s, 1, NEXT_POLICY, true, UINT32_MAX);
	take(s, 1, 10, 499);
	waits(s, 0, 1);
	EXPECT(s, 1, NEXT_STAY, false, UINT32_MAX);
	take(s, 1, 10, 1);
	EXPECT(s, 0, NEXT_POLICY, true, UINT32_MAX);
}

/* After an event yielded, the visit does what is before it in line. */
static void test_gate_cutoff(void)
{
	struct scene *s = scene_new(NEXT_CUTOFF);

	waits(s, 1, 7);
	EXPECT(s, 1, NEXT_POLICY, true, UINT32_MAX);
	take(s, 1, 4, 100000);
	next_yielded(&s->core, 3, s->now_ns);
	waits(s, 1, 4);
	EXPECT(s, 1, NEXT_STAY, false, 3);
	take(s, 1, 2, 100000);
	next_yielded(
	    &s->core, 2, s->now_ns); /* after the event that yielded first: changes nothing */
	waits(s, 1, 3);
	EXPECT(s, 1, NEXT_STAY, false, 1);
	take(s, 1, 1, 100000);
	waits(s, 0, 1);
	EXPECT(s, 0, NEXT_POLICY, true, UINT32_MAX);
}

/* Other cores have taken what was before the event that yielded: it is the oldest now. */
static void test_cutoff_reached(void)
{
	struct scene *s = scene_new(NEXT_CUTOFF);

	waits(s, 0, 1);
	waits(s, 1, 7);
	s->stage[0].oldest_ns = NOW + 1;
	EXPECT(s, 1, NEXT_POLICY, true, UINT32_MAX);
	take(s, 1, 4, 100);
	next_yielded(&s->core, 3, s->now_ns);
	EXPECT(s, 1, NEXT_STAY, false, 3);
	take(s, 1, 1, 100);
	s->stage[1].oldest_ns = NOW + 100;
	EXPECT(s, 0, NEXT_POLICY, true, UINT32_MAX);
}

/* A batch that took nothing ends a visit, or a core would turn round in it for ever. */
static void test_took_nothing(void)
{
	struct scene *s = scene_new(NEXT_ALL);

	urgent_at(s, 3, 5, 0);
	waits(s, 1, 7);
	EXPECT(s, 1, NEXT_POLICY, true, UINT32_MAX);
	take(s, 1, 0, 0);
	waits(s, 0, 1);
	EXPECT(s, 0, NEXT_POLICY, true, UINT32_MAX);
	take(s, 0, 1, 100);
	waits(s, 3, 5);
	EXPECT(s, 3, NEXT_URGENT, true, UINT32_MAX);
	take(s, 3, 0, 0);
	waits(s, 3, 4);
	EXPECT(s, 1, NEXT_POLICY, true, UINT32_MAX);
}

static void test_gate_changes(void)
{
	struct scene *s = scene_new(NEXT_ALL);

	waits(s, 1, 7);
	EXPECT(s, 1, NEXT_POLICY, true, UINT32_MAX);
	take(s, 1, 1, 100);
	s->limits.gate = NEXT_EVENTS;
	EXPECT(s, 1, NEXT_POLICY, true, 10);
}

/* ---- urgent stages ---- */

static void test_urgent_thresholds(void)
{
	struct scene *s = scene_new(NEXT_ALL);

	urgent_at(s, 2, 8, 0);
	urgent_at(s, 3, 0, 300);
	s->limits.urgent[1].events = 1; /* not in the set */
	waits(s, 0, 100);
	waits(s, 1, 100);
	waits(s, 2, 7);
	waits(s, 3, 100);
	s->now_ns = NOW + 299;
	EXPECT(s, 0, NEXT_POLICY, true, UINT32_MAX);
	s->now_ns = NOW + 300;
	EXPECT(s, 3, NEXT_URGENT, true, UINT32_MAX);
	take(s, 3, 100, 0);
	EXPECT(s, 0, NEXT_STAY, false, UINT32_MAX);
	waits(s, 2, 8);
	EXPECT(s, 2, NEXT_URGENT, true, UINT32_MAX);
}

/* An urgent visit lasts until the stage is empty, also below the threshold and with a gate. Then
 * the cut visit goes on with what was left of it. */
static void test_urgent_cuts(void)
{
	struct scene *s = scene_new(NEXT_EVENTS);

	urgent_at(s, 3, 20, 0);
	urgent_at(s, 2, 20, 0);
	waits(s, 1, 100);
	EXPECT(s, 1, NEXT_POLICY, true, 10);
	take(s, 1, 4, 100);
	waits(s, 3, 25);
	EXPECT(s, 3, NEXT_URGENT, true, UINT32_MAX);
	take(s, 3, 15, 100);
	waits(s, 2, 30); /* may not cut it */
	EXPECT(s, 3, NEXT_URGENT, false, UINT32_MAX);
	take(s, 3, 10, 100);
	EXPECT(s, 2, NEXT_URGENT, true, UINT32_MAX);
	take(s, 2, 30, 100);
	EXPECT(s, 1, NEXT_STAY, false, 6);
	take(s, 1, 6, 100);
	waits(s, 0, 1);
	EXPECT(s, 0, NEXT_POLICY, true, 10);
}

/* The time of an urgent visit does not count for the visit that it cut. */
static void test_urgent_stops_the_clock(void)
{
	struct scene *s = scene_new(NEXT_TIME);

	urgent_at(s, 3, 20, 0);
	waits(s, 1, 100);
	EXPECT(s, 1, NEXT_POLICY, true, UINT32_MAX);
	take(s, 1, 4, 200);
	waits(s, 3, 20);
	EXPECT(s, 3, NEXT_URGENT, true, UINT32_MAX);
	take(s, 3, 20, 5000);
	EXPECT(s, 1, NEXT_STAY, false, UINT32_MAX);
	take(s, 1, 4, 299);
	waits(s, 0, 1);
	EXPECT(s, 1, NEXT_STAY, false, UINT32_MAX);
	take(s, 1, 4, 1);
	EXPECT(s, 0, NEXT_POLICY, true, UINT32_MAX);
}

/* An urgent visit of the visited stage takes the place of the visit. */
static void test_urgent_itself(void)
{
	struct scene *s = scene_new(NEXT_EVENTS);

	urgent_at(s, 3, 20, 0);
	urgent_at(s, 1, 20, 0);
	waits(s, 1, 19);
	EXPECT(s, 1, NEXT_POLICY, true, 10);
	take(s, 1, 4, 100);
	waits(s, 1, 50);
	EXPECT(s, 1, NEXT_URGENT, true, UINT32_MAX);
	take(s, 1, 50, 100);
	waits(s, 3, 20);
	EXPECT(s, 3, NEXT_URGENT, true, UINT32_MAX);
	take(s, 3, 20, 100);
	waits(s, 0, 1);
	waits(s, 1, 1);
	EXPECT(s, 0, NEXT_POLICY, true, 10);
}

static void test_urgent_take_turns(void)
{
	struct scene *s = scene_new(NEXT_ALL);
	static const int order[] = {1, 2, 3, 1, 2, 3};

	for (int i = 1; i < 4; i++)
		urgent_at(s, i, 5, 0);
	for (int k = 0; k < 6; k++) {
		for (int i = 0; i < 4; i++)
			waits(s, i, k > 0 && i == order[k - 1] ? 0 : 5);
		EXPECT(s, order[k], NEXT_URGENT, true, UINT32_MAX);
		take(s, order[k], 5, 100);
	}
}

/* ---- starved stages ---- */

static void test_starved(void)
{
	struct scene *s = scene_new(NEXT_ALL);

	s->limits.starve_ns = 1000;
	waits(s, 0, 100);
	waits(s, 3, 100);
	s->stage[3].oldest_ns = NOW + 50;
	EXPECT(s, 0, NEXT_POLICY, true, UINT32_MAX);
	s->stage[0].oldest_ns = NOW + 900;
	s->now_ns = NOW + 1050;
	EXPECT(s, 0, NEXT_STAY, false, UINT32_MAX); /* waited as long as allowed */
	s->now_ns = NOW + 1051;
	EXPECT(s, 3, NEXT_STARVED, true, UINT32_MAX);
	take(s, 3, 10, 0);
	EXPECT(s, 3, NEXT_STAY, false, UINT32_MAX);
	s->limits.starve_ns = 0;
	s->core.visit.open = false;
	EXPECT(s, 3, NEXT_POLICY, true, UINT32_MAX);
}

/* A stage may become ready with an event that is older than the last check. */
static void test_starved_elsewhere(void)
{
	struct scene *s = scene_new(NEXT_ALL);

	s->limits.starve_ns = 1600;
	waits(s, 0, 100);
	EXPECT(s, 0, NEXT_POLICY, true, UINT32_MAX);
	waits(s, 2, 1);
	s->stage[2].oldest_ns = NOW - 5000;
	s->now_ns = NOW + 100; /* a sixteenth of starve_ns later */
	EXPECT(s, 2, NEXT_STARVED, true, UINT32_MAX);
}

/* Starved stages get a batch each in turn, beginning after the stage visited last. By age it would
 * always be stage 0. */
static void test_starved_take_turns(void)
{
	struct scene *s = scene_new(NEXT_ALL);
	static const int order[] = {1, 2, 3, 0, 1, 2, 3, 0, 1};

	s->limits.starve_ns = 1000;
	waits(s, 0, 1);
	EXPECT(s, 0, NEXT_POLICY, true, UINT32_MAX);
	take(s, 0, 1, 2000);
	for (int i = 0; i < 4; i++)
		s->stage[i].oldest_ns = NOW - 4 + i;
	for (int k = 0; k < 9; k++) {
		for (int i = 0; i < 4; i++)
			waits(s, i, 100);
		EXPECT(s, order[k], NEXT_STARVED, true, UINT32_MAX);
		take(s, order[k], 10, 100);
	}
}

/* An urgent visit is not ended by a starved stage, and does not take a turn among the starved. */
static void test_starved_while_urgent(void)
{
	struct scene *s = scene_new(NEXT_ALL);

	s->limits.starve_ns = 1000;
	urgent_at(s, 3, 50, 0);
	waits(s, 3, 50);
	EXPECT(s, 3, NEXT_URGENT, true, UINT32_MAX);
	take(s, 3, 10, 2000);
	s->stage[3].oldest_ns = NOW + 1999;
	waits(s, 1, 1);
	waits(s, 2, 1);
	EXPECT(s, 3, NEXT_URGENT, false, UINT32_MAX);
	take(s, 3, 40, 10);
	EXPECT(s, 1, NEXT_STARVED, true, UINT32_MAX);
}

/* ---- S2 in time ---- */

#define BATCH_NS  100
#define STARVE_NS 5000

/* Stage 0 always has old events, the others one now and then, below saturation. No event of these
 * waits longer than `starve`, the batch in progress, and a batch of each other stage. */
static int64_t longest_wait(const struct next_policy *policy, enum next_gate gate)
{
	struct scene *s = scene_new(gate);
	int64_t longest_ns = 0;

	next_core_init(&s->core, policy);
	s->limits.starve_ns = STARVE_NS;
	for (int i = 0; i < STAGES; i++) { /* the policies prefer stage 0 */
		s->stage[i].service_ns = 1000 - i;
		s->stage[i].rest_ns = 1 + i;
	}
	struct next_view v = {.n = STAGES, .stage = s->stage};

	next_order_make(policy, &v, &s->limits, &s->order);
	waits(s, 0, 1000000000);
	next_arrived(&s->core, 0, 1000000000);
	for (int k = 0; k < 20000; k++) {
		for (int i = 1; i < STAGES; i++)
			if (s->stage[i].length == 0 && k % (i * 7) == 0) {
				waits(s, i, 1);
				next_arrived(&s->core, i, 1);
				s->stage[i].oldest_ns = s->now_ns;
			}
		s->stage[0].oldest_ns = s->now_ns - STARVE_NS / 2;
		struct next_choice c = choose(s);
		int64_t wait_ns = s->now_ns - s->stage[c.stage].oldest_ns;

		if (wait_ns > longest_ns)
			longest_ns = wait_ns;
		take(s, c.stage, 1, BATCH_NS);
	}
	return longest_ns;
}

static void test_s2_in_time(void)
{
	for (int p = 0; next_policy_at(p); p++)
		for (enum next_gate gate = NEXT_ALL; gate <= NEXT_CUTOFF; gate++) {
			int64_t longest_ns = longest_wait(next_policy_at(p), gate);

			CU_ASSERT(longest_ns <= STARVE_NS + STAGES * BATCH_NS);
			if (gate == NEXT_ALL) /* only `starve` ends the visits of stage 0 */
				CU_ASSERT(longest_ns >= STARVE_NS / 2);
		}
}

CUNIT_MAIN("choice of the next stage", {"the table", test_table},
    {"nothing is ready", test_nothing_ready}, {"gate all", test_gate_all},
    {"gate arrived", test_gate_arrived}, {"gate events", test_gate_events},
    {"gate time", test_gate_time}, {"gate cutoff", test_gate_cutoff},
    {"cutoff reached", test_cutoff_reached}, {"a batch took nothing", test_took_nothing},
    {"the gate changes", test_gate_changes},
    {"thresholds of urgent stages", test_urgent_thresholds},
    {"an urgent visit cuts another", test_urgent_cuts},
    {"it stops the clock of the other", test_urgent_stops_the_clock},
    {"the visited stage is urgent", test_urgent_itself},
    {"urgent stages take turns", test_urgent_take_turns}, {"a starved stage", test_starved},
    {"starved elsewhere", test_starved_elsewhere},
    {"starved stages take turns", test_starved_take_turns},
    {"starved while a visit is urgent", test_starved_while_urgent}, {"S2 in time", test_s2_in_time})
