/* SPDX-License-Identifier: MIT */
/* Operations: how many children an event may have and how deep, what a child has from its parent,
 * in which order children are seen, deadlines, waits that are resumed, and wrong uses. */
#include <unistd.h>

#include "event/slab.h"
#include "op_rig.h"

static atomic_uint_least64_t ticket;
static atomic_int n_next, n_seen, rounds;
static int64_t until_ns;

static void next_ends(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	for (int i = 0; i < n; i++)
		weir_event_finish(&ev[i], weir_ended_status(ev[i]));
	atomic_fetch_add(&n_next, n);
}

static void begin(const char *use, rig_each *each)
{
	struct weir_spec *spec = rig_spec(use);

	on_par = each;
	atomic_store(&ticket, 0);
	atomic_store(&n_next, 0);
	atomic_store(&n_seen, 0);
	until_ns = WEIR_NO_DEADLINE;
	rig_start(spec);
}

/* ---- bounds ---- */

static void next_counts(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (struct weir_event *c = weir_ended(ev[0]); c; c = c->next) {
		CU_ASSERT_EQUAL(weir_child_status(c), WEIR_OK);
		CU_ASSERT_EQUAL(((struct probe *)c)->seq, (uint64_t)atomic_load(&n_seen));
		atomic_fetch_add(&n_seen, 1);
	}
	next_ends(st, ev, n);
}

/* Children that are refused. They end at once. */
#define MORE 3

static void par_many(struct weir_stage *st, struct weir_event **ev)
{
	for (int i = 0; i < WEIR_CHILDREN + MORE; i++) {
		int outlet = i < WEIR_CHILDREN || i % 2 ? KID : -1;
		struct weir_event *c = weir_event_new(st, &probe_type);
		((struct probe *)c)->seq = (uint64_t)i;
		CU_ASSERT_EQUAL(
		    weir_child(st, *ev, outlet, &c), i < WEIR_CHILDREN ? WEIR_OK : WEIR_ELIMIT);
		CU_ASSERT_PTR_NULL(c);
		CU_ASSERT_EQUAL(
		    fixture_ended(), (uint64_t)(i < WEIR_CHILDREN ? 0 : i + 1 - WEIR_CHILDREN));
	}
	weir_await(st, ev, next_counts);
}

static void test_many(void)
{
	begin("t.par", par_many);
	rig_offer(0);
	FIXTURE_AWAIT(fixture_ended() == WEIR_CHILDREN + MORE + 1);
	CU_ASSERT_EQUAL(stage_view(g, "par").children_refused, MORE);
	CU_ASSERT_EQUAL(stage_view(g, "par").orphaned, MORE);
	rig_end(WEIR_CHILDREN + MORE + 1);
	CU_ASSERT_EQUAL(atomic_load(&n_seen), WEIR_CHILDREN);
	CU_ASSERT_EQUAL(atomic_load(&n_kid), WEIR_CHILDREN);
	CU_ASSERT_EQUAL(probes[0].status, WEIR_ELIMIT);
}

/* The statuses of children that cannot be sent, and the first of them. */
static void next_bad(struct weir_stage *st, struct weir_event **ev, int n)
{
	static const int want[] = {WEIR_OK, WEIR_ELINK, WEIR_ELINK, WEIR_ELINK};

	for (struct weir_event *c = weir_ended(ev[0]); c; c = c->next)
		CU_ASSERT_EQUAL(weir_child_status(c), want[atomic_fetch_add(&n_seen, 1)]);
	next_ends(st, ev, n);
}

static void par_bad(struct weir_stage *st, struct weir_event **ev)
{
	static const int outlets[] = {KID, OUT, -1, 1000000};
	struct weir_event *none = NULL;

	for (int i = 0; i < 4; i++)
		rig_child(st, *ev, outlets[i]);
	CU_ASSERT_EQUAL(weir_child(st, *ev, KID, &none), WEIR_ENOMEM);
	weir_await(st, ev, next_bad);
}

static void par_passes(struct weir_stage *st, struct weir_event **ev)
{
	weir_emit(st, OUT, ev);
}

static void test_bad(void)
{
	begin("t.par", par_passes);
	on_par2 = par_bad; /* its outlet `out` is not linked */
	rig_offer(0);
	rig_end(5);
	CU_ASSERT_EQUAL(atomic_load(&n_seen), 4);
	CU_ASSERT_EQUAL(probes[0].status, WEIR_ELINK);
}

static void next_makes(struct weir_stage *st, struct weir_event **ev, int n)
{
	CU_ASSERT_EQUAL(n, 1);
	CU_ASSERT_PTR_NULL(weir_ended(ev[0]));
	CU_ASSERT_EQUAL(weir_ended_status(ev[0]), WEIR_ENOMEM);
	rig_child(st, ev[0], KID);
	weir_await(st, &ev[0], next_ends);
}

static void par_lacks(struct weir_stage *st, struct weir_event **ev)
{
	struct weir_event *none = NULL;

	CU_ASSERT_EQUAL(weir_child(st, *ev, KID, &none), WEIR_ENOMEM);
	weir_await(st, ev, next_makes);
}

/* The only child could not be made. That is no status of the next child. */
static void test_none_made(void)
{
	begin("t.par", par_lacks);
	rig_offer(0);
	rig_end(2);
	CU_ASSERT_EQUAL(atomic_load(&n_next), 1);
	CU_ASSERT_EQUAL(probes[0].status, WEIR_OK);
}

/* ---- the first status, and memory ---- */

static void kid_fails(struct weir_stage *st, struct weir_event **ev)
{
	uint64_t seq = ((struct probe *)*ev)->seq;

	(void)st;
	weir_event_finish(ev, seq == 0 ? WEIR_OK : seq == 1 ? WEIR_EFAILED : WEIR_ENOENT);
}

static void par_new(struct weir_stage *st, struct weir_event **ev)
{
	struct weir_event *first = weir_event_new(st, &probe_type), *c = first;

	CU_ASSERT_EQUAL(first->arrival_ns, weir_now_ns(st));
	CU_ASSERT_EQUAL(first->deadline_ns, WEIR_NO_DEADLINE);
	weir_event_finish(&c, WEIR_OK);
	c = weir_event_new(st, &probe_type);
	CU_ASSERT(SLAB_MALLOC || c == first); /* its memory has been released */
	weir_event_finish(&c, WEIR_OK);
	for (int i = 0; i < 3; i++)
		rig_child(st, *ev, KID)->seq = (uint64_t)i;
	weir_await(st, ev, next_ends);
}

/* The children end in the order in which they were made, since one thread runs their stage. */
static void test_first(void)
{
	struct weir_spec *spec = rig_spec("t.par");

	spec->stages[0].inlined = true;
	on_par = par_new;
	on_kid = kid_fails;
	rig_start(spec);
	rig_offer(0);
	rig_end(6);
	CU_ASSERT_EQUAL(probes[0].status, WEIR_EFAILED);
}

/* ---- depth ---- */

static atomic_int deepest, limits;

static void next_deep(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++)
		atomic_fetch_add(&limits, weir_ended_status(ev[i]) == WEIR_ELIMIT);
	next_ends(st, ev, n);
}

static void par_deep(struct weir_stage *st, struct weir_event **ev)
{
	struct weir_event *c = weir_event_new(st, &probe_type);
	uint64_t depth = ((struct probe *)*ev)->seq;

	((struct probe *)c)->seq = depth + 1;
	int rc = weir_child(st, *ev, OUT, &c);
	CU_ASSERT_EQUAL(rc, depth < WEIR_GENERATIONS ? 0 : WEIR_ELIMIT);
	atomic_store(&deepest, (int)depth);
	weir_await(st, ev, next_deep);
}

/* A stage that calls itself: 16 generations below the first event. */
static void test_deep(void)
{
	struct weir_spec *spec = weir_spec_new("op");

	weir_spec_free(rig_spec("t.flat")); /* resets the callbacks */
	fixture_stage(spec, "kid", "t.kid", NULL);
	fixture_stage(spec, "par2", "t.flat", NULL);
	struct weir_stage_spec *s = fixture_stage(spec, "par", "t.flat", NULL);
	weir_spec_text(&s->admission.policy, "none");
	if (weir_spec_link(s, "out", "par", true) != 0)
		abort();
	on_par = par_deep;
	atomic_store(&limits, 0);
	rig_start(spec);
	rig_offer(0);
	rig_end(WEIR_GENERATIONS + 2);
	CU_ASSERT_EQUAL(atomic_load(&deepest), WEIR_GENERATIONS);
	CU_ASSERT_EQUAL(atomic_load(&limits), WEIR_GENERATIONS + 1);
}

/* ---- what a child has from its parent ---- */

static int kid_class;

static void kid_checks(struct weir_stage *st, struct weir_event **ev)
{
	const struct weir_event *e = *ev;
	bool own = ((struct probe *)*ev)->seq == 1;

	(void)st;
	CU_ASSERT_EQUAL(e->session, 77);
	CU_ASSERT_EQUAL(e->trace_id, own ? 6 : 5);
	kid_class = e->class_id;
	CU_ASSERT_EQUAL(e->deadline_ns, probes[0].ev.deadline_ns - (own ? NS_PER_S : 0));
}

static void par_gives(struct weir_stage *st, struct weir_event **ev)
{
	for (int i = 0; i < 3; i++) {
		struct weir_event *c = weir_event_new(st, &probe_type);
		((struct probe *)c)->seq = (uint64_t)i;
		c->trace_id = i == 1 ? 6 : 0;
		if (i > 0)
			c->deadline_ns = (*ev)->deadline_ns + (i == 1 ? -1 : 1) * NS_PER_S;
		weir_child(st, *ev, KID, &c);
	}
	weir_await(st, ev, next_ends);
}

static void test_inherited(void)
{
	struct weir_spec *spec = rig_spec("t.par");

	weir_spec_add_class(spec, "a");
	weir_spec_add_class(spec, "b");
	on_par = par_gives;
	on_kid = kid_checks;
	rig_start(spec);
	weir_event_init(&probes[0].ev, &probe_type, clock_now_ns());
	probes[0].ev.class_id = 1;
	probes[0].ev.session = 77;
	probes[0].ev.trace_id = 5;
	probes[0].ev.deadline_ns = clock_now_ns() + 3600 * NS_PER_S;
	rig_offer(0);
	rig_end(4);
	CU_ASSERT_EQUAL(atomic_load(&n_kid), 3);
	CU_ASSERT_EQUAL(kid_class, 1);
	CU_ASSERT_EQUAL(probes[0].status, WEIR_OK);
}

/* ---- deadlines ---- */

/* Wait past the deadline of the event, which its children share. */
static void par_late(struct weir_stage *st, struct weir_event **ev)
{
	for (int i = 0; i < 3; i++)
		rig_child(st, *ev, KID);
	while (clock_now_ns() < (*ev)->deadline_ns)
		sched_yield();
	weir_await(st, ev, next_ends);
}

/* The children do not reach a handler. The parent gets its continuation. */
static void test_late(void)
{
	begin("t.par", par_late);
	weir_event_init(&probes[0].ev, &probe_type, clock_now_ns());
	probes[0].ev.deadline_ns = clock_now_ns() + 300 * NS_PER_MS;
	rig_offer(0);
	rig_end(4);
	CU_ASSERT_EQUAL(atomic_load(&n_next), 1);
	CU_ASSERT_EQUAL(atomic_load(&n_kid), 0);
	CU_ASSERT_EQUAL(probes[0].status, WEIR_EDEADLINE);
}

/* ---- waits ---- */

static void par_waits(struct weir_stage *st, struct weir_event **ev)
{
	rig_child(st, *ev, KID); /* an orphan */
	uint64_t t = weir_wait(st, ev, next_ends, until_ns);
	CU_ASSERT_PTR_NULL(*ev);
	CU_ASSERT_NOT_EQUAL(t, 0);
	atomic_store(&ticket, t);
}

static void test_resumed(void)
{
	static const char *const uses[] = {"t.par", "t.loop"};

	for (int i = 0; i < 2; i++) {
		begin(uses[i], par_waits);
		rig_offer(0);
		CU_ASSERT_FALSE(weir_resume(par, 0));
		FIXTURE_AWAIT(atomic_load(&ticket) != 0);
		CU_ASSERT_FALSE(weir_resume(par, atomic_load(&ticket) + (1ULL << 25)));
		CU_ASSERT(weir_resume(par, atomic_load(&ticket)));
		CU_ASSERT_FALSE(weir_resume(par, atomic_load(&ticket)));
		weir_thread_flush();
		FIXTURE_AWAIT(fixture_ended() == 2);
		CU_ASSERT_FALSE(weir_resume(par, atomic_load(&ticket)));
		CU_ASSERT_EQUAL(atomic_load(&n_next), 1);
		CU_ASSERT_EQUAL(probes[0].status, WEIR_OK);
		rig_end(2);
	}
}

static void expired_requeues(struct weir_stage *st, struct weir_event **ev)
{
	on_par = NULL; /* `handle` ends it */
	weir_requeue(st, ev);
}

/* A wait that has expired has no continuation any more. */
static void test_expired(void)
{
	for (int i = 0; i < 2; i++) {
		begin("t.par", par_waits);
		on_expired = i ? expired_requeues : NULL;
		until_ns = 1;
		rig_offer(0);
		FIXTURE_AWAIT(fixture_ended() == 2);
		CU_ASSERT_FALSE(weir_resume(par, atomic_load(&ticket)));
		CU_ASSERT_EQUAL(atomic_load(&n_next), 0);
		CU_ASSERT_EQUAL(atomic_load(&n_par), 1 + i);
		CU_ASSERT_EQUAL(probes[0].status, i ? WEIR_OK : WEIR_EDEADLINE);
		rig_end(2);
	}
}

static void expired_awaits(struct weir_stage *st, struct weir_event **ev)
{
	rig_child(st, *ev, KID);
	weir_await(st, ev, next_ends);
}

static void test_expired_awaits(void)
{
	static const char *const uses[] = {"t.par", "t.loop"};

	for (int i = 0; i < 2; i++) {
		begin(uses[i], par_waits);
		on_expired = expired_awaits;
		until_ns = 1;
		rig_offer(0);
		FIXTURE_AWAIT(fixture_ended() == 3);
		CU_ASSERT_EQUAL(atomic_load(&n_next), 1);
		rig_end(3);
	}
}

/* ---- an event that awaits again and again ---- */

#define ROUNDS 20000

static void next_again(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		if (atomic_fetch_add(&rounds, 1) == ROUNDS)
			continue;
		rig_child(st, ev[i], KID);
		if (atomic_load(&rounds) % 3 == 0)
			rig_child(st, ev[i], KID);
		weir_await(st, &ev[i], next_again);
	}
	for (int i = 0; i < n; i++)
		if (ev[i])
			weir_event_finish(&ev[i], weir_ended_status(ev[i]));
}

static void par_again(struct weir_stage *st, struct weir_event **ev)
{
	weir_await(st, ev, next_again);
}

static void test_again(void)
{
	begin("t.par", par_again);
	atomic_store(&rounds, 0);
	rig_offer(0);
	FIXTURE_AWAIT(atomic_load(&probes[0].finishes) == 1);
	CU_ASSERT_EQUAL(atomic_load(&rounds), ROUNDS + 1);
	CU_ASSERT_EQUAL(stage_view(g, "par").joined, ROUNDS + ROUNDS / 3);
	rig_end(ROUNDS + ROUNDS / 3 + 1);
}

/* ---- wrong uses ---- */

static struct weir_event *let_go;

static void awaits_without_next(struct weir_stage *st, struct weir_event **ev)
{
	weir_await(st, ev, NULL);
}

static void ends_awaiting(struct weir_stage *st, struct weir_event **ev)
{
	let_go = *ev;
	rig_child(st, *ev, KID);
	weir_await(st, ev, next_ends);
	weir_event_finish(&let_go, WEIR_OK);
}

static void child_of_awaiting(struct weir_stage *st, struct weir_event **ev)
{
	let_go = *ev;
	rig_child(st, *ev, KID);
	weir_await(st, ev, next_ends);
	rig_child(st, let_go, KID);
}

static void awaits_twice(struct weir_stage *st, struct weir_event **ev)
{
	let_go = *ev;
	rig_child(st, *ev, KID);
	weir_await(st, ev, next_ends);
	weir_await(st, &let_go, next_ends);
}

static void child_twice(struct weir_stage *st, struct weir_event **ev)
{
	struct weir_event *c = &rig_child(st, *ev, KID)->ev;

	weir_await(st, ev, next_ends);
	weir_thread_flush();
	weir_child(st, c, KID, &c);
}

static void par_errs(struct weir_stage *st, struct weir_event **ev)
{
	CU_ASSERT(rig_aborts(awaits_without_next, st, ev));
	CU_ASSERT(rig_aborts(ends_awaiting, st, ev));
	CU_ASSERT(rig_aborts(child_of_awaiting, st, ev));
	CU_ASSERT(rig_aborts(awaits_twice, st, ev));
	CU_ASSERT(rig_aborts(child_twice, st, ev));
}

static void test_wrong(void)
{
	begin("t.par", par_errs);
	rig_offer(0);
	rig_end(1);
}

static void test_register(void)
{
	rig_register();
}

CUNIT_MAIN("op bounds", {"register", test_register}, {"many", test_many}, {"bad", test_bad},
    {"none made", test_none_made}, {"first", test_first}, {"deep", test_deep},
    {"inherited", test_inherited}, {"late", test_late}, {"resumed", test_resumed},
    {"expired", test_expired}, {"expired awaits", test_expired_awaits}, {"again", test_again},
    {"wrong", test_wrong})
