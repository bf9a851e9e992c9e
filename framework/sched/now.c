/* SPDX-License-Identifier: MIT */
/* Tells what a core does now; see now.h. */
#include "sched/now.h"

#include "sched/cores.h"

static uint64_t booked_ns(const struct core_group *group, int k)
{
	uint64_t sum = 0;

	for (int i = 0; i < group->n_stages; i++)
		sum += book_read(&group->core[k].book[i].busy_ns);
	return sum;
}

void now_clear(struct now *now)
{
	if (atomic_load(&now->call_ns) != 0)
		atomic_store(&now->call_ns, 0);
}

void now_look(struct core_group *group, int k, const struct thread *t)
{
	struct now *now = &group->watched[k].now;
	uint64_t booked = booked_ns(group, k); /* before the look at calls, see file top */

	for (int i = 0; i < group->n_stages; i++) {
		const struct local *l = t->local[group->pool->sinks[i]->id];
		int64_t call_ns =
		    l ? atomic_load_explicit(&l->book.running_since_ns, memory_order_acquire) : 0;
		if (call_ns == 0)
			continue;
		atomic_store(&now->place, i);
		atomic_store(&now->booked_ns, booked);
		atomic_store(&now->call_ns, call_ns);
		return;
	}
}

void now_sleeps(
    struct now_sleep *sleep, const struct weir_stage *stage, const struct blocked *blocked)
{
	int64_t since_ns = blocked->is ? blocked->sleep_ns - blocked->slept_ns : 0;

	if (since_ns == atomic_load(&sleep->since_ns))
		return;
	if (since_ns != 0)
		atomic_store(&sleep->stage, stage);
	atomic_store(&sleep->since_ns, since_ns);
}

/* How long the handler of the batch under way at stage `i` has run. */
static int64_t under_way_ns(const struct core_group *group, int k, int i, int64_t now_ns)
{
	const struct now *now = &group->watched[k].now;
	int64_t call_ns = atomic_load(&now->call_ns);

	if (call_ns == 0 || call_ns >= now_ns || atomic_load(&now->place) != i)
		return 0;
	bool same = atomic_load(&now->booked_ns) == booked_ns(group, k);
	return same && atomic_load(&now->call_ns) == call_ns ? now_ns - call_ns : 0;
}

uint64_t now_busy_ns(struct core_group *group, int k, int i, uint64_t ended_ns, int64_t now_ns)
{
	_Atomic uint64_t *shown_ns = &group->watched[k].now.shown_ns[i];
	uint64_t busy_ns = ended_ns + (uint64_t)under_way_ns(group, k, i, now_ns);
	uint64_t was_ns = atomic_load(shown_ns);

	while (was_ns < busy_ns && !atomic_compare_exchange_weak(shown_ns, &was_ns, busy_ns))
		continue;
	return was_ns < busy_ns ? busy_ns : was_ns;
}

int64_t now_blocked_ns(
    const struct now_sleep *sleep, int64_t now_ns, const struct weir_stage **stage)
{
	int64_t since_ns = atomic_load(&sleep->since_ns);

	*stage = since_ns != 0 ? atomic_load(&sleep->stage) : NULL;
	if (since_ns == 0 || since_ns >= now_ns || atomic_load(&sleep->since_ns) != since_ns) {
		*stage = NULL; /* the sleep has just ended or begun */
		return 0;
	}
	return now_ns - since_ns;
}
