/* SPDX-License-Identifier: MIT */
/* Memory is short when a thread takes memory for events: it gets none, what is there is used, and it gets
 * some again later. */
#include "cunit_main.h"
#include "event/slab.h"
#include "fault/inject.h"

#define LINE WEIR_CACHE_LINE
#define MOST ((size_t)SLAB_SIZES * LINE)

/* From now on allocations fail (`on`) or succeed. */
static void starve(bool on)
{
	atomic_store(&fault_goes_on, on);
	atomic_store(&fault_alloc_in, on ? 0 : -1);
}

static void test_depot(void)
{
	starve(true);
	CU_ASSERT_PTR_NULL(depot_new());
	starve(false);
}

static void test_take(void)
{
	struct slab s = {.depot = depot_new()}, other = s;
	static void *block[70000 / WEIR_CACHE_LINE];
	int n = 0;

	starve(true);
	CU_ASSERT_PTR_NULL(slab_take(&s, LINE));
	CU_ASSERT_PTR_NULL(slab_take(&s, MOST));
	CU_ASSERT_PTR_NULL(slab_take(&s, MOST + 1));
	starve(false);
	void *p = slab_take(&s, MOST);
	CU_ASSERT_PTR_NOT_NULL_FATAL(p);
	starve(true);
	if (!SLAB_MALLOC) {
		/* the thread has the rest of the chunk as blocks of this size */
		while ((block[n] = slab_take(&s, MOST)))
			n++;
		CU_ASSERT_EQUAL(n, 62); /* 64 KiB less a line, and `p` */
		/* the lines that are left of the chunk serve smaller blocks */
		CU_ASSERT_PTR_NOT_NULL(slab_take(&other, LINE));
		slab_leave(&other);
	}
	CU_ASSERT_PTR_NULL(slab_take(&s, MOST));
	/* what is freed is there again */
	slab_give(&s, p, MOST);
	if (!SLAB_MALLOC)
		CU_ASSERT_PTR_EQUAL(slab_take(&s, MOST), p);
	starve(false);
	void *q = slab_take(&s, MOST);
	CU_ASSERT_PTR_NOT_NULL(q);
	slab_give(&s, q, MOST);
	if (!SLAB_MALLOC)
		slab_give(&s, p, MOST);
	for (int i = 0; i < n; i++)
		slab_give(&s, block[i], MOST);
	slab_leave(&s);
	depot_free(s.depot);
}

int main(void)
{
	static const struct cunit_case cases[] = {{"depot", test_depot}, {"take", test_take}};

	atomic_store(&fault_of_mine, false);
	return cunit_run("fault_slab", cases, sizeof(cases) / sizeof(cases[0]));
}
