/* SPDX-License-Identifier: MIT */
/* Wrong uses of operations, families and payloads: each is refused by its result, or ends the process by
 * an assertion. None of them corrupts anything. */
#include "op_rig.h"

#include <weir/payload.h>

static const struct weir_event_type bare_type = {
    .name = "t.bare", .size = sizeof(struct weir_event), .finish = probe_finish};
static struct weir_event bare;
static struct weir_event *kept;

static void next_ends(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	for (int i = 0; i < n; i++)
		weir_event_finish(&ev[i], WEIR_OK);
}

/* ---- children ---- */

static void gives_twice(struct weir_stage *st, struct weir_event **ev)
{
	struct weir_event *c = weir_event_new(st, &probe_type);

	kept = c;
	weir_child(st, *ev, KID, &c);
	weir_child(st, *ev, KID, &kept);
}

static void emits_given(struct weir_stage *st, struct weir_event **ev)
{
	kept = &rig_child(st, *ev, KID)->ev;
	weir_emit(st, KID, &kept);
}

static void finishes_given(struct weir_stage *st, struct weir_event **ev)
{
	kept = &rig_child(st, *ev, KID)->ev;
	weir_event_finish(&kept, WEIR_OK);
}

/* In a run with an event that the handler may finish. */
static void finishes_given_too(struct weir_stage *st, struct weir_event **ev)
{
	struct weir_event *run[2] = {weir_event_new(st, &probe_type)};

	run[1] = &rig_child(st, *ev, KID)->ev;
	weir_event_finish_run(run, 2, WEIR_OK);
}

static void gives_bare(struct weir_stage *st, struct weir_event **ev)
{
	struct weir_event *c = &bare;

	weir_event_init(&bare, &bare_type, clock_now_ns());
	weir_child(st, *ev, KID, &c);
}

static void makes_bare(struct weir_stage *st, struct weir_event **ev)
{
	(void)ev;
	weir_event_new(st, &bare_type);
}

/* ---- waiting ---- */

static void awaits_none(struct weir_stage *st, struct weir_event **ev)
{
	weir_await(st, ev, next_ends);
	weir_await(st, ev, next_ends); /* now NULL */
}

static void waits_none(struct weir_stage *st, struct weir_event **ev)
{
	weir_wait(st, ev, next_ends, WEIR_NO_DEADLINE);
	weir_wait(st, ev, next_ends, WEIR_NO_DEADLINE);
}

static void waits_twice(struct weir_stage *st, struct weir_event **ev)
{
	kept = *ev;
	weir_wait(st, ev, next_ends, WEIR_NO_DEADLINE);
	weir_wait(st, &kept, next_ends, WEIR_NO_DEADLINE);
}

static void reads_bare(struct weir_stage *st, struct weir_event **ev)
{
	(void)st;
	(void)ev;
	weir_event_init(&bare, &bare_type, clock_now_ns());
	weir_ended(&bare);
}

static void reads_bare_status(struct weir_stage *st, struct weir_event **ev)
{
	(void)st;
	(void)ev;
	weir_event_init(&bare, &bare_type, clock_now_ns());
	weir_ended_status(&bare);
}

static void waits_flat(struct weir_stage *st, struct weir_event **ev)
{
	weir_wait(st, ev, next_ends, WEIR_NO_DEADLINE);
}

/* ---- families ---- */

static void joins_twice(struct weir_stage *st, struct weir_event **ev)
{
	(void)st;
	weir_family_join(weir_family_new(NULL), *ev);
	weir_family_join(weir_family_new(NULL), *ev);
}

static void joins_bare(struct weir_stage *st, struct weir_event **ev)
{
	(void)st;
	(void)ev;
	weir_event_init(&bare, &bare_type, clock_now_ns());
	weir_family_join(weir_family_new(NULL), &bare);
}

static void races_strangers(struct weir_stage *st, struct weir_event **ev)
{
	struct weir_event *c = weir_event_new(st, &probe_type);

	weir_family_join(weir_family_new(NULL), c);
	weir_child(st, *ev, KID, &c);
	weir_await_first(st, ev, next_ends);
}

/* ---- payloads ---- */

static void puts_none(struct weir_stage *st, struct weir_event **ev)
{
	void *none = NULL;

	(void)st;
	weir_payload_put(*ev, &none);
}

static void reserves_none(struct weir_stage *st, struct weir_event **ev)
{
	(void)ev;
	weir_payload_reserve(st, NULL, 1);
}

static void par_misuses(struct weir_stage *st, struct weir_event **ev)
{
	CU_ASSERT(rig_aborts(gives_twice, st, ev));
	CU_ASSERT(rig_aborts(emits_given, st, ev));
	CU_ASSERT(rig_aborts(finishes_given, st, ev));
	CU_ASSERT(rig_aborts(finishes_given_too, st, ev));
	CU_ASSERT(rig_aborts(gives_bare, st, ev));
	CU_ASSERT(rig_aborts(makes_bare, st, ev));
	CU_ASSERT(rig_aborts(awaits_none, st, ev));
	CU_ASSERT(rig_aborts(waits_none, st, ev));
	CU_ASSERT(rig_aborts(waits_twice, st, ev));
	CU_ASSERT(rig_aborts(reads_bare, st, ev));
	CU_ASSERT(rig_aborts(reads_bare_status, st, ev));
	CU_ASSERT(rig_aborts(joins_twice, st, ev));
	CU_ASSERT(rig_aborts(joins_bare, st, ev));
	CU_ASSERT(rig_aborts(races_strangers, st, ev));
	CU_ASSERT(rig_aborts(puts_none, st, ev));
	CU_ASSERT(rig_aborts(reserves_none, st, ev));
}

static void begin(const char *use, rig_each *each)
{
	struct weir_spec *spec = rig_spec(use);

	on_par = each;
	rig_start(spec);
}

static void test_aborts(void)
{
	begin("t.par", par_misuses);
	rig_offer(0);
	rig_end(1);
}

/* A stage that holds nothing has no tickets. */
static void flat_misuses(struct weir_stage *st, struct weir_event **ev)
{
	CU_ASSERT(rig_aborts(waits_flat, st, ev));
	for (uint64_t ticket = 0; ticket < 9; ticket++) {
		CU_ASSERT_FALSE(weir_resume(st, ticket << 32 | ticket));
		CU_ASSERT_PTR_NULL(weir_hold_claim(st, ticket << 32 | ticket));
	}
	CU_ASSERT_FALSE(weir_resume(st, UINT64_MAX));
}

static void test_no_tickets(void)
{
	begin("t.flat", flat_misuses);
	rig_offer(0);
	rig_end(1);
}

/* ---- children that `children` of the type does not list ---- */

static void awaits_other(struct weir_stage *st, struct weir_event **ev)
{
	rig_child(st, *ev, OUT);
	weir_await(st, ev, next_ends);
}

/* What the graph logs if `each` handles two events. */
static size_t logged(rig_each *each, char *text, size_t size)
{
	int fd[2];

	CU_ASSERT_EQUAL_FATAL(pipe(fd), 0);
	weir_log_set_fd(fd[1]);
	begin("t.par", each);
	rig_offer(0);
	rig_offer(1);
	rig_end(4);
	weir_log_set_fd(2);
	close(fd[1]);
	ssize_t n = read(fd[0], text, size - 1);
	close(fd[0]);
	text[n > 0 ? n : 0] = '\0';
	return n > 0 ? (size_t)n : 0;
}

static void awaits_kid(struct weir_stage *st, struct weir_event **ev)
{
	rig_child(st, *ev, KID);
	weir_await(st, ev, next_ends);
}

static void test_not_listed(void)
{
	char text[1000];

	CU_ASSERT_EQUAL(logged(awaits_kid, text, sizeof(text)), 0);
	logged(awaits_other, text, sizeof(text));
	const char *first =
	    strstr(text, "stage 'par' (t.par) awaits events that it sends to 'out'");
	CU_ASSERT(first && !strstr(first + 1, "stage 'par'"));
}

/* ---- races that nobody wins, or with a child that could not be made ---- */

static void next_tells(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	for (int i = 0; i < n; i++)
		weir_event_finish(&ev[i], weir_ended_status(ev[i]));
}

static void par_asks(struct weir_stage *st, struct weir_event **ev)
{
	struct weir_event *none = NULL;

	weir_child(st, *ev, KID, &none);
	rig_child(st, *ev, KID);
	weir_await_first(st, ev, next_tells);
}

static void kid_fails(struct weir_stage *st, struct weir_event **ev)
{
	(void)st;
	weir_event_finish(ev, WEIR_EFAILED);
}

/* A child that could not be made is the first that failed, but the event still awaits the others. */
static void test_lacked_first(void)
{
	for (int fails = 0; fails < 2; fails++) {
		struct weir_spec *spec = rig_spec("t.par");

		on_par = par_asks;
		on_kid = fails ? kid_fails : NULL;
		rig_start(spec);
		rig_offer(0);
		FIXTURE_AWAIT(fixture_ended() == 2);
		CU_ASSERT_EQUAL(probes[0].status, fails ? WEIR_ENOMEM : WEIR_OK);
		rig_end(2);
	}
}

static void par_asks_twice(struct weir_stage *st, struct weir_event **ev)
{
	rig_child(st, *ev, KID);
	rig_child(st, *ev, KID);
	weir_await_first(st, ev, next_tells);
}

static void kid_fails_in_turn(struct weir_stage *st, struct weir_event **ev)
{
	static atomic_int turn;

	(void)st;
	weir_event_finish(ev, atomic_fetch_add(&turn, 1) % 2 ? WEIR_EPRESSURE : WEIR_EFAILED);
}

/* If all children of weir_await_first fail, the status is that of the first one. */
static void test_first_failure(void)
{
	struct weir_spec *spec = rig_spec("t.par");

	fixture_set(&spec->stages[0], "threads.max", "1");
	on_par = par_asks_twice;
	on_kid = kid_fails_in_turn;
	rig_start(spec);
	rig_offer(0);
	FIXTURE_AWAIT(fixture_ended() == 3);
	CU_ASSERT_EQUAL(probes[0].status, WEIR_EFAILED);
	rig_end(3);
}

static void test_register(void)
{
	rig_register();
}

CUNIT_MAIN("op misuse", {"register", test_register}, {"aborts", test_aborts},
    {"no tickets", test_no_tickets}, {"not listed", test_not_listed},
    {"lacked, first", test_lacked_first}, {"first failure", test_first_failure})
