/* SPDX-License-Identifier: MIT */
/* The queue and the cell of a serial stage: the order in which events came, whatever their classes;
 * events put in front, and slots that move. Single-threaded; tests/torture/torture_serial.c is not. */
#include "event/cell.h"
#include "event/queue.h"

#include <string.h>

#include "cunit_main.h"

#define N       300
#define CLASSES 3
#define CORES   3

static struct weir_event ev[N], *out[N];
static _Atomic uint8_t map[QUEUE_SLOTS];
static struct queue q;
static struct cell cell;

/* Slot `key` is that of core key % CORES. */
static void begin(void)
{
	for (int i = 0; i < QUEUE_SLOTS; i++)
		atomic_store(&map[i], (uint8_t)(i % CORES));
	CU_ASSERT_EQUAL_FATAL(queue_init(&q, CLASSES, CORES, 64, true, false), 0);
	q.fifo = true;
	queue_set_map(&q, map);
	cell_init(&cell);
	cell.serial = true;
}

/* Events [first, last), all of the same time, of all classes in turn, and of slot `key`, or one of
 * all slots below 30 if it is negative. */
static void make(int first, int last, int key)
{
	for (int i = first; i < last; i++)
		ev[i] = (struct weir_event){.class_id = (uint8_t)((i * 2) % CLASSES),
		    .key = (uint64_t)(key < 0 ? i % 30 : key),
		    .queued_ns = 7,
		    .trace_id = (uint64_t)i};
}

static void push(int first, int last, bool front)
{
	struct weir_event *run[N];
	int n = last - first;

	for (int i = 0; i < n; i++)
		run[i] = &ev[first + i];
	lock_take(&q.lock);
	CU_ASSERT_EQUAL(
	    front ? queue_push_front_locked(&q, run, n) : queue_push_locked(&q, run, n), n);
	lock_release(&q.lock);
}

static int pop(int core, int max)
{
	struct queue_take t = {.rank = core, .n_ranks = CORES, .max = max, .sharers = 1};

	return queue_pop(&q, &t, out);
}

/* The inbox of the core has the events [first, last) next, and they come in batches of `max`. */
static void comes(int core, int first, int last, int max)
{
	while (first < last) {
		int n = pop(core, max < last - first ? max : last - first);
		CU_ASSERT_TRUE_FATAL(n > 0);
		for (int i = 0; i < n; i++)
			CU_ASSERT_EQUAL(out[i]->trace_id, (uint64_t)first++);
	}
}

static void is_empty(void)
{
	CU_ASSERT_EQUAL(queue_length(&q), 0);
	for (int p = 0; p < CORES; p++)
		CU_ASSERT_EQUAL(queue_part_length(&q, p), 0);
	queue_fini(&q);
}

static void test_order(void)
{
	begin();
	make(0, 200, 4);
	push(0, 100, false);
	push(100, 200, false);
	CU_ASSERT_EQUAL(queue_part_length(&q, 1), 200);
	CU_ASSERT_TRUE(queue_due(&q, 1, CORES, 1));
	CU_ASSERT_FALSE(queue_due(&q, 0, CORES, 1));
	CU_ASSERT_EQUAL(pop(0, 10), 0);
	CU_ASSERT_EQUAL(pop(2, 10), 0);
	comes(1, 0, 200, 7);
	is_empty();
}

static void test_front(void)
{
	begin();
	make(0, 120, 0);
	push(100, 120, false);
	push(50, 100, true);
	push(0, 50, true);
	comes(0, 0, 120, 64);
	push(0, 1, true); /* when it is empty */
	push(1, 2, false);
	comes(0, 0, 2, 1);
	is_empty();
}

static void count_classes(const uint32_t *want)
{
	lock_take(&q.lock);
	for (int c = 0; c < CLASSES; c++)
		CU_ASSERT_EQUAL(queue_class_length_locked(&q, c), want[c]);
	lock_release(&q.lock);
}

/* Move the slots 0, 3, 6 and 9 of core 0 to core 1, where they are behind what was there. */
static void test_move(void)
{
	struct slots slots = {0};
	uint64_t last[30] = {0};
	uint32_t count[QUEUE_SLOTS] = {0};
	int n, seen = 0;

	begin();
	make(0, N, -1);
	push(0, N, false);
	for (unsigned s = 0; s < 12; s += 3) {
		slots_add(&slots, s);
		CU_ASSERT_TRUE(slots_has(&slots, s + QUEUE_SLOTS));
		CU_ASSERT_FALSE(slots_has(&slots, s + 1));
		atomic_store(&map[s], 1);
	}
	lock_take(&q.lock);
	CU_ASSERT_EQUAL(queue_reserve_locked(&q, 0, 1, 0), 0);
	CU_ASSERT_EQUAL(queue_move_slots_locked(&q, 0, 1, &slots), 40);
	lock_release(&q.lock);
	CU_ASSERT_EQUAL(queue_length(&q), N);
	CU_ASSERT_EQUAL(queue_part_length(&q, 0), 60);
	CU_ASSERT_EQUAL(queue_part_length(&q, 1), 140);
	count_classes((const uint32_t[]){N / 3, N / 3, N / 3});
	queue_count_slots(&q, 1, N, count);
	CU_ASSERT_EQUAL(count[3], 10);
	CU_ASSERT_EQUAL(count[1], 10);
	CU_ASSERT_EQUAL(count[12], 0);
	while ((n = pop(1, 9)) > 0)
		for (int i = 0; i < n; i++, seen++) {
			uint64_t *l = &last[out[i]->key];
			CU_ASSERT_TRUE(out[i]->trace_id >= *l);
			*l = out[i]->trace_id;
			CU_ASSERT_EQUAL(out[i]->key % 3 == 1, seen < 100);
		}
	while ((n = pop(0, 9)) > 0)
		for (int i = 0; i < n; i++)
			CU_ASSERT_FALSE(slots_has(&slots, out[i]->key));
	while (pop(2, 9) > 0)
		;
	is_empty();
}

/* Take all events of the core; those of each slot are in the order in which they came. */
static int take_all(int core)
{
	uint64_t last[30] = {0};
	int n, seen = 0;

	while ((n = pop(core, 50)) > 0)
		for (int i = 0; i < n; i++, seen++) {
			uint64_t *l = &last[out[i]->key];
			CU_ASSERT_TRUE(out[i]->trace_id >= *l);
			*l = out[i]->trace_id;
		}
	return seen;
}

/* All events are of core 0, and each slot has events of all classes: slots 0 and 6 move. */
static void test_move_classes(void)
{
	struct slots slots = {0};

	begin();
	make(0, N, 0);
	for (int i = 0; i < N; i++)
		ev[i].key = (uint64_t)(3 * (i / 3 % 5));
	push(0, N, false);
	slots_add(&slots, 0);
	slots_add(&slots, 6);
	lock_take(&q.lock);
	CU_ASSERT_EQUAL(queue_reserve_locked(&q, 0, 1, 0), 0);
	CU_ASSERT_EQUAL(queue_move_slots_locked(&q, 0, 1, &slots), N / 5 * 2);
	lock_release(&q.lock);
	CU_ASSERT_EQUAL(queue_part_length(&q, 0), N / 5 * 3);
	CU_ASSERT_EQUAL(take_all(1), N / 5 * 2);
	CU_ASSERT_EQUAL(take_all(0), N / 5 * 3);
	is_empty();
}

/* Events that were given back move, too. */
/* A move that is in progress: the map still names the old core, and the events are in the inbox of
 * the new one, behind what it has, so that this core knows of them before the map changes. */
static void test_before_map(void)
{
	struct weir_event *run[6];

	for (int i = 0; i < 6; i++)
		run[i] = &ev[4 + i];
	begin();
	make(0, 4, 2);
	push(0, 4, false);
	make(4, 10, 0); /* core 0 */
	lock_take(&q.lock);
	CU_ASSERT_EQUAL_FATAL(queue_reserve_locked(&q, 0, 2, 6), 0);
	queue_push_to_locked(&q, run, 6, 2);
	lock_release(&q.lock);
	CU_ASSERT_EQUAL(atomic_load(&map[0]), 0);
	CU_ASSERT_EQUAL(queue_length(&q), 10);
	CU_ASSERT_EQUAL(queue_part_length(&q, 0), 0);
	CU_ASSERT_EQUAL(queue_part_length(&q, 2), 10);
	CU_ASSERT_EQUAL(pop(0, N), 0);
	comes(2, 0, 10, 3);
	is_empty();
}

static void test_back(void)
{
	struct slots slots = {0};
	int part;

	begin();
	make(0, 2, 6);
	ev[1].key = 9;
	ev[0].next = &ev[1];
	queue_give_back(&q, &ev[0]);
	slots_add(&slots, 6);
	atomic_store(&map[6], 2);
	lock_take(&q.lock);
	CU_ASSERT_EQUAL(queue_move_slots_locked(&q, 0, 2, &slots), 0);
	lock_release(&q.lock);
	CU_ASSERT_TRUE(queue_due(&q, 2, CORES, 1));
	CU_ASSERT_EQUAL(queue_take_back(&q, 2, CORES, out, &part), 1);
	CU_ASSERT_PTR_EQUAL(out[0], &ev[0]);
	CU_ASSERT_EQUAL(queue_take_back(&q, 0, CORES, out, &part), 1);
	CU_ASSERT_PTR_EQUAL(out[0], &ev[1]);
	is_empty();
}

static void put(int first, int last)
{
	uint32_t of_class[WEIR_CLASSES_MAX] = {0};

	for (int i = first; i < last; i++) {
		ev[i].next = &ev[i + 1];
		of_class[ev[i].class_id]++;
	}
	cell_put_serial(&cell, &ev[first], &ev[last - 1], of_class, WEIR_CLASSES_MAX);
}

static void test_cell(void)
{
	struct slots slots = {0};
	struct weir_event *list;
	uint32_t count[QUEUE_SLOTS] = {0};

	begin();
	make(0, 90, -1);
	put(0, 20);
	put(20, 60);
	CU_ASSERT_EQUAL(cell_length(&cell), 60);
	CU_ASSERT_EQUAL(cell_class(&cell, 0), 20);
	CU_ASSERT_EQUAL(cell_oldest_ns(&cell), 7);
	CU_ASSERT_EQUAL(cell_take(&cell, 30, false, out), 30); /* two of each slot were there */
	for (int i = 0; i < 30; i++)
		CU_ASSERT_PTR_EQUAL(out[i], &ev[i]);
	cell_count_slots(&cell, 100, count);
	CU_ASSERT_EQUAL(count[29], 1);
	slots_add(&slots, 5);
	slots_add(&slots, 29);
	CU_ASSERT_EQUAL(cell_take_slots(&cell, &slots, &list), 2);
	CU_ASSERT_PTR_EQUAL(list, &ev[35]);
	CU_ASSERT_PTR_EQUAL(list->next, &ev[59]); /* it was the last one */
	CU_ASSERT_PTR_NULL(list->next->next);
	put(60, 90);
	CU_ASSERT_EQUAL(cell_take(&cell, N, true, out), 58);
	CU_ASSERT_PTR_EQUAL(out[27], &ev[58]);
	CU_ASSERT_PTR_EQUAL(out[28], &ev[60]);
	CU_ASSERT_EQUAL(cell_length(&cell), 0);
	CU_ASSERT_EQUAL(cell.filled, 0);
	CU_ASSERT_EQUAL(cell_class(&cell, 1), 0);
	CU_ASSERT_EQUAL(cell_oldest_ns(&cell), INT64_MAX);
	is_empty();
}

CUNIT_MAIN("queue of a serial stage", {"order across classes", test_order},
    {"in front", test_front}, {"slots that move", test_move},
    {"slots that move, of all classes", test_move_classes}, {"before the map", test_before_map},
    {"given back", test_back}, {"cell", test_cell})
