/* SPDX-License-Identifier: MIT */
/* A graph as a whole: placements, doors, modes, leftovers, dying threads, resizing, the law. */
#include "fixture/graph_fixture.h"

#include "cunit_main.h"
#include "sched/pool.h"
#include "flow/graph.h"

#define N 20000

static struct probe probes[N];

static void check_each_once(int n)
{
	int wrong = 0;

	for (int i = 0; i < n; i++)
		wrong += atomic_load(&probes[i].finishes) != 1;
	CU_ASSERT_EQUAL(wrong, 0);
}

static void prepare(int n)
{
	fixture_reset();
	for (int i = 0; i < n; i++) {
		probes[i] = (struct probe){.producer = i % 13, .seq = (uint64_t)i};
		atomic_init(&probes[i].finishes, 0);
	}
}

static struct weir_stage_view stage_view(struct weir_graph *g, const char *name)
{
	struct weir_graph_view *v = NULL;
	struct weir_stage_view out = {0};

	CU_ASSERT_EQUAL_FATAL(weir_graph_view(g, &v), 0);
	for (int i = 0; i < v->n_stages; i++)
		if (strcmp(v->stages[i].name, name) == 0)
			out = v->stages[i];
	out.links = NULL;
	weir_graph_view_free(v);
	return out;
}

static void finish_graph(struct weir_graph *g, int64_t want_law)
{
	struct weir_drain_report r;

	weir_graph_drain(g, 10000000000LL, &r);
	CU_ASSERT_EQUAL(r.law_error, want_law);
	CU_ASSERT_EQUAL(r.closed, 0);
	weir_graph_free(g);
}

/* The same three stages, unchanged, wherever the configuration puts them. */
static void run_placed(const char *placement)
{
	struct weir_spec *spec = weir_spec_new("placed");
	struct weir_group_spec *group = weir_spec_add_group(spec, "shared");

	group->threads.max = 2;
	fixture_stage(spec, "a", "t.pass", "b");
	fixture_stage(spec, "b", "t.pass", "c");
	fixture_stage(spec, "c", "t.end", NULL);
	for (int i = 0; i < 3; i++) {
		struct weir_stage_spec *s = &spec->stages[i];
		s->threads.max = 2;
		fixture_set(s, "queue.limit", "20000"); /* a fast sender must not be refused here */
		s->inlined = strcmp(placement, "inline") == 0;
		if (strcmp(placement, "group") == 0)
			weir_spec_text(&s->group, "shared");
	}
	prepare(N);
	struct weir_graph *g = fixture_start(spec);
	CU_ASSERT_EQUAL_FATAL(weir_thread_attach(g, "test"), 0);
	fixture_offer_all(weir_graph_stage(g, "a"), probes, N, 64);
	FIXTURE_AWAIT(fixture_ended() == N);
	weir_thread_detach();
	check_each_once(N);
	struct weir_stage_view v = stage_view(g, "b");
	CU_ASSERT_STRING_EQUAL(v.placement, placement);
	CU_ASSERT_EQUAL(v.class_view[0].offered, N);
	CU_ASSERT_EQUAL(v.batch_events, N);
	CU_ASSERT_EQUAL(weir_hist_total(&v.class_view[0].service), N);
	CU_ASSERT_EQUAL(weir_hist_total(&v.class_view[0].wait), N);
	CU_ASSERT_EQUAL(atomic_load(&fixture_done), N);
	finish_graph(g, 0);
}

static void test_own_pools(void)
{
	run_placed("pool");
}

static void test_group(void)
{
	run_placed("group");
}

static void test_inline(void)
{
	run_placed("inline");
}

/* ---- the door ---- */

static atomic_int gate_open;

static void gate_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	FIXTURE_AWAIT(atomic_load(&gate_open));
	end_handle(st, ev, n);
}

static const struct weir_stage_ops gate_ops = {.abi = WEIR_STAGE_ABI, .name = "t.gate",
    .summary = "waits for the test", .flags = WEIR_STAGE_BLOCKS, .accepts = &probe_type,
    .handle = gate_handle};

static void test_full_queue_refuses_the_rest(void)
{
	struct weir_spec *spec = weir_spec_new("door");
	struct weir_stage_spec *s = fixture_stage(spec, "gate", "t.gate", NULL);
	struct weir_event *ev[100];
	int reason = 0;

	fixture_set(s, "queue.limit", "40");
	fixture_set(s, "threads.max", "1");
	prepare(200);
	atomic_store(&gate_open, 0);
	struct weir_graph *g = fixture_start(spec);
	struct weir_stage *gate = weir_graph_stage(g, "gate");
	weir_thread_attach(g, "test");
	fixture_offer_all(gate, probes, 1, 1);
	FIXTURE_AWAIT(stage_view(g, "gate").threads[WEIR_THREAD_BUSY] == 1);
	for (int i = 0; i < 100; i++) {
		weir_event_init(&probes[100 + i].ev, &probe_type, 1);
		ev[i] = &probes[100 + i].ev;
	}
	CU_ASSERT_EQUAL(weir_offer(gate, ev, 100, &reason), 40);
	CU_ASSERT_EQUAL(reason, WEIR_EQUEUE);
	for (int i = 0; i < 60; i++) { /* the refused are ours, in order, as they were */
		CU_ASSERT_PTR_EQUAL(ev[i], &probes[140 + i].ev);
		CU_ASSERT_EQUAL(ev[i]->state, WEIR_EVENT_NEW);
	}
	CU_ASSERT_PTR_NULL(ev[60]);
	struct weir_stage_view v = stage_view(g, "gate");
	CU_ASSERT_EQUAL(v.class_view[0].shed[weir_shed_index(WEIR_EQUEUE)], 60);
	CU_ASSERT_EQUAL(v.queue_length, 40);
	CU_ASSERT_EQUAL(v.in_flight, 41);
	CU_ASSERT(llabs(v.law_residual) <= v.law_slack);
	CU_ASSERT(v.longest_running_ns > 0);
	CU_ASSERT(v.oldest_wait_ns > 0);
	atomic_store(&gate_open, 1);
	FIXTURE_AWAIT(fixture_ended() == 41);
	for (int i = 0; i < 60; i++)
		weir_event_finish(&ev[i], reason);
	CU_ASSERT_EQUAL(atomic_load(&fixture_shed), 60);
	weir_thread_detach();
	finish_graph(g, 0);
}

static void test_deadline_at_door_and_exit(void)
{
	struct weir_spec *spec = weir_spec_new("deadline");
	struct weir_stage_spec *s = fixture_stage(spec, "gate", "t.gate", NULL);
	struct weir_event *ev[2];
	int reason = 0;

	fixture_set(s, "threads.max", "1");
	prepare(10);
	atomic_store(&gate_open, 0);
	struct weir_graph *g = fixture_start(spec);
	struct weir_stage *gate = weir_graph_stage(g, "gate");
	weir_thread_attach(g, "test");
	fixture_offer_all(gate, probes, 1, 1);
	FIXTURE_AWAIT(stage_view(g, "gate").threads[WEIR_THREAD_BUSY] == 1);
	for (int i = 0; i < 2; i++) {
		weir_event_init(&probes[1 + i].ev, &probe_type, 1);
		ev[i] = &probes[1 + i].ev;
	}
	ev[0]->deadline_ns = 5; /* long ago */
	ev[1]->deadline_ns = weir_now_ns(gate) + 20000000;
	CU_ASSERT_EQUAL(weir_offer(gate, ev, 2, &reason), 1);
	CU_ASSERT_EQUAL(reason, WEIR_EDEADLINE);
	CU_ASSERT_PTR_EQUAL(ev[0], &probes[1].ev);
	weir_event_finish(&ev[0], reason);
	FIXTURE_AWAIT(stage_view(g, "gate").oldest_wait_ns > 25000000);
	atomic_store(&gate_open, 1);
	FIXTURE_AWAIT(fixture_ended() == 3);
	CU_ASSERT_EQUAL(probes[2].status, WEIR_EDEADLINE);
	CU_ASSERT_EQUAL(stage_view(g, "gate").class_view[0].shed[weir_shed_index(WEIR_EDEADLINE)], 2);
	weir_thread_detach();
	finish_graph(g, 0);
}

/* ---- refusals come back to the sender ---- */

static atomic_int returned;

static void offering_refused(
    struct weir_stage *st, int outlet, struct weir_event **ev, int n, int reason)
{
	CU_ASSERT_EQUAL(outlet, 0);
	CU_ASSERT_EQUAL(reason, WEIR_ETHRESHOLD);
	atomic_fetch_add(&returned, n);
	for (int i = 0; i < n; i += 2) /* every other one elsewhere; the rest is finished for us */
		weir_emit(st, 1, &ev[i]);
}

static const struct weir_outlet offering_outlets[] = {{"first", &probe_type, false, ""},
    {"second", &probe_type, false, ""}, {.name = NULL}};

static const struct weir_stage_ops offering_ops = {.abi = WEIR_STAGE_ABI, .name = "t.offering",
    .summary = "emits, then elsewhere", .accepts = &probe_type, .outlets = offering_outlets,
    .handle = pass_handle, .refused = offering_refused};

static void test_refused_run_returns(void)
{
	struct weir_spec *spec = weir_spec_new("refused");
	struct weir_stage_spec *s = weir_spec_add_stage(spec, "from", "t.offering");

	s->inlined = true;
	weir_spec_link(s, "first", "gate", false);
	weir_spec_link(s, "second", "end", false);
	s = fixture_stage(spec, "gate", "t.gate", NULL);
	fixture_set(s, "threads.max", "1");
	weir_spec_text(&s->admission.policy, "threshold");
	fixture_set(s, "admission.threshold", "10");
	fixture_stage(spec, "end", "t.end", NULL);
	prepare(51);
	atomic_store(&gate_open, 0);
	atomic_store(&returned, 0);
	struct weir_graph *g = fixture_start(spec);
	weir_thread_attach(g, "test");
	fixture_offer_all(weir_graph_stage(g, "gate"), probes + 50, 1, 1);
	FIXTURE_AWAIT(stage_view(g, "gate").threads[WEIR_THREAD_BUSY] == 1);
	fixture_offer_all(weir_graph_stage(g, "from"), probes, 50, 50);
	CU_ASSERT_EQUAL(atomic_load(&returned), 40);
	FIXTURE_AWAIT(fixture_ended() == 40);
	CU_ASSERT_EQUAL(atomic_load(&fixture_shed), 20);
	CU_ASSERT_EQUAL(atomic_load(&fixture_done), 20);
	/* The answer of a refused event names the stage that refused. */
	CU_ASSERT_EQUAL(probes[11].ev.stage, 1);
	struct weir_stage_view from = stage_view(g, "from");
	CU_ASSERT_EQUAL(from.class_view[0].completed, 30);
	CU_ASSERT_EQUAL(from.class_view[0].shed[weir_shed_index(WEIR_ETHRESHOLD)], 20);
	atomic_store(&gate_open, 1);
	FIXTURE_AWAIT(fixture_ended() == 51);
	weir_thread_detach();
	finish_graph(g, 0);
}

static void test_shadow_counts_only(void)
{
	struct weir_spec *spec = weir_spec_new("shadow");
	struct weir_stage_spec *s = fixture_stage(spec, "end", "t.end", NULL);

	weir_spec_text(&s->admission.policy, "rate");
	fixture_set(s, "admission.rate", "0.001");
	fixture_set(s, "admission.mode", "shadow");
	prepare(100);
	struct weir_graph *g = fixture_start(spec);
	weir_thread_attach(g, "test");
	fixture_offer_all(weir_graph_stage(g, "end"), probes, 100, 10);
	FIXTURE_AWAIT(fixture_ended() == 100);
	CU_ASSERT_EQUAL(atomic_load(&fixture_done), 100);
	CU_ASSERT_EQUAL(stage_view(g, "end").class_view[0].shadow_shed, 99);
	weir_thread_detach();
	finish_graph(g, 0);
}

/* ---- handlers that misbehave ---- */

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

static const struct weir_stage_ops careless_ops = {.abi = WEIR_STAGE_ABI, .name = "t.careless",
    .summary = "leaves events behind", .accepts = &probe_type, .outlets = careless_outlets,
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

static const struct weir_stage_ops deadly_ops = {.abi = WEIR_STAGE_ABI, .name = "t.deadly",
    .summary = "ends its thread now and then", .accepts = &probe_type, .handle = deadly_handle};

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

static const struct weir_stage_ops alone_ops = {.abi = WEIR_STAGE_ABI, .name = "t.alone",
    .summary = "counts how many are inside", .flags = WEIR_STAGE_SINGLE, .accepts = &probe_type,
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
	/* Each key is one thread's, so these need no lock: that is the promise under test. */
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
	prepare(N);
	memset(last_of_key, 0, sizeof(last_of_key));
	atomic_store(&key_faults, 0);
	fixture_on_finish = by_key_finish;
	struct weir_graph *g = fixture_start(spec);
	weir_thread_attach(g, "test");
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

static const struct weir_stage_ops cohort_ops = {.abi = WEIR_STAGE_ABI, .name = "t.cohort",
    .summary = "wants batches of one key", .accepts = &probe_type, .handle = cohort_handle};

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
	CU_ASSERT(v.batch_events > v.batches); /* batches there were */
	weir_thread_detach();
	finish_graph(g, 0);
}

/* ---- resizing, knobs, drain ---- */

static void test_resize_by_knob(void)
{
	struct weir_spec *spec = weir_spec_new("resize");
	struct weir_stage_spec *s = fixture_stage(spec, "end", "t.end", NULL);
	char why[256] = "", value[64];

	fixture_set(s, "threads.max", "8");
	weir_spec_text(&s->threads.policy, "static");
	prepare(N);
	struct weir_graph *g = fixture_start(spec);
	weir_thread_attach(g, "test");
	for (int round = 0; round < 10; round++) {
		CU_ASSERT_EQUAL(weir_graph_set(g, "end", "threads.min", round % 2 ? "1" : "6", why,
		    sizeof(why)), 0);
		CU_ASSERT_EQUAL(weir_graph_set(g, "end", "threads.max", round % 2 ? "1" : "8", why,
		    sizeof(why)), 0);
		fixture_offer_all(weir_graph_stage(g, "end"), probes + round * 2000, 2000, 32);
		int want = round % 2 ? 1 : 6;
		FIXTURE_AWAIT(stage_view(g, "end").threads_now == want);
		if (round % 2)
			weir_graph_set(g, "end", "threads.max", "8", why, sizeof(why));
	}
	FIXTURE_AWAIT(fixture_ended() == N);
	check_each_once(N);
	CU_ASSERT_EQUAL(weir_graph_get(g, "end", "threads.max", value, sizeof(value)), 0);
	CU_ASSERT_STRING_EQUAL(value, "8");
	weir_thread_detach();
	finish_graph(g, 0);
}

static void test_bad_knobs(void)
{
	struct weir_spec *spec = weir_spec_new("knobs");
	char why[256] = "";

	fixture_stage(spec, "end", "t.end", NULL);
	struct weir_graph *g = fixture_start(spec);
	CU_ASSERT_EQUAL(weir_graph_set(g, "nope", "threads.max", "8", why, sizeof(why)), WEIR_ENOENT);
	CU_ASSERT_STRING_EQUAL(why, "there is no stage 'nope'");
	CU_ASSERT_EQUAL(weir_graph_set(g, "end", "treads.max", "8", why, sizeof(why)), WEIR_ENOENT);
	CU_ASSERT_EQUAL(weir_graph_set(g, "end", "threads.max", "many", why, sizeof(why)), WEIR_EINVAL);
	CU_ASSERT_EQUAL(weir_graph_set(g, "end", "threads.policy", "seda", why, sizeof(why)), WEIR_EINVAL);
	CU_ASSERT_EQUAL(weir_graph_set(g, "end", "threads.max", "9", why, sizeof(why)), 0);
	CU_ASSERT_EQUAL(weir_graph_set(g, "end", "threads.min", "10", why, sizeof(why)), WEIR_EINVAL);
	struct weir_decision d[8];
	CU_ASSERT_EQUAL(weir_graph_decisions(g, d, 8), 1);
	CU_ASSERT_STRING_EQUAL(d[0].actor, "operator");
	CU_ASSERT_STRING_EQUAL(d[0].rule, "threads.max = 9");
	finish_graph(g, 0);
}

static void test_drain_closes_what_is_left(void)
{
	struct weir_spec *spec = weir_spec_new("drain");
	struct weir_stage_spec *s = fixture_stage(spec, "gate", "t.gate", NULL);
	struct weir_drain_report r;
	pthread_t opener;

	fixture_set(s, "threads.max", "1");
	fixture_set(s, "cohort.max", "1");
	prepare(50);
	atomic_store(&gate_open, 0);
	struct weir_graph *g = fixture_start(spec);
	weir_thread_attach(g, "test");
	fixture_offer_all(weir_graph_stage(g, "gate"), probes, 50, 50);
	FIXTURE_AWAIT(stage_view(g, "gate").threads[WEIR_THREAD_BUSY] == 1);
	weir_graph_hurry(g);
	/* The handler is let go only when the queue has been closed over it. */
	void *open_when_closed(void *arg);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&opener, NULL, open_when_closed, NULL), 0);
	weir_graph_drain(g, 60000000000LL, &r);
	pthread_join(opener, NULL);
	weir_thread_detach();
	CU_ASSERT_EQUAL(r.closed, 49);
	CU_ASSERT_EQUAL(r.law_error, 0);
	CU_ASSERT_EQUAL(atomic_load(&fixture_done), 1);
	CU_ASSERT_EQUAL(atomic_load(&fixture_failed), 49);
	check_each_once(50);
	weir_graph_free(g);
}

void *open_when_closed(void *arg);
void *open_when_closed(void *arg)
{
	FIXTURE_AWAIT(atomic_load(&fixture_failed) == 49);
	atomic_store(&gate_open, 1);
	return arg;
}

/* Make every type known, then run. */
static void test_registry(void)
{
	static const struct weir_stage_ops *const all[] = {&pass_ops, &end_ops, &gate_ops,
	    &offering_ops, &careless_ops, &deadly_ops, &alone_ops, &cohort_ops};
	static const struct weir_stage_ops old = {.abi = WEIR_STAGE_ABI + 1, .name = "t.old",
	    .summary = "x", .handle = end_handle};
	struct weir_err err = {0};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		fixture_register(all[i]);
		CU_ASSERT_PTR_EQUAL(weir_stage_type_find(all[i]->name), all[i]);
	}
	CU_ASSERT_EQUAL(weir_stage_register(&old, &err), WEIR_EABI);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "ABI"));
	const char *last = "";
	for (int i = 0; weir_stage_type_at(i); i++) {
		CU_ASSERT(strcmp(last, weir_stage_type_at(i)->name) < 0);
		last = weir_stage_type_at(i)->name;
	}
}

CUNIT_MAIN("graph", {"types are found, sorted, checked", test_registry},
    {"every stage with a pool of its own", test_own_pools}, {"all stages in one group", test_group},
    {"all stages inline", test_inline}, {"a full queue refuses the rest", test_full_queue_refuses_the_rest},
    {"deadlines at the door and at the exit", test_deadline_at_door_and_exit},
    {"a refused run returns to its sender", test_refused_run_returns},
    {"shadow mode only counts", test_shadow_counts_only},
    {"leftovers and unlinked outlets", test_leftovers_and_bad_outlets},
    {"a dying thread loses nothing", test_thread_death_loses_nothing},
    {"exclusive: one at a time", test_exclusive_one_at_a_time},
    {"partitioned: same key, same thread, in order", test_partitioned_same_key_same_thread},
    {"cohorts have one key", test_cohorts_have_one_key},
    {"threads follow the knobs", test_resize_by_knob}, {"bad knobs are refused in words", test_bad_knobs},
    {"drain closes what is left", test_drain_closes_what_is_left})
