/* SPDX-License-Identifier: MIT */
/* The log of operator changes; see acts.h. */
#include "operate/acts.h"

#include "base/clock.h"

void acts_init(struct acts *a, void (*forget)(void *before))
{
	lock_init(&a->lock);
	a->forget = forget;
}

void acts_fini(struct acts *a)
{
	for (int i = 0; i < ACTS_SIZE; i++)
		a->forget(a->before[i]);
	lock_fini(&a->lock);
}

uint64_t acts_add(struct acts *a, struct weir_act act, void *before)
{
	act.at_ns = clock_now_ns();
	act.wall_ns = clock_wall_ns();
	lock_take(&a->lock);
	act.id = ++a->total;
	void *old = a->before[act.id % ACTS_SIZE];
	a->before[act.id % ACTS_SIZE] = before;
	a->ring[act.id % ACTS_SIZE] = act;
	lock_release(&a->lock);
	a->forget(old);
	return act.id;
}

/* Returns the number of changes in the ring. Called with the lock held. */
static uint64_t kept(const struct acts *a)
{
	return a->total < ACTS_SIZE ? a->total : ACTS_SIZE;
}

bool acts_last(struct acts *a, struct weir_act *act, void **before)
{
	bool found = false;

	lock_take(&a->lock);
	for (uint64_t i = 0; i < kept(a) && !found; i++) {
		uint64_t at = (a->total - i) % ACTS_SIZE;
		found = a->before[at] && !a->ring[at].undone;
		if (found) {
			*act = a->ring[at];
			*before = a->before[at];
		}
	}
	lock_release(&a->lock);
	return found;
}

void acts_undone(struct acts *a, uint64_t id)
{
	lock_take(&a->lock);
	if (a->ring[id % ACTS_SIZE].id == id)
		a->ring[id % ACTS_SIZE].undone = true;
	lock_release(&a->lock);
}

void acts_set_aside(struct acts *a, uint64_t id)
{
	void *before = NULL;

	lock_take(&a->lock);
	if (a->ring[id % ACTS_SIZE].id == id) {
		before = a->before[id % ACTS_SIZE];
		a->before[id % ACTS_SIZE] = NULL;
	}
	lock_release(&a->lock);
	a->forget(before);
}

void *acts_before(struct acts *a, uint64_t id)
{
	lock_take(&a->lock);
	void *before =
	    id > 0 && a->ring[id % ACTS_SIZE].id == id ? a->before[id % ACTS_SIZE] : NULL;
	lock_release(&a->lock);
	return before;
}

int acts_read(struct acts *a, struct weir_act *out, int n)
{
	int i = 0;

	lock_take(&a->lock);
	for (; i < n && (uint64_t)i < kept(a); i++)
		out[i] = a->ring[(a->total - (uint64_t)i) % ACTS_SIZE];
	lock_release(&a->lock);
	return i;
}

void acts_copy(
    struct acts *to, struct acts *from, void *(*copy)(void *arg, const void *before), void *arg)
{
	lock_take(&from->lock);
	to->total = from->total;
	for (int i = 0; i < ACTS_SIZE; i++) {
		to->ring[i] = from->ring[i];
		to->before[i] = from->before[i] ? copy(arg, from->before[i]) : NULL;
	}
	lock_release(&from->lock);
}

uint64_t acts_total(struct acts *a)
{
	lock_take(&a->lock);
	uint64_t total = a->total;
	lock_release(&a->lock);
	return total;
}
