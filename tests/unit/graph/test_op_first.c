/* SPDX-License-Identifier: MIT */
/* weir_await_first: the continuation comes with the first child that succeeds, or when all have failed;
 * the others end with their family; and the books. */
#include "fixture/graph/probes.h"

#include "base/clock.h"
#include "event/op.h"
#include "graph/graph.h"

#define JOBS 400

struct job {
	struct weir_event ev;
	struct weir_op op;
	int got;      /* number of the child that the continuation found */
	int children; /* how many it found */
	int child_status, status;
	atomic_int finishes, rounds;
};

struct part {
	struct weir_event ev;
	struct weir_op op;
	int number;
};

#include "split_rig.h"

static atomic_int ended, asks_ended, asks_cancelled, waiting;
static int n_asks, n_rounds;
/* what child i does: succeed, fail, wait for ever */
static enum { WORKS, FAILS, WAITS, DIES } does[8];
static struct weir_family *family;

static void job_finish(struct weir_event *ev, int status)
{
	struct job *j = (struct job *)ev;

	j->status = status;
	atomic_fetch_add(&j->finishes, 1);
	atomic_fetch_add(&ended, 1);
}

static void ask_finish(struct weir_event *ev, int status)
{
	(void)ev;
	atomic_fetch_add(&asks_cancelled, status == WEIR_ECANCELLED);
	atomic_fetch_add(&asks_ended, 1);
}

static const struct weir_event_type job_type = {RIG_TYPE(struct job, "t.job", job_finish)};
static const struct weir_event_type part_type = {RIG_TYPE(struct part, "t.part", ask_finish)};

static void answered(struct weir_stage *st, struct weir_event **ev, int n);

static void ask(struct weir_stage *st, struct weir_event **slot)
{
	for (int i = 0; i < n_asks; i++) {
		struct weir_event *c = weir_event_new(st, &part_type);
		CU_ASSERT_PTR_NOT_NULL_FATAL(c);
		((struct part *)c)->number = i;
		weir_child(st, *slot, 0, &c);
	}
	weir_await_first(st, slot, answered);
	CU_ASSERT_PTR_NULL(*slot);
}

static void answered(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		struct job *j = (struct job *)ev[i];
		j->children = 0;
		for (struct weir_event *c = weir_ended(ev[i]); c; c = c->next, j->children++) {
			j->got = ((struct part *)c)->number;
			j->child_status = weir_child_status(c);
		}
		if (atomic_fetch_add(&j->rounds, 1) + 1 < n_rounds)
			ask(st, &ev[i]);
		else
			weir_event_finish(&ev[i], weir_ended_status(ev[i]));
	}
}

static void job_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		if (family)
			weir_family_join(family, ev[i]);
		ask(st, &ev[i]);
	}
}

static void ask_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		int what = does[((struct part *)ev[i])->number];
		if (what == DIES)
			pthread_exit(NULL);
		if (what == WAITS) {
			weir_hold_until(st, &ev[i], WEIR_NO_DEADLINE);
			atomic_fetch_add(&waiting, 1);
		} else {
			weir_event_finish(&ev[i], what == FAILS ? WEIR_EFAILED : WEIR_OK);
		}
	}
}

static const struct weir_stage_ops job_ops = {RIG_SPLITS(job_handle)};
static const struct weir_stage_ops ask_ops = {RIG_PARTS(ask_handle), .flags = WEIR_STAGE_HOLDS};

static struct weir_graph *graph;

static struct weir_spec *two_stages(void)
{
	struct weir_spec *spec = rig_two_stages();

	fixture_set(&spec->stages[0], "width.policy", "static");
	fixture_set(&spec->stages[0], "width.max", "10000");
	return spec;
}

static void begin(int asks, int a, int b, int c)
{
	memset(jobs, 0, sizeof(jobs));
	ended = asks_ended = asks_cancelled = waiting = 0;
	n_asks = asks;
	n_rounds = 1;
	does[0] = (unsigned)a;
	does[1] = (unsigned)b;
	does[2] = (unsigned)c;
	family = NULL;
}

static void run(struct weir_spec *spec, int n)
{
	graph = fixture_start(spec);
	rig_offer_jobs(graph, n);
}

/* All `n` jobs have ended, each with `status`, with child `got` (-1: any) as the only one. Every child
 * ends, too. */
static void check(int n, int status, int got)
{
	FIXTURE_AWAIT(atomic_load(&ended) == n);
	for (int i = 0; i < n; i++) {
		CU_ASSERT_EQUAL(atomic_load(&jobs[i].finishes), 1);
		CU_ASSERT_EQUAL(atomic_load(&jobs[i].rounds), n_rounds);
		CU_ASSERT_EQUAL(jobs[i].status, status);
		CU_ASSERT_EQUAL(jobs[i].children, 1);
		CU_ASSERT_EQUAL(jobs[i].child_status, status);
		CU_ASSERT(got < 0 || jobs[i].got == got);
	}
	FIXTURE_AWAIT(atomic_load(&asks_ended) == n * n_asks * n_rounds);
	FIXTURE_AWAIT(stage_view(graph, "part").in_flight == 0);
	struct weir_stage *job = weir_graph_stage(graph, "split");
	FIXTURE_AWAIT(queue_kept_all(&job->sink.queue) == 0);
	struct weir_stage_view v = stage_view(graph, "split");
	CU_ASSERT_EQUAL(v.spawned, (uint64_t)(n * n_asks * n_rounds));
	CU_ASSERT_EQUAL(v.joined + v.orphaned + v.cancelled, v.spawned);
	CU_ASSERT_EQUAL(v.joined, (uint64_t)(n * n_rounds));
	CU_ASSERT_EQUAL(v.cancelled, (uint64_t)atomic_load(&asks_cancelled));
	CU_ASSERT_EQUAL(v.awaiting, 0);
	CU_ASSERT_EQUAL(v.law_residual, 0);
	finish_graph(graph, 0);
}

/* The first child waits for ever; the answer of the second one is enough. */
static void test_hedge(void)
{
	begin(2, WAITS, WORKS, 0);
	run(two_stages(), 1);
	check(1, WEIR_OK, 1);
	CU_ASSERT_EQUAL(atomic_load(&asks_cancelled), 1);
}

static void test_hedges(void)
{
	begin(3, WAITS, FAILS, WORKS);
	run(two_stages(), JOBS);
	check(JOBS, WEIR_OK, 2);
}

/* All answer at the same time. */
static void test_race(void)
{
	begin(3, WORKS, WORKS, WORKS);
	n_rounds = 5;
	run(two_stages(), JOBS);
	check(JOBS, WEIR_OK, -1);
}

static void test_all_fail(void)
{
	begin(3, FAILS, FAILS, FAILS);
	n_rounds = 2;
	run(two_stages(), JOBS);
	check(JOBS, WEIR_EFAILED, -1);
}

static void test_one(void)
{
	begin(1, WORKS, 0, 0);
	run(two_stages(), JOBS);
	check(JOBS, WEIR_OK, 0);
	CU_ASSERT_EQUAL(atomic_load(&asks_cancelled), 0);
}

static void test_inline(void)
{
	for (int mask = 1; mask < 4; mask++) {
		struct weir_spec *spec = two_stages();
		spec->stages[0].inlined = mask & 1;
		spec->stages[1].inlined = mask & 2;
		begin(3, WAITS, FAILS, WORKS);
		run(spec, JOBS);
		check(JOBS, WEIR_OK, 2);
	}
}

static void test_core_group(void)
{
	struct weir_spec *spec = two_stages();
	struct weir_group_spec *g = weir_spec_add_group(spec, "core");

	weir_spec_text(&g->schedule, "wavefront");
	weir_spec_text(&g->cores, "2");
	for (int s = 0; s < 2; s++)
		weir_spec_text(&spec->stages[s].group, "core");
	begin(3, WAITS, FAILS, WORKS);
	run(spec, JOBS);
	check(JOBS, WEIR_OK, 2);
}

/* The thread of a child exits, with the other children that are in its batch. */
static void test_death(void)
{
	begin(2, DIES, WORKS, 0);
	run(two_stages(), 20);
	FIXTURE_AWAIT(atomic_load(&ended) == 20);
	for (int i = 0; i < 20; i++) {
		CU_ASSERT_EQUAL(jobs[i].children, 1);
		CU_ASSERT_EQUAL(jobs[i].child_status, jobs[i].status);
		CU_ASSERT(jobs[i].status == WEIR_EDIED || jobs[i].got == 1);
	}
	FIXTURE_AWAIT(stage_view(graph, "split").in_flight == 0);
	FIXTURE_AWAIT(stage_view(graph, "part").in_flight == 0);
	finish_graph(graph, 0);
}

/* The family of the jobs ends while all children wait: nobody gets an answer. */
static void test_family(void)
{
	begin(2, WAITS, WAITS, 0);
	family = weir_family_new(NULL);
	run(two_stages(), JOBS);
	FIXTURE_AWAIT(atomic_load(&waiting) == 2 * JOBS);
	weir_family_end(family);
	FIXTURE_AWAIT(atomic_load(&ended) == JOBS);
	for (int i = 0; i < JOBS; i++) {
		CU_ASSERT_EQUAL(jobs[i].status, WEIR_ECANCELLED);
		CU_ASSERT_EQUAL(atomic_load(&jobs[i].rounds), 0);
	}
	CU_ASSERT_EQUAL(atomic_load(&asks_cancelled), 2 * JOBS);
	FIXTURE_AWAIT(stage_view(graph, "split").in_flight == 0);
	finish_graph(graph, 0);
	CU_ASSERT_EQUAL(atomic_load(&family->refs), 1); /* that of the test */
	weir_family_put(family);
	family = NULL;
}

/* The families of the children are within that of their job, and keep it only until they are gone. */
static void test_released(void)
{
	begin(3, WAITS, FAILS, WORKS);
	n_rounds = 3;
	family = weir_family_new(NULL);
	run(two_stages(), JOBS);
	check(JOBS, WEIR_OK, 2);
	CU_ASSERT_EQUAL(atomic_load(&family->refs), 1);
	weir_family_put(family);
	family = NULL;
}

/* No children at all: the continuation comes at once. */
static void test_none(void)
{
	begin(0, 0, 0, 0);
	run(two_stages(), 10);
	FIXTURE_AWAIT(atomic_load(&ended) == 10);
	CU_ASSERT_EQUAL(jobs[0].status, WEIR_OK);
	CU_ASSERT_EQUAL(jobs[0].children, 0);
	FIXTURE_AWAIT(stage_view(graph, "split").in_flight == 0);
	finish_graph(graph, 0);
}

static void test_register(void)
{
	fixture_register(&job_ops);
	fixture_register(&ask_ops);
}

CUNIT_MAIN("op first", {"register", test_register}, {"hedge", test_hedge}, {"hedges", test_hedges},
    {"race", test_race}, {"all fail", test_all_fail}, {"one", test_one}, {"inline", test_inline},
    {"core group", test_core_group}, {"death", test_death}, {"family", test_family},
    {"released", test_released}, {"none", test_none})
