/* SPDX-License-Identifier: MIT */
/* The books of operations: the laws of events and of children, at rest and while events move; the
 * profile; the trails of parents and their children; and how many children an event may have. */
#include "fixture/graph/probes.h"

#include <weir/operate.h>
#include <weir/watch.h>

#include "fixture/graph/profile.h"

#define JOBS   300
#define PARTS  5
#define ROUNDS 20

/* How long each part takes in the tests of trails: long against a microsecond, their resolution. */
#define PART_NS 2000000

struct job {
	struct weir_event ev;
	struct weir_op op;
	struct weir_trail trail;
	int rounds;
};

struct part {
	struct weir_event ev;
	struct weir_op op;
	struct weir_trail trail;
};

#include "split_rig.h"

static atomic_int jobs_ended, parts_ended, parts_refused;
static int n_parts, n_rounds;
static bool orphans;
static int64_t work_ns; /* that a part takes in its last stage */

static void job_finish(struct weir_event *ev, int status)
{
	(void)ev;
	(void)status;
	atomic_fetch_add(&jobs_ended, 1);
}

static void part_finish(struct weir_event *ev, int status)
{
	(void)ev;
	atomic_fetch_add(&parts_ended, 1);
	atomic_fetch_add(&parts_refused, status == WEIR_EQUEUE);
}

static void tell_job(const struct weir_event *ev, char *buf, size_t size)
{
	(void)ev;
	snprintf(buf, size, "job");
}

static void tell_part(const struct weir_event *ev, char *buf, size_t size)
{
	(void)ev;
	snprintf(buf, size, "part");
}

static const struct weir_event_type job_type = {RIG_TYPE(struct job, "t.job", job_finish),
    .trail = offsetof(struct job, trail), .describe = tell_job};
static const struct weir_event_type part_type = {RIG_TYPE(struct part, "t.part", part_finish),
    .trail = offsetof(struct part, trail), .describe = tell_part};

static void joined(struct weir_stage *st, struct weir_event **ev, int n);

static void split(struct weir_stage *st, struct weir_event **slot)
{
	for (int i = 0; i < n_parts; i++) {
		struct weir_event *c = weir_event_new(st, &part_type);
		weir_child(st, *slot, 0, &c);
	}
	if (orphans)
		weir_event_finish(slot, WEIR_OK);
	else
		weir_await(st, slot, joined);
}

static void joined(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		struct job *j = (struct job *)ev[i];
		if (++j->rounds < n_rounds)
			split(st, &ev[i]);
		else
			weir_event_finish(&ev[i], weir_ended_status(ev[i]));
	}
}

static void split_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++)
		split(st, &ev[i]);
}

static void part_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	for (int i = 0; i < n; i++) {
		for (int64_t end_ns = clock_now_ns() + work_ns; clock_now_ns() < end_ns;)
			;
		weir_event_finish(&ev[i], WEIR_OK);
	}
}

static void mid_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++)
		weir_emit(st, 0, &ev[i]);
}

static const struct weir_stage_ops split_ops = {RIG_SPLITS(split_handle)};
static const struct weir_stage_ops mid_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.mid",
    .summary = "sends parts on",
    .accepts = &part_type,
    .outlets = part_outlets,
    .handle = mid_handle};
static const struct weir_stage_ops part_ops = {RIG_PARTS(part_handle)};

static void test_register(void)
{
	fixture_register(&split_ops);
	fixture_register(&mid_ops);
	fixture_register(&part_ops);
}

/* split -> mid -> end; the queue of mid has room for `limit` parts. */
static struct weir_spec *three_stages(const char *limit)
{
	struct weir_spec *spec = weir_spec_new("books");

	fixture_open_stage(spec, "end", "t.part", NULL);
	fixture_set(fixture_open_stage(spec, "mid", "t.mid", "end"), "queue.limit", limit);
	struct weir_stage_spec *s = fixture_stage(spec, "split", "t.split", "mid");
	fixture_set(s, "threads.max", "2");
	weir_spec_text(&s->admission.policy, "none");
	return spec;
}

static void begin(int parts, int rounds)
{
	memset(jobs, 0, sizeof(jobs));
	jobs_ended = parts_ended = parts_refused = 0;
	n_parts = parts;
	n_rounds = rounds;
	orphans = false;
	work_ns = 0;
}

/* ---- the laws ---- */

static uint64_t ended(const struct weir_stage_view *s)
{
	return s->joined + s->orphaned + s->cancelled;
}

/* The law of events, which holds within the slack while events move. */
static void check_law(const struct weir_stage_view *s)
{
	const struct weir_class_view *c = &s->class_view[0];
	int64_t in = (int64_t)(c->offered + c->spawned);
	int64_t out = (int64_t)(c->completed + c->failed + c->departed);

	for (int r = 0; r < WEIR_SHED_REASONS; r++)
		out += (int64_t)c->shed[r];
	CU_ASSERT_EQUAL(in > out ? (uint64_t)(in - out) : 0, s->in_flight);
	CU_ASSERT(llabs(s->law_residual) <= s->law_slack);
}

/* Look at a graph in which events move: the law of events; and as many children have ended as there
 * are, at most, of which at most `most` are in flight. Counters are read one after the other, so two
 * views are compared. */
static void look(struct weir_graph *g, uint64_t most)
{
	struct weir_graph_view *a, *b;
	struct weir_profile *p;

	CU_ASSERT_EQUAL_FATAL(weir_graph_view(g, &a), 0);
	CU_ASSERT_EQUAL_FATAL(weir_graph_view(g, &b), 0);
	for (int i = 0; i < a->n_stages; i++) {
		check_law(&a->stages[i]);
		CU_ASSERT(ended(&a->stages[i]) <= b->stages[i].spawned);
		CU_ASSERT(a->stages[i].spawned <= ended(&b->stages[i]) + most);
	}
	weir_graph_view_free(a);
	weir_graph_view_free(b);
	CU_ASSERT_EQUAL_FATAL(weir_graph_profile(g, &p), 0);
	const char *breaks = profile_breaks(p);
	CU_ASSERT_PTR_NULL(breaks);
	if (breaks)
		fprintf(stderr, "%s\n", breaks);
	weir_graph_profile_free(p);
}

/* The laws at rest: nothing is in flight, and `made` children have ended, as the parent saw them. */
static void check_rest(struct weir_graph *g, uint64_t made)
{
	FIXTURE_AWAIT(atomic_load(&parts_ended) == (int)made);
	FIXTURE_AWAIT(profile_at_rest(g, "split") == NULL);
	struct weir_stage_view s = stage_view(g, "split");
	CU_ASSERT_EQUAL(s.law_residual, 0);
	CU_ASSERT_EQUAL(s.in_flight, 0);
	CU_ASSERT_EQUAL(s.spawned, made);
	CU_ASSERT_EQUAL(s.class_view[0].spawned, made);
	CU_ASSERT_EQUAL(s.class_view[0].departed, made);
	CU_ASSERT_EQUAL(s.class_view[0].offered, JOBS);
	CU_ASSERT_EQUAL(orphans ? s.orphaned : s.joined, made);
	CU_ASSERT_EQUAL(ended(&s), made);
	s = stage_view(g, "mid");
	CU_ASSERT_EQUAL(s.spawned, 0);
	CU_ASSERT_EQUAL(s.class_view[0].offered, made);
	CU_ASSERT_EQUAL(s.class_view[0].shed[weir_shed_index(WEIR_EQUEUE)],
	    (uint64_t)atomic_load(&parts_refused));
}

static void run(const char *limit)
{
	struct weir_graph *g = fixture_start(three_stages(limit));
	int looks = 0;

	rig_offer_jobs(g, JOBS);
	do
		look(g, JOBS * PARTS);
	while (++looks < 20 || atomic_load(&jobs_ended) < JOBS);
	check_rest(g, (uint64_t)(JOBS * n_parts * n_rounds));
	finish_graph(g, 0);
}

static void test_laws(void)
{
	begin(PARTS, ROUNDS);
	run("20000");
	CU_ASSERT_EQUAL(atomic_load(&parts_refused), 0);
}

/* Children that the next stage refuses are shed there, and have departed here. */
static void test_refused(void)
{
	begin(PARTS, ROUNDS);
	run("2");
	CU_ASSERT(atomic_load(&parts_refused) > 0);
}

static void test_orphans(void)
{
	begin(PARTS, 1);
	orphans = true;
	run("20000");
}

/* An event that waits is `awaiting`, in the view and in the profile, and not held. */
static void test_awaiting(void)
{
	struct weir_profile *p;
	char why[160];

	begin(PARTS, 1);
	struct weir_graph *g = fixture_start(three_stages("20000"));
	CU_ASSERT_EQUAL(weir_graph_steer(g, "end", WEIR_STEER_PAUSE, why, sizeof(why)), 0);
	rig_offer_jobs(g, 7);
	FIXTURE_AWAIT(stage_view(g, "end").queue_length == 7 * PARTS);
	FIXTURE_AWAIT(profile_at_rest(g, "split") == NULL);
	struct weir_stage_view s = stage_view(g, "split");
	CU_ASSERT_EQUAL(s.awaiting, 7);
	CU_ASSERT_EQUAL(s.in_flight, 7);
	CU_ASSERT_EQUAL(s.held, 0);
	CU_ASSERT_EQUAL(s.law_residual, 0);
	CU_ASSERT_EQUAL(s.spawned - ended(&s), 7 * PARTS);
	CU_ASSERT_EQUAL_FATAL(weir_graph_profile(g, &p), 0);
	uint64_t sent = 0, completed = 0, departed = 0;
	for (int i = 0; i < p->n_stages; i++) {
		const struct weir_profile_stage *ps = &p->stage[i];
		bool is_split = strcmp(ps->name, "split") == 0;
		CU_ASSERT_EQUAL(ps->awaiting, is_split ? 7 : 0);
		for (int k = 0; is_split && k < ps->n_rows; k++) {
			sent += ps->row[k].arc[0].sent;
			completed += ps->row[k].completed;
			departed += ps->row[k].departed;
		}
	}
	/* children are sent but not completed */
	CU_ASSERT_EQUAL(sent, 7 * PARTS);
	CU_ASSERT_EQUAL(departed, 7 * PARTS);
	CU_ASSERT_EQUAL(completed, 0);
	weir_graph_profile_free(p);
	CU_ASSERT_EQUAL(weir_graph_steer(g, "end", WEIR_STEER_RUN, why, sizeof(why)), 0);
	FIXTURE_AWAIT(atomic_load(&jobs_ended) == 7);
	finish_graph(g, 0);
}

/* ---- trails ---- */

static int64_t end_of(const struct weir_span *s)
{
	return s->at_ns + s->wait_ns + s->service_ns + s->await_ns;
}

/* The spans of the children: each passed two stages, after the parent had begun to wait and before it
 * went on; the one that ended last is first. */
static void check_children(const struct weir_slow *job)
{
	int64_t last_ns = INT64_MAX, from_ns = end_of(&job->span[0]) - job->span[0].await_ns;

	CU_ASSERT_EQUAL(job->n_children, PARTS);
	CU_ASSERT_EQUAL_FATAL(job->n_child_spans, 2 * WEIR_SLOW_CHILDREN);
	for (int i = 0; i < job->n_child_spans; i += 2) {
		const struct weir_span *mid = &job->child_span[i], *end = mid + 1;
		CU_ASSERT_STRING_EQUAL(mid->stage, "mid");
		CU_ASSERT_STRING_EQUAL(end->stage, "end");
		CU_ASSERT_EQUAL(mid->child, end->child);
		CU_ASSERT(mid->child >= 0 && mid->child < PARTS);
		CU_ASSERT(end->service_ns >= PART_NS - 2000);
		CU_ASSERT_EQUAL(end->await_ns, 0);
		CU_ASSERT(end->at_ns >= from_ns - 2000);
		CU_ASSERT(end_of(end) <= job->span[1].at_ns + 2000);
		CU_ASSERT(end_of(end) <= last_ns);
		last_ns = end_of(end);
	}
}

/* A slow job shows how long it waited for its parts, and what they did; the parts are not among the
 * slowest themselves. */
static void test_waterfall(void)
{
	struct weir_slow found[WEIR_SLOWEST_MAX];

	begin(PARTS, 1);
	work_ns = PART_NS;
	struct weir_graph *g = fixture_start(three_stages("20000"));
	rig_offer_jobs(g, 1);
	FIXTURE_AWAIT(atomic_load(&jobs_ended) == 1);
	CU_ASSERT_EQUAL_FATAL(weir_graph_slowest(g, -1, found, WEIR_SLOWEST_MAX), 1);
	const struct weir_slow *job = &found[0];
	CU_ASSERT_STRING_EQUAL(job->what, "job");
	CU_ASSERT_EQUAL(job->depth, 0);
	CU_ASSERT_EQUAL_FATAL(job->n_spans, 2); /* handled, and continued */
	CU_ASSERT_STRING_EQUAL(job->span[0].stage, "split");
	CU_ASSERT_STRING_EQUAL(job->span[1].stage, "split");
	CU_ASSERT(job->span[0].await_ns >= PART_NS - 2000);
	CU_ASSERT_EQUAL(job->span[1].await_ns, 0);
	CU_ASSERT_EQUAL(end_of(&job->span[0]), job->span[1].at_ns);
	check_children(job);
	finish_graph(g, 0);
}

/* The parts belong to the trace of their job, below the span of the stage that made them, and are
 * collected with it. */
static void test_trace(void)
{
	struct weir_slow found[PARTS + 2];
	const struct weir_collect all = {.sample = 1};
	int n = 0, jobs_found = 0;

	begin(PARTS, 1);
	struct weir_graph *g = fixture_start(three_stages("20000"));
	CU_ASSERT_EQUAL(weir_graph_collect(g, &all), 0);
	rig_offer_jobs(g, 1);
	FIXTURE_AWAIT((n += weir_graph_collected(g, found + n, PARTS + 2 - n)) == PARTS + 1);
	const struct weir_slow *job = &found[n - 1]; /* the parent ends last */
	CU_ASSERT_STRING_EQUAL(job->what, "job");
	CU_ASSERT_EQUAL(job->trace.parent, 0);
	for (int i = 0; i < n; i++) {
		jobs_found += found[i].depth == 0;
		CU_ASSERT_EQUAL(found[i].trace.id[0], job->trace.id[0]);
		CU_ASSERT_EQUAL(found[i].trace.id[1], job->trace.id[1]);
		if (found[i].depth == 0)
			continue;
		CU_ASSERT_EQUAL(found[i].depth, 1);
		CU_ASSERT_STRING_EQUAL(found[i].what, "part");
		CU_ASSERT_EQUAL(found[i].trace.parent, job->span[0].id);
		CU_ASSERT_NOT_EQUAL(found[i].trace.span, 0);
		CU_ASSERT_NOT_EQUAL(found[i].trace.span, job->trace.span);
		CU_ASSERT_EQUAL(found[i].n_spans, 2);
	}
	CU_ASSERT_EQUAL(jobs_found, 1);
	weir_graph_collect_end(g);
	finish_graph(g, 0);
}

/* ---- children: N ---- */

/* The number of parts that jobs get when each wants `PARTS` and more are refused. */
static int made_of_a_job(struct weir_graph *g)
{
	struct weir_stage_view before = stage_view(g, "mid");
	int was = atomic_load(&jobs_ended);

	rig_offer_jobs(g, 1);
	FIXTURE_AWAIT(atomic_load(&jobs_ended) == was + 1);
	struct weir_stage_view after = stage_view(g, "mid");
	return (int)(after.class_view[0].offered - before.class_view[0].offered);
}

static void test_knob(void)
{
	struct weir_spec *spec = three_stages("20000");
	struct weir_change undone;
	char why[200], text[32];

	begin(PARTS, 1);
	fixture_set(&spec->stages[2], "children", "3");
	struct weir_graph *g = fixture_start(spec);
	CU_ASSERT_EQUAL(made_of_a_job(g), 3);
	CU_ASSERT_EQUAL(stage_view(g, "split").children_max, 3);
	CU_ASSERT_EQUAL(weir_graph_set(g, "split", "children", "4", why, sizeof(why)), 0);
	CU_ASSERT_EQUAL(made_of_a_job(g), 4);
	CU_ASSERT_EQUAL(weir_graph_undo(g, &undone, why, sizeof(why)), 0);
	CU_ASSERT_STRING_EQUAL(undone.target, "split.children");
	CU_ASSERT_EQUAL(weir_graph_get(g, "split", "children", text, sizeof(text)), 0);
	CU_ASSERT_STRING_EQUAL(text, "3");
	CU_ASSERT_EQUAL(made_of_a_job(g), 3);
	CU_ASSERT_EQUAL(weir_graph_set(g, "split", "children", "0", why, sizeof(why)), WEIR_EINVAL);
	CU_ASSERT_EQUAL(
	    weir_graph_set(g, "split", "children", "65537", why, sizeof(why)), WEIR_EINVAL);
	CU_ASSERT_EQUAL(weir_graph_set(g, "split", "children", "65536", why, sizeof(why)), 0);
	CU_ASSERT_EQUAL(weir_graph_set(g, "end", "children", "5", why, sizeof(why)), WEIR_EINVAL);
	CU_ASSERT_STRING_EQUAL(
	    why, "stage 'end' has no outlet, so none of its events has children");
	finish_graph(g, 0);
}

CUNIT_MAIN("books of operations", {"register", test_register}, {"laws", test_laws},
    {"refused", test_refused}, {"orphans", test_orphans}, {"awaiting", test_awaiting},
    {"waterfall", test_waterfall}, {"trace", test_trace}, {"knob", test_knob})
