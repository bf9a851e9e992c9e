/* SPDX-License-Identifier: MIT */
/* The members of a route; shared by route.c and route_shape.c. */
#ifndef WEIR_ADMISSION_ROUTE_INTERNAL_H
#define WEIR_ADMISSION_ROUTE_INTERNAL_H

#include "admission/route.h"

#define K WEIR_CLASSES_MAX

/** Estimates for one stage and one front, by class. */
struct ahead {
	double visits[K];
	double split[K];   /* the part of `visits` that are children of the stage itself */
	double time_ns[K]; /* visits times the mean time to reach the front */
	bool entry[K];
	bool judged[K]; /* events from the stage have already been judged for the front */
};

struct share {
	double tried[K];
	double rate[K]; /* per tick, over the last second or so */
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

/** Work of one class on its way from one stage to a front: it arrives between first_ns and lead_ns
 * from now. */
struct coming {
	int64_t first_ns, lead_ns;
	double work_ns;
};

/** All work on its way to a front. Stages and classes without such work have no entry. The entries
 * are means over the last second or so, because at a tick only one event may be on its way. */
struct coming_list {
	struct coming *item; /* at most n_stages * n_classes entries */
	int n;
	double sum_ns;   /* sum of the entries' work_ns */
	double *mean_ns; /* by stage * n_classes + class */
};

struct route {
	struct route_shape shape;
	/* links sorted by the stage that they leave; out_from[s] is the index of the first link of
	 * stage s */
	int *out, *out_from;
	int *in, *in_from;          /* links sorted by the stage they enter */
	bool *reaches;              /* stage * n_fronts + front */
	struct coming_list *coming; /* by front */
	struct share *share;        /* by link */
	struct handled *handled;    /* by stage */
	struct direct *direct;      /* by stage: rate of events that do not arrive over a link */
	struct ahead *ahead;        /* stage * n_fronts + front */
	double *rest_ns;            /* stage * K + class */
	double *pipeline_ns;        /* by front */
};

static inline struct ahead *ahead_of(const struct route *r, int s, int f)
{
	return &r->ahead[s * r->shape.n_fronts + f];
}

#endif
