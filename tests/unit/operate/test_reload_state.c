/* SPDX-License-Identifier: MIT */
/* Totals continue across a reload and never decrease, whenever they are read. Gauges and the
 * balance check (law_error) belong to each graph alone. */
#include "fixture/graph/probes.h"

#include "base/clock.h"
#include "control/control.h"
#include "graph/graph.h"
#include "event/local.h"

static const struct weir_outlet two_outlets[] = {
    {"a", WEIR_ANY_EVENT, true, ""}, {"b", WEIR_ANY_EVENT, true, ""}, {.name = NULL}};

/* Two metrics and two outlets, in reverse order in the second type. */
static const struct weir_metric counted[] = {{"t_bytes", WEIR_METRIC_GAUGE, "bytes", ""},
    {"t_seen_total", WEIR_METRIC_COUNTER, "events", ""}, {.name = NULL}};
static const struct weir_metric recounted[] = {{"t_seen_total", WEIR_METRIC_COUNTER, "events", ""},
    {"t_bytes", WEIR_METRIC_GAUGE, "bytes", ""}, {"t_more_total", WEIR_METRIC_COUNTER, "", ""},
    {.name = NULL}};
static const struct weir_outlet other_outlets[] = {
    {"b", WEIR_ANY_EVENT, true, ""}, {"a", WEIR_ANY_EVENT, true, ""}, {.name = NULL}};

static void count_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		weir_count(st, 0, 100); /* a gauge here */
		weir_count(st, 1, 1);
		weir_emit(st, 0, &ev[i]); /* through "a" */
	}
}

static void recount_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		weir_count(st, 0, 1);
		weir_count(st, 1, 100);
		weir_count(st, 2, 1);
		weir_emit(st, 1, &ev[i]); /* also through "a" */
	}
}

static const struct weir_stage_ops count_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.count",
    .summary = "counts",
    .accepts = &probe_type,
    .outlets = two_outlets,
    .metrics = counted,
    .handle = count_handle};
static const struct weir_stage_ops recount_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.recount",
    .summary = "counts otherwise",
    .accepts = &probe_type,
    .outlets = other_outlets,
    .metrics = recounted,
    .handle = recount_handle};

/* count -> end, with classes in this order. */
static struct weir_spec *spec_of(
    const char *use, const char *last, const char *one, const char *two)
{
	struct weir_spec *spec = weir_spec_new("heirs");
	struct weir_stage_spec *count = weir_spec_add_stage(spec, "count", use);

	weir_spec_link(count, "a", "end", false);
	weir_spec_link(count, "b", "end", false);
	/* Nothing is refused, however long the machine stalls. */
	fixture_set(count, "admission.policy", "none");
	fixture_set(count, "queue.limit", "16384");
	struct weir_stage_spec *end = fixture_stage(spec, "end", last, NULL);
	fixture_set(end, "admission.policy", "none");
	fixture_set(end, "queue.limit", "16384");
	weir_spec_add_class(spec, one);
	if (two)
		weir_spec_add_class(spec, two);
	return spec;
}

static int first; /* first unused probe */

/* Offer n events at `stage` of `g` without a class, that is, of the first class. */
static void offer(struct weir_graph *g, const char *stage, int n)
{
	weir_thread_attach(g, "test");
	fixture_offer_all(weir_graph_stage(g, stage), probes + first, n, 8);
	weir_thread_detach();
	first += n;
}

static struct weir_graph *succeed(struct weir_graph *old, struct weir_spec *spec)
{
	struct weir_errs errs = {0};
	struct weir_graph *g = fixture_build(spec);

	CU_ASSERT_EQUAL_FATAL(weir_graph_succeed(g, old, &errs), 0);
	return g;
}

static int class_of(struct weir_graph *g, const char *name)
{
	struct weir_graph_view *v;
	int found = -1;

	CU_ASSERT_EQUAL_FATAL(weir_graph_view(g, &v), 0);
	for (int c = 0; c < v->n_classes; c++)
		if (strcmp(v->class_name[c], name) == 0)
			found = c;
	weir_graph_view_free(v);
	CU_ASSERT_FATAL(found >= 0);
	return found;
}

static uint64_t out_of(struct weir_graph *g, const char *stage, const char *outlet)
{
	struct weir_graph_view *v;
	uint64_t n = UINT64_MAX;

	CU_ASSERT_EQUAL_FATAL(weir_graph_view(g, &v), 0);
	for (int i = 0; i < v->n_stages; i++)
		for (int o = 0; strcmp(v->stages[i].name, stage) == 0 && o < v->stages[i].n_links;
		     o++)
			if (strcmp(v->stages[i].links[o].outlet, outlet) == 0)
				n = v->stages[i].links[o].events_total;
	weir_graph_view_free(v);
	return n;
}

static uint64_t decided(struct weir_graph *g)
{
	struct weir_graph_view *v;

	CU_ASSERT_EQUAL_FATAL(weir_graph_view(g, &v), 0);
	uint64_t n = v->decided_total;
	weir_graph_view_free(v);
	return n;
}

static void setup(void)
{
	prepare(N);
	first = 0;
	atomic_store(&probe_gate, 0);
	weir_log_set_level(WEIR_LOG_ERROR);
}

/* Events that the old graph still counts are shown immediately, and stay after the old graph is
 * gone; three graphs in a row. */
static void test_totals(void)
{
	setup();
	struct weir_graph *a = fixture_start(spec_of("t.count", "t.gate", "bulk", "vip"));
	offer(a, "count", 50);
	FIXTURE_AWAIT(out_of(a, "count", "a") == 50);
	struct weir_graph *b = succeed(a, spec_of("t.count", "t.end", "bulk", "vip"));
	int bulk = class_of(b, "bulk");
	CU_ASSERT_EQUAL(stage_view(b, "count").class_view[bulk].offered, 50);
	CU_ASSERT_EQUAL(stage_view(b, "count").class_view[bulk].admitted, 50);
	CU_ASSERT_EQUAL(stage_view(b, "end").class_view[bulk].completed, 0);
	CU_ASSERT_EQUAL(stage_view(b, "end").in_flight, 0); /* the events belong to the old graph */
	CU_ASSERT_EQUAL(stage_view(a, "end").in_flight, 50);
	/* A decision that the old graph makes after its journal was copied. */
	for (int i = 0; i < 3; i++)
		journal_add(control_journal(a->control), (struct weir_decision){.action = "late"});
	CU_ASSERT_EQUAL(decided(b), decided(a));
	CU_ASSERT_TRUE(decided(a) > 2);
	offer(b, "count", 7);
	FIXTURE_AWAIT(stage_view(b, "end").class_view[bulk].completed == 7);
	atomic_store(&probe_gate, 1);
	FIXTURE_AWAIT(stage_view(b, "end").class_view[bulk].completed == 57);
	finish_graph(a, 0);
	struct weir_stage_view v = stage_view(b, "count");
	CU_ASSERT_EQUAL(v.class_view[bulk].offered, 57);
	CU_ASSERT_EQUAL(v.class_view[bulk].completed, 57);
	CU_ASSERT_EQUAL(weir_hist_total(&v.class_view[bulk].wait), 57);
	CU_ASSERT_EQUAL(weir_hist_total(&v.class_view[bulk].service), 57);
	CU_ASSERT_EQUAL(v.batch_events, 57);
	CU_ASSERT_TRUE(v.batches >= 2 && v.batches <= 57);
	uint64_t calls = 0;
	for (int i = 0; i < WEIR_COHORT_BUCKETS; i++)
		calls += v.cohorts[i];
	CU_ASSERT_EQUAL(calls, v.batches); /* those before the reload, too */
	CU_ASSERT_TRUE(v.busy_ns > 0);
	CU_ASSERT_EQUAL(v.law_residual, 0);
	CU_ASSERT_EQUAL(out_of(b, "count", "a"), 57);
	CU_ASSERT_EQUAL(out_of(b, "count", "b"), 0);
	struct weir_graph *c = succeed(b, spec_of("t.count", "t.end", "bulk", "vip"));
	finish_graph(b, 0);
	offer(c, "count", 3);
	FIXTURE_AWAIT(stage_view(c, "end").class_view[bulk].completed == 60);
	finish_graph(c, 0);
	check_each_once(60);
}

/* Classes, outlets and metrics are matched by name, gauges are not summed, and new ones start at
 * 0. */
static void test_names(void)
{
	setup();
	atomic_store(&probe_gate, 1);
	struct weir_graph *a = fixture_start(spec_of("t.count", "t.end", "bulk", "vip"));
	offer(a, "count", 20);
	FIXTURE_AWAIT(stage_view(a, "end").class_view[class_of(a, "bulk")].completed == 20);
	struct weir_stage_view was = stage_view(a, "count");
	CU_ASSERT_EQUAL(was.metric[0], 2000);
	CU_ASSERT_EQUAL(was.metric[1], 20);
	struct weir_graph *b = succeed(a, spec_of("t.recount", "t.end", "new", "bulk"));
	struct weir_stage_view v = stage_view(b, "count");
	CU_ASSERT_EQUAL(v.class_view[class_of(b, "bulk")].completed, 20);
	CU_ASSERT_EQUAL(v.class_view[class_of(b, "new")].completed, 0);
	CU_ASSERT_EQUAL(v.metric[0], 20);
	CU_ASSERT_EQUAL(v.metric[1], 0);
	CU_ASSERT_EQUAL(v.metric[2], 0);
	CU_ASSERT_EQUAL(out_of(b, "count", "a"), 20);
	finish_graph(a, 0);
	offer(b, "count", 4);
	FIXTURE_AWAIT(stage_view(b, "end").class_view[class_of(b, "new")].completed == 4);
	v = stage_view(b, "count");
	CU_ASSERT_EQUAL(v.metric[0], 24);
	CU_ASSERT_EQUAL(v.metric[1], 400);
	CU_ASSERT_EQUAL(v.metric[2], 4);
	FIXTURE_AWAIT(out_of(b, "count", "a") == 24);
	CU_ASSERT_EQUAL(v.class_view[class_of(b, "bulk")].completed, 20);
	/* The new graph may be freed first. */
	struct weir_spec *spec = weir_spec_new("heirs");
	fixture_stage(spec, "other", "t.end", NULL);
	struct weir_graph *c = succeed(b, spec);
	CU_ASSERT_EQUAL(stage_view(c, "other").class_view[0].offered, 0);
	finish_graph(c, 0);
	finish_graph(b, 0);
}

static bool refuses;

static int refuse_start(struct weir_stage *st, struct weir_err *err)
{
	(void)st;
	if (!refuses)
		return 0;
	snprintf(err->text, sizeof(err->text), "not now");
	return err->code = WEIR_EBUSY;
}

static const struct weir_stage_ops refuse_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.refuse",
    .summary = "does not start",
    .flags = WEIR_STAGE_SOURCE,
    .outlets = pass_outlets,
    .start = refuse_start};

/* A graph that could not start has taken over nothing, and the old one may be replaced by
 * another. */
static void test_refused(void)
{
	struct weir_errs errs = {0};

	setup();
	struct weir_graph *a = fixture_start(spec_of("t.count", "t.end", "bulk", NULL));
	offer(a, "count", 9);
	struct weir_spec *spec = spec_of("t.count", "t.end", "bulk", NULL);
	fixture_stage(spec, "source", "t.refuse", "count");
	struct weir_graph *bad = fixture_build(spec);
	refuses = true;
	CU_ASSERT_EQUAL(weir_graph_succeed(bad, a, &errs), WEIR_EBUSY);
	refuses = false;
	CU_ASSERT_EQUAL(stage_view(bad, "count").class_view[0].offered, 0);
	weir_graph_free(bad);
	struct weir_graph *b = succeed(a, spec_of("t.count", "t.end", "bulk", NULL));
	finish_graph(a, 0);
	CU_ASSERT_EQUAL(stage_view(b, "end").class_view[class_of(b, "bulk")].completed, 9);
	finish_graph(b, 0);
}

/* ---- a thread reads all the time ---- */

/* Like admin_switch: a graph that was shown can be freed under this lock. */
static pthread_mutex_t looking = PTHREAD_MUTEX_INITIALIZER;
static struct weir_graph *shown;
static atomic_bool over;
static atomic_int smaller, looks;

/* Figures of the first stage and its class "bulk". */
struct seen {
	uint64_t offered, completed, waits, batches, busy_ns, out, decided;
};

static struct seen see(void)
{
	struct weir_graph_view *v = NULL;

	pthread_mutex_lock(&looking);
	CU_ASSERT_EQUAL_FATAL(weir_graph_view(shown, &v), 0);
	const struct weir_stage_view *st = &v->stages[0];
	struct seen s = {st->class_view[0].offered, st->class_view[0].completed,
	    weir_hist_total(&st->class_view[0].wait), st->batches, st->busy_ns,
	    st->links[0].events_total, v->decided_total};
	weir_graph_view_free(v);
	pthread_mutex_unlock(&looking);
	return s;
}

static void *look(void *arg)
{
	struct seen was = {0};

	(void)arg;
	while (!atomic_load(&over)) {
		struct seen now = see();
		bool less = now.offered < was.offered || now.completed < was.completed ||
			    now.waits < was.waits || now.batches < was.batches ||
			    now.busy_ns < was.busy_ns || now.out < was.out ||
			    now.decided < was.decided;
		atomic_fetch_add(&smaller, less);
		atomic_fetch_add(&looks, 1);
		was = now;
	}
	return NULL;
}

static void show(struct weir_graph *g)
{
	pthread_mutex_lock(&looking);
	shown = g;
	pthread_mutex_unlock(&looking);
}

static void await_look(void)
{
	int now = atomic_load(&looks);

	FIXTURE_AWAIT(atomic_load(&looks) >= now + 2);
}

/* Twenty reloads, with events in flight in the old graph and in the new one. */
static void test_never_smaller(void)
{
	enum { EACH = 200, TIMES = 20 };
	pthread_t looker;

	setup();
	atomic_store(&probe_gate, 1);
	struct weir_graph *g = fixture_start(spec_of("t.count", "t.end", "bulk", "vip"));
	show(g);
	pthread_create(&looker, NULL, look, NULL);
	for (int i = 0; i < TIMES; i++) {
		offer(g, "count", EACH);
		struct weir_graph *next = succeed(g, spec_of("t.count", "t.end", "bulk", "vip"));
		show(next);
		offer(next, "count", EACH);
		await_look();
		finish_graph(g, 0);
		await_look();
		g = next;
	}
	atomic_store(&over, true);
	pthread_join(looker, NULL);
	CU_ASSERT_EQUAL(atomic_load(&smaller), 0);
	FIXTURE_AWAIT(see().completed == 2 * EACH * TIMES);
	CU_ASSERT_EQUAL(see().offered, 2 * EACH * TIMES);
	CU_ASSERT_EQUAL(see().waits, 2 * EACH * TIMES);
	FIXTURE_AWAIT(see().out == 2 * EACH * TIMES); /* counted after the events have ended */
	finish_graph(g, 0);
	check_each_once(2 * EACH * TIMES);
}

/* The thread that is in a handler. */
static struct thread *handler_of(struct weir_graph *g)
{
	struct thread *found = NULL;

	lock_take(&g->threads_lock);
	for (struct thread *t = g->threads; t; t = t->next)
		if (atomic_load(&t->running))
			found = t;
	lock_release(&g->threads_lock);
	CU_ASSERT_PTR_NOT_NULL_FATAL(found);
	return found;
}

/* A handle call ends between the reads of the two numbers that make up its time, as if the reader
 * were interrupted there. */
static void test_busy_never_less(void)
{
	struct weir_spec *spec = weir_spec_new("busy");

	fixture_set(fixture_stage(spec, "gate", "t.gate", NULL), "threads.max", "1");
	setup();
	struct weir_graph *g = fixture_start(spec);
	offer(g, "gate", 1);
	FIXTURE_AWAIT(stage_view(g, "gate").busy_ns > 1000000);
	uint64_t was = stage_view(g, "gate").busy_ns;
	_Atomic int64_t *since = &handler_of(g)->local[0]->book.running_since_ns;
	int64_t began = atomic_exchange(since, 0);
	CU_ASSERT(stage_view(g, "gate").busy_ns >= was);
	atomic_store(since, began);
	FIXTURE_AWAIT(stage_view(g, "gate").busy_ns > was); /* the time continues from there */
	atomic_store(&probe_gate, 1);
	finish_graph(g, 0);
}

static void test_prepare(void)
{
	fixture_register(&count_ops);
	fixture_register(&recount_ops);
	fixture_register(&refuse_ops);
	fixture_register(&gate_ops);
	fixture_register(&end_ops);
}

CUNIT_MAIN("graph inherit", {"types are known", test_prepare}, {"totals go on", test_totals},
    {"by their names", test_names}, {"one that does not start", test_refused},
    {"never smaller", test_never_smaller}, {"busy time never falls", test_busy_never_less})
