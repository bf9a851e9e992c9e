/* SPDX-License-Identifier: MIT */
/*
 * Computes the configured load. Some laws hold only while nothing changes, or below a load that is
 * known only from the configuration. The load is computed again when a phase or a fault begins or
 * ends.
 */
#include "world.h"

/* Conditions of I9: the highest load, the lowest number of threads, and the shortest objective in
 * services. With fewer threads or a shorter objective, chance alone causes more refusals than the
 * law allows (docs/overload.md, "What is weak"). */
#define CALM_LOAD     0.7001 /* 0.7, with a margin for rounding */
#define CALM_THREADS  4
#define CALM_SERVICES 20

/* Share of requests that may be refused under I9, by the distribution of service times. I9 requires
 * zero for even service times and 0.1 % for uneven ones. For constant service times the share is
 * zero. Exponential ones have a tail: at a load of 0.7, 5 of 1,686,969 requests were refused (W2,
 * seeds 1 to 5, 10 min each), at 0.6 none. */
#define CALM_EXPONENTIAL 0.00002
#define CALM_UNEVEN      0.001

/* Lowest number of users at which I6 is checked; with fewer users a class is served too
 * unevenly. */
#define MANY_USERS 1000

static double rate_per_s(const struct sim_source *c, int64_t now_ns)
{
	double factor = 1;

	for (int i = 0; i < SIM_PHASES_MAX; i++) {
		const struct sim_phase *p = &c->phase[i];
		if (p->at_ns > now_ns || (i > 0 && p->at_ns <= c->phase[i - 1].at_ns))
			break;
		if (p->factor > 0 || p->at_ns > 0)
			factor = p->factor;
	}
	return c->rate_per_s * factor;
}

static void sooner(int64_t *next_ns, int64_t at_ns, int64_t now_ns)
{
	if (at_ns > now_ns && at_ns < *next_ns)
		*next_ns = at_ns;
}

static int64_t next_change_ns(const struct sim_config *c, int64_t now_ns)
{
	int64_t next_ns = INT64_MAX;

	for (int i = 0; i < c->n_sources; i++)
		for (int p = 0; p < SIM_PHASES_MAX; p++)
			sooner(&next_ns, c->source[i].phase[p].at_ns, now_ns);
	for (int i = 0; i < c->n_faults; i++) {
		sooner(&next_ns, c->fault[i].from_ns, now_ns);
		sooner(&next_ns, c->fault[i].to_ns, now_ns);
	}
	return next_ns;
}

static double service_s(const struct stage *st)
{
	const struct sim_stage *c = st->conf;

	return 1e-9 * st->slow *
	       ((double)c->service.mean_ns + (double)c->batch_fixed_ns / c->batch_max);
}

static void look(struct sim *s)
{
	struct setting *set = &s->set;

	for (int i = 0; i < s->conf->n_stages; i++)
		set->per_s[i] = 0;
	for (int i = 0; i < s->conf->n_sources; i++) {
		const struct sim_source *c = &s->conf->source[i];
		const struct sim_route *r = &s->conf->route[c->route];
		for (int at = 0; at < r->n; at++)
			set->per_s[r->stage[at]] += rate_per_s(c, s->now_ns);
	}
	set->cpu = 0;
	for (int i = 0; i < s->conf->n_stages; i++) {
		set->demand[i] = set->per_s[i] * service_s(&s->stage[i]);
		set->cpu += set->demand[i] * s->conf->stage[i].cpu_share;
	}
	set->changed_ns = s->now_ns;
	set->next_ns = next_change_ns(s->conf, s->now_ns);
}

/* Return the share of requests that may be refused at the stage under a calm load; negative if the
 * load is not calm. */
static double calm_ratio(const struct sim *s, int i)
{
	const struct sim_stage *c = &s->conf->stage[i];

	if (s->set.demand[i] == 0)
		return 0;
	if (s->set.demand[i] > CALM_LOAD * c->threads_start || c->threads_start < CALM_THREADS ||
	    c->slo_ns < CALM_SERVICES * c->service.mean_ns || c->batch_fixed_ns > 0 || c->resize)
		return -1;
	return c->service.kind == SIM_CONST ? 0
	       : c->service.kind == SIM_EXP ? CALM_EXPONENTIAL
					    : CALM_UNEVEN;
}

static double calm_ratio_of_all(const struct sim *s)
{
	double worst = 0;

	if (!s->set.open || s->conf->n_faults > 0 || s->set.next_ns != INT64_MAX ||
	    s->set.cpu > CALM_LOAD * s->conf->cores)
		return -1;
	for (int i = 0; i < s->conf->n_stages; i++) {
		double ratio = calm_ratio(s, i);
		if (ratio < 0)
			return -1;
		worst = ratio > worst ? ratio : worst;
	}
	return worst;
}

static void look_at_classes(struct sim *s)
{
	int way[WEIR_CLASSES_MAX];

	for (int k = 0; k < s->conf->n_classes; k++) {
		way[k] = -1;
		s->set.sole_way[k] = s->set.anonymous[k] = true;
	}
	for (int i = 0; i < s->conf->n_sources; i++) {
		const struct sim_source *c = &s->conf->source[i];
		int k = c->class_id;
		if (way[k] >= 0 && way[k] != c->route)
			s->set.sole_way[k] = false;
		way[k] = c->route;
		if (c->users > 0 && c->users < MANY_USERS)
			s->set.anonymous[k] = false;
		if (c->arrivals == SIM_BURSTS || c->arrivals == SIM_CLOSED || c->retries > 0)
			s->set.open = false;
	}
}

void setting_init(struct sim *s)
{
	s->set.open = true;
	look_at_classes(s);
	look(s);
	s->set.calm_ratio = calm_ratio_of_all(s);
}

void setting_tick(struct sim *s)
{
	if (s->now_ns >= s->set.next_ns)
		look(s);
	for (int i = 0; i < s->conf->n_faults; i++) {
		const struct sim_fault *f = &s->conf->fault[i];
		/* the setting keeps changing during the fault */
		if (f->kind != SIM_SLOW && s->now_ns >= f->from_ns && s->now_ns < f->to_ns)
			s->set.changed_ns = s->now_ns;
	}
}
