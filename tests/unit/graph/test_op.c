/* SPDX-License-Identifier: MIT */
/* Operations: children and continuations on every placement; orphans, refusals, bounds, deaths and
 * families; and the books. */
#include "fixture/graph/probes.h"

#define JOBS  400
#define PARTS 5

struct job {
	struct weir_event ev;
	struct weir_op op;
	int rounds; /* continuations that have run */
	int sum;    /* of the values of its parts */
	int bad;    /* parts that did not end as WEIR_OK */
	int status;
	atomic_int finishes;
};

struct part {
	struct weir_event ev;
	struct weir_op op;
	int value;
};

#include "split_rig.h"

static atomic_int jobs_ended, parts_ended;
/* What the stage does: number of parts of a job, rounds, and what happens to part 0. */
static int n_parts, n_rounds;
static enum { WORKS, FAILS, DIES, CANCELS } how;
static struct weir_family *family;

static void job_finish(struct weir_event *ev, int status)
{
	struct job *j = (struct job *)ev;

	j->status = status;
	atomic_fetch_add(&j->finishes, 1);
	atomic_fetch_add(&jobs_ended, 1);
}

static void part_finish(struct weir_event *ev, int status)
{
	(void)ev;
	(void)status;
	atomic_fetch_add(&parts_ended, 1);
}

static const struct weir_event_type job_type = {RIG_TYPE(struct job, "t.job", job_finish)};
static const struct weir_event_type part_type = {RIG_TYPE(struct part, "t.part", part_finish)};

static void joined(struct weir_stage *st, struct weir_event **ev, int n);

static void split(struct weir_stage *st, struct weir_event **slot)
{
	for (int i = 0; i < n_parts; i++) {
		struct weir_event *c = weir_event_new(st, &part_type);
		CU_ASSERT_PTR_NOT_NULL_FATAL(c);
		((struct part *)c)->value = i + 1;
		weir_child(st, *slot, 0, &c);
		CU_ASSERT_PTR_NULL(c);
	}
	weir_await(st, slot, joined);
	CU_ASSERT_PTR_NULL(*slot);
}

static void joined(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		struct job *j = (struct job *)ev[i];
		for (struct weir_event *c = weir_ended(ev[i]); c; c = c->next) {
			j->sum += ((struct part *)c)->value;
			j->bad += weir_child_status(c) != WEIR_OK;
		}
		if (++j->rounds < n_rounds)
			split(st, &ev[i]);
		else
			weir_event_finish(&ev[i], weir_ended_status(ev[i]));
	}
}

static void split_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		if (family)
			weir_family_join(family, ev[i]);
		split(st, &ev[i]);
	}
}

static void part_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	for (int i = 0; i < n; i++) {
		bool odd = ((struct part *)ev[i])->value == 1;
		if (odd && how == DIES)
			pthread_exit(NULL);
		if (how == CANCELS)
			weir_family_end(family);
		weir_event_finish(&ev[i], odd && how == FAILS ? WEIR_EFAILED : WEIR_OK);
	}
}

static const struct weir_stage_ops split_ops = {RIG_SPLITS(split_handle)};
static const struct weir_stage_ops part_ops = {RIG_PARTS(part_handle)};

static void begin(int parts, int rounds)
{
	memset(jobs, 0, sizeof(jobs));
	jobs_ended = parts_ended = 0;
	n_parts = parts;
	n_rounds = rounds;
	how = WORKS;
	family = NULL;
}

/* The number of parts that stage `split` has made and that have not ended. */
static uint64_t parts_left(const struct weir_stage_view *v)
{
	return v->spawned - v->joined - v->orphaned - v->cancelled;
}

static void check_books(struct weir_graph *g, uint64_t spawned)
{
	struct weir_stage_view v = stage_view(g, "split");

	CU_ASSERT_EQUAL(v.spawned, spawned);
	CU_ASSERT_EQUAL(parts_left(&v), 0);
	CU_ASSERT_EQUAL(v.awaiting, 0);
	CU_ASSERT_EQUAL(v.in_flight, 0);
	CU_ASSERT_EQUAL(v.law_residual, 0);
	CU_ASSERT_EQUAL(queue_kept_all(&weir_graph_stage(g, "split")->sink.queue), 0);
}

static void run_jobs(struct weir_spec *spec, int n)
{
	struct weir_graph *g = fixture_start(spec);

	rig_offer_jobs(g, n);
	FIXTURE_AWAIT(atomic_load(&jobs_ended) == n);
	struct weir_stage *split = weir_graph_stage(g, "split");
	FIXTURE_AWAIT(queue_kept_all(&split->sink.queue) == 0);
	for (int i = 0; i < n; i++) {
		CU_ASSERT_EQUAL(atomic_load(&jobs[i].finishes), 1);
		CU_ASSERT_EQUAL(jobs[i].rounds, n_rounds);
		CU_ASSERT_EQUAL(jobs[i].sum, n_rounds * n_parts * (n_parts + 1) / 2);
		CU_ASSERT_EQUAL(jobs[i].bad, how == FAILS ? n_rounds : 0);
		CU_ASSERT_EQUAL(jobs[i].status, how == FAILS ? WEIR_EFAILED : WEIR_OK);
	}
	CU_ASSERT_EQUAL(atomic_load(&parts_ended), n * n_parts * n_rounds);
	check_books(g, (uint64_t)(n * n_parts * n_rounds));
	finish_graph(g, 0);
}

static void test_pools(void)
{
	begin(PARTS, 2);
	run_jobs(rig_two_stages(), JOBS);
	begin(1, 3);
	run_jobs(rig_two_stages(), JOBS);
}

static void test_inline(void)
{
	for (int mask = 1; mask < 4; mask++) {
		struct weir_spec *spec = rig_two_stages();
		spec->stages[0].inlined = mask & 1;
		spec->stages[1].inlined = mask & 2;
		begin(PARTS, 2);
		run_jobs(spec, JOBS);
	}
}

static void test_groups(void)
{
	static const char *const schedules[] = {
	    "shared", "fifo", "wavefront", "srpt", "dbr", "mg1", "color"};

	for (size_t i = 0; i < sizeof(schedules) / sizeof(schedules[0]); i++) {
		struct weir_spec *spec = rig_two_stages();
		struct weir_group_spec *g = weir_spec_add_group(spec, "core");
		weir_spec_text(&g->schedule, schedules[i]);
		if (i > 0)
			weir_spec_text(&g->cores, "2");
		for (int s = 0; s < 2; s++)
			weir_spec_text(&spec->stages[s].group, "core");
		begin(PARTS, 2);
		run_jobs(spec, JOBS);
	}
}

static void test_modes(void)
{
	for (int mode = WEIR_MODE_EXCLUSIVE; mode <= WEIR_MODE_PARTITIONED; mode++) {
		struct weir_spec *spec = rig_two_stages();
		for (int s = 0; s < 2; s++) {
			spec->stages[s].mode = mode;
			weir_spec_text(&spec->stages[s].key, "event");
			fixture_set(&spec->stages[s], "threads.max", "3");
		}
		begin(PARTS, 2);
		run_jobs(spec, JOBS);
	}
}

static void test_failed(void)
{
	begin(PARTS, 2);
	how = FAILS;
	run_jobs(rig_two_stages(), JOBS);
}

/* A job without parts gets its continuation at once. */
static void test_none(void)
{
	begin(0, 3);
	run_jobs(rig_two_stages(), JOBS);
}

/* The stage of the parts refuses some: they count as ended for their parents. */
static void test_refused(void)
{
	struct weir_spec *spec = rig_two_stages();
	int bad = 0;

	fixture_set(&spec->stages[0], "queue.limit", "2");
	begin(PARTS, 1);
	struct weir_graph *g = fixture_start(spec);
	rig_offer_jobs(g, JOBS);
	FIXTURE_AWAIT(atomic_load(&jobs_ended) == JOBS);
	for (int i = 0; i < JOBS; i++) {
		CU_ASSERT_EQUAL(jobs[i].sum, PARTS * (PARTS + 1) / 2);
		CU_ASSERT_EQUAL(jobs[i].status, jobs[i].bad ? WEIR_EQUEUE : WEIR_OK);
		bad += jobs[i].bad;
	}
	struct weir_stage_view v = stage_view(g, "part");
	CU_ASSERT(bad > 0);
	CU_ASSERT_EQUAL(v.class_view[0].shed[weir_shed_index(WEIR_EQUEUE)], (uint64_t)bad);
	FIXTURE_AWAIT(queue_kept_all(&weir_graph_stage(g, "split")->sink.queue) == 0);
	check_books(g, JOBS * PARTS);
	finish_graph(g, 0);
}

/* The thread that handles a part exits: the part has ended as WEIR_EDIED. */
static void test_death(void)
{
	begin(PARTS, 1);
	how = DIES;
	struct weir_graph *g = fixture_start(rig_two_stages());
	rig_offer_jobs(g, 20);
	FIXTURE_AWAIT(atomic_load(&jobs_ended) == 20);
	for (int i = 0; i < 20; i++) {
		CU_ASSERT_EQUAL(jobs[i].sum, PARTS * (PARTS + 1) / 2);
		CU_ASSERT_EQUAL(jobs[i].status, WEIR_EDIED);
	}
	FIXTURE_AWAIT(queue_kept_all(&weir_graph_stage(g, "split")->sink.queue) == 0);
	check_books(g, 20 * PARTS);
	finish_graph(g, 0);
}

/* All jobs are of a family that ends while parts are handled: each job ends once, as cancelled or,
 * if it was done before, as it was. */
static void test_family(void)
{
	begin(PARTS, 1);
	how = CANCELS;
	family = weir_family_new(NULL);
	struct weir_graph *g = fixture_start(rig_two_stages());
	rig_offer_jobs(g, JOBS);
	FIXTURE_AWAIT(atomic_load(&jobs_ended) == JOBS);
	int cancelled = 0;
	for (int i = 0; i < JOBS; i++) {
		CU_ASSERT_EQUAL(atomic_load(&jobs[i].finishes), 1);
		cancelled += jobs[i].status == WEIR_ECANCELLED;
	}
	CU_ASSERT(cancelled >= JOBS - WEIR_BATCH_MAX);
	struct weir_stage_view v = stage_view(g, "split");
	CU_ASSERT_EQUAL(parts_left(&v), 0);
	CU_ASSERT_EQUAL((uint64_t)atomic_load(&parts_ended), v.spawned);
	finish_graph(g, 0);
	weir_family_put(family);
	family = NULL;
}

static void test_register(void)
{
	fixture_register(&split_ops);
	fixture_register(&part_ops);
}

CUNIT_MAIN("op", {"register", test_register}, {"pools", test_pools}, {"inline", test_inline},
    {"groups", test_groups}, {"modes", test_modes}, {"failed", test_failed}, {"none", test_none},
    {"refused", test_refused}, {"death", test_death}, {"family", test_family})
