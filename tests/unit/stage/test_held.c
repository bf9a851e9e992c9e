/* SPDX-License-Identifier: MIT */
/* Events that a stage holds count against the limit of its queue: queued and held events together
 * never exceed it, and an event that ends, goes on or comes back frees its slot. */
#include "fixture/graph/probes.h"

#include "admission/admission.h"
#include "graph/graph.h"

#define LIMIT 64
#define M     4000

static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;
static struct weir_event *kept;
static int n_kept;
static atomic_bool letting_go; /* events are finished instead of held */
static atomic_bool dies;

static void keep(struct weir_stage *st, struct weir_event **ev)
{
	struct weir_event *e = *ev;

	weir_hold(st, ev);
	pthread_mutex_lock(&kept_lock);
	e->next = kept;
	kept = e;
	n_kept++;
	pthread_mutex_unlock(&kept_lock);
}

static struct weir_event *take_kept(void)
{
	pthread_mutex_lock(&kept_lock);
	struct weir_event *ev = kept;
	if (ev) {
		kept = ev->next;
		n_kept--;
	}
	pthread_mutex_unlock(&kept_lock);
	return ev;
}

static int count_kept(void)
{
	pthread_mutex_lock(&kept_lock);
	int n = n_kept;
	pthread_mutex_unlock(&kept_lock);
	return n;
}

static void keep_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		if (atomic_load(&letting_go))
			weir_event_finish(&ev[i], WEIR_OK);
		else
			keep(st, &ev[i]);
		if (atomic_exchange(&dies, false))
			pthread_exit(NULL);
	}
}

static const struct weir_stage_ops keep_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.keep",
    .summary = "holds what comes",
    .accepts = &probe_type,
    .outlets = pass_outlets,
    .handle = keep_handle};

/* ---- invariants ---- */

static struct weir_graph *g;
static struct weir_stage *stage;
static int offered;

static struct weir_stage_spec *spec_of(struct weir_spec *spec)
{
	struct weir_stage_spec *s = fixture_stage(spec, "keep", "t.keep", NULL);

	fixture_set(s, "queue.limit", "64");
	/* Nothing is refused, even if the machine stalls for a second. */
	fixture_set(s, "slo", "1h");
	fixture_set(s, "threads.max", "3");
	fixture_set(s, "threads.min", "3");
	return s;
}

static void start(struct weir_spec *spec)
{
	prepare(M);
	atomic_store(&letting_go, false);
	offered = 0;
	g = fixture_start(spec);
	stage = weir_graph_stage(g, "keep");
	weir_thread_attach(g, "test");
}

/* Offer `n` more events of the class, one by one; refused ones end. Returns how many entered. */
static int offer(int n, int class_id)
{
	int taken = 0;

	for (int i = 0; i < n; i++) {
		CU_ASSERT_TRUE_FATAL(offered < M);
		struct weir_event *ev = &probes[offered++].ev;
		int reason = 0;
		weir_event_init(ev, &probe_type, 1);
		ev->class_id = (uint8_t)class_id;
		ev->key = (uint64_t)offered;
		taken += weir_offer(stage, &ev, 1, &reason);
		if (ev) {
			CU_ASSERT_EQUAL(reason, WEIR_EQUEUE);
			weir_event_finish(&ev, reason);
		}
	}
	return taken;
}

/* Whether no event is queued or in a handler. */
static bool is_settled(int held)
{
	struct queue *q = &stage->sink.queue;
	int64_t counted = 0;

	for (int c = 0; c < q->n_classes; c++)
		counted += queue_held(q, c);
	return queue_length(q) == 0 && count_kept() == held && counted == held &&
	       queue_kept_all(q) == held;
}

/* Await that no event is in a handler; the counts behind the limit are right. */
static void settled(int held)
{
	FIXTURE_AWAIT(is_settled(held));
	CU_ASSERT_EQUAL(stage_view(g, "keep").held, (uint64_t)held);
}

/* Offer events of the class until `n` more have entered: an offer may be refused while events that
 * return to the queue count twice (hold_requeued). */
static void fill(int n, int class_id)
{
	while (n > 0) {
		n -= offer(n, class_id);
		FIXTURE_AWAIT(is_settled(count_kept()));
	}
}

/* The same with many more events than can enter, without a pause. */
static void overfill(int n, int class_id)
{
	int taken = offer(500, class_id);

	CU_ASSERT_TRUE(taken <= n);
	FIXTURE_AWAIT(is_settled(count_kept()));
	fill(n - taken, class_id);
}

static void end(void)
{
	struct weir_event *ev;

	atomic_store(&letting_go, true);
	while ((ev = take_kept()))
		weir_event_finish(&ev, WEIR_OK);
	settled(0);
	FIXTURE_AWAIT(fixture_ended() == (uint64_t)offered);
	check_each_once(offered);
	weir_thread_detach();
	finish_graph(g, 0);
}

/* The limit applies from the first held event on. */
static void hold_first(void)
{
	CU_ASSERT_EQUAL(offer(1, 0), 1);
	settled(1);
}

static void check_bound(void)
{
	hold_first();
	overfill(LIMIT - 1, 0);
	settled(LIMIT);
	struct weir_stage_view v = stage_view(g, "keep");
	CU_ASSERT_TRUE(v.held + v.queue_length <= LIMIT);
	struct weir_event *ev = take_kept();
	weir_event_finish(&ev, WEIR_OK);
	settled(LIMIT - 1);
	CU_ASSERT_EQUAL(offer(10, 0), 1);
	ev = take_kept(); /* events that go on free their slot, too */
	if (ev)
		weir_emit(stage, 0, &ev);
	weir_thread_flush();
	FIXTURE_AWAIT(is_settled(LIMIT - 1));
	CU_ASSERT_EQUAL(offer(10, 0), 1);
	settled(LIMIT);
}

/* ---- tests ---- */

static void test_bound(void)
{
	struct weir_spec *spec = weir_spec_new("held");

	spec_of(spec);
	start(spec);
	check_bound();
	end();
}

/* Events in handlers when the stage holds for the first time may exceed the limit: here three
 * batches of one event, the first of each thread. */
static void test_first_hold(void)
{
	struct weir_spec *spec = weir_spec_new("held");

	fixture_set(spec_of(spec), "cohort.max", "1");
	start(spec);
	int taken = offer(500, 0);
	CU_ASSERT_TRUE(taken <= LIMIT + 3);
	FIXTURE_AWAIT(is_settled(count_kept()));
	fill(LIMIT - taken, 0);
	settled(taken > LIMIT ? taken : LIMIT);
	end();
}

static void test_policy_none(void)
{
	struct weir_spec *spec = weir_spec_new("held");

	fixture_set(spec_of(spec), "admission.policy", "none");
	start(spec);
	check_bound();
	end();
}

static void test_inline(void)
{
	struct weir_spec *spec = weir_spec_new("held");

	spec_of(spec)->inlined = true;
	start(spec);
	check_bound();
	end();
}

static void test_partitioned(void)
{
	struct weir_spec *spec = weir_spec_new("held");
	struct weir_stage_spec *s = spec_of(spec);

	s->mode = WEIR_MODE_PARTITIONED;
	weir_spec_text(&s->key, "event");
	start(spec);
	check_bound();
	end();
}

static void test_group(void)
{
	struct weir_spec *spec = weir_spec_new("held");

	weir_spec_add_group(spec, "all");
	weir_spec_text(&spec_of(spec)->group, "all");
	weir_spec_text(&fixture_stage(spec, "end", "t.end", NULL)->group, "all");
	start(spec);
	check_bound();
	end();
}

/* Events that come back enter regardless of the limit and count once. */
static void test_requeued(void)
{
	for (int inlined = 0; inlined < 2; inlined++) {
		struct weir_spec *spec = weir_spec_new("held");
		spec_of(spec)->inlined = inlined;
		start(spec);
		hold_first();
		overfill(LIMIT - 1, 0);
		settled(LIMIT);
		for (int i = 0; i < 10; i++) {
			struct weir_event *ev = take_kept();
			weir_requeue(stage, &ev);
		}
		CU_ASSERT_EQUAL(offer(1, 0), 0); /* no event enters between requeue and flush */
		weir_thread_flush();
		settled(LIMIT);
		CU_ASSERT_EQUAL(offer(10, 0), 0);
		end();
	}
}

/* Lower classes hold no more than their share. */
static void test_classes(void)
{
	struct weir_spec *spec = weir_spec_new("held");

	weir_spec_add_class(spec, "high");
	weir_spec_add_class(spec, "low");
	spec_of(spec);
	start(spec);
	CU_ASSERT_EQUAL(offer(1, 1), 1);
	settled(1);
	overfill(LIMIT / 2 - 1, 1);
	settled(LIMIT / 2);
	overfill(LIMIT / 2, 0);
	settled(LIMIT);
	end();
}

/* A thread that dies in a handler leaves no count behind. */
static void test_death(void)
{
	for (int inlined = 0; inlined < 2; inlined++) {
		struct weir_spec *spec = weir_spec_new("held");
		struct weir_stage_spec *s = spec_of(spec);
		if (inlined) { /* runs in the thread of another stage */
			s = fixture_stage(spec, "front", "t.pass", "keep");
			weir_spec_text(&s->threads.policy, "static");
			spec->stages[0].inlined = true;
		}
		start(spec);
		if (inlined)
			stage = weir_graph_stage(g, "front");
		atomic_store(&dies, true);
		CU_ASSERT_EQUAL(offer(1, 0), 1);
		FIXTURE_AWAIT(!atomic_load(&dies));
		stage = weir_graph_stage(g, "keep");
		settled(1);
		end();
	}
}

/* Once a stage has held an event, the events in its handlers count as well: many threads at once
 * cannot exceed the limit. */
static void *offer_many(void *arg)
{
	weir_thread_attach(g, "many");
	for (int i = 0; i < 200; i++) {
		struct weir_event *ev = &probes[1 + (size_t)arg * 200 + (size_t)i].ev;
		int reason = 0;
		weir_event_init(ev, &probe_type, 1);
		weir_offer(stage, &ev, 1, &reason);
		if (ev)
			weir_event_finish(&ev, reason);
	}
	weir_thread_detach();
	return NULL;
}

static void test_many_senders(void)
{
	for (int inlined = 0; inlined < 2; inlined++) {
		struct weir_spec *spec = weir_spec_new("held");
		pthread_t thread[4];
		spec_of(spec)->inlined = inlined;
		start(spec);
		hold_first();
		for (size_t i = 0; i < 4; i++)
			CU_ASSERT_EQUAL_FATAL(
			    pthread_create(&thread[i], NULL, offer_many, (void *)i), 0);
		for (int i = 0; i < 4; i++)
			pthread_join(thread[i], NULL);
		offered = 801;
		CU_ASSERT_TRUE(count_kept() <= LIMIT);
		FIXTURE_AWAIT(is_settled(count_kept()));
		fill(LIMIT - count_kept(), 0);
		settled(LIMIT);
		end();
	}
}

/* ---- what policies see ---- */

static _Atomic uint32_t held_seen;

static void see_init(void *state, const struct weir_admission_spec *p, int64_t now_ns)
{
	(void)state, (void)p, (void)now_ns;
}

static int see_admit(void *state, const struct weir_admission_spec *p,
    const struct admission_view *v, int class_id, int n, bool *refused, int *reason)
{
	(void)state, (void)p, (void)class_id, (void)refused, (void)reason;
	atomic_store(&held_seen, v->held);
	return n;
}

static const struct admission_policy see_policy = {
    .name = "see", .help = "the test's", .init = see_init, .admit = see_admit};

static void test_policies_see(void)
{
	struct weir_spec *spec = weir_spec_new("held");

	fixture_set(spec_of(spec), "admission.policy", "none");
	start(spec);
	CU_ASSERT_EQUAL(offer(20, 0), 20);
	settled(20);
	stage->sink.policy = &see_policy; /* no other thread offers */
	CU_ASSERT_EQUAL(offer(1, 0), 1);
	CU_ASSERT_EQUAL(atomic_load(&held_seen), 20);
	settled(21);
	CU_ASSERT_DOUBLE_EQUAL(weir_pressure(stage), 21.0 / LIMIT, 1e-6);
	end();
}

static void test_prepare(void)
{
	fixture_register(&keep_ops);
	fixture_register(&end_ops);
	fixture_register(&pass_ops);
}

CUNIT_MAIN("held events", {"types are known", test_prepare}, {"bound", test_bound},
    {"first hold", test_first_hold}, {"without a policy", test_policy_none},
    {"inline", test_inline}, {"partitioned", test_partitioned}, {"in a group", test_group},
    {"requeued", test_requeued}, {"classes", test_classes}, {"death", test_death},
    {"many senders", test_many_senders}, {"policies see them", test_policies_see})
