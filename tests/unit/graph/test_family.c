/* SPDX-License-Identifier: MIT */
/* Families: what waits with a ticket ends with its family, not with its deadline; a stage that lets an
 * event wait when its family has ended already; and families within others. */
#include "fixture/graph/probes.h"

#include "base/clock.h"
#include "event/op.h"
#include "graph/graph.h"
#include "graph/tickets.h"

#define JOBS 300
#define HOUR (3600 * NS_PER_S)

struct job {
	struct weir_event ev;
	struct weir_op op;
	int status;
	atomic_int finishes;
};

static struct job jobs[JOBS];
static _Atomic uint64_t tickets[JOBS];
static atomic_int ended, waits, gave_back, continued, calls_after;
/* set before the family ends: the stage must not get its events any more */
static atomic_bool is_over, ends_in_handler;
static struct weir_family *family;
static struct weir_graph *graph;
static struct weir_stage *stage;

static void job_finish(struct weir_event *ev, int status)
{
	struct job *j = (struct job *)ev;

	j->status = status;
	atomic_fetch_add(&j->finishes, 1);
	atomic_fetch_add(&ended, 1);
}

static const struct weir_event_type job_type = {.name = "t.job",
    .size = sizeof(struct job),
    .finish = job_finish,
    .op = offsetof(struct job, op)};

static void go_on(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	atomic_fetch_add(&continued, n);
	for (int i = 0; i < n; i++)
		weir_event_finish(&ev[i], WEIR_OK);
}

/* End the family, and wait until the search for its members is over. A tick that has begun before may not
 * have seen the end, so the second one is awaited. */
static void end_and_search(void)
{
	weir_family_end(family);
	for (int i = 0; i < 2; i++) {
		int64_t now_ns = clock_now_ns();
		FIXTURE_AWAIT(weir_graph_tick_ns(graph) > now_ns);
	}
}

static void wait_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		int at = (int)((struct job *)ev[i] - jobs);
		if (atomic_load(&is_over) && weir_family_of(ev[i]))
			atomic_fetch_add(&calls_after, 1);
		if (atomic_load(&ends_in_handler))
			end_and_search();
		uint64_t ticket = weir_wait(st, &ev[i], go_on, WEIR_NO_DEADLINE);
		CU_ASSERT_PTR_NULL(ev[i]);
		CU_ASSERT_NOT_EQUAL(ticket, 0);
		atomic_store(&tickets[at], ticket);
		atomic_fetch_add(&waits, 1);
	}
}

static void wait_expired(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	(void)ev;
	atomic_fetch_add(&gave_back, n);
}

static const struct weir_stage_ops wait_ops = {.abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_HOLDS,
    .name = "t.wait",
    .summary = "waits with a ticket",
    .accepts = &job_type,
    .handle = wait_handle,
    .expired = wait_expired};
static const struct weir_stage_ops loop_ops = {.abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_HOLDS | WEIR_STAGE_LOOP,
    .name = "t.loop",
    .summary = "waits with a ticket, in a loop",
    .accepts = &job_type,
    .handle = wait_handle,
    .expired = wait_expired};

static struct weir_spec *one_stage(const char *use)
{
	struct weir_spec *spec = weir_spec_new("family");
	struct weir_stage_spec *s = fixture_stage(spec, "wait", use, NULL);

	fixture_set(s, "queue.limit", "20000");
	fixture_set(s, "width.policy", "static");
	fixture_set(s, "width.max", "1000");
	weir_spec_text(&s->admission.policy, "none");
	return spec;
}

static void begin(struct weir_spec *spec)
{
	memset(jobs, 0, sizeof(jobs));
	memset(tickets, 0, sizeof(tickets));
	ended = waits = gave_back = continued = calls_after = 0;
	atomic_store(&is_over, false);
	atomic_store(&ends_in_handler, false);
	graph = fixture_start(spec);
	stage = weir_graph_stage(graph, "wait");
	weir_thread_attach(graph, "test");
	family = weir_family_new(NULL);
}

static void offer(int i, struct weir_family *f)
{
	struct weir_event *ev = &jobs[i].ev;

	weir_event_init(ev, &job_type, clock_now_ns());
	ev->key = (uint64_t)i;
	ev->deadline_ns = ev->arrival_ns + HOUR;
	weir_family_join(f, ev);
	while (weir_offer(stage, &ev, 1, NULL) == 0)
		sched_yield();
}

static void end(void)
{
	struct weir_stage_view v = stage_view(graph, "wait");

	CU_ASSERT_EQUAL(v.in_flight, 0);
	CU_ASSERT_EQUAL(v.held, 0);
	CU_ASSERT_EQUAL(v.law_residual, 0);
	CU_ASSERT_EQUAL(graph_tickets_out(stage), 0);
	CU_ASSERT_EQUAL(atomic_load(&calls_after), 0);
	for (int i = 0; i < JOBS; i++)
		CU_ASSERT(atomic_load(&jobs[i].finishes) <= 1);
	weir_thread_detach();
	finish_graph(graph, 0);
	CU_ASSERT_EQUAL(atomic_load(&family->refs), 1); /* that of the test */
	weir_family_put(family);
}

/* Half of the events are in a family that ends. The others wait on. */
static void half(struct weir_spec *spec)
{
	begin(spec);
	for (int i = 0; i < JOBS; i++)
		offer(i, i % 2 ? family : NULL);
	FIXTURE_AWAIT(atomic_load(&waits) == JOBS);
	atomic_store(&is_over, true);
	weir_family_end(family);
	FIXTURE_AWAIT(atomic_load(&ended) == JOBS / 2);
	for (int i = 0; i < JOBS; i++) {
		CU_ASSERT_EQUAL(atomic_load(&jobs[i].finishes), i % 2);
		CU_ASSERT_EQUAL(jobs[i].status, i % 2 ? WEIR_ECANCELLED : 0);
		CU_ASSERT_EQUAL(weir_resume(stage, atomic_load(&tickets[i])), i % 2 == 0);
	}
	weir_thread_flush();
	FIXTURE_AWAIT(atomic_load(&ended) == JOBS);
	CU_ASSERT_EQUAL(atomic_load(&continued), JOBS / 2);
	CU_ASSERT_EQUAL(atomic_load(&gave_back), 0);
	FIXTURE_AWAIT(stage_view(graph, "wait").in_flight == 0);
	end();
}

static void test_pool(void)
{
	half(one_stage("t.wait"));
}

static void test_loop(void)
{
	half(one_stage("t.loop"));
}

static void test_inline(void)
{
	struct weir_spec *spec = one_stage("t.wait");

	spec->stages[0].inlined = true;
	half(spec);
}

static void test_partitioned(void)
{
	struct weir_spec *spec = one_stage("t.wait");

	spec->stages[0].mode = WEIR_MODE_PARTITIONED;
	weir_spec_text(&spec->stages[0].key, "event");
	fixture_set(&spec->stages[0], "threads.max", "3");
	half(spec);
}

static void test_core(void)
{
	struct weir_spec *spec = one_stage("t.wait");
	struct weir_group_spec *group = weir_spec_add_group(spec, "core");

	weir_spec_text(&group->schedule, "wavefront");
	weir_spec_text(&group->cores, "2");
	weir_spec_text(&spec->stages[0].group, "core");
	half(spec);
}

/* The family ends while the stage has the event, which then waits: no search comes later. */
static void test_too_late(void)
{
	begin(one_stage("t.wait"));
	/* the search for this end comes first */
	struct weir_family *other = weir_family_new(NULL);
	weir_family_end(other);
	weir_family_put(other);
	int64_t now_ns = clock_now_ns();
	FIXTURE_AWAIT(weir_graph_tick_ns(graph) > now_ns);
	atomic_store(&ends_in_handler, true);
	offer(0, family);
	FIXTURE_AWAIT(atomic_load(&ended) == 1);
	CU_ASSERT_EQUAL(jobs[0].status, WEIR_ECANCELLED);
	FIXTURE_AWAIT(atomic_load(&waits) == 1);
	CU_ASSERT_FALSE(weir_resume(stage, atomic_load(&tickets[0])));
	FIXTURE_AWAIT(stage_view(graph, "wait").in_flight == 0);
	end();
}

/* A family ends with the family that contains it, not the other way round. */
/* A family is over if one that contains it is, at any distance, and not if one within it is. */
static void test_levels(void)
{
	struct weir_family *f[4] = {NULL};

	for (int over = 1; over < 4; over++) {
		for (int i = 1; i < 4; i++)
			f[i] = weir_family_new(f[i - 1]);
		weir_family_end(f[over]);
		for (int i = 1; i < 4; i++)
			CU_ASSERT_EQUAL(weir_family_over(f[i]), i >= over);
		/* the outer ones live on in the inner one */
		for (int i = 1; i < 4; i++)
			weir_family_put(f[i]);
	}
	CU_ASSERT_FALSE(weir_family_over(NULL));
}

static void test_within(void)
{
	begin(one_stage("t.wait"));
	struct weir_family *inner = weir_family_new(family);
	struct weir_family *innermost = weir_family_new(inner);
	offer(0, family);
	offer(1, inner);
	offer(2, innermost);
	FIXTURE_AWAIT(atomic_load(&waits) == 3);
	weir_family_end(innermost);
	FIXTURE_AWAIT(atomic_load(&jobs[2].finishes) == 1);
	CU_ASSERT_FALSE(weir_family_over(inner));
	CU_ASSERT(weir_family_over(innermost));
	weir_family_end(family);
	CU_ASSERT(weir_family_over(inner));
	weir_family_put(innermost);
	weir_family_put(inner);
	FIXTURE_AWAIT(atomic_load(&ended) == 3);
	CU_ASSERT_EQUAL(jobs[0].status, WEIR_ECANCELLED);
	CU_ASSERT_EQUAL(jobs[1].status, WEIR_ECANCELLED);
	FIXTURE_AWAIT(stage_view(graph, "wait").in_flight == 0);
	end();
}

/* Families end, and events are resumed, at the same time: each event ends once. */
static void test_race(void)
{
	begin(one_stage("t.wait"));
	for (int round = 0; round < 20; round++) {
		struct weir_family *f[10];
		atomic_store(&ended, 0);
		atomic_store(&waits, 0);
		for (int i = 0; i < JOBS; i++)
			atomic_store(&jobs[i].finishes, 0);
		for (int k = 0; k < 10; k++)
			f[k] = weir_family_new(k % 2 ? family : NULL);
		for (int i = 0; i < JOBS; i++)
			offer(i, f[i % 10]);
		for (int k = 0; k < 10; k++) {
			weir_family_end(f[k]);
			weir_family_put(f[k]);
		}
		while (atomic_load(&ended) < JOBS) {
			for (int i = 0; i < JOBS; i++)
				weir_resume(stage, atomic_load(&tickets[i]));
			weir_thread_flush();
		}
		FIXTURE_AWAIT(stage_view(graph, "wait").in_flight == 0);
	}
	end();
}

/* Events in a queue end when they leave it, and are not handled. */
static void test_queued(void)
{
	char why[200] = "";

	begin(one_stage("t.wait"));
	CU_ASSERT_EQUAL(weir_graph_steer(graph, "wait", WEIR_STEER_PAUSE, why, sizeof(why)), 0);
	for (int i = 0; i < JOBS; i++)
		offer(i, i % 2 ? family : NULL);
	atomic_store(&is_over, true);
	weir_family_end(family);
	CU_ASSERT_EQUAL(weir_graph_steer(graph, "wait", WEIR_STEER_RUN, why, sizeof(why)), 0);
	FIXTURE_AWAIT(atomic_load(&ended) == JOBS / 2);
	FIXTURE_AWAIT(atomic_load(&waits) == JOBS / 2);
	for (int i = 0; i < JOBS; i++)
		CU_ASSERT_EQUAL(weir_resume(stage, atomic_load(&tickets[i])), i % 2 == 0);
	weir_thread_flush();
	FIXTURE_AWAIT(atomic_load(&ended) == JOBS);
	FIXTURE_AWAIT(stage_view(graph, "wait").in_flight == 0);
	end();
}

/* The slots of tickets that have ended with their families are used again. */
static void test_slots(void)
{
	int chunks = 0;

	begin(one_stage("t.wait"));
	for (int round = 0; round < 20; round++) {
		struct weir_family *f = weir_family_new(NULL);
		atomic_store(&ended, 0);
		atomic_store(&waits, 0);
		for (int i = 0; i < JOBS; i++)
			atomic_store(&jobs[i].finishes, 0);
		for (int i = 0; i < JOBS; i++)
			offer(i, f);
		FIXTURE_AWAIT(atomic_load(&waits) == JOBS);
		weir_family_end(f);
		FIXTURE_AWAIT(atomic_load(&ended) == JOBS);
		weir_family_put(f);
		lock_take(&stage->tickets->lock);
		if (round == 1)
			chunks = stage->tickets->n_chunks;
		CU_ASSERT(round < 2 || stage->tickets->n_chunks <= chunks + 1);
		lock_release(&stage->tickets->lock);
	}
	FIXTURE_AWAIT(stage_view(graph, "wait").in_flight == 0);
	end();
}

static void test_register(void)
{
	fixture_register(&wait_ops);
	fixture_register(&loop_ops);
}

CUNIT_MAIN("family", {"register", test_register}, {"pool", test_pool}, {"loop", test_loop},
    {"inline", test_inline}, {"partitioned", test_partitioned}, {"core", test_core},
    {"too late", test_too_late}, {"levels", test_levels}, {"within", test_within},
    {"race", test_race}, {"queued", test_queued}, {"slots", test_slots})
