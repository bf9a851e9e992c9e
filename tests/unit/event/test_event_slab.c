/* SPDX-License-Identifier: MIT */
/* Memory of events: sizes, reuse, runs that go to the depot and come from it, blocks that another thread
 * frees, and the end of a thread. With address sanitizer each block is an allocation of its own, so only
 * what holds for those, too, is checked then. */
#include "event/slab.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cunit_main.h"

#define LINE WEIR_CACHE_LINE
#define MOST                                                                                       \
	((size_t)SLAB_SIZES * LINE) /* the largest block that is not an allocation of its own */

static struct depot *depot;
static struct slab a, b;

static void begin(void)
{
	depot = depot_new();
	CU_ASSERT_PTR_NOT_NULL_FATAL(depot);
	a = b = (struct slab){.depot = depot};
}

static void end(void)
{
	slab_leave(&a);
	slab_leave(&b);
	depot_free(depot);
}

static void take(struct slab *s, void **block, int n, size_t size)
{
	for (int i = 0; i < n; i++) {
		block[i] = slab_take(s, size);
		CU_ASSERT_PTR_NOT_NULL_FATAL(block[i]);
	}
}

static void give(struct slab *s, void **block, int n, size_t size)
{
	for (int i = 0; i < n; i++)
		slab_give(s, block[i], size);
}

static int by_address(const void *x, const void *y)
{
	uintptr_t p = (uintptr_t) * (void *const *)x, q = (uintptr_t) * (void *const *)y;

	return p < q ? -1 : p > q;
}

/* Whether x[0..n) and y[0..n) are the same blocks, in any order. Both are sorted. */
static bool same(void **x, void **y, int n)
{
	qsort(x, (size_t)n, sizeof(*x), by_address);
	qsort(y, (size_t)n, sizeof(*y), by_address);
	return memcmp(x, y, (size_t)n * sizeof(*x)) == 0;
}

static int kept(const struct slab *s, size_t size)
{
	const struct slab_list *l = &s->list[(size - 1) / LINE];

	return (int)l->n + (l->full ? SLAB_RUN : 0);
}

/* ---- sizes ---- */

/* Blocks of all sizes at once, each filled to its last byte, do not overlap. */
static void test_sizes(void)
{
	enum { EACH = 40 };
	static unsigned char *block[(MOST + 3 * LINE) / 7 + 1][EACH];
	int wrong = 0, n = 0;

	begin();
	for (size_t size = 1; size <= MOST + 3 * LINE; size += 7, n++)
		for (int i = 0; i < EACH; i++) {
			block[n][i] = slab_take(&a, size);
			CU_ASSERT_PTR_NOT_NULL_FATAL(block[n][i]);
			wrong += (uintptr_t)block[n][i] % LINE != 0;
			memset(block[n][i], (n * EACH + i) % 251, size);
		}
	CU_ASSERT_EQUAL(wrong, 0);
	n = 0;
	for (size_t size = 1; size <= MOST + 3 * LINE; size += 7, n++)
		for (int i = 0; i < EACH; i++) {
			for (size_t k = 0; k < size; k++)
				wrong += block[n][i][k] != (n * EACH + i) % 251;
			slab_give(&a, block[n][i], size);
		}
	CU_ASSERT_EQUAL(wrong, 0);
	end();
}

/* A freed block is the next one of its size, and of no other size. */
static void test_reuse(void)
{
	void *p, *q;

	if (SLAB_MALLOC)
		return;
	begin();
	for (size_t lines = 1; lines <= SLAB_SIZES; lines++) {
		p = slab_take(&a, lines * LINE);
		slab_give(&a, p, lines * LINE);
		int n = kept(&a, lines * LINE);
		if (lines > 1) {
			q = slab_take(&a, (lines - 1) * LINE);
			CU_ASSERT_PTR_NOT_EQUAL(p, q);
			slab_give(&a, q, (lines - 1) * LINE);
		}
		CU_ASSERT_EQUAL(kept(&a, lines * LINE), n);
		q = slab_take(&a, (lines - 1) * LINE + 1);
		CU_ASSERT_PTR_EQUAL(p, q);
		CU_ASSERT_EQUAL(kept(&a, lines * LINE), n - 1);
		slab_give(&a, q, lines * LINE);
	}
	/* a block of one byte more belongs to no list */
	p = slab_take(&a, MOST + 1);
	CU_ASSERT_PTR_NOT_NULL(p);
	memset(p, 1, MOST + 1);
	slab_give(&b, p, MOST + 1);
	for (int i = 0; i < SLAB_SIZES; i++)
		CU_ASSERT_PTR_NULL(b.list[i].head);
	end();
}

/* ---- runs ---- */

#define MANY (4 * SLAB_RUN + 10)

/* A thread keeps a list and a full run; what is beyond goes to the depot and serves another thread. */
static void test_runs(void)
{
	static void *first[MANY], *second[MANY];

	if (SLAB_MALLOC)
		return;
	begin();
	take(&a, first, MANY, LINE);
	int rest = kept(&a, LINE);
	for (int i = 0; i < MANY; i++) {
		slab_give(&a, first[i], LINE);
		CU_ASSERT(a.list[0].n <= SLAB_RUN);
		CU_ASSERT(kept(&a, LINE) <= 2 * SLAB_RUN);
	}
	CU_ASSERT_PTR_NOT_NULL(a.list[0].full);
	/* the other thread gets full runs, which are all of these blocks */
	int there = MANY + rest - kept(&a, LINE);
	CU_ASSERT_EQUAL(there % SLAB_RUN, 0);
	for (int i = 0; i < there; i++) {
		void *p = slab_take(&b, LINE);
		bool known = false;
		for (int k = 0; k < MANY && !known; k++)
			known = first[k] == p;
		/* blocks that were in the list before are no part of `first` */
		CU_ASSERT(known || rest > 0);
		second[i] = p;
	}
	CU_ASSERT_EQUAL(kept(&b, LINE), 0);
	give(&b, second, there, LINE);
	end();
}

/* The full run of a thread is used before the depot is asked. */
static void test_full_first(void)
{
	static void *block[3 * SLAB_RUN];

	if (SLAB_MALLOC)
		return;
	begin();
	take(&a, block, 2 * SLAB_RUN, LINE);
	slab_leave(&a);
	give(&a, block, 2 * SLAB_RUN, LINE);
	CU_ASSERT_EQUAL(kept(&a, LINE), 2 * SLAB_RUN);
	CU_ASSERT_EQUAL(a.list[0].n, SLAB_RUN);
	for (int i = 0; i < 2 * SLAB_RUN; i++) {
		void *p = slab_take(&a, LINE);
		/* last in, first out */
		CU_ASSERT_PTR_EQUAL(p, block[2 * SLAB_RUN - 1 - i]);
	}
	CU_ASSERT_EQUAL(kept(&a, LINE), 0);
	give(&a, block, 2 * SLAB_RUN, LINE);
	end();
}

/* What a thread leaves with its end is used by another one, a started list, too. */
static void test_leave(void)
{
	static void *block[SLAB_RUN + 7], *again[SLAB_RUN + 7];

	if (SLAB_MALLOC)
		return;
	begin();
	for (size_t size = LINE; size <= MOST; size += 5 * LINE) {
		take(&a, block, SLAB_RUN + 7, size);
		slab_leave(&a);
		give(&b, block, SLAB_RUN + 7, size);
		slab_leave(&b);
		CU_ASSERT_EQUAL(kept(&b, size), 0);
		CU_ASSERT_PTR_NULL(b.list[(size - 1) / LINE].head);
		/* the depot hands out runs, the last one first; those that `a` has left come later */
		take(&a, again, SLAB_RUN + 7, size);
		CU_ASSERT(same(block, again, SLAB_RUN + 7));
		give(&a, again, SLAB_RUN + 7, size);
	}
	end();
}

/* ---- threads ---- */

#define ROUNDS 300

static pthread_barrier_t meet;
static void *shared[MANY];

/* Free what the other thread has taken. */
static void *frees(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		pthread_barrier_wait(&meet);
		give(&b, shared, MANY, 2 * LINE);
		pthread_barrier_wait(&meet);
	}
	slab_leave(&b);
	return NULL;
}

/* One thread takes and the other one frees: the memory goes round and does not grow. */
static void test_one_way(void)
{
	static void *seen[4 * MANY];
	pthread_t other;
	int n = 0;

	begin();
	pthread_barrier_init(&meet, NULL, 2);
	pthread_create(&other, NULL, frees, NULL);
	for (int i = 0; i < ROUNDS; i++) {
		take(&a, shared, MANY, 2 * LINE);
		for (int k = 0; k < MANY; k++) /* written by this thread and freed by the other */
			memset(shared[k], i, 2 * LINE);
		for (int k = 0; !SLAB_MALLOC && k < MANY && n < 4 * MANY; k++) {
			bool known = false;
			for (int j = 0; j < n && !known; j++)
				known = seen[j] == shared[k];
			if (!known)
				seen[n++] = shared[k];
		}
		pthread_barrier_wait(&meet);
		pthread_barrier_wait(&meet);
	}
	pthread_join(other, NULL);
	pthread_barrier_destroy(&meet);
	/* at most those in use, and what each of the two threads keeps */
	CU_ASSERT(n <= MANY + 4 * SLAB_RUN);
	end();
}

/* Threads that take and free all sizes at the same time; none gets a block that another one has. */
static void *churns(void *arg)
{
	struct slab s = {.depot = depot};
	static const size_t size[] = {1, LINE, 3 * LINE, MOST, MOST + 1};
	uintptr_t mark = (uintptr_t)arg, wrong = 0;
	void *block[64];

	for (int i = 0; i < 2000; i++) {
		size_t of = size[i % 5] < sizeof(mark) ? sizeof(mark) : size[i % 5];
		take(&s, block, 64, of);
		for (int k = 0; k < 64; k++)
			*(uintptr_t *)block[k] = mark + (uintptr_t)k;
		for (int k = 0; k < 64; k++)
			wrong += *(uintptr_t *)block[k] != mark + (uintptr_t)k;
		give(&s, block, 64, of);
		if (i % 100 == 99)
			slab_leave(&s);
	}
	slab_leave(&s);
	return (void *)wrong;
}

static void test_churn(void)
{
	pthread_t thread[4];
	void *wrong;

	begin();
	for (uintptr_t i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, churns, (void *)(i * 1000));
	for (int i = 0; i < 4; i++) {
		pthread_join(thread[i], &wrong);
		CU_ASSERT_PTR_NULL(wrong);
	}
	end();
	depot_free(NULL);
}

CUNIT_MAIN("event slab", {"sizes", test_sizes}, {"reuse", test_reuse}, {"runs", test_runs},
    {"full first", test_full_first}, {"leave", test_leave}, {"one way", test_one_way},
    {"churn", test_churn})
