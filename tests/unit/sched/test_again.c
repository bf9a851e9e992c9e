/* SPDX-License-Identifier: MIT */
/* A handler thread runs requeued events as its next batch if nothing else is to come first
 * (sched/again.c): then they have waited for no time. */
#include "fixture/graph/probes.h"

#include <pthread.h>

#include "graph/graph.h"

#define MOST 100

static struct weir_graph *g;
static struct weir_stage *go;
static atomic_int entered, handled;
static uint64_t order[MOST];
static bool waits, dies, expires;
static bool narrows;               /* all events are requeued until `expired`, with a width of 2 */
static struct weir_family *family; /* its end is to come when two events are requeued, or NULL */
static atomic_bool expired;

/* Requeues each event as often as its seq says, and with `expires` until the other has expired. With
 * `waits`, the first call waits for the gate; with `dies`, it emits the events but the first instead, to a
 * stage that ends the thread. */
static void go_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	atomic_fetch_add(&entered, 1);
	if (waits)
		FIXTURE_AWAIT(atomic_load(&probe_gate));
	for (int i = 0; i < n; i++) {
		struct probe *p = (struct probe *)ev[i];
		int at = atomic_fetch_add(&handled, 1);
		if (at < MOST)
			order[at] = ev[i]->key;
		if (dies && ev[i]->key > 0)
			weir_emit(st, 0, &ev[i]);
		else if (expires || narrows ? !atomic_load(&expired) : p->seq-- > 0)
			weir_requeue(st, &ev[i]);
		else
			weir_event_finish(&ev[i], WEIR_OK);
	}
	if (family && n == 2)
		weir_family_end(family);
}

static void die_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	(void)ev;
	(void)n;
	pthread_exit(NULL);
}

static void keep_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++)
		weir_hold_until(st, &ev[i], weir_now_ns(st) + 1000000);
}

static void keep_expired(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	atomic_store(&expired, true);
	weir_event_finish_run(ev, n, WEIR_OK);
}

static const struct weir_stage_ops keep_ops = {.abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_HOLDS,
    .name = "t.keep",
    .summary = "holds events",
    .accepts = &probe_type,
    .handle = keep_handle,
    .expired = keep_expired};
static const struct weir_stage_ops go_ops = {.abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_BLOCKS,
    .name = "t.go",
    .summary = "requeues events",
    .accepts = &probe_type,
    .outlets = pass_outlets,
    .handle = go_handle};
static const struct weir_stage_ops wide_ops = {.abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_BLOCKS | WEIR_STAGE_HOLDS,
    .name = "t.wide",
    .summary = "requeues events, and has a width",
    .accepts = &probe_type,
    .outlets = pass_outlets,
    .handle = go_handle};
static const struct weir_stage_ops die_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.die",
    .summary = "ends the thread",
    .accepts = &probe_type,
    .handle = die_handle};

static void offer_to(struct weir_stage *to, int i, int again)
{
	struct weir_event *ev = &probes[i].ev;

	weir_event_init(ev, &probe_type, 1);
	ev->key = (uint64_t)i;
	probes[i].seq = again;
	CU_ASSERT_EQUAL_FATAL(weir_offer(to, &ev, 1, NULL), 1);
}

static void offer(int i, int again)
{
	offer_to(go, i, again);
}

static void start(bool with_gate, const char *mode)
{
	struct weir_spec *spec = weir_spec_new("again");

	weir_spec_add_class(spec, "high");
	weir_spec_add_class(spec, "low");
	fixture_open_stage(spec, "die", "t.die", NULL)->inlined = true;
	struct weir_stage_spec *s =
	    fixture_open_stage(spec, "go", narrows ? "t.wide" : "t.go", "die");
	if (expires) {
		struct weir_group_spec *core = weir_spec_add_group(spec, "core");
		core->threads.min = core->threads.max = 1;
		weir_spec_text(&s->group, "core");
		s = fixture_core_stage(spec, "keep", "t.keep", NULL);
		fixture_set(s, "width.policy", "static");
		fixture_set(s, "width.max", "10");
		fixture_set(s, "slo", "1h");
	} else {
		fixture_set(s, "threads.max", narrows ? "2" : "1");
	}
	if (narrows) {
		fixture_set(s, "threads.min", "2");
		fixture_set(s, "width.policy", "static");
		fixture_set(s, "width.max", "2");
	}
	if (mode)
		fixture_set(s, "mode", mode);
	prepare(10);
	atomic_store(&probe_gate, 0);
	atomic_store(&entered, 0);
	atomic_store(&handled, 0);
	waits = with_gate;
	dies = false;
	g = fixture_start(spec);
	go = weir_graph_stage(g, "go");
	weir_thread_attach(g, "test");
}

static void end(int n)
{
	FIXTURE_AWAIT(fixture_ended() == (uint64_t)n);
	check_each_once(n);
	weir_thread_detach();
	finish_graph(g, 0);
}

static struct book sums(void)
{
	struct book b = {0};

	graph_sum(g, go->id, &b, NULL, NULL, NULL, NULL);
	return b;
}

/* Batches that have been recorded. */
static uint64_t batches(void)
{
	struct book b = sums();

	return book_read(&b.batches);
}

/* Nothing else waits: the event comes back at the time at which its last batch ended. */
static void test_at_once(void)
{
	fixture_register(&go_ops);
	fixture_register(&die_ops);
	start(false, NULL);
	offer(0, 5);
	FIXTURE_AWAIT(fixture_ended() == 1);
	FIXTURE_AWAIT(batches() == 6);
	struct book b = sums();
	CU_ASSERT_EQUAL(book_read(&b.put_back), 5);
	CU_ASSERT_EQUAL(book_read(&b.restarted), 5);
	CU_ASSERT_EQUAL(book_read(&b.again_ns), 0);
	end(1);
}

/* An event that has arrived meanwhile is first. */
static void test_behind_others(void)
{
	start(true, NULL);
	offer(0, 1);
	FIXTURE_AWAIT(atomic_load(&entered) == 1);
	offer(1, 0);
	atomic_store(&probe_gate, 1);
	FIXTURE_AWAIT(fixture_ended() == 2);
	CU_ASSERT_EQUAL(atomic_load(&handled), 3);
	CU_ASSERT_EQUAL(order[1], 1);
	CU_ASSERT_EQUAL(order[2], 0);
	end(2);
}

/* A stage that is paused meanwhile keeps the event in its queue. */
static void test_paused(void)
{
	char why[100];

	start(true, NULL);
	offer(0, 1);
	FIXTURE_AWAIT(atomic_load(&entered) == 1);
	CU_ASSERT_EQUAL(weir_graph_steer(g, "go", WEIR_STEER_PAUSE, why, sizeof(why)), 0);
	atomic_store(&probe_gate, 1);
	FIXTURE_AWAIT(queue_length(&go->sink.queue) == 1);
	CU_ASSERT_EQUAL(atomic_load(&handled), 1);
	CU_ASSERT_EQUAL(weir_graph_steer(g, "go", WEIR_STEER_RUN, why, sizeof(why)), 0);
	end(1);
}

/* The queue of an exclusive stage orders its batches. */
static void test_exclusive(void)
{
	start(false, "exclusive");
	offer(0, 5);
	FIXTURE_AWAIT(fixture_ended() == 1);
	struct book b = sums();
	CU_ASSERT(book_read(&b.again_ns) > 0);
	end(1);
}

/* If the thread ends while it passes on what the batch has emitted, another thread runs the event. */
static void test_death(void)
{
	char why[100];

	start(false, NULL);
	offer(2, 0);
	FIXTURE_AWAIT(batches() == 1); /* now more than one event may be in a batch */
	dies = true;
	CU_ASSERT_EQUAL(weir_graph_steer(g, "go", WEIR_STEER_PAUSE, why, sizeof(why)), 0);
	offer(1, 0);
	offer(0, 1);
	CU_ASSERT_EQUAL(weir_graph_steer(g, "go", WEIR_STEER_RUN, why, sizeof(why)), 0);
	end(3);
	CU_ASSERT_EQUAL(atomic_load(&handled), 4);
}

/* The thread minds the tickets of another stage, though it always has an event to run again. */
static void test_expiry(void)
{
	fixture_register(&keep_ops);
	expires = true;
	start(false, NULL);
	offer_to(weir_graph_stage(g, "keep"), 1, 0);
	offer(0, 0);
	end(2);
	CU_ASSERT(atomic_load(&expired));
	expires = false;
}

/* Of two requeued events of different classes, one is cancelled and the other runs at once. Both count as
 * held until then. */
static void test_cancelled(void)
{
	struct weir_event *ev = &probes[0].ev;
	char why[100];

	start(false, NULL);
	struct queue *q = &go->sink.queue;
	offer(2, 0);
	FIXTURE_AWAIT(batches() == 1); /* now more than one event may be in a batch */
	queue_hold(q, 0, 1);           /* from now on, the queue counts */
	queue_hold(q, 0, -1);
	family = weir_family_new(NULL);
	CU_ASSERT_PTR_NOT_NULL_FATAL(family);
	CU_ASSERT_EQUAL(weir_graph_steer(g, "go", WEIR_STEER_PAUSE, why, sizeof(why)), 0);
	weir_event_init(ev, &probe_type, 1);
	CU_ASSERT_EQUAL_FATAL(weir_family_join(family, ev), WEIR_OK);
	probes[0].seq = 1;
	CU_ASSERT_EQUAL_FATAL(weir_offer(go, &ev, 1, NULL), 1);
	ev = &probes[1].ev;
	weir_event_init(ev, &probe_type, 1);
	ev->class_id = 1;
	probes[1].seq = 1;
	CU_ASSERT_EQUAL_FATAL(weir_offer(go, &ev, 1, NULL), 1);
	CU_ASSERT_EQUAL(weir_graph_steer(g, "go", WEIR_STEER_RUN, why, sizeof(why)), 0);
	FIXTURE_AWAIT(fixture_ended() == 3);
	CU_ASSERT_EQUAL(probes[0].status, WEIR_ECANCELLED);
	CU_ASSERT_EQUAL(probes[1].status, WEIR_OK);
	FIXTURE_AWAIT(atomic_load(&go->sink.running) == 0);
	for (int c = 0; c < q->n_classes; c++)
		CU_ASSERT_EQUAL(queue_held(q, c), 0);
	end(3);
	weir_family_put(family);
	family = NULL;
}

/* If the width becomes narrower, one of two events waits in the queue. */
static void test_narrower(void)
{
	fixture_register(&wide_ops);
	narrows = true;
	atomic_store(&expired, false);
	start(true, NULL);
	offer(0, 0);
	offer(1, 0);
	FIXTURE_AWAIT(atomic_load(&entered) == 2); /* in two threads */
	atomic_store(&probe_gate, 1);
	FIXTURE_AWAIT(atomic_load(&handled) > 2);
	queue_set_width(&go->sink.queue, 1);
	FIXTURE_AWAIT(queue_length(&go->sink.queue) == 1);
	atomic_store(&expired, true);
	end(2);
	narrows = false;
}

CUNIT_MAIN("again", {"at_once", test_at_once}, {"behind_others", test_behind_others},
    {"paused", test_paused}, {"exclusive", test_exclusive}, {"death", test_death},
    {"expiry", test_expiry}, {"cancelled", test_cancelled}, {"narrower", test_narrower})
