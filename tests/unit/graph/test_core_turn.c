/* SPDX-License-Identifier: MIT */
/* Core groups: what a core takes first, and when it sleeps. */
#include "fixture/graph/probes.h"

#include "graph/graph.h"
#include "sched/cores.h"

/* Number of calls of t.wait. */
static atomic_int n_calls;

static void gate_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	atomic_fetch_add(&n_calls, 1);
	FIXTURE_AWAIT(atomic_load(&probe_gate));
	end_handle(st, ev, n);
}

/* Like t.gate, which core groups refuse, since it may block. */
static const struct weir_stage_ops wait_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.wait",
    .summary = "waits for the test",
    .accepts = &probe_type,
    .handle = gate_handle};

static struct weir_spec *spec_new(const char *schedule, int cores)
{
	struct weir_spec *spec = weir_spec_new("turn");
	struct weir_group_spec *g = weir_spec_add_group(spec, "core");
	char n[16];

	snprintf(n, sizeof(n), "%d", cores);
	weir_spec_text(&g->schedule, schedule);
	weir_spec_text(&g->cores, n);
	return spec;
}

static struct weir_stage_spec *in_group(
    struct weir_spec *spec, const char *name, const char *use, const char *to)
{
	struct weir_stage_spec *s = fixture_stage(spec, name, use, to);

	weir_spec_text(&s->group, "core");
	weir_spec_text(&s->admission.policy, "none");
	s->local = WEIR_LOCAL_ALWAYS;
	return s;
}

static void offer(struct weir_graph *g, const char *name, int first, int n)
{
	fixture_offer_all(weir_graph_stage(g, name), &probes[first], n, n);
}

static struct weir_graph *start(struct weir_spec *spec)
{
	struct weir_graph *g = fixture_start(spec);

	weir_thread_attach(g, "test");
	return g;
}

static void finish(struct weir_graph *g, int n)
{
	FIXTURE_AWAIT(fixture_ended() == (uint64_t)n);
	check_each_once(n);
	weir_thread_detach();
	finish_graph(g, 0);
}

/* ---- lingering ---- */

/* Whether all `n` threads of the pool are parked, and as many as `lingering` wait until a batch of
 * the stage is due. A parked thread does not change what is read here. */
static bool all_parked(const struct sink *s, int n, int lingering)
{
	struct pool *pool = s->pool;
	int parked = 0, linger = 0;

	lock_take(&pool->lock);
	for (int k = 0; k < n; k++) {
		const struct handler *h = atomic_load(&pool->handler[k]);
		if (!h || !h->listed)
			continue;
		parked++;
		linger += h->ready_ns[s->place] != INT64_MAX;
	}
	lock_release(&pool->lock);
	return parked == n && linger == lingering;
}

/* Both cores wait until the batch of a is due. One is then in a call of w, the other takes the
 * event. The first must not go on to wait for it. */
static void test_linger(void)
{
	struct weir_spec *spec = spec_new("fifo", 2);
	struct weir_stage_spec *a = in_group(spec, "a", "t.end", NULL); /* until the next stage */

	fixture_set(a, "cohort.max", "2");
	a->local = WEIR_LOCAL_AUTO; /* it lingers */
	fixture_set(a, "cohort.linger", "500ms");
	in_group(spec, "w", "t.wait", NULL);
	prepare(2);
	atomic_store(&probe_gate, 0);
	struct weir_graph *g = start(spec);
	struct sink *sink = &weir_graph_stage(g, "a")->sink;
	struct pool *pool = sink->pool;
	FIXTURE_AWAIT(all_parked(sink, 2, 0));
	offer(g, "a", 0, 1);
	pool_wake_all(pool);
	FIXTURE_AWAIT(all_parked(sink, 2, 2) || fixture_ended() == 1);
	offer(g, "w", 1, 1);
	FIXTURE_AWAIT(fixture_ended() == 1);
	FIXTURE_AWAIT(!(atomic_load(&pool->cores->arrived) >> sink->place & 1));
	atomic_store(&probe_gate, 1);
	FIXTURE_AWAIT(fixture_ended() == 2);
	FIXTURE_AWAIT(all_parked(sink, 2, 0));
	finish(g, 2);
}

/* A core of two waits until the batch of a is due, and is then in a call of w: the other one must wait in
 * its place. */
static void test_minder_is_replaced(void)
{
	struct weir_spec *spec = spec_new("fifo", 2);
	struct weir_stage_spec *a = in_group(spec, "a", "t.end", NULL);

	a->local = WEIR_LOCAL_AUTO;
	fixture_set(a, "cohort.linger", "200ms");
	in_group(spec, "w", "t.wait", NULL);
	prepare(2);
	atomic_store(&probe_gate, 0);
	struct weir_graph *g = start(spec);
	struct sink *sink = &weir_graph_stage(g, "a")->sink;
	FIXTURE_AWAIT(all_parked(sink, 2, 0));
	offer(g, "a", 0, 1);
	/* both may wait for it, if both were awake */
	FIXTURE_AWAIT(all_parked(sink, 2, 1) || all_parked(sink, 2, 2) || fixture_ended() == 1);
	offer(g, "w", 1, 1); /* wakes the core that parked last, which minds a */
	FIXTURE_AWAIT(fixture_ended() == 1);
	atomic_store(&probe_gate, 1);
	finish(g, 2);
}

/* A shorter time holds for events that wait, too. */
static void shorten(struct weir_spec *spec)
{
	char why[200];
	struct weir_graph *g = start(spec);
	struct weir_stage *a = weir_graph_stage(g, "a");

	prepare(2);
	atomic_store(&a->sink.linger_ns, 3600 * NS_PER_S);
	offer(g, "a", 0, 1);
	FIXTURE_AWAIT(all_parked(&a->sink, 2, 1) || all_parked(&a->sink, 2, 2));
	CU_ASSERT_EQUAL(weir_graph_set(g, "a", "cohort.linger", "1ms", why, sizeof(why)), 0);
	FIXTURE_AWAIT(fixture_ended() == 1);
	FIXTURE_AWAIT(all_parked(&a->sink, 2, 0));
	finish(g, 1);
}

static void test_linger_shortened(void)
{
	struct weir_spec *spec = spec_new("fifo", 2);

	fixture_set(in_group(spec, "a", "t.end", NULL), "cohort.linger", "1s");
	spec->stages[0].local = WEIR_LOCAL_AUTO;
	shorten(spec);
	spec = weir_spec_new("pool");
	struct weir_stage_spec *a = fixture_stage(spec, "a", "t.end", NULL);
	fixture_set(a, "cohort.linger", "1s");
	fixture_set(a, "threads.min", "2");
	fixture_set(a, "threads.max", "2");
	shorten(spec);
}

/* ---- classes ---- */

/* What the events have ended before: the number of low ones that ended before the high one. */
static atomic_int n_low, low_before;

static void note_end(struct probe *p, int status)
{
	(void)status;
	if (p->ev.class_id == 0)
		atomic_store(&low_before, atomic_load(&n_low));
	else
		atomic_fetch_add(&n_low, 1);
}

/* One core: a sends to b, which waits for the gate in each call. Events are of the low class, except
 * the last of 51. */
static struct weir_graph *start_classed(bool linger)
{
	struct weir_spec *spec = spec_new("wavefront", 1);

	spec->groups[0].gate.events = linger ? 0 : 1; /* 1: a and b take turns */

	weir_spec_add_class(spec, "high");
	weir_spec_add_class(spec, "low");
	struct weir_stage_spec *a = in_group(spec, "a", "t.pass", "b");
	fixture_set(a, "cohort.max", "50");
	if (linger) {
		a->local = WEIR_LOCAL_AUTO;
		fixture_set(a, "cohort.linger", "1s"); /* so that the batch is full */
	}
	fixture_set(in_group(spec, "b", "t.wait", NULL), "cohort.max", "1");
	prepare(51);
	atomic_store(&probe_gate, 0);
	atomic_store(&n_low, 0);
	atomic_store(&low_before, -1);
	fixture_on_finish = note_end;
	atomic_store(&n_calls, 0);
	return start(spec);
}

static void offer_class(struct weir_graph *g, const char *name, int first, int n, int class_id)
{
	struct weir_event *ev[WEIR_BATCH_MAX];

	for (int i = 0; i < n; i++) {
		ev[i] = &probes[first + i].ev;
		weir_event_init(ev[i], &probe_type, 1);
		ev[i]->class_id = (uint8_t)class_id;
	}
	CU_ASSERT_EQUAL_FATAL(weir_offer(weir_graph_stage(g, name), ev, n, NULL), n);
}

/* The high event waits in the queue of b, the low ones in the cell. */
static void test_high_queued(void)
{
	struct weir_graph *g = start_classed(true);

	offer_class(g, "a", 0, 50, 1);
	FIXTURE_AWAIT(atomic_load(&n_calls) == 1);
	CU_ASSERT_EQUAL(sink_in_cells(&weir_graph_stage(g, "b")->sink), 49);
	offer_class(g, "b", 50, 1, 0);
	atomic_store(&probe_gate, 1);
	FIXTURE_AWAIT(fixture_ended() == 51);
	CU_ASSERT_EQUAL(atomic_load(&low_before), 1);
	finish(g, 51);
}

/* The high event waits in the cell of b, the low ones in its queue: while the core is in a call of
 * b, the high one comes to a, and low events to b. */
static void test_high_in_cell(void)
{
	struct weir_graph *g = start_classed(false);

	offer_class(g, "b", 0, 1, 1);
	FIXTURE_AWAIT(atomic_load(&n_calls) == 1);
	offer_class(g, "a", 50, 1, 0);
	offer_class(g, "b", 1, 49, 1);
	atomic_store(&probe_gate, 1);
	FIXTURE_AWAIT(fixture_ended() == 51);
	CU_ASSERT_TRUE(atomic_load(&low_before) <= 2);
	finish(g, 51);
}

/* ---- age ---- */

/* Number of events that were not the oldest that their core knew of. */
static atomic_int n_misjudged;

static void age_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	int64_t oldest_ns = thread_self()->core->view[st->sink.place].oldest_ns;

	/* at the first call, the core may have seen the event, but not its time */
	if (oldest_ns != ev[0]->queued_ns && atomic_load(&n_calls) > 0)
		atomic_fetch_add(&n_misjudged, 1);
	gate_handle(st, ev, n);
}

static const struct weir_stage_ops age_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.age",
    .summary = "checks how old its queue seems",
    .accepts = &probe_type,
    .handle = age_handle};

/* The queue is never seen empty; its age is that of its oldest event. The gate lets the core look at
 * the age of a stage that is ready alone. */
static void test_age(void)
{
	struct weir_spec *spec = spec_new("fifo", 1);

	spec->groups[0].gate.arrived = true;
	weir_spec_add_class(spec, "high");
	weir_spec_add_class(spec, "low");
	fixture_set(in_group(spec, "a", "t.age", NULL), "cohort.max", "1");
	prepare(50);
	atomic_store(&probe_gate, 0);
	atomic_store(&n_calls, 0);
	atomic_store(&n_misjudged, 0);
	struct weir_graph *g = start(spec);
	for (int i = 0; i < 50; i++)
		offer_class(g, "a", i, 1, 1);
	FIXTURE_AWAIT(atomic_load(&n_calls) == 1);
	atomic_store(&probe_gate, 1);
	FIXTURE_AWAIT(fixture_ended() == 50);
	CU_ASSERT_EQUAL(atomic_load(&n_misjudged), 0);
	finish(g, 50);
}

/* ---- bounds ---- */

/* With a policy that judges every event at the door, the queue has the whole limit. */
static void test_policies(void)
{
	struct weir_spec *spec = spec_new("fifo", 1);
	struct weir_stage_spec *b;

	in_group(spec, "a", "t.pass", "b");
	b = in_group(spec, "b", "t.pass", "c");
	weir_spec_text(&b->admission.policy, "threshold");
	fixture_set(b, "queue.limit", "16");
	fixture_set(in_group(spec, "c", "t.end", NULL), "queue.limit", "16");
	struct weir_graph *g = start(spec);
	struct sink *judged = &weir_graph_stage(g, "b")->sink;
	struct sink *open = &weir_graph_stage(g, "c")->sink;
	CU_ASSERT_PTR_NULL(judged->cells);
	CU_ASSERT_EQUAL(atomic_load(&judged->queue.own), 16);
	CU_ASSERT_PTR_NOT_NULL(open->cells);
	CU_ASSERT_EQUAL(atomic_load(&open->queue.own), 8);
	prepare(1);
	offer(g, "a", 0, 1);
	finish(g, 1);
}

/* Call k waits until the gate is at least k. */
static void hold_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	int call = atomic_fetch_add(&n_calls, 1) + 1;

	FIXTURE_AWAIT(atomic_load(&probe_gate) >= call);
	for (int i = 0; i < n; i++)
		weir_emit(st, 0, &ev[i]);
}

static const struct weir_stage_ops hold_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.hold",
    .summary = "waits for the test, then passes on",
    .accepts = &probe_type,
    .outlets = pass_outlets,
    .handle = hold_handle};

/* While the queue of b has more events than its own slots, the cell gets none, as otherwise both
 * together would exceed the limit. */
static void test_over(void)
{
	struct weir_spec *spec = spec_new("fifo", 1);
	struct weir_stage_spec *a = in_group(spec, "a", "t.hold", "b");

	fixture_set(a, "cohort.max", "4");
	a->local = WEIR_LOCAL_AUTO;            /* it lingers */
	fixture_set(a, "cohort.linger", "1s"); /* so that the batch is full */
	in_group(spec, "b", "t.end", NULL);
	prepare(19);
	atomic_store(&probe_gate, 0);
	atomic_store(&n_calls, 0);
	struct weir_graph *g = start(spec);
	struct queue *q = &weir_graph_stage(g, "b")->sink.queue;
	offer(g, "a", 0, 4);
	FIXTURE_AWAIT(atomic_load(&n_calls) == 1);
	offer(g, "b", 4, 15);
	queue_set_limit(q, 16);
	CU_ASSERT_EQUAL(atomic_load(&q->own), 8);
	atomic_store(&probe_gate, 1);
	FIXTURE_AWAIT(fixture_ended() == 19);
	CU_ASSERT_EQUAL(atomic_load(&fixture_done), 15);
	for (int i = 0; i < 4; i++)
		CU_ASSERT_EQUAL(probes[i].status, WEIR_EQUEUE);
	finish(g, 19);
}

/* ---- pressure ---- */

/* The events in a cell count: four of the 16 slots of b. */
static void test_pressure(void)
{
	struct weir_spec *spec = spec_new("fifo", 1);
	struct weir_stage_spec *a = in_group(spec, "a", "t.hold", "b");

	spec->groups[0].starve_ns = 0; /* a is visited until it is empty */
	fixture_set(a, "cohort.max", "4");
	a->local = WEIR_LOCAL_AUTO;            /* it lingers */
	fixture_set(a, "cohort.linger", "1s"); /* so that the batches are full */
	fixture_set(in_group(spec, "b", "t.end", NULL), "queue.limit", "16");
	prepare(8);
	atomic_store(&probe_gate, 1);
	atomic_store(&n_calls, 0);
	struct weir_graph *g = start(spec);
	struct weir_stage *b = weir_graph_stage(g, "b");
	offer(g, "a", 0, 8);
	FIXTURE_AWAIT(atomic_load(&n_calls) == 2);
	CU_ASSERT_EQUAL(sink_in_cells(&b->sink), 4);
	CU_ASSERT_EQUAL(queue_length(&b->sink.queue), 0);
	CU_ASSERT_DOUBLE_EQUAL(weir_pressure(b), 4.0 / 16, 1e-9);
	atomic_store(&probe_gate, 2);
	finish(g, 8);
}

/* ---- paused stages ---- */

/* Their events are not work that a core could deal. */
static void test_live(void)
{
	struct core_group group = {0};
	struct cell cell[3];
	struct core core = {.group = &group, .cell = cell, .filled = 7, .n = 9};
	uint64_t filled;

	for (int i = 0; i < 3; i++) {
		cell_init(&cell[i]);
		cell[i].n = 2 + (unsigned)i;
	}
	CU_ASSERT_EQUAL(core_live(&core, &filled), 9);
	CU_ASSERT_EQUAL(filled, 7);
	atomic_store(&group.halted, 5);
	CU_ASSERT_EQUAL(core_live(&core, &filled), 3);
	CU_ASSERT_EQUAL(filled, 2);
}

/* ---- CPUs ---- */

/* The second group begins where the first one ends. */
static void test_cpus(void)
{
	struct weir_spec *spec = spec_new("fifo", 2);
	struct weir_group_spec *second = weir_spec_add_group(spec, "second");

	weir_spec_text(&second->schedule, "fifo");
	weir_spec_text(&second->cores, "1");
	in_group(spec, "a", "t.pass", "b");
	weir_spec_text(&in_group(spec, "b", "t.end", NULL)->group, "second");
	struct weir_graph *g = start(spec);
	int first = ((struct pool *)weir_graph_stage(g, "a")->pool)->cores->first;
	int then = ((struct pool *)weir_graph_stage(g, "b")->pool)->cores->first;
	CU_ASSERT_EQUAL(first, 0);
	CU_ASSERT_EQUAL(then, 2);
	prepare(1);
	offer(g, "a", 0, 1);
	finish(g, 1);
}

static void test_types(void)
{
	fixture_register(&pass_ops);
	fixture_register(&end_ops);
	fixture_register(&wait_ops);
	fixture_register(&age_ops);
	fixture_register(&hold_ops);
}

CUNIT_MAIN("core turn", {"types are known", test_types}, {"linger", test_linger},
    {"minder", test_minder_is_replaced}, {"linger shortened", test_linger_shortened},
    {"high queued", test_high_queued}, {"high in cell", test_high_in_cell}, {"age", test_age},
    {"policies", test_policies}, {"over", test_over}, {"pressure", test_pressure},
    {"live", test_live}, {"cpus", test_cpus})
