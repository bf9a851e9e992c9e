/* SPDX-License-Identifier: MIT */
/* Families: sets of events that end together; see weir/op.h. A family lives as long as it has
 * members, references of stages, or families within it. */
#include <stdlib.h>

#include "event/op.h"

struct weir_family {
	WEIR_ALIGNED atomic_long refs;
	atomic_bool over;
	struct weir_family *within; /* a reference; constant */
};

atomic_bool op_families;

struct weir_family *weir_family_new(struct weir_family *within)
{
	struct weir_family *f = aligned_alloc(WEIR_CACHE_LINE, sizeof(*f));

	if (!f)
		return NULL;
	atomic_init(&f->refs, 1);
	atomic_init(&f->over, false);
	f->within = within;
	family_take(within, 1);
	atomic_store_explicit(&op_families, true, memory_order_relaxed);
	return f;
}

void family_take(struct weir_family *f, int n)
{
	if (f)
		atomic_fetch_add_explicit(&f->refs, n, memory_order_relaxed);
}

void weir_family_put(struct weir_family *f)
{
	while (f && atomic_fetch_sub_explicit(&f->refs, 1, memory_order_acq_rel) == 1) {
		struct weir_family *within = f->within;
		free(f);
		f = within;
	}
}

void weir_family_join(struct weir_family *f, struct weir_event *ev)
{
	if (!f)
		return;
	WEIR_ASSERT(ev->type->op != 0 && op_of(ev)->family == NULL);
	family_take(f, 1);
	op_of(ev)->family = f;
}

void weir_family_end(struct weir_family *f)
{
	if (f)
		atomic_store_explicit(&f->over, true, memory_order_release);
}

bool weir_family_over(const struct weir_family *f)
{
	for (; f; f = f->within)
		if (atomic_load_explicit(&f->over, memory_order_acquire))
			return true;
	return false;
}

struct weir_family *weir_family_of(const struct weir_event *ev)
{
	return ev->type->op ? op_of(ev)->family : NULL;
}
