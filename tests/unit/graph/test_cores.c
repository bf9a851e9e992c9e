/* SPDX-License-Identifier: MIT */
/* Core groups: every schedule handles all events and counts them exactly; what stays on a core, what
 * goes through queues, and the bound of both; deadlines, pauses, deaths, and the end of a graph. */
#include "fixture/graph/probes.h"

#include "base/clock.h"
#include "base/task.h"
#include "event/local.h"
#include "graph/graph.h"
#include "sched/cores.h"

#define EVENTS 4000
/* seq of the event that ends its thread, or is too late. */
#define ODD 70

static void odd_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		if (((struct probe *)ev[i])->seq == ODD)
			pthread_exit(NULL);
		weir_emit(st, 0, &ev[i]);
	}
}

static const struct weir_stage_ops deadly_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.deadly",
    .summary = "passes on, ends its thread at one event",
    .accepts = &probe_type,
    .outlets = pass_outlets,
    .handle = odd_handle};

static void late_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		if (((struct probe *)ev[i])->seq == ODD)
			ev[i]->deadline_ns = 1;
		weir_emit(st, 0, &ev[i]);
	}
}

static const struct weir_stage_ops late_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.late",
    .summary = "passes on, one event too late",
    .accepts = &probe_type,
    .outlets = pass_outlets,
    .handle = late_handle};

static void gate_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	FIXTURE_AWAIT(atomic_load(&probe_gate));
	end_handle(st, ev, n);
}

/* Like t.gate, which core groups refuse, since it may block. */
static const struct weir_stage_ops wait_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.wait",
    .summary = "waits for the test",
    .accepts = &probe_type,
    .handle = gate_handle};

static struct weir_group_spec *group(struct weir_spec *spec, const char *schedule, int cores)
{
	struct weir_group_spec *g = weir_spec_add_group(spec, "core");
	char n[16];

	snprintf(n, sizeof(n), "%d", cores);
	weir_spec_text(&g->schedule, schedule);
	weir_spec_text(&g->cores, n);
	return g;
}

static struct weir_stage_spec *in_group(
    struct weir_spec *spec, const char *name, const char *use, const char *to)
{
	struct weir_stage_spec *s = fixture_stage(spec, name, use, to);

	weir_spec_text(&s->group, "core");
	weir_spec_text(&s->admission.policy, "none");
	fixture_set(s, "queue.limit", "20000"); /* so that all events fit into a cell */
	s->local = WEIR_LOCAL_ALWAYS;
	return s;
}

/* Stages a, b and c in a core group; b is of type `use`. There is no c if b ends the events. */
static struct weir_spec *chain(const char *schedule, int cores, const char *use)
{
	struct weir_spec *spec = weir_spec_new("cores");
	bool ends = strcmp(use, "t.wait") == 0;

	group(spec, schedule, cores);
	in_group(spec, "a", "t.pass", "b");
	in_group(spec, "b", use, ends ? NULL : "c");
	if (!ends)
		in_group(spec, "c", "t.end", NULL);
	return spec;
}

/* Number of batches that were taken from the queue of a stage. */
static uint32_t from_queue(struct weir_graph *g, const char *name)
{
	struct queue *q = &weir_graph_stage(g, name)->sink.queue;

	lock_take(&q->lock);
	uint32_t n = q->served;
	lock_release(&q->lock);
	return n;
}

static void offer(struct weir_graph *g, int n, int run)
{
	weir_thread_attach(g, "test");
	fixture_offer_all(weir_graph_stage(g, "a"), probes, n, run);
}

static void all_pass(struct weir_graph *g, const char *name, uint64_t n)
{
	FIXTURE_AWAIT(stage_view(g, name).class_view[0].completed == n);
	struct weir_stage_view v = stage_view(g, name);
	CU_ASSERT_EQUAL(v.class_view[0].offered, n);
	CU_ASSERT_EQUAL(v.in_flight, 0);
	CU_ASSERT_EQUAL(v.queue_length, 0);
}

static void finish(struct weir_graph *g, int n)
{
	FIXTURE_AWAIT(fixture_ended() == (uint64_t)n);
	check_each_once(n);
	weir_thread_detach();
	finish_graph(g, 0);
}

/* What the first core has done at a stage. */
static struct weir_core_view core_view(struct weir_graph *g, const char *name)
{
	struct weir_core_view core = {0};
	struct weir_graph_view *v;

	CU_ASSERT_EQUAL_FATAL(weir_graph_view(g, &v), 0);
	for (int i = 0; i < v->n_stages; i++)
		if (strcmp(v->stages[i].name, name) == 0) {
			CU_ASSERT_TRUE_FATAL(v->stages[i].n_cores > 0);
			core = v->stages[i].cores[0];
		}
	weir_graph_view_free(v);
	return core;
}

/* One core does everything; what comes from outside comes through the queue of a. */
static void check_one_core(struct weir_graph *g)
{
	struct weir_core_view a = core_view(g, "a"), b = core_view(g, "b");

	CU_ASSERT_EQUAL(a.events, EVENTS);
	CU_ASSERT_EQUAL(a.from_queue, EVENTS);
	CU_ASSERT_EQUAL(b.events, EVENTS);
	CU_ASSERT_EQUAL(b.from_queue, 0);
	CU_ASSERT_TRUE(b.visits > 0 && b.visits <= b.events);
	CU_ASSERT_EQUAL(b.urgent, 0);
	CU_ASSERT_EQUAL(b.dealt, 0);
	CU_ASSERT_EQUAL(b.waiting, 0);
	CU_ASSERT_EQUAL(b.oldest_wait_ns, 0);
}

static void run_schedule(const char *schedule, int cores, int run)
{
	prepare(EVENTS);
	struct weir_graph *g = fixture_start(chain(schedule, cores, "t.pass"));
	offer(g, EVENTS, run);
	FIXTURE_AWAIT(fixture_ended() == EVENTS);
	all_pass(g, "b", EVENTS);
	all_pass(g, "c", EVENTS);
	if (cores == 1) { /* nobody to deal to: everything stays */
		CU_ASSERT_EQUAL(from_queue(g, "b"), 0);
		CU_ASSERT_EQUAL(from_queue(g, "c"), 0);
		check_one_core(g);
	}
	finish(g, EVENTS);
}

static void test_schedules(void)
{
	for (int i = 0; next_policy_at(i); i++) {
		run_schedule(next_policy_at(i)->name, 1, 64);
		run_schedule(next_policy_at(i)->name, 1, 1);
		if (task_cores() > 1) {
			run_schedule(next_policy_at(i)->name, 2, 64);
			run_schedule(next_policy_at(i)->name, 2, 1);
		}
	}
}

/* Both stages are urgent with one event. */
static void test_urgent(void)
{
	struct weir_spec *spec = chain("fifo", 1, "t.pass");

	prepare(EVENTS);
	fixture_set(&spec->stages[1], "urgent.events", "1");
	fixture_set(&spec->stages[2], "urgent.events", "1");
	struct weir_graph *g = fixture_start(spec);
	offer(g, EVENTS, 64);
	FIXTURE_AWAIT(fixture_ended() == EVENTS);
	all_pass(g, "c", EVENTS);
	struct weir_core_view a = core_view(g, "a"), b = core_view(g, "b");
	CU_ASSERT_EQUAL(a.urgent, 0);
	CU_ASSERT_TRUE(b.visits > 0);
	CU_ASSERT_EQUAL(b.urgent, b.visits);
	finish(g, EVENTS);
}

/* A batch of 20 for a limit of 8: half of it is the cell's, the other half the queue's. */
static void test_bound(void)
{
	struct weir_spec *spec = chain("fifo", 1, "t.pass");

	prepare(20);
	fixture_set(&spec->stages[0], "cohort.max", "20");
	fixture_set(&spec->stages[0], "local", "auto");       /* it lingers */
	fixture_set(&spec->stages[0], "cohort.linger", "1s"); /* so that the batch is full */
	fixture_set(&spec->stages[1], "queue.limit", "8");
	struct weir_graph *g = fixture_start(spec);
	offer(g, 20, 20);
	FIXTURE_AWAIT(fixture_ended() == 20);
	CU_ASSERT_EQUAL(atomic_load(&fixture_done), 8);
	CU_ASSERT_EQUAL(atomic_load(&fixture_shed), 12);
	CU_ASSERT_EQUAL(probes[0].status, WEIR_OK);
	CU_ASSERT_EQUAL(probes[8].status, WEIR_EQUEUE);
	CU_ASSERT_TRUE(from_queue(g, "b") > 0);
	finish(g, 20);
}

static void test_deadline(void)
{
	struct weir_spec *spec = chain("fifo", 1, "t.late");

	prepare(200);
	struct weir_graph *g = fixture_start(spec);
	offer(g, 200, 100);
	FIXTURE_AWAIT(fixture_ended() == 200);
	CU_ASSERT_EQUAL(probes[ODD].status, WEIR_EDEADLINE);
	CU_ASSERT_EQUAL(atomic_load(&fixture_done), 199);
	struct weir_stage_view v = stage_view(g, "c");
	CU_ASSERT_EQUAL(v.class_view[0].offered, 200);
	CU_ASSERT_EQUAL(v.class_view[0].completed, 199);
	finish(g, 200);
}

static void test_death(void)
{
	weir_log_set_fd(-1); /* the death is logged */
	prepare(1000);
	struct weir_graph *g = fixture_start(chain("fifo", 1, "t.deadly"));
	offer(g, 1000, 100);
	FIXTURE_AWAIT(fixture_ended() == 1000);
	CU_ASSERT_EQUAL(probes[ODD].status, WEIR_EDIED);
	CU_ASSERT_EQUAL(stage_view(g, "b").thread_deaths, 1);
	finish(g, 1000);
	weir_log_set_fd(2);
}

/* Begin with the only core in a call of b, which waits for the gate, and the rest of a batch of 100
 * in the cell of b. */
static struct weir_graph *hold_core(void)
{
	struct weir_spec *spec = chain("fifo", 1, "t.wait");

	spec->groups[0].starve_ns = 1;
	prepare(100);
	atomic_store(&probe_gate, 0);
	fixture_set(&spec->stages[0], "cohort.max", "100");
	fixture_set(&spec->stages[0], "local", "auto"); /* it lingers */
	fixture_set(&spec->stages[0], "cohort.linger", "1s");
	fixture_set(&spec->stages[1], "cohort.max", "1");
	struct weir_graph *g = fixture_start(spec);
	offer(g, 100, 100);
	FIXTURE_AWAIT(stage_view(g, "b").queue_length == 99);
	return g;
}

/* The events in the cell of b are listed, while its core is parked; and those in its queue. */
static void look_into(struct weir_graph *g)
{
	struct weir_queued q[100];

	FIXTURE_AWAIT(weir_graph_queue(g, "b", q, 100) == 99);
	for (int i = 1; i < 99; i++)
		CU_ASSERT_TRUE(q[i].age_ns <= q[i - 1].age_ns);
	CU_ASSERT_STRING_EQUAL(q[98].type, "probe");
	CU_ASSERT_STRING_EQUAL(q[98].class_name, "default");
	FIXTURE_AWAIT(weir_graph_queue(g, "b", q, 7) == 7);
	CU_ASSERT_EQUAL(weir_graph_queue(g, "c", q, 7), WEIR_ENOENT);
}

static void test_pause(void)
{
	struct weir_graph *g = hold_core();
	char why[200] = "";
	struct weir_queued q[2];

	CU_ASSERT_EQUAL(sink_in_cells(&weir_graph_stage(g, "b")->sink), 99);
	CU_ASSERT_EQUAL(weir_graph_steer(g, "b", WEIR_STEER_PAUSE, why, sizeof(why)), 0);
	/* its core does not answer while it is in the handler */
	CU_ASSERT_EQUAL(weir_graph_queue(g, "b", q, 2), 0);
	atomic_store(&probe_gate, 1);
	FIXTURE_AWAIT(stage_view(g, "b").threads[WEIR_THREAD_IDLE] == 1);
	CU_ASSERT_EQUAL(fixture_ended(), 1);
	look_into(g);
	CU_ASSERT_EQUAL(stage_view(g, "b").queue_length, 99);
	CU_ASSERT_TRUE(stage_view(g, "b").oldest_wait_ns > 0);
	CU_ASSERT_EQUAL(core_view(g, "b").waiting, 99);
	CU_ASSERT_TRUE(core_view(g, "b").oldest_wait_ns > 0);
	uint64_t starved = core_view(g, "b").starved;
	CU_ASSERT_EQUAL(stage_view(g, "a").oldest_wait_ns, 0);
	CU_ASSERT_EQUAL(weir_graph_steer(g, "b", WEIR_STEER_RUN, why, sizeof(why)), 0);
	FIXTURE_AWAIT(fixture_ended() == 100);
	CU_ASSERT_TRUE(core_view(g, "b").starved > starved);
	finish(g, 100);
}

static bool is_closed(struct weir_graph *g)
{
	struct queue *q = &weir_graph_stage(g, "b")->sink.queue;

	lock_take(&q->lock);
	bool closed = q->closed;
	lock_release(&q->lock);
	return closed;
}

static void *open_when_closed(void *arg)
{
	FIXTURE_AWAIT(is_closed(arg));
	atomic_store(&probe_gate, 1);
	return NULL;
}

/* A drain without time: what waits in cells ends as well. */
static void test_no_grace(void)
{
	struct weir_graph *g = hold_core();
	struct weir_drain_report r;
	pthread_t opener;

	weir_thread_detach();
	pthread_create(&opener, NULL, open_when_closed, g);
	weir_graph_drain(g, 0, &r);
	pthread_join(opener, NULL);
	CU_ASSERT_EQUAL(r.law_error, 0);
	CU_ASSERT_EQUAL(r.left, 0);
	CU_ASSERT_EQUAL(fixture_ended(), 100);
	CU_ASSERT_EQUAL(r.closed, 100 - atomic_load(&fixture_done));
	check_each_once(100);
	weir_graph_free(g);
}

/* Stages that have no cells: exclusive ones, and those with cohorts by key. */
static void test_by_queue(void)
{
	struct weir_spec *spec = chain("wavefront", 1, "t.pass");

	prepare(EVENTS);
	spec->stages[1].local = spec->stages[2].local = WEIR_LOCAL_AUTO;
	spec->stages[1].mode = WEIR_MODE_EXCLUSIVE;
	weir_spec_text(&spec->stages[2].cohort.by, "producer");
	struct weir_graph *g = fixture_start(spec);
	CU_ASSERT_PTR_NULL(weir_graph_stage(g, "b")->sink.cells);
	CU_ASSERT_PTR_NULL(weir_graph_stage(g, "c")->sink.cells);
	offer(g, EVENTS, 64);
	FIXTURE_AWAIT(fixture_ended() == EVENTS);
	CU_ASSERT_TRUE(from_queue(g, "b") > 0 && from_queue(g, "c") > 0);
	finish(g, EVENTS);
}

static atomic_int pass_gate;

static void held_pass_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	FIXTURE_AWAIT(atomic_load(&pass_gate));
	pass_handle(st, ev, n);
}

static const struct weir_stage_ops held_pass_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.held-pass",
    .summary = "passes on when the test allows it",
    .accepts = &probe_type,
    .outlets = pass_outlets,
    .handle = held_pass_handle};

static void offer_to(struct weir_graph *g, const char *name, int first, int n)
{
	fixture_offer_all(weir_graph_stage(g, name), &probes[first], n, n);
}

static bool runs(struct weir_graph *g, const char *name)
{
	return stage_view(g, name).longest_running_ns > 0;
}

static bool has_left(struct pool *pool, int rank)
{
	const struct handler *h = atomic_load(&pool->handler[rank]);

	return h && atomic_load(&h->slot) == HANDLER_EMPTY;
}

/* The first core waits in w, the second in a, when the group is to have one core from now on. Its
 * cells have half of the limit of b, and the queue is full: the event that the second core sends then
 * is refused, since its cell has no share any more. */
static void test_bound_of_leaver(void)
{
	struct weir_spec *spec = weir_spec_new("leaver");

	if (task_cores() < 2) {
		weir_spec_free(spec);
		return;
	}
	weir_spec_text(&group(spec, "fifo", 2)->cores, "1..2");
	weir_spec_text(&spec->groups[0].threads.policy, "static");
	in_group(spec, "w", "t.wait", NULL);
	in_group(spec, "a", "t.held-pass", "b");
	fixture_set(in_group(spec, "b", "t.end", NULL), "queue.limit", "8");
	prepare(6);
	atomic_store(&probe_gate, 0);
	atomic_store(&pass_gate, 0);
	struct weir_graph *g = fixture_start(spec);
	struct pool *pool = weir_graph_stage(g, "b")->pool;
	weir_thread_attach(g, "test");
	offer_to(g, "w", 0, 1);
	FIXTURE_AWAIT(runs(g, "w"));
	pool_set_target(pool, 2);
	offer_to(g, "a", 1, 1);
	FIXTURE_AWAIT(runs(g, "a"));
	lock_take(&g->lock);
	cores_bound(pool->cores, 1, 1);
	lock_release(&g->lock);
	offer_to(g, "b", 2, 4);
	CU_ASSERT_EQUAL(stage_view(g, "b").queue_length, 4);
	atomic_store(&pass_gate, 1);
	FIXTURE_AWAIT(has_left(pool, 1));
	CU_ASSERT_EQUAL(stage_view(g, "b").queue_length, 4);
	atomic_store(&probe_gate, 1);
	FIXTURE_AWAIT(fixture_ended() == 6);
	CU_ASSERT_EQUAL(probes[1].status, WEIR_EQUEUE);
	CU_ASSERT_EQUAL(atomic_load(&fixture_done), 5);
	finish(g, 6);
}

static void test_types(void)
{
	fixture_register(&held_pass_ops);
	fixture_register(&pass_ops);
	fixture_register(&end_ops);
	fixture_register(&wait_ops);
	fixture_register(&deadly_ops);
	fixture_register(&late_ops);
}

CUNIT_MAIN("cores", {"types are known", test_types}, {"schedules", test_schedules},
    {"urgent", test_urgent}, {"bound", test_bound}, {"deadline", test_deadline},
    {"death", test_death}, {"pause", test_pause}, {"no grace", test_no_grace},
    {"by queue", test_by_queue}, {"bound of a core that leaves", test_bound_of_leaver})
