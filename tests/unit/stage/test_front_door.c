/* SPDX-License-Identifier: MIT */
/*
 * Admission upstream in a graph with threads. `first` sends class 0 on to `second`, whose policy is
 * weir, and finishes class 1 itself. Events that second cannot handle are refused at first: only
 * those of class 0, and never at second itself (I8 of docs/overload-derivation.md). Events in
 * flight leave no trace once they are through, or once the threads that had them have died (I2,
 * I14).
 *
 * second's handlers wait for control ticks, so that the meter sees a cost of about 20 ms per event,
 * or for the test while the gate is closed. No time is measured here.
 */
#include "fixture/graph/probes.h"

#include "stage/shed_token.h"
#include "stage/stage.h"

/* seq of the events that end their thread: in first, and in second. */
#define DEADLY_FIRST  15003
#define DEADLY_SECOND 15010

/* Enough to learn link shares and costs; the gate is known after the first. */
#define LESSONS 12

static atomic_ullong ticks;
static struct admission_policy counting; /* weir, with its ticks counted */

static void counting_tick(
    void *state, const struct weir_admission_spec *p, const struct admission_sample *sample)
{
	admission_weir.tick(state, p, sample);
	atomic_fetch_add(&ticks, 1);
}

/* ---- stages ---- */

static atomic_int first_open = 1;

static void first_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	FIXTURE_AWAIT(atomic_load(&first_open));
	for (int i = 0; i < n; i++) {
		if (((struct probe *)ev[i])->seq == DEADLY_FIRST)
			pthread_exit(NULL);
		if (ev[i]->class_id == 0)
			weir_emit(st, 0, &ev[i]);
		else
			weir_event_finish(&ev[i], WEIR_OK);
	}
}

static const struct weir_stage_ops first_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.first",
    .summary = "sends class 0 on",
    .flags = WEIR_STAGE_BLOCKS,
    .accepts = &probe_type,
    .outlets = pass_outlets,
    .handle = first_handle};

static void second_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	unsigned long long from = atomic_load(&ticks);

	FIXTURE_AWAIT(atomic_load(&ticks) >= from + 2 && atomic_load(&probe_gate));
	if (((struct probe *)ev[0])->seq == DEADLY_SECOND)
		pthread_exit(NULL);
	end_handle(st, ev, n);
}

static const struct weir_stage_ops second_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.second",
    .summary = "takes two ticks, and as long as the gate is shut",
    .flags = WEIR_STAGE_BLOCKS,
    .accepts = &probe_type,
    .handle = second_handle};

/* ---- the graph ---- */

static struct weir_graph *g;
static struct sink *second;
static int at; /* probes used */

static void await_ticks(unsigned n)
{
	unsigned long long from = atomic_load(&ticks);

	FIXTURE_AWAIT(atomic_load(&ticks) >= from + n);
}

static void between(struct weir_stage_spec *s)
{
	s->inlined = true;
	fixture_set(s, "admission.policy", "none"); /* other policies need a queue */
}

/* Start the graph with objectives of slo_ms. */
static void start(bool inline_between, int64_t slo_ms)
{
	struct weir_spec *spec = weir_spec_new("front door");
	struct weir_errs *errs = calloc(1, sizeof(*errs));
	struct weir_stage_spec *s;

	for (int c = 0; c < 2; c++) {
		struct weir_class_spec *class = weir_spec_add_class(spec, c ? "short" : "long");
		class->priority = 0;
		class->slo_ns = slo_ms * 1000000;
	}
	s = fixture_stage(spec, "first", "t.first", inline_between ? "between" : "second");
	fixture_set(s, "admission.policy", "none");
	fixture_set(s, "threads.min", "8");
	fixture_set(s, "threads.max", "8");
	if (inline_between)
		between(fixture_stage(spec, "between", "t.pass", "second"));
	s = fixture_stage(spec, "second", "t.second", NULL);
	fixture_set(s, "admission.policy", "weir");
	fixture_set(s, "threads.min", "2");
	fixture_set(s, "threads.max", "2");
	fixture_set(s, "cohort.max", "1");
	prepare(N);
	at = 0;
	atomic_store(&probe_gate, 1);
	g = fixture_build(spec);
	second = &weir_graph_stage(g, "second")->sink;
	counting = admission_weir;
	counting.tick = counting_tick;
	second->policy = &counting;
	CU_ASSERT_EQUAL_FATAL(weir_graph_start(g, errs), 0);
	free(errs);
	weir_thread_attach(g, "test");
}

/* Offer `n` new events of the class to first in one run; refused ones are finished. Returns how
 * many were admitted. */
static int offer(int class_id, int n)
{
	struct weir_event *ev[WEIR_BATCH_MAX];
	struct shed_token t;
	int reason = WEIR_OK;

	CU_ASSERT_FATAL(at + n <= N);
	for (int i = 0; i < n; i++, at++) {
		weir_event_init(&probes[at].ev, &probe_type, 1);
		probes[at].ev.class_id = (uint8_t)class_id;
		probes[at].ev.session = (uint32_t)at + 1;
		ev[i] = &probes[at].ev;
	}
	int taken = weir_offer(weir_graph_stage(g, "first"), ev, n, &reason);
	for (int i = 0; i < n - taken; i++) {
		CU_ASSERT(
		    reason == WEIR_EPRIORITY || reason == WEIR_EDELAY || reason == WEIR_EDRAINING);
		CU_ASSERT(shed_token_unpack(ev[i]->trace_id, &t) &&
			  t.stage == weir_graph_stage(g, "second")->id);
		weir_event_finish(&ev[i], reason);
	}
	return taken;
}

static uint64_t all_shed(const char *stage, int class_id)
{
	struct weir_stage_view v = stage_view(g, stage);
	uint64_t n = 0;

	for (int i = 0; i < WEIR_SHED_REASONS; i++)
		n += v.class_view[class_id].shed[i];
	return n;
}

/* Let the control thread learn where class 0 goes and what it costs there. */
static void teach(void)
{
	for (int i = 0; i < LESSONS; i++) {
		CU_ASSERT_EQUAL(offer(0, 1), 1);
		CU_ASSERT_EQUAL(offer(1, 1), 1);
		FIXTURE_AWAIT(fixture_ended() == (uint64_t)at);
	}
	struct ahead *gate = weir_graph_stage(g, "first")->sink.ahead;
	FIXTURE_AWAIT(atomic_load(&gate->fronts[0]) == 1u << second->front);
	FIXTURE_AWAIT(atomic_load(&second->cost_ns[0]) > ADMISSION_TICK_NS / 2);
	CU_ASSERT_EQUAL(atomic_load(&gate->fronts[1]), 0);
}

static void end(int64_t law)
{
	FIXTURE_AWAIT(fixture_ended() == (uint64_t)at);
	FIXTURE_AWAIT(atomic_load(&second->pipeline_ns) == 0);
	await_ticks(3); /* the work in flight stays 0 */
	CU_ASSERT_EQUAL(atomic_load(&second->pipeline_ns), 0);
	for (int i = 0; i < 2; i++) {
		struct weir_stage_view v = stage_view(g, i ? "second" : "first");
		CU_ASSERT_EQUAL(v.in_flight, 0);
		CU_ASSERT_EQUAL(v.law_residual, 0);
	}
	check_each_once(at);
	weir_thread_detach();
	finish_graph(g, law);
}

/* ---- tests ---- */

static void flood(bool inline_between)
{
	int taken = 0, offered = 0;

	start(inline_between, 100);
	teach();
	atomic_store(&probe_gate, 0);
	/* Until admission stops: two events in handlers plus 50 ms of wait, which is about five
	 * events of 20 ms each. They are fewer if the machine is so busy that ticks are late and
	 * events cost more. */
	do
		taken += offer(0, 1);
	while (++offered < 200 && taken == offered);
	CU_ASSERT(taken > 0 && taken < 40);
	/* Admission stays closed at each tick, except for a trickle. */
	for (int i = 0; i < 20; i++) {
		await_ticks(1);
		taken += offer(0, 50);
		offered += 50;
		CU_ASSERT_EQUAL(offer(1, 10), 10);
	}
	CU_ASSERT(taken < 100);
	CU_ASSERT_EQUAL(all_shed("first", 0), (uint64_t)(offered - taken));
	CU_ASSERT_EQUAL(all_shed("first", 1), 0);
	FIXTURE_AWAIT(stage_view(g, "first").in_flight == 0);
	struct weir_stage_view v = stage_view(g, "second");
	CU_ASSERT_EQUAL(v.class_view[0].offered, (uint64_t)(LESSONS + taken));
	CU_ASSERT_EQUAL(all_shed("second", 0), 0); /* I8 */
	CU_ASSERT_EQUAL(v.in_flight, (uint64_t)taken);
	atomic_store(&probe_gate, 1);
	FIXTURE_AWAIT(stage_view(g, "second").in_flight == 0);
	/* The gate was closed for longer than the objective: events that waited all the time are
	 * late. */
	v = stage_view(g, "second");
	CU_ASSERT_EQUAL(all_shed("second", 0), v.class_view[0].shed[weir_shed_index(WEIR_EDELAY)]);
	CU_ASSERT(all_shed("second", 0) < (uint64_t)taken);
	int closed = 0;
	while (offer(0, 1) == 0 && ++closed < 1000) /* admits again */
		await_ticks(1);
	CU_ASSERT(closed < 1000);
	CU_ASSERT_EQUAL(atomic_load(&second->nonsense), 0);
	end(0);
}

static void test_flood(void)
{
	flood(false);
}

static void test_flood_with_an_inline_stage_between(void)
{
	flood(true);
}

/* Events that first has in its handlers have not gone on yet. That does not mean that they go
 * elsewhere. */
static void test_work_in_hand(void)
{
	start(false, 60000);
	teach();
	struct ahead *gate = weir_graph_stage(g, "first")->sink.ahead;
	atomic_store(&first_open, 0);
	CU_ASSERT_EQUAL(offer(0, 30), 30);
	FIXTURE_AWAIT(stage_view(g, "first").threads[WEIR_THREAD_BUSY] == 8);
	await_ticks(5);
	CU_ASSERT_EQUAL(atomic_load(&gate->fronts[0]), 1u << second->front);
	CU_ASSERT(atomic_load(&second->pipeline_ns) >= 20 * atomic_load(&second->cost_ns[0]));
	atomic_store(&first_open, 1);
	end(0);
}

/* If an operator drains a stage, its events are refused at the first stage, before any work is done
 * for them. Other events go on. */
static void test_drained(void)
{
	char why[200];

	start(false, 60000);
	teach();
	CU_ASSERT_EQUAL(weir_graph_steer(g, "second", WEIR_STEER_DRAIN, why, sizeof(why)), 0);
	CU_ASSERT_EQUAL(offer(0, 10), 0);
	CU_ASSERT_EQUAL(offer(1, 10), 10);
	CU_ASSERT_EQUAL(
	    stage_view(g, "first").class_view[0].shed[weir_shed_index(WEIR_EDRAINING)], 10);
	CU_ASSERT_EQUAL(stage_view(g, "second").class_view[0].refused_ahead, 10);
	CU_ASSERT_EQUAL(all_shed("second", 0), 0);
	CU_ASSERT_EQUAL(weir_graph_steer(g, "second", WEIR_STEER_RUN, why, sizeof(why)), 0);
	CU_ASSERT_EQUAL(offer(0, 1), 1);
	end(0);
}

/* Threads die while events are in flight to second, and in second. */
static void test_deaths(void)
{
	start(false, 60000);
	teach();
	weir_log_set_fd(-1); /* deaths are logged */
	int lessons = at;
	at = DEADLY_FIRST - 3;
	for (int i = lessons; i < at; i++) /* unused */
		atomic_store(&probes[i].finishes, 1);
	int unused = at - lessons;
	atomic_fetch_add(&fixture_done, (unsigned)unused);
	CU_ASSERT_EQUAL(offer(0, 6), 6);
	FIXTURE_AWAIT(fixture_ended() == (uint64_t)at);
	CU_ASSERT_EQUAL(probes[DEADLY_FIRST].status, WEIR_EDIED);
	FIXTURE_AWAIT(stage_view(g, "first").thread_deaths == 1);
	FIXTURE_AWAIT(atomic_load(&second->pipeline_ns) == 0);
	for (int i = 0; i < 6; i++) {
		CU_ASSERT_EQUAL(offer(0, 1), 1);
		FIXTURE_AWAIT(fixture_ended() == (uint64_t)at);
	}
	CU_ASSERT_EQUAL(probes[DEADLY_SECOND].status, WEIR_EDIED);
	FIXTURE_AWAIT(stage_view(g, "second").thread_deaths == 1);
	CU_ASSERT_EQUAL(all_shed("second", 0), 0);
	end(0);
	weir_log_set_fd(2);
}

static void test_prepare(void)
{
	fixture_register(&pass_ops);
	fixture_register(&first_ops);
	fixture_register(&second_ops);
}

CUNIT_MAIN("front door", {"types are known", test_prepare}, {"flood", test_flood},
    {"flood, an inline stage between", test_flood_with_an_inline_stage_between},
    {"work in hand", test_work_in_hand}, {"drained", test_drained}, {"deaths", test_deaths})
