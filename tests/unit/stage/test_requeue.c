/* SPDX-License-Identifier: MIT */
/* weir_requeue: events return to their own stage any number of times, from handlers and from other
 * threads, in queued, partitioned and inline stages. Each is counted once and ends once, whatever
 * its deadline and the limit of the queue. */
#include "fixture/graph/probes.h"

#define M 4000

static atomic_int visits[M], wrong_visits;
static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;
static struct weir_event *kept;
static int n_kept;
static struct weir_stage *again_stage;

static int visits_due(const struct probe *p)
{
	return 1 + (int)(p->seq % 5);
}

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

/* The handler requeues a third; the rest is held and requeued by the test. */
static void again_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		struct probe *p = (struct probe *)ev[i];
		if (atomic_fetch_add(&visits[p->seq], 1) + 1 == visits_due(p))
			weir_event_finish(&ev[i], WEIR_OK);
		else if (p->seq % 3 == 0)
			weir_requeue(st, &ev[i]);
		else
			keep(st, &ev[i]);
	}
}

static void requeue_kept(struct weir_stage *st)
{
	pthread_mutex_lock(&kept_lock);
	struct weir_event *list = kept;
	kept = NULL;
	n_kept = 0;
	pthread_mutex_unlock(&kept_lock);
	while (list) {
		struct weir_event *ev = list;
		list = ev->next;
		weir_requeue(st, &ev);
	}
	weir_thread_flush();
}

static void again_stop(struct weir_stage *st, int64_t until_ns)
{
	(void)until_ns;
	requeue_kept(st);
}

static const struct weir_stage_ops again_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.again",
    .summary = "wants its events several times",
    .accepts = &probe_type,
    .handle = again_handle,
    .stop = again_stop};

static int n_kept_now(void)
{
	pthread_mutex_lock(&kept_lock);
	int n = n_kept;
	pthread_mutex_unlock(&kept_lock);
	return n;
}

static void count_wrong(struct probe *p, int status)
{
	if (status == WEIR_OK && atomic_load(&visits[p->seq]) != visits_due(p))
		atomic_fetch_add(&wrong_visits, 1);
}

static struct weir_graph *begin(struct weir_spec *spec)
{
	prepare(M);
	fixture_on_finish = count_wrong;
	atomic_store(&wrong_visits, 0);
	for (int i = 0; i < M; i++)
		atomic_store(&visits[i], 0);
	struct weir_graph *g = fixture_start(spec);
	again_stage = weir_graph_stage(g, "again");
	weir_thread_attach(g, "test");
	return g;
}

/* Refused events were offered again; the reason may be the full queue or the wait in it. */
static uint64_t all_shed(const struct weir_class_view *v)
{
	uint64_t n = 0;

	for (int r = 0; r < WEIR_SHED_REASONS; r++)
		n += v->shed[r];
	return n;
}

static void run_all(struct weir_spec *spec)
{
	struct weir_graph *g = begin(spec);

	fixture_offer_all(again_stage, probes, M, 16);
	while (fixture_ended() < M) {
		requeue_kept(again_stage);
		sched_yield();
	}
	check_each_once(M);
	struct weir_stage_view v = stage_view(g, "again");
	CU_ASSERT_EQUAL(atomic_load(&wrong_visits), 0);
	CU_ASSERT_EQUAL(atomic_load(&fixture_done), M);
	CU_ASSERT_EQUAL(v.class_view[0].completed, M);
	CU_ASSERT_EQUAL(v.class_view[0].offered, M + all_shed(&v.class_view[0]));
	CU_ASSERT_EQUAL(v.held, 0);
	weir_thread_detach();
	finish_graph(g, 0);
}

static void test_queued(void)
{
	struct weir_spec *spec = weir_spec_new("again");
	struct weir_stage_spec *s = fixture_stage(spec, "again", "t.again", NULL);

	fixture_set(s, "threads.max", "3");
	fixture_set(s, "threads.min", "3");
	run_all(spec);
}

static void test_partitioned(void)
{
	struct weir_spec *spec = weir_spec_new("again");
	struct weir_stage_spec *s = fixture_stage(spec, "again", "t.again", NULL);

	weir_spec_text(&s->threads.policy, "static");
	s->mode = WEIR_MODE_PARTITIONED;
	weir_spec_text(&s->key, "producer");
	fixture_set(s, "threads.max", "3");
	fixture_set(s, "threads.min", "3");
	run_all(spec);
}

static void test_inline(void)
{
	struct weir_spec *spec = weir_spec_new("again");

	fixture_stage(spec, "again", "t.again", NULL)->inlined = true;
	run_all(spec);
}

/* Returning events are not refused, although there are more than the queue may hold, long after
 * their deadlines. */
static void test_door_is_not_asked(void)
{
	struct weir_spec *spec = weir_spec_new("again");
	struct weir_event *ev[4];
	struct weir_stage_spec *s = fixture_stage(spec, "again", "t.again", NULL);

	char why[200] = "";

	fixture_set(s, "queue.limit", "100"); /* counts held events */
	struct weir_graph *g = begin(spec);
	int n = 0;
	for (int i = 0; n < 40; i++) {
		if (i % 5 == 0 || i % 3 == 0)
			continue;
		weir_event_init(&probes[i].ev, &probe_type, 1);
		probes[i].ev.deadline_ns = weir_now_ns(again_stage) + 2000000000LL;
		ev[0] = &probes[i].ev;
		n++;
		CU_ASSERT_EQUAL_FATAL(weir_offer(again_stage, ev, 1, NULL), 1);
		FIXTURE_AWAIT(n_kept_now() == n);
	}
	CU_ASSERT_EQUAL(weir_graph_set(g, "again", "queue.limit", "4", why, sizeof(why)), 0);
	for (struct weir_event *e = kept; e; e = e->next)
		e->deadline_ns = 1;
	while (fixture_ended() < 40) {
		requeue_kept(again_stage);
		sched_yield();
	}
	CU_ASSERT_EQUAL(atomic_load(&fixture_done), 40);
	weir_thread_detach();
	finish_graph(g, 0);
}

/* A drain whose time is over: held events return in `stop` and end, either by the handler or as
 * closed. */
static void test_forced_end(void)
{
	struct weir_spec *spec = weir_spec_new("again");
	struct weir_drain_report r;

	fixture_stage(spec, "again", "t.again", NULL);
	struct weir_graph *g = begin(spec);
	fixture_offer_all(again_stage, probes, 100, 10);
	FIXTURE_AWAIT(n_kept_now() + (int)fixture_ended() == 100);
	weir_thread_detach();
	weir_graph_drain(g, 0, &r);
	CU_ASSERT_EQUAL(r.law_error, 0);
	CU_ASSERT_EQUAL(fixture_ended(), 100);
	CU_ASSERT_TRUE(atomic_load(&fixture_failed) > 0);
	check_each_once(100);
	weir_graph_free(g);
}

static void test_prepare(void)
{
	fixture_register(&again_ops);
}

CUNIT_MAIN("requeue", {"types are known", test_prepare}, {"queued", test_queued},
    {"partitioned", test_partitioned}, {"inline", test_inline},
    {"the door is not asked", test_door_is_not_asked}, {"forced end", test_forced_end})
