/* SPDX-License-Identifier: MIT */
/*
 * From books to doors (flow/graph_route.c): how long events stay where they are held, and what of the work
 * that is on its way is before a door. The graph a -> b -> front is built and never started: the test
 * writes the books of threads that have gone and says what time it is.
 */
#include "flow/graph.h"

#include "ask_rig.h"

#define TICK ADMISSION_TICK_NS
#define MS   1000000LL

static int64_t tick_ns;

static struct class_book *class_book(const struct sink *s, int class_id)
{
	return &g->gone[s->id].book.class_book[class_id];
}

/* So many come to `s`. */
static void come(const struct sink *s, int class_id, uint64_t n)
{
	book_add(&class_book(s, class_id)->offered, n);
}

/* And so many are handled and go on. */
static void go_on(const struct sink *s, int class_id, uint64_t n)
{
	book_add(&class_book(s, class_id)->handled, n);
	book_add(&class_book(s, class_id)->completed, n);
	book_add(&g->gone[s->id].link_tried[class_id], n); /* of its only outlet */
}

/* Through `s`, n each tick, each with that wait and service. */
static void pass(
    const struct sink *s, int class_id, uint64_t n, int64_t wait_ns, int64_t service_ns)
{
	come(s, class_id, n);
	go_on(s, class_id, n);
	hist_book_add(&g->gone[s->id].times[class_id].wait, wait_ns, n);
	hist_book_add(&g->gone[s->id].times[class_id].service, service_ns, n);
}

static void tick(void)
{
	tick_ns += TICK;
	graph_route_tick(g, tick_ns);
}

static void begin(void)
{
	start();
	tick_ns = NOW_NS;
	for (int c = 0; c < 2; c++)
		for (int i = 0; i < 2; i++)
			atomic_store(&(i ? a : b)->ahead->asks[c], 0);
}

static int64_t lead_ns(const struct sink *s, int class_id)
{
	CU_ASSERT(atomic_load(&s->ahead->asks[class_id]) >> front->front & 1);
	return atomic_load(&s->ahead->lead_ns[class_id][front->front]);
}

static bool near(int64_t is, int64_t want)
{
	return is > want - want / 100 && is < want + want / 100;
}

/* ---- stays ---- */

/* Ten a tick come to b, stay for half a second and go on: by Little's law, since no histogram has them. */
static void test_held(void)
{
	begin();
	come(b, 0, 500);
	book_add(&g->gone[b->id].book.held, 500);
	for (int i = 0; i < 1000; i++) {
		pass(b, 0, 10, 0, MS / 100);
		tick();
	}
	CU_ASSERT(near(lead_ns(b, 0), 500 * MS));
	end();
}

/* By class: who is not held there is not said to stay, though others are. */
static void test_held_by_class(void)
{
	begin();
	come(b, 0, 500);
	come(b, 1, 1);
	book_add(&g->gone[b->id].book.held, 500);
	for (int i = 0; i < 1000; i++) {
		pass(b, 0, 10, 0, 0);
		pass(b, 1, 10, 0, 0);
		tick();
	}
	CU_ASSERT(near(lead_ns(b, 0), 500 * MS));
	CU_ASSERT(near(lead_ns(b, 1), MS));
	end();
}

/* It follows within seconds: from half a second to a tenth. */
static void test_held_for_less(void)
{
	begin();
	come(b, 0, 500);
	book_add(&g->gone[b->id].book.held, 500);
	for (int i = 0; i < 500; i++) {
		pass(b, 0, 10, 0, 0);
		tick();
	}
	go_on(b, 0, 400);
	book_add(&g->gone[b->id].book.held, (uint64_t)-400);
	for (int i = 0; i < 1000; i++) {
		pass(b, 0, 10, 0, 0);
		tick();
	}
	CU_ASSERT(near(lead_ns(b, 0), 100 * MS));
	end();
}

/* Where none is held it is wait and service, as they were measured. */
static void test_not_held(void)
{
	begin();
	come(b, 0, 500); /* a queue that stands: the wait says so */
	for (int i = 0; i < 1000; i++) {
		pass(b, 0, 10, 3 * MS, MS);
		tick();
	}
	CU_ASSERT(near(lead_ns(b, 0), 4 * MS));
	end();
}

/* ---- what is before a door ---- */

/* 30 at a and 10 at b, of which a is farther: at the door of b only its own ten are before who enters. */
static void test_before(void)
{
	begin();
	for (int i = 0; i < 10; i++) {
		pass(a, 0, 100, 3 * MS, MS);
		pass(b, 0, 100, 2 * MS, MS);
		tick();
	}
	come(a, 0, 30);
	come(b, 0, 10);
	tick();
	CU_ASSERT_EQUAL(atomic_load(&front->pipeline_ns), 40 * COST);
	CU_ASSERT_EQUAL(atomic_load(&a->ahead->before[0][front->front]), AHEAD_ALL);
	CU_ASSERT_EQUAL(atomic_load(&b->ahead->before[0][front->front]), AHEAD_ALL / 4);
	CU_ASSERT(near(lead_ns(a, 0), 7 * MS));
	CU_ASSERT(near(lead_ns(b, 0), 3 * MS));
	end();
}

static void setup(void)
{
	test_prepare();
	test_held();
}

CUNIT_MAIN("from books to doors", {"held", setup}, {"held, by class", test_held_by_class},
    {"held for less", test_held_for_less}, {"not held", test_not_held}, {"before", test_before})
