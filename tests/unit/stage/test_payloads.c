/* SPDX-License-Identifier: MIT */
/*
 * Payloads of events in a graph: made, handed on and dropped. Whatever the end of an event is, its
 * payloads are dropped once. And fields of payloads as keys, expected work, and conditions of classes.
 */
#include "fixture/graph/payloads.h"

#include "fixture/graph/probes.h"

#include "base/clock.h"

#include "event/bins.h"
#include "event/payload.h"
#include "graph/graph.h"

#define M 2000

static struct laden laden[M];

static void begin(void)
{
	fixture_reset();
	laden_init(laden, M);
}

/* Offer events first .. first + n - 1, one by one. Those that are refused are finished. */
static void offer(struct weir_stage *to, int first, int n)
{
	for (int i = first; i < first + n; i++) {
		struct weir_event *ev = &laden[i].p.ev;
		int why;
		if (weir_offer(to, &ev, 1, &why) == 0)
			weir_event_finish(&ev, why);
	}
	weir_thread_flush();
}

static void await_ends(int n)
{
	FIXTURE_AWAIT(fixture_ended() == (uint64_t)n);
	/* payloads are dropped after `finish` */
	FIXTURE_AWAIT(atomic_load(&payloads_alive) == 0);
}

/* Check that no budget is in use and each event ended once; free the graph. */
static void end(struct weir_graph *g, int n)
{
	int wrong = 0;

	weir_thread_detach();
	weir_graph_drain(g, 100 * NS_PER_S, NULL);
	await_ends(n);
	for (int i = 0; i < n; i++)
		wrong += atomic_load(&laden[i].p.finishes) != 1;
	CU_ASSERT_EQUAL(wrong, 0);
	CU_ASSERT_EQUAL(atomic_load(&g->payloads->used), 0);
	weir_graph_free(g);
}

static struct weir_graph *start(struct weir_spec *spec)
{
	struct weir_graph *g = fixture_start(spec);

	CU_ASSERT_EQUAL_FATAL(weir_thread_attach(g, "test"), 0);
	return g;
}

static void test_pipeline(void)
{
	for (int inlined = 0; inlined < 2; inlined++) {
		struct weir_spec *spec = weir_spec_new("payloads");
		begin();
		fixture_stage(spec, "decode", "t.decode", "scale");
		fixture_stage(spec, "scale", "t.scale", "store")->inlined = inlined;
		fixture_stage(spec, "store", "t.store", "final");
		fixture_stage(spec, "final", "t.final", NULL);
		for (int i = 0; i < 4; i++)
			fixture_set(
			    &spec->stages[i], "admission.policy", inlined ? "none" : "auto");
		for (int i = 0; i < 4; i++)
			fixture_set(&spec->stages[i], "slo", "1h");
		struct weir_graph *g = start(spec);
		offer(g->stages[0], 0, M);
		await_ends(M);
		CU_ASSERT_EQUAL(atomic_load(&fixture_failed), 0);
		end(g, M);
	}
}

/* ---- ends ---- */

enum fate { FINISH, FAIL, LEAVE, REQUEUE, HOLD, TICKET, DIE, UNLINKED, FATES };

static void fate(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		bool again = weir_payload(ev[i], &image_type) != NULL;
		if (!again)
			CU_ASSERT_PTR_NOT_NULL(image_new(st, ev[i], 5));
		void *image = weir_payload(ev[i], &image_type);
		CU_ASSERT_EQUAL(weir_payload_reserve(st, image, 1000), 0);
		switch (((struct probe *)ev[i])->seq % FATES) {
		case FINISH:
			weir_event_finish(&ev[i], WEIR_OK);
			break;
		case FAIL:
			weir_event_finish(&ev[i], WEIR_EFAILED);
			break;
		case REQUEUE:
			again ? weir_event_finish(&ev[i], WEIR_OK) : weir_requeue(st, &ev[i]);
			break;
		case HOLD:
			if (again) {
				weir_event_finish(&ev[i], WEIR_OK);
				break;
			}
			struct weir_event *held = ev[i];
			weir_hold(st, &ev[i]);
			weir_requeue(st, &held);
			break;
		case TICKET:
			weir_hold_until(st, &ev[i], 1);
			break;
		case DIE:
			if (((struct probe *)ev[i])->seq < 100)
				pthread_exit(NULL);
			weir_event_finish(&ev[i], WEIR_EGONE);
			break;
		case UNLINKED:
			weir_emit(st, 0, &ev[i]);
			break;
		default:
			break; /* left behind */
		}
	}
}

static const struct weir_outlet fate_outlets[] = {{"out", &laden_type, true, ""}, {.name = NULL}};
static const struct weir_stage_ops fate_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.fate",
    .summary = "ends events in all ways",
    .flags = WEIR_STAGE_HOLDS,
    .accepts = &laden_type,
    .outlets = fate_outlets,
    .handle = fate};

/* By seq: all ends of events in a handler or behind it, with and without a pool. */
static void test_ends(void)
{
	struct weir_spec *spec = weir_spec_new("payloads");
	struct weir_stage_spec *s = fixture_stage(spec, "fate", "t.fate", NULL);

	begin();
	fixture_set(s, "threads.max", "2");
	fixture_set(s, "queue.limit", "64");
	fixture_set(s, "slo", "1h");
	struct weir_graph *g = start(spec);
	offer(g->stages[0], 0, M);
	end(g, M);
}

/* The queue refuses and deadlines pass, for events that have payloads. */
static void test_other_ends(void)
{
	struct weir_spec *spec = weir_spec_new("payloads");
	struct weir_stage_spec *s;

	begin();
	fixture_stage(spec, "decode", "t.decode", "gate");
	s = fixture_stage(spec, "gate", "t.gate-any", NULL);
	fixture_set(s, "threads.max", "1");
	fixture_set(s, "queue.limit", "10");
	fixture_set(s, "admission.policy", "none");
	atomic_store(&probe_gate, 0);
	struct weir_graph *g = start(spec);
	for (int i = 0; i < M; i++)
		if (i % 3 == 0) /* refused before they have a payload, or late for the gate */
			laden[i].p.ev.deadline_ns = clock_now_ns() + i * 1000;
	offer(g->stages[0], 0, M);
	FIXTURE_AWAIT(fixture_ended() > M - 100);
	CU_ASSERT_TRUE(atomic_load(&payloads_alive) > 0);
	atomic_store(&probe_gate, 1);
	end(g, M);
}

/* ---- refusals ---- */

static const struct weir_payload_type *const five[] = {
    &image_type, &note_type, &third_type, &fourth_type, &fifth_type};

static void greedy(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		CU_ASSERT_PTR_NOT_NULL(image_new(st, ev[i], 1));
		CU_ASSERT_PTR_NULL(image_new(st, ev[i], 1));
		CU_ASSERT_PTR_NOT_NULL(note_new(st, ev[i], "x"));
		CU_ASSERT_PTR_NOT_NULL(weir_payload_new(st, ev[i], five[2]));
		void *fourth = weir_payload_new(st, ev[i], five[3]);
		CU_ASSERT_PTR_NOT_NULL_FATAL(fourth);
		CU_ASSERT_PTR_NULL(weir_payload_new(st, ev[i], five[4]));
		CU_ASSERT_EQUAL(weir_payload_reserve(st, fourth, 5000), WEIR_ENOMEM);
		CU_ASSERT_EQUAL(weir_payload_reserve(st, fourth, 4000), 0);
		weir_payload_drop(ev[i], &third_type);
		CU_ASSERT_PTR_NULL(weir_payload_new(st, ev[i], &large_type));
		CU_ASSERT_PTR_NOT_NULL(weir_payload_new(st, ev[i], five[4]));
		weir_event_finish(&ev[i], WEIR_OK);
	}
}

static const struct weir_stage_ops greedy_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.greedy",
    .summary = "wants too much",
    .accepts = &laden_type,
    .handle = greedy};

static void test_refusals(void)
{
	struct weir_spec *spec = weir_spec_new("payloads");
	struct weir_graph_view *v = NULL;

	begin();
	spec->payload_bytes = 4500;
	fixture_set(fixture_stage(spec, "greedy", "t.greedy", NULL), "threads.max", "1");
	struct weir_graph *g = start(spec);
	offer(g->stages[0], 0, 10);
	await_ends(10);
	CU_ASSERT_EQUAL_FATAL(weir_graph_view(g, &v), 0);
	CU_ASSERT_EQUAL(v->stages[0].payload_refused[WEIR_PAYLOAD_SLOTS], 20);
	CU_ASSERT_EQUAL(v->stages[0].payload_refused[WEIR_PAYLOAD_BUDGET], 20);
	CU_ASSERT_EQUAL(v->stages[0].payload_refused[WEIR_PAYLOAD_MEMORY], 0);
	CU_ASSERT_EQUAL(v->payload_bytes, 0);
	CU_ASSERT_EQUAL(v->payload_bytes_limit, 4500);
	weir_graph_view_free(v);
	end(g, 10);
}

/* ---- fields ---- */

static atomic_int wrong, busy[10], in_order[M], n_order;
static pthread_t owner[10];

/* Events of one width come from one thread, never two at a time. */
static void one_thread(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	for (int i = 0; i < n; i++) {
		struct image *image = weir_payload(ev[i], &image_type);
		int w = (int)image->width % 10;
		if (atomic_fetch_add(&busy[w], 1) != 0)
			atomic_fetch_add(&wrong, 1);
		if (owner[w] && !pthread_equal(owner[w], pthread_self()) &&
		    st->sink.key.field.payload && st->spec->mode == WEIR_MODE_PARTITIONED)
			atomic_fetch_add(&wrong, 1);
		owner[w] = pthread_self();
		sched_yield();
		atomic_fetch_sub(&busy[w], 1);
		weir_event_finish(&ev[i], WEIR_OK);
	}
}

/* All events of a batch have one width. */
static void one_width(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	struct image *first = weir_payload(ev[0], &image_type);
	for (int i = 1; i < n; i++)
		if (((struct image *)weir_payload(ev[i], &image_type))->width != first->width)
			atomic_fetch_add(&wrong, 1);
	for (int i = 0; i < n; i++)
		weir_event_finish(&ev[i], WEIR_OK);
}

/* The first event waits for the gate; the others come in the order of their widths. */
static void in_turn(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	for (int i = 0; i < n; i++) {
		struct image *image = weir_payload(ev[i], &image_type);
		FIXTURE_AWAIT(atomic_load(&probe_gate));
		atomic_store(&in_order[atomic_fetch_add(&n_order, 1)], (int)image->width);
		weir_event_finish(&ev[i], WEIR_OK);
	}
}

#define READER(id, fn)                                                                             \
	{                                                                                          \
		.abi = WEIR_STAGE_ABI, .name = id, .summary = "needs an image",                    \
		.accepts = &laden_type, .handle = fn                                               \
	}
static const struct weir_stage_ops one_thread_ops = READER("t.one-thread", one_thread);
static const struct weir_stage_ops one_width_ops = READER("t.one-width", one_width);
static const struct weir_stage_ops in_turn_ops = READER("t.in-turn", in_turn);
static const struct weir_stage_ops gate_any_ops = READER("t.gate-any", in_turn);

static struct weir_spec *reader(const char *use)
{
	struct weir_spec *spec = weir_spec_new("payloads");

	begin();
	atomic_store(&wrong, 0);
	atomic_store(&n_order, 0);
	memset(owner, 0, sizeof(owner));
	fixture_stage(spec, "decode", "t.decode", "read");
	struct weir_stage_spec *s = fixture_stage(spec, "read", use, NULL);
	fixture_set(s, "admission.policy", "none");
	fixture_set(s, "slo", "1h");
	fixture_set(&spec->stages[0], "admission.policy", "none");
	return spec;
}

static void run(struct weir_spec *spec)
{
	struct weir_graph *g = start(spec);

	offer(g->stages[0], 0, M);
	await_ends(M);
	CU_ASSERT_EQUAL(atomic_load(&fixture_done), M);
	CU_ASSERT_EQUAL(atomic_load(&wrong), 0);
	end(g, M);
}

static void test_partitions(void)
{
	struct weir_spec *spec = reader("t.one-thread");

	fixture_set(&spec->stages[1], "mode", "partitioned");
	fixture_set(&spec->stages[1], "key", "image.width");
	fixture_set(&spec->stages[1], "threads.min", "3");
	fixture_set(&spec->stages[1], "threads.max", "3");
	run(spec);
	spec = reader("t.one-thread");
	fixture_set(&spec->stages[1], "mode", "partitioned");
	fixture_set(&spec->stages[1], "key", "image.name");
	fixture_set(&spec->stages[1], "threads.min", "2");
	fixture_set(&spec->stages[1], "threads.max", "2");
	run(spec);
}

static void test_cohorts(void)
{
	struct weir_spec *spec = reader("t.one-width");

	fixture_set(&spec->stages[1], "cohort.by", "image.width");
	fixture_set(&spec->stages[1], "cohort.max", "16");
	run(spec);
}

static void test_serial(void)
{
	struct weir_spec *spec = reader("t.one-thread");
	struct weir_group_spec *gs = weir_spec_add_group(spec, "core");

	weir_spec_text(&gs->schedule, "fifo");
	weir_spec_text(&gs->serial, "image.width");
	weir_spec_text(&spec->stages[1].group, "core");
	run(spec);
}

/* Equal for numbers that the queue does not tell apart. */
static int bin_at(int i)
{
	return bin_of((uint64_t)atomic_load(&in_order[i]));
}

static void test_shortest(void)
{
	struct weir_spec *spec = reader("t.in-turn");

	fixture_set(&spec->stages[1], "threads.max", "1");
	fixture_set(&spec->stages[1], "cohort.max", "1");
	fixture_set(&spec->stages[1], "queue.discipline", "shortest");
	fixture_set(&spec->stages[1], "queue.by", "image.width");
	atomic_store(&probe_gate, 0);
	struct weir_graph *g = start(spec);
	offer(g->stages[0], 0, 100);
	FIXTURE_AWAIT(stage_view(g, "read").queue_length == 99);
	atomic_store(&probe_gate, 1);
	await_ends(100);
	/* width 0 counts as unknown, and is served last */
	for (int i = 2; i < 90; i++)
		CU_ASSERT_TRUE(bin_at(i - 1) <= bin_at(i));
	for (int i = 92; i < 100; i++)
		CU_ASSERT_EQUAL(atomic_load(&in_order[i]), 0);
	end(g, 100);
}

/* A source chooses the class by what it has put on the event. */
static void test_classes(void)
{
	struct weir_spec *spec = weir_spec_new("payloads");

	begin();
	fixture_stage(spec, "web", "t.lader", "final");
	fixture_stage(spec, "final", "t.final", NULL);
	class_match(weir_spec_add_class(spec, "late"), "note.text", "late*");
	weir_spec_add_class(spec, "rest");
	struct weir_graph *g = fixture_build(spec);
	struct weir_stage *web = g->stages[0];
	CU_ASSERT_EQUAL(weir_classify(web, &laden[0].p.ev), 1);
	note_new(web, &laden[0].p.ev, "early");
	CU_ASSERT_EQUAL(weir_classify(web, &laden[0].p.ev), 1);
	note_new(web, &laden[1].p.ev, "later");
	CU_ASSERT_EQUAL(weir_classify(web, &laden[1].p.ev), 0);
	weir_payload_drop(&laden[0].p.ev, &note_type);
	weir_payload_drop(&laden[1].p.ev, &note_type);
	CU_ASSERT_EQUAL(atomic_load(&payloads_alive), 0);
	weir_graph_free(g);
}

/* ---- what stage types may not say ---- */

static void refuses(const struct weir_stage_ops *ops, const char *want)
{
	struct weir_err err = {0};

	CU_ASSERT_EQUAL(weir_stage_register(ops, &err), WEIR_EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, want));
}

static void test_types(void)
{
	static const struct weir_payload_field none[] = {{.name = "a"}, {.name = NULL}};
	static const struct weir_payload_type dotted = {.name = "a.b"}, nameless = {.size = 1};
	static const struct weir_payload_type fieldless = {.name = "a", .fields = none};
	static const struct weir_payload_at on_none[] = {{&image_type, "no"}, {.type = NULL}};
	struct weir_stage_ops ops = READER("t.bad", in_turn);
	const struct weir_payload_type *needs[] = {&dotted, NULL};

	ops.needs = needs;
	refuses(&ops, "a payload type called 'a.b'");
	needs[0] = &nameless;
	refuses(&ops, "a payload type called ''");
	needs[0] = &fieldless;
	refuses(&ops, "field 'a' of payload type 'a' must have either");
	ops.needs = NULL;
	ops.gives = on_none;
	refuses(&ops, "stage type 't.bad' gives image on 'no', which is none of its outlets");
	ops.gives = NULL;
	ops.takes = on_none;
	refuses(&ops, "takes image on 'no'");
}

static void test_register(void)
{
	payloads_register();
	fixture_register(&fate_ops);
	fixture_register(&greedy_ops);
	fixture_register(&one_thread_ops);
	fixture_register(&one_width_ops);
	fixture_register(&in_turn_ops);
	fixture_register(&gate_any_ops);
}

CUNIT_MAIN("payloads", {"register", test_register}, {"pipeline", test_pipeline},
    {"ends", test_ends}, {"other ends", test_other_ends}, {"refusals", test_refusals},
    {"partitions", test_partitions}, {"cohorts", test_cohorts}, {"serial", test_serial},
    {"shortest", test_shortest}, {"classes", test_classes}, {"stage types", test_types})
