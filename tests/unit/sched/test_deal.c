/* SPDX-License-Identifier: MIT */
/* What a core sends to its cells and what it deals to idle cores, seen from a handler on the only core of a
 * group. An idle core is pretended, so that nobody takes what is dealt before the handler returns. */
#include "fixture/graph/probes.h"

#include "admission/admission.h"
#include "event/local.h"
#include "graph/graph.h"
#include "sched/cores.h"
#include "sched/serial.h"

#define RUN 200
#define NEW 3 /* events that the handler makes, if it does */

#define US 1000

static void (*act)(struct weir_stage *st, struct weir_event **ev); /* of one batch of RUN events */
static int n_new; /* events that the handler has made */
static int left_calls;
static uint32_t left_events;

static const struct weir_outlet two_outlets[] = {
    {"out", WEIR_ANY_EVENT, true, "to b"}, {"side", WEIR_ANY_EVENT, true, "to c"}, {.name = NULL}};

static void act_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	CU_ASSERT_EQUAL_FATAL(n, RUN);
	act(st, ev);
}

static const struct weir_stage_ops act_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.act",
    .summary = "does what the test says",
    .accepts = &probe_type,
    .outlets = two_outlets,
    .handle = act_handle};

static struct weir_graph *graph;

static struct sink *sink_of(const char *name)
{
	return &weir_graph_stage(graph, name)->sink;
}

static struct core *core_of(void)
{
	const struct pool *pool = sink_of("a")->pool;

	return &pool->cores->core[0];
}

static uint32_t in_cell(const char *name)
{
	return cell_length(&core_of()->cell[sink_of(name)->place]);
}

static uint32_t in_queue(const char *name)
{
	return queue_length(&sink_of(name)->queue);
}

static uint64_t dealt(const char *name)
{
	return book_read(&core_of()->book[sink_of(name)->place].dealt);
}

static void takes(const char *name, int64_t service_ns)
{
	thread_self()->local[sink_of(name)->id]->service_ns = service_ns;
}

static void others_idle(int n)
{
	struct pool *pool = sink_of("a")->pool;

	atomic_fetch_add(&pool->n_spinning, n);
}

/* Send `n` events at once, and those of `ev` before. Returns the next event. */
static struct weir_event **send(struct weir_stage *st, int outlet, struct weir_event **ev, int n)
{
	weir_emit_run(st, outlet, ev, n);
	weir_thread_flush();
	return ev + n;
}

static void finish_rest(struct weir_event **ev, struct weir_event **end)
{
	weir_event_finish_run(ev, (int)(end - ev), WEIR_OK);
}

/* Empty the cells and the queues as if the core had handled all: they go to the queue. */
static void empty(void)
{
	core_give(core_of(), sink_of("b")->place, UINT32_MAX);
	core_give(core_of(), sink_of("c")->place, UINT32_MAX);
	CU_ASSERT_EQUAL(core_of()->n, 0);
	CU_ASSERT_EQUAL(core_of()->filled, 0);
}

/* ---- what is sent ---- */

static void send_few(struct weir_stage *st, struct weir_event **ev)
{
	struct weir_event **end = ev + RUN;

	takes("b", 100);
	takes("c", 100);
	ev = send(st, 0, ev, 20); /* nobody is idle */
	CU_ASSERT_EQUAL(in_cell("b"), 20);
	CU_ASSERT_EQUAL(probes[19].ev.queued_ns, thread_self()->now_ns);
	CU_ASSERT_EQUAL(in_queue("b"), 0);
	empty();
	CU_ASSERT_EQUAL(in_queue("b"), 20);
	others_idle(1);
	ev = send(st, 0, ev, 3); /* few events of one stage stay */
	CU_ASSERT_EQUAL(in_cell("b"), 3);
	CU_ASSERT_EQUAL(dealt("b"), 0);
	ev = send(st, 0, ev, 1); /* the fourth does not */
	CU_ASSERT_EQUAL(in_cell("b"), 3);
	CU_ASSERT_EQUAL(in_queue("b"), 21);
	CU_ASSERT_EQUAL(dealt("b"), 1);
	ev = send(st, 1, ev, 1); /* nor does the first of another stage */
	CU_ASSERT_EQUAL(in_cell("c"), 0);
	CU_ASSERT_EQUAL(dealt("c"), 1);
	empty();
	ev = send(st, 0, ev, 1);
	CU_ASSERT_EQUAL(in_cell("b"), 1);
	ev = send(st, 1, ev, 1); /* two events of two stages */
	CU_ASSERT_EQUAL(in_cell("c"), 0);
	CU_ASSERT_EQUAL(dealt("c"), 2);
	empty();
	core_of()->plan.balance = false;
	ev = send(st, 1, ev, 9);
	CU_ASSERT_EQUAL(in_cell("c"), 9);
	CU_ASSERT_EQUAL(dealt("c"), 2);
	core_of()->plan.balance = true;
	others_idle(-1);
	finish_rest(ev, end);
}

/* Events of two classes, and events that the stage has made, in one run. */
static void send_mixed(struct weir_stage *st, struct weir_event **ev)
{
	struct weir_event **end = ev + RUN, *run[2 + NEW];
	const struct cell *cell = &core_of()->cell[sink_of("b")->place];
	struct class_book *book = thread_self()->local[st->id]->book.class_book;
	const struct outbox *out = &thread_self()->local[st->id]->outbox[0];
	uint64_t departed = book_read(&book[0].departed), completed = book_read(&book[0].completed);

	takes("b", 100);
	ev[1]->class_id = ev[2]->class_id = 1;
	ev = send(st, 0, ev, 4);
	CU_ASSERT_EQUAL(cell_class(cell, 0), 2);
	CU_ASSERT_EQUAL(cell_class(cell, 1), 2);
	CU_ASSERT_EQUAL(book_read(&book[0].completed), completed + 2);
	for (int i = 0; i < NEW; i++) {
		run[1 + i] = &probes[RUN + i].ev;
		weir_event_init(run[1 + i], &probe_type, 1);
	}
	run[0] = ev[0];
	run[1 + NEW] = ev[1];
	ev[0] = ev[1] = NULL;
	n_new = NEW;
	send(st, 0, run, 2 + NEW);
	CU_ASSERT_EQUAL(cell_class(cell, 0), 4 + NEW);
	CU_ASSERT_EQUAL(book_read(&book[0].completed), completed + 4);
	CU_ASSERT_EQUAL(book_read(&book[0].departed), departed + NEW);
	CU_ASSERT_EQUAL(book_read(&out->events), 6 + NEW);
	CU_ASSERT_EQUAL(book_read(&out->made), NEW);
	CU_ASSERT_EQUAL(book_read(&out->tried[0]), 4 + NEW);
	CU_ASSERT_EQUAL(book_read(&out->tried[1]), 2);
	finish_rest(ev + 2, end);
}

/* What a source sends is dealt if it is work for 5 us. */
static void send_as_source(struct weir_stage *st, struct weir_event **ev)
{
	const struct weir_stage_ops *was = st->ops;
	struct weir_stage_ops source = *was;
	struct weir_event **end = ev + RUN;

	source.flags |= WEIR_STAGE_SOURCE;
	st->ops = &source;
	others_idle(1);
	takes("b", 1249);
	ev = send(st, 0, ev, 4);
	CU_ASSERT_EQUAL(in_cell("b"), 4);
	empty();
	takes("b", 1250);
	ev = send(st, 0, ev, 4);
	CU_ASSERT_EQUAL(in_cell("b"), 0);
	CU_ASSERT_EQUAL(dealt("b"), 4);
	others_idle(-1);
	st->ops = was;
	finish_rest(ev, end);
}

static void send_slow(struct weir_stage *st, struct weir_event **ev)
{
	struct weir_event **end = ev + RUN;
	static const struct {
		int64_t service_ns;
		bool queued;
	} step[] = {{100, false}, {20 * US, false}, {20 * US + 1, true}, {10 * US, true},
	    {10 * US - 1, false}, {15 * US, false}, {-1, true}, {15 * US, true}, {0, false}};
	uint32_t queued = in_queue("b");

	for (size_t i = 0; i < sizeof(step) / sizeof(step[0]); i++) {
		takes("b", step[i].service_ns);
		ev = send(st, 0, ev, 1);
		queued += step[i].queued;
		CU_ASSERT_EQUAL(in_queue("b"), queued);
	}
	/* a queue that is full lets slow and dealt events stay */
	uint32_t own = atomic_exchange(&sink_of("b")->queue.own, queued + 3), cell = in_cell("b");
	takes("b", 50 * US);
	ev = send(st, 0, ev, 4);
	CU_ASSERT_EQUAL(in_cell("b"), cell + 4);
	ev = send(st, 0, ev, 3);
	CU_ASSERT_EQUAL(in_queue("b"), queued + 3);
	atomic_store(&sink_of("b")->queue.own, own);
	finish_rest(ev, end);
}

/* What the queue must see, and what never leaves its core. */
static void send_bound(struct weir_stage *st, struct weir_event **ev)
{
	struct weir_event **end = ev + RUN;
	struct sink *b = sink_of("b");

	takes("b", 100);
	atomic_store(&b->queue.by_door, true);
	ev = send(st, 0, ev, 1);
	CU_ASSERT_EQUAL(in_queue("b"), 1);
	atomic_store(&b->queue.by_door, false);
	atomic_store(&b->queue.keeps, true);
	ev = send(st, 0, ev, 1);
	CU_ASSERT_EQUAL(in_queue("b"), 2);
	atomic_store(&b->queue.keeps, false);
	atomic_store(&b->linger_ns, 1);
	ev = send(st, 0, ev, 1);
	CU_ASSERT_EQUAL(in_queue("b"), 3);
	atomic_store(&b->linger_ns, 0);
	CU_ASSERT_EQUAL(in_cell("b"), 0);
	uint8_t local = atomic_exchange(&b->local, LOCAL_KEPT);
	others_idle(1);
	ev = send(st, 0, ev, 9);
	CU_ASSERT_EQUAL(in_cell("b"), 9);
	CU_ASSERT_EQUAL(in_queue("b"), 3);
	others_idle(-1);
	atomic_store(&b->local, local);
	finish_rest(ev, end);
}

static int n_put; /* events that came into a cell by the door */

static void note_put(struct thread *t, struct sink *s, struct weir_event **ev, int n)
{
	n_put += n;
	core_put(t, s, ev, n);
}

/* The policy of b is asked about each event, at the door, though the core could put it into the cell. */
static void send_judged(struct weir_stage *st, struct weir_event **ev)
{
	struct sink *b = sink_of("b");

	takes("b", 100);
	for (int i = 0; i < RUN; i += 2)
		ev[i]->class_id = 1;
	b->put = note_put;
	ev = send(st, 0, ev, RUN);
	b->put = core_put;
	CU_ASSERT_EQUAL(in_cell("b"), RUN);
	CU_ASSERT_EQUAL(n_put, b->policy == &admission_none ? 0 : RUN);
	CU_ASSERT_EQUAL(cell_class(&core_of()->cell[b->place], 1), RUN / 2);
	(void)ev;
}

/* An event whose time is over just now is refused at the door. */
static void send_late(struct weir_stage *st, struct weir_event **ev)
{
	int64_t now_ns = thread_self()->now_ns;

	takes("b", 100);
	for (int i = 0; i < 2; i++) {
		ev[i]->deadline_ns = now_ns + 1 - i;
		weir_emit(st, 0, &ev[i]);
		thread_touch(now_ns);
		thread_flush();
		CU_ASSERT_EQUAL(in_cell("b"), 1);
		CU_ASSERT_EQUAL(in_queue("b"), 0);
	}
	finish_rest(ev + 2, ev + RUN);
}

/* ---- what is dealt of the cells ---- */

static void deal(struct weir_stage *st, struct weir_event **ev)
{
	struct weir_event **end = ev + RUN;
	struct core *core = core_of();
	uint64_t was = dealt("b"), was_c = dealt("c");

	takes("b", 500);
	takes("c", 500);
	ev = send(st, 0, ev, 11);
	uint32_t queued = in_queue("b");
	takes("b", 454);
	core_deal(core); /* 4,994 ns of work are too little */
	CU_ASSERT_EQUAL(in_cell("b"), 11);
	takes("b", 455);
	core_deal(core);
	CU_ASSERT_EQUAL(in_cell("b"), 6);
	CU_ASSERT_EQUAL(in_queue("b"), queued + 5);
	CU_ASSERT_EQUAL(dealt("b"), was + 5);
	CU_ASSERT_EQUAL(core->n, 6);
	core_give(core, sink_of("b")->place, 3);
	CU_ASSERT_EQUAL(in_cell("b"), 3);
	takes("b", 9 * US);
	core_deal(core); /* three of one stage */
	CU_ASSERT_EQUAL(in_cell("b"), 3);
	core_give(core, sink_of("b")->place, 1);
	ev = send(st, 1, ev, 1);
	core_deal(core); /* three of two stages: all of the longer one */
	CU_ASSERT_EQUAL(in_cell("b"), 0);
	CU_ASSERT_EQUAL(in_cell("c"), 1);
	CU_ASSERT_EQUAL(core->filled, 1ULL << sink_of("c")->place);
	CU_ASSERT_EQUAL(dealt("b"), was + 7);
	CU_ASSERT_EQUAL(dealt("c"), was_c);
	finish_rest(ev, end);
}

static void deal_less(struct weir_stage *st, struct weir_event **ev)
{
	struct weir_event **end = ev + RUN;
	struct core *core = core_of();
	uint64_t bit = 1ULL << sink_of("b")->place;
	uint64_t *kept = &core->group->kept;

	takes("b", 5 * US);
	takes("c", 5 * US);
	ev = send(st, 0, ev, 10);
	ev = send(st, 1, ev, 4);
	*kept |= bit; /* as if b were replicated */
	core_deal(core);
	CU_ASSERT_EQUAL(in_cell("b"), 10);
	CU_ASSERT_EQUAL(in_cell("c"), 2);
	*kept &= ~bit;
	struct serial serial = {.stages = bit}; /* as if b were serial */
	core->group->serial = &serial;
	core_deal(core);
	core->group->serial = NULL;
	CU_ASSERT_EQUAL(in_cell("b"), 10);
	CU_ASSERT_EQUAL(in_cell("c"), 1);
	atomic_fetch_or(&core->group->halted, bit);
	core_deal(core); /* b is paused, and one of c is too few */
	CU_ASSERT_EQUAL(in_cell("b"), 10);
	CU_ASSERT_EQUAL(in_cell("c"), 1);
	atomic_fetch_and(&core->group->halted, ~bit);
	core_deal(core);
	CU_ASSERT_EQUAL(in_cell("b"), 5);
	CU_ASSERT_EQUAL(in_cell("c"), 1);
	finish_rest(ev, end);
}

/* ---- the policy is told ---- */

static void note_left(void *state, int stage, uint32_t k)
{
	(void)state, (void)stage;
	left_calls++;
	left_events += k;
}

static void tell(struct weir_stage *st, struct weir_event **ev)
{
	struct weir_event **end = ev + RUN;
	struct core *core = core_of();
	const struct next_policy *was = core->next.policy;
	struct next_policy counting = *was;

	counting.left = counting.arrived = note_left;
	core->next.policy = &counting;
	left_calls = 0;
	left_events = 0;
	takes("b", 100);
	ev = send(st, 0, ev, 90);
	CU_ASSERT_EQUAL(left_events, 90);
	left_calls = 0;
	core_give(core, sink_of("b")->place, 80);
	CU_ASSERT_EQUAL(left_calls, 1);
	CU_ASSERT_EQUAL(left_events, 170);
	CU_ASSERT_EQUAL(in_cell("b"), 10);
	core->next.policy = was;
	finish_rest(ev, end);
}

/* ---- all of them ---- */

static void stage(struct weir_spec *spec, const char *name, const char *use, const char *to)
{
	struct weir_stage_spec *s = fixture_stage(spec, name, use, to);

	weir_spec_text(&s->group, "core");
	weir_spec_text(&s->admission.policy, "none");
}

static void run_with(
    void (*what)(struct weir_stage *st, struct weir_event **ev), const char *policy)
{
	struct weir_spec *spec = weir_spec_new("deal");
	struct weir_group_spec *group = weir_spec_add_group(spec, "core");

	weir_spec_text(&group->schedule, "fifo");
	weir_spec_text(&group->cores, "1");
	stage(spec, "a", "t.act", "b");
	weir_spec_link(&spec->stages[0], "side", "c", false);
	fixture_set(&spec->stages[0], "cohort.max", "200");
	fixture_set(&spec->stages[0], "cohort.linger", "1s");
	stage(spec, "b", "t.end", NULL);
	stage(spec, "c", "t.end", NULL);
	fixture_set(&spec->stages[1], "admission.policy", policy);
	weir_spec_add_class(spec, "one");
	weir_spec_add_class(spec, "two");
	prepare(RUN + NEW);
	n_new = 0;
	act = what;
	graph = fixture_start(spec);
	weir_thread_attach(graph, "test");
	fixture_offer_all(weir_graph_stage(graph, "a"), probes, RUN, RUN);
	FIXTURE_AWAIT(fixture_ended() >= RUN && fixture_ended() == (unsigned)(RUN + n_new));
	check_each_once(RUN + n_new);
	for (int i = 0; i < RUN; i++)
		probes[i].ev.class_id = 0;
	weir_thread_detach();
	finish_graph(graph, 0);
}

static void run(void (*what)(struct weir_stage *st, struct weir_event **ev))
{
	run_with(what, "none");
}

static void test_few(void)
{
	fixture_register(&act_ops);
	fixture_register(&end_ops);
	run(send_few);
}

static void test_slow(void)
{
	run(send_slow);
}

static void test_mixed(void)
{
	run(send_mixed);
}

static void test_source(void)
{
	run(send_as_source);
}

static void test_bound(void)
{
	run(send_bound);
}

static void test_late(void)
{
	run(send_late);
}

static void test_judged(void)
{
	n_put = 0;
	run_with(send_judged, "none");
	run_with(send_judged, "weir");
}

static void test_deal(void)
{
	run(deal);
}

static void test_deal_less(void)
{
	run(deal_less);
}

static void test_tell(void)
{
	run(tell);
}

CUNIT_MAIN("cells and dealing", {"few events stay", test_few}, {"slow events", test_slow},
    {"mixed events", test_mixed}, {"of a source", test_source}, {"bound events", test_bound},
    {"late events", test_late}, {"judged events", test_judged},
    {"half of the longest cell", test_deal}, {"what is never dealt", test_deal_less},
    {"the policy is told", test_tell})
