/* SPDX-License-Identifier: MIT */
/* Counters (books) exist only where they are used (graph/books.c): which threads own books,
 * and the totals that leaving threads add to. */
#include "fixture/graph/probes.h"

#include <weir/operate.h>

#include "graph/graph.h"
#include "event/local.h"

#define EVENTS 100

static struct weir_graph *g;

/* a -> b, c -> d, each with a pool of one thread. `in`, between a and b, is inline. */
static void start(void)
{
	static const struct {
		const char *name, *use, *to;
	} stages[] = {{"a", "t.pass", "in"}, {"in", "t.pass", "b"}, {"b", "t.end", NULL},
	    {"c", "t.pass", "d"}, {"d", "t.end", NULL}};
	struct weir_spec *spec = weir_spec_new("books");

	prepare(EVENTS);
	for (size_t i = 0; i < sizeof(stages) / sizeof(stages[0]); i++) {
		struct weir_stage_spec *s =
		    fixture_stage(spec, stages[i].name, stages[i].use, stages[i].to);
		s->inlined = strcmp(stages[i].name, "in") == 0;
		if (s->inlined)
			continue;
		fixture_set(s, "threads.min", "1");
		fixture_set(s, "threads.max", "1");
	}
	g = fixture_start(spec);
}

static int books_of(const char *name)
{
	int id = weir_graph_stage(g, name)->id, n = 0;

	lock_take(&g->threads_lock);
	for (const struct local *l = g->gone[id].books; l; l = l->next)
		n++;
	lock_release(&g->threads_lock);
	return n;
}

static uint64_t changes_of(const char *name)
{
	lock_take(&g->threads_lock);
	uint64_t n = graph_stage_changes(g, weir_graph_stage(g, name)->id);
	lock_release(&g->threads_lock);
	return n;
}

static bool is_idle(const char *name)
{
	return stage_view(g, name).threads[WEIR_THREAD_IDLE] == 1;
}

static void await_rest(void)
{
	FIXTURE_AWAIT(is_idle("a") && is_idle("b") && is_idle("c") && is_idle("d"));
}

static void pass_all(void)
{
	fixture_offer_all(weir_graph_stage(g, "a"), probes, EVENTS, EVENTS);
	FIXTURE_AWAIT(fixture_ended() == EVENTS);
	await_rest();
}

static void test_only_where_used(void)
{
	start();
	await_rest();
	CU_ASSERT_EQUAL(books_of("a"), 1);  /* of its own thread */
	CU_ASSERT_EQUAL(books_of("in"), 1); /* of the one thread that runs it */
	CU_ASSERT_EQUAL(books_of("b"), 1);
	CU_ASSERT_EQUAL(books_of("d"), 1);
	CU_ASSERT_EQUAL_FATAL(weir_thread_attach(g, "test"), 0);
	CU_ASSERT_EQUAL(books_of("a"), 1);
	CU_ASSERT_EQUAL(books_of("in"), 2); /* this thread may run it */
	pass_all();
	CU_ASSERT_EQUAL(books_of("a"), 2);
	CU_ASSERT_EQUAL(books_of("b"), 2); /* a's thread sends to b */
	CU_ASSERT_EQUAL(books_of("c"), 1);
	CU_ASSERT_EQUAL(books_of("d"), 1);
	weir_thread_detach();
	CU_ASSERT_EQUAL(books_of("a"), 1);
	CU_ASSERT_EQUAL(stage_view(g, "a").class_view[0].offered, EVENTS);
	finish_graph(g, 0);
}

static void test_changes(void)
{
	start();
	await_rest();
	uint64_t a = changes_of("a"), c = changes_of("c");
	CU_ASSERT_EQUAL_FATAL(weir_thread_attach(g, "test"), 0);
	CU_ASSERT_EQUAL(changes_of("a"), a);
	pass_all();
	CU_ASSERT(changes_of("a") > a);
	CU_ASSERT(changes_of("in") > 0);
	CU_ASSERT(changes_of("b") > 0);
	CU_ASSERT_EQUAL(changes_of("c"), c);
	a = changes_of("a");
	CU_ASSERT_EQUAL(changes_of("a"), a);
	weir_thread_detach(); /* the totals keep its counts */
	CU_ASSERT(changes_of("a") >= a);
	finish_graph(g, 0);
}

static uint64_t waits_of(const char *name)
{
	const struct weir_stage_view v = stage_view(g, name);

	return weir_hist_total(&v.class_view[0].wait) + weir_hist_total(&v.class_view[0].service);
}

/* The first thread that leaves hands over its histograms; later ones add theirs. */
static void test_histograms_of_the_gone(void)
{
	char why[256];

	start();
	CU_ASSERT_EQUAL_FATAL(weir_thread_attach(g, "test"), 0);
	pass_all();
	CU_ASSERT_EQUAL(waits_of("b"), 2 * EVENTS);
	weir_thread_detach();
	for (int i = 1; i <= 3; i++) {
		CU_ASSERT_EQUAL(weir_graph_set(g, "b", "threads.max", "3", why, sizeof(why)), 0);
		CU_ASSERT_EQUAL(weir_graph_set(g, "b", "threads.min", "3", why, sizeof(why)), 0);
		FIXTURE_AWAIT(stage_view(g, "b").threads_now == 3);
		CU_ASSERT_EQUAL(weir_graph_set(g, "b", "threads.min", "1", why, sizeof(why)), 0);
		CU_ASSERT_EQUAL(weir_graph_set(g, "b", "threads.max", "1", why, sizeof(why)), 0);
		FIXTURE_AWAIT(stage_view(g, "b").threads_now == 1);
		CU_ASSERT_EQUAL(waits_of("b"), 2 * EVENTS);
	}
	weir_graph_drain(g, 10000000000LL, &(struct weir_drain_report){0});
	CU_ASSERT_EQUAL(waits_of("b"), 2 * EVENTS);
	CU_ASSERT_EQUAL(waits_of("in"), 2 * EVENTS);
	weir_graph_free(g);
}

/* ---- admitted events ---- */

static void shed_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	weir_event_finish_run(ev, n, WEIR_EPRESSURE);
}

static const struct weir_stage_ops shed_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.shed",
    .summary = "sheds what it has been given",
    .accepts = &probe_type,
    .handle = shed_handle};

static int offer_one(int i)
{
	struct weir_event *ev = &probes[i].ev;

	weir_event_init(ev, &probe_type, 1);
	return weir_offer(weir_graph_stage(g, "shed"), &ev, 1, NULL);
}

/* An event that is shed after its admission stays admitted; one that is refused has not been. */
static void test_admitted(void)
{
	struct weir_spec *spec = weir_spec_new("admitted");
	char why[192];

	prepare(4);
	fixture_stage(spec, "shed", "t.shed", NULL);
	g = fixture_start(spec);
	CU_ASSERT_EQUAL_FATAL(weir_thread_attach(g, "test"), 0);
	for (int i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(offer_one(i), 1);
	FIXTURE_AWAIT(fixture_ended() == 3);
	CU_ASSERT_EQUAL(weir_graph_steer(g, "shed", WEIR_STEER_DRAIN, why, sizeof(why)), 0);
	CU_ASSERT_EQUAL(offer_one(3), 0);
	struct weir_class_view v = stage_view(g, "shed").class_view[0];
	CU_ASSERT_EQUAL(v.offered, 4);
	CU_ASSERT_EQUAL(v.admitted, 3);
	CU_ASSERT_EQUAL(v.shed[weir_shed_index(WEIR_EPRESSURE)], 3);
	CU_ASSERT_EQUAL(v.shed[weir_shed_index(WEIR_EDRAINING)], 1);
	weir_thread_detach();
	finish_graph(g, 0);
}

/* ---- no change is lost ---- */

#define ROUNDS 20000

static struct book book;
static _Atomic uint64_t rounds; /* rounds that the writer has completed */
static _Atomic uint64_t turn;   /* round that it may start */

static void *write_rounds(void *arg)
{
	(void)arg;
	for (uint64_t i = 1; i <= ROUNDS; i++) {
		FIXTURE_AWAIT(atomic_load_explicit(&turn, memory_order_relaxed) >= i);
		for (uint64_t k = 0; k <= i % 3; k++) {
			book_add(&book.batches, 1);
			book_changed(&book);
		}
		atomic_store_explicit(&rounds, i, memory_order_release);
	}
	return NULL;
}

struct reader {
	uint64_t seen, batches;
};

/* Like the control thread: read the counters only if the number of changes differs. */
static void look(struct reader *r)
{
	uint64_t changes = atomic_load_explicit(&book.changes, memory_order_acquire);

	if (changes == r->seen)
		return;
	r->seen = changes;
	r->batches = book_read(&book.batches);
}

/* However the reads fall between the changes, a read after the last change finds everything. */
static void test_no_change_is_lost(void)
{
	struct reader reader = {0};
	uint64_t want = 0;
	pthread_t writer;
	int lost = 0;

	CU_ASSERT_EQUAL_FATAL(pthread_create(&writer, NULL, write_rounds, NULL), 0);
	for (uint64_t i = 1; i <= ROUNDS; i++) {
		atomic_store_explicit(&turn, i, memory_order_relaxed);
		do
			look(&reader);
		while (atomic_load_explicit(&rounds, memory_order_acquire) < i);
		look(&reader);
		want += 1 + i % 3;
		lost += reader.batches != want;
	}
	pthread_join(writer, NULL);
	CU_ASSERT_EQUAL(lost, 0);
}

static void setup(void)
{
	fixture_register(&pass_ops);
	fixture_register(&end_ops);
	fixture_register(&shed_ops);
	test_only_where_used();
}

CUNIT_MAIN("books", {"only where used", setup}, {"changes", test_changes},
    {"histograms of the gone", test_histograms_of_the_gone}, {"admitted", test_admitted},
    {"no change is lost", test_no_change_is_lost})
