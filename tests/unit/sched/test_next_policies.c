/* SPDX-License-Identifier: MIT */
/* The policies of core groups by hand: orders, ties, what is unknown, limits of their tables. */
#include <math.h>
#include <string.h>

#include <weir/random.h>

#include "cunit_main.h"
#include "sched/next.h"

struct scene {
	_Alignas(16) unsigned char state[NEXT_STATE_MAX];
	const struct next_policy *policy;
	struct next_limits limits;
	struct next_order order;
	struct next_stage stage[NEXT_STAGES_MAX];
	struct next_view v;
};

static struct scene *scene_new(const struct next_policy *policy, int n)
{
	static struct scene s;

	memset(&s, 0, sizeof(s));
	s.policy = policy;
	s.v = (struct next_view){.n = n, .stage = s.stage, .order = &s.order};
	return &s;
}

static void measure(struct scene *s)
{
	next_order_make(s->policy, &s->v, &s->limits, &s->order);
}

static int pick(struct scene *s, uint64_t ready)
{
	s->v.ready = ready;
	return s->policy->pick(s->state, &s->v);
}

static const uint64_t all = UINT64_MAX;

static void test_fifo(void)
{
	struct scene *s = scene_new(&next_fifo, 64);

	for (int i = 0; i < 64; i++)
		s->stage[i].oldest_ns = 100 - i % 60;
	CU_ASSERT_EQUAL(pick(s, all), 59);
	CU_ASSERT_EQUAL(pick(s, 0xff), 7);
	CU_ASSERT_EQUAL(pick(s, UINT64_C(1) << 63 | 9), 3); /* stage 3 and 63 are equal */
	CU_ASSERT_EQUAL(pick(s, UINT64_C(1) << 63), 63);
	CU_ASSERT_PTR_NULL(next_fifo.order);
}

static void test_wavefront(void)
{
	struct scene *s = scene_new(&next_wavefront, 64);
	static const int path[] = {0, 1, 2, 3, 2, 1, 0, 1, 2, 3, 2};

	for (size_t i = 0; i < sizeof(path) / sizeof(path[0]); i++)
		CU_ASSERT_EQUAL(pick(s, 0xf), path[i]);
	CU_ASSERT_EQUAL(pick(s, UINT64_C(1) << 63 | 1), 0); /* the wavefront is on its way back */
	CU_ASSERT_EQUAL(pick(s, UINT64_C(1) << 63 | 1), 63);
	CU_ASSERT_EQUAL(pick(s, UINT64_C(1) << 63), 63); /* the only one */
	CU_ASSERT_EQUAL(pick(s, UINT64_C(1) << 63), 63);
	CU_ASSERT_EQUAL(pick(s, all), 62);
	CU_ASSERT_EQUAL(pick(s, all), 61);
	CU_ASSERT_EQUAL(pick(s, UINT64_C(1) << 62 | UINT64_C(1) << 61), 62);
}

static void test_srpt(void)
{
	struct scene *s = scene_new(&next_srpt, 5);

	measure(s);
	CU_ASSERT_EQUAL(pick(s, 0x1f), 4); /* nothing is known: from the end */
	CU_ASSERT_EQUAL(pick(s, 0x0b), 3);
	CU_ASSERT_EQUAL(pick(s, 0x01), 0);
	s->stage[0].rest_ns = 20;
	s->stage[1].rest_ns = 50;
	s->stage[3].rest_ns = 30;
	measure(s); /* 20, 50, (30), 30, (0) */
	CU_ASSERT_EQUAL(pick(s, 0x1f), 4);
	CU_ASSERT_EQUAL(pick(s, 0x0f), 0);
	CU_ASSERT_EQUAL(pick(s, 0x0e), 3);
	CU_ASSERT_EQUAL(pick(s, 0x06), 2);
	CU_ASSERT_EQUAL(pick(s, 0x02), 1);
}

static void test_dbr(void)
{
	struct scene *s = scene_new(&next_dbr, 5);

	measure(s);
	CU_ASSERT_EQUAL(pick(s, 0x1e), 1); /* nothing is known: by position */
	s->stage[1].service_ns = 10;
	s->stage[2].service_ns = 70;
	s->stage[4].service_ns = 70;
	measure(s);
	CU_ASSERT_EQUAL(pick(s, 0x1f), 2);
	CU_ASSERT_EQUAL(pick(s, 0x1b), 4);
	CU_ASSERT_EQUAL(pick(s, 0x0b), 1);
	CU_ASSERT_EQUAL(pick(s, 0x09), 0);
}

/* ---- color ---- */

static void arrived(struct scene *s, int stage, uint32_t k)
{
	next_color.arrived(s->state, stage, k);
}

static void left(struct scene *s, int stage, uint32_t k)
{
	next_color.left(s->state, stage, k);
}

static void test_color_by_arrival(void)
{
	struct scene *s = scene_new(&next_color, 4);

	arrived(s, 2, 1);
	arrived(s, 2, 2);
	arrived(s, 0, 1);
	arrived(s, 2, 4);
	arrived(s, 1, 1);
	CU_ASSERT_EQUAL(pick(s, 7), 2);
	left(s, 2, 2);
	CU_ASSERT_EQUAL(pick(s, 7), 2); /* one of the run is left */
	left(s, 2, 4);                  /* and three of the second run */
	CU_ASSERT_EQUAL(pick(s, 7), 0);
	left(s, 0, 1);
	CU_ASSERT_EQUAL(pick(s, 7), 2);
	left(s, 2, 1);
	CU_ASSERT_EQUAL(pick(s, 7), 1);
	arrived(s, 0, 1);
	left(s, 1, 1);
	CU_ASSERT_EQUAL(pick(s, 7), 0);
}

/* Stages without entries are compared by age; a stage that is paused is passed over. */
static void test_color_without_entry(void)
{
	struct scene *s = scene_new(&next_color, 64);

	s->stage[0].oldest_ns = 50;
	s->stage[1].oldest_ns = 60;
	s->stage[63].oldest_ns = 40;
	arrived(s, 0, 1);
	arrived(s, 1, 1);
	CU_ASSERT_EQUAL(pick(s, 3), 0);
	CU_ASSERT_EQUAL(pick(s, 2), 1);
	CU_ASSERT_EQUAL(pick(s, UINT64_C(1) << 63 | 3), 63);
	left(s, 63, 7); /* nothing is known of stage 63 */
	s->stage[63].oldest_ns = 55;
	CU_ASSERT_EQUAL(pick(s, UINT64_C(1) << 63 | 3), 0);
	left(s, 0, 1);
	CU_ASSERT_EQUAL(pick(s, UINT64_C(1) << 63 | 2), 63);
	arrived(s, 63, 0); /* no event: no entry */
	CU_ASSERT_EQUAL(pick(s, UINT64_C(1) << 63 | 2), 63);
}

/* Events that a batch took from the queue of a stage had no entry, so none is removed for them. */
static void test_color_from_queue(void)
{
	struct next_core core;
	struct next_stage stage[2] = {{.length = 2}, {.length = 1}};
	struct next_order order = {0};
	struct next_limits limits = {.gate = NEXT_EVENTS, .gate_events = 1};
	struct next_view v = {.n = 2, .ready = 3, .stage = stage, .order = &order};

	next_core_init(&core, &next_color);
	next_arrived(&core, 0, 1);
	next_arrived(&core, 1, 1);
	CU_ASSERT_EQUAL(next_choose(&core, &limits, &v).stage, 0);
	next_took(&core, 0, 1, 0);
	CU_ASSERT_EQUAL(next_choose(&core, &limits, &v).stage, 0);
	next_took(&core, 0, 1, 1);
	CU_ASSERT_EQUAL(next_choose(&core, &limits, &v).stage, 1);
}

/* With more runs than the policy remembers, it goes by age until the list has room; nothing is
 * lost. */
static void test_color_full(void)
{
	struct scene *s = scene_new(&next_color, 4);

	for (int i = 0; i < 1000; i++)
		arrived(s, i % 2, 1);
	arrived(s, 3, 1); /* no room for its entry */
	s->stage[0].oldest_ns = 50;
	s->stage[3].oldest_ns = 60;
	CU_ASSERT_EQUAL(pick(s, 0xb), 0);
	s->stage[3].oldest_ns = 40;
	CU_ASSERT_EQUAL(pick(s, 0xb), 3);
	left(s, 3, 1);
	left(s, 0, 500);
	CU_ASSERT_EQUAL(pick(s, 0x2), 1);
	left(s, 1, 500);
	arrived(s, 2, 1);
	arrived(s, 0, 1);
	CU_ASSERT_EQUAL(pick(s, 0x5), 2);
	left(s, 2, 1);
	CU_ASSERT_EQUAL(pick(s, 0x1), 0);
}

/* Each pick drops the entries that it passes, so the list does not fill up over time. */
static void test_color_forever(void)
{
	struct scene *s = scene_new(&next_color, 4);

	for (int i = 0; i < 5000; i++) {
		arrived(s, 1, 1);
		arrived(s, 2, 1);
		CU_ASSERT_EQUAL(pick(s, 0x6), 1);
		left(s, 1, 1);
		CU_ASSERT_EQUAL(pick(s, 0x4), 2);
		left(s, 2, 1);
	}
}

/* ---- mg1 ---- */

#define CYCLES 3

/* Counts visits of each stage in saturation and checks the gaps: at most twice the mean (S9). */
static void visit_all(struct scene *s, int *visits)
{
	int last[NEXT_STAGES_MAX], longest[NEXT_STAGES_MAX] = {0};
	uint64_t ready = s->v.n == 64 ? all : (UINT64_C(1) << s->v.n) - 1;
	int entries = s->order.n_table;

	memset(visits, 0, sizeof(*visits) * NEXT_STAGES_MAX);
	for (int k = 0; k < CYCLES * entries; k++) {
		int i = pick(s, ready);

		if (visits[i]++ > 0 && k - last[i] > longest[i])
			longest[i] = k - last[i];
		last[i] = k;
	}
	for (int i = 0; i < s->v.n; i++) {
		CU_ASSERT_FATAL(visits[i] >= CYCLES);
		CU_ASSERT_EQUAL(visits[i] % CYCLES, 0);
		CU_ASSERT(longest[i] * (visits[i] / CYCLES) <= 2 * entries);
		visits[i] /= CYCLES;
	}
}

/* Entries that the formula gives to each stage, at least one, as a real number. */
static void ideal(const struct scene *s, bool exhaustive, double *share)
{
	bool low[NEXT_STAGES_MAX] = {false}, more = true;
	double weight[NEXT_STAGES_MAX], entries, sum;

	for (int i = 0; i < s->v.n; i++) {
		double rho = s->stage[i].load;

		weight[i] = sqrt(exhaustive ? rho * (1 - rho) : rho * (1 + rho));
	}
	while (more) {
		more = false;
		entries = s->order.n_table, sum = 0;
		for (int i = 0; i < s->v.n; i++) {
			entries -= low[i];
			sum += low[i] ? 0 : weight[i];
		}
		for (int i = 0; i < s->v.n; i++) {
			share[i] = low[i] ? 1 : entries * weight[i] / sum;
			if (share[i] < 1)
				low[i] = more = true;
		}
	}
}

/* S9: shares within 10 %, or an entry, of the formula of the gate. */
static void test_mg1_shares(void)
{
	for (uint64_t seed = 0; seed < 400; seed++) {
		uint64_t key = weir_random_at(seed, 0);
		int n = 1 + (int)(key % 64), visits[NEXT_STAGES_MAX];
		struct scene *s = scene_new(&next_mg1, n);
		double share[NEXT_STAGES_MAX], sum = 0;

		s->limits.gate = (enum next_gate)(seed % 5);
		for (int i = 0; i < n; i++) {
			double u = weir_random_unit(weir_random_at(key, (uint64_t)i));

			sum += s->stage[i].load = seed % 2 ? u * u * u * u : u;
		}
		for (int i = 0; i < n; i++) /* 0.9 of the time in all */
			s->stage[i].load *= 0.9 / sum;
		measure(s);
		CU_ASSERT(s->order.n_table >= 144); /* Gordon's least */
		visit_all(s, visits);
		ideal(s, seed % 5 == NEXT_ALL || seed % 5 == NEXT_CUTOFF, share);
		for (int i = 0; i < n; i++)
			CU_ASSERT(fabs(visits[i] - share[i]) <= fmax(1, 0.1 * share[i]));
	}
}

/* Any number of entries of a stage is evenly spaced. */
static void test_mg1_gaps(void)
{
	bool seen[256] = {false};
	int visits[NEXT_STAGES_MAX], numbers = 0;

	for (int k = 1; k <= 2000; k++) {
		struct scene *s = scene_new(&next_mg1, 2);
		double part = k / 2000.0;

		s->limits.gate = NEXT_ARRIVED;
		s->stage[0].load = 0.5 * part * part * part;
		s->stage[1].load = 0.5 * (1 - part) * (1 - part) * (1 - part);
		measure(s);
		visit_all(s, visits);
		numbers += !seen[visits[0]];
		seen[visits[0]] = true;
	}
	CU_ASSERT_EQUAL(numbers, 232);
}

static void test_mg1_edges(void)
{
	struct scene *s = scene_new(&next_mg1, 3);
	int visits[NEXT_STAGES_MAX];

	CU_ASSERT_EQUAL(pick(s, 0x6), 1); /* no table yet */
	measure(s);
	visit_all(s, visits); /* no load yet: equal */
	for (int i = 0; i < 3; i++)
		CU_ASSERT(visits[i] == 77 || visits[i] == 78);
	s->stage[0].load = 7; /* beyond saturation */
	s->stage[1].load = -1;
	s->stage[2].load = NAN;
	measure(s);
	visit_all(s, visits);
	CU_ASSERT_EQUAL(visits[0], 231);
	s->stage[1].load = 0.05; /* with the load of stage 0 limited, as if to 0.95 */
	measure(s);
	visit_all(s, visits);
	CU_ASSERT_EQUAL(visits[0], visits[1]);
	for (int k = 0; k < 300; k++)
		CU_ASSERT_EQUAL(pick(s, 0x4), 2); /* the rest is skipped */
}

CUNIT_MAIN("policies of core groups", {"fifo", test_fifo}, {"wavefront", test_wavefront},
    {"srpt", test_srpt}, {"dbr", test_dbr}, {"color by arrival", test_color_by_arrival},
    {"color without an entry", test_color_without_entry},
    {"color and queue", test_color_from_queue}, {"color is full", test_color_full},
    {"color does not fill up", test_color_forever}, {"mg1: S9, shares", test_mg1_shares},
    {"mg1: S9, gaps", test_mg1_gaps}, {"mg1: no load, too much", test_mg1_edges})
