/* SPDX-License-Identifier: MIT */
/* Operations in the lives of stages and graphs: pauses, drains, the end of the graph by force, and
 * the deaths of threads, while parents await children; and the threads in which a child may end. */
#include "op_rig.h"

static atomic_int n_next, n_kept, n_held; /* n_held of `held` are written */
static struct weir_event *held[100];
static atomic_uint_least64_t ticket;

static void next_ends(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	atomic_fetch_add(&n_next, n);
	for (int i = 0; i < n; i++)
		weir_event_finish(&ev[i], weir_ended_status(ev[i]));
}

static void par_two(struct weir_stage *st, struct weir_event **ev)
{
	rig_child(st, *ev, KID);
	rig_child(st, *ev, KID);
	weir_await(st, ev, next_ends);
}

static void begin(struct weir_spec *spec)
{
	on_par = par_two;
	atomic_store(&n_next, 0);
	atomic_store(&n_kept, 0);
	atomic_store(&n_held, 0);
	atomic_store(&ticket, 0);
	atomic_store(&probe_gate, 0);
	rig_start(spec);
}

static void steer(const char *stage, enum weir_steer how)
{
	char why[256];

	CU_ASSERT_EQUAL_FATAL(weir_graph_steer(g, stage, how, why, sizeof(why)), 0);
}

static uint64_t awaiting(void)
{
	return stage_view(g, "par").awaiting;
}

static void kid_waits(struct weir_stage *st, struct weir_event **ev)
{
	(void)st;
	(void)ev;
	FIXTURE_AWAIT(atomic_load(&probe_gate));
}

/* ---- pauses and drains of stages ---- */

/* The stage of the parent is paused or drained while its children run. */
static void test_steered(void)
{
	for (int how = WEIR_STEER_PAUSE; how <= WEIR_STEER_DRAIN; how++) {
		struct weir_spec *spec = rig_spec("t.par");
		begin(spec);
		on_kid = kid_waits;
		for (int i = 0; i < 5; i++)
			rig_offer(i);
		FIXTURE_AWAIT(awaiting() == 5);
		steer("par", how);
		atomic_store(&probe_gate, 1);
		FIXTURE_AWAIT(awaiting() == 0);
		if (how == WEIR_STEER_PAUSE) {
			CU_ASSERT_EQUAL(atomic_load(&n_next), 0);
			steer("par", WEIR_STEER_RUN);
		}
		FIXTURE_AWAIT(atomic_load(&n_next) == 5);
		steer("par", WEIR_STEER_RUN);
		rig_end(15);
	}
}

/* Events that await occupy slots, whether they were in a handler or held. */
static void test_slots(void)
{
	static const char *const uses[] = {"t.par", "t.loop", "t.flat"};

	for (int i = 0; i < 6; i++) {
		struct weir_spec *spec = rig_spec(uses[i / 2]);
		fixture_set(&spec->stages[2], "queue.limit", "3");
		if (i < 4)
			fixture_set(&spec->stages[2], "width.max", "3");
		spec->stages[2].inlined = i == 5;
		begin(spec);
		on_kid = kid_waits;
		for (int k = 0; k < 3; k++) {
			rig_offer(k);
			FIXTURE_AWAIT(awaiting() == (uint64_t)k + 1);
		}
		FIXTURE_AWAIT(queue_kept_all(&par->sink.queue) == 3);
		struct weir_event *ev = &probes[3].ev;
		int why = 0;
		weir_event_init(ev, &probe_type, 1);
		CU_ASSERT_EQUAL(weir_offer(par, &ev, 1, &why), 0);
		CU_ASSERT_EQUAL(why, WEIR_EQUEUE);
		atomic_store(&probe_gate, 1);
		FIXTURE_AWAIT(fixture_ended() == 9);
		FIXTURE_AWAIT(queue_kept_all(&par->sink.queue) == 0);
		CU_ASSERT_EQUAL(weir_offer(par, &ev, 1, &why), 1);
		rig_end(12);
	}
}

/* The stage of the children is paused: the parents wait. Then it is drained: it refuses more. */
static void test_kids_steered(void)
{
	begin(rig_spec("t.par"));
	steer("kid", WEIR_STEER_PAUSE);
	rig_offer(0);
	FIXTURE_AWAIT(queue_length(&weir_graph_stage(g, "kid")->sink.queue) == 2);
	CU_ASSERT_EQUAL(awaiting(), 1);
	steer("kid", WEIR_STEER_DRAIN);
	FIXTURE_AWAIT(fixture_ended() == 3);
	CU_ASSERT_EQUAL(probes[0].status, WEIR_OK);
	rig_offer(1);
	FIXTURE_AWAIT(fixture_ended() == 6);
	CU_ASSERT_EQUAL(probes[1].status, WEIR_EDRAINING);
	steer("kid", WEIR_STEER_RUN);
	rig_end(6);
}

/* ---- the end of the graph by force ---- */

static void end_by_force(uint64_t n)
{
	struct weir_drain_report r;

	weir_thread_detach();
	weir_graph_drain(g, 0, &r);
	CU_ASSERT_EQUAL(r.law_error, 0);
	CU_ASSERT_EQUAL(fixture_ended(), n);
	struct weir_stage_view v = stage_view(g, "par");
	CU_ASSERT_EQUAL(v.spawned, v.joined + v.orphaned + v.cancelled);
	CU_ASSERT_EQUAL(v.awaiting, 0);
	CU_ASSERT_EQUAL(v.law_residual, 0);
	weir_graph_free(g);
}

/* The drain resumes the stage of the children, so some of them may be handled before the queues are
 * closed. */
static void test_forced(void)
{
	static const char *const uses[] = {"t.par", "t.loop"};

	for (int i = 0; i < 4; i++) {
		struct weir_spec *spec = rig_spec(uses[i % 2]);
		spec->stages[2].mode = i == 2 ? WEIR_MODE_EXCLUSIVE : WEIR_MODE_SHARED;
		begin(spec);
		steer("kid", WEIR_STEER_PAUSE);
		for (int k = 0; k < 10; k++)
			rig_offer(k);
		FIXTURE_AWAIT(awaiting() == 10);
		end_by_force(30);
		for (int k = 0; k < 10; k++)
			CU_ASSERT(probes[k].status == WEIR_ECLOSED || probes[k].status == WEIR_OK);
	}
}

static void keep(struct weir_event *ev)
{
	held[atomic_fetch_add(&n_kept, 1)] = ev;
	atomic_fetch_add(&n_held, 1);
}

static void par2_holds(struct weir_stage *st, struct weir_event **ev)
{
	struct weir_event *e = *ev;

	weir_hold(st, ev);
	keep(e);
}

static void par_to_par2(struct weir_stage *st, struct weir_event **ev)
{
	rig_child(st, *ev, OUT);
	weir_await(st, ev, next_ends);
}

/* ops->stop of the children's stage ends them, so the parents end. */
static void stop_ends(struct weir_stage *st)
{
	if (strcmp(weir_stage_name(st), "par2") == 0)
		for (int i = 0; i < atomic_load(&n_held); i++)
			if (held[i])
				weir_event_finish(&held[i], WEIR_ECLOSED);
}

static void test_forced_held(void)
{
	begin(rig_spec("t.par"));
	on_par = par_to_par2;
	on_par2 = par2_holds;
	on_stop = stop_ends;
	for (int k = 0; k < 10; k++)
		rig_offer(k);
	FIXTURE_AWAIT(atomic_load(&n_held) == 10);
	end_by_force(20);
}

/* A drain with time calls ops->stop, too, when all that is left is held or awaits what is held. The
 * parent gets its continuation. */
static void test_drained_held(void)
{
	struct weir_drain_report r;

	begin(rig_spec("t.par"));
	on_par = par_to_par2;
	on_par2 = par2_holds;
	on_stop = stop_ends;
	rig_offer(0);
	FIXTURE_AWAIT(atomic_load(&n_held) == 1);
	weir_thread_detach();
	weir_graph_drain(g, 20 * NS_PER_S, &r);
	CU_ASSERT_EQUAL(r.law_error, 0);
	CU_ASSERT_EQUAL(fixture_ended(), 2);
	CU_ASSERT_EQUAL(atomic_load(&n_next), 1);
	weir_graph_free(g);
}

/* A held event awaits children in ops->stop: they end, and so does the event. */
static void stop_awaits(struct weir_stage *st)
{
	if (strcmp(weir_stage_name(st), "par2") != 0)
		return;
	for (int i = 0; i < atomic_load(&n_held); i++) {
		if (!held[i])
			continue;
		rig_child(st, held[i], KID);
		weir_await(st, &held[i], next_ends);
	}
}

static void par_passes(struct weir_stage *st, struct weir_event **ev)
{
	weir_emit(st, OUT, ev);
}

static void test_stop_awaits(void)
{
	begin(rig_spec("t.par"));
	on_par = par_passes;
	on_par2 = par2_holds;
	on_stop = stop_awaits;
	for (int k = 0; k < 10; k++)
		rig_offer(k);
	FIXTURE_AWAIT(atomic_load(&n_held) == 10);
	struct weir_drain_report r;
	weir_thread_detach();
	weir_graph_drain(g, 0, &r);
	CU_ASSERT_EQUAL(r.law_error, 0);
	CU_ASSERT_EQUAL(fixture_ended(), 20);
	weir_graph_free(g);
}

/* ---- the threads in which a child ends ---- */

/* A child that its stage holds is finished, requeued or claimed by a thread that is attached. */
static void test_ended_outside(void)
{
	static const char *const uses[] = {"t.par", "t.loop"};

	for (int i = 0; i < 4; i++) {
		struct weir_spec *spec = rig_spec(uses[i % 2]);
		begin(spec);
		on_par = par_to_par2;
		on_par2 = par2_holds;
		rig_offer(0);
		FIXTURE_AWAIT(atomic_load(&n_held) == 1);
		on_par2 = NULL;
		if (i < 2)
			weir_event_finish(&held[0], WEIR_EFAILED);
		else
			weir_requeue(weir_graph_stage(g, "par2"), &held[0]);
		weir_thread_flush();
		FIXTURE_AWAIT(fixture_ended() == 2);
		CU_ASSERT_EQUAL(probes[0].status, i < 2 ? WEIR_EFAILED : WEIR_OK);
		rig_end(2);
	}
}

static void par2_tickets(struct weir_stage *st, struct weir_event **ev)
{
	atomic_store(&ticket, weir_hold_until(st, ev, weir_now_ns(st) + NS_PER_MS));
}

/* The ticket of a child expires. */
static void test_child_expires(void)
{
	begin(rig_spec("t.par"));
	on_par = par_to_par2;
	on_par2 = par2_tickets;
	rig_offer(0);
	FIXTURE_AWAIT(fixture_ended() == 2);
	CU_ASSERT_EQUAL(probes[0].status, WEIR_EDEADLINE);
	rig_end(2);
}

static void par_holds(struct weir_stage *st, struct weir_event **ev)
{
	struct weir_event *e = *ev;

	weir_hold(st, ev);
	keep(e);
}

/* An event that is held by hand awaits, in another thread than that of the handler. */
static void test_held_awaits(void)
{
	static const char *const uses[] = {"t.par", "t.loop"};

	for (int i = 0; i < 4; i++) {
		begin(rig_spec(uses[i % 2]));
		on_par = par_holds;
		rig_offer(0);
		FIXTURE_AWAIT(atomic_load(&n_held) == 1);
		if (i < 2)
			rig_child(par, held[0], KID);
		weir_await(par, &held[0], next_ends);
		CU_ASSERT_PTR_NULL(held[0]);
		weir_thread_flush();
		FIXTURE_AWAIT(atomic_load(&n_next) == 1);
		rig_end(i < 2 ? 2 : 1);
	}
}

static void refused_ends(struct weir_stage *st, struct weir_event **ev)
{
	if (((struct probe *)*ev)->seq < 100) {
		rig_child(st, *ev, KID);
		weir_await(st, ev, next_ends);
	}
}

/* The next stage is drained. A refused event awaits in ops->refused; a refused child has ended. */
static void test_refused(void)
{
	begin(rig_spec("t.par"));
	on_par = par_passes;
	on_refused = refused_ends;
	steer("par2", WEIR_STEER_DRAIN);
	rig_offer(0);
	FIXTURE_AWAIT(atomic_load(&probes[0].finishes) == 1);
	CU_ASSERT_EQUAL(atomic_load(&n_next), 1);
	CU_ASSERT_EQUAL(probes[0].status, WEIR_OK);
	on_par = par_to_par2;
	rig_offer(1);
	FIXTURE_AWAIT(atomic_load(&probes[1].finishes) == 1);
	CU_ASSERT_EQUAL(atomic_load(&n_next), 2);
	CU_ASSERT_EQUAL(probes[1].status, WEIR_EDRAINING);
	steer("par2", WEIR_STEER_RUN);
	rig_end(4);
}

/* ---- deaths ---- */

static atomic_int deaths;

static void next_dies(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	(void)ev;
	(void)n;
	atomic_fetch_add(&deaths, 1);
	pthread_exit(NULL);
}

static void par_dies(struct weir_stage *st, struct weir_event **ev)
{
	rig_child(st, *ev, KID);
	if (((struct probe *)*ev)->seq % 2 == 0) {
		atomic_fetch_add(&deaths, 1);
		pthread_exit(NULL);
	}
	weir_await(st, ev, next_dies);
}

/* A thread exits in the handler, which cancels the children that are not sent, or in the
 * continuation. */
static void test_deaths(void)
{
	for (int placed = 0; placed < 4; placed++) {
		struct weir_spec *spec = rig_spec(placed == 1 ? "t.flat" : "t.par");
		spec->stages[2].inlined = placed == 1 || placed == 2;
		spec->stages[0].inlined = placed == 3;
		atomic_store(&deaths, 0);
		fixture_stage(spec, "first", "t.flat", NULL);
		rig_link(&spec->stages[3], "out", "par");
		begin(spec);
		on_par = par_dies;
		on_par2 = par_passes; /* of the stage `first` */
		struct weir_stage *door = weir_graph_stage(g, "first");
		for (int i = 0; i < 10; i++) {
			struct weir_event *ev = &probes[i].ev;
			weir_event_init(ev, &probe_type, 1);
			probes[i].seq = (uint64_t)i;
			CU_ASSERT_EQUAL(weir_offer(door, &ev, 1, NULL), 1);
			FIXTURE_AWAIT(fixture_ended() == 2 * (uint64_t)i + 2);
			CU_ASSERT_EQUAL(probes[i].status, WEIR_EDIED);
		}
		CU_ASSERT_EQUAL(atomic_load(&deaths), 10);
		CU_ASSERT_EQUAL(stage_view(g, "par").cancelled, 5);
		CU_ASSERT_EQUAL(stage_view(g, "par").joined, 5);
		rig_end(20);
	}
}

static void test_register(void)
{
	rig_register();
}

CUNIT_MAIN("op lives", {"register", test_register}, {"steered", test_steered},
    {"slots", test_slots}, {"kids steered", test_kids_steered}, {"forced", test_forced},
    {"forced held", test_forced_held}, {"drained held", test_drained_held},
    {"stop awaits", test_stop_awaits}, {"ended outside", test_ended_outside},
    {"child expires", test_child_expires}, {"held awaits", test_held_awaits},
    {"refused", test_refused}, {"deaths", test_deaths})
