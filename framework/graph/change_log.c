/* SPDX-License-Identifier: MIT */
/* The log of operator changes; see change_log.h. */
#include "graph/change_log.h"

#include "base/clock.h"

void change_log_init(struct change_log *a, void (*forget)(void *before))
{
	lock_init(&a->lock);
	a->forget = forget;
}

void change_log_fini(struct change_log *a)
{
	for (int i = 0; i < CHANGE_LOG_SIZE; i++)
		a->forget(a->before[i]);
	lock_fini(&a->lock);
}

uint64_t change_log_add(struct change_log *a, struct weir_change act, void *before)
{
	act.at_ns = clock_now_ns();
	act.wall_ns = clock_wall_ns();
	lock_take(&a->lock);
	act.id = ++a->total;
	void *old = a->before[act.id % CHANGE_LOG_SIZE];
	a->before[act.id % CHANGE_LOG_SIZE] = before;
	a->ring[act.id % CHANGE_LOG_SIZE] = act;
	lock_release(&a->lock);
	a->forget(old);
	return act.id;
}

void change_log_remember(struct change_log *a, struct weir_change act)
{
	act.at_ns = 0;
	lock_take(&a->lock);
	act.id = ++a->total;
	void *old = a->before[act.id % CHANGE_LOG_SIZE];
	a->before[act.id % CHANGE_LOG_SIZE] = NULL;
	a->ring[act.id % CHANGE_LOG_SIZE] = act;
	lock_release(&a->lock);
	a->forget(old);
}

/* Returns the number of changes in the ring. Called with the lock held. */
static uint64_t kept(const struct change_log *a)
{
	return a->total < CHANGE_LOG_SIZE ? a->total : CHANGE_LOG_SIZE;
}

bool change_log_last(struct change_log *a, struct weir_change *act, void **before)
{
	bool found = false;

	lock_take(&a->lock);
	for (uint64_t i = 0; i < kept(a) && !found; i++) {
		uint64_t at = (a->total - i) % CHANGE_LOG_SIZE;
		found = a->before[at] && !a->ring[at].undone;
		if (found) {
			*act = a->ring[at];
			*before = a->before[at];
		}
	}
	lock_release(&a->lock);
	return found;
}

void change_log_undone(struct change_log *a, uint64_t id)
{
	lock_take(&a->lock);
	if (a->ring[id % CHANGE_LOG_SIZE].id == id)
		a->ring[id % CHANGE_LOG_SIZE].undone = true;
	lock_release(&a->lock);
}

void change_log_set_aside(struct change_log *a, uint64_t id)
{
	void *before = NULL;

	lock_take(&a->lock);
	if (a->ring[id % CHANGE_LOG_SIZE].id == id) {
		before = a->before[id % CHANGE_LOG_SIZE];
		a->before[id % CHANGE_LOG_SIZE] = NULL;
	}
	lock_release(&a->lock);
	a->forget(before);
}

void *change_log_before(struct change_log *a, uint64_t id)
{
	lock_take(&a->lock);
	void *before = id > 0 && a->ring[id % CHANGE_LOG_SIZE].id == id
			   ? a->before[id % CHANGE_LOG_SIZE]
			   : NULL;
	lock_release(&a->lock);
	return before;
}

int change_log_read(struct change_log *a, struct weir_change *out, int n)
{
	int i = 0;

	lock_take(&a->lock);
	for (; i < n && (uint64_t)i < kept(a); i++)
		out[i] = a->ring[(a->total - (uint64_t)i) % CHANGE_LOG_SIZE];
	lock_release(&a->lock);
	return i;
}

void change_log_copy(struct change_log *to, struct change_log *from,
    void *(*copy)(void *arg, const void *before), void *arg)
{
	lock_take(&from->lock);
	to->total = from->total;
	for (int i = 0; i < CHANGE_LOG_SIZE; i++) {
		to->ring[i] = from->ring[i];
		to->before[i] = from->before[i] ? copy(arg, from->before[i]) : NULL;
	}
	lock_release(&from->lock);
}

uint64_t change_log_total(struct change_log *a)
{
	lock_take(&a->lock);
	uint64_t total = a->total;
	lock_release(&a->lock);
	return total;
}
