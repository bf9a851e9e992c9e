/* SPDX-License-Identifier: MIT */
/* Width policy weir against another side in virtual time (width_sim.h): it finds the width at which
 * that side is busy, follows its changes, and stays put otherwise. Every scene runs with several
 * seeds, so the results are the same in every run. */
#include "cunit_main.h"
#include "width_sim.h"

#define SEEDS 3

/* One side, and how much is offered. */
struct side {
	const char *name;
	int servers;
	double service_s, offered_per_s;
	bool exponential;
};

static const struct side sides[] = {
    {"6 x 20 ms, 1x", 6, 0.02, 300, false},
    {"6 x 20 ms, 2x", 6, 0.02, 600, false},
    {"6 x 20 ms, 10x", 6, 0.02, 3000, true},
    {"300 x 1 s, 2x", 300, 1, 600, false},
    {"300 x 1 s, 10x", 300, 1, 3000, true},
    {"40 x 10 ms, 3x", 40, 0.01, 12000, true},
    {"1 x 5 ms, 5x", 1, 0.005, 1000, false},
};

#define N_SIDES (int)(sizeof(sides) / sizeof(sides[0]))

/* Run until the policy has settled. */
static struct width_sim *settled(const struct side *side, int seed)
{
	static struct width_sim s;

	sim_init(
	    &s, &width_weir, side->servers, side->service_s, side->offered_per_s, (uint64_t)seed);
	s.exponential = side->exponential;
	sim_run(&s, 60 + seed * 0.37);
	s.reversals = s.widest = 0;
	return &s;
}

static double offered_or(const struct width_sim *s, double possible)
{
	return possible < s->offered_per_s ? possible : s->offered_per_s;
}

/* Share of the possible that is served from 3 s, or 3 service times, after a change. */
static double served_after(struct width_sim *s, double for_s, double possible)
{
	sim_run(s, s->now_s + fmax(3, 3 * s->service_s));
	return sim_run(s, s->now_s + for_s) / offered_or(s, possible);
}

static void check(const struct side *side, int seed, const char *what, bool good, double value)
{
	if (!good)
		printf("\n    %s%s, seed %d: %s %.3f\n", side->name,
		    side->exponential ? ", exponential" : "", seed, what, value);
	CU_ASSERT_TRUE(good);
}

/* Never wider than helps by more than a quarter. Small numbers are rounded up, and the knee of
 * exponential times is known to a tenth. */
static double most_width(const struct side *side, int servers)
{
	return servers * (side->exponential ? 1.4 : 1.25) + 1.5;
}

/* The first guess after a change, from few events; the next probe is better. */
static double most_after(const struct side *side, int servers)
{
	return servers * (side->exponential ? 3.6 : 1.25) + 1.5;
}

/* ---- scenes ---- */

static void test_steady(void)
{
	for (int i = 0; i < N_SIDES * SEEDS; i++) {
		const struct side *side = &sides[i / SEEDS];
		int seed = i % SEEDS + 1,
		    saturated = side->offered_per_s * side->service_s > 1.5 * side->servers;
		struct width_sim *s = settled(side, seed);
		double possible = side->servers / side->service_s;
		double share = sim_run(s, s->now_s + 300) / offered_or(s, possible);
		check(side, seed, "served", share >= 0.97, share);
		/* one a minute; exponential times look like changes now and then */
		int most = side->exponential ? 10 : 5;
		check(side, seed, "reversals", s->reversals <= most, s->reversals);
		if (saturated)
			check(side, seed, "width", s->v.width <= most_width(side, side->servers),
			    s->v.width);
	}
}

static void test_slower(void)
{
	for (int i = 0; i < N_SIDES * SEEDS; i++) {
		const struct side *side = &sides[i / SEEDS];
		int seed = i % SEEDS + 1;
		struct width_sim *s = settled(side, seed);
		s->service_s *= 2;
		double share = served_after(s, 60, side->servers / s->service_s);
		check(side, seed, "served", share >= 0.95, share);
		check(
		    side, seed, "width", s->v.width <= most_width(side, side->servers), s->v.width);
	}
}

static void test_faster(void)
{
	for (int i = 0; i < N_SIDES * SEEDS; i++) {
		const struct side *side = &sides[i / SEEDS];
		int seed = i % SEEDS + 1;
		struct width_sim *s = settled(side, seed);
		s->service_s /= 3;
		double share = served_after(s, 60, side->servers / s->service_s);
		check(side, seed, "served", share >= 0.95, share);
	}
}

/* Fewer servers: the width becomes smaller, since more do not help. */
static void test_smaller(void)
{
	for (int i = 0; i < N_SIDES * SEEDS; i++) {
		const struct side *side = &sides[i / SEEDS];
		int seed = i % SEEDS + 1;
		struct width_sim *s = settled(side, seed);
		s->servers = (side->servers + 2) / 3;
		double share = served_after(s, 60, s->servers / s->service_s);
		check(side, seed, "served", share >= 0.95, share);
		/* exponential times on two servers do not show where these are saturated */
		if (!side->exponential || s->servers > 10)
			check(side, seed, "width", s->v.width <= most_after(side, s->servers),
			    s->v.width);
	}
}

/* More servers, which take as long as before, show only in a smaller time per event. With
 * exponential times that takes hundreds of events to see, so the aim is ten seconds, or ten service
 * times. */
static void test_larger(void)
{
	for (int i = 0; i < N_SIDES * SEEDS; i++) {
		const struct side *side = &sides[i / SEEDS];
		int seed = i % SEEDS + 1;
		struct width_sim *s = settled(side, seed);
		s->servers *= 3;
		sim_run(s, s->now_s + fmax(7, 7 * s->service_s));
		double share = served_after(s, 60, s->servers / s->service_s);
		check(side, seed, "served", share >= 0.95, share);
	}
}

static void test_stops(void)
{
	for (int i = 0; i < N_SIDES * SEEDS; i++) {
		const struct side *side = &sides[i / SEEDS];
		int seed = i % SEEDS + 1;
		struct width_sim *s = settled(side, seed);
		int width = s->v.width;
		s->stop_from_s = s->now_s;
		s->stop_until_s = s->now_s + 5;
		sim_run(s, s->stop_until_s);
		check(side, seed, "width", s->v.width <= width, s->v.width);
		double share = served_after(s, 60, side->servers / side->service_s);
		check(side, seed, "served", share >= 0.95, share);
	}
}

/* Half of the capacity is gone, and what is more is refused. */
static void test_refuses(void)
{
	for (int i = 0; i < (N_SIDES - 1) * SEEDS; i++) { /* a half of 1 is nothing */
		const struct side *side = &sides[i / SEEDS];
		int seed = i % SEEDS + 1;
		struct width_sim *s = settled(side, seed);
		s->accepts = side->servers / 2;
		double share = served_after(s, 60, s->accepts / side->service_s);
		check(side, seed, "served", share >= 0.93, share);
		if (side->offered_per_s * side->service_s > 1.5 * side->servers)
			check(side, seed, "width", s->v.width <= 1.1 * s->accepts + 1, s->v.width);
	}
}

/* Every second event is refused, whatever the width: what is accepted is served. */
static void test_refuses_some(void)
{
	for (int i = 0; i < N_SIDES * SEEDS; i++) {
		const struct side *side = &sides[i / SEEDS];
		int seed = i % SEEDS + 1;
		struct width_sim *s = settled(side, seed);
		if (side->offered_per_s < 2 * side->servers / side->service_s)
			continue; /* half of what is offered is less than what is possible */
		s->refuses = 0.5;
		double share = served_after(s, 120, side->servers / side->service_s);
		check(side, seed, "served", share >= 0.95, share);
	}
}

/* 300/s, 100/s for a minute, and 300/s again. */
static void test_back(void)
{
	for (int i = 0; i < N_SIDES * SEEDS; i++) {
		const struct side *side = &sides[i / SEEDS];
		int seed = i % SEEDS + 1;
		struct width_sim *s = settled(side, seed);
		s->service_s *= 3;
		double share = served_after(s, 60, side->servers / s->service_s);
		check(side, seed, "served slowly", share >= 0.9, share);
		s->service_s /= 3;
		sim_run(s, s->now_s + fmax(7, 7 * s->service_s));
		share = served_after(s, 60, side->servers / s->service_s);
		check(side, seed, "served again", share >= 0.95, share);
	}
}

/* ---- rules ---- */

static void test_bounds(void)
{
	for (int i = 0; i < N_SIDES; i++) {
		const struct side *side = &sides[i];
		static struct width_sim s;
		sim_init(&s, &width_weir, side->servers, side->service_s, side->offered_per_s, 1);
		s.v.min = s.v.width = 5;
		s.v.max = 20;
		for (int k = 0; k < 400; k++) {
			sim_run(&s, s.now_s + 0.5);
			CU_ASSERT_TRUE(s.v.width >= 5 && s.v.width <= 20);
		}
		if (side->servers > 20)
			CU_ASSERT_EQUAL(s.v.width, 20);
	}
}

/* Without events the width stays. */
static void test_idle(void)
{
	struct width_sim *s = settled(&sides[1], 1);
	int width = s->v.width, steps = s->steps;

	s->offered_per_s = 1e-9;
	s->next_arrival_s = s->now_s + 1e9;
	sim_run(s, s->now_s + 1000);
	CU_ASSERT_EQUAL(s->v.width, width);
	CU_ASSERT_EQUAL(s->steps, steps);
}

/* Few events do not make it wide. */
static void test_light_load(void)
{
	static struct width_sim s;

	sim_init(&s, &width_weir, 6, 0.02, 50, 1);
	sim_run(&s, 600);
	CU_ASSERT_TRUE(s.v.width <= 8);
	CU_ASSERT_TRUE(s.served > 29000);
}

/* After a reload, the totals begin again, and the width stays. */
static void test_restart(void)
{
	struct width_sim *s = settled(&sides[1], 1);
	int width = s->v.width, steps = s->steps;

	width_weir.restart(s->state);
	s->v.ended = s->v.service_ns = s->v.refused = 0;
	double share = sim_run(s, s->now_s + 30) / 300;
	CU_ASSERT_TRUE(share >= 0.99);
	CU_ASSERT_EQUAL(s->v.width, width);
	CU_ASSERT_EQUAL(s->steps, steps);
}

static void test_explain(void)
{
	static struct width_sim s;
	char text[120];

	sim_init(&s, &width_weir, 6, 0.02, 600, 1);
	width_weir.explain(s.state, text, sizeof(text));
	CU_ASSERT_STRING_EQUAL(text, "");
	sim_run(&s, 60);
	width_weir.explain(s.state, text, sizeof(text));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, " ms each, "));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "/s; widening stopped helping at 6"));
}

static void test_table(void)
{
	CU_ASSERT_PTR_EQUAL(width_find("weir"), &width_weir);
	CU_ASSERT_PTR_EQUAL(width_find("static"), &width_static);
	CU_ASSERT_PTR_NULL(width_find("seda"));
	CU_ASSERT_PTR_NULL(width_at(2));
	CU_ASSERT_PTR_NULL(width_at(-1));
	struct width_view v = {.width = 3, .min = 1, .max = 9};
	struct width_decision d = {0};
	CU_ASSERT_TRUE(width_static.decide(NULL, &v, 0, &d));
	CU_ASSERT_EQUAL(d.width, 9);
	v.width = 9;
	CU_ASSERT_FALSE(width_static.decide(NULL, &v, 0, &d));
}

CUNIT_MAIN("width_weir", {"steady", test_steady}, {"slower", test_slower}, {"faster", test_faster},
    {"smaller", test_smaller}, {"larger", test_larger}, {"stops", test_stops},
    {"refuses", test_refuses}, {"refuses some", test_refuses_some}, {"back", test_back},
    {"bounds", test_bounds}, {"idle", test_idle}, {"light load", test_light_load},
    {"restart", test_restart}, {"explain", test_explain}, {"table", test_table})
