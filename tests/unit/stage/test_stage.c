/* SPDX-License-Identifier: MIT */
/* The guarantees of a stage: modes, keys, cohorts; and handlers that break theirs. */
#include "fixture/graph/probes.h"

#include "sched/pool.h"
#include "stage/stage.h"

static void careless_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		struct probe *p = (struct probe *)ev[i];
		if (p->seq % 4 == 0)
			weir_event_finish(&ev[i], WEIR_OK);
		else if (p->seq % 4 == 1)
			weir_emit(st, 7, &ev[i]); /* no such outlet */
		else if (p->seq % 4 == 2)
			weir_emit(st, 0, &ev[i]); /* typed, optional, not linked */
	}
}

static const struct weir_outlet careless_outlets[] = {
    {"typed", &probe_type, true, ""}, {.name = NULL}};

static const struct weir_stage_ops careless_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.careless",
    .summary = "leaves events behind",
    .accepts = &probe_type,
    .outlets = careless_outlets,
    .handle = careless_handle};

static void test_leftovers_and_bad_outlets(void)
{
	struct weir_spec *spec = weir_spec_new("careless");

	fixture_stage(spec, "careless", "t.careless", NULL);
	prepare(400);
	weir_log_set_fd(-1);
	struct weir_graph *g = fixture_start(spec);
	weir_thread_attach(g, "test");
	fixture_offer_all(weir_graph_stage(g, "careless"), probes, 400, 50);
	FIXTURE_AWAIT(fixture_ended() == 400);
	check_each_once(400);
	CU_ASSERT_EQUAL(atomic_load(&fixture_done), 100);
	CU_ASSERT_EQUAL(atomic_load(&fixture_failed), 300);
	CU_ASSERT_EQUAL(probes[1].status, WEIR_ELINK);
	CU_ASSERT_EQUAL(probes[2].status, WEIR_ELINK);
	CU_ASSERT_EQUAL(probes[3].status, WEIR_EDROPPED);
	CU_ASSERT_EQUAL(stage_view(g, "careless").unhandled, 100);
	weir_thread_detach();
	finish_graph(g, 0);
	weir_log_set_fd(2);
}

static void deadly_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	for (int i = 0; i < n; i++) {
		if (((struct probe *)ev[i])->seq % 100 == 57)
			pthread_exit(NULL);
		weir_event_finish(&ev[i], WEIR_OK);
	}
}

static const struct weir_stage_ops deadly_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.deadly",
    .summary = "ends its thread now and then",
    .accepts = &probe_type,
    .handle = deadly_handle};

static void test_thread_death_loses_nothing(void)
{
	struct weir_spec *spec = weir_spec_new("deadly");
	struct weir_stage_spec *s = fixture_stage(spec, "deadly", "t.deadly", NULL);

	fixture_set(s, "threads.max", "2");
	prepare(300);
	weir_log_set_fd(-1);
	struct weir_graph *g = fixture_start(spec);
	weir_thread_attach(g, "test");
	fixture_offer_all(weir_graph_stage(g, "deadly"), probes, 300, 50);
	FIXTURE_AWAIT(fixture_ended() == 300);
	check_each_once(300);
	CU_ASSERT_EQUAL(probes[57].status, WEIR_EDIED);
	CU_ASSERT_EQUAL(probes[56].status, WEIR_OK);
	struct weir_stage_view v = stage_view(g, "deadly");
	CU_ASSERT_EQUAL(v.thread_deaths, 3);
	weir_thread_detach();
	finish_graph(g, 0);
	weir_log_set_fd(2);
}

/* ---- modes ---- */

static atomic_int inside, most_inside;

static void alone_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	int now = atomic_fetch_add(&inside, 1) + 1, most = atomic_load(&most_inside);

	while (now > most && !atomic_compare_exchange_weak(&most_inside, &most, now))
		;
	end_handle(st, ev, n);
	atomic_fetch_sub(&inside, 1);
}

static const struct weir_stage_ops alone_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.alone",
    .summary = "counts how many are inside",
    .flags = WEIR_STAGE_SINGLE,
    .accepts = &probe_type,
    .handle = alone_handle};

static void test_exclusive_one_at_a_time(void)
{
	struct weir_spec *spec = weir_spec_new("alone");
	struct weir_stage_spec *s = fixture_stage(spec, "alone", "t.alone", NULL);

	fixture_set(s, "threads.max", "4");
	fixture_set(s, "threads.min", "4");
	fixture_set(s, "cohort.max", "8");
	prepare(N);
	atomic_store(&most_inside, 0);
	struct weir_graph *g = fixture_start(spec);
	weir_thread_attach(g, "test");
	fixture_offer_all(weir_graph_stage(g, "alone"), probes, N, 64);
	FIXTURE_AWAIT(fixture_ended() == N);
	CU_ASSERT_EQUAL(atomic_load(&most_inside), 1);
	CU_ASSERT_STRING_EQUAL(stage_view(g, "alone").mode, "exclusive");
	weir_thread_detach();
	finish_graph(g, 0);
}

static pthread_t thread_of_key[13];
static uint64_t last_of_key[13];
static atomic_int key_faults;

static void by_key_finish(struct probe *p, int status)
{
	(void)status;
	/* Each key belongs to one thread, so this needs no lock: that is the guarantee under
	 * test. */
	if (last_of_key[p->producer] == 0)
		thread_of_key[p->producer] = pthread_self();
	if (!pthread_equal(thread_of_key[p->producer], pthread_self()) ||
	    p->seq + 1 <= last_of_key[p->producer])
		atomic_fetch_add(&key_faults, 1);
	last_of_key[p->producer] = p->seq + 1;
}

static void test_partitioned_same_key_same_thread(void)
{
	struct weir_spec *spec = weir_spec_new("parts");
	struct weir_stage_spec *s = fixture_stage(spec, "end", "t.end", NULL);

	fixture_set(s, "threads.max", "3");
	fixture_set(s, "threads.min", "3");
	weir_spec_text(&s->threads.policy, "static");
	s->mode = WEIR_MODE_PARTITIONED;
	weir_spec_text(&s->key, "producer");
	/* no event is refused: one that is offered again would be behind later ones */
	fixture_set(s, "queue.limit", "20000");
	weir_spec_text(&s->admission.policy, "none");
	prepare(N);
	memset(last_of_key, 0, sizeof(last_of_key));
	atomic_store(&key_faults, 0);
	fixture_on_finish = by_key_finish;
	struct weir_graph *g = fixture_start(spec);
	weir_thread_attach(g, "test");
	/* Partitions move while threads of the pool start; a parked thread knows its partitions. */
	struct pool *pool = weir_graph_stage(g, "end")->pool;
	FIXTURE_AWAIT(pool_seats(pool) == 3 && atomic_load(&pool->n_idle) == 3);
	fixture_offer_all(weir_graph_stage(g, "end"), probes, N, 64);
	FIXTURE_AWAIT(fixture_ended() == N);
	CU_ASSERT_EQUAL(atomic_load(&key_faults), 0);
	weir_thread_detach();
	finish_graph(g, 0);
}

static void cohort_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 1; i < n; i++)
		if (ev[i]->key != ev[0]->key)
			atomic_fetch_add(&key_faults, 1);
	end_handle(st, ev, n);
}

static const struct weir_stage_ops cohort_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.cohort",
    .summary = "wants batches of one key",
    .accepts = &probe_type,
    .handle = cohort_handle};

static void test_cohorts_have_one_key(void)
{
	struct weir_spec *spec = weir_spec_new("cohort");
	struct weir_stage_spec *s = fixture_stage(spec, "cohort", "t.cohort", NULL);

	weir_spec_text(&s->cohort.by, "producer");
	fixture_set(s, "cohort.max", "16");
	fixture_set(s, "cohort.linger", "200us");
	prepare(N);
	atomic_store(&key_faults, 0);
	struct weir_graph *g = fixture_start(spec);
	weir_thread_attach(g, "test");
	fixture_offer_all(weir_graph_stage(g, "cohort"), probes, N, 64);
	FIXTURE_AWAIT(fixture_ended() == N);
	CU_ASSERT_EQUAL(atomic_load(&key_faults), 0);
	struct weir_stage_view v = stage_view(g, "cohort");
	CU_ASSERT(v.batch_events > v.batches); /* some batches had several events */
	weir_thread_detach();
	finish_graph(g, 0);
}

static void test_prepare(void)
{
	static const struct weir_stage_ops *const all[] = {
	    &end_ops, &careless_ops, &deadly_ops, &alone_ops, &cohort_ops};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		fixture_register(all[i]);
	CU_ASSERT_PTR_EQUAL(weir_stage_type_find("t.end"), &end_ops);
}

CUNIT_MAIN("stage", {"types are known", test_prepare},
    {"leftovers and unlinked outlets", test_leftovers_and_bad_outlets},
    {"a dying thread loses nothing", test_thread_death_loses_nothing},
    {"exclusive: one at a time", test_exclusive_one_at_a_time},
    {"partitioned: same key, same thread, in order", test_partitioned_same_key_same_thread},
    {"cohorts have one key", test_cohorts_have_one_key})
