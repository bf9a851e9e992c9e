/* SPDX-License-Identifier: MIT */
/*
 * Admission to a partitioned stage asks its policy about the events of each thread separately
 * (stage/admit.h). Events that wait for one thread say nothing about the others. Events admitted
 * for one thread count where the policy considers all. The graph is built and never started, so no
 * threads and no real time are involved.
 */
#include "fixture/graph/probes.h"

#include "stage/stage.h"

#define PARTS  4
#define NOW_NS 7000000000LL
#define MS     1000000LL

static struct weir_graph *g;
static struct sink *sink;
static struct book *book;
static int idle; /* threads of each partition */

static uint64_t key_of(struct weir_stage *st, const struct weir_event *ev)
{
	(void)st;
	return (uint64_t)((const struct probe *)ev)->producer;
}

static const struct weir_stage_ops keyed_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.keyed",
    .summary = "the producer is the key",
    .accepts = &probe_type,
    .handle = end_handle,
    .key = key_of};

static void no_wake(struct sink *s, uint32_t before, uint32_t length, uint64_t parts)
{
	(void)s, (void)before, (void)length, (void)parts;
}

static void look(const struct sink *s, int rank, struct admission_view *v)
{
	(void)s, (void)rank;
	v->threads = PARTS;
	v->idle = idle;
}

static int ranks(const struct sink *s)
{
	(void)s;
	return PARTS;
}

static void start(const char *policy)
{
	struct weir_spec *spec = weir_spec_new("parts");
	struct weir_stage_spec *s = fixture_stage(spec, "a", "t.keyed", NULL);

	fixture_set(s, "threads.min", "4");
	fixture_set(s, "threads.max", "4");
	fixture_set(s, "queue.limit", "1000");
	fixture_set(s, "admission.policy", policy);
	s->mode = WEIR_MODE_PARTITIONED;
	prepare(N);
	g = fixture_build(spec);
	sink = &weir_graph_stage(g, "a")->sink;
	CU_ASSERT_EQUAL_FATAL(sink->queue.n_parts, PARTS);
	sink->wake = no_wake;
	sink->look = look;
	sink->ranks = ranks;
	struct weir_admission_spec admission = sink->admission;
	sink_set_admission(sink, &admission, NOW_NS); /* the policy's time starts */
	book = calloc(1, sizeof(*book));
	idle = 0;
}

/* Offer probes[at..at + n), with the keys key, key + step, ... Returns how many were admitted. */
static int offer(int at, int n, int key, int step, int64_t left_ns)
{
	struct weir_event *ev[WEIR_BATCH_MAX];
	int reason[WEIR_BATCH_MAX];

	for (int i = 0; i < n; i++) {
		weir_event_init(&probes[at + i].ev, &probe_type, NOW_NS);
		probes[at + i].producer = key + i * step;
		if (left_ns)
			probes[at + i].ev.deadline_ns = NOW_NS + left_ns;
		ev[i] = &probes[at + i].ev;
	}
	return sink_offer(sink, ev, n, WEIR_NO_STAGE, NOW_NS, book, reason);
}

static void end(void)
{
	struct weir_event *ev[WEIR_BATCH_MAX];

	for (int rank = 0; rank < PARTS; rank++) {
		struct queue_take t = {.rank = rank,
		    .n_ranks = PARTS,
		    .max = WEIR_BATCH_MAX,
		    .sharers = 1,
		    .now_ns = NOW_NS};
		while (queue_pop(&sink->queue, &t, ev) > 0)
			queue_release(&sink->queue, t.part);
	}
	weir_graph_free(g);
	free(book);
}

/* A thread for which nothing waits takes the next event when its batch has ended, whatever waits
 * for another thread. */
static void test_no_wait_beside_a_hot_key(void)
{
	start("weir");
	CU_ASSERT_EQUAL(offer(0, 200, 0, 0, 0), 200); /* while costs are unknown */
	sink_first_cost(sink, MS);
	CU_ASSERT_EQUAL(offer(200, 1, 1, 0, 10 * MS), 1);
	CU_ASSERT_EQUAL(offer(201, 1, 0, 0, 10 * MS), 0); /* 200 events wait before it */
	end();
}

/* A limit on the events in the stage also holds for a run with many keys. */
static void test_limit_of_a_mixed_run(void)
{
	start("gradient2");
	CU_ASSERT_EQUAL(offer(0, 64, 0, 1, 0), 20); /* the initial limit of gradient2 */
	CU_ASSERT_EQUAL(offer(64, 64, 0, 1, 0), 0);
	end();
}

static void test_prepare(void)
{
	fixture_register(&keyed_ops);
}

CUNIT_MAIN("doors of partitions", {"types are known", test_prepare},
    {"no wait beside a hot key", test_no_wait_beside_a_hot_key},
    {"limit of a mixed run", test_limit_of_a_mixed_run})
