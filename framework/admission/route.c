/* SPDX-License-Identifier: MIT */
/*
 * Learns where events go; see route.h.
 *
 * Each tick (route_learn) updates the shares of the links. One pass over the stages, downstream
 * first, then computes visits, lead, rest and entries; a second pass, upstream first, finds the
 * stages whose events were already judged upstream. Last, the work on its way to each front is
 * summed. Everything is per class. Not thread-safe.
 */
#include "admission/route_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Number of events of a class at a stage over which the share of a link is measured: enough for an
 * error of 2 % (sqrt(p (1-p) / n)). At any rate at which overload matters, these events are at most
 * a few seconds old. */
#define MEMORY_EVENTS 500.0

/* Minimum share of a stage's events that go on to the front, for the stage to become an entry. So
 * at most one in ten of the events refused at the entry would not have reached the front. The stage
 * stays an entry until the share falls below ENTRY_TO, at least five standard errors lower (0.018
 * at a share of 0.8), so that it does not flap. */
#define ENTRY_FROM 0.9
#define ENTRY_TO   0.8

/* Weight of the newest tick in a rate. With ticks of ROUTE_TICK_NS a rate covers about a second.
 * Rates are only compared with each other. */
#define RATE_WEIGHT 0.05

/* Work on its way, in ns, that is too little to matter. */
#define COMING_LEAST_NS 1.0

/* Minimum value of `visits` for which the lead is computed; below it, too few events reach the
 * front. */
#define VISITS_LEAST 0.01

/* ---- shares of links ---- */

static double since(uint64_t *then, uint64_t now)
{
	int64_t n = (int64_t)(now - *then); /* may be negative: counters are not read atomically */

	*then = now;
	return n > 0 ? (double)n : 0;
}

/* Add the new events. If the count of a stage then exceeds MEMORY_EVENTS, scale it down to that
 * value, and the counts of its links by the same factor. So older events fade, and the shares stay
 * the same. */
static void learn_shares(struct route *r, const struct route_look *look, const uint64_t *tried)
{
	const struct route_shape *g = &r->shape;

	for (int s = 0; s < g->n_stages; s++) {
		struct direct *d = &r->direct[s];
		for (int c = 0; c < g->n_classes; c++) {
			r->handled[s].n[c] += since(&r->handled[s].then[c], look[s].handled[c]);
			d->rate[c] +=
			    RATE_WEIGHT * (since(&d->then[c], look[s].offered[c]) - d->rate[c]);
		}
	}
	for (int l = 0; l < g->n_links; l++) {
		const struct handled *from = &r->handled[g->link[l].from];
		struct share *share = &r->share[l];
		for (int c = 0; c < g->n_classes; c++) {
			double came = since(&share->then[c], tried[l * K + c]);
			share->rate[c] += RATE_WEIGHT * (came - share->rate[c]);
			share->tried[c] += came;
			r->direct[g->link[l].to].rate[c] -= RATE_WEIGHT * came;
			if (from->n[c] > MEMORY_EVENTS)
				share->tried[c] *= MEMORY_EVENTS / from->n[c];
		}
	}
	for (int s = 0; s < g->n_stages; s++)
		for (int c = 0; c < g->n_classes; c++)
			if (r->handled[s].n[c] > MEMORY_EVENTS)
				r->handled[s].n[c] = MEMORY_EVENTS;
}

void route_idle(struct route *r, int64_t ticks)
{
	double left = pow(1 - RATE_WEIGHT, (double)ticks);
	int n = r->shape.n_stages * r->shape.n_classes;

	for (int f = 0; f < r->shape.n_fronts; f++)
		for (int i = 0; r->coming[f].n > 0 && i < n; i++)
			r->coming[f].mean_ns[i] *= left;

	for (int s = 0; s < r->shape.n_stages; s++)
		for (int c = 0; c < r->shape.n_classes; c++)
			r->direct[s].rate[c] *= left;
	for (int l = 0; l < r->shape.n_links; l++)
		for (int c = 0; c < r->shape.n_classes; c++)
			r->share[l].rate[c] *= left;
}

/* Largest number of children for each event that is believed, and hence of visits. A guess: above
 * it, one event is an overload by itself. */
#define CHILDREN_MOST 4096.0

/* Return the fraction of a stage's events that leave by link `l`, or the number of children that each
 * sends. */
static double share_of(const struct route *r, int l, int c)
{
	double n = r->handled[r->shape.link[l].from].n[c];
	double p = n >= 1 ? r->share[l].tried[c] / n : 0;

	double most = r->shape.link[l].children ? CHILDREN_MOST : 1;

	return p > most ? most : p;
}

/* ---- visits, times ---- */

/* Return the mean time from entering the stage to leaving it. */
static double stay_ns(const struct route *r, const struct route_look *look, int s, int c)
{
	if (r->shape.stage[s].source)
		return 0;
	if (look[s].stay_ns[c] > 0)
		return (double)look[s].stay_ns[c];
	return (double)look[s].wait_ns + (double)(look[s].cost_ns[c] - look[s].behind_ns[c]);
}

/* Return the mean time from entering the stage until its children are sent. */
static double first_ns(const struct route *r, const struct route_look *look, int s, int c)
{
	double stay = stay_ns(r, look, s, c);
	double first =
	    (double)look[s].wait_ns + (double)(look[s].cost_ns[c] - look[s].behind_ns[c]);

	return !r->shape.stage[s].source && first < stay ? first : stay;
}

/* Add the contribution of link `l` to the results of the stage it leaves. */
static void add_link(struct route *r, const struct route_look *look, int l, int c)
{
	const struct route_link *link = &r->shape.link[l];
	double p = share_of(r, l, c);
	double after =
	    link->children ? first_ns(r, look, link->from, c) : stay_ns(r, look, link->from, c);

	if (p <= 0)
		return;
	if (!link->children)
		r->rest_ns[link->from * K + c] += p * r->rest_ns[link->to * K + c];
	for (int f = 0; f < r->shape.n_fronts; f++) {
		struct ahead *from = ahead_of(r, link->from, f);
		if (!route_reaches(r, link->from, f))
			continue;
		const struct ahead *to = ahead_of(r, link->to, f);
		bool there = r->shape.stage[link->to].front == f;
		double visits = there ? p : p * to->visits[c];
		from->visits[c] += visits;
		from->split[c] += link->children ? visits : 0;
		from->time_ns[c] += after * visits + (there ? 0 : p * to->time_ns[c]);
	}
}

static void clear(struct ahead *a, int c)
{
	a->visits[c] = a->split[c] = a->time_ns[c] = 0;
}

static void look_ahead(struct route *r, const struct route_look *look, int s)
{
	const struct route_shape *g = &r->shape;

	for (int c = 0; c < g->n_classes; c++) {
		double stay = stay_ns(r, look, s, c);
		r->rest_ns[s * K + c] = stay;
		for (int f = 0; f < g->n_fronts; f++)
			if (route_reaches(r, s, f))
				clear(ahead_of(r, s, f), c);
		for (int i = r->out_from[s]; i < r->out_from[s + 1]; i++)
			if (!g->link[r->out[i]].loop)
				add_link(r, look, r->out[i], c);
		for (int f = 0; f < g->n_fronts; f++) {
			struct ahead *a = ahead_of(r, s, f);
			if (!route_reaches(r, s, f))
				continue;
			a->entry[c] = g->stage[s].queued && g->stage[s].front != f &&
				      a->visits[c] >= (a->entry[c] ? ENTRY_TO : ENTRY_FROM);
		}
	}
}

/* Update the mean of the work that events of class `c` at stage `s` bring to front `f`, and add the
 * mean to the list. `work_ns` is that work at this tick. */
static void add_coming(
    struct route *r, const struct route_look *look, int s, int c, int f, double work_ns)
{
	struct coming_list *list = &r->coming[f];
	double *mean_ns = &list->mean_ns[s * r->shape.n_classes + c];

	*mean_ns += RATE_WEIGHT * (work_ns - *mean_ns);
	if (*mean_ns < COMING_LEAST_NS) {
		*mean_ns = 0;
		return;
	}
	int64_t lead_ns = route_lead_ns(r, s, f, c), stay = (int64_t)stay_ns(r, look, s, c);
	list->item[list->n++] =
	    (struct coming){lead_ns > stay ? lead_ns - stay : 0, lead_ns, *mean_ns};
	list->sum_ns += *mean_ns;
}

static double work_coming(struct route *r, const struct route_look *look, int f, int at)
{
	double sum_ns = 0;

	r->coming[f].n = 0;
	r->coming[f].sum_ns = 0;
	for (int s = 0; s < r->shape.n_stages; s++) {
		if (s == at || r->shape.stage[s].source || !route_reaches(r, s, f))
			continue;
		for (int c = 0; c < r->shape.n_classes; c++) {
			double n = look[s].in_flight[c] > 0 ? (double)look[s].in_flight[c] : 0;
			double sent = look[s].awaiting[c] > 0 ? (double)look[s].awaiting[c] : 0;
			const struct ahead *a = ahead_of(r, s, f);
			/* the children of those that wait have left the stage */
			double coming = n * a->visits[c] - (sent < n ? sent : n) * a->split[c];
			double work_ns = coming * (double)look[at].cost_ns[c];
			sum_ns += work_ns;
			add_coming(r, look, s, c, f, work_ns);
		}
	}
	return sum_ns;
}

/* ---- events already judged ---- */

/* Whether events from the stage count as already judged for front `f`: most events that arrived at
 * the stage had been judged. */
static bool judged_before(const struct route *r, int s, int f, int c)
{
	const struct route_shape *g = &r->shape;
	double all = r->direct[s].rate[c] > 0 ? r->direct[s].rate[c] : 0, judged = 0;

	for (int i = r->in_from[s]; i < r->in_from[s + 1]; i++) {
		int l = r->in[i];
		all += r->share[l].rate[c];
		if (ahead_of(r, g->link[l].from, f)->judged[c])
			judged += r->share[l].rate[c];
	}
	return judged > all / 2;
}

static void follow_judged(struct route *r, int s)
{
	for (int f = 0; f < r->shape.n_fronts; f++) {
		struct ahead *a = ahead_of(r, s, f);
		for (int c = 0; route_reaches(r, s, f) && c < r->shape.n_classes; c++)
			a->judged[c] = a->entry[c] || judged_before(r, s, f, c);
	}
}

void route_learn(struct route *r, const struct route_look *look, const uint64_t *tried)
{
	const struct route_shape *g = &r->shape;

	learn_shares(r, look, tried);
	for (int i = g->n_stages; i-- > 0;)
		look_ahead(r, look, g->order[i]);
	for (int i = 0; i < g->n_stages; i++)
		follow_judged(r, g->order[i]);
	for (int s = 0; s < g->n_stages; s++)
		if (g->stage[s].front >= 0)
			r->pipeline_ns[g->stage[s].front] =
			    work_coming(r, look, g->stage[s].front, s);
}

/* ---- results ---- */

double route_visits(const struct route *r, int s, int f, int class_id)
{
	return ahead_of(r, s, f)->visits[class_id];
}

int64_t route_lead_ns(const struct route *r, int s, int f, int class_id)
{
	const struct ahead *a = ahead_of(r, s, f);

	return a->visits[class_id] >= VISITS_LEAST
		   ? (int64_t)(a->time_ns[class_id] / a->visits[class_id])
		   : 0;
}

int64_t route_pipeline_ns(const struct route *r, int f)
{
	return (int64_t)r->pipeline_ns[f];
}

/* Return the part of the work, 0..1, that arrives before an event that arrives in `ns`. */
static double part_before(const struct coming *c, int64_t ns)
{
	if (ns >= c->lead_ns)
		return 1;
	if (ns <= c->first_ns)
		return 0;
	return (double)(ns - c->first_ns) / (double)(c->lead_ns - c->first_ns);
}

double route_before(const struct route *r, int s, int f, int class_id)
{
	const struct coming_list *list = &r->coming[f];
	int64_t lead_ns = route_lead_ns(r, s, f, class_id);
	double before_ns = 0;

	for (int i = 0; i < list->n; i++)
		before_ns += part_before(&list->item[i], lead_ns) * list->item[i].work_ns;
	return list->sum_ns > 0 ? before_ns / list->sum_ns : 1;
}

int64_t route_rest_ns(const struct route *r, int s, int class_id)
{
	return (int64_t)r->rest_ns[s * K + class_id];
}

bool route_enters(const struct route *r, int s, int f, int class_id)
{
	return ahead_of(r, s, f)->entry[class_id];
}

bool route_judged(const struct route *r, int from, int f, int class_id)
{
	return ahead_of(r, from, f)->judged[class_id];
}
