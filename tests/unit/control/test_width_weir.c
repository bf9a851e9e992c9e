/* SPDX-License-Identifier: MIT */
/* Width policy weir against another side in virtual time (width_sim.h): it finds the width at which
 * that side is busy, follows its changes, and stays put otherwise. Every scene runs with several
 * seeds, so the results are the same in every run. */
#include "cunit_main.h"
#include "width_scenes.h"

#define SEEDS 3

static void check(const struct side *side, int seed, const char *what, bool good, double value)
{
	if (!good)
		printf("\n    %s%s, seed %d: %s %.3f\n", side->name,
		    side->exponential ? ", exponential" : "", seed, what, value);
	CU_ASSERT_TRUE(good);
}

/* ---- scenes ---- */

/* What a scene must show: the least share of the possible in 10 and in 60 s, and the most that the
 * width may be over the knee at the end. Exponential times have one value in 60 s for a single
 * seed, and one for the mean over the seeds. */
struct limits {
	double const_10s, const_60s, exp_60s, exp_mean, width;
};

static const struct limits limits[N_SCENES] = {
    [SCENE_STEADY] = {0.97, 0.99, 0.97, 0.985, 1.25},
    [SCENE_SLOWER_2] = {0.95, 0.95, 0.85, 0.93, 1.25},
    [SCENE_SLOWER_3] = {0.95, 0.95, 0.74, 0.89, 1.25},
    [SCENE_BACK] = {0.95, 0.95, 0.87, 0.94, 1.5},
    [SCENE_FASTER_3] = {0.95, 0.95, 0.94, 0.975, 0},
    [SCENE_FEWER] = {0.95, 0.95, 0.91, 0.95, 1.5},
    [SCENE_MORE] = {0.95, 0.95, 0.89, 0.93, 0},
    [SCENE_STOPS] = {0.95, 0.95, 0.87, 0.95, 1.25},
    [SCENE_ACCEPTS] = {0.95, 0.95, 0.94, 0.96, 1.1},
    [SCENE_REFUSES] = {0.95, 0.95, 0.93, 0.96, 1.5},
};

/* The largest width that is allowed: at least one place more than the knee. Exponential times do
 * not show where a few servers are saturated, so these may have more. */
static int most_width(const struct side *side, int knee, double times)
{
	double most = fmax(ceil(knee * (side->exponential ? times + 0.35 : times)), knee + 1);

	return (int)(side->exponential && knee < 5 ? fmax(most, 7) : most);
}

static void check_scene(enum scene_kind kind, const struct side *side)
{
	const struct limits *l = &limits[kind];
	double sum = 0, reversals = 0;
	int n = 0;

	for (int seed = 1; seed <= SEEDS; seed++) {
		struct scene_result r;
		struct width_sim *s = scene_do(&width_weir, kind, side, seed, false, &r);
		if (!s)
			return;
		double least = side->exponential ? l->exp_60s : l->const_60s;
		check(side, seed, "served in 60 s", r.share_60s >= least, r.share_60s);
		if (!side->exponential)
			check(
			    side, seed, "served in 10 s", r.share_10s >= l->const_10s, r.share_10s);
		if (l->width > 0)
			check(side, seed, "width", r.width <= most_width(side, r.knee, l->width),
			    r.width);
		if (s->broken)
			printf("\n    %s\n", s->broken);
		CU_ASSERT_PTR_NULL(s->broken);
		sum += r.share_60s;
		reversals += r.reversals;
		n++;
	}
	if (side->exponential)
		check(side, 0, "served, mean", sum / n >= l->exp_mean, sum / n);
	if (kind == SCENE_STEADY) /* at most one a minute */
		check(side, 0, "reversals, mean", reversals / n <= 5, reversals / n);
}

#define SCENE_TEST(name, kind)                                                                     \
	static void name(void)                                                                     \
	{                                                                                          \
		for (int i = 0; i < N_SIDES; i++)                                                  \
			check_scene(kind, &sides[i]);                                              \
	}

SCENE_TEST(test_steady, SCENE_STEADY)
SCENE_TEST(test_slower, SCENE_SLOWER_2)
SCENE_TEST(test_slower_still, SCENE_SLOWER_3)
SCENE_TEST(test_back, SCENE_BACK)
SCENE_TEST(test_faster, SCENE_FASTER_3)
SCENE_TEST(test_fewer, SCENE_FEWER)
SCENE_TEST(test_more, SCENE_MORE)
SCENE_TEST(test_stops, SCENE_STOPS)
SCENE_TEST(test_accepts, SCENE_ACCEPTS)
SCENE_TEST(test_refuses, SCENE_REFUSES)

/* ---- single rules ---- */

static struct width_sim *settled(const struct side *side, int seed)
{
	return scene_settled(&width_weir, side, seed);
}

static struct width_sim *sim_of(int servers, double service_s, double offered_per_s)
{
	static struct width_sim s;

	sim_init(&s, &width_weir, servers, service_s, offered_per_s, 1);
	return &s;
}

/* What is known of the time of one event is forgotten after a minute: the other side has become
 * slower while there was little to do, and many events come. Nothing says that they are too many,
 * so the width is not lowered first. */
static void test_floor_expires(void)
{
	struct width_sim *s = sim_of(40, 0.02, 300);

	sim_run(s, 10);
	CU_ASSERT_EQUAL(s->v.width, 10); /* 6 are in work on average, and at times more */
	s->service_s = 0.04;
	s->offered_per_s = 50;
	sim_run(s, 100);
	s->offered_per_s = 3000;
	while (s->now_s < 105 && s->v.width < 40) {
		int width = s->v.width;
		sim_run(s, s->now_s + 0.1);
		CU_ASSERT_TRUE(s->v.width >= width);
	}
	sim_run(s, 105);
	double share = sim_run(s, 115) / (40 / 0.04);
	check(&sides[0], 1, "served", share >= 0.95, share);
}

/* What is offered is less than what is possible, so the width follows what is offered: it is wide
 * enough for most bursts, changes direction at most once a minute, and grows at once when the other
 * side becomes slower, since nothing says that it is saturated. */
static void test_offered(void)
{
	double reversals = 0;

	for (int seed = 1; seed <= 2 * SEEDS; seed++) {
		struct side side = {"200 x 20 ms, 0.1x", 200, 0.02, 1000, seed > SEEDS};
		struct width_sim *s = settled(&side, seed);
		double share = sim_run(s, s->now_s + 290) / 1000;
		check(&side, seed, "served", share >= 0.99, share);
		check(&side, seed, "width", s->v.width <= 50, s->v.width);
		reversals += s->reversals;
		s->service_s *= 5;
		sim_run(s, s->now_s + 3);
		share = sim_run(s, s->now_s + 10) / 1000;
		check(&side, seed, "served when slower", share >= 0.95, share);
	}
	CU_ASSERT_TRUE(reversals / (2 * SEEDS) <= 5);
}

/* Nothing is learned from a pause, in which the policy is not called. */
static void test_pause(void)
{
	struct width_sim *s = settled(&sides[1], 1);
	int width = s->v.width, steps = s->steps;

	s->paused = true;
	s->service_s *= 20;
	sim_run(s, s->now_s + 20);
	s->service_s /= 20;
	sim_run(s, s->now_s + 2); /* until its last slow event has ended */
	s->paused = false;
	sim_run(s, s->now_s + 60);
	CU_ASSERT_EQUAL(s->v.width, width);
	CU_ASSERT_EQUAL(s->steps, steps);
}

/* A wide step is spread over a service time, since the events would end together otherwise. */
static void test_parts(void)
{
	struct width_sim *s = sim_of(300, 1, 600);
	int most = 0, width = s->v.width;

	while (s->now_s < 60) {
		sim_run(s, s->now_s + 0.1);
		if (s->v.width - width > most)
			most = s->v.width - width;
		width = s->v.width;
	}
	CU_ASSERT_TRUE(most <= 60);
	CU_ASSERT_TRUE(s->v.width >= 300);
	/* in each tenth of a second as many end as in every other */
	for (int i = 0; i < 20; i++) {
		double rate = sim_run(s, s->now_s + 0.1);
		check(&sides[4], 1, "rate", rate >= 30 && rate <= 900, rate);
	}
}

/* The bounds change while a step is spread. */
static void test_bounds_change(void)
{
	struct width_sim *s = sim_of(300, 1, 600);

	while (s->v.width < 70 && s->now_s < 60)
		sim_run(s, s->now_s + 0.1);
	s->v.max = 90;
	sim_run(s, s->now_s + 60);
	CU_ASSERT_EQUAL(s->v.width, 90);
	CU_ASSERT_PTR_NULL(s->broken);
}

/* A slow drift raises no alarm, but the check that comes now and then follows it. */
static void test_drift(void)
{
	struct width_sim *s = settled(&sides[6], 1);

	for (int i = 0; i < 400 && s->servers > 20; i++) {
		s->servers -= i % 10 == 0;
		sim_run(s, s->now_s + 1.5);
	}
	sim_run(s, s->now_s + 300);
	check(&sides[6], 1, "width", s->v.width <= 1.25 * s->servers, s->v.width);
}

/* A refused width is tried again, since the other side may accept more later. */
static void test_accepts_again(void)
{
	struct width_sim *s = settled(&sides[6], 1);

	s->accepts = 20;
	sim_run(s, s->now_s + 60);
	check(&sides[6], 1, "width", s->v.width >= 19 && s->v.width <= 20, s->v.width);
	s->accepts = SIM_WORK_MAX;
	sim_run(s, s->now_s + 250);
	double share = sim_run(s, s->now_s + 30) / (s->servers / s->service_s);
	check(&sides[6], 1, "served", share >= 0.95, share);
}

/* If the other side refuses at every width, the width is again what it was before the refusals. The
 * service time at the smaller width is forgotten then. So the larger one at this width is not taken
 * for a change, and the next step is the check after 10 s. */
static void test_refused_at_every_width(void)
{
	for (int seed = 1; seed <= SEEDS; seed++) {
		struct width_sim *s = settled(&sides[10], seed);
		s->refuses = 0.5;
		for (int i = 0; i < 50 && s->v.width == 2; i++)
			sim_run(s, s->now_s + 0.1);
		CU_ASSERT_EQUAL(s->v.width, 1);
		for (int i = 0; i < 50 && s->v.width == 1; i++)
			sim_run(s, s->now_s + 0.1);
		CU_ASSERT_EQUAL(s->v.width, 2);
		int steps = s->steps;
		sim_run(s, s->now_s + 9.5);
		CU_ASSERT_EQUAL(s->steps, steps);
		sim_run(s, s->now_s + 1.5);
		CU_ASSERT_EQUAL(s->steps, steps + 1);
	}
}

/* Windows with refusals that are not in a row are not added up: when refusals return a minute after
 * they have ended, the width falls by a step, not to the minimum. */
static void test_refuses_again(void)
{
	for (int seed = 1; seed <= SEEDS; seed++) {
		struct width_sim *s = settled(&sides[6], seed);
		s->refuses = 0.5;
		for (int i = 0, steps = s->steps; i < 50 && s->steps < steps + 2; i++)
			sim_run(s, s->now_s + 0.1);
		s->refuses = 0;
		sim_run(s, s->now_s + 60);
		int width = s->v.width;
		CU_ASSERT_TRUE(width >= 40);
		s->refuses = 0.5;
		for (int i = 0; i < 5; i++) {
			sim_run(s, s->now_s + 0.1);
			CU_ASSERT_TRUE(s->v.width >= 0.7 * width);
		}
	}
}

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

/* A low load does not make the width large. */
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
	s->service_s /= 3; /* and it still notices changes */
	s->offered_per_s *= 3;
	s->servers *= 2;
	sim_run(s, s->now_s + 5);
	share = sim_run(s, s->now_s + 30) / 1800;
	CU_ASSERT_TRUE(share >= 0.95);
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

CUNIT_MAIN("width_weir", {"steady", test_steady}, {"slower", test_slower},
    {"slower still", test_slower_still}, {"back", test_back}, {"faster", test_faster},
    {"fewer", test_fewer}, {"more", test_more}, {"stops", test_stops}, {"accepts", test_accepts},
    {"refuses", test_refuses}, {"offered", test_offered}, {"floor expires", test_floor_expires},
    {"pause", test_pause}, {"parts", test_parts}, {"bounds", test_bounds},
    {"bounds change", test_bounds_change}, {"drift", test_drift},
    {"accepts again", test_accepts_again}, {"refused at every width", test_refused_at_every_width},
    {"refuses again", test_refuses_again}, {"idle", test_idle}, {"light load", test_light_load},
    {"restart", test_restart}, {"explain", test_explain}, {"table", test_table})
