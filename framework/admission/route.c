/* SPDX-License-Identifier: MIT */
/* Where events go; see route.h. */
#include "admission/route.h"

#include <stdlib.h>
#include <string.h>

#define K WEIR_CLASSES_MAX

/* Shares of links are of the last so many events of the class at the stage: enough for an error of
 * 2 % (sqrt(p (1-p) / n)), and at any rate worth overloading at they are seconds old at most. */
#define MEMORY_EVENTS 500.0

/* Nearly all go on to the front: below that the door would refuse more than one that would not have
 * gone there for nine that would. The lower bound keeps a gate from flapping (four standard errors). */
#define GATE_FROM 0.9
#define GATE_TO   0.8

/* Rates follow with this weight, over a second at ROUTE_TICK_NS. They only have to tell who sends
 * more. */
#define RATE_WEIGHT 0.05

/* Who gets there too seldom says nothing of how long it takes. */
#define VISITS_LEAST 0.01

/* One stage and front, by class. */
struct ahead {
	double visits[K];
	double time_ns[K]; /* visits times mean time to get there */
	bool gate[K];
	bool judged[K];    /* of what comes from the stage */
	double work_ns[K]; /* on its way from the stage to the front */
};

struct share {
	double tried[K];
	double rate[K]; /* a tick, over the last second or so */
	uint64_t then[K];
};

struct handled {
	double n[K];
	uint64_t then[K];
};

struct direct {
	double rate[K];
	uint64_t then[K];
};

struct route {
	struct route_shape shape;
	struct share *share;     /* by link */
	struct handled *handled; /* by stage */
	struct direct *direct;   /* by stage: what comes down no link */
	struct ahead *ahead;     /* stage * n_fronts + front */
	double *rest_ns;         /* stage * K + class */
	double *pipeline_ns;     /* by front */
};

static struct ahead *ahead_of(const struct route *r, int s, int f)
{
	return &r->ahead[s * r->shape.n_fronts + f];
}

struct route *route_new(const struct route_shape *shape)
{
	struct route *r = calloc(1, sizeof(*r));
	size_t n = (size_t)shape->n_stages, fronts = (size_t)shape->n_fronts;

	if (!r)
		return NULL;
	r->shape = *shape;
	r->share = calloc((size_t)shape->n_links + 1, sizeof(*r->share));
	r->handled = calloc(n + 1, sizeof(*r->handled));
	r->direct = calloc(n + 1, sizeof(*r->direct));
	r->ahead = calloc(n * fronts + 1, sizeof(*r->ahead));
	r->rest_ns = calloc(n * K + 1, sizeof(*r->rest_ns));
	r->pipeline_ns = calloc(fronts + 1, sizeof(*r->pipeline_ns));
	if (r->share && r->handled && r->direct && r->ahead && r->rest_ns && r->pipeline_ns)
		return r;
	route_free(r);
	return NULL;
}

void route_free(struct route *r)
{
	if (!r)
		return;
	free(r->share);
	free(r->handled);
	free(r->direct);
	free(r->ahead);
	free(r->rest_ns);
	free(r->pipeline_ns);
	free(r);
}

/* ---- shares of links ---- */

static double since(uint64_t *then, uint64_t now)
{
	int64_t n = (int64_t)(now - *then); /* readers of books may be a step behind */

	*then = now;
	return n > 0 ? (double)n : 0;
}

/* Add what came, and forget what is more than MEMORY_EVENTS ago, at the stage and its links alike. */
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

/* Part of what the stage handles that leaves by link `l`. */
static double share_of(const struct route *r, int l, int c)
{
	double n = r->handled[r->shape.link[l].from].n[c];
	double p = n >= 1 ? r->share[l].tried[c] / n : 0;

	return p > 1 ? 1 : p;
}

/* ---- visits, times ---- */

/* Mean time from the door of the stage to leaving it. */
static double stay_ns(const struct route *r, const struct route_look *look, int s, int c)
{
	if (r->shape.stage[s].source)
		return 0;
	if (look[s].stay_ns[c] > 0)
		return (double)look[s].stay_ns[c];
	return (double)look[s].wait_ns + (double)look[s].cost_ns[c];
}

/* What link `l` adds to the stage it comes from. */
static void add_link(struct route *r, int l, int c)
{
	const struct route_link *link = &r->shape.link[l];
	double p = share_of(r, l, c);

	if (p <= 0)
		return;
	r->rest_ns[link->from * K + c] += p * r->rest_ns[link->to * K + c];
	for (int f = 0; f < r->shape.n_fronts; f++) {
		struct ahead *from = ahead_of(r, link->from, f);
		if (r->shape.stage[link->to].front == f) {
			from->visits[c] += p;
		} else {
			const struct ahead *to = ahead_of(r, link->to, f);
			from->visits[c] += p * to->visits[c];
			from->time_ns[c] += p * to->time_ns[c];
		}
	}
}

static void look_ahead(struct route *r, const struct route_look *look, int s)
{
	const struct route_shape *g = &r->shape;

	for (int c = 0; c < g->n_classes; c++) {
		double stay = stay_ns(r, look, s, c);
		r->rest_ns[s * K + c] = stay;
		for (int f = 0; f < g->n_fronts; f++)
			ahead_of(r, s, f)->visits[c] = ahead_of(r, s, f)->time_ns[c] = 0;
		for (int l = 0; l < g->n_links; l++)
			if (g->link[l].from == s && !g->link[l].loop)
				add_link(r, l, c);
		for (int f = 0; f < g->n_fronts; f++) {
			struct ahead *a = ahead_of(r, s, f);
			a->time_ns[c] += stay * a->visits[c];
			a->gate[c] = g->stage[s].queued && g->stage[s].front != f &&
				     a->visits[c] >= (a->gate[c] ? GATE_TO : GATE_FROM);
		}
	}
}

static double work_coming(struct route *r, const struct route_look *look, int f, int at)
{
	double work_ns = 0;

	for (int s = 0; s < r->shape.n_stages; s++) {
		struct ahead *a = ahead_of(r, s, f);
		bool counts = s != at && !r->shape.stage[s].source;
		for (int c = 0; c < r->shape.n_classes; c++) {
			double n =
			    counts && look[s].in_flight[c] > 0 ? (double)look[s].in_flight[c] : 0;
			a->work_ns[c] = n * a->visits[c] * (double)look[at].cost_ns[c];
			work_ns += a->work_ns[c];
		}
	}
	return work_ns;
}

/* ---- who was decided on ---- */

/* A stage passes on what it was given: that was decided on if most of it was. */
static bool judged_before(const struct route *r, int s, int f, int c)
{
	const struct route_shape *g = &r->shape;
	double all = r->direct[s].rate[c] > 0 ? r->direct[s].rate[c] : 0, judged = 0;

	for (int l = 0; l < g->n_links; l++) {
		if (g->link[l].to != s)
			continue;
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
		for (int c = 0; c < r->shape.n_classes; c++)
			a->judged[c] = a->gate[c] || judged_before(r, s, f, c);
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

/* ---- what was learned ---- */

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

double route_before(const struct route *r, int s, int f, int class_id)
{
	int64_t lead_ns = route_lead_ns(r, s, f, class_id);
	double before_ns = 0;

	for (int u = 0; u < r->shape.n_stages; u++)
		for (int c = 0; c < r->shape.n_classes; c++)
			if (route_lead_ns(r, u, f, c) <= lead_ns)
				before_ns += ahead_of(r, u, f)->work_ns[c];
	return r->pipeline_ns[f] > 0 ? before_ns / r->pipeline_ns[f] : 1;
}

int64_t route_rest_ns(const struct route *r, int s, int class_id)
{
	return (int64_t)r->rest_ns[s * K + class_id];
}

bool route_gates(const struct route *r, int s, int f, int class_id)
{
	return ahead_of(r, s, f)->gate[class_id];
}

bool route_judged(const struct route *r, int from, int f, int class_id)
{
	return ahead_of(r, from, f)->judged[class_id];
}
