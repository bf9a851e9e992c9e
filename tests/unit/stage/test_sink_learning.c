/* SPDX-License-Identifier: MIT */
/* A sink whose policy learns: which events of a run it may refuse, how invalid answers are treated,
 * shedding at the head of the queue, and the samples given to its ticks. The policy is the
 * test's. */
#include "fixture/graph/probes.h"

#include "stage/stage.h"

#define RUN 100

/* The answer of the policy under test; set before the graph starts. */
static int (*answer)(int n, const uint16_t *user, bool *refused, int *reason);
static bool drops;
static atomic_ullong offered_seen, completed_seen, ticks;
static _Atomic int64_t cost_seen_ns;
static _Atomic int64_t most_ns = INT64_MAX;

static void test_init(void *state, const struct weir_admission_spec *p, int64_t now_ns)
{
	(void)state, (void)p, (void)now_ns;
}

static int test_admit(void *state, const struct weir_admission_spec *p,
    const struct admission_view *v, int class_id, int n, bool *refused, int *reason)
{
	(void)state, (void)p, (void)class_id;
	CU_ASSERT(v->threads >= 1 && v->n_classes >= 1 && v->slo_ns > 0 && v->user != NULL);
	return answer(n, v->user, refused, reason);
}

static bool test_drop(
    void *state, const struct weir_admission_spec *p, int64_t now_ns, int64_t wait_ns)
{
	(void)state, (void)p, (void)now_ns;
	CU_ASSERT(wait_ns >= 0);
	return drops;
}

static int64_t test_most_wait(const void *state)
{
	(void)state;
	return atomic_load(&most_ns);
}

static void test_tick(
    void *state, const struct weir_admission_spec *p, const struct admission_sample *s)
{
	(void)state, (void)p;
	CU_ASSERT(s->span_ns > 0 && s->threads >= 1);
	atomic_fetch_add(&offered_seen, s->class[0].offered);
	atomic_fetch_add(&completed_seen, s->completed);
	atomic_store(&cost_seen_ns, s->cost_ns);
	atomic_fetch_add(&ticks, 1);
}

static int test_explain(const void *state, const struct weir_admission_spec *p,
    const char *const *names, char *buf, size_t size)
{
	(void)names;
	(void)state, (void)p;
	return snprintf(buf, size, "because");
}

static const struct admission_policy policy = {.name = "test",
    .help = "the test's",
    .init = test_init,
    .admit = test_admit,
    .drop = test_drop,
    .most_wait = test_most_wait,
    .tick = test_tick,
    .explain = test_explain};

static int all(int n, const uint16_t *user, bool *refused, int *reason)
{
	(void)user, (void)refused, (void)reason;
	return n;
}

/* A graph of one stage `use` with that policy, attached; probes[0..n) are ready. */
static struct weir_graph *start(const char *use, int n)
{
	struct weir_spec *spec = weir_spec_new("learning");
	struct weir_stage_spec *s = fixture_stage(spec, "a", use, NULL);
	struct weir_errs *errs = calloc(1, sizeof(*errs));

	fixture_set(s, "admission.policy", "dagor"); /* learns, so the stage is metered */
	prepare(n);
	struct weir_graph *g = fixture_build(spec);
	weir_graph_stage(g, "a")->sink.policy = &policy;
	CU_ASSERT_EQUAL_FATAL(weir_graph_start(g, errs), 0);
	free(errs);
	weir_thread_attach(g, "test");
	return g;
}

static void end(struct weir_graph *g, int n)
{
	FIXTURE_AWAIT(fixture_ended() == (uint64_t)n);
	check_each_once(n);
	weir_thread_detach();
	finish_graph(g, 0);
	drops = false;
}

/* Offer probes[0..n), event i of session i + 1. Returns how many were admitted; the refused ones
 * are in front. */
static int offer(struct weir_graph *g, struct weir_event **ev, int n, int *reason)
{
	for (int i = 0; i < n; i++) {
		weir_event_init(&probes[i].ev, &probe_type, 1);
		probes[i].ev.session = (uint32_t)i + 1;
		ev[i] = &probes[i].ev;
	}
	return weir_offer(weir_graph_stage(g, "a"), ev, n, reason);
}

static int odd_places(int n, const uint16_t *user, bool *refused, int *reason)
{
	int m = n;

	(void)user;
	for (int i = 1; i < n; i += 2, m--)
		refused[i] = true;
	*reason = WEIR_EPRIORITY;
	return m;
}

static void test_which_events_is_the_policy_s_choice(void)
{
	struct weir_event *ev[RUN];
	int reason = 0;

	answer = odd_places;
	struct weir_graph *g = start("t.end", RUN);
	CU_ASSERT_EQUAL_FATAL(offer(g, ev, RUN, &reason), RUN / 2);
	CU_ASSERT_EQUAL(reason, WEIR_EPRIORITY);
	for (int i = 0; i < RUN / 2; i++) {
		CU_ASSERT_PTR_EQUAL(ev[i], &probes[2 * i + 1].ev);
		weir_event_finish(&ev[i], reason);
	}
	CU_ASSERT_EQUAL(
	    stage_view(g, "a").class_view[0].shed[weir_shed_index(WEIR_EPRIORITY)], RUN / 2);
	CU_ASSERT_STRING_EQUAL(stage_view(g, "a").admission_why, "because");
	end(g, RUN);
}

/* Numbers of the same users in two offers. */
static uint16_t user_seen[2][RUN];
static int n_seen;

static int low_users(int n, const uint16_t *user, bool *refused, int *reason)
{
	int m = 0;

	for (int i = 0; i < n; i++) {
		user_seen[n_seen / RUN][n_seen % RUN] = user[i];
		n_seen++;
		refused[i] = user[i] >= 32768;
		m += !refused[i];
	}
	*reason = WEIR_EPRIORITY;
	return m;
}

/* A user keeps its position in the rotation: numbers fall with time, all by the same amount, and
 * they are spread. */
static void test_users_are_treated_alike(void)
{
	struct weir_event *ev[RUN];
	int reason, refused = 0;

	answer = low_users;
	n_seen = 0;
	struct weir_graph *g = start("t.end", RUN);
	for (int turn = 1; turn <= 2; turn++) {
		int taken = offer(g, ev, RUN, &reason);
		CU_ASSERT(taken > RUN / 4 && taken < RUN * 3 / 4);
		for (int i = 0; i < RUN - taken; i++, refused++)
			weir_event_finish(&ev[i], reason);
		FIXTURE_AWAIT(fixture_ended() == (uint64_t)turn * RUN);
	}
	CU_ASSERT_EQUAL_FATAL(n_seen, 2 * RUN);
	uint16_t fallen = (uint16_t)(user_seen[0][0] - user_seen[1][0]);
	for (int i = 0; i < RUN; i++)
		CU_ASSERT_EQUAL((uint16_t)(user_seen[0][i] - user_seen[1][i]), fallen);
	CU_ASSERT_EQUAL(atomic_load(&fixture_shed), (unsigned long long)refused);
	weir_thread_detach();
	finish_graph(g, 0);
}

static int below_zero(int n, const uint16_t *user, bool *refused, int *reason)
{
	(void)n, (void)user, (void)refused;
	*reason = WEIR_EPRIORITY;
	return -5;
}

static int too_many(int n, const uint16_t *user, bool *refused, int *reason)
{
	(void)user, (void)refused, (void)reason;
	return n + 1;
}

static int wrong_marks(int n, const uint16_t *user, bool *refused, int *reason)
{
	(void)user;
	refused[0] = refused[1] = true;
	*reason = WEIR_EPRIORITY;
	return n - 1;
}

static int no_reason(int n, const uint16_t *user, bool *refused, int *reason)
{
	(void)user, (void)refused, (void)reason;
	return n - 1;
}

static void test_nonsense_is_counted_and_not_obeyed(void)
{
	static int (*const answers[])(int, const uint16_t *, bool *, int *) = {
	    below_zero, too_many, wrong_marks, no_reason};

	for (size_t k = 0; k < sizeof(answers) / sizeof(answers[0]); k++) {
		struct weir_event *ev[RUN];
		answer = answers[k];
		struct weir_graph *g = start("t.end", RUN);
		CU_ASSERT_EQUAL(offer(g, ev, RUN, NULL), RUN);
		CU_ASSERT_EQUAL(stage_view(g, "a").admission_nonsense, 1);
		end(g, RUN);
	}
}

static void test_what_waited_too_long_is_shed_at_the_exit(void)
{
	struct weir_event *ev[RUN];

	answer = all;
	drops = true;
	struct weir_graph *g = start("t.end", RUN);
	CU_ASSERT_EQUAL(offer(g, ev, RUN, NULL), RUN);
	FIXTURE_AWAIT(fixture_ended() == RUN);
	CU_ASSERT_EQUAL(atomic_load(&fixture_shed), RUN);
	CU_ASSERT_EQUAL(probes[0].status, WEIR_EDELAY);
	CU_ASSERT_EQUAL(stage_view(g, "a").class_view[0].shed[weir_shed_index(WEIR_EDELAY)], RUN);
	end(g, RUN);
}

static void test_ticks_tell_what_happened(void)
{
	struct weir_event *ev[RUN];

	answer = all;
	atomic_store(&offered_seen, 0);
	atomic_store(&completed_seen, 0);
	atomic_store(&ticks, 0);
	struct weir_graph *g = start("t.end", RUN);
	FIXTURE_AWAIT(atomic_load(&ticks) > 0); /* the first sample has nothing to compare with */
	CU_ASSERT_EQUAL(offer(g, ev, RUN, NULL), RUN);
	FIXTURE_AWAIT(atomic_load(&completed_seen) >= RUN);
	FIXTURE_AWAIT(atomic_load(&offered_seen) >= RUN);
	CU_ASSERT_EQUAL(atomic_load(&offered_seen), RUN);
	CU_ASSERT_EQUAL(atomic_load(&completed_seen), RUN);
	CU_ASSERT(atomic_load(&cost_seen_ns) > 0);
	CU_ASSERT_EQUAL(atomic_load(&weir_graph_stage(g, "a")->sink.running), 0);
	end(g, RUN);
}

/* Finishes its events first and continues to work: the time is counted some ticks after the
 * completions. */
static void late_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	unsigned long long from = atomic_load(&ticks);

	end_handle(st, ev, n);
	FIXTURE_AWAIT(atomic_load(&ticks) >= from + 3);
}

static const struct weir_stage_ops late_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.late",
    .summary = "finishes, then works on",
    .flags = WEIR_STAGE_BLOCKS,
    .accepts = &probe_type,
    .handle = late_handle};

static void test_time_counts_with_its_completion(void)
{
	struct weir_event *ev[1];

	answer = all;
	atomic_store(&cost_seen_ns, 0);
	atomic_store(&ticks, 0);
	struct weir_graph *g = start("t.late", 1);
	FIXTURE_AWAIT(atomic_load(&ticks) > 0); /* the first sample has nothing to compare with */
	CU_ASSERT_EQUAL(offer(g, ev, 1, NULL), 1);
	FIXTURE_AWAIT(atomic_load(&cost_seen_ns) > 0);
	CU_ASSERT(atomic_load(&cost_seen_ns) > ADMISSION_TICK_NS / 2);
	end(g, 1);
}

/* Size of each batch, and the known cost of an event when the batch started. */
static int n_batches, size[RUN];
static int64_t cost_then[RUN];
static atomic_int go;

static void sized_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	size[n_batches] = n;
	cost_then[n_batches++] = sink_mean_cost_ns(&st->sink);
	FIXTURE_AWAIT(atomic_load(&go));
	end_handle(st, ev, n);
}

static const struct weir_stage_ops sized_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.sized",
    .summary = "ends events once they may",
    .flags = WEIR_STAGE_SINGLE, /* does not report its service time */
    .accepts = &probe_type,
    .handle = sized_handle};

/* While the cost of an event is unknown, a batch is one event: otherwise the first batch could keep
 * many others for seconds. The first batch sets the cost, because until then everything is
 * admitted. */
static void test_the_first_batch_is_one_and_tells_the_cost(void)
{
	struct weir_event *ev[RUN];

	answer = all;
	n_batches = 0;
	atomic_store(&go, 1);
	struct weir_graph *g = start("t.sized", RUN);
	CU_ASSERT_EQUAL(offer(g, ev, RUN, NULL), RUN);
	end(g, RUN);
	CU_ASSERT_FATAL(n_batches > 1);
	CU_ASSERT_EQUAL(size[0], 1);
	CU_ASSERT(cost_then[1] > 0);
}

static void test_what_waited_longer_than_of_use_is_shed(void)
{
	struct weir_event *ev[4];
	unsigned long long from;

	answer = all;
	n_batches = 0;
	atomic_store(&go, 0);
	struct weir_graph *g = start("t.sized", 4);
	struct sink *sink = &weir_graph_stage(g, "a")->sink;
	CU_ASSERT_EQUAL(offer(g, ev, 4, NULL), 4);
	FIXTURE_AWAIT(atomic_load(&sink->running) == 1);
	atomic_store(&most_ns, 1);
	from = atomic_load(&ticks);
	FIXTURE_AWAIT(atomic_load(&ticks) > from + 1);
	atomic_store(&go, 1);
	FIXTURE_AWAIT(fixture_ended() == 4);
	CU_ASSERT_EQUAL(n_batches, 1);
	struct weir_stage_view v = stage_view(g, "a");
	CU_ASSERT_EQUAL(v.class_view[0].shed[weir_shed_index(WEIR_EDELAY)], 3);
	atomic_store(&most_ns, INT64_MAX);
	end(g, 4);
}

static void setup(void)
{
	fixture_register(&end_ops);
	fixture_register(&sized_ops);
	fixture_register(&late_ops);
	test_which_events_is_the_policy_s_choice();
}

CUNIT_MAIN("a door that learns", {"which events is the policy's choice", setup},
    {"users are treated alike", test_users_are_treated_alike},
    {"nonsense is counted, not obeyed", test_nonsense_is_counted_and_not_obeyed},
    {"late ones are shed at the exit", test_what_waited_too_long_is_shed_at_the_exit},
    {"ticks tell what happened", test_ticks_tell_what_happened},
    {"time counts with its completion", test_time_counts_with_its_completion},
    {"the first batch is one and tells the cost", test_the_first_batch_is_one_and_tells_the_cost},
    {"what waited longer than of use is shed", test_what_waited_longer_than_of_use_is_shed})
