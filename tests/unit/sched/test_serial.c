/* SPDX-License-Identifier: MIT */
/* Core groups with serial keys: what stays in cells, the bound of cell and inbox, the order in spite of
 * classes, requeues and deaths, and slots that are given away. tests/torture/torture_serial.c covers
 * what happens at the same time. */
#include "serial_rig.h"

#define EVENTS 4000
#define KEYS   10
/* seq of the event that ends its thread, or is requeued. */
#define ODD 71

static int64_t last[KEYS]; /* seq of the last event of each key that has reached the end */

/* ---- stages ---- */

/* Events of one key do not overlap, so `last` needs no lock. */
static void rec_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	for (int i = 0; i < n; i++) {
		const struct probe *p = (const struct probe *)ev[i];
		atomic_fetch_add(&overtaken, (int64_t)p->seq <= last[p->producer]);
		last[p->producer] = (int64_t)p->seq;
		weir_event_finish(&ev[i], WEIR_OK);
	}
}

static void deadly_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		if (((struct probe *)ev[i])->seq == ODD)
			pthread_exit(NULL);
		weir_emit(st, 0, &ev[i]);
	}
}

static void again_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		if (((struct probe *)ev[i])->seq == ODD && ev[i]->session++ == 0)
			weir_requeue(st, &ev[i]);
		else
			weir_emit(st, 0, &ev[i]);
	}
}

static void gate_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	FIXTURE_AWAIT(atomic_load(&probe_gate));
	pass_handle(st, ev, n);
}

#define OPS(id, text, fn)                                                                          \
	static const struct weir_stage_ops id = {.abi = WEIR_STAGE_ABI,                            \
	    .name = text,                                                                          \
	    .summary = "x",                                                                        \
	    .accepts = &probe_type,                                                                \
	    .outlets = pass_outlets,                                                               \
	    .handle = fn}
OPS(rec_ops, "t.rec", rec_handle);
OPS(deadly_ops, "t.deadly", deadly_handle);
OPS(again_ops, "t.again", again_handle);
OPS(wait_ops, "t.wait", gate_handle);

/* ---- graphs ---- */

/* Stages a, b and c in a core group; b is of type `use`. */
static struct weir_spec *chain(int cores, const char *use)
{
	struct weir_spec *spec = weir_spec_new("serial");
	struct weir_group_spec *g = weir_spec_add_group(spec, "core");
	char n[16];

	snprintf(n, sizeof(n), "%d", cores);
	weir_spec_text(&g->cores, n);
	weir_spec_text(&g->schedule, "fifo");
	weir_spec_text(&g->serial, "producer");
	fixture_core_stage(spec, "a", "t.pass", "b");
	fixture_core_stage(spec, "b", use, "c");
	fixture_core_stage(spec, "c", "t.rec", NULL);
	return spec;
}

static void begin(int n)
{
	prepare(n);
	for (int i = 0; i < n; i++) {
		probes[i].producer = i % KEYS;
		probes[i].ev.class_id = 0;
	}
	for (int k = 0; k < KEYS; k++)
		last[k] = -1;
	atomic_store(&overtaken, 0);
	atomic_store(&probe_gate, 0);
}

static void add_classes(struct weir_spec *spec)
{
	static const char *const names[] = {"one", "two", "three"};

	for (int c = 0; c < 3; c++)
		weir_spec_add_class(spec, names[c]);
}

static void offer(struct weir_graph *g, int n, int run)
{
	weir_thread_attach(g, "test");
	fixture_offer_all(weir_graph_stage(g, "a"), probes, n, run);
}

static void steer(struct weir_graph *g, const char *name, enum weir_steer to)
{
	char why[200];

	CU_ASSERT_EQUAL(weir_graph_steer(g, name, to, why, sizeof(why)), 0);
}

static uint64_t from_queue(struct weir_graph *g, int place)
{
	uint64_t n = 0;

	for (int k = 0; k < group_of(g)->max; k++)
		n += book_read(&group_of(g)->core[k].book[place].from_queue);
	return n;
}

/* What comes from outside comes through the inboxes of a; then everything stays in cells. */
static void run_chain(int cores, int run)
{
	begin(EVENTS);
	struct weir_graph *g = fixture_start(chain(cores, "t.pass"));
	offer(g, EVENTS, run);
	FIXTURE_AWAIT(fixture_ended() == EVENTS);
	CU_ASSERT_EQUAL(from_queue(g, 0), EVENTS);
	if (cores == 1) {
		CU_ASSERT_EQUAL(from_queue(g, 1), 0);
		CU_ASSERT_EQUAL(from_queue(g, 2), 0);
	}
	finish(g, EVENTS);
}

static void test_chain(void)
{
	weir_log_set_fd(-1);
	fixture_register(&pass_ops);
	fixture_register(&rec_ops);
	fixture_register(&deadly_ops);
	fixture_register(&again_ops);
	fixture_register(&wait_ops);
	run_chain(1, 64);
	run_chain(1, 1);
	run_chain(2, 64);
	run_chain(2, 1);
}

/* A batch of 20 for a limit of 8: half of it is the cell's, the other half the inbox's. */
static void test_bound(void)
{
	struct weir_spec *spec = chain(1, "t.pass");

	begin(20);
	fixture_set(&spec->stages[0], "cohort.max", "20");
	fixture_set(&spec->stages[0], "cohort.linger", "1s"); /* so that the batch is full */
	fixture_set(&spec->stages[1], "queue.limit", "8");
	struct weir_graph *g = fixture_start(spec);
	offer(g, 20, 20);
	FIXTURE_AWAIT(fixture_ended() == 20);
	CU_ASSERT_EQUAL(atomic_load(&fixture_done), 8);
	CU_ASSERT_EQUAL(atomic_load(&fixture_shed), 12);
	CU_ASSERT_EQUAL(probes[7].status, WEIR_OK);
	CU_ASSERT_EQUAL(probes[8].status, WEIR_EQUEUE);
	CU_ASSERT_EQUAL(from_queue(g, 1), 4);
	finish(g, 20);
}

/* Events of three classes wait together: in the inboxes of b, while it is paused, and then in the cell
 * of c, since b handles them in one batch. */
static void test_classes(void)
{
	struct weir_spec *spec = chain(1, "t.pass");

	begin(300);
	add_classes(spec);
	for (int i = 0; i < 300; i++)
		probes[i].ev.class_id = (uint8_t)((i / KEYS * 2) % 3);
	struct weir_graph *g = fixture_start(spec);
	steer(g, "b", WEIR_STEER_PAUSE);
	offer(g, 300, 100);
	FIXTURE_AWAIT(stage_view(g, "b").queue_length == 300);
	steer(g, "b", WEIR_STEER_RUN);
	finish(g, 300);
}

/* The thread ends in b, while the rest of its batch of a waits in the cell of b. */
static void test_death(void)
{
	for (int cores = 1; cores <= 2; cores++) {
		struct weir_spec *spec = chain(cores, "t.deadly");
		begin(1000);
		fixture_set(&spec->stages[1], "cohort.max", "7");
		struct weir_graph *g = fixture_start(spec);
		offer(g, 1000, 100);
		FIXTURE_AWAIT(fixture_ended() == 1000);
		CU_ASSERT_EQUAL(probes[ODD].status, WEIR_EDIED);
		CU_ASSERT_EQUAL(stage_view(g, "b").thread_deaths, 1);
		finish(g, 1000);
	}
}

/* A requeued event takes a new place, behind what waits. */
static void test_requeue(void)
{
	struct weir_spec *spec = chain(1, "t.again");

	begin(200);
	probes[ODD].producer = KEYS - 1; /* no other event of its run has the key */
	struct weir_graph *g = fixture_start(spec);
	offer(g, 200, 100);
	FIXTURE_AWAIT(fixture_ended() == 200);
	CU_ASSERT_EQUAL(probes[ODD].status, WEIR_OK);
	CU_ASSERT_TRUE(from_queue(g, 1) >= 1);
	atomic_store(&overtaken, 0); /* it was */
	finish(g, 200);
}

/* The slots of half of the keys of the first core. */
static uint32_t half(struct weir_graph *g, struct slots *slots, uint32_t *n)
{
	const struct serial *serial = group_of(g)->serial;
	const struct sink *b = &weir_graph_stage(g, "b")->sink;
	uint32_t mine = 0;

	*n = 0;
	for (int k = 0; k < KEYS; k++) {
		uint64_t key = sink_key(b, &probes[k].ev);
		if (serial_owner(serial, key) != 0)
			continue;
		mine++;
		if (mine % 2)
			slots_add(slots, (unsigned)(key % QUEUE_SLOTS));
	}
	for (int i = 0; i < 300; i++)
		*n += slots_has(slots, sink_key(b, &probes[i].ev)) &&
		      serial_owner(serial, sink_key(b, &probes[i].ev)) == 0;
	return mine;
}

/* While b is paused, the test is the first core, whose thread sleeps. */
static void test_give(void)
{
	struct slots slots = {0};
	uint32_t n;

	begin(300);
	struct weir_graph *g = fixture_start(chain(2, "t.pass"));
	struct core_group *group = group_of(g);
	struct queue *q = &weir_graph_stage(g, "b")->sink.queue;
	steer(g, "b", WEIR_STEER_PAUSE);
	offer(g, 300, 100);
	FIXTURE_AWAIT(stage_view(g, "b").queue_length == 300);
	both_begun(g);
	FIXTURE_AWAIT(atomic_load(&group->pool->n_idle) == 2);
	CU_ASSERT_TRUE(half(g, &slots, &n) > 0);
	uint32_t first = queue_part_length(q, 0), second = queue_part_length(q, 1);
	CU_ASSERT_EQUAL(first + second, 300);
	atomic_store(&group->serial->state[1], SERIAL_LEFT);
	CU_ASSERT_EQUAL(serial_give(&group->core[0], 1, &slots), -1);
	atomic_store(&group->serial->state[1], SERIAL_OPEN);
	CU_ASSERT_EQUAL(queue_part_length(q, 0), first);
	lock_take(&q->lock);
	q->closed = true; /* a drain ends what waits, partition by partition */
	lock_release(&q->lock);
	CU_ASSERT_EQUAL(serial_give(&group->core[0], 1, &slots), -1);
	lock_take(&q->lock);
	q->closed = false;
	lock_release(&q->lock);
	CU_ASSERT_EQUAL(queue_part_length(q, 0), first);
	CU_ASSERT_EQUAL(serial_give(&group->core[0], 1, &slots), n);
	CU_ASSERT_EQUAL(queue_part_length(q, 0), first - n);
	CU_ASSERT_EQUAL(queue_part_length(q, 1), second + n);
	CU_ASSERT_EQUAL(stage_view(g, "b").queue_length, 300);
	CU_ASSERT_TRUE(book_read(&group->core[0].moved) > 0);
	for (int i = 0; i < 300; i++)
		if (slots_has(&slots, probes[i].ev.key))
			CU_ASSERT_EQUAL(serial_owner(group->serial, probes[i].ev.key), 1);
	steer(g, "b", WEIR_STEER_RUN);
	finish(g, 300);
}

/* Events that are on their way back to their stage move without being counted: the new core looks at the
 * stage. It is in a call meanwhile, so that it does not look yet. */
static void test_give_back(void)
{
	begin(1);
	struct weir_graph *g = fixture_start(chain(2, "t.wait"));
	struct core_group *group = group_of(g);
	struct sink *c = &weir_graph_stage(g, "c")->sink;
	struct slots slots = {0}, all;

	both_begun(g);
	FIXTURE_AWAIT(atomic_load(&group->pool->n_idle) == 2);
	memset(&all, 0xff, sizeof(all));
	CU_ASSERT_TRUE(serial_give(&group->core[0], 1, &all) == 0);
	slots_add(&slots, 0);
	weir_thread_attach(g, "test");
	fixture_offer_all(weir_graph_stage(g, "a"), probes, 1, 1);
	FIXTURE_AWAIT(stage_view(g, "b").longest_running_ns > 0);
	FIXTURE_AWAIT(atomic_load(&group->pool->n_idle) == 1);
	uint64_t bit = 1ULL << c->place;
	CU_ASSERT_FALSE(atomic_load(&group->arrived) & bit);
	atomic_store(&c->queue.n_back, 1);
	CU_ASSERT_EQUAL(serial_give(&group->core[0], 1, &slots), 0);
	atomic_store(&c->queue.n_back, 0);
	CU_ASSERT_TRUE(atomic_load(&group->arrived) & bit);
	atomic_store(&probe_gate, 1);
	finish(g, 1);
}

/* A slot of a core without a thread goes to one that has a thread. */
static void test_tend(void)
{
	begin(10);
	struct weir_graph *g = fixture_start(chain(2, "t.pass"));
	struct serial *serial = group_of(g)->serial;

	both_begun(g);
	atomic_store(&serial->state[1], SERIAL_NEW);
	serial_tend(group_of(g));
	for (unsigned s = 0; s < QUEUE_SLOTS; s++)
		CU_ASSERT_EQUAL_FATAL(serial_owner(serial, s), 0);
	atomic_store(&serial->state[1], SERIAL_OPEN);
	offer(g, 10, 10);
	finish(g, 10);
}

/* The core waits in a handler of b: the rest of the events is seen in the cell of b and in the inbox of
 * a. */
static void test_views(void)
{
	struct weir_queued queued[QUEUE_PEEK_MAX];

	begin(100);
	struct weir_graph *g = fixture_start(chain(1, "t.wait"));
	steer(g, "c", WEIR_STEER_PAUSE);
	offer(g, 100, 100);
	FIXTURE_AWAIT(stage_view(g, "b").longest_running_ns > 0);
	uint64_t at_a = stage_view(g, "a").queue_length, at_b = stage_view(g, "b").queue_length;
	CU_ASSERT_TRUE(at_a + at_b < 100);
	CU_ASSERT_EQUAL(at_a + stage_view(g, "b").in_flight, 100);
	CU_ASSERT_EQUAL((uint64_t)weir_graph_queue(g, "a", queued, QUEUE_PEEK_MAX), at_a);
	atomic_store(&probe_gate, 1);
	FIXTURE_AWAIT(stage_view(g, "c").queue_length == 100);
	CU_ASSERT_EQUAL(weir_graph_queue(g, "c", queued, QUEUE_PEEK_MAX), 100);
	steer(g, "c", WEIR_STEER_RUN);
	finish(g, 100);
}

CUNIT_MAIN("serial keys", {"chain", test_chain}, {"bound", test_bound}, {"classes", test_classes},
    {"death", test_death}, {"requeue", test_requeue}, {"give", test_give},
    {"give back", test_give_back}, {"tend", test_tend}, {"views", test_views})
