/* SPDX-License-Identifier: MIT */
/* Operations in a drain that has time left: events that come back to stages which have been stopped. */
#include "op_rig.h"

static atomic_int n_held, n_stops; /* n_stops: calls of ops->stop of `par` */
static struct weir_event *held[2];

static void begin(struct weir_spec *spec)
{
	atomic_store(&n_held, 0);
	atomic_store(&n_stops, 0);
	rig_start(spec);
}

static void holds(struct weir_stage *st, struct weir_event **ev)
{
	int i = atomic_load(&n_held);

	held[i] = *ev;
	weir_hold(st, ev);
	atomic_store(&n_held, i + 1);
}

/* Drain, with time, when there is an event that `n_held` counts. */
static void drained(uint64_t n, void *(*beside)(void *arg))
{
	struct weir_drain_report r;
	pthread_t thread;

	FIXTURE_AWAIT(atomic_load(&n_held) == 1);
	weir_thread_detach();
	if (beside)
		CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, beside, NULL), 0);
	weir_graph_drain(g, 20 * NS_PER_S, &r);
	if (beside)
		pthread_join(thread, NULL);
	CU_ASSERT_EQUAL(r.law_error, 0);
	CU_ASSERT_EQUAL(r.closed, 0);
	CU_ASSERT_EQUAL(fixture_ended(), n);
	CU_ASSERT_EQUAL(probes[0].status, WEIR_OK);
	weir_graph_free(g);
}

static void expired_ends(struct weir_stage *st, struct weir_event **ev)
{
	(void)st;
	weir_event_finish(ev, WEIR_OK);
}

static void next_tickets(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++)
		weir_hold_until(st, &ev[i], clock_now_ns() + NS_PER_MS);
}

static void next_holds(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++)
		holds(st, &ev[i]);
}

static weir_next *next_of_par;

static void par_asks(struct weir_stage *st, struct weir_event **ev)
{
	rig_child(st, *ev, OUT);
	weir_await(st, ev, next_of_par);
}

/* Ends the child that `par2` holds, and sends on what `par` holds after that. */
static void stop_in_turn(struct weir_stage *st)
{
	bool is_par = strcmp(weir_stage_name(st), "par") == 0;

	on_par2 = NULL;
	if (!is_par && held[0])
		weir_event_finish(&held[0], WEIR_OK);
	else if (is_par && atomic_load(&n_held) == 2 && held[1])
		weir_emit(st, OUT, &held[1]);
}

/* The stage of the parent, which is stopped before that of the children, holds the parent when its child
 * has ended: the drain waits for it, too. */
static void test_drained_again(void)
{
	static weir_next *const nexts[] = {next_tickets, next_holds};

	for (int i = 0; i < 2; i++) {
		begin(rig_spec("t.par"));
		next_of_par = nexts[i];
		on_par = par_asks;
		on_par2 = holds;
		on_expired = expired_ends;
		on_stop = stop_in_turn;
		rig_offer(0);
		drained(2, NULL);
	}
}

static void stop_counts(struct weir_stage *st)
{
	if (strcmp(weir_stage_name(st), "par") == 0)
		atomic_fetch_add(&n_stops, 1);
}

/* As the timer of a stage without a `stop`, which puts the event back later. */
static void *puts_back(void *arg)
{
	(void)arg;
	FIXTURE_AWAIT(atomic_load(&n_stops) == 2);
	on_par = NULL;
	CU_ASSERT_EQUAL_FATAL(weir_thread_attach(g, "timer"), 0);
	weir_requeue(par, &held[0]);
	weir_thread_detach();
	return NULL;
}

/* A drain waits for an event that is held by hand, and that ops->stop has left, as long as there is
 * time. */
static void test_drained_late(void)
{
	begin(rig_spec("t.flat"));
	on_par = holds;
	on_stop = stop_counts;
	rig_offer(0);
	drained(1, puts_back);
}

static void test_register(void)
{
	rig_register();
}

CUNIT_MAIN("op drained", {"register", test_register}, {"drained again", test_drained_again},
    {"drained late", test_drained_late})
