/* SPDX-License-Identifier: MIT */
/*
 * A lazy timer wheel with two levels; see timer.h.
 *
 * A timer is filed under the tick of its `at_ns`, rounded up, so it never fires early. Level 0
 * holds the ticks [tick, tick + 512); tick t is in slot t % 512. Level 1 holds the later blocks of
 * 512 ticks; block b is in slot b % 512. When a block starts, its timers are filed again: in level
 * 0, or in a later block if they have been moved meanwhile.
 *
 * A bit per slot indicates whether the slot may hold timers, so an idle loop finds its next wake-up
 * by checking at most 16 words, and sleeps through empty slots. A bit is cleared when its slot is
 * processed, and all bits are cleared when the last timer is cancelled.
 */
#include "io/timer.h"

#include <string.h>

#include <weir/error.h>

#define WORDS (TIMER_SLOTS / 64)

void timer_wheel_init(struct timer_wheel *w, int64_t tick_ns, int64_t now_ns)
{
	memset(w, 0, sizeof(*w));
	w->tick_ns = tick_ns;
	w->tick = w->floor = now_ns / tick_ns;
	w->next_tick = INT64_MAX;
}

static void link_in(struct timer_wheel *w, int level, int64_t number, struct weir_timer *t)
{
	unsigned i = (uint64_t)number % TIMER_SLOTS;
	struct weir_timer **head = &w->slot[level][i];

	t->next = *head;
	t->prev = head;
	if (t->next)
		t->next->prev = &t->next;
	*head = t;
	w->used[level][i / 64] |= 1ULL << (i % 64);
}

/* Put `t` into the slot for its at_ns, but not into one before `floor`. */
static void file(struct timer_wheel *w, struct weir_timer *t)
{
	int64_t tick = t->at_ns / w->tick_ns + (t->at_ns % w->tick_ns > 0), block;
	int64_t present = w->tick / TIMER_SLOTS;

	if (tick < w->floor)
		tick = w->floor;
	block = tick / TIMER_SLOTS;
	if (tick - w->tick < TIMER_SLOTS) {
		link_in(w, 0, tick, t);
	} else {
		if (block - present >= TIMER_SLOTS)
			block = present + TIMER_SLOTS - 1;
		link_in(w, 1, block, t);
		tick = block * TIMER_SLOTS;
	}
	if (tick < w->next_tick)
		w->next_tick = tick;
}

static void unlink_from(struct weir_timer *t)
{
	*t->prev = t->next;
	if (t->next)
		t->next->prev = t->prev;
	t->next = NULL;
	t->prev = NULL;
}

void timer_wheel_set(struct timer_wheel *w, struct weir_timer *t, int64_t at_ns)
{
	WEIR_ASSERT(t->fire != NULL && at_ns >= 0);
	if (t->prev && at_ns >= t->at_ns) {
		t->at_ns = at_ns;
		return;
	}
	if (t->prev)
		unlink_from(t);
	else
		w->count++;
	t->at_ns = at_ns;
	file(w, t);
}

void timer_wheel_cancel(struct timer_wheel *w, struct weir_timer *t)
{
	if (!t->prev)
		return;
	unlink_from(t);
	if (--w->count > 0)
		return;
	memset(w->used, 0, sizeof(w->used));
	w->next_tick = INT64_MAX;
}

/* Return the distance in slots from `from` to the first used slot of `level`, 0 if that is slot
 * `from`; -1 if no slot is used. */
static int distance(const struct timer_wheel *w, int level, int from)
{
	for (int i = 0; i <= WORDS; i++) {
		int word = (from / 64 + i) % WORDS;
		uint64_t bits = w->used[level][word];
		if (i == 0)
			bits &= ~0ULL << (from % 64);
		if (i == WORDS)
			bits &= ~(~0ULL << (from % 64));
		if (bits)
			return (word * 64 + __builtin_ctzll(bits) - from + TIMER_SLOTS) %
			       TIMER_SLOTS;
	}
	return -1;
}

/* Return the first tick at which a slot of either level must be processed. */
static int64_t find_next(const struct timer_wheel *w)
{
	int64_t next = INT64_MAX, block = w->tick / TIMER_SLOTS;
	int near = distance(w, 0, (int)(w->tick % TIMER_SLOTS));
	int far = distance(w, 1, (int)(block % TIMER_SLOTS));

	if (w->count == 0)
		return INT64_MAX;
	if (near >= 0)
		next = w->tick + near;
	if (far >= 0 && (block + far) * TIMER_SLOTS < next)
		next = (block + far) * TIMER_SLOTS;
	return next < w->tick ? w->tick : next;
}

/* Empty a slot. Returns its list of timers. */
static struct weir_timer *empty_slot(struct timer_wheel *w, int level, int64_t number)
{
	unsigned i = (uint64_t)number % TIMER_SLOTS;
	struct weir_timer *list = w->slot[level][i];

	w->slot[level][i] = NULL;
	w->used[level][i / 64] &= ~(1ULL << (i % 64));
	return list;
}

/* Process every timer of a slot: fire those that are due, and file the others again. The list is
 * linked to a local head, so callbacks may cancel timers that are still in the list. */
static void run_slot(
    struct timer_wheel *w, int level, int64_t number, int64_t now_ns, struct weir_loop *loop)
{
	struct weir_timer *list = empty_slot(w, level, number);

	if (list)
		list->prev = &list;
	while (list) {
		struct weir_timer *t = list;
		unlink_from(t);
		if (t->at_ns > now_ns) {
			file(w, t);
			continue;
		}
		w->count--;
		t->fire(loop, t);
	}
}

void timer_wheel_run(struct timer_wheel *w, int64_t now_ns, struct weir_loop *loop)
{
	int64_t now_tick = now_ns / w->tick_ns;

	/* a timer that a callback sets for the current time fires in the next iteration */
	w->floor = now_tick + 1;
	while (w->next_tick <= now_tick) {
		int64_t tick = w->next_tick;
		w->tick = tick;
		if (tick % TIMER_SLOTS == 0)
			run_slot(w, 1, tick / TIMER_SLOTS, now_ns, loop);
		w->tick = tick + 1;
		run_slot(w, 0, tick, now_ns, loop);
		w->next_tick = find_next(w);
	}
	/* All timers are filed at or after next_tick, so the wheel may advance to the current
	 * tick. */
	if (w->tick < now_tick)
		w->tick = now_tick;
	w->floor = w->tick;
}
