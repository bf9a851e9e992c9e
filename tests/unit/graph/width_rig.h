/* SPDX-License-Identifier: MIT */
/* A stage `keep` that holds the events it gets, until the test ends them. */
#ifndef WEIR_TESTS_UNIT_GRAPH_WIDTH_RIG_H
#define WEIR_TESTS_UNIT_GRAPH_WIDTH_RIG_H

#include "fixture/graph/probes.h"

#include "base/clock.h"
#include "graph/graph.h"

#define M     2000
#define WIDTH 8

static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;
static struct weir_event *kept;
static int n_kept, most_kept;
static atomic_bool ends_odd; /* events with an odd key are not held */
static atomic_int exits_at;  /* the handler exits at the event with this key */
static bool inlined;         /* the stage runs in the threads of its senders */
static pthread_t held_by;    /* thread of the last hold; under kept_lock */

static void keep(struct weir_stage *st, struct weir_event **ev)
{
	struct weir_event *e = *ev;

	weir_hold(st, ev);
	pthread_mutex_lock(&kept_lock);
	e->next = kept;
	kept = e;
	held_by = pthread_self();
	if (++n_kept > most_kept)
		most_kept = n_kept;
	pthread_mutex_unlock(&kept_lock);
}

static struct weir_event *take_kept(void)
{
	pthread_mutex_lock(&kept_lock);
	struct weir_event *ev = kept;
	if (ev) {
		kept = ev->next;
		n_kept--;
	}
	pthread_mutex_unlock(&kept_lock);
	return ev;
}

static int count_kept(void)
{
	pthread_mutex_lock(&kept_lock);
	int n = n_kept;
	pthread_mutex_unlock(&kept_lock);
	return n;
}

static void keep_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		if ((int)ev[i]->key == atomic_load(&exits_at))
			pthread_exit(NULL);
		if (ev[i]->key % 2 && atomic_load(&ends_odd))
			weir_event_finish(&ev[i], WEIR_OK);
		else
			keep(st, &ev[i]);
	}
}

static const struct weir_stage_ops keep_ops = {.abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_HOLDS,
    .name = "t.keep",
    .summary = "holds what comes",
    .accepts = &probe_type,
    .outlets = pass_outlets,
    .handle = keep_handle};

static void wake_nobody(struct thread_link *link)
{
	(void)link;
}

static struct thread_link fake_link = {.wake = wake_nobody};

static struct weir_graph *g;
static struct weir_stage *stage;
static int offered;

static struct weir_stage_spec *spec_of(struct weir_spec *spec)
{
	struct weir_stage_spec *s = fixture_stage(spec, "keep", "t.keep", NULL);

	fixture_set(s, "queue.limit", "1000");
	fixture_set(s, "width.max", "8");
	fixture_set(s, "width.policy", "static");
	/* Nothing is refused, even if the machine stalls for a second. */
	fixture_set(s, "slo", "1h");
	fixture_set(s, "threads.max", "3");
	fixture_set(s, "threads.min", "3");
	s->inlined = inlined;
	return s;
}

static void start(struct weir_spec *spec)
{
	prepare(M);
	offered = most_kept = 0;
	atomic_store(&exits_at, -1);
	g = fixture_start(spec);
	stage = weir_graph_stage(g, "keep");
	weir_thread_attach(g, "test");
}

static void offer(int n)
{
	for (int i = 0; i < n; i++) {
		struct weir_event *ev = &probes[offered].ev;
		weir_event_init(ev, &probe_type, 1);
		ev->key = (uint64_t)offered++;
		CU_ASSERT_EQUAL(weir_offer(stage, &ev, 1, NULL), 1);
	}
}

/* Whether `held` events are held and `queued` wait, and none is in a handler. */
static bool is_settled(int held, int queued)
{
	struct queue *q = &stage->sink.queue;

	return (int)queue_length(q) == queued && count_kept() == held && queue_kept_all(q) == held;
}

static void end_one(void)
{
	FIXTURE_AWAIT(count_kept() > 0);
	struct weir_event *ev = take_kept();
	weir_event_finish(&ev, WEIR_OK);
	if (thread_self()->link)
		weir_thread_flush();
}

/* End all events, those that wait included. */
static void end_all(void)
{
	while (fixture_ended() < (uint64_t)offered)
		end_one();
	FIXTURE_AWAIT(is_settled(0, 0));
	check_each_once(offered);
	weir_thread_detach();
	finish_graph(g, 0);
}

static void check_bound(int width)
{
	offer(300);
	FIXTURE_AWAIT(is_settled(width, 300 - width));
	struct weir_stage_view v = stage_view(g, "keep");
	CU_ASSERT_EQUAL(v.width, width);
	CU_ASSERT_EQUAL(v.in_work, width);
	CU_ASSERT_EQUAL(v.held, (uint64_t)width);
	for (int i = 0; i < 100; i++)
		end_one();
	FIXTURE_AWAIT(is_settled(width, 200 - width));
	struct weir_event *ev = take_kept(); /* events that go on make room, too */
	weir_emit(stage, 0, &ev);
	weir_thread_flush();
	FIXTURE_AWAIT(is_settled(width, 199 - width));
	CU_ASSERT_EQUAL(most_kept, width);
}

#endif
