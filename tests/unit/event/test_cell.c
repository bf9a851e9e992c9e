/* SPDX-License-Identifier: MIT */
/* Cells: order within and across classes, in front and behind, parts of lists, lengths. */
#include "event/cell.h"

#include "cunit_main.h"

#define N 12

static const struct weir_event_type type = {.name = "x"};
static struct cell cell;
static struct weir_event ev[N], *out[N];

/* Put ev[first..last), which were queued at `queued_ns`, as one run. */
static void put(int class_id, int first, int last, int64_t queued_ns, bool front)
{
	for (int i = first; i < last; i++)
		ev[i] = (struct weir_event){.key = (uint64_t)i,
		    .class_id = (uint8_t)class_id,
		    .queued_ns = queued_ns,
		    .next = i + 1 < last ? &ev[i + 1] : NULL};
	cell_put(&cell, class_id, &ev[first], &ev[last - 1], (uint32_t)(last - first), front);
}

/* Take at most `max` events, which must be those numbered in `want`, in order. */
static void take(int max, bool fifo, int n, const int *want)
{
	CU_ASSERT_EQUAL_FATAL(cell_take(&cell, max, fifo, out), n);
	for (int i = 0; i < n; i++)
		CU_ASSERT_EQUAL(out[i]->key, (uint64_t)want[i]);
}

static void is_empty(void)
{
	CU_ASSERT_EQUAL(cell_length(&cell), 0);
	CU_ASSERT_EQUAL(cell.filled, 0);
	CU_ASSERT_EQUAL(cell_oldest_ns(&cell), INT64_MAX);
	CU_ASSERT_EQUAL(cell_take(&cell, N, false, out), 0);
}

static void test_runs(void)
{
	cell_init(&cell);
	is_empty();
	put(0, 0, 4, 10, false);
	put(0, 4, 5, 20, false);
	CU_ASSERT_EQUAL(cell_length(&cell), 5);
	CU_ASSERT_EQUAL(cell_oldest_ns(&cell), 10);
	take(3, false, 3, (const int[]){0, 1, 2});
	put(0, 5, 7, 30, false);
	take(1, true, 1, (const int[]){3});
	CU_ASSERT_EQUAL(cell_oldest_ns(&cell), 20);
	take(N, false, 3, (const int[]){4, 5, 6});
	is_empty();
	put(0, 7, 9, 40, false); /* after it was empty */
	take(2, false, 2, (const int[]){7, 8});
	is_empty();
	ev[10] = (struct weir_event){.key = 10, .queued_ns = 60};
	ev[9] = (struct weir_event){.key = 9, .queued_ns = 50, .next = &ev[10]};
	cell_put(&cell, 0, &ev[9], &ev[10], 2, false); /* which did not come at the same time */
	CU_ASSERT_EQUAL(cell_oldest_ns(&cell), 50);
	take(1, false, 1, (const int[]){9});
	CU_ASSERT_EQUAL(cell_oldest_ns(&cell), 60);
	take(1, false, 1, (const int[]){10});
	is_empty();
}

static void test_newest(void)
{
	cell_init(&cell);
	put(0, 0, 2, 10, true);
	put(0, 2, 4, 20, true);
	put(0, 4, 5, 30, true);
	CU_ASSERT_EQUAL(cell_oldest_ns(&cell), 10); /* of the last */
	take(2, false, 2, (const int[]){4, 2});
	CU_ASSERT_EQUAL(cell_oldest_ns(&cell), 10);
	put(0, 5, 6, 40, false);
	CU_ASSERT_EQUAL(cell_oldest_ns(&cell), 10);
	take(N, false, 4, (const int[]){3, 0, 1, 5});
	is_empty();
}

static void test_classes(void)
{
	cell_init(&cell);
	put(2, 0, 2, 10, false);
	put(0, 2, 3, 20, false);
	put(1, 3, 5, 30, false);
	CU_ASSERT_EQUAL(cell_length(&cell), 5);
	CU_ASSERT_EQUAL(cell_class(&cell, 0), 1);
	CU_ASSERT_EQUAL(cell_class(&cell, 1), 2);
	CU_ASSERT_EQUAL(cell_class(&cell, 2), 2);
	CU_ASSERT_EQUAL(cell_oldest_ns(&cell), 10);
	take(2, false, 2, (const int[]){2, 3});
	CU_ASSERT_EQUAL(cell_oldest_ns(&cell), 10);
	CU_ASSERT_EQUAL(cell_class(&cell, 0), 0);
	put(0, 5, 6, 40, false);
	take(N, false, 4, (const int[]){5, 4, 0, 1});
	is_empty();
}

/* Oldest first, whatever the class. */
static void test_fifo(void)
{
	cell_init(&cell);
	put(2, 0, 2, 10, false);
	put(0, 2, 3, 20, false);
	put(2, 3, 4, 30, false);
	put(1, 4, 6, 25, false);
	take(4, true, 4, (const int[]){0, 1, 2, 4});
	CU_ASSERT_EQUAL(cell_oldest_ns(&cell), 25);
	take(N, true, 2, (const int[]){5, 3});
	is_empty();
}

/* What is described of ev[i], as of 100. */
static void is_shown(const struct weir_queued *q, int i)
{
	CU_ASSERT_EQUAL(q->age_ns, 100 - ev[i].queued_ns);
	CU_ASSERT_EQUAL(q->class_id, ev[i].class_id);
}

static void test_peek(void)
{
	struct weir_queued q[N];

	cell_init(&cell);
	put(2, 0, 2, 10, false);
	put(0, 2, 4, 20, false);
	put(2, 4, 5, 30, false);
	for (int i = 0; i < 5; i++)
		ev[i].type = &type;
	CU_ASSERT_EQUAL(cell_peek(&cell, 100, q, 0, N), 5);
	for (int i = 0; i < 5; i++)
		is_shown(&q[i], i);
	CU_ASSERT_EQUAL(cell_peek(&cell, 100, q, 0, 3), 3);
	is_shown(&q[2], 2);
	q[0] = (struct weir_queued){.age_ns = 95}; /* what a queue has */
	q[1] = (struct weir_queued){.age_ns = 75};
	CU_ASSERT_EQUAL(cell_peek(&cell, 100, q, 2, 4), 4);
	CU_ASSERT_EQUAL(q[0].age_ns, 95);
	is_shown(&q[1], 0);
	is_shown(&q[2], 1);
	is_shown(&q[3], 2);
	CU_ASSERT_EQUAL(cell_take(&cell, N, false, out), 5);
	CU_ASSERT_EQUAL(cell_peek(&cell, 100, q, 0, N), 0);
	put(0, 0, 1, 10, true); /* the newest first */
	put(0, 1, 2, 20, true);
	ev[0].type = ev[1].type = &type;
	CU_ASSERT_EQUAL(cell_peek(&cell, 100, q, 0, 1), 1);
	is_shown(&q[0], 0);
}

CUNIT_MAIN("cell", {"runs", test_runs}, {"newest first", test_newest}, {"classes", test_classes},
    {"oldest first across classes", test_fifo}, {"a look", test_peek})
