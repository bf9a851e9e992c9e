/* SPDX-License-Identifier: MIT */
/* Finds cores that sleep in a handler; see blocked.h. */
#include "sched/blocked.h"

/* The sleep at the last look has ended, in the same call; `sight` is of now. */
static void add_sleep(struct blocked *b, const struct blocked_sight *sight, int64_t now_ns)
{
	int64_t awake_ns = sight->ran_ns > b->ran_ns ? (int64_t)(sight->ran_ns - b->ran_ns) : 0;

	if (now_ns - b->sleep_ns > awake_ns)
		b->slept_ns += now_ns - b->sleep_ns - awake_ns;
}

bool blocked_look(struct blocked *b, const struct blocked_sight *sight, int64_t now_ns)
{
	bool was = b->is;
	bool sleeps = sight->asleep && sight->since_ns != 0;
	bool still =
	    b->sleep_ns != 0 && sight->since_ns == b->call_ns && sight->ran_ns == b->ran_ns;

	if (sight->since_ns != b->call_ns)
		b->slept_ns = 0;
	else if (b->sleep_ns != 0 && (!sleeps || !still))
		add_sleep(b, sight, now_ns);
	b->call_ns = sight->since_ns;
	b->ran_ns = sight->ran_ns;
	if (!sleeps)
		b->sleep_ns = 0;
	else if (!still)
		b->sleep_ns = now_ns;
	b->is = sleeps && now_ns - b->sleep_ns >= BLOCKED_NS;
	return b->is != was;
}

int64_t blocked_next_ns(const struct blocked *b, int64_t now_ns)
{
	return b->sleep_ns != 0 && !b->is ? now_ns + BLOCKED_NS : INT64_MAX;
}
