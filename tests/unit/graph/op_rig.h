/* SPDX-License-Identifier: MIT */
/* Shared by the tests of operations (weir/op.h): stages whose callbacks the test sets, and a graph
 * with them. */
#ifndef WEIR_TESTS_UNIT_GRAPH_OP_RIG_H
#define WEIR_TESTS_UNIT_GRAPH_OP_RIG_H

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixture/graph/probes.h"

#include "base/clock.h"
#include "graph/graph.h"

#define KID 0 /* outlets of the stages `par` and `par2` */
#define OUT 1

/* Called for each event. An event that is left is finished as WEIR_OK. */
typedef void rig_each(struct weir_stage *st, struct weir_event **ev);

static rig_each *on_par, *on_par2, *on_kid, *on_expired, *on_refused;
static void (*on_stop)(struct weir_stage *st);
static atomic_int n_par, n_kid;

static inline void rig_call(
    rig_each *each, struct weir_stage *st, struct weir_event **ev, int n, int status)
{
	for (int i = 0; i < n; i++) {
		if (each)
			each(st, &ev[i]);
		if (ev[i])
			weir_event_finish(&ev[i], status);
	}
}

static inline void par_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	atomic_fetch_add(&n_par, n);
	rig_call(strcmp(weir_stage_name(st), "par") == 0 ? on_par : on_par2, st, ev, n, WEIR_OK);
}

static inline void par_expired(struct weir_stage *st, struct weir_event **ev, int n)
{
	rig_call(on_expired, st, ev, n, WEIR_EDEADLINE);
}

static inline void par_refused(
    struct weir_stage *st, int outlet, struct weir_event **ev, int n, int reason)
{
	(void)outlet;
	rig_call(on_refused, st, ev, n, reason);
}

static inline void par_stop(struct weir_stage *st, int64_t grace_ns)
{
	(void)grace_ns;
	if (on_stop)
		on_stop(st);
}

static inline void kid_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	atomic_fetch_add(&n_kid, n);
	rig_call(on_kid, st, ev, n, WEIR_OK);
}

static const struct weir_outlet par_outlets[] = {
    {"kid", &probe_type, true, "children"}, {"out", &probe_type, true, "parents"}, {.name = NULL}};
static struct weir_stage_ops par_ops = {.abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_HOLDS,
    .name = "t.par",
    .summary = "has children",
    .accepts = &probe_type,
    .outlets = par_outlets,
    .children = 1 << KID,
    .handle = par_handle,
    .expired = par_expired,
    .refused = par_refused,
    .stop = par_stop};
static struct weir_stage_ops loop_ops, flat_ops,
    kid_ops = {.abi = WEIR_STAGE_ABI,
	.name = "t.kid",
	.summary = "is sent children",
	.accepts = &probe_type,
	.handle = kid_handle};

static struct weir_graph *g;
static struct weir_stage *par;

static inline void rig_register(void)
{
	loop_ops = par_ops;
	loop_ops.name = "t.loop";
	loop_ops.flags |= WEIR_STAGE_LOOP;
	flat_ops = par_ops;
	flat_ops.name = "t.flat";
	flat_ops.flags = 0;
	flat_ops.expired = NULL;
	fixture_register(&flat_ops);
	fixture_register(&par_ops);
	fixture_register(&loop_ops);
	fixture_register(&kid_ops);
	fixture_register(&end_ops);
}

static inline void rig_link(struct weir_stage_spec *s, const char *outlet, const char *to)
{
	if (weir_spec_link(s, outlet, to, false) != 0)
		abort();
}

/* `par`, of type `use`, sends children to `kid`, and its own events to `par2`. stages[0] is kid,
 * [1] par2, [2] par. The callbacks are reset. */
static inline struct weir_spec *rig_spec(const char *use)
{
	struct weir_spec *spec = weir_spec_new("op");
	struct weir_stage_spec *s = fixture_open_stage(spec, "kid", "t.kid", NULL);

	for (int i = 0; i < 2; i++) {
		s = fixture_stage(spec, i ? "par" : "par2", i ? use : "t.par", NULL);
		weir_spec_text(&s->admission.policy, "none");
		rig_link(s, "kid", "kid");
		if (i && strcmp(use, "t.flat") == 0)
			continue;
		fixture_set(s, "width.policy", "static");
		fixture_set(s, "width.max", "1000");
		fixture_set(s, "slo", "1h");
	}
	rig_link(s, "out", "par2");
	on_par = on_par2 = on_kid = on_expired = on_refused = NULL;
	on_stop = NULL;
	atomic_store(&n_par, 0);
	atomic_store(&n_kid, 0);
	return spec;
}

static inline void rig_start(struct weir_spec *spec)
{
	prepare(100);
	g = fixture_start(spec);
	par = weir_graph_stage(g, "par");
	CU_ASSERT_EQUAL_FATAL(weir_thread_attach(g, "test"), 0);
}

/* Offer probe `i`, which is initialised unless it is a member of a family. */
static inline void rig_offer(int i)
{
	struct weir_event *ev = &probes[i].ev;

	if (ev->state != WEIR_EVENT_NEW)
		weir_event_init(ev, &probe_type, clock_now_ns());
	probes[i].seq = (uint64_t)i;
	CU_ASSERT_EQUAL(weir_offer(par, &ev, 1, NULL), 1);
}

static inline struct probe *rig_child(struct weir_stage *st, struct weir_event *ev, int outlet)
{
	struct weir_event *c = weir_event_new(st, &probe_type);
	struct probe *p = (struct probe *)c;

	if (p)
		p->seq = 1000;
	weir_child(st, ev, outlet, &c);
	return p;
}

/* Whether the process aborts if `each` is called; in a copy of the process, which has this thread
 * only. */
static inline bool rig_aborts(rig_each *each, struct weir_stage *st, struct weir_event **ev)
{
	const struct rlimit none = {0, 0};
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		setrlimit(RLIMIT_CORE, &none);
		close(STDERR_FILENO);
		each(st, ev);
		_exit(0);
	}
	return waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) &&
	       WTERMSIG(status) == SIGABRT;
}

/* The books of stage `name` at rest. */
static inline void rig_check_books(const char *name)
{
	struct weir_stage_view v = stage_view(g, name);

	CU_ASSERT_EQUAL(v.spawned, v.joined + v.orphaned + v.cancelled);
	CU_ASSERT_EQUAL(v.awaiting, 0);
	CU_ASSERT_EQUAL(v.in_flight, 0);
	CU_ASSERT_EQUAL(v.law_residual, 0);
	/* queue_kept never returns less than 0 */
	CU_ASSERT_EQUAL(atomic_load(&weir_graph_stage(g, name)->sink.queue.keep.count[0]), 0);
}

/* Wait until `n` events have ended, check the books, and end the graph. */
static inline void rig_end(uint64_t n)
{
	FIXTURE_AWAIT(fixture_ended() == n);
	FIXTURE_AWAIT(queue_kept_all(&par->sink.queue) == 0);
	FIXTURE_AWAIT(queue_kept_all(&weir_graph_stage(g, "par2")->sink.queue) == 0);
	rig_check_books("par");
	rig_check_books("par2");
	rig_check_books("kid");
	weir_thread_detach();
	finish_graph(g, 0);
	CU_ASSERT_EQUAL(fixture_ended(), n);
}

#endif
