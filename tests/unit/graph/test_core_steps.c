/* SPDX-License-Identifier: MIT */
/* Core groups: what a core does between two batches, and what it counts. */
#include "fixture/graph/probes.h"

#include "base/clock.h"
#include "graph/graph.h"
#include "sched/cores.h"
#include "sched/next_bits.h"

static struct weir_graph *start(const char *gate, const char *value)
{
	struct weir_spec *spec = weir_spec_new("steps");
	struct weir_group_spec *g = weir_spec_add_group(spec, "core");
	char why[200];

	weir_spec_text(&g->schedule, "fifo");
	weir_spec_text(&g->cores, "1");
	fixture_core_stage(spec, "a", "t.pass", "b");
	fixture_core_stage(spec, "b", "t.end", NULL);
	spec->stages[1].local = WEIR_LOCAL_ALWAYS;
	for (int i = 0; i < 2; i++)
		fixture_set(&spec->stages[i], "cohort.max", "4");
	struct weir_graph *graph = fixture_start(spec);
	if (gate)
		CU_ASSERT_EQUAL(weir_graph_set(graph, "core", gate, value, why, sizeof(why)), 0);
	weir_thread_attach(graph, "test");
	return graph;
}

static void steer(struct weir_graph *g, const char *name, enum weir_steer to)
{
	char why[200];

	CU_ASSERT_EQUAL(weir_graph_steer(g, name, to, why, sizeof(why)), 0);
}

static struct core *core_of(struct weir_graph *g)
{
	const struct pool *pool = weir_graph_stage(g, "a")->pool;

	return &pool->cores->core[0];
}

static void finish(struct weir_graph *g, int n)
{
	FIXTURE_AWAIT(fixture_ended() == (uint64_t)n);
	check_each_once(n);
	weir_thread_detach();
	finish_graph(g, 0);
}

/* Events that pass from cell to cell are counted at their links, too. */
static void test_links(void)
{
	struct weir_graph_view *v;

	prepare(30);
	struct weir_graph *g = start(NULL, NULL);
	fixture_offer_all(weir_graph_stage(g, "a"), probes, 30, 30);
	FIXTURE_AWAIT(fixture_ended() == 30);
	FIXTURE_AWAIT(stage_view(g, "b").in_flight == 0);
	CU_ASSERT_EQUAL_FATAL(weir_graph_view(g, &v), 0);
	for (int i = 0; i < v->n_stages; i++)
		if (strcmp(v->stages[i].name, "a") == 0)
			CU_ASSERT_EQUAL(v->stages[i].links[0].events_total, 30);
	weir_graph_view_free(v);
	finish(g, 30);
}

/* ---- lingering ---- */

static bool lingers(struct sink *s)
{
	struct pool *pool = s->pool;

	lock_take(&pool->lock);
	const struct handler *h = atomic_load(&pool->handler[0]);
	bool is = h->listed && h->ready_ns[s->place] != INT64_MAX;
	lock_release(&pool->lock);
	return is;
}

/* A core that waits for a fuller batch takes it as soon as it is full. */
static void test_full(void)
{
	prepare(4);
	struct weir_graph *g = start(NULL, NULL);
	struct sink *a = &weir_graph_stage(g, "a")->sink;
	atomic_store(&a->linger_ns, 3600 * NS_PER_S);
	fixture_offer_all(weir_graph_stage(g, "a"), probes, 3, 3);
	FIXTURE_AWAIT(lingers(a));
	CU_ASSERT_EQUAL(fixture_ended(), 0);
	fixture_offer_all(weir_graph_stage(g, "a"), &probes[3], 1, 1);
	finish(g, 4);
}

/* ---- what the policy is told ---- */

static atomic_int came[2], left[2];

static void note_came(void *state, int stage, uint32_t k)
{
	(void)state;
	atomic_fetch_add(&came[stage], (int)k);
}

static void note_left(void *state, int stage, uint32_t k)
{
	(void)state;
	atomic_fetch_add(&left[stage], (int)k);
}

static int pick_first(void *state, const struct next_view *v)
{
	(void)state;
	return bits_lowest(v->ready);
}

static const struct next_policy counting = {
    .name = "counting", .help = "", .arrived = note_came, .left = note_left, .pick = pick_first};

/* It learns of the events of cells only, and that all of them have left. */
static void tell(const char *gate, const char *value)
{
	struct cores_plan plan;

	prepare(100);
	struct weir_graph *g = start(gate, value);
	struct core_group *group = core_of(g)->group;
	int b = weir_graph_stage(g, "b")->sink.place;
	for (int i = 0; i < 2; i++)
		came[i] = left[i] = 0;
	lock_take(&g->lock);
	cores_get(group, &plan);
	plan.policy = &counting;
	cores_set(group, &plan);
	lock_release(&g->lock);
	fixture_offer_all(weir_graph_stage(g, "a"), probes, 100, 20);
	FIXTURE_AWAIT(fixture_ended() == 100);
	CU_ASSERT_EQUAL(came[b], 100);
	CU_ASSERT_EQUAL(left[b], 100);
	CU_ASSERT_EQUAL(came[1 - b] + left[1 - b], 0);
	finish(g, 100);
}

static void test_told(void)
{
	tell(NULL, NULL);
	tell("gate.events", "3");
}

/* A change is in force before the next batch. */
static void test_plan(void)
{
	char why[200];

	prepare(2);
	struct weir_graph *g = start(NULL, NULL);
	fixture_offer_all(weir_graph_stage(g, "a"), probes, 1, 1);
	FIXTURE_AWAIT(fixture_ended() == 1);
	CU_ASSERT_EQUAL(weir_graph_set(g, "core", "schedule", "srpt", why, sizeof(why)), 0);
	fixture_offer_all(weir_graph_stage(g, "a"), &probes[1], 1, 1);
	FIXTURE_AWAIT(fixture_ended() == 2);
	CU_ASSERT_PTR_EQUAL(core_of(g)->next.policy, &next_srpt);
	finish(g, 2);
}

/* The books of one core: 40 events wait for it at b, whose batches have four at most. */
static struct core_book books_of(const char *gate, const char *value)
{
	prepare(40);
	struct weir_graph *g = start(gate, value);
	const struct sink *b = &weir_graph_stage(g, "b")->sink;
	steer(g, "b", WEIR_STEER_PAUSE);
	fixture_offer_all(weir_graph_stage(g, "b"), probes, 40, 40);
	thread_self()->local[b->id]->service_ns = 100;
	steer(g, "b", WEIR_STEER_RUN);
	FIXTURE_AWAIT(fixture_ended() == 40);
	check_each_once(40);
	weir_thread_detach();
	struct weir_drain_report r;
	weir_graph_drain(g, -1, &r);
	struct core_book book = core_of(g)->book[b->place];
	weir_graph_free(g);
	return book;
}

static void test_books(void)
{
	struct core_book all = books_of(NULL, NULL), two = books_of("gate.events", "2");

	CU_ASSERT_EQUAL(book_read(&all.from_queue), 40);
	CU_ASSERT_EQUAL(book_read(&all.from_cell), 0);
	CU_ASSERT_TRUE(book_read(&all.batches) >= 10);
	CU_ASSERT_EQUAL(book_read(&all.visits[NEXT_POLICY]), 1);
	CU_ASSERT_EQUAL(book_read(&all.cut[NEXT_POLICY]), 0);
	CU_ASSERT_TRUE(book_read(&two.batches) >= 20);
	CU_ASSERT_EQUAL(book_read(&two.visits[NEXT_POLICY]), 20);
	CU_ASSERT_TRUE(atomic_load(&all.longest.now_ns) > 0);
}

static void test_types(void)
{
	fixture_register(&pass_ops);
	fixture_register(&end_ops);
}

CUNIT_MAIN("core steps", {"types are known", test_types}, {"a changed plan", test_plan},
    {"links", test_links}, {"a full batch", test_full}, {"the policy is told", test_told},
    {"books", test_books})
