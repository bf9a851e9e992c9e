/* SPDX-License-Identifier: MIT */
/* Replicated stages: a state per core that no other thread uses, events that stay on their core, and
 * what happens to a state when init fails, a core leaves or dies, or the graph ends. */
#include "fixture/graph/probes.h"

#include <unistd.h>

#include "base/task.h"
#include "graph/graph.h"
#include "sched/cores.h"
#include "stage/replica.h"

#define EVENTS 4000
#define ODD    70

/* State of a replica. */
struct own {
	atomic_int users; /* threads in a callback; the framework promises 1 at most */
	int replica;
	int tid; /* of the thread that last called thread_init */
	uint64_t handled, again, stops, refreshes, begun, left;
	struct weir_event *held;
};

static atomic_int inits, finis, shared_by_two;
static atomic_uint_fast64_t sum_handled, sum_again, sum_stops, sum_left, stops_elsewhere;
static atomic_int moved;   /* events that came from another core */
static int calls, fail_at; /* number of the call of init that fails, from 1; 0: none */
static bool holds, requeues, dies;

static struct own *enter(struct weir_stage *st)
{
	struct own *own = weir_state(st);

	WEIR_ASSERT(own != NULL);
	if (atomic_fetch_add(&own->users, 1) != 0)
		atomic_fetch_add(&shared_by_two, 1);
	return own;
}

static void leave(struct own *own)
{
	atomic_fetch_sub(&own->users, 1);
}

static int kept_init(struct weir_stage *st, struct weir_err *err)
{
	struct own *own = enter(st);

	CU_ASSERT_EQUAL(own->handled, 0);
	own->replica = replica_entered();
	leave(own);
	if (++calls != fail_at) {
		atomic_fetch_add(&inits, 1);
		return 0;
	}
	snprintf(err->text, sizeof(err->text), "no room for another");
	return WEIR_ENOMEM;
}

static void kept_fini(struct weir_stage *st)
{
	struct own *own = enter(st);

	CU_ASSERT_EQUAL(own->replica, replica_entered());
	CU_ASSERT_PTR_NULL(own->held);
	atomic_fetch_add(&finis, 1);
	atomic_fetch_add(&sum_handled, own->handled);
	atomic_fetch_add(&sum_again, own->again);
	atomic_fetch_add(&sum_stops, own->stops);
	atomic_fetch_add(&sum_left, own->left);
	leave(own);
}

static void release(struct weir_stage *st, struct own *own)
{
	while (own->held) {
		struct weir_event *ev = own->held;
		own->held = ev->next;
		weir_emit(st, 0, &ev);
	}
}

static int kept_thread_init(struct weir_stage *st)
{
	struct own *own = weir_state(st);

	if (!own) /* the thread of the drain */
		return 0;
	own = enter(st);
	own->tid = (int)gettid();
	own->begun++;
	leave(own);
	return 0;
}

static void kept_thread_fini(struct weir_stage *st)
{
	if (!weir_state(st))
		return;
	struct own *own = enter(st);
	release(st, own);
	own->left++;
	leave(own);
}

/* Marks each event with the replica that handled it first. */
static void keep_one(struct weir_stage *st, struct own *own, struct weir_event **ev)
{
	struct probe *p = (struct probe *)*ev;

	if (p->producer == 0)
		p->producer = own->replica + 1;
	else if (p->producer != own->replica + 1)
		atomic_fetch_add(&moved, 1);
	if (requeues && (*ev)->key == 0) {
		(*ev)->key = 1;
		own->again++;
		weir_requeue(st, ev);
		return;
	}
	own->handled++;
	if (holds) {
		struct weir_event *held = *ev;
		weir_hold(st, ev);
		held->next = own->held;
		own->held = held;
		return;
	}
	weir_emit(st, 0, ev);
}

static void kept_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	struct own *own = enter(st);

	for (int i = 0; i < n; i++) {
		if (dies && ((struct probe *)ev[i])->seq == ODD) {
			leave(own);
			pthread_exit(NULL);
		}
		keep_one(st, own, &ev[i]);
	}
	leave(own);
}

static void kept_stop(struct weir_stage *st, int64_t until_ns)
{
	struct own *own = enter(st);

	(void)until_ns;
	if (own->stops++ == 0 && own->tid != (int)gettid())
		atomic_fetch_add(&stops_elsewhere, 1);
	release(st, own);
	leave(own);
}

static void kept_refresh(struct weir_stage *st, struct weir_stage *wanted)
{
	struct own *own = weir_state(st), *other = weir_state(wanted);

	CU_ASSERT_PTR_NOT_NULL_FATAL(own);
	CU_ASSERT_PTR_NOT_NULL_FATAL(other);
	CU_ASSERT_EQUAL(own->replica, other->replica);
	own->refreshes++;
}

static bool kept_renewed(struct weir_stage *st, struct weir_stage *wanted, char *text, size_t size)
{
	struct own *own = weir_state(st), *other = weir_state(wanted);

	CU_ASSERT_PTR_NOT_NULL_FATAL(other);
	snprintf(text, size, "replica %d", own->replica);
	return own->replica == task_cores() - 1; /* the last one */
}

static const struct weir_stage_ops kept_ops = {.abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_REPLICABLE,
    .name = "t.kept",
    .summary = "counts in a state per core",
    .accepts = &probe_type,
    .outlets = pass_outlets,
    .state_size = sizeof(struct own),
    .init = kept_init,
    .fini = kept_fini,
    .thread_init = kept_thread_init,
    .thread_fini = kept_thread_fini,
    .handle = kept_handle,
    .stop = kept_stop,
    .refresh = kept_refresh,
    .renewed = kept_renewed};

static void reset(int n)
{
	prepare(n);
	for (int i = 0; i < n; i++)
		probes[i].producer = 0;
	inits = finis = shared_by_two = moved = 0;
	sum_handled = sum_again = sum_stops = sum_left = stops_elsewhere = 0;
	calls = fail_at = 0;
	holds = requeues = dies = false;
}

static void in_group(struct weir_spec *spec, const char *name, const char *use, const char *to)
{
	struct weir_stage_spec *s = fixture_stage(spec, name, use, to);

	weir_spec_text(&s->group, "core");
	weir_spec_text(&s->admission.policy, "none");
	fixture_set(s, "queue.limit", "20000"); /* so that all events fit into a cell */
	if (strcmp(use, "t.kept") == 0)
		fixture_set(s, "mode", "replicated");
}

/* Stages a, b and c of a core group; a and b are replicated. */
static struct weir_spec *chain(const char *schedule)
{
	struct weir_spec *spec = weir_spec_new("replicas");
	struct weir_group_spec *g = weir_spec_add_group(spec, "core");

	weir_spec_text(&g->schedule, schedule);
	in_group(spec, "a", "t.kept", "b");
	in_group(spec, "b", "t.kept", "c");
	in_group(spec, "c", "t.end", NULL);
	return spec;
}

static void offer(struct weir_graph *g, int n, int run)
{
	weir_thread_attach(g, "test");
	CU_ASSERT_PTR_NULL(weir_state(weir_graph_stage(g, "a"))); /* no core, no replica */
	fixture_offer_all(weir_graph_stage(g, "a"), probes, n, run);
}

static uint64_t at_cores(struct weir_graph *g, const char *name, bool from_queue)
{
	struct weir_graph_view *v;
	uint64_t n = 0;

	CU_ASSERT_EQUAL_FATAL(weir_graph_view(g, &v), 0);
	for (int i = 0; i < v->n_stages; i++)
		for (int k = 0; strcmp(v->stages[i].name, name) == 0 && k < v->stages[i].n_cores;
		     k++)
			n += from_queue ? v->stages[i].cores[k].from_queue
					: v->stages[i].cores[k].events;
	weir_graph_view_free(v);
	return n;
}

static void finish(struct weir_graph *g, int n)
{
	weir_thread_detach();
	finish_graph(g, 0);
	CU_ASSERT_EQUAL(fixture_ended(), (uint64_t)n);
	check_each_once(n);
	CU_ASSERT_EQUAL(atomic_load(&finis), 2 * task_cores());
	CU_ASSERT_EQUAL(atomic_load(&inits), 2 * task_cores());
	CU_ASSERT_EQUAL(atomic_load(&shared_by_two), 0);
}

static void run_schedule(const char *schedule, int run)
{
	reset(EVENTS);
	struct weir_graph *g = fixture_start(chain(schedule));
	CU_ASSERT_EQUAL(replicas_of(weir_graph_stage(g, "a")), task_cores());
	CU_ASSERT_EQUAL(replicas_of(weir_graph_stage(g, "c")), 0);
	CU_ASSERT_STRING_EQUAL(stage_view(g, "a").mode, "replicated");
	offer(g, EVENTS, run);
	FIXTURE_AWAIT(fixture_ended() == EVENTS);
	FIXTURE_AWAIT(stage_view(g, "b").class_view[0].completed == EVENTS);
	CU_ASSERT_EQUAL(at_cores(g, "a", false), EVENTS);
	CU_ASSERT_EQUAL(at_cores(g, "b", false), EVENTS);
	CU_ASSERT_EQUAL(at_cores(g, "b", true), 0); /* nothing is dealt */
	finish(g, EVENTS);
	CU_ASSERT_EQUAL(atomic_load(&sum_handled), 2 * EVENTS);
	CU_ASSERT_EQUAL(atomic_load(&moved), 0);
}

static void test_schedules(void)
{
	fixture_register(&kept_ops);
	fixture_register(&end_ops);
	for (int i = 0; next_policy_at(i); i++) {
		run_schedule(next_policy_at(i)->name, 64);
		run_schedule(next_policy_at(i)->name, 1);
	}
}

/* init is called downstream first, so these are inits of b and then of a. */
static void test_init_fails(void)
{
	for (int at = 1; at <= 2 * task_cores(); at++) {
		struct weir_errs errs = {0};
		struct weir_spec *spec = chain("fifo");
		struct weir_graph *g = NULL;
		reset(0);
		fail_at = at;
		CU_ASSERT_EQUAL(weir_graph_build(spec, &g, &errs), WEIR_ENOMEM);
		CU_ASSERT_EQUAL(errs.total, 1);
		CU_ASSERT_PTR_NOT_NULL(strstr(errs.err[0].text, "no room for another"));
		/* the other stage is built, too; init is tried for it after the failure */
		CU_ASSERT_EQUAL(atomic_load(&inits), atomic_load(&finis));
		CU_ASSERT_EQUAL(atomic_load(&shared_by_two), 0);
		weir_spec_free(spec);
	}
}

/* A drain stops each replica in the thread of its core, and what it held goes on. */
static void test_stop(void)
{
	reset(EVENTS);
	holds = true;
	struct weir_graph *g = fixture_start(chain("fifo"));
	offer(g, EVENTS, 64);
	FIXTURE_AWAIT(stage_view(g, "a").held == EVENTS);
	finish(g, EVENTS);
	CU_ASSERT_EQUAL(atomic_load(&fixture_done), EVENTS);
	CU_ASSERT_EQUAL(atomic_load(&sum_stops), 4 * (uint64_t)task_cores());
	CU_ASSERT_EQUAL(atomic_load(&stops_elsewhere), 0);
	CU_ASSERT_EQUAL(atomic_load(&sum_handled), 2 * EVENTS);
}

/* Let all cores but the first leave. */
static void leave_cores(struct pool *pool)
{
	pool_set_target(pool, 1);
	for (int k = 1; k < task_cores(); k++) {
		struct handler *h = atomic_load(&pool->handler[k]);
		FIXTURE_AWAIT(atomic_load(&h->slot) == HANDLER_EMPTY);
	}
}

/* A core that leaves passes on what its replica holds, and finds the replica when it returns. */
static void test_leave(void)
{
	if (task_cores() < 2)
		return;
	reset(EVENTS);
	struct weir_graph *g = fixture_start(chain("fifo"));
	struct pool *pool = weir_graph_stage(g, "a")->pool;
	int max = task_cores();
	pool_set_bounds(pool, 1, max);
	offer(g, EVENTS / 2, 1);
	FIXTURE_AWAIT(fixture_ended() == EVENTS / 2);
	for (int round = 0; round < 3; round++) {
		leave_cores(pool);
		pool_set_target(pool, max);
		FIXTURE_AWAIT(atomic_load(&pool->n_seats) == max);
	}
	weir_thread_detach();
	weir_thread_attach(g, "again");
	fixture_offer_all(weir_graph_stage(g, "a"), probes + EVENTS / 2, EVENTS / 2, 64);
	FIXTURE_AWAIT(fixture_ended() == EVENTS);
	finish(g, EVENTS);
	CU_ASSERT_EQUAL(atomic_load(&sum_handled), 2 * EVENTS);
	/* each replica is left at the end, and those of other cores than the first 3 times before */
	CU_ASSERT_EQUAL(atomic_load(&sum_left), 2 * (uint64_t)(max + 3 * (max - 1)));
}

static void test_leave_holding(void)
{
	if (task_cores() < 2)
		return;
	reset(EVENTS);
	holds = true;
	struct weir_graph *g = fixture_start(chain("fifo"));
	struct pool *pool = weir_graph_stage(g, "a")->pool;
	pool_set_bounds(pool, 1, task_cores());
	offer(g, EVENTS, 1);
	FIXTURE_AWAIT(stage_view(g, "a").held == EVENTS);
	leave_cores(pool);
	finish(g, EVENTS); /* replicas without a thread hold nothing */
	CU_ASSERT_EQUAL(atomic_load(&fixture_done), EVENTS);
}

static void test_death(void)
{
	weir_log_set_fd(-1); /* the death is logged */
	reset(1000);
	dies = true;
	struct weir_graph *g = fixture_start(chain("fifo"));
	offer(g, 1000, 100);
	FIXTURE_AWAIT(fixture_ended() == 1000);
	CU_ASSERT_TRUE(atomic_load(&fixture_done) < 1000);
	finish(g, 1000);
	weir_log_set_fd(2);
}

/* A requeued event comes back to the same replica. */
static void test_requeue(void)
{
	reset(EVENTS);
	requeues = true;
	struct weir_graph *g = fixture_start(chain("fifo"));
	offer(g, EVENTS, 64);
	FIXTURE_AWAIT(fixture_ended() == EVENTS);
	CU_ASSERT_EQUAL(at_cores(g, "a", true), EVENTS); /* once each */
	finish(g, EVENTS);
	CU_ASSERT_EQUAL(atomic_load(&moved), 0);
	CU_ASSERT_EQUAL(atomic_load(&sum_again), EVENTS);
	CU_ASSERT_EQUAL(atomic_load(&sum_handled), 2 * EVENTS);
}

/* Each core is a copy of the group. */
static struct weir_spec *copies(const char *schedule)
{
	struct weir_spec *spec = chain(schedule);

	spec->groups[0].replicas = task_cores();
	return spec;
}

/* Number of events of stage `name` that core `k` has handled. */
static uint64_t at_core(struct weir_graph *g, const char *name, int k)
{
	struct weir_graph_view *v;
	uint64_t n = 0;

	CU_ASSERT_EQUAL_FATAL(weir_graph_view(g, &v), 0);
	for (int i = 0; i < v->n_stages; i++)
		if (strcmp(v->stages[i].name, name) == 0)
			n = v->stages[i].cores[k].events;
	weir_graph_view_free(v);
	return n;
}

/* The source deals in turn, and events never change the copy, though stages take long. */
static void run_copies(const char *schedule, int run)
{
	int n = EVENTS / task_cores() * task_cores();

	reset(n);
	struct weir_spec *spec = copies(schedule);
	weir_spec_text(&spec->stages[2].use, "t.kept"); /* all stages mark their events */
	fixture_set(&spec->stages[2], "mode", "replicated");
	for (int i = 0; i < 3; i++)
		fixture_set(
		    &spec->stages[i], "queue.limit", "64"); /* so that many take the queues */
	weir_spec_link(&spec->stages[2], "", "d", false);
	in_group(spec, "d", "t.end", NULL);
	struct weir_graph *g = fixture_start(spec);
	CU_ASSERT_EQUAL(weir_graph_stage(g, "a")->sink.queue.n_parts, task_cores());
	offer(g, n, run);
	FIXTURE_AWAIT(fixture_ended() == (uint64_t)n);
	CU_ASSERT_EQUAL(atomic_load(&moved), 0);
	for (int k = 0; k < task_cores(); k++)
		CU_ASSERT_EQUAL(at_core(g, "a", k), (uint64_t)(n / task_cores()));
	weir_thread_detach();
	finish_graph(g, 0);
	check_each_once(n);
	CU_ASSERT_EQUAL(atomic_load(&shared_by_two), 0);
}

static void test_copies(void)
{
	if (task_cores() < 2)
		return;
	run_copies("fifo", 64);
	run_copies("wavefront", 1);
	run_copies("color", 7);
}

/* A stage without replicas is kept in its copy, too, when a core dies. */
static void test_copies_death(void)
{
	if (task_cores() < 2)
		return;
	weir_log_set_fd(-1);
	reset(1000);
	dies = true;
	struct weir_graph *g = fixture_start(copies("fifo"));
	offer(g, 1000, 100);
	FIXTURE_AWAIT(fixture_ended() == 1000);
	CU_ASSERT_EQUAL(atomic_load(&moved), 0);
	finish(g, 1000);
	weir_log_set_fd(2);
}

/* The limit is one for all copies, and what waits is dealt equally. */
static void test_copies_limit(void)
{
	struct weir_event *ev[20];
	char why[200];

	if (task_cores() < 2)
		return;
	reset(20);
	struct weir_spec *spec = copies("fifo");
	fixture_set(&spec->stages[0], "queue.limit", "10");
	struct weir_graph *g = fixture_start(spec);
	struct weir_stage *to = weir_graph_stage(g, "a");
	CU_ASSERT_EQUAL(weir_graph_steer(g, "a", WEIR_STEER_PAUSE, why, sizeof(why)), 0);
	weir_thread_attach(g, "test");
	for (int i = 0; i < 20; i++) {
		weir_event_init(&probes[i].ev, &probe_type, 1);
		ev[i] = &probes[i].ev;
	}
	int left = 20 - weir_offer(to, ev, 20, NULL);
	CU_ASSERT_EQUAL(left, 10);
	CU_ASSERT_EQUAL(stage_view(g, "a").queue_length, 10);
	for (int k = 0; k < task_cores(); k++)
		CU_ASSERT_TRUE(abs((int)queue_copy_length(&to->sink.queue, k) * task_cores() - 10) <
			       task_cores());
	CU_ASSERT_EQUAL(weir_graph_steer(g, "a", WEIR_STEER_RUN, why, sizeof(why)), 0);
	while (left > 0)
		left -= weir_offer(to, ev, left, NULL);
	FIXTURE_AWAIT(fixture_ended() == 20);
	finish(g, 20);
}

static void told(void *arg, const char *stage, const char *text)
{
	char want[32];

	CU_ASSERT_TRUE(strcmp(stage, "a") == 0 || strcmp(stage, "b") == 0);
	snprintf(want, sizeof(want), "replica %d", task_cores() - 1);
	CU_ASSERT_STRING_EQUAL(text, want);
	(*(int *)arg)++;
}

static void test_refresh(void)
{
	struct weir_errs errs = {0};
	struct weir_graph *wanted;
	int told_n = 0;

	reset(100);
	struct weir_graph *g = fixture_start(chain("fifo"));
	CU_ASSERT_EQUAL_FATAL(weir_graph_build(chain("fifo"), &wanted, &errs), 0);
	weir_graph_renewed(g, wanted, told, &told_n);
	CU_ASSERT_EQUAL(told_n, 2);
	CU_ASSERT_EQUAL(weir_graph_configure(g, wanted, NULL), 0);
	for (int k = 0; k < task_cores(); k++) {
		int before = replica_enter(k);
		CU_ASSERT_EQUAL(((struct own *)weir_state(g->stages[0]))->refreshes, 1);
		replica_enter(before);
	}
	weir_graph_free(wanted);
	inits = finis = 0;
	atomic_store(&inits, 2 * task_cores()); /* those of g */
	offer(g, 100, 1);
	FIXTURE_AWAIT(fixture_ended() == 100);
	finish(g, 100);
}

static void test_registry(void)
{
	static const unsigned never[] = {WEIR_STAGE_SOURCE, WEIR_STAGE_SINGLE, WEIR_STAGE_BLOCKS,
	    WEIR_STAGE_HOLDS, WEIR_STAGE_LOOP | WEIR_STAGE_HOLDS};

	for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++) {
		struct weir_stage_ops ops = kept_ops;
		struct weir_err err = {0};
		ops.flags |= never[i];
		ops.name = "t.never";
		ops.thread_init = NULL;
		ops.start = never[i] == WEIR_STAGE_SOURCE ? kept_init : NULL;
		CU_ASSERT_EQUAL(weir_stage_register(&ops, &err), WEIR_EINVAL);
		CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "can be replicated"));
	}
}

CUNIT_MAIN("replicas", {"registry", test_registry}, {"schedules", test_schedules},
    {"init_fails", test_init_fails}, {"stop", test_stop}, {"leave", test_leave},
    {"leave_holding", test_leave_holding}, {"death", test_death}, {"requeue", test_requeue},
    {"refresh", test_refresh}, {"copies", test_copies}, {"copies_death", test_copies_death},
    {"copies_limit", test_copies_limit})
