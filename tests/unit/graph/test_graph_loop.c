/* SPDX-License-Identifier: MIT */
/* Stages with a loop (WEIR_STAGE_LOOP): the handler runs in the thread of the loop and may set
 * timers, end events at once, keep them, also with a ticket, or put them back; what it leaves
 * behind is unhandled. Expired events are given back in the same thread. A drain waits for the
 * events that the loop has not handled yet. */
#include "fixture/graph/probes.h"

#include <weir/io.h>

#include "base/clock.h"
#include "graph/graph.h"

#define M 2800

/* What the handler does with an event, by its key modulo WAYS. */
enum { LATER, AT_ONCE, EMIT, AGAIN, LEAVE, EXPIRE, CLAIM, WAYS };

struct later {
	struct weir_timer timer;
	struct weir_event *ev;
};

static struct later later[M];
static uint64_t tickets[M];
static bool came[M]; /* the event was put back; used by the loop's thread alone */
static atomic_int n_started, n_inited, n_ended, elsewhere;
static struct weir_graph *g;

/* Count calls outside the loop of `st`. */
static void check_here(const struct weir_stage *st)
{
	struct weir_loop *loop = weir_loop_here();

	if (!loop || weir_loop_stage(loop) != st || weir_now_ns(st) < weir_loop_now_ns(loop))
		atomic_fetch_add(&elsewhere, 1);
}

static void fire(struct weir_loop *loop, struct weir_timer *t)
{
	struct later *l = (struct later *)t;

	check_here(weir_loop_stage(loop));
	weir_event_finish(&l->ev, WEIR_OK);
}

static void wait_for_timer(struct weir_stage *st, struct weir_event **ev)
{
	struct later *l = &later[(*ev)->key];

	*l = (struct later){.timer.fire = fire, .ev = *ev};
	weir_hold(st, ev);
	weir_timer_set(weir_loop_here(), &l->timer, weir_now_ns(st) + NS_PER_MS);
}

static void claim(struct weir_loop *loop, struct weir_timer *t)
{
	struct later *l = (struct later *)t;
	struct weir_event *ev = weir_hold_claim(weir_loop_stage(loop), tickets[l - later]);

	check_here(weir_loop_stage(loop));
	CU_ASSERT_PTR_EQUAL(ev, l->ev);
	weir_event_finish(&ev, WEIR_OK);
}

static void claim_by_timer(struct weir_stage *st, struct weir_event **ev)
{
	uint64_t i = (*ev)->key;

	later[i] = (struct later){.timer.fire = claim, .ev = *ev};
	tickets[i] = weir_hold_until(st, ev, INT64_MAX);
	weir_timer_set(weir_loop_here(), &later[i].timer, weir_now_ns(st));
}

/* Every second event is left behind. */
static void loop_expired(struct weir_stage *st, struct weir_event **ev, int n)
{
	check_here(st);
	for (int i = 0; i < n; i++) {
		CU_ASSERT_EQUAL(ev[i]->key % WAYS, EXPIRE);
		CU_ASSERT_EQUAL(ev[i]->state, WEIR_EVENT_HELD);
		if (ev[i]->key / WAYS % 2)
			weir_event_finish(&ev[i], WEIR_OK);
	}
}

static void put_back(struct weir_stage *st, struct weir_event **ev)
{
	bool again = came[(*ev)->key];

	came[(*ev)->key] = true;
	if (again)
		weir_event_finish(ev, WEIR_OK);
	else
		weir_requeue(st, ev);
}

static int64_t left_ns; /* end of the last call of the handler; used by the loop's thread alone */

static void loop_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	check_here(st);
	/* each call has a start of its own, however many are made in one turn of the loop */
	if (atomic_load(&thread_self()->loop_since_ns) < left_ns)
		atomic_fetch_add(&elsewhere, 1);
	for (int i = 0; i < n; i++) {
		switch (ev[i]->key % WAYS) {
		case LATER:
			wait_for_timer(st, &ev[i]);
			break;
		case AT_ONCE:
			weir_event_finish(&ev[i], WEIR_OK);
			break;
		case EMIT:
			weir_emit(st, 0, &ev[i]);
			break;
		case AGAIN:
			put_back(st, &ev[i]);
			break;
		case EXPIRE:
			weir_hold_until(st, &ev[i], weir_now_ns(st));
			break;
		case CLAIM:
			claim_by_timer(st, &ev[i]);
			break;
		default: /* left behind */
			break;
		}
	}
	left_ns = clock_now_ns();
}

static int count_init(struct weir_stage *st, struct weir_err *err)
{
	(void)st, (void)err;
	atomic_fetch_add(&n_inited, 1);
	return 0;
}

static int loop_begin(struct weir_stage *st, struct weir_err *err)
{
	(void)err;
	atomic_fetch_add(&n_started, st->loop != NULL);
	return 0;
}

static void count_fini(struct weir_stage *st)
{
	atomic_fetch_add(&n_ended, st->loop == NULL);
}

static const struct weir_stage_ops loop_ops = {.abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_HOLDS | WEIR_STAGE_LOOP,
    .name = "t.loop",
    .summary = "has a loop",
    .accepts = &probe_type,
    .outlets = pass_outlets,
    .init = count_init,
    .start = loop_begin,
    .handle = loop_handle,
    .expired = loop_expired,
    .fini = count_fini};

/* ---- a stage whose loop is busy ---- */

static atomic_bool busy, proceed; /* the handler is in a call; it may return */
static atomic_int n_expired;

/* Wait in the first call until the test lets it proceed. Hold the first event until it expires. */
static void busy_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		if (ev[i]->key == 0)
			weir_hold_until(st, &ev[i], weir_now_ns(st));
		else
			weir_emit(st, 0, &ev[i]);
	}
	if (!atomic_exchange(&busy, true))
		while (!atomic_load(&proceed))
			sched_yield();
}

static void busy_expired(struct weir_stage *st, struct weir_event **ev, int n)
{
	atomic_fetch_add(&n_expired, n);
	weir_emit_run(st, 0, ev, n);
}

static const struct weir_stage_ops busy_ops = {.abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_HOLDS | WEIR_STAGE_LOOP,
    .name = "t.busy",
    .summary = "has a loop that is busy",
    .accepts = &probe_type,
    .outlets = pass_outlets,
    .handle = busy_handle,
    .expired = busy_expired};

static struct weir_spec *spec_with(const char *use, const char *policy)
{
	struct weir_spec *spec = weir_spec_new("loop");
	struct weir_stage_spec *s = fixture_stage(spec, "loop", use, "end");

	fixture_set(s, "width.max", "64");
	fixture_set(s, "width.policy", policy);
	fixture_set(s, "slo", "1h"); /* nothing is refused, even if the machine stalls */
	fixture_set(s, "threads.stuck", "10ms");
	fixture_set(s, "threads.min", "3");
	fixture_set(s, "threads.max", "3");
	fixture_stage(spec, "end", "t.end", NULL);
	return spec;
}

static struct weir_spec *spec_of(void)
{
	return spec_with("t.loop", "weir");
}

static void test_ways(void)
{
	prepare(M);
	memset(came, 0, sizeof(came));
	g = fixture_start(spec_of());
	CU_ASSERT_EQUAL(atomic_load(&n_started), 1);
	struct weir_stage *st = weir_graph_stage(g, "loop");
	weir_thread_attach(g, "test");
	for (int i = 0; i < M; i++) {
		struct weir_event *ev = &probes[i].ev;
		weir_event_init(ev, &probe_type, 1);
		ev->key = (uint64_t)i;
		while (weir_offer(st, &ev, 1, NULL) == 0)
			sched_yield();
	}
	weir_thread_detach();
	FIXTURE_AWAIT(fixture_ended() == M);
	check_each_once(M);
	CU_ASSERT_EQUAL(atomic_load(&elsewhere), 0);
	CU_ASSERT_EQUAL(atomic_load(&fixture_failed), M / WAYS);
	CU_ASSERT_EQUAL(atomic_load(&fixture_shed), M / WAYS / 2);
	struct weir_stage_view v = stage_view(g, "loop");
	CU_ASSERT_EQUAL(v.unhandled, M / WAYS);
	CU_ASSERT_EQUAL(v.held, 0);
	FIXTURE_AWAIT(stage_view(g, "loop").in_work == 0); /* a batch may not be settled yet */
	CU_ASSERT_EQUAL(stage_view(g, "end").class_view[0].completed, M / WAYS);
	CU_ASSERT_EQUAL(atomic_load(&n_ended), 0);
	finish_graph(g, 0);
	CU_ASSERT_EQUAL(atomic_load(&n_ended), 1);
}

/* A graph that is never started has no loop. */
static void test_not_started(void)
{
	int inited = atomic_load(&n_inited), ended = atomic_load(&n_ended),
	    started = atomic_load(&n_started);

	weir_graph_free(fixture_build(spec_of()));
	CU_ASSERT_EQUAL(atomic_load(&n_inited), inited + 1);
	CU_ASSERT_EQUAL(atomic_load(&n_ended), ended + 1);
	CU_ASSERT_EQUAL(atomic_load(&n_started), started);
}

static int nothing(struct weir_stage *st)
{
	(void)st;
	return 0;
}

static void check_refused(struct weir_stage_ops ops, const char *want)
{
	struct weir_err err = {0};

	ops.name = "t.wrong";
	CU_ASSERT_EQUAL(weir_stage_register(&ops, &err), WEIR_EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, want));
}

static void test_refused(void)
{
	struct weir_stage_ops ops = loop_ops;

	ops.flags = WEIR_STAGE_LOOP;
	check_refused(ops, "holds no events (WEIR_STAGE_HOLDS)");
	ops = loop_ops;
	ops.thread_state_size = 1;
	check_refused(ops, "so it cannot have thread_init or state per thread");
	ops = loop_ops;
	ops.thread_init = nothing;
	check_refused(ops, "so it cannot have thread_init or state per thread");
}

static int64_t grace_ns;

static void *drain(void *report)
{
	weir_graph_drain(g, grace_ns, report);
	return NULL;
}

/* Fill the mailbox of the loop, whose handler waits: with an event that has expired, and 50 that it
 * has not seen yet. */
static void make_busy(void)
{
	prepare(51);
	atomic_store(&busy, false);
	atomic_store(&proceed, false);
	atomic_store(&n_expired, 0);
	g = fixture_start(spec_with("t.busy", "static"));
	struct weir_stage *st = weir_graph_stage(g, "loop");
	weir_thread_attach(g, "test");
	for (int i = 0; i < 51; i++) {
		struct weir_event *ev = &probes[i].ev;
		weir_event_init(ev, &probe_type, 1);
		ev->key = (uint64_t)i;
		CU_ASSERT_EQUAL(weir_offer(st, &ev, 1, NULL), 1);
		FIXTURE_AWAIT(atomic_load(&busy));
	}
	weir_thread_detach();
	FIXTURE_AWAIT(stage_view(g, "loop").held == 51 && graph_tickets_out(st) == 0);
}

/* A drain does not end before the loop has handled the events that were sent to it. */
static void test_drain_waits(void)
{
	struct weir_drain_report r;
	pthread_t thread;

	make_busy();
	grace_ns = 600 * NS_PER_S;
	pthread_create(&thread, NULL, drain, &r);
	FIXTURE_AWAIT(!weir_graph_ready(g));
	for (int i = 0; i < 10000; i++) /* a drain that does not wait goes on now */
		sched_yield();
	CU_ASSERT_EQUAL(fixture_ended(), 0);
	atomic_store(&proceed, true);
	pthread_join(thread, NULL);
	CU_ASSERT_EQUAL(r.law_error, 0);
	CU_ASSERT_EQUAL(r.closed, 0);
	CU_ASSERT_EQUAL(atomic_load(&n_expired), 1);
	CU_ASSERT_EQUAL(atomic_load(&fixture_done), 51);
	check_each_once(51);
	weir_graph_free(g);
}

/* Once the grace time of a drain is over, the loop gets no more events. */
static void test_drain_ends(void)
{
	struct weir_drain_report r;
	pthread_t thread;

	make_busy();
	grace_ns = 0;
	pthread_create(&thread, NULL, drain, &r);
	FIXTURE_AWAIT(graph_tickets_closed(weir_graph_stage(g, "loop")));
	atomic_store(&proceed, true);
	pthread_join(thread, NULL);
	CU_ASSERT_EQUAL(r.law_error, 0);
	CU_ASSERT_EQUAL(atomic_load(&n_expired), 0);
	check_each_once(51);
	for (int i = 0; i < 51; i++)
		CU_ASSERT_EQUAL(probes[i].status, WEIR_ECLOSED);
	weir_graph_free(g);
}

static void *free_main(void *unused)
{
	(void)unused;
	weir_graph_free(g);
	return NULL;
}

/* A handler that does not return in the loop is reported as hung, and a drain leaves its thread
 * behind. */
static void test_hangs(void)
{
	struct weir_drain_report r;
	const char *name;
	pthread_t thread;

	make_busy();
	FIXTURE_AWAIT(weir_graph_hung(g, &name) != 0);
	CU_ASSERT_STRING_EQUAL(name, "loop");
	weir_graph_drain(g, 0, &r);
	CU_ASSERT_EQUAL(r.left, 1);
	CU_ASSERT_EQUAL(r.lost, 51);
	CU_ASSERT_EQUAL(r.law_error, 0);
	CU_ASSERT_PTR_NOT_NULL(
	    strstr(r.left_text, "stage 'loop' (t.busy) in thread 'loop/io0' for "));
	CU_ASSERT_PTR_NOT_NULL(strstr(r.left_text, " with 1 event"));
	pthread_create(&thread, NULL, free_main, NULL);
	CU_ASSERT_EQUAL(fixture_ended(), 0);
	atomic_store(&proceed, true);
	pthread_join(thread, NULL);
	check_each_once(51);
}

int main(void)
{
	static const struct cunit_case cases[] = {{"ways", test_ways},
	    {"not started", test_not_started}, {"refused", test_refused},
	    {"drain waits", test_drain_waits}, {"drain ends", test_drain_ends},
	    {"hangs", test_hangs}};

	fixture_register(&loop_ops);
	fixture_register(&busy_ops);
	fixture_register(&end_ops);
	return cunit_run("graph_loop", cases, sizeof(cases) / sizeof(cases[0]));
}
