/* SPDX-License-Identifier: MIT */
/*
 * Profiles (weir/profile.h): the laws of the counts by thread, in graphs with core groups, pools and
 * inline stages, with events that are put back, refused and dropped, while threads exit and pools
 * shrink; and known numbers of small graphs.
 */
#include "fixture/graph/probes.h"
#include "fixture/graph/profile.h"

#include "base/clock.h"
#include "base/task.h"
#include "event/local.h"
#include "graph/graph.h"
#include "sched/cores.h"

#define EVENTS 4000

/* Puts each event back `seq % 3` times; status counts the times. */
static void again_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		struct probe *p = (struct probe *)ev[i];
		if (p->status < (int)(p->seq % 3)) {
			p->status++;
			weir_requeue(st, &ev[i]);
		} else {
			weir_emit(st, 0, &ev[i]);
		}
	}
}

static const struct weir_stage_ops again_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.again",
    .summary = "puts events back",
    .accepts = &probe_type,
    .outlets = pass_outlets,
    .handle = again_handle};

/* Ends its thread at every 500th event; every 16th is to be too late for the next stage. */
static void odd_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		uint64_t seq = ((struct probe *)ev[i])->seq;
		if (seq % 500 == 499)
			pthread_exit(NULL);
		if (seq % 16 == 7)
			ev[i]->deadline_ns = 1;
		weir_emit(st, 0, &ev[i]);
	}
}

static const struct weir_stage_ops odd_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.odd",
    .summary = "ends its thread, and sends events that are too late",
    .accepts = &probe_type,
    .outlets = pass_outlets,
    .handle = odd_handle};

/* ---- graphs ---- */

static struct weir_stage_spec *in_group(
    struct weir_spec *spec, const char *name, const char *use, const char *to)
{
	struct weir_stage_spec *s = fixture_core_stage(spec, name, use, to);

	s->local = WEIR_LOCAL_ALWAYS;
	return s;
}

static void add_group(struct weir_spec *spec, int cores)
{
	struct weir_group_spec *g = weir_spec_add_group(spec, "core");
	char n[16];

	snprintf(n, sizeof(n), "%d", cores);
	weir_spec_text(&g->schedule, "wavefront");
	weir_spec_text(&g->cores, n);
}

static struct weir_stage_spec *in_pool(
    struct weir_spec *spec, const char *name, const char *use, const char *to)
{
	struct weir_stage_spec *s = fixture_stage(spec, name, use, to);

	weir_spec_text(&s->admission.policy, "none");
	fixture_set(s, "threads.min", "1");
	fixture_set(s, "threads.max", "1");
	fixture_set(s, "queue.limit", "20000");
	return s;
}

static const struct weir_profile_stage *stage_of(const struct weir_profile *p, const char *name)
{
	for (int i = 0; i < p->n_stages; i++)
		if (strcmp(p->stage[i].name, name) == 0)
			return &p->stage[i];
	CU_FAIL_FATAL("no such stage");
	return NULL;
}

/* The row of thread `number` of the stage's own pool or group. A thread that has done nothing has
 * none. */
static const struct weir_profile_row *own_row(
    const struct weir_profile *p, const char *name, int number)
{
	static struct weir_profile_arc none[2];
	static const struct weir_profile_row nothing = {.arc = none};
	const struct weir_profile_stage *s = stage_of(p, name);

	for (int i = 0; i < s->n_rows; i++)
		if (strcmp(s->row[i].owner, s->group) == 0 && s->row[i].number == number)
			return &s->row[i];
	return &nothing;
}

static struct weir_profile *profile(struct weir_graph *g)
{
	struct weir_profile *p = NULL;

	CU_ASSERT_EQUAL_FATAL(weir_graph_profile(g, &p), 0);
	return p;
}

/* Wait until all counts have settled. `entry` is as in profile_unsettled. */
static void await_law(struct weir_graph *g, const char *entry)
{
	FIXTURE_AWAIT(profile_at_rest(g, entry) == NULL);
}

static void offer(struct weir_graph *g, int n, int run)
{
	CU_ASSERT_EQUAL_FATAL(weir_thread_attach(g, "test"), 0);
	fixture_offer_all(weir_graph_stage(g, "a"), probes, n, run);
	FIXTURE_AWAIT(fixture_ended() == (uint64_t)n);
}

/* Profiles after the threads have exited: nothing vanishes. */
static void end(struct weir_graph *g, int n)
{
	struct weir_drain_report r;
	struct weir_profile *before = profile(g), *after;

	check_each_once(n);
	weir_thread_detach();
	weir_graph_drain(g, 60 * NS_PER_S, &r);
	CU_ASSERT_EQUAL(r.law_error, 0);
	after = profile(g);
	CU_ASSERT_PTR_NULL(profile_shrinks(before, after));
	CU_ASSERT_PTR_NULL(profile_at_rest(g, "a"));
	weir_graph_profile_free(before);
	weir_graph_profile_free(after);
	weir_graph_free(g);
}

/* ---- known numbers ---- */

/* One core: what the stages of the group have sent each other, and what came from outside. */
static void test_one_core(void)
{
	struct weir_spec *spec = weir_spec_new("profile");

	prepare(EVENTS);
	add_group(spec, 1);
	in_group(spec, "a", "t.pass", "b");
	in_group(spec, "b", "t.again", "c");
	in_group(spec, "c", "t.end", NULL);
	struct weir_graph *g = fixture_start(spec);
	offer(g, EVENTS, 64);
	await_law(g, "a");
	struct weir_profile *p = profile(g);
	const struct weir_profile_row *a = own_row(p, "a", 0), *b = own_row(p, "b", 0);
	CU_ASSERT_EQUAL(a->on, WEIR_PROFILE_CORE);
	CU_ASSERT_EQUAL(a->offered, 0);
	CU_ASSERT_EQUAL(a->started, EVENTS);
	CU_ASSERT_EQUAL(a->restarted, 0);
	CU_ASSERT_EQUAL(a->completed, EVENTS);
	CU_ASSERT_EQUAL(a->arc[0].sent, EVENTS);
	CU_ASSERT_STRING_EQUAL(stage_of(p, "a")->outlet[0].to, "b");
	/* the thread of the test offered them */
	const struct weir_profile_stage *s = stage_of(p, "a");
	CU_ASSERT_EQUAL(s->n_rows, 2);
	CU_ASSERT_EQUAL(s->row[1].on, WEIR_PROFILE_OTHERS);
	CU_ASSERT_EQUAL(s->row[1].offered, EVENTS);
	CU_ASSERT_EQUAL(s->row[1].started, 0);
	/* of three events, one is put back once and one twice */
	CU_ASSERT_EQUAL(b->offered, EVENTS);
	CU_ASSERT_EQUAL(b->started, EVENTS);
	CU_ASSERT_EQUAL(b->restarted, EVENTS - 1); /* 4,000 = 3 * 1,333 + 1 */
	CU_ASSERT_EQUAL(b->put_back, b->restarted);
	CU_ASSERT_EQUAL(weir_hist_total(&b->wait), b->started + b->restarted);
	CU_ASSERT_TRUE(b->again_ns <= b->wait.sum_ns);
	CU_ASSERT_TRUE(b->busy_ns > 0 && b->batches > 0);
	CU_ASSERT_EQUAL(own_row(p, "c", 0)->completed, EVENTS);
	weir_graph_profile_free(p);
	end(g, EVENTS);
}

/* Events that wait in a cell: the queue is not empty, and the law holds. */
static void test_waiting(void)
{
	struct weir_spec *spec = weir_spec_new("profile");
	char why[200];

	prepare(EVENTS);
	add_group(spec, 1);
	in_group(spec, "a", "t.pass", "b");
	in_group(spec, "b", "t.end", NULL);
	struct weir_graph *g = fixture_start(spec);
	CU_ASSERT_EQUAL(weir_graph_steer(g, "b", WEIR_STEER_PAUSE, why, sizeof(why)), 0);
	CU_ASSERT_EQUAL_FATAL(weir_thread_attach(g, "test"), 0);
	fixture_offer_all(weir_graph_stage(g, "a"), probes, EVENTS, 64);
	FIXTURE_AWAIT(stage_view(g, "b").queue_length == EVENTS);
	await_law(g, "a");
	struct weir_profile *p = profile(g);
	CU_ASSERT_EQUAL(stage_of(p, "b")->waiting, EVENTS);
	CU_ASSERT_EQUAL(own_row(p, "b", 0)->started, 0);
	weir_graph_profile_free(p);
	CU_ASSERT_EQUAL(weir_graph_steer(g, "b", WEIR_STEER_RUN, why, sizeof(why)), 0);
	FIXTURE_AWAIT(fixture_ended() == EVENTS);
	await_law(g, "a");
	end(g, EVENTS);
}

/* A queue of 8 refuses, and what waits too long is dropped. */
static void test_refused_and_dropped(void)
{
	struct weir_spec *spec = weir_spec_new("profile");
	struct weir_event *run[20];
	char text[200];

	prepare(20);
	fixture_set(in_pool(spec, "a", "t.end", NULL), "queue.limit", "8");
	struct weir_graph *g = fixture_start(spec);
	CU_ASSERT_EQUAL(weir_graph_steer(g, "a", WEIR_STEER_PAUSE, text, sizeof(text)), 0);
	CU_ASSERT_EQUAL_FATAL(weir_thread_attach(g, "test"), 0);
	for (int i = 0; i < 20; i++) {
		weir_event_init(&probes[i].ev, &probe_type, clock_now_ns());
		/* long enough to be admitted; past when a thread takes it */
		probes[i].ev.deadline_ns =
		    i < 3 ? clock_now_ns() + NS_PER_S / 10 : WEIR_NO_DEADLINE;
		run[i] = &probes[i].ev;
	}
	int why, taken = weir_offer(weir_graph_stage(g, "a"), run, 20, &why);
	for (int i = 0; i < 20 - taken; i++)
		weir_event_finish(&run[i], why);
	int64_t late_ns = probes[2].ev.deadline_ns;
	FIXTURE_AWAIT(clock_now_ns() > late_ns);
	CU_ASSERT_EQUAL(weir_graph_steer(g, "a", WEIR_STEER_RUN, text, sizeof(text)), 0);
	FIXTURE_AWAIT(fixture_ended() == 20);
	await_law(g, "a");
	struct weir_profile *p = profile(g);
	const struct weir_profile_stage *s = stage_of(p, "a");
	uint64_t refused = 0, dropped = 0, shed = 0;
	for (int i = 0; i < s->n_rows; i++) {
		refused += s->row[i].refused;
		dropped += s->row[i].dropped;
		shed += s->row[i].shed;
	}
	CU_ASSERT_EQUAL(shed, refused + dropped);
	CU_ASSERT_EQUAL(refused, 20 - (uint64_t)taken);
	CU_ASSERT_EQUAL(own_row(p, "a", 0)->started + dropped, (uint64_t)taken);
	if (taken == 8) { /* unless this thread was slow, when the first were too late at once */
		CU_ASSERT_EQUAL(refused, 12);
		CU_ASSERT_EQUAL(dropped, 3);
	}
	weir_graph_profile_free(p);
	end(g, 20);
}

/* ---- under load ---- */

static atomic_bool watching;

/* Take profiles until told to stop: the laws that hold at any time. */
static void *watch(void *arg)
{
	struct weir_profile *was = NULL;
	const char *broken = NULL;

	while (atomic_load(&watching) && !broken) {
		struct weir_profile *p;
		if (weir_graph_profile(arg, &p) != 0)
			break;
		broken = profile_breaks(p);
		if (!broken && was)
			broken = profile_shrinks(was, p);
		weir_graph_profile_free(was);
		was = p;
		sched_yield();
	}
	weir_graph_profile_free(was);
	if (broken)
		fprintf(stderr, "%s\n", broken);
	return (void *)(intptr_t)(broken != NULL);
}

/* a -> b -> in (inline) -> c -> d: b and c in a core group, the others in pools; b ends its threads,
 * c puts events back, d has a short queue. */
static struct weir_spec *mixed(void)
{
	struct weir_spec *spec = weir_spec_new("profile");

	add_group(spec, task_cores() > 1 ? 2 : 1);
	in_pool(spec, "a", "t.pass", "b");
	in_group(spec, "b", "t.odd", "in");
	struct weir_stage_spec *s = fixture_stage(spec, "in", "t.pass", "c");
	s->inlined = true;
	weir_spec_text(&s->admission.policy, "none");
	in_group(spec, "c", "t.again", "d");
	s = in_pool(spec, "d", "t.end", NULL);
	fixture_set(s, "queue.limit", "16");
	return spec;
}

static void resize(struct weir_graph *g, const char *knob, const char *value)
{
	char why[200];

	CU_ASSERT_EQUAL(weir_graph_set(g, "a", knob, value, why, sizeof(why)), 0);
}

static void test_load(void)
{
	pthread_t watcher;
	void *broken;

	weir_log_set_fd(-1); /* deaths are logged */
	prepare(N);
	struct weir_graph *g = fixture_start(mixed());
	atomic_store(&watching, true);
	pthread_create(&watcher, NULL, watch, g);
	CU_ASSERT_EQUAL_FATAL(weir_thread_attach(g, "test"), 0);
	for (int at = 0; at < N; at += N / 4) {
		resize(g, "threads.max", "3");
		resize(g, "threads.min", "3");
		FIXTURE_AWAIT(stage_view(g, "a").threads_now == 3);
		fixture_offer_all(weir_graph_stage(g, "a"), probes + at, N / 4, 50);
		resize(g, "threads.min", "1");
		resize(g, "threads.max", "1");
		FIXTURE_AWAIT(stage_view(g, "a").threads_now == 1);
	}
	FIXTURE_AWAIT(fixture_ended() == N);
	atomic_store(&watching, false);
	pthread_join(watcher, &broken);
	CU_ASSERT_PTR_NULL(broken);
	await_law(g, "a");
	CU_ASSERT_TRUE(stage_view(g, "b").thread_deaths > 0);
	end(g, N);
	weir_log_set_fd(2);
}

/* Threads that have exited have their rows, and a thread of the same number continues them. */
static void test_shrunk(void)
{
	struct weir_spec *spec = weir_spec_new("profile");

	prepare(EVENTS);
	in_pool(spec, "a", "t.pass", "b");
	in_pool(spec, "b", "t.end", NULL);
	struct weir_graph *g = fixture_start(spec);
	resize(g, "threads.max", "2");
	resize(g, "threads.min", "2");
	FIXTURE_AWAIT(stage_view(g, "a").threads_now == 2);
	offer(g, EVENTS, 1);
	await_law(g, "a");
	struct weir_profile *both = profile(g);
	resize(g, "threads.min", "1");
	resize(g, "threads.max", "1");
	FIXTURE_AWAIT(stage_view(g, "a").threads_now == 1);
	struct weir_profile *one = profile(g);
	CU_ASSERT_PTR_NULL(profile_shrinks(both, one));
	CU_ASSERT_EQUAL(own_row(one, "a", 0)->started + own_row(one, "a", 1)->started, EVENTS);
	CU_ASSERT_EQUAL(own_row(one, "a", 1)->started, own_row(both, "a", 1)->started);
	CU_ASSERT_EQUAL(own_row(one, "a", 1)->arc[0].sent, own_row(both, "a", 1)->arc[0].sent);
	weir_graph_profile_free(both);
	weir_graph_profile_free(one);
	end(g, EVENTS);
}

static void test_types(void)
{
	fixture_register(&pass_ops);
	fixture_register(&end_ops);
	fixture_register(&again_ops);
	fixture_register(&odd_ops);
}

CUNIT_MAIN("profile", {"types are known", test_types}, {"one core", test_one_core},
    {"waiting", test_waiting}, {"refused and dropped", test_refused_and_dropped},
    {"shrunk", test_shrunk}, {"load", test_load})
