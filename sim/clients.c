/* SPDX-License-Identifier: MIT */
/*
 * Simulates the clients: when they send, when they give up, and how they react to responses.
 *
 * Open loop: the gap before arrival number i depends only on i and the seed. It is drawn in units
 * of the mean gap and converted to time with the current rate. If the rate changes within a gap,
 * the rest of the gap is converted with the new rate, so rates that change in steps are exact. The
 * gaps do not depend on the server. Bursts are a Poisson process that switches between two rates
 * after exponential times (MMPP).
 */
#include "world.h"

#include <stdlib.h>

#include "admission/users.h"
#include "base/clock.h"
#include "load/rng.h"

/* Relative jitter of a retry's back-off, in both directions. Without jitter, all requests that
 * failed together would be retried together. */
#define BACKOFF_JITTER 0.5

/* ---- slots ---- */

static uint32_t new_slot(struct sim *s)
{
	uint32_t slot = s->free_req;

	if (slot != NONE) {
		s->free_req = s->req[slot].next;
		return slot;
	}
	uint32_t n = s->n_req ? s->n_req * 2 : 1024;
	struct request *req = n <= STEP_MASK ? realloc(s->req, n * sizeof(*req)) : NULL;
	if (!req) {
		s->rc = WEIR_ENOMEM;
		return NONE;
	}
	for (uint32_t i = n; i-- > s->n_req;) {
		req[i].next = s->free_req;
		s->free_req = i;
	}
	s->req = req;
	s->n_req = n;
	return new_slot(s);
}

static void free_slot(struct sim *s, uint32_t slot)
{
	s->req[slot].next = s->free_req;
	s->free_req = slot;
}

/* ---- rates ---- */

/* Return the source's rate at `at_ns`, and in *until_ns a time until which it does not change. */
static double rate_now(const struct sim *s, struct source *src, int64_t at_ns, int64_t *until_ns)
{
	const struct sim_source *c = src->conf;
	double rate_per_s = c->rate_per_s;

	while (src->phase + 1 < SIM_PHASES_MAX &&
	       c->phase[src->phase + 1].at_ns > c->phase[src->phase].at_ns &&
	       c->phase[src->phase + 1].at_ns <= at_ns)
		src->phase++;
	const struct sim_phase *p = &c->phase[src->phase], *next = p + 1;
	bool more = src->phase + 1 < SIM_PHASES_MAX && next->at_ns > p->at_ns;
	*until_ns = more ? next->at_ns : s->end_ns;
	if (p->factor > 0 || p->at_ns > 0)
		rate_per_s *= at_ns >= p->at_ns ? p->factor : 1;
	if (at_ns < p->at_ns)
		*until_ns = p->at_ns;
	if (c->arrivals != SIM_BURSTS)
		return rate_per_s;
	if (src->turn_ns < *until_ns)
		*until_ns = src->turn_ns;
	return rate_per_s *
	       (src->in_burst ? c->burst_factor
			      : (1 - c->burst_factor * c->burst_share) / (1 - c->burst_share));
}

/* Start or end a burst, and draw the time of the next switch. */
static void turn(struct source *src, int64_t at_ns)
{
	const struct sim_source *c = src->conf;

	src->in_burst = !src->in_burst;
	double mean_ns = src->in_burst
			     ? (double)c->burst_ns
			     : (double)c->burst_ns * (1 - c->burst_share) / c->burst_share;
	src->turn_ns =
	    at_ns + 1 +
	    (int64_t)(mean_ns * rng_exp(weir_random_at(rng_key(src->key, 1), src->turns++)));
}

/* Return the time of the arrival that follows the one at `at_ns`, or INT64_MAX if there is none
 * before the end. */
static int64_t next_arrival_ns(const struct sim *s, struct source *src, int64_t at_ns)
{
	double gaps =
	    src->conf->arrivals == SIM_UNIFORM ? 1 : rng_exp(weir_random_at(src->key, src->sent));
	double now = (double)at_ns;

	for (int k = 1; k < src->conf->every && src->conf->arrivals != SIM_UNIFORM; k++)
		gaps += rng_exp(weir_random_at(rng_key(src->key, 1 + (uint64_t)k), src->sent));
	if (src->conf->every > 1 && src->conf->arrivals != SIM_UNIFORM)
		gaps /= src->conf->every;
	for (;;) {
		int64_t until_ns;
		double per_ns = rate_now(s, src, (int64_t)now, &until_ns) * 1e-9;
		double span_ns = (double)until_ns - now;
		if (per_ns > 0 && gaps <= per_ns * span_ns)
			return (int64_t)(now + gaps / per_ns);
		if (until_ns >= s->end_ns)
			return INT64_MAX;
		gaps -= per_ns * span_ns;
		now = (double)until_ns;
		if (src->conf->arrivals == SIM_BURSTS && until_ns == src->turn_ns)
			turn(src, until_ns);
	}
}

/* ---- sending ---- */

static uint16_t place_of(const struct sim *s, const struct request *r)
{
	uint64_t who = r->user == NO_USER ? r->serial : r->user;

	return users_place(weir_random_at(s->users_key, who), s->now_ns);
}

/* Send the request to its first stage now. */
static void send(struct sim *s, uint32_t slot)
{
	struct request *r = &s->req[slot];
	const struct sim_source *c = s->source[r->source].conf;
	struct sim_bin *bin = result_bin(s);

	r->sent_ns = s->now_ns;
	r->patience_ns = c->deadline_ns ? s->now_ns + c->deadline_ns : WEIR_NO_DEADLINE;
	r->deadline_ns = c->hides_deadline ? WEIR_NO_DEADLINE : r->patience_ns;
	r->waited_ns = r->spent_ns = r->alone_ns = r->left_ns = r->predicted_ns = 0;
	r->at = 0;
	r->in_server = true;
	r->abandoned = false;
	r->counted = s->now_ns >= s->conf->warmup_ns;
	r->place = place_of(s, r);
	r->asked_for = 0;
	laws_serial_sent(s, NULL, slot);
	s->in_server++;
	laws_sent(s);
	if (r->counted) {
		s->r->class[r->class_id].offered++;
		s->r->class[r->class_id].retries += r->attempt > 0;
		s->r->route_offered[r->route]++;
		if (r->user < SIM_USERS_MAX)
			s->r->user_offered[r->user]++;
	}
	if (bin) {
		bin->offered++;
		bin->offered_class[r->class_id]++;
	}
	if (c->deadline_ns && (c->retries || c->arrivals == SIM_CLOSED))
		r->timeout = heap_push(
		    &s->heap, r->patience_ns, (uint32_t)STEP_TIMEOUT << STEP_SHIFT | slot, &s->rc);
	int stage = s->conf->route[r->route].stage[0];
	admit_offer(s, stage, &slot, 1);
	laws_check(s, stage);
}

static int pick_route(const struct sim *s, const struct source *src)
{
	double all = 0;
	int i = 0;

	if (!src->conf->any_route)
		return src->conf->route;
	for (int k = 0; k < s->conf->n_sources; k++)
		all += s->conf->source[k].rate_per_s;
	double at = all * weir_random_unit(weir_random_at(rng_key(src->key, 3), src->sent));
	while (i < s->conf->n_sources - 1 && at > s->conf->source[i].rate_per_s)
		at -= s->conf->source[i++].rate_per_s;
	return s->conf->source[i].route;
}

/* Create the next request of source `source`. Returns NONE if out of memory. */
static uint32_t make(struct sim *s, uint32_t source, uint32_t user)
{
	struct source *src = &s->source[source];
	uint32_t slot = new_slot(s);

	if (slot == NONE)
		return NONE;
	s->req[slot] = (struct request){.serial = (uint64_t)source << 48 | src->sent,
	    .user = user,
	    .class_id = (uint8_t)src->conf->class_id,
	    .route = (uint8_t)pick_route(s, src),
	    .source = (uint8_t)source};
	src->sent++;
	return slot;
}

static uint32_t pick_user(const struct source *src)
{
	if (src->conf->users == 0)
		return NO_USER;
	uint64_t bits = weir_random_at(rng_key(src->key, 2), src->sent);
	return src->conf->user_first + (uint32_t)rng_below(bits, src->conf->users);
}

void client_arrive(struct sim *s, uint32_t source)
{
	struct source *src = &s->source[source];
	uint32_t slot = make(s, source, pick_user(src));

	if (slot == NONE)
		return;
	send(s, slot);
	int64_t at_ns = next_arrival_ns(s, src, s->now_ns);
	if (at_ns != INT64_MAX)
		sim_at(s, at_ns, STEP_ARRIVE, source);
}

void client_send(struct sim *s, uint32_t slot)
{
	if (s->now_ns >= s->end_ns)
		free_slot(s, slot);
	else
		send(s, slot);
}

/* ---- responses ---- */

/* Schedule the next request of a closed-loop client after its think time. */
static void think(struct sim *s, uint32_t slot)
{
	struct request *r = &s->req[slot];
	struct source *src = &s->source[r->source];
	uint64_t bits = weir_random_at(src->key, src->sent);

	r->route = (uint8_t)pick_route(s, src);
	r->serial = (uint64_t)r->source << 48 | src->sent++;
	r->attempt = 0;
	sim_at(
	    s, s->now_ns + (int64_t)((double)src->conf->think_ns * rng_exp(bits)), STEP_SEND, slot);
}

/* React to a response or to a time-out: retry, think, or free the request. */
static void react(struct sim *s, uint32_t slot, bool good)
{
	struct request *r = &s->req[slot];
	const struct sim_source *c = s->source[r->source].conf;

	if (!good && r->attempt < c->retries) {
		double jitter =
		    1 + BACKOFF_JITTER *
			    (2 * weir_random_unit(weir_random_at(s->retry_key, s->retries++)) - 1);
		int64_t wait_ns = (int64_t)((double)(c->backoff_ns << r->attempt) * jitter);
		r->attempt++;
		sim_at(s, s->now_ns + wait_ns, STEP_SEND, slot);
	} else if (c->arrivals == SIM_CLOSED) {
		think(s, slot);
	} else {
		free_slot(s, slot);
	}
}

void client_timeout(struct sim *s, uint32_t slot, uint32_t order)
{
	struct request *r = &s->req[slot];

	if (!r->in_server || r->abandoned || r->timeout != order)
		return;
	r->abandoned = true; /* the request stays in the server; the client continues with a copy */
	uint32_t copy = new_slot(s);
	if (copy == NONE)
		return;
	s->req[copy] = s->req[slot];
	s->req[copy].in_server = false;
	react(s, copy, false);
}

/* Count a finished request in the totals of its class and in the current bin. */
static void count_end(struct sim *s, const struct request *r, int status, bool in_time, bool midway)
{
	struct sim_class_result *k = &s->r->class[r->class_id];
	struct sim_bin *bin = result_bin(s);

	if (bin) {
		bin->in_time += in_time;
		bin->in_time_class[r->class_id] += in_time;
		bin->late += status == WEIR_OK && !in_time;
		bin->refused += weir_shed_index(status) >= 0;
	}
	if (!r->counted)
		return;
	s->r->service_ns += r->spent_ns;
	if (!in_time)
		s->r->wasted_ns += r->spent_ns;
	if (r->alone_ns > r->patience_ns - r->sent_ns)
		s->r->hopeless_ns += r->spent_ns;
	if (weir_shed_index(status) >= 0) {
		k->shed[weir_shed_index(status)]++;
		k->refused_midway += midway;
		return;
	}
	k->failed += status != WEIR_OK;
	k->late += status == WEIR_OK && !in_time;
	k->in_time += in_time;
	s->r->route_in_time[r->route] += in_time;
	if (in_time && r->user < SIM_USERS_MAX)
		s->r->user_in_time[r->user]++;
	if (status == WEIR_OK) {
		hdr_add(&k->wait, r->waited_ns, 1);
		hdr_add(&k->response, s->now_ns - r->sent_ns, 1);
	}
}

void client_end(struct sim *s, uint32_t slot, int status, bool midway)
{
	struct request *r = &s->req[slot];
	bool in_time = status == WEIR_OK && s->now_ns <= r->patience_ns;

	count_end(s, r, status, in_time, midway);
	r->in_server = false;
	s->in_server--;
	if (r->abandoned)
		free_slot(s, slot);
	else
		react(s, slot, in_time);
}

/* ---- startup ---- */

static void start_closed(struct sim *s, uint32_t source)
{
	const struct sim_source *c = s->source[source].conf;

	for (int i = 0; i < c->clients; i++) {
		uint32_t user = c->users ? c->user_first + (uint32_t)i % c->users : NO_USER;
		uint32_t slot = make(s, source, user);
		if (slot == NONE)
			return;
		think(s, slot);
	}
}

void clients_start(struct sim *s)
{
	s->users_key = rng_key(s->conf->seed, 1);
	s->retry_key = rng_key(s->conf->seed, 2);
	for (int i = 0; i < s->conf->n_sources; i++) {
		struct source *src = &s->source[i];
		src->conf = &s->conf->source[i];
		src->key = rng_key(s->conf->seed, 100 + (uint64_t)i);
		if (src->conf->arrivals == SIM_CLOSED) {
			start_closed(s, (uint32_t)i);
			continue;
		}
		src->in_burst = true; /* turn() inverts it */
		if (src->conf->arrivals == SIM_BURSTS)
			turn(src, 0);
		int64_t at_ns = next_arrival_ns(s, src, 0);
		src->sent++;
		if (at_ns != INT64_MAX)
			sim_at(s, at_ns, STEP_ARRIVE, (uint32_t)i);
	}
}
