/* SPDX-License-Identifier: MIT */
/* A full queue and its classes: how much of the limit low classes may use. The graph is built and
 * never started, so no threads and no real time are involved. */
#include "fixture/graph/probes.h"

#include "base/clock.h"
#include "stage/stage.h"

#define NOW_NS NS_PER_S

static struct weir_graph *g;
static struct sink *door;
static struct book *book;
static int used;

static void no_wake(struct sink *s, uint32_t before, uint32_t length, uint64_t parts)
{
	(void)s, (void)before, (void)length, (void)parts;
}

/* A stage with limit `limit` and one class per digit of `priorities`, such as "0112". */
static void start(const char *limit, const char *priorities, const char *policy)
{
	struct weir_spec *spec = weir_spec_new("classes");
	struct weir_stage_spec *s = fixture_stage(spec, "a", "t.end", NULL);
	char name[2] = "a";

	for (const char *p = priorities; *p; p++, name[0]++)
		weir_spec_add_class(spec, name)->priority = *p - '0';
	fixture_set(s, "queue.limit", limit);
	fixture_set(s, "admission.policy", policy);
	fixture_set(s, "admission.rate", "1");
	prepare(N);
	used = 0;
	g = fixture_build(spec);
	door = &weir_graph_stage(g, "a")->sink;
	door->wake = no_wake;
	book = calloc(1, sizeof(*book));
}

static void end(void)
{
	struct weir_event *ev[WEIR_BATCH_MAX];
	struct queue_take t = {.n_ranks = 1, .max = WEIR_BATCH_MAX, .sharers = 1, .now_ns = NOW_NS};

	while (queue_pop(&door->queue, &t, ev))
		;
	weir_graph_free(g);
	free(book);
}

/* Offer one run with as many events of each class as its digit says: "03" is three of class 1.
 * Returns how many were admitted. */
static int offer(const char *counts)
{
	struct weir_event *ev[WEIR_BATCH_MAX];
	int reason[WEIR_BATCH_MAX], n = 0;

	for (int c = 0; counts[c]; c++) {
		for (int i = counts[c] - '0'; i > 0; i--, n++) {
			ev[n] = &probes[used++].ev;
			memset(ev[n], 0, sizeof(*ev[n]));
			weir_event_init(ev[n], &probe_type, NOW_NS);
			ev[n]->class_id = (uint8_t)c;
			ev[n]->session = (uint32_t)used;
		}
	}
	int taken = sink_offer(door, ev, n, WEIR_NO_STAGE, NOW_NS, book, reason);
	for (int i = 0; i < n - taken; i++)
		CU_ASSERT_EQUAL(reason[i], WEIR_EQUEUE);
	return taken;
}

static int offer_class(int class_id, int n)
{
	char counts[WEIR_CLASSES_MAX + 1] = "00000000";
	int taken = 0;

	counts[class_id] = '1';
	while (n-- > 0)
		taken += offer(counts);
	return taken;
}

static void test_one_class_has_all(void)
{
	start("16", "", "none");
	CU_ASSERT_EQUAL(offer_class(0, 40), 16);
	end();
	start("16", "000", "none"); /* equal priorities */
	CU_ASSERT_EQUAL(offer_class(2, 40), 16);
	end();
}

static void test_low_class_has_half(void)
{
	start("16", "01", "none");
	CU_ASSERT_EQUAL(offer_class(1, 40), 8);
	CU_ASSERT_EQUAL(offer_class(0, 40), 8);
	CU_ASSERT_EQUAL(offer_class(1, 40), 0);
	end();
	start("16", "01", "none"); /* the highest may use all of it */
	CU_ASSERT_EQUAL(offer_class(0, 40), 16);
	end();
	start("16", "01", "none"); /* the same within one run */
	CU_ASSERT_EQUAL(offer("39"), 3 + 8);
	CU_ASSERT_EQUAL(offer("99"), 5);
	end();
}

/* The lower half is divided equally; each class may also use the parts of the classes below it. */
static void test_several_classes(void)
{
	start("60", "0123", "none"); /* 60, 30, 20, 10 */
	CU_ASSERT_EQUAL(offer_class(3, 80), 10);
	CU_ASSERT_EQUAL(offer_class(2, 80), 10);
	CU_ASSERT_EQUAL(offer_class(1, 80), 10);
	CU_ASSERT_EQUAL(offer_class(0, 80), 30);
	end();
	start("60", "0112", "none"); /* per priority: 60, 30, 15 */
	CU_ASSERT_EQUAL(offer_class(2, 5) + offer_class(1, 80), 30);
	CU_ASSERT_EQUAL(offer_class(2, 80) + offer_class(3, 80), 0);
	end();
	start("3", "01234567", "none"); /* never less than one event */
	CU_ASSERT_EQUAL(offer_class(7, 9), 1);
	CU_ASSERT_EQUAL(offer_class(0, 9), 2);
	end();
}

/* The closer the wait is to the objective, the less of the queue low classes may use. */
static void test_less_as_the_wait_grows(void)
{
	start("16", "01", "none");
	atomic_store(&door->wait_ns, 1); /* a wait that is next to nothing costs no slot */
	CU_ASSERT_EQUAL(offer_class(1, 40), 8);
	end();
	start("16", "01", "none");
	atomic_store(&door->wait_ns, door->slo_ns / 2);
	CU_ASSERT_EQUAL(offer_class(1, 40), 4);
	atomic_store(&door->wait_ns, 2 * door->slo_ns);
	CU_ASSERT_EQUAL(offer_class(1, 40), 0);
	CU_ASSERT_EQUAL(offer_class(0, 40), 12);
	end();
}

/* A policy that charges for admitted events is refunded for those that the limit refuses. */
static void test_charges_are_given_back(void)
{
	start("16", "01", "rate");
	struct weir_admission_spec spec = {
	    .mode = WEIR_ADMISSION_ENFORCE, .rate = 0.001, .burst = 20, .threshold = -1};
	sink_set_admission(door, &spec, NOW_NS);
	CU_ASSERT_EQUAL(offer("09"), 8);
	CU_ASSERT_EQUAL(offer("09"), 0);
	CU_ASSERT_EQUAL(offer("80"), 8); /* of 20 tokens 16 are used, not 26 */
	end();
}

/* I5: whatever waits, a class is never refused if a lower one would be admitted. */
static void test_order_of_classes(void)
{
	uint32_t rng = 1;

	for (int round = 0; round < 200; round++) {
		int admitted_below = 0;
		start("23", "01223", "none");
		atomic_store(&door->wait_ns, door->slo_ns * (round % 5) / 4);
		for (int i = 0; i < round % 60; i++) {
			rng = rng * 1664525 + 1013904223;
			offer_class((int)(rng >> 16) % 5, 1);
		}
		for (int c = 4; c >= 0; c--) {
			uint32_t before = queue_length(&door->queue);
			int taken = offer_class(c, 1);
			CU_ASSERT_TRUE(taken >= admitted_below);
			admitted_below |= taken;
			if (taken) { /* undo: take the last one out again */
				struct lane *l = &door->queue.part[0].lane[c];
				l->n--;
				door->queue.part[0].n--;
				atomic_store(&door->queue.length, before);
			}
		}
		end();
	}
}

/* A stage is under full pressure when its lower classes have no free slots left, even though half
 * of the queue is empty. */
static void test_pressure(void)
{
	struct admission_sample sample = {.now_ns = NOW_NS, .n_classes = 2, .threads = 1};

	start("16", "01", "weir");
	CU_ASSERT_EQUAL(offer_class(1, 6), 6);
	sink_tick(door, &sample);
	CU_ASSERT_DOUBLE_EQUAL(weir_pressure(door->stage), 0.75, 1e-6);
	CU_ASSERT_EQUAL(offer_class(1, 6), 2);
	sink_tick(door, &sample);
	CU_ASSERT_DOUBLE_EQUAL(weir_pressure(door->stage), 1, 1e-6);
	end();
}

static void test_prepare(void)
{
	fixture_register(&end_ops);
}

CUNIT_MAIN("classes at a full queue", {"types are known", test_prepare},
    {"one class has all", test_one_class_has_all},
    {"a low class has half", test_low_class_has_half}, {"several classes", test_several_classes},
    {"less as the wait grows", test_less_as_the_wait_grows},
    {"charges are given back", test_charges_are_given_back},
    {"order of classes", test_order_of_classes}, {"pressure", test_pressure})
