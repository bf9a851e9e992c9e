/* SPDX-License-Identifier: MIT */
/* Slabs: pieces do not overlap, are reused last in first out, and the mappings of a burst are
 * unmapped. */
#include "http/request/slab.h"

#include <stdint.h>
#include <string.h>

#include "cunit_main.h"

enum { N = 1000, PIECE = 3584, KEEP = 100 };

struct out {
	unsigned char *p;
	struct slab *slab;
};

static struct out out[N];

static void get(struct slabs *s, struct out *o)
{
	o->p = slab_get(s, &o->slab);
	CU_ASSERT_PTR_NOT_NULL_FATAL(o->p);
}

static void test_distinct(void)
{
	struct slabs s;

	slabs_init(&s, PIECE, KEEP);
	for (int i = 0; i < N; i++) {
		get(&s, &out[i]);
		CU_ASSERT_EQUAL((uintptr_t)out[i].p % 64, 0);
		memset(out[i].p, i % 251, PIECE);
	}
	for (int i = 0; i < N; i++)
		CU_ASSERT(out[i].p[0] == i % 251 && out[i].p[PIECE - 1] == i % 251);
	for (int i = 0; i < N; i++)
		slab_put(&s, out[i].slab, out[i].p);
	/* KEEP pieces stay free, and at most two slabs more. */
	CU_ASSERT(s.n_free >= KEEP && s.n_free <= KEEP + 2 * SLAB_PIECES);
	slabs_fini(&s);
	CU_ASSERT_EQUAL(s.n_free, 0);
	CU_ASSERT_PTR_NULL(s.partial);
}

static void test_reuse(void)
{
	struct slabs s;
	struct out a, b;

	slabs_init(&s, PIECE, KEEP);
	get(&s, &a);
	slab_put(&s, a.slab, a.p);
	get(&s, &b);
	CU_ASSERT_PTR_EQUAL(a.p, b.p); /* still in the CPU cache */
	CU_ASSERT_EQUAL(s.n_free, SLAB_PIECES - 1);
	slab_put(&s, b.slab, b.p);
	slabs_fini(&s);
}

/* Pieces are taken and returned in any order; the number of free ones is right at every step. */
static void test_random(void)
{
	struct slabs s;
	int held = 0;
	unsigned seed = 1;

	memset(out, 0, sizeof(out));
	slabs_init(&s, PIECE, KEEP);
	for (int step = 0; step < 50000; step++) {
		seed = seed * 1103515245u + 12345u;
		struct out *o = &out[seed / 65536 % N];
		if (o->p) {
			CU_ASSERT_EQUAL(*(struct out **)(void *)o->p, o);
			slab_put(&s, o->slab, o->p);
			o->p = NULL;
			held--;
		} else {
			get(&s, o);
			*(struct out **)(void *)o->p = o;
			held++;
		}
		CU_ASSERT_EQUAL((s.n_free + held) % SLAB_PIECES, 0);
	}
	for (int i = 0; i < N; i++)
		if (out[i].p)
			slab_put(&s, out[i].slab, out[i].p);
	slabs_fini(&s);
	CU_ASSERT_EQUAL(s.n_free, 0);
}

CUNIT_MAIN(
    "slab", {"distinct pieces", test_distinct}, {"reuse", test_reuse}, {"random", test_random})
