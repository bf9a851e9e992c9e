/* SPDX-License-Identifier: MIT */
/* Resize policies and the control step, on a virtual clock with a simple model of a pool: no
 * threads. */
#include "control/control.h"

#include <string.h>

#include "base/clock.h"
#include "cunit_main.h"

/* A pool whose threads each serve `rate` events per second; `blocking` threads use no CPU. */
struct fake {
	struct resize_view v;
	double arrivals, rate, queue;
	int peak, reversals, last_move;
};

static void fake_view(void *ctx, int i, struct resize_view *v)
{
	(void)i;
	*v = ((struct fake *)ctx)->v;
}

static int fake_resize(void *ctx, int i, int target)
{
	struct fake *f = ctx;
	int move = target > f->v.target ? 1 : -1;

	(void)i;
	if (f->last_move && move != f->last_move)
		f->reversals++;
	f->last_move = move;
	f->v.target = f->v.live = target;
	f->peak = target > f->peak ? target : f->peak;
	return target;
}

static struct control_repairs fake_repair(void *ctx, int i, int64_t now_ns)
{
	(void)ctx, (void)i, (void)now_ns;
	return (struct control_repairs){0};
}

static const struct control_ops ops = {
    .view = fake_view, .resize = fake_resize, .repair = fake_repair};

static struct control *control_of(struct fake *f)
{
	struct control_pool pool = {"p", &resize_seda};
	struct control *c = NULL;

	CU_ASSERT_EQUAL_FATAL(control_new(&ops, f, &pool, 1, &c), 0);
	return c;
}

/* Let `seconds` pass in ticks. */
static int64_t advance(struct control *c, struct fake *f, int64_t now_ns, int seconds, double cpu)
{
	for (int i = 0; i < seconds * 10; i++) {
		double can = f->rate * f->v.live * 0.1, come = f->arrivals * 0.1 + f->queue;
		double done = come < can ? come : can;
		f->queue = come - done;
		if (f->queue > f->v.queue_limit)
			f->queue = f->v.queue_limit;
		f->v.queue_length = (uint32_t)f->queue;
		f->v.busy_ns_total += (uint64_t)(done / f->rate * NS_PER_S);
		now_ns += CONTROL_TICK_NS;
		control_step(c, now_ns, cpu);
	}
	return now_ns;
}

static struct fake fake_of(double arrivals, double rate, int min, int max)
{
	return (struct fake){.arrivals = arrivals,
	    .rate = rate,
	    .v = {.live = min,
		.target = min,
		.min = min,
		.max = max,
		.budget_left = 1000,
		.queue_limit = 4096}};
}

static void test_grows_until_enough(void)
{
	struct fake f = fake_of(500, 50, 1, 32);
	struct control *c = control_of(&f);

	advance(c, &f, 0, 120, 0.2);
	CU_ASSERT(f.v.target >= 10);
	CU_ASSERT(f.queue < 100);
	control_free(c);
}

static void test_stops_at_max_and_says_so(void)
{
	struct fake f = fake_of(5000, 50, 1, 8);
	struct control *c = control_of(&f);
	struct weir_decision d[64];

	advance(c, &f, 0, 60, 0.2);
	CU_ASSERT_EQUAL(f.v.target, 8);
	int n = journal_read(control_journal(c), d, 64);
	CU_ASSERT_EQUAL(n, 8); /* seven steps and one limit, not one row per sample */
	CU_ASSERT_STRING_EQUAL(d[0].action, "limit");
	CU_ASSERT_STRING_EQUAL(d[0].limit, "wanted 9, max 8");
	CU_ASSERT_STRING_EQUAL(d[1].action, "grow");
	CU_ASSERT_EQUAL(d[1].from, 7);
	CU_ASSERT_EQUAL(d[1].to, 8);
	CU_ASSERT_PTR_NOT_NULL(strstr(d[1].inputs, "queue="));
	control_free(c);
}

static void test_no_growth_on_a_saturated_cpu(void)
{
	struct fake f = fake_of(5000, 50, 2, 32);
	struct control *c = control_of(&f);

	advance(c, &f, 0, 60, 1.0);
	CU_ASSERT_EQUAL(f.v.target, 2);
	control_free(c);
}

/* At the veto exactly and above it nothing is decided. */
static void test_veto_of_the_cpu(void)
{
	struct resize_view v = {
	    .queue_length = 500, .queue_limit = 4096, .live = 2, .target = 2, .max = 8};
	_Alignas(16) char state[RESIZE_STATE_MAX] = {0};
	struct resize_decision d = {0};

	v.cpu_ratio = 0.95;
	for (int64_t at_ns = NS_PER_S; at_ns < 20 * NS_PER_S; at_ns += NS_PER_S)
		CU_ASSERT_FALSE(resize_seda.decide(state, &v, at_ns, &d));
	CU_ASSERT_EQUAL(d.target, 0);
	v.cpu_ratio = 0.949;
	bool grows = false;
	for (int64_t at_ns = 20 * NS_PER_S; at_ns < 24 * NS_PER_S && !grows; at_ns += NS_PER_S)
		grows = resize_seda.decide(state, &v, at_ns, &d);
	CU_ASSERT_TRUE(grows);
	CU_ASSERT_EQUAL(d.target, 3);
}

/* A sample is due after exactly two seconds, and not before. */
static void test_a_sample_every_two_seconds(void)
{
	struct resize_view v = {.queue_length = 500,
	    .queue_limit = 4096,
	    .live = 2,
	    .target = 2,
	    .max = 8,
	    .cpu_ratio = 0.1};
	_Alignas(16) char state[RESIZE_STATE_MAX] = {0};
	struct resize_decision d = {0};

	CU_ASSERT_FALSE(resize_seda.decide(state, &v, NS_PER_S, &d));
	for (int64_t at_ns = NS_PER_S;; at_ns += 250 * NS_PER_MS) {
		if (!resize_seda.decide(state, &v, at_ns, &d))
			continue;
		CU_ASSERT_EQUAL(at_ns, 3 * NS_PER_S);
		break;
	}
}

/* Each sample starts the next two seconds, also one that finds a short queue. */
static void test_two_seconds_between_samples(void)
{
	struct resize_view v = {.queue_limit = 4096, .live = 2, .target = 2, .min = 2, .max = 8};
	_Alignas(16) char state[RESIZE_STATE_MAX] = {0};
	struct resize_decision d = {0};
	int grown = 0;

	CU_ASSERT_FALSE(resize_seda.decide(state, &v, 0, &d));
	CU_ASSERT_FALSE(resize_seda.decide(state, &v, 2 * NS_PER_S, &d));
	v.queue_length = 500;
	for (int64_t at_ns = 2 * NS_PER_S; at_ns < 8 * NS_PER_S; at_ns += 250 * NS_PER_MS) {
		if (!resize_seda.decide(state, &v, at_ns, &d))
			continue;
		grown++;
		CU_ASSERT_EQUAL(at_ns, (2 + 2 * grown) * NS_PER_S);
		v.live = v.target = d.target;
	}
	CU_ASSERT_EQUAL(grown, 2);
}

static void test_shrinks_when_idle(void)
{
	struct fake f = fake_of(500, 50, 1, 32);
	struct control *c = control_of(&f);
	int64_t now_ns = advance(c, &f, 0, 120, 0.2);

	f.arrivals = 0;
	advance(c, &f, now_ns, 200, 0.0);
	CU_ASSERT_EQUAL(f.v.target, 1);
	control_free(c);
}

static void test_steady_load_does_not_oscillate(void)
{
	struct fake f = fake_of(475, 50, 1, 32);
	struct control *c = control_of(&f);
	int64_t now_ns = advance(c, &f, 0, 120, 0.2);

	f.reversals = 0;
	advance(c, &f, now_ns, 600, 0.2);
	CU_ASSERT(f.reversals <= 1);
	control_free(c);
}

static void test_static_never_moves(void)
{
	struct resize_view v = {
	    .live = 1, .target = 1, .min = 1, .max = 9, .queue_length = 4000, .queue_limit = 4096};
	struct resize_decision d = {0};
	_Alignas(16) unsigned char state[RESIZE_STATE_MAX] = {0};

	for (int64_t t = 0; t < 100; t++)
		CU_ASSERT_FALSE(resize_static.decide(state, &v, t * NS_PER_S, &d));
}

CUNIT_MAIN("resize", {"seda grows until it is enough", test_grows_until_enough},
    {"the veto of the CPU", test_veto_of_the_cpu},
    {"seda stops at max and the journal says so", test_stops_at_max_and_says_so},
    {"seda does not grow on a saturated CPU", test_no_growth_on_a_saturated_cpu},
    {"seda samples every two seconds", test_a_sample_every_two_seconds},
    {"seda leaves two seconds between samples", test_two_seconds_between_samples},
    {"seda shrinks to min when idle", test_shrinks_when_idle},
    {"seda keeps still under steady load", test_steady_load_does_not_oscillate},
    {"static never moves", test_static_never_moves})
