/* SPDX-License-Identifier: MIT */
/* How meters evaluate counters (graph/meter.h): costs from completions, from running handlers, and
 * of classes that no longer arrive. The graph is built and never started. Its threads exist only as
 * counters, which the test writes, and the test sets the time. */
#include "fixture/graph/probes.h"

#include "event/local.h"
#include "graph/meter.h"

#define THREADS 4
#define US      1000LL
#define MS      1000000LL
#define S       1000000000LL

static struct weir_graph *g;
static struct weir_stage *stage;
static struct local *local[THREADS];
static struct meter meter;
static struct admission_sample sample;
static int64_t now_ns;

static void test_look(const struct sink *s, int rank, struct admission_view *v)
{
	(void)s, (void)rank;
	v->threads = THREADS;
}

static void held_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st, (void)ev, (void)n; /* the graph is never started */
}

static const struct weir_stage_ops held_ops = {.abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_HOLDS,
    .name = "t.held",
    .summary = "a stage that holds what comes",
    .accepts = &probe_type,
    .handle = held_handle};

static void start_type(const char *type)
{
	struct weir_spec *spec = weir_spec_new("meter");

	weir_spec_add_class(spec, "one");
	weir_spec_add_class(spec, "two");
	fixture_set(fixture_stage(spec, "a", type, NULL), "admission.policy", "weir");
	g = fixture_build(spec);
	stage = weir_graph_stage(g, "a");
	stage->sink.look = test_look;
	memset(&meter, 0, sizeof(meter));
	now_ns = S;
	lock_take(&g->threads_lock);
	for (int i = 0; i < THREADS; i++) {
		local[i] = calloc(1, sizeof(*local[i]));
		local[i]->times = calloc(2, sizeof(*local[i]->times));
		local[i]->next = g->gone[stage->id].books;
		g->gone[stage->id].books = local[i];
	}
	lock_release(&g->threads_lock);
}

static void start(void)
{
	start_type("t.end");
}

static void end(void)
{
	lock_take(&g->threads_lock);
	g->gone[stage->id].books = NULL;
	lock_release(&g->threads_lock);
	for (int i = 0; i < THREADS; i++) {
		free(local[i]->times);
		free(local[i]);
	}
	free(meter.window);
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
	book_add(&local[0]->book.class_book[class_id].handled, n);
	hist_book_add(&local[0]->times[class_id].service, each_ns, n);
	book_changed(&local[0]->book);
}

/* At the next tick, thread `i` will have spent ran_ns on a batch of n; n 0: it has none. */
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

/* ---- running handlers ---- */

/* A thread at the last event of a batch is not slow: the time per event counts. */
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

/* A hang of most threads is noticed before it ends, for all classes, and leaves no trace
 * afterwards. */
static void test_hang_of_most(void)
{
	start_with_cost(20 * US);
	for (int i = 0; i < THREADS; i++)
		be_at(i, 1, i < 3 ? S : 0);
	tick();
	CU_ASSERT_EQUAL(cost_ns(0), S / 2); /* the fourth has just started and does not count */
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

/* If one thread hangs, or half of them, that says nothing about the others. */
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

/* Handlers seen running tend to be the long ones. They are late only after twice the time that
 * nearly all take. */
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
	all_at(1, MS); /* as long as the long ones: twenty times the mean */
	tick();
	CU_ASSERT_EQUAL(cost_ns(0), mean_ns);
	all_at(1, 10 * MS);
	tick();
	CU_ASSERT_EQUAL(cost_ns(0), 5 * MS);
	end();
}

/* Without a completion the cost is unknown, and a hang does not change that. */
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

/* ---- classes that no longer arrive ---- */

static void ticks_of_others(int n)
{
	for (int i = 0; i < n; i++) {
		complete(1, 10, 10 * US);
		tick();
	}
}

/* The known cost of an absent class approaches the mean of the others with a time constant of 10
 * s. */
static void test_old_costs_age(void)
{
	start_with_cost(10 * MS);
	ticks_of_others(1000);
	CU_ASSERT(cost_ns(0) > 3 * MS && cost_ns(0) < 5 * MS);
	CU_ASSERT_EQUAL(cost_ns(1), 10 * US);
	ticks_of_others(9000);
	CU_ASSERT(cost_ns(0) < 20 * US);
	complete(0, 1000, 10 * MS); /* the class returns; 0.98^1000 of the old cost is left */
	tick();
	CU_ASSERT(cost_ns(0) > 9900 * US);
	end();
}

/* Classes of which events arrive keep their cost. */
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

/* Check `looks` times, as the control thread does. Is the meter at rest after the last check? */
static bool rests_after(int looks)
{
	bool rests = false;

	for (int i = 0; i < looks; i++) {
		now_ns += ADMISSION_TICK_NS;
		lock_take(&g->threads_lock);
		uint64_t changes = graph_stage_changes(g, stage->id);
		lock_release(&g->threads_lock);
		rests = meter_look(&meter, stage, changes, now_ns);
	}
	return rests;
}

/* After half a second without events, 50 checks, the meter rests. An event that is counted, asked
 * about, queued or handled ends the rest. */
static void test_rests(void)
{
	start();
	CU_ASSERT_FALSE(rests_after(50));
	CU_ASSERT_TRUE(rests_after(1));
	book_changed(&local[1]->book);
	CU_ASSERT_FALSE(rests_after(1));
	CU_ASSERT_FALSE(rests_after(50));
	CU_ASSERT_TRUE(rests_after(1));
	atomic_fetch_add(&stage->sink.stirred, 1); /* by admission upstream */
	CU_ASSERT_FALSE(rests_after(51));
	CU_ASSERT_TRUE(rests_after(1));
	atomic_store(&stage->sink.running, 1);
	CU_ASSERT_FALSE(rests_after(60));
	atomic_store(&stage->sink.running, 0);
	CU_ASSERT_TRUE(rests_after(51));
	atomic_store(&stage->sink.queue.length, 1);
	CU_ASSERT_FALSE(rests_after(1));
	atomic_store(&stage->sink.queue.length, 0);
	end();
}

/* The meter does not rest before the quantiles of the last events are forgotten. */
static void test_rests_without_quantiles(void)
{
	start();
	CU_ASSERT_FALSE(rests_after(1));
	complete(0, 50, MS); /* too few to end the window */
	hist_book_add(&local[0]->times[0].wait, MS, 50);
	CU_ASSERT_FALSE(rests_after(60));
	CU_ASSERT(meter.wait_p90_ns > 0);
	CU_ASSERT_TRUE(rests_after(500));
	CU_ASSERT_EQUAL(meter.wait_p90_ns, 0);
	end();
}

static void setup(void)
{
	fixture_register(&end_ops);
	fixture_register(&held_ops);
	test_batches_are_no_hangs();
}

/* Two threads. One has passed its events on, and the inline stages after it have not reported their
 * time yet; the other has reported its time. The last time arrives when no more events complete. */
static void test_time_that_comes_after_its_events(void)
{
	start_with_cost(20 * US);
	for (int i = 0; i < 5; i++) {
		book_add(&local[0]->book.class_book[0].completed, 100);
		complete(0, 100, 20 * US);
		tick();
		CU_ASSERT_EQUAL(cost_ns(0), 20 * US);
		hist_book_add(&local[0]->times[0].service, 20 * US, 100);
		book_add(&local[0]->book.class_book[0].handled, 100);
		tick();
		CU_ASSERT_EQUAL(cost_ns(0), 20 * US);
	}
	end();
}

/* Let the stack below this frame hold no zeros. */
__attribute__((noinline)) static void soil_stack(void)
{
	unsigned char soil[1 << 16];

	memset(soil, 1, sizeof(soil));
	__asm__ volatile("" ::"r"(soil) : "memory");
}

/* ---- held events ---- */

static void start_held(int in_work)
{
	start_type("t.held");
	tick();
	complete(0, 1000, 20 * MS);
	queue_hold(&stage->sink.queue, 0, in_work);
	tick();
	CU_ASSERT_EQUAL(cost_ns(0), 20 * MS);
}

static void ticks(int n)
{
	for (int i = 0; i < n; i++)
		tick();
}

/* The other side stops. The events in work take at least the time for which no event has ended, and
 * cost half of that once they are late. The first event that ends shows that the other side works
 * again. */
static void test_held_stop(void)
{
	start_held(6);
	ticks(4);
	CU_ASSERT_EQUAL(cost_ns(0), 20 * MS); /* 40 ms are not late yet */
	ticks(96);
	CU_ASSERT_EQUAL(cost_ns(0), S / 2);
	CU_ASSERT_EQUAL(cost_ns(1), S / 2);
	CU_ASSERT_EQUAL(sample.cost_ns, S / 2);
	complete(0, 1, 20 * MS);
	tick();
	CU_ASSERT_EQUAL(cost_ns(0), 20 * MS);
	ticks(10);
	CU_ASSERT_EQUAL(cost_ns(0), 50 * MS); /* half of the time since then */
	end();
}

/* If the other side refuses events, it works. */
static void test_held_refused(void)
{
	start_held(6);
	for (int i = 0; i < 100; i++) {
		book_add(&local[1]->book.refusals, 1);
		tick();
	}
	CU_ASSERT_EQUAL(cost_ns(0), 20 * MS);
	end();
}

/* Events that began after the last one ended may be young. If they are at least half of those in
 * work, no event counts as late. */
static void test_held_young(void)
{
	start_held(2);
	queue_hold(&stage->sink.queue, 0, 1);
	ticks(100);
	CU_ASSERT_EQUAL(cost_ns(0), S / 2); /* two of three are old */
	queue_hold(&stage->sink.queue, 0, 1);
	tick();
	CU_ASSERT_EQUAL(cost_ns(0), 20 * MS);
	end();
}

/* Nothing is late while nothing is in work, nor before something could end. */
static void test_held_none(void)
{
	start_held(0);
	ticks(100);
	queue_hold(&stage->sink.queue, 0, 5);
	ticks(4);
	CU_ASSERT_EQUAL(cost_ns(0), 20 * MS);
	ticks(7);
	CU_ASSERT_EQUAL(cost_ns(0), 50 * MS);
	queue_hold(&stage->sink.queue, 0, -5);
	tick();
	CU_ASSERT_EQUAL(cost_ns(0), 20 * MS);
	end();
}

/* A stage without events has no window. The views of classes that the graph does not have, which
 * are whatever the stack held, are not read. */
static void test_no_window_before_an_event(void)
{
	start();
	for (int i = 0; i < 30; i++) {
		soil_stack();
		tick();
		CU_ASSERT_PTR_NULL(meter.window);
	}
	complete(1, 1, MS);
	for (int i = 0; i < 30; i++)
		tick();
	CU_ASSERT_PTR_NOT_NULL(meter.window);
	end();
}

CUNIT_MAIN("meter", {"batches are no hangs", setup}, {"a hang of most", test_hang_of_most},
    {"a hang of some", test_hang_of_some}, {"long ones are no hangs", test_long_ones_are_no_hangs},
    {"a hang before all", test_hang_before_all}, {"old costs age", test_old_costs_age},
    {"costs of who comes", test_costs_of_who_comes},
    {"time that comes after its events", test_time_that_comes_after_its_events},
    {"rests", test_rests}, {"rests without quantiles", test_rests_without_quantiles},
    {"held events stop", test_held_stop}, {"held events are refused", test_held_refused},
    {"held events are young", test_held_young}, {"nothing is held", test_held_none},
    {"no window before an event", test_no_window_before_an_event})
