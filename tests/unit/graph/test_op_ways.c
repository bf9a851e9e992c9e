/* SPDX-License-Identifier: MIT */
/* Operations: the ways in which a stage lets an event go, and what an event must not keep from an
 * earlier wait. */
#include "op_rig.h"

static struct weir_family *family;
static struct weir_event *held;
static atomic_uint_least64_t ticket;
static atomic_int n_next, wrong;
static char order[64];

static void next_ends(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	atomic_fetch_add(&n_next, n);
	for (int i = 0; i < n; i++)
		weir_event_finish(&ev[i], weir_ended_status(ev[i]));
}

/* ---- children are sent when their parent is let go ---- */

static void par_holds(struct weir_stage *st, struct weir_event **ev)
{
	rig_child(st, *ev, KID);
	held = *ev;
	weir_hold(st, ev);
}

/* Also if the stage has a loop, whose events are held before its handler gets them. */
static void test_held(void)
{
	static const char *const uses[] = {"t.par", "t.loop"};

	for (int i = 0; i < 2; i++) {
		struct weir_spec *spec = rig_spec(uses[i]);
		on_par = par_holds;
		rig_start(spec);
		rig_offer(0);
		FIXTURE_AWAIT(fixture_ended() == 1); /* the child */
		CU_ASSERT_EQUAL(atomic_load(&probes[0].finishes), 0);
		weir_event_finish(&held, WEIR_OK);
		rig_end(2);
	}
}

static void par_tickets(struct weir_stage *st, struct weir_event **ev)
{
	struct weir_event *mine = *ev;

	weir_hold(st, ev);
	rig_child(st, mine, KID);
	atomic_store(&ticket, weir_hold_until(st, &mine, WEIR_NO_DEADLINE));
}

/* A held event with a child gets a ticket. */
static void test_held_until(void)
{
	struct weir_spec *spec = rig_spec("t.par");

	on_par = par_tickets;
	atomic_store(&ticket, 0);
	rig_start(spec);
	rig_offer(0);
	FIXTURE_AWAIT(fixture_ended() == 1);
	FIXTURE_AWAIT(atomic_load(&ticket) != 0);
	struct weir_event *ev = weir_hold_claim(par, atomic_load(&ticket));
	CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
	weir_event_finish(&ev, WEIR_OK);
	rig_end(2);
}

/* ---- a continuation belongs to one wait ---- */

static void next_of_par(struct weir_stage *st, struct weir_event **ev, int n)
{
	atomic_fetch_add(&wrong, strcmp(weir_stage_name(st), "par") != 0);
	next_ends(st, ev, n);
}

static void par_waits(struct weir_stage *st, struct weir_event **ev)
{
	if (((struct probe *)*ev)->seq == 0)
		weir_emit(st, OUT, ev);
	else
		atomic_store(&ticket, weir_wait(st, ev, next_of_par, WEIR_NO_DEADLINE));
}

static void par2_awaits(struct weir_stage *st, struct weir_event **ev)
{
	if (((struct probe *)*ev)->seq == 0)
		weir_await(st, ev, next_ends);
}

/* An event that was claimed is emitted: the next stage gets it in `handle`. */
static void test_claimed(void)
{
	struct weir_spec *spec = rig_spec("t.par");

	on_par = par_waits;
	on_par2 = par2_awaits;
	atomic_store(&ticket, 0);
	rig_start(spec);
	rig_offer(0);
	FIXTURE_AWAIT(fixture_ended() == 1);
	rig_offer(1);
	FIXTURE_AWAIT(atomic_load(&ticket) != 0);
	struct weir_event *ev = weir_hold_claim(par, atomic_load(&ticket));
	CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
	weir_emit(par, OUT, &ev);
	weir_thread_flush();
	FIXTURE_AWAIT(fixture_ended() == 2);
	CU_ASSERT_EQUAL(atomic_load(&n_par), 4);
	CU_ASSERT_EQUAL(atomic_load(&wrong), 0);
	rig_end(2);
}

static void par_waits_with(struct weir_stage *st, struct weir_event **ev)
{
	rig_child(st, *ev, KID);
	atomic_store(&ticket, weir_wait(st, ev, next_of_par, WEIR_NO_DEADLINE));
}

/* An event that waits with a ticket sends its children as orphans, and keeps its continuation. */
static void test_waits_with(void)
{
	struct weir_spec *spec = rig_spec("t.par");

	on_par = par_waits_with;
	atomic_store(&ticket, 0);
	atomic_store(&n_next, 0);
	rig_start(spec);
	rig_offer(0);
	FIXTURE_AWAIT(fixture_ended() == 1);
	FIXTURE_AWAIT(atomic_load(&ticket) != 0);
	CU_ASSERT(weir_resume(par, atomic_load(&ticket)));
	weir_thread_flush();
	FIXTURE_AWAIT(fixture_ended() == 2);
	CU_ASSERT_EQUAL(atomic_load(&n_next), 1);
	CU_ASSERT_EQUAL(atomic_load(&n_par), 1);
	CU_ASSERT_EQUAL(stage_view(g, "par").orphaned, 1);
	rig_end(2);
}

static void next_requeues(struct weir_stage *st, struct weir_event **ev, int n)
{
	atomic_fetch_add(&n_next, n);
	for (int i = 0; i < n; i++)
		if (((struct probe *)ev[i])->seq++ == 0)
			weir_requeue(st, &ev[i]);
		else
			weir_emit(st, OUT, &ev[i]);
}

static void par_awaits(struct weir_stage *st, struct weir_event **ev)
{
	if (((struct probe *)*ev)->seq <= 1)
		weir_await(st, ev, next_requeues);
}

/* A continuation requeues its event, or sends it on: `handle` gets it. */
static void test_requeued(void)
{
	struct weir_spec *spec = rig_spec("t.par");

	on_par = par_awaits;
	on_par2 = par2_awaits;
	rig_start(spec);
	atomic_store(&n_next, 0);
	rig_offer(0);
	FIXTURE_AWAIT(fixture_ended() == 1);
	CU_ASSERT_EQUAL(atomic_load(&n_next), 2);
	CU_ASSERT_EQUAL(atomic_load(&n_par), 3); /* twice at par, once at par2 */
	rig_end(1);
}

static void par_lacks(struct weir_stage *st, struct weir_event **ev)
{
	struct weir_event *none = NULL;

	CU_ASSERT_EQUAL(weir_child(st, *ev, KID, &none), WEIR_ENOMEM);
	weir_emit(st, OUT, ev);
}

static void par2_always_awaits(struct weir_stage *st, struct weir_event **ev)
{
	weir_await(st, ev, next_ends);
}

/* A child that could not be made and was not awaited is no child of a later wait. */
static void test_lacked(void)
{
	struct weir_spec *spec = rig_spec("t.par");

	on_par = par_lacks;
	on_par2 = par2_always_awaits;
	rig_start(spec);
	rig_offer(0);
	FIXTURE_AWAIT(fixture_ended() == 1);
	CU_ASSERT_EQUAL(probes[0].status, WEIR_OK);
	rig_end(1);
}

/* ---- children that have ended can be read until the parent ends or awaits again ---- */

static void next_replaces(struct weir_stage *st, struct weir_event **ev, int n)
{
	CU_ASSERT_EQUAL(n, 1);
	struct weir_event *first = weir_ended(ev[0]);
	uint64_t ended = fixture_ended(), seen = 0;
	for (struct weir_event *c = first; c && seen < 3; c = c->next) {
		rig_child(st, ev[0], KID);
		CU_ASSERT_PTR_EQUAL(weir_ended(ev[0]), first);
		CU_ASSERT_EQUAL(fixture_ended(), ended);
		CU_ASSERT_EQUAL(c->state, WEIR_EVENT_FINISHED);
		seen++;
	}
	CU_ASSERT_EQUAL(seen, 3);
	weir_await(st, &ev[0], next_ends);
	CU_ASSERT_EQUAL(fixture_ended(), ended + 3);
}

static void par_three(struct weir_stage *st, struct weir_event **ev)
{
	for (int i = 0; i < 3; i++)
		rig_child(st, *ev, KID);
	weir_await(st, ev, next_replaces);
}

static void test_replaced(void)
{
	struct weir_spec *spec = rig_spec("t.par");

	on_par = par_three;
	rig_start(spec);
	rig_offer(0);
	rig_end(7);
}

static void next_sends_on(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		rig_child(st, ev[i], KID); /* an orphan */
		weir_emit(st, OUT, &ev[i]);
	}
}

static void par2_reads(struct weir_stage *st, struct weir_event **ev)
{
	(void)st;
	CU_ASSERT_PTR_NOT_NULL_FATAL(weir_ended(*ev));
	CU_ASSERT_EQUAL(((struct probe *)weir_ended(*ev))->seq, 1000);
	CU_ASSERT_PTR_NULL(weir_ended(*ev)->next);
}

static void par_one(struct weir_stage *st, struct weir_event **ev)
{
	rig_child(st, *ev, KID);
	weir_await(st, ev, next_sends_on);
}

/* The next stage may read them, too. */
static void test_read_later(void)
{
	struct weir_spec *spec = rig_spec("t.par");

	on_par = par_one;
	on_par2 = par2_reads;
	rig_start(spec);
	rig_offer(0);
	rig_end(3);
}

static void next_counts(struct weir_stage *st, struct weir_event **ev, int n)
{
	uint64_t seq = 1000;

	CU_ASSERT_EQUAL(weir_ended_status(ev[0]), WEIR_ELINK);
	for (struct weir_event *c = weir_ended(ev[0]); c; c = c->next, seq++) {
		CU_ASSERT_EQUAL(((struct probe *)c)->seq, seq);
		CU_ASSERT_EQUAL(weir_child_status(c), seq == 1004 ? WEIR_ELINK : WEIR_OK);
	}
	CU_ASSERT_EQUAL(seq, 1006);
	next_ends(st, ev, n);
}

static void par_sends_many(struct weir_stage *st, struct weir_event **ev)
{
	static const int to[] = {KID, KID, OUT, KID, OUT + 1, OUT};

	for (uint64_t i = 0; i < 6; i++)
		rig_child(st, *ev, to[i])->seq = 1000 + i;
	weir_await(st, ev, next_counts);
}

/* Children of several outlets, one of which cannot be sent, are read in the order in which they were
 * made. */
static void test_outlets(void)
{
	struct weir_spec *spec = rig_spec("t.par");

	on_par = par_sends_many;
	rig_start(spec);
	rig_offer(0);
	rig_end(7);
	CU_ASSERT_EQUAL(atomic_load(&n_kid), 3);
}

/* ---- the order of an exclusive stage ---- */

static atomic_int kid_held;

static void kid_waits(struct weir_stage *st, struct weir_event **ev)
{
	(void)st;
	(void)ev;
	atomic_store(&kid_held, 1);
	FIXTURE_AWAIT(atomic_load(&probe_gate));
}

static void next_notes(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++)
		strcat(order, "c");
	next_ends(st, ev, n);
}

static void par_notes(struct weir_stage *st, struct weir_event **ev)
{
	struct probe *p = (struct probe *)*ev;

	if (p->seq == 0) {
		rig_child(st, *ev, KID);
		weir_await(st, ev, next_notes);
		return;
	}
	snprintf(order + strlen(order), 8, "%d", (int)p->seq);
}

static void steer(const char *stage, enum weir_steer how)
{
	char why[256];

	CU_ASSERT_EQUAL_FATAL(weir_graph_steer(g, stage, how, why, sizeof(why)), 0);
}

/* A continuation does not overtake events of its key, and they do not overtake it. */
static void test_order(void)
{
	for (int mode = WEIR_MODE_EXCLUSIVE; mode <= WEIR_MODE_PARTITIONED + 1; mode++) {
		bool serial = mode > WEIR_MODE_PARTITIONED; /* of a core group */
		struct weir_spec *spec = rig_spec(serial ? "t.flat" : "t.par");
		if (serial) {
			struct weir_group_spec *gs = weir_spec_add_group(spec, "core");
			weir_spec_text(&gs->serial, "event");
			weir_spec_text(&gs->cores, "2");
			weir_spec_text(&gs->schedule, "fifo");
			weir_spec_text(&spec->stages[2].group, "core");
		} else {
			spec->stages[2].mode = mode;
		}
		if (mode == WEIR_MODE_PARTITIONED)
			weir_spec_text(&spec->stages[2].key, "event");
		on_par = par_notes;
		on_kid = kid_waits;
		order[0] = '\0';
		atomic_store(&probe_gate, 0);
		atomic_store(&kid_held, 0);
		rig_start(spec);
		rig_offer(0);
		FIXTURE_AWAIT(atomic_load(&kid_held));
		steer("par", WEIR_STEER_PAUSE);
		rig_offer(1);
		atomic_store(&probe_gate, 1);
		FIXTURE_AWAIT(queue_length(&par->sink.queue) == 2);
		rig_offer(2);
		steer("par", WEIR_STEER_RUN);
		FIXTURE_AWAIT(fixture_ended() == 4);
		CU_ASSERT_STRING_EQUAL(order, "1c2");
		rig_end(4);
	}
}

/* ---- families and inline stages ---- */

static void next_wrong(struct weir_stage *st, struct weir_event **ev, int n)
{
	atomic_fetch_add(&wrong, n);
	next_ends(st, ev, n);
}

static void par2_passes(struct weir_stage *st, struct weir_event **ev)
{
	weir_emit(st, OUT, ev);
}

/* The child goes through another stage to that of its parent. It ends the family and requeues itself. */
static void par_cancels(struct weir_stage *st, struct weir_event **ev)
{
	if (((struct probe *)*ev)->seq == 0) {
		rig_child(st, *ev, OUT);
		weir_await(st, ev, next_wrong);
		return;
	}
	weir_family_end(family);
	weir_requeue(st, ev);
}

static void test_inline_cancelled(void)
{
	struct weir_spec *spec = weir_spec_new("op");

	for (int i = 0; i < 3; i++) {
		static const char *const names[] = {"kid", "par2", "par"};
		struct weir_stage_spec *s = fixture_stage(spec, names[i], "t.flat", NULL);
		s->inlined = i == 2;
		if (i > 0 && weir_spec_link(s, "out", names[3 - i], i == 1) != 0)
			abort();
	}
	on_par = par_cancels;
	on_par2 = par2_passes;
	on_kid = on_expired = on_refused = NULL;
	on_stop = NULL;
	atomic_store(&n_par, 0);
	atomic_store(&wrong, 0);
	rig_start(spec);
	family = weir_family_new(NULL);
	weir_event_init(&probes[0].ev, &probe_type, 1);
	weir_family_join(family, &probes[0].ev);
	rig_offer(0);
	FIXTURE_AWAIT(fixture_ended() == 2);
	CU_ASSERT_EQUAL(probes[0].status, WEIR_ECANCELLED);
	CU_ASSERT_EQUAL(atomic_load(&wrong), 0);
	CU_ASSERT_EQUAL(atomic_load(&n_par), 3);
	/* a member is offered to the inline stage after the end of its family */
	probes[1].seq = 1;
	weir_event_init(&probes[1].ev, &probe_type, 1);
	weir_family_join(family, &probes[1].ev);
	rig_offer(1);
	CU_ASSERT_EQUAL(atomic_load(&n_par), 3);
	CU_ASSERT_EQUAL(probes[1].status, WEIR_ECANCELLED);
	rig_end(3);
	weir_family_put(family);
}

/* ---- events without a struct weir_op ---- */

static atomic_int plain_ended;

static void plain_finish(struct weir_event *ev, int status)
{
	(void)ev;
	(void)status;
	atomic_fetch_add(&plain_ended, 1);
}

static const struct weir_event_type plain_type = {
    .name = "t.plain", .size = sizeof(struct weir_event), .finish = plain_finish};
static struct weir_event plain[2];

/* One is sent and the other ends at once. */
static void par_makes(struct weir_stage *st, struct weir_event **ev)
{
	(void)ev;
	for (int i = 0; i < 2; i++) {
		struct weir_event *made = &plain[i];
		weir_event_init(made, &plain_type, 1);
		weir_emit(st, i == 0 ? KID : 7, &made);
	}
}

/* Nobody awaits them, so the books do not leave them open. */
static void test_plain(void)
{
	struct weir_spec *spec = rig_spec("t.par");

	on_par = par_makes;
	atomic_store(&plain_ended, 0);
	rig_start(spec);
	rig_offer(0);
	FIXTURE_AWAIT(atomic_load(&plain_ended) == 2);
	struct weir_stage_view v = stage_view(g, "par");
	CU_ASSERT_EQUAL(v.spawned, 2);
	CU_ASSERT_EQUAL(v.orphaned, 2);
	rig_end(1);
}

static void test_register(void)
{
	rig_register();
}

CUNIT_MAIN("op ways", {"register", test_register}, {"held", test_held},
    {"held until", test_held_until}, {"claimed", test_claimed}, {"waits with", test_waits_with},
    {"outlets", test_outlets}, {"requeued", test_requeued}, {"lacked", test_lacked},
    {"replaced", test_replaced}, {"read later", test_read_later}, {"order", test_order},
    {"inline cancelled", test_inline_cancelled}, {"plain", test_plain})
