/* SPDX-License-Identifier: MIT */
/* The control step with a policy whose wanted target is set by the test: what the bounds and the
 * thread budget leave of that target, how often it is journaled, and that a policy remembers
 * nothing from before a pause. (Real policies: test_resize*.c.) */
#include "control/control.h"

#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "cunit_main.h"

/* ---- the policy and the pool ---- */

static int wanted;     /* 0: nothing */
static int remembered; /* calls counted by the policy's state, as of the last call */

static bool wish_decide(
    void *state, const struct resize_view *v, int64_t now_ns, struct resize_decision *d)
{
	int *calls = state;

	(void)v, (void)now_ns;
	remembered = (*calls)++;
	d->target = wanted;
	strcpy(d->rule, "the test says so");
	return wanted != 0;
}

static const struct resize_policy wish = {
    .name = "wish", .help = "what the test wants", .decide = wish_decide};

static struct resize_view view;
static int resizes;

static void get_view(void *ctx, int i, struct resize_view *v)
{
	(void)ctx, (void)i;
	*v = view;
}

static int set_target(void *ctx, int i, int target)
{
	(void)ctx, (void)i;
	resizes++;
	view.budget_left -= target - view.target;
	return view.target = target;
}

static struct control_repairs repairs; /* what the pool reports */

static struct control_repairs repair(void *ctx, int i, int64_t now_ns)
{
	(void)ctx, (void)i, (void)now_ns;
	return repairs;
}

static const struct control_ops ops = {.view = get_view, .resize = set_target, .repair = repair};

static struct control *start(int target, int min, int max, int budget_left)
{
	struct control_pool pool = {"p", &wish};
	struct control *c = NULL;

	view = (struct resize_view){
	    .live = target, .target = target, .min = min, .max = max, .budget_left = budget_left};
	wanted = resizes = 0;
	repairs = (struct control_repairs){0};
	CU_ASSERT_EQUAL_FATAL(control_new(&ops, NULL, &pool, 1, &c), 0);
	return c;
}

static int rows(struct control *c, struct weir_decision *newest)
{
	struct weir_decision d[64];
	int n = journal_read(control_journal(c), d, 64);

	if (n > 0)
		*newest = d[0];
	return n;
}

/* ---- bounds ---- */

struct bound {
	int target, min, max, left; /* the pool and the budget */
	int want, get;
	const char *limit;
};

static const struct bound bounds[] = {
    {4, 1, 32, 100, 7, 7, ""},
    {4, 1, 7, 100, 7, 7, ""},
    {4, 1, 6, 100, 7, 6, "wanted 7, max 6"},
    {4, 2, 7, 100, 2, 2, ""},
    {4, 3, 7, 100, 2, 3, "wanted 2, min 3"},
    {4, 1, 32, 3, 7, 7, ""}, /* exactly what the budget leaves */
    {4, 1, 32, 2, 7, 6, "wanted 7, thread budget allows 6"},
    {4, 1, 32, 1, 7, 5, "wanted 7, thread budget allows 5"},
    {4, 1, 32, 0, 7, 4, "wanted 7, thread budget allows 4"},
    {4, 1, 32, -5, 7, 4, "wanted 7, thread budget allows 4"},
    {4, 1, 32, 0, 3, 3, ""}, /* shrinking is always possible */
    {4, 1, 6, 1, 9, 5, "wanted 9, thread budget allows 5"},
};

static void test_bounds_and_budget(void)
{
	for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++) {
		const struct bound *b = &bounds[i];
		struct control *c = start(b->target, b->min, b->max, b->left);
		struct weir_decision d = {0};
		wanted = b->want;
		control_step(c, CONTROL_TICK_NS, 0);
		CU_ASSERT_EQUAL(view.target, b->get);
		CU_ASSERT_EQUAL(resizes, b->get != b->target);
		CU_ASSERT_EQUAL(rows(c, &d), 1);
		CU_ASSERT_STRING_EQUAL(d.stage, "p");
		CU_ASSERT_STRING_EQUAL(d.limit, b->limit);
		CU_ASSERT_STRING_EQUAL(d.action, b->get > b->target   ? "grow"
						 : b->get < b->target ? "shrink"
								      : "limit");
		CU_ASSERT_EQUAL(d.from, b->target);
		CU_ASSERT_EQUAL(d.to, b->get);
		control_free(c);
	}
}

/* ---- the journal ---- */

static int64_t wish_for(struct control *c, int want, int64_t now_ns, int64_t span_ns)
{
	wanted = want;
	for (int64_t end_ns = now_ns + span_ns; now_ns < end_ns; now_ns += CONTROL_TICK_NS)
		control_step(c, now_ns, 0);
	return now_ns;
}

/* A target that the bounds forbid is journaled as one row, even if it is wanted for an hour. */
static void test_lasting_wish_is_one_row(void)
{
	struct control *c = start(4, 1, 4, 100);
	struct weir_decision d;

	wish_for(c, 6, NS_PER_S, 3600 * NS_PER_S);
	CU_ASSERT_EQUAL(rows(c, &d), 1);
	CU_ASSERT_STRING_EQUAL(d.action, "limit");
	control_free(c);
}

static void test_wish_that_comes_back_is_news(void)
{
	struct control *c = start(4, 1, 4, 100);
	struct weir_decision d;

	int64_t now_ns = wish_for(c, 6, NS_PER_S, 10 * NS_PER_S);
	now_ns = wish_for(c, 0, now_ns, 59 * NS_PER_S);
	now_ns = wish_for(c, 6, now_ns, NS_PER_S);
	CU_ASSERT_EQUAL(rows(c, &d), 1); /* the pause was shorter than a minute */
	now_ns = wish_for(c, 0, now_ns, 61 * NS_PER_S);
	wish_for(c, 6, now_ns, NS_PER_S);
	CU_ASSERT_EQUAL(rows(c, &d), 2);
	control_free(c);
}

/* A much larger target, or one in the other direction, is a new row. */
static void test_other_wishes_are_news(void)
{
	struct control *c = start(4, 4, 4, 100);
	struct weir_decision d;

	int64_t now_ns = wish_for(c, 6, NS_PER_S, NS_PER_S);
	now_ns = wish_for(c, 9, now_ns, NS_PER_S); /* half as much again counts as the same */
	CU_ASSERT_EQUAL(rows(c, &d), 1);
	now_ns = wish_for(c, 10, now_ns, NS_PER_S);
	CU_ASSERT_EQUAL(rows(c, &d), 2);
	CU_ASSERT_STRING_EQUAL(d.limit, "wanted 10, max 4");
	now_ns = wish_for(c, 2, now_ns, NS_PER_S);
	CU_ASSERT_EQUAL(rows(c, &d), 3);
	CU_ASSERT_STRING_EQUAL(d.limit, "wanted 2, min 4");
	wish_for(c, 6, now_ns, NS_PER_S);
	CU_ASSERT_EQUAL(rows(c, &d), 4);
	control_free(c);
}

/* A row contains what the policy saw. */
static void test_row_has_what_was_seen(void)
{
	struct control *c = start(4, 1, 32, 100);
	struct weir_decision d = {0};

	view.queue_length = 12;
	view.queue_limit = 34;
	view.busy = 3;
	view.offered_total = 56;
	view.completed_total = 49;
	wanted = 7;
	control_step(c, CONTROL_TICK_NS, 0.8);
	CU_ASSERT_EQUAL(rows(c, &d), 1);
	CU_ASSERT_STRING_EQUAL(
	    d.inputs, "queue=12/34 threads=4 busy=3 offered=56 completed=49 cpu=80%");
	CU_ASSERT_STRING_EQUAL(d.rule, "the test says so");
	control_free(c);
}

static int keep_target(void *ctx, int i, int target)
{
	(void)ctx, (void)i, (void)target;
	return view.target;
}

/* An operator may change the bounds after the view of the pool was taken. A step that the pool
 * refuses is not journaled. */
static void test_refused_step_is_no_row(void)
{
	static const struct control_ops refusing = {
	    .view = get_view, .resize = keep_target, .repair = repair};
	struct control_pool pool = {"p", &wish};
	struct control *c = start(4, 1, 32, 100);
	struct weir_decision d;

	control_free(c);
	CU_ASSERT_EQUAL_FATAL(control_new(&refusing, NULL, &pool, 1, &c), 0);
	wish_for(c, 7, NS_PER_S, NS_PER_S);
	wish_for(c, 2, 2 * NS_PER_S, NS_PER_S);
	CU_ASSERT_EQUAL(rows(c, &d), 0);
	control_free(c);
}

/* A pool reports all deaths since its start; each is journaled once. */
static void test_deaths_are_told_once(void)
{
	struct control *c = start(4, 1, 4, 100);
	struct weir_decision d;

	repairs = (struct control_repairs){.deaths = 2, .died_in = "parse"};
	wish_for(c, 0, NS_PER_S, NS_PER_S);
	CU_ASSERT_EQUAL(rows(c, &d), 1);
	CU_ASSERT_STRING_EQUAL(d.action, "thread_died");
	CU_ASSERT_EQUAL(strncmp(d.rule, "2 handler", 9), 0);
	repairs.deaths = 3;
	wish_for(c, 0, 2 * NS_PER_S, NS_PER_S);
	CU_ASSERT_EQUAL(rows(c, &d), 2);
	CU_ASSERT_EQUAL(strncmp(d.rule, "1 handler", 9), 0);
	control_free(c);
}

/* The outcome of a step is recorded after 5 s and after 30 s. A wanted target that changed nothing
 * has no outcome. */
static void test_outcome_of_each_step(void)
{
	struct control *c = start(4, 1, 6, 100);
	struct weir_decision d[8];

	int64_t now_ns = wish_for(c, 6, NS_PER_S, CONTROL_TICK_NS);
	now_ns = wish_for(c, 9, now_ns, CONTROL_TICK_NS);
	now_ns = wish_for(c, 0, now_ns, 6 * NS_PER_S);
	CU_ASSERT_EQUAL_FATAL(journal_read(control_journal(c), d, 8), 2);
	CU_ASSERT_STRING_EQUAL(d[1].action, "grow");
	CU_ASSERT_STRING_EQUAL(d[1].outcome_5s, "no effect");
	CU_ASSERT_STRING_EQUAL(d[1].outcome_30s, "");
	CU_ASSERT_STRING_EQUAL(d[0].action, "limit");
	CU_ASSERT_STRING_EQUAL(d[0].outcome_5s, "");
	wish_for(c, 0, now_ns, 26 * NS_PER_S);
	CU_ASSERT_EQUAL_FATAL(journal_read(control_journal(c), d, 8), 2);
	CU_ASSERT_STRING_EQUAL(d[1].outcome_30s, "no effect");
	CU_ASSERT_STRING_EQUAL(d[0].outcome_30s, "");
	control_free(c);
}

/* ---- the thread ---- */

/* Time after a tick before which the policies of this graph want no other tick. */
#define REST_NS (CONTROL_TICK_NS * 5 / 2)

static atomic_int rounds, ticks;

static int64_t tick_at_rest(void *ctx, int64_t now_ns)
{
	(void)ctx;
	atomic_fetch_add(&ticks, 1);
	return now_ns + REST_NS;
}

static void count_round(void *ctx, int64_t now_ns, struct journal *journal)
{
	(void)ctx, (void)now_ns, (void)journal;
	atomic_fetch_add(&rounds, 1);
}

/* The thread sleeps between rounds and between ticks. Both may be late on a busy machine, but never
 * early. */
static void test_rounds_are_not_early(void)
{
	static const struct control_ops threaded = {.view = get_view,
	    .resize = set_target,
	    .repair = repair,
	    .tick = tick_at_rest,
	    .watch = count_round};
	struct control *c = NULL;

	atomic_store(&rounds, 0);
	atomic_store(&ticks, 0);
	CU_ASSERT_EQUAL_FATAL(control_new(&threaded, NULL, NULL, 0, &c), 0);
	int64_t start_ns = clock_now_ns();
	CU_ASSERT_EQUAL_FATAL(control_start(c), 0);
	while (atomic_load(&rounds) < 4)
		sched_yield();
	control_stop(c);
	control_stop(c); /* legal when the thread does not run */
	int64_t took_ns = clock_now_ns() - start_ns;
	CU_ASSERT(atomic_load(&rounds) * CONTROL_TICK_NS <= took_ns);
	CU_ASSERT((atomic_load(&ticks) - 1) * REST_NS <= took_ns);
	control_free(c);
}

/* ---- pauses ---- */

static void test_policy_begins_anew_after_a_pause(void)
{
	struct control *c = start(4, 1, 8, 100);
	int64_t now_ns = wish_for(c, 0, NS_PER_S, 5 * CONTROL_TICK_NS);

	CU_ASSERT_EQUAL(remembered, 4);
	view.paused = true;
	remembered = -1;
	now_ns = wish_for(c, 7, now_ns, 5 * CONTROL_TICK_NS);
	CU_ASSERT_EQUAL(remembered, -1); /* not called */
	CU_ASSERT_EQUAL(view.target, 4);
	view.paused = false;
	now_ns = wish_for(c, 0, now_ns, CONTROL_TICK_NS);
	CU_ASSERT_EQUAL(remembered, 0); /* called with a fresh state */
	wish_for(c, 0, now_ns, CONTROL_TICK_NS);
	CU_ASSERT_EQUAL(remembered, 1);
	control_free(c);
}

/* While one stage of a group is paused, the pool goes on for the others, and its policy learns anew
 * from the stages that are left. */
static void test_group_with_a_paused_stage(void)
{
	struct control *c = start(4, 1, 8, 100);
	int64_t now_ns = wish_for(c, 0, NS_PER_S, 5 * CONTROL_TICK_NS);

	CU_ASSERT_EQUAL(remembered, 4);
	view.paused_set = 2;
	now_ns = wish_for(c, 7, now_ns, CONTROL_TICK_NS);
	CU_ASSERT_EQUAL(remembered, 0); /* called with a fresh state */
	CU_ASSERT_EQUAL(view.target, 7);
	now_ns = wish_for(c, 7, now_ns, CONTROL_TICK_NS);
	CU_ASSERT_EQUAL(remembered, 1); /* the set is the same: the state stays */
	view.paused_set = 0;
	wish_for(c, 7, now_ns, CONTROL_TICK_NS);
	CU_ASSERT_EQUAL(remembered, 0);
	control_free(c);
}

/* `cores: 4` of a core group: no policy is asked, and nothing is said about a bound. */
static void test_a_given_number_stays(void)
{
	struct control *c = start(4, 4, 4, 100);
	struct weir_decision d;

	view.fixed = true;
	remembered = -1;
	wish_for(c, 7, NS_PER_S, 5 * CONTROL_TICK_NS);
	CU_ASSERT_EQUAL(remembered, -1);
	CU_ASSERT_EQUAL(view.target, 4);
	CU_ASSERT_EQUAL(journal_read(control_journal(c), &d, 1), 0);
	control_free(c);
}

CUNIT_MAIN("control", {"a given number stays", test_a_given_number_stays},
    {"a group with a paused stage", test_group_with_a_paused_stage},
    {"bounds and budget", test_bounds_and_budget},
    {"a lasting wish is one row", test_lasting_wish_is_one_row},
    {"a wish that comes back is news", test_wish_that_comes_back_is_news},
    {"other wishes are news", test_other_wishes_are_news},
    {"a row has what was seen", test_row_has_what_was_seen},
    {"a refused step is no row", test_refused_step_is_no_row},
    {"outcome of each step", test_outcome_of_each_step},
    {"deaths are told once", test_deaths_are_told_once},
    {"rounds are not early", test_rounds_are_not_early},
    {"a policy begins anew after a pause", test_policy_begins_anew_after_a_pause})
