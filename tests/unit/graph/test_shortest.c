/* SPDX-License-Identifier: MIT */
/* Stages with `discipline: shortest` in pools, groups and core groups: the order of the events, by a
 * field and by the hint of the type. */
#include "fixture/graph/probes.h"

#include "graph/graph.h"

#define JOBS  64
#define AGAIN 100 /* in `order`: job 0, which was requeued */

struct job {
	struct weir_event ev;
	int number;
	const char *text; /* its size, as text */
	atomic_int left;  /* calls until it has ended */
};

static struct job jobs[JOBS];
static int order[4 * JOBS];
static atomic_int n_order, n_ended, n_waits;
static bool grows; /* job 1 has more left after its first call than job 2 */

static void job_finish(struct weir_event *ev, int status)
{
	(void)ev;
	(void)status;
	atomic_fetch_add(&n_ended, 1);
}

static struct weir_slice job_size(const struct weir_event *ev, const char *arg)
{
	const char *text = ((const struct job *)ev)->text;

	(void)arg;
	return (struct weir_slice){text, text ? strlen(text) : 0};
}

/* The calls that are left, in an odd unit. */
static uint64_t job_cost(const struct weir_event *ev)
{
	int left = atomic_load(&((const struct job *)ev)->left);

	return left > 100 ? UINT64_MAX : (uint64_t)left * 1000;
}

static const struct weir_field job_fields[] = {{"size", job_size, ""}, {.name = NULL}};

static const struct weir_event_type job_type = {.name = "job",
    .size = sizeof(struct job),
    .finish = job_finish,
    .fields = job_fields,
    .cost = job_cost};

/* ---- stages ---- */

static void work_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		struct job *job = (struct job *)ev[i];
		/* job 0 keeps the thread busy while the others arrive */
		if (job->number == 0 && atomic_fetch_add(&n_waits, 1) == 0)
			FIXTURE_AWAIT(atomic_load(&probe_gate));
		else
			order[atomic_fetch_add(&n_order, 1)] = job->number ? job->number : AGAIN;
		if (grows && job->number == 1)
			atomic_store(&job->left, 10);
		grows &= job->number != 1;
		if (atomic_fetch_sub(&job->left, 1) == 1)
			weir_event_finish(&ev[i], WEIR_OK);
		else
			weir_requeue(st, &ev[i]);
	}
}

static const struct weir_outlet work_outlets[] = {
    {"out", &job_type, true, "unused"}, {.name = NULL}};

static const struct weir_stage_ops work_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.work",
    .summary = "notes the order",
    .accepts = &job_type,
    .outlets = work_outlets,
    .handle = work_handle};

/* ---- graphs ---- */

enum place { POOL, GROUP, CORES, PLACES };

/* A stage with one thread, whose batches have `batch` events. */
static struct weir_spec *spec_new(enum place place, const char *batch)
{
	struct weir_spec *spec = weir_spec_new("shortest");

	if (place != POOL) {
		struct weir_group_spec *g = weir_spec_add_group(spec, "g");
		if (place == CORES)
			weir_spec_text(&g->schedule, "fifo");
		weir_spec_text(&g->cores, place == CORES ? "1" : "auto");
		g->threads.max = place == CORES ? -1 : 1;
		g->gate.cutoff_ns = place == CORES ? 1 : 0;
	}
	struct weir_stage_spec *s = fixture_stage(spec, "a", "t.work", NULL);
	if (place == POOL)
		fixture_set(s, "threads.max", "1");
	else
		weir_spec_text(&s->group, "g");
	weir_spec_text(&s->admission.policy, "none");
	fixture_set(s, "cohort.max", batch);
	fixture_set(s, "slo", "3600s");
	fixture_set(s, "queue.discipline", "shortest");
	return spec;
}

static struct weir_graph *start(struct weir_spec *spec)
{
	struct weir_graph *g;

	atomic_store(&probe_gate, 0);
	atomic_store(&n_order, 0);
	atomic_store(&n_ended, 0);
	atomic_store(&n_waits, 0);
	g = fixture_start(spec);
	weir_thread_attach(g, "test");
	return g;
}

/* Offer job `number`. */
static void offer(struct weir_graph *g, int number, int left, const char *text, int class_id)
{
	struct job *job = &jobs[number];
	struct weir_event *ev = &job->ev;

	weir_event_init(ev, &job_type, 1);
	ev->class_id = (uint8_t)class_id;
	job->number = number;
	job->text = text;
	atomic_store(&job->left, left);
	CU_ASSERT_EQUAL_FATAL(weir_offer(weir_graph_stage(g, "a"), &ev, 1, NULL), 1);
	if (number == 0)
		FIXTURE_AWAIT(atomic_load(&n_waits) == 1);
}

static void finish(struct weir_graph *g, int jobs_offered, const int *want)
{
	int i = 0;

	atomic_store(&probe_gate, 1);
	FIXTURE_AWAIT(atomic_load(&n_ended) == jobs_offered);
	for (; want[i]; i++)
		CU_ASSERT_EQUAL(order[i], want[i]);
	CU_ASSERT_EQUAL(atomic_load(&n_order), i);
	weir_thread_detach();
	finish_graph(g, 0);
}

/* By a field, in every place. A text that is no number is last, and fractions do not count. */
static void test_field(void)
{
	for (int place = POOL; place < PLACES; place++) {
		struct weir_spec *spec = spec_new((enum place)place, "1");
		fixture_set(&spec->stages[0], "queue.by", "size");
		struct weir_graph *g = start(spec);
		offer(g, 0, 1, "0", 0);
		offer(g, 1, 1, "none", 0);
		offer(g, 2, 1, "900", 0);
		offer(g, 3, 1, "90.7", 0);
		offer(g, 4, 1, NULL, 0);
		offer(g, 5, 1, "0", 0);
		offer(g, 6, 1, "99999999999999999999", 0);
		offer(g, 7, 1, "90", 0);
		offer(g, 8, 1, "-1", 0);
		offer(g, 9, 1, "12ms", 0);
		finish(g, 10, (const int[]){5, 3, 7, 2, 6, 1, 4, 8, 9, 0});
	}
}

/* By the hint of the type, which says what is left of a requeued event. In batches. */
static void test_hint(void)
{
	for (int place = POOL; place < PLACES; place++) {
		struct weir_graph *g = start(spec_new((enum place)place, "1"));

		offer(g, 0, 1, NULL, 0);
		offer(g, 1, 5, NULL, 0);
		offer(g, 2, 3, NULL, 0);
		offer(g, 3, 1, NULL, 0);
		finish(g, 4, (const int[]){3, 2, 2, 2, 1, 1, 1, 1, 1, 0});
	}
}

/* A requeued event waits behind those with less work. */
static void test_again(void)
{
	struct weir_spec *spec = spec_new(POOL, "1");

	fixture_set(&spec->stages[0], "queue.by", "size");
	struct weir_graph *g = start(spec);
	offer(g, 0, 2, "900", 0);
	offer(g, 1, 1, "100", 0);
	offer(g, 2, 1, "2000", 0);
	finish(g, 3, (const int[]){1, AGAIN, 2, 0});
}

/* So do the events of a batch among themselves. */
static void test_again_together(void)
{
	struct weir_graph *g = start(spec_new(POOL, "64"));
	char why[100];

	atomic_store(&probe_gate, 1);
	offer(g, 0, 1, NULL, 0);
	offer(g, 3, 40, NULL, 0);
	FIXTURE_AWAIT(
	    atomic_load(&n_ended) == 2); /* calls are short, so batches have several events */
	atomic_store(&n_order, 0);
	grows = true;
	CU_ASSERT_EQUAL(weir_graph_steer(g, "a", WEIR_STEER_PAUSE, why, sizeof(why)), 0);
	offer(g, 1, 1, NULL, 0);
	offer(g, 2, 2, NULL, 0);
	CU_ASSERT_EQUAL(weir_graph_steer(g, "a", WEIR_STEER_RUN, why, sizeof(why)), 0);
	FIXTURE_AWAIT(atomic_load(&n_ended) == 4);
	CU_ASSERT_FALSE(grows);
	CU_ASSERT_EQUAL(order[0], 1);
	CU_ASSERT_EQUAL(order[1], 2);
	CU_ASSERT_EQUAL(order[2], 2);
	CU_ASSERT_EQUAL(order[3], 1);
	weir_thread_detach();
	finish_graph(g, 0);
}

static void test_classes(void)
{
	struct weir_spec *spec = spec_new(POOL, "64");

	weir_spec_add_class(spec, "high");
	weir_spec_add_class(spec, "low");
	fixture_set(&spec->stages[0], "cohort.linger", "1us"); /* batches are full */
	struct weir_graph *g = start(spec);
	offer(g, 0, 1, NULL, 0);
	offer(g, 1, 1, NULL, 1);
	offer(g, 2, 1, NULL, 0);
	finish(g, 3, (const int[]){2, 1, 0});
}

/* An event that has waited for longer than `starve` is before those with less work. */
static void test_starve(void)
{
	struct weir_spec *spec = spec_new(POOL, "1");

	fixture_set(&spec->stages[0], "queue.starve", "1ns");
	struct weir_graph *g = start(spec);
	offer(g, 0, 1, NULL, 0);
	offer(g, 1, 2, NULL, 0);
	offer(g, 2, 1, NULL, 0);
	finish(g, 3, (const int[]){1, 2, 1, 0});
}

/* The event with less work is first in the batch, the other one has waited longer. */
static void test_longest_wait(void)
{
	struct weir_graph *g = start(spec_new(CORES, "64"));
	struct weir_graph_view *v;

	offer(g, 0, 1, NULL, 0);
	offer(g, 1, 2, NULL, 0);
	jobs[1].ev.queued_ns -= 1000000000; /* the core is in the call of job 0 */
	offer(g, 2, 1, NULL, 0);
	atomic_store(&probe_gate, 1);
	FIXTURE_AWAIT(atomic_load(&n_ended) == 3);
	CU_ASSERT_EQUAL_FATAL(weir_graph_view(g, &v), 0);
	CU_ASSERT_TRUE(v->groups[0].core[0].longest_wait_ns >= 1000000000);
	weir_graph_view_free(v);
	finish(g, 3, (const int[]){2, 1, 1, 0});
}

/* The default bound is half of the objective. Cells would have no order. */
static void test_build(void)
{
	struct weir_spec *spec = spec_new(CORES, "1");
	struct weir_stage_spec *s = &spec->stages[0];

	fixture_set(s, "slo", "100ms");
	weir_spec_link(s, "", "a", true); /* it would have cells */
	struct weir_graph *g = start(spec);
	struct sink *sink = &weir_graph_stage(g, "a")->sink;
	CU_ASSERT_EQUAL(sink->queue.starve_ns, 50000000);
	CU_ASSERT_FALSE(sink->queue.ordered);
	CU_ASSERT_EQUAL(sink->n_cells, 0);
	finish(g, 0, (const int[]){0});
	spec = spec_new(POOL, "1");
	s = &spec->stages[0];
	s->mode = WEIR_MODE_PARTITIONED;
	weir_spec_text(&s->key, "event");
	g = start(spec);
	CU_ASSERT_TRUE(weir_graph_stage(g, "a")->sink.queue.ordered);
	finish(g, 0, (const int[]){0});
}

static void test_types(void)
{
	fixture_register(&work_ops);
}

CUNIT_MAIN("shortest", {"types are known", test_types}, {"field", test_field}, {"hint", test_hint},
    {"again", test_again}, {"again, together", test_again_together}, {"classes", test_classes},
    {"starve", test_starve}, {"longest wait", test_longest_wait}, {"build", test_build})
