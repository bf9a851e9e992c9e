/* SPDX-License-Identifier: MIT */
/*
 * From counters to admission (graph/route.c): how long events stay where they are held, and
 * how much of the work in flight arrives before an event that enters now. The graph a -> b -> front
 * is built and never started. The test writes the counters of threads that have gone and sets the
 * time.
 */
#include "graph/graph.h"

#include "stage/admit_rig.h"

#define TICK ADMISSION_TICK_NS
#define MS   1000000LL

static int64_t tick_ns;
/* `moved`: some counter has changed since the last tick. `always`: report a change at each tick. */
static bool moved, always;

static struct class_book *class_book(const struct sink *s, int class_id)
{
	return &g->gone[s->id].book.class_book[class_id];
}

/* `n` more events arrive at `s`. */
static void come(const struct sink *s, int class_id, uint64_t n)
{
	book_add(&class_book(s, class_id)->offered, n);
	moved = true;
}

/* `n` events are handled and go on. */
static void go_on(const struct sink *s, int class_id, uint64_t n)
{
	book_add(&class_book(s, class_id)->handled, n);
	book_add(&class_book(s, class_id)->completed, n);
	book_add(&g->gone[s->id].link_tried[class_id], n); /* by its only outlet */
	moved = true;
}

/* n events pass `s` each tick, with this wait and service time. */
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
	for (int i = 0; (moved || always) && i < g->n_stages; i++)
		g->changes[i]++;
	moved = false;
	graph_route_tick(g, tick_ns);
}

static void begin(void)
{
	rig_start();
	always = moved = false;
	for (int i = 0; i < g->n_stages; i++)
		g->gone[i].times = calloc(WEIR_CLASSES_MAX, sizeof(struct time_book));
	tick_ns = NOW_NS;
	for (int c = 0; c < 2; c++)
		for (int i = 0; i < 2; i++)
			atomic_store(&(i ? a : b)->ahead->fronts[c], 0);
}

static int64_t lead_ns(const struct sink *s, int class_id)
{
	CU_ASSERT(atomic_load(&s->ahead->fronts[class_id]) >> front->front & 1);
	return atomic_load(&s->ahead->lead_ns[class_id][front->front]);
}

static bool near(int64_t is, int64_t want)
{
	return is > want - want / 100 && is < want + want / 100;
}

/* ---- stays ---- */

/* Ten events per tick arrive at b, stay for half a second and go on. The stay follows from Little's
 * law, since no histogram records it. */
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
	rig_end();
}

/* By class: no stay is assumed for a class whose events are not held, even if others are. */
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
	rig_end();
}

/* The stay adapts within seconds: from half a second to a tenth. */
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
	rig_end();
}

/* Without held events, the stay is wait and service as measured. */
static void test_not_held(void)
{
	begin();
	come(b, 0, 500); /* a standing queue: part of the wait */
	for (int i = 0; i < 1000; i++) {
		pass(b, 0, 10, 3 * MS, MS);
		tick();
	}
	CU_ASSERT(near(lead_ns(b, 0), 4 * MS));
	rig_end();
}

/* ---- work that arrives before an event ---- */

/* 30 events at a and 10 at b, and a is farther away: for an event that enters b, only the ten at b
 * arrive before it. */
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
	rig_end();
}

/* ---- idle periods ---- */

#define SEEN 510

static int64_t seen_at[2][SEEN][3];

/* Record the values published for admission at a and b. */
static void look(int run, int i)
{
	seen_at[run][i][0] = atomic_load(&a->ahead->lead_ns[0][front->front]);
	seen_at[run][i][1] = atomic_load(&a->ahead->rest_ns[0]);
	seen_at[run][i][2] = atomic_load(&a->ahead->fronts[0]) |
			     (int64_t)atomic_load(&b->ahead->judged[0]) << 16 |
			     (int64_t)atomic_load(&a->ahead->before[0][front->front]) << 32;
}

static void hold(int64_t n)
{
	book_add(&g->gone[b->id].book.held, (uint64_t)n);
	if (n > 0)
		come(b, 0, (uint64_t)n);
	else
		go_on(b, 0, (uint64_t)-n);
}

/* Work, with some events held, alternating with idle periods. */
static void live(int run)
{
	int n = 0;

	begin();
	always = run == 0;
	for (int turn = 0; turn < 10; turn++) {
		hold(100 * (turn + 1));
		for (int i = 0; i < 50; i++) {
			pass(a, 0, 20, (turn + 1) * MS, MS);
			pass(b, 0, 20, 2 * MS, MS);
			tick();
			look(run, n++);
		}
		hold(-100 * (turn + 1));
		for (int i = 0; i < 130 * turn + 50; i++)
			tick();
		look(run, n++);
	}
	rig_end();
}

/* While no events come, no counters are read and nothing is learned. The results are the same as if
 * that were done. */
static void test_rest(void)
{
	int far = 0;

	live(0);
	live(1);
	for (int i = 0; i < SEEN; i++) {
		for (int k = 0; k < 2; k++) {
			int64_t d = seen_at[0][i][k] - seen_at[1][i][k];
			far += d < -10 || d > 10; /* of ms: powers here, products there */
		}
		far += seen_at[0][i][2] != seen_at[1][i][2];
	}
	CU_ASSERT_EQUAL(far, 0);
}

static void setup(void)
{
	test_prepare();
	test_held();
}

CUNIT_MAIN("from books to doors", {"held", setup}, {"held, by class", test_held_by_class},
    {"held for less", test_held_for_less}, {"not held", test_not_held}, {"before", test_before},
    {"rest", test_rest})
