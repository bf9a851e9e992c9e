/* SPDX-License-Identifier: MIT */
/*
 * A stage that holds events, in virtual time, for tests of width policies: Poisson arrivals wait in
 * a queue, enter the work of the other side while the width allows, and end there.
 *
 * The other side has `servers` that take `service_s` each, first in, first out; `exponential` makes
 * the times vary. It stops between stop_from_s and stop_until_s. If it has accepted `accepts`
 * events, it refuses the others after 1 ms; it also refuses a random share `refuses` of all.
 */
#ifndef WEIR_TESTS_UNIT_CONTROL_WIDTH_SIM_H
#define WEIR_TESTS_UNIT_CONTROL_WIDTH_SIM_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "control/width.h"

#define SIM_WORK_MAX    8192
#define SIM_SERVERS_MAX 1024

struct sim_work {
	double since_s, end_s;
	bool refused;
};

struct width_sim {
	const struct width_policy *policy;
	_Alignas(16) unsigned char state[WIDTH_STATE_MAX];
	struct width_view v;
	double now_s, next_arrival_s, offered_per_s;
	int64_t ticks; /* so far, ten a second */
	int servers, accepts;
	int refusing; /* events in work that will be refused */
	double service_s, refuses;
	bool exponential;
	double stop_from_s, stop_until_s;
	uint64_t random;
	double free_s[SIM_SERVERS_MAX];     /* when each server is free */
	struct sim_work work[SIM_WORK_MAX]; /* a heap: the first to end comes first */
	double queue_max;
	uint64_t served; /* ended and not refused */
	int reversals, steps, last_direction, widest;
	bool paused; /* the policy is not called */
	bool trace;
	const char *broken; /* a rule that a decision broke, or NULL */
};

static inline double sim_unit(struct width_sim *s)
{
	s->random = s->random * 6364136223846793005ULL + 1442695040888963407ULL;
	return ((double)(s->random >> 33) + 1) / 2147483649.0;
}

static inline void sim_init(struct width_sim *s, const struct width_policy *policy, int servers,
    double service_s, double offered_per_s, uint64_t seed)
{
	memset(s, 0, sizeof(*s));
	s->policy = policy;
	s->servers = servers;
	s->service_s = service_s;
	s->offered_per_s = offered_per_s;
	s->random = seed * 0x9e3779b97f4a7c15ULL;
	s->accepts = SIM_WORK_MAX;
	s->queue_max = 500;
	s->v = (struct width_view){.width = 4, .min = 1, .max = 4096};
}

static inline void sim_push(struct width_sim *s, struct sim_work w)
{
	int at = s->v.in_work++;

	for (; at > 0 && s->work[(at - 1) / 2].end_s > w.end_s; at = (at - 1) / 2)
		s->work[at] = s->work[(at - 1) / 2];
	s->work[at] = w;
}

static inline struct sim_work sim_pop(struct width_sim *s)
{
	struct sim_work first = s->work[0], w = s->work[--s->v.in_work];
	int at = 0, child;

	while ((child = 2 * at + 1) < s->v.in_work) {
		child +=
		    child + 1 < s->v.in_work && s->work[child + 1].end_s < s->work[child].end_s;
		if (s->work[child].end_s >= w.end_s)
			break;
		s->work[at] = s->work[child];
		at = child;
	}
	s->work[at] = w;
	return first;
}

/* Let the event waiting longest start in the other side. */
static inline void sim_enter(struct width_sim *s)
{
	double took_s = s->service_s * (s->exponential ? -log(sim_unit(s)) : 1);
	bool full = s->v.in_work - s->refusing >= s->accepts;
	int at = 0;

	s->v.queue_length--;
	if (full || sim_unit(s) < s->refuses) {
		s->refusing++;
		sim_push(s, (struct sim_work){s->now_s, s->now_s + 0.001, true});
		return;
	}
	for (int i = 1; i < s->servers; i++)
		if (s->free_s[i] < s->free_s[at])
			at = i;
	double start_s = fmax(s->now_s, s->free_s[at]);
	if (start_s >= s->stop_from_s && start_s < s->stop_until_s)
		start_s = s->stop_until_s;
	s->free_s[at] = start_s + took_s;
	sim_push(s, (struct sim_work){s->now_s, s->free_s[at], false});
}

static inline void sim_end(struct width_sim *s)
{
	struct sim_work w = sim_pop(s);

	if (w.refused) {
		s->refusing--;
		s->v.refused++;
	} else {
		s->v.ended++;
		s->v.service_ns += (uint64_t)((w.end_s - w.since_s) * 1e9);
		s->served++;
	}
}

/* Check what must hold for every decision. Returns the broken rule, or NULL. */
static inline const char *sim_broken_by(const struct width_sim *s, const struct width_decision *d)
{
	int widest = s->widest > s->v.width ? s->widest : s->v.width;

	if (d->width < s->v.min || d->width > s->v.max || d->target < s->v.min ||
	    d->target > s->v.max)
		return "within the bounds";
	if (d->width != s->v.width && (d->width > s->v.width) != (d->target > s->v.width) &&
	    d->target != s->v.width)
		return "every part of a step goes towards its target";
	if (d->target > 2 * widest)
		return "never wider than twice what was tried";
	if (s->service_s >= 0.5 && d->width > 1.5 * s->v.width + 1)
		return "a step is spread over a service time";
	return s->broken;
}

static inline void sim_decide(struct width_sim *s)
{
	struct width_decision d = {0};

	if (s->paused ||
	    !s->policy->decide(s->state, &s->v, (int64_t)(s->now_s * 1e9) + NS_PER_S, &d))
		return;
	s->broken = sim_broken_by(s, &d);
	if (d.rule[0]) {
		int direction = d.target > s->v.width ? 1 : -1;
		s->reversals += s->last_direction && direction != s->last_direction;
		s->last_direction = direction;
		s->steps++;
		if (s->trace)
			printf("%7.2f s: %d -> %d: %s\n", s->now_s, s->v.width, d.target, d.rule);
	}
	s->v.width = d.width;
	if (d.width > s->widest)
		s->widest = d.width;
}

/* Run until `until_s`; returns the events served per second. */
static inline double sim_run(struct width_sim *s, double until_s)
{
	uint64_t served = s->served;
	double from_s = s->now_s;

	while (s->now_s < until_s) {
		double end_s = s->v.in_work > 0 ? s->work[0].end_s : INFINITY;
		double tick_s = (double)(s->ticks + 1) / 10;
		double next_s = fmin(fmin(end_s, s->next_arrival_s), fmin(tick_s, until_s));
		s->now_s = next_s;
		if (next_s == end_s) {
			sim_end(s);
		} else if (next_s == s->next_arrival_s) {
			s->next_arrival_s += -log(sim_unit(s)) / s->offered_per_s;
			if (s->v.queue_length < s->queue_max)
				s->v.queue_length++;
		} else if (next_s == tick_s) {
			s->ticks++;
			sim_decide(s);
		}
		while (s->v.in_work < s->v.width && s->v.queue_length > 0)
			sim_enter(s);
	}
	return (double)(s->served - served) / (until_s - from_s);
}

#endif
