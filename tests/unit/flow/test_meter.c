/* SPDX-License-Identifier: MIT */
/*
 * What meters make of books (flow/meter.h): costs by completions, by handlers under way, and of classes that do
 * not come any more. The graph is built and never started; its threads are only books, which the test
 * writes, and time is what it says.
 */
#include "fixture/graph_cunit.h"

#include "flow/local.h"
#include "flow/meter.h"

#define THREADS 4
#define US      1000LL
#define MS      1000000LL
#define S       1000000000LL

static struct weir_graph *g;
static struct weir_stage *stage;
static struct thread thread[THREADS];
static struct local *local[THREADS];
static struct meter meter;
static struct admission_sample sample;
static int64_t now_ns;

static void test_look(const struct sink *s, struct admission_view *v)
{
	(void)s;
	v->threads = THREADS;
}

static void start(void)
{
	struct weir_spec *spec = weir_spec_new("meter");

	weir_spec_add_class(spec, "one");
	weir_spec_add_class(spec, "two");
	fixture_set(fixture_stage(spec, "a", "t.end", NULL), "admission.policy", "weir");
	g = fixture_build(spec);
	stage = weir_graph_stage(g, "a");
	stage->sink.look = test_look;
	memset(&meter, 0, sizeof(meter));
	now_ns = S;
	lock_take(&g->threads_lock);
	for (int i = 0; i < THREADS; i++) {
		local[i] = calloc(1, sizeof(*local[i]));
		local[i]->times = calloc(2, sizeof(*local[i]->times));
		thread[i] = (struct thread){.local = &local[i], .next = g->threads};
		g->threads = &thread[i];
	}
	lock_release(&g->threads_lock);
}

static void end(void)
{
	lock_take(&g->threads_lock);
	g->threads = NULL;
	lock_release(&g->threads_lock);
	for (int i = 0; i < THREADS; i++) {
		free(local[i]->times);
		free(local[i]);
	}
	weir_graph_free(g);
}

static void tick(void)
{
	now_ns += ADMISSION_TICK_NS;
	meter_sample(&meter, g, stage, now_ns, &sample);
}

static void complete(int class_id, unsigned n, int64_t each_ns)
{
	book_add(&local[0]->book.class_book[class_id].completed, n);
	hist_book_add(&local[0]->times[class_id].service, each_ns, n);
}

/* At the next tick thread `i` will have been at a batch of n for ran_ns; n 0: at none. */
static void be_at(int i, int n, int64_t ran_ns)
{
	atomic_store(&local[i]->book.running_n, n);
	atomic_store(&local[i]->book.running_since_ns, n ? now_ns + ADMISSION_TICK_NS - ran_ns : 0);
}

static void all_at(int n, int64_t ran_ns)
{
	for (int i = 0; i < THREADS; i++)
		be_at(i, n, ran_ns);
}

static int64_t cost_ns(int class_id)
{
	return sink_cost_ns(&stage->sink, class_id);
}

/* The first sample has nothing to compare with; quantiles follow within ten ticks. */
static void start_with_cost(int64_t each_ns)
{
	start();
	tick();
	complete(0, 1000, each_ns);
	for (int i = 0; i < 20; i++)
		tick();
	CU_ASSERT_EQUAL(cost_ns(0), each_ns);
	CU_ASSERT_EQUAL(sample.cost_ns, each_ns);
}

/* ---- handlers under way ---- */

/* A thread that is at the last event of a batch is not slow: what counts is the time per event. */
static void test_batches_are_no_hangs(void)
{
	static const int sizes[] = {1, 8, 64, 256};

	start_with_cost(20 * US);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		all_at(sizes[i], sizes[i] * 20 * US);
		tick();
		CU_ASSERT_EQUAL(cost_ns(0), 20 * US);
		CU_ASSERT_EQUAL(atomic_load(&stage->sink.mean_cost_ns), 20 * US);
		CU_ASSERT_EQUAL(sample.cost_ns, 20 * US);
	}
	all_at(64, 64 * S); /* but these hang */
	tick();
	CU_ASSERT_EQUAL(cost_ns(0), S / 2);
	end();
}

/* A hang of most is seen before it ends, for all classes, and nothing is left of it when it has ended. */
static void test_hang_of_most(void)
{
	start_with_cost(20 * US);
	for (int i = 0; i < THREADS; i++)
		be_at(i, 1, i < 3 ? S : 0);
	tick();
	CU_ASSERT_EQUAL(cost_ns(0), S / 2); /* the fourth has only begun, and does not count */
	CU_ASSERT_EQUAL(cost_ns(1), S / 2);
	CU_ASSERT_EQUAL(atomic_load(&stage->sink.mean_cost_ns), S / 2);
	CU_ASSERT_EQUAL(sample.cost_ns, S / 2);
	be_at(3, 1, 20 * US);
	for (int i = 0; i < 3; i++)
		be_at(i, 1, S);
	tick();
	CU_ASSERT_EQUAL(cost_ns(0), (3 * S + 20 * US) / 4 / 2);
	all_at(0, 0);
	tick();
	CU_ASSERT_EQUAL(cost_ns(0), 20 * US);
	CU_ASSERT_EQUAL(atomic_load(&stage->sink.mean_cost_ns), 20 * US);
	CU_ASSERT_EQUAL(sample.cost_ns, 20 * US);
	end();
}

/* One that hangs, or half of them, say nothing of what the others do. */
static void test_hang_of_some(void)
{
	start_with_cost(20 * US);
	for (int n = 1; n <= THREADS / 2; n++) {
		for (int i = 0; i < THREADS; i++)
			be_at(i, 1, i < n ? 60 * S : 10 * US);
		tick();
		CU_ASSERT_EQUAL(cost_ns(0), 20 * US);
	}
	end();
}

/* Those that are seen under way are the long ones; late are those at twice what nearly all take. */
static void test_long_ones_are_no_hangs(void)
{
	start();
	tick();
	for (int i = 0; i < 20; i++) {
		complete(0, 960, 10 * US);
		complete(0, 40, MS);
		tick();
	}
	int64_t mean_ns = cost_ns(0);
	CU_ASSERT_EQUAL(mean_ns, (960 * 10 * US + 40 * MS) / 1000);
	all_at(1, MS); /* as long as the long ones: twenty means */
	tick();
	CU_ASSERT_EQUAL(cost_ns(0), mean_ns);
	all_at(1, 10 * MS);
	tick();
	CU_ASSERT_EQUAL(cost_ns(0), 5 * MS);
	end();
}

/* With no completion yet nothing is known, and a hang does not change that. */
static void test_hang_before_all(void)
{
	start();
	for (int i = 0; i < 3; i++) {
		all_at(1, 10 * S);
		tick();
		CU_ASSERT_EQUAL(cost_ns(0), 0);
		CU_ASSERT_EQUAL(sample.cost_ns, 0);
	}
	end();
}

/* ---- classes that do not come any more ---- */

static void ticks_of_others(int n)
{
	for (int i = 0; i < n; i++) {
		complete(1, 10, 10 * US);
		tick();
	}
}

/* What was known of a class goes to the mean of the others, with a time constant of 10 s. */
static void test_old_costs_age(void)
{
	start_with_cost(10 * MS);
	ticks_of_others(1000);
	CU_ASSERT(cost_ns(0) > 3 * MS && cost_ns(0) < 5 * MS);
	CU_ASSERT_EQUAL(cost_ns(1), 10 * US);
	ticks_of_others(9000);
	CU_ASSERT(cost_ns(0) < 20 * US);
	complete(0, 1000, 10 * MS); /* comes again */
	tick();
	CU_ASSERT(cost_ns(0) > 9 * MS);
	end();
}

/* Of classes that come it stays what they are. */
static void test_costs_of_who_comes(void)
{
	start_with_cost(10 * MS);
	for (int i = 0; i < 3000; i++) {
		complete(0, 10, 10 * MS);
		complete(1, 10, 10 * US);
		tick();
	}
	CU_ASSERT(cost_ns(0) > 9800 * US && cost_ns(0) <= 10 * MS);
	CU_ASSERT(cost_ns(1) < 60 * US);
	end();
}

/* Look so many times, as the control thread does. Does it rest at the last? */
static bool rests_after(int looks)
{
	bool rests = false;

	for (int i = 0; i < looks; i++) {
		rests = meter_rests(&meter, stage);
		tick();
	}
	return rests;
}

/* Half a second of nothing, 50 looks, and it rests; an event asked about, waiting or handled ends that. */
static void test_rests(void)
{
	start();
	CU_ASSERT_FALSE(rests_after(50));
	CU_ASSERT_TRUE(rests_after(1));
	lock_take(&stage->sink.queue.lock);
	stage->sink.asked[1].asked = 1;
	lock_release(&stage->sink.queue.lock);
	CU_ASSERT_FALSE(rests_after(1));
	CU_ASSERT_FALSE(rests_after(50));
	CU_ASSERT_TRUE(rests_after(1));
	atomic_store(&stage->sink.running, 1);
	CU_ASSERT_FALSE(rests_after(60));
	atomic_store(&stage->sink.running, 0);
	CU_ASSERT_TRUE(rests_after(51));
	atomic_store(&stage->sink.queue.length, 1);
	CU_ASSERT_FALSE(meter_rests(&meter, stage));
	atomic_store(&stage->sink.queue.length, 0);
	end();
}

static void setup(void)
{
	fixture_register(&end_ops);
	test_batches_are_no_hangs();
}

CUNIT_MAIN("meter", {"batches are no hangs", setup}, {"a hang of most", test_hang_of_most},
    {"a hang of some", test_hang_of_some}, {"long ones are no hangs", test_long_ones_are_no_hangs},
    {"a hang before all", test_hang_before_all}, {"old costs age", test_old_costs_age},
    {"costs of who comes", test_costs_of_who_comes}, {"rests", test_rests})
