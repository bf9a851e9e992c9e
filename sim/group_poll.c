/* SPDX-License-Identifier: MIT */
/* Sources in a core group: each core reads requests between its batches; see group.h. */
#include "base/clock.h"
#include "group.h"
#include "load/rng.h"

/* The same as HOST_NS and HOST_EVENTS of sched/host.h. */
#define POLL_NS     NS_PER_MS
#define POLL_EVENTS 256

void group_arrive(struct sim *s, struct group *g, uint32_t slot)
{
	const struct request *r = &s->req[slot];
	uint64_t who = r->user == NO_USER ? r->serial : r->user; /* has a connection */
	int k = (int)rng_below(weir_random_at(s->users_key, ~who), (uint64_t)g->conf->cores);

	lane_push(s, &g->core[k].socket, slot);
	s->in_sockets++;
	if (g->core[k].idle)
		group_wake(s, g, k);
}

static int first_stage(const struct sim *s, uint32_t slot)
{
	return s->conf->route[s->req[slot].route].stage[0];
}

/* Offer the requests that go to the stage of the first one, a batch at most. */
static void read_some(struct sim *s, struct group_core *core)
{
	uint32_t slot[WEIR_BATCH_MAX];
	int stage = first_stage(s, core->socket.head), n = 0;

	while (n < WEIR_BATCH_MAX && core->socket.n > 0 &&
	       first_stage(s, core->socket.head) == stage) {
		slot[n] = lane_pop(s, &core->socket);
		laws_serial_sent(s, NULL, slot[n++]);
		s->in_sockets--;
	}
	admit_offer(s, stage, slot, n);
	laws_check(s, stage);
}

bool group_poll(struct sim *s, struct group *g, struct group_core *core, bool now)
{
	bool any = core->socket.n > 0;

	if (!now && s->now_ns - core->polled_ns < POLL_NS && core->since_poll < POLL_EVENTS)
		return false;
	core->polled_ns = s->now_ns;
	core->since_poll = 0;
	g->sender = core;
	g->reads = true;
	while (core->socket.n > 0)
		read_some(s, core);
	g->reads = false;
	return any;
}
