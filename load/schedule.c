/* SPDX-License-Identifier: MIT */
/*
 * Generates arrivals one by one; see schedule.h.
 *
 * The run is a sequence of segments; in each segment the rate is linear in time. Without bursts, a
 * segment is a phase. With bursts, a segment is a part of a phase in which the state of the Markov
 * chain does not change. The chain runs in real time: a burst of 100 ms takes 100 ms at any rate.
 *
 * `units` is the expected number of arrivals in the segment, the integral of the rate. `unit` is
 * the value of this integral at the next arrival. Gaps are added to `unit`. If `unit` exceeds
 * `units`, the excess is carried over to the next segment, so a gap may span segments. The time of
 * an arrival is found by inverting the integral a t + s t^2 / 2 exactly, where a is the rate at the
 * start of the segment and s its slope (Cinlar 1975, Introduction to Stochastic Processes, 4.7).
 *
 * Numbers are drawn by position (rng.h): arrival k has the same class, request and random bits at
 * any rate and in the schedules of all threads.
 */
#include "load/schedule.h"

#include <stdlib.h>

#include <weir/error.h>

#include "load/pick.h"
#include "load/rng.h"

#define NS_PER_S 1e9

/* Streams of random numbers. Keys are numbered from 1, since the closed loop uses key 0 of the seed
 * (worker_tickets.c). */
enum stream { STREAM_GAP, STREAM_STATE, STREAM_CLASS, STREAM_REQUEST, STREAM_OWN, N_STREAMS };

struct load_schedule {
	const struct load_plan *plan;
	uint64_t key[N_STREAMS];
	uint64_t number;

	/* ---- the current segment ---- */
	int phase;
	int64_t phase_from_ns, phase_to_ns;
	int64_t from_ns, to_ns;
	double rate_per_s, slope_per_s2; /* at from_ns, including bursts */
	double units, unit;

	/* ---- the Markov chain ---- */
	bool burst;
	int64_t state_to_ns; /* INT64_MAX without bursts */
	uint64_t n_states;

	struct pick class_pick, pick[LOAD_CLASSES_MAX];
	uint64_t in_class[LOAD_CLASSES_MAX]; /* arrivals so far; used only if in_order */
};

/* ---- segments ---- */

static void next_state(struct load_schedule *s)
{
	const struct load_plan *plan = s->plan;
	double mean_ns = (double)plan->burst_ns;

	s->burst = !s->burst;
	if (!s->burst)
		mean_ns *= (1 - plan->burst_share) / plan->burst_share;
	double ns = mean_ns * rng_exp(weir_random_at(s->key[STREAM_STATE], s->n_states++));
	int64_t left_ns = INT64_MAX - s->from_ns;
	s->state_to_ns = ns < (double)left_ns ? s->from_ns + 1 + (int64_t)ns : INT64_MAX;
}

/* Draw the first state from the stationary distribution of the chain. */
static void first_state(struct load_schedule *s)
{
	s->state_to_ns = INT64_MAX;
	if (s->plan->arrivals != LOAD_BURSTS || s->plan->burst_share <= 0)
		return;
	double where = weir_random_unit(weir_random_at(s->key[STREAM_STATE], s->n_states++));
	s->burst = where > s->plan->burst_share; /* next_state flips it */
	next_state(s);
}

/* Return the rate in the current state divided by the mean rate. */
static double state_factor(const struct load_schedule *s)
{
	const struct load_plan *plan = s->plan;

	if (s->state_to_ns == INT64_MAX && s->n_states == 0)
		return 1;
	if (s->burst)
		return plan->burst_factor;
	return (1 - plan->burst_factor * plan->burst_share) / (1 - plan->burst_share);
}

static void set_rates(struct load_schedule *s)
{
	const struct load_phase *phase = &s->plan->phase[s->phase];
	double factor = state_factor(s), from = phase->from_per_s, rise = phase->to_per_s - from;
	double length_ns = (double)phase->for_ns, segment_ns = (double)(s->to_ns - s->from_ns);

	s->rate_per_s =
	    factor * (from + rise * (double)(s->from_ns - s->phase_from_ns) / length_ns);
	s->slope_per_s2 = factor * rise / length_ns * NS_PER_S;
	double middle_per_s = s->rate_per_s + factor * rise * segment_ns / length_ns / 2;
	s->units = middle_per_s * segment_ns / NS_PER_S; /* exact for constant rates */
}

/* Advance to the next segment. Returns false, and leaves `s` unchanged, at the end of the run. */
static bool next_segment(struct load_schedule *s)
{
	if (s->to_ns == s->phase_to_ns) {
		if (s->phase + 1 >= s->plan->n_phases)
			return false;
		s->phase++;
		s->phase_from_ns = s->phase_to_ns;
		s->phase_to_ns += s->plan->phase[s->phase].for_ns;
	}
	s->unit -= s->units;
	s->from_ns = s->to_ns;
	if (s->from_ns == s->state_to_ns)
		next_state(s);
	s->to_ns = s->phase_to_ns < s->state_to_ns ? s->phase_to_ns : s->state_to_ns;
	set_rates(s);
	return true;
}

/* Return the time at which the integral of the rate reaches `unit`. */
static int64_t time_of(const struct load_schedule *s)
{
	double a = s->rate_per_s, slope = s->slope_per_s2, ns;

	if (slope == 0) {
		ns = s->unit * NS_PER_S / a;
	} else {
		/* the square of the rate at that time */
		double under = a * a + 2 * slope * s->unit;
		ns = 2 * s->unit * NS_PER_S / (a + sqrt(under > 0 ? under : 0));
	}
	int64_t at_ns = s->from_ns + (int64_t)(ns + 0.5);
	/* rounding may have reached the end of the segment */
	return at_ns < s->to_ns ? at_ns : s->to_ns - 1;
}

/* ---- times ---- */

static double gap(const struct load_schedule *s, uint64_t number)
{
	if (s->plan->arrivals == LOAD_UNIFORM)
		return 1;
	return rng_exp(weir_random_at(s->key[STREAM_GAP], number));
}

static bool next_drawn(struct load_schedule *s, int64_t *at_ns)
{
	while (s->unit >= s->units)
		if (!next_segment(s))
			return false;
	*at_ns = time_of(s);
	s->unit += gap(s, s->number + 1);
	return true;
}

static bool next_traced(struct load_schedule *s, int64_t *at_ns)
{
	if (s->number >= s->plan->n_trace)
		return false;
	*at_ns = s->plan->trace_ns[s->number];
	while (*at_ns >= s->phase_to_ns)
		if (!next_segment(s))
			return false;
	return true;
}

bool load_schedule_next(struct load_schedule *s, struct load_arrival *a)
{
	bool traced = s->plan->arrivals == LOAD_TRACE;

	if (!(traced ? next_traced(s, &a->at_ns) : next_drawn(s, &a->at_ns)))
		return false;
	a->number = s->number++;
	a->phase = s->phase;
	a->class_id = (int)pick_at(&s->class_pick, weir_random_at(s->key[STREAM_CLASS], a->number));
	const struct load_class *cls = &s->plan->class[a->class_id];
	uint64_t nth = s->in_class[a->class_id]++;
	a->request = cls->in_order ? (int)(nth % (uint64_t)cls->n_requests)
				   : (int)pick_at(&s->pick[a->class_id],
					 weir_random_at(s->key[STREAM_REQUEST], a->number));
	a->random = weir_random_at(s->key[STREAM_OWN], a->number);
	return true;
}

/* ---- creating and freeing ---- */

static int pick_requests(struct pick *pick, const struct load_class *cls)
{
	double *weight = calloc((size_t)cls->n_requests, sizeof(*weight));
	double before = 0;

	if (!weight)
		return WEIR_ENOMEM;
	for (int i = 0; i < cls->n_requests; i++) {
		weight[i] = cls->request[i].cumulative - before;
		before = cls->request[i].cumulative;
	}
	int rc = pick_init(pick, weight, (uint32_t)cls->n_requests);
	free(weight);
	return rc;
}

static int init_picks(struct load_schedule *s)
{
	double weight[LOAD_CLASSES_MAX];
	int n = s->plan->n_classes;

	for (int c = 0; c < n; c++) {
		const struct load_class *cls = &s->plan->class[c];
		weight[c] = cls->weight;
		if (!cls->in_order && pick_requests(&s->pick[c], cls) != 0)
			return WEIR_ENOMEM;
	}
	return pick_init(&s->class_pick, weight, (uint32_t)n);
}

int load_schedule_new(const struct load_plan *plan, struct load_schedule **out)
{
	struct load_schedule *s = calloc(1, sizeof(*s));

	if (!s)
		return WEIR_ENOMEM;
	s->plan = plan;
	s->phase = -1;
	for (uint64_t i = 0; i < N_STREAMS; i++)
		s->key[i] = rng_key(plan->seed, i + 1);
	if (init_picks(s) != 0) {
		load_schedule_free(s);
		return WEIR_ENOMEM;
	}
	first_state(s);
	s->unit = plan->arrivals == LOAD_UNIFORM ? 0 : gap(s, 0);
	*out = s;
	return 0;
}

void load_schedule_free(struct load_schedule *s)
{
	if (!s)
		return;
	pick_fini(&s->class_pick);
	for (int c = 0; c < LOAD_CLASSES_MAX; c++)
		pick_fini(&s->pick[c]);
	free(s);
}
