/* SPDX-License-Identifier: MIT */
/* Allocates a route, and indexes the links of its graph; see route.h. */
#include "admission/route_internal.h"

#include <stdlib.h>

static int end_of(const struct route_link *link, bool to)
{
	return to ? link->to : link->from;
}

/* Sort the links by their target if `to` is set, otherwise by their source. */
static void index_links(const struct route_shape *g, bool to, int *list, int *from)
{
	int n = 0;

	for (int l = 0; l < g->n_links; l++)
		from[end_of(&g->link[l], to) + 1]++;
	for (int s = 0; s < g->n_stages; s++)
		from[s + 1] += from[s];
	for (int l = 0; l < g->n_links; l++, n++)
		list[from[end_of(&g->link[l], to)]++] = l;
	for (int s = g->n_stages; s > 0; s--) /* from[s] has advanced to the start of s + 1 */
		from[s] = from[s - 1];
	from[0] = 0;
}

/* Mark all stages upstream of `s` as reaching front `f`. */
static void find_reaches(struct route *r, int s, int f)
{
	for (int i = r->in_from[s]; i < r->in_from[s + 1]; i++) {
		int u = r->shape.link[r->in[i]].from;
		bool *reaches = &r->reaches[u * r->shape.n_fronts + f];
		if (*reaches)
			continue;
		*reaches = true;
		find_reaches(r, u, f);
	}
}

static int alloc_shape(struct route *r)
{
	size_t n = (size_t)r->shape.n_stages, links = (size_t)r->shape.n_links;
	size_t fronts = (size_t)r->shape.n_fronts, classes = (size_t)r->shape.n_classes;
	bool ok;

	r->out = calloc(links + 1, sizeof(*r->out));
	r->out_from = calloc(n + 1, sizeof(*r->out_from));
	r->in = calloc(links + 1, sizeof(*r->in));
	r->in_from = calloc(n + 1, sizeof(*r->in_from));
	r->reaches = calloc(n * fronts + 1, sizeof(*r->reaches));
	r->coming = calloc(fronts + 1, sizeof(*r->coming));
	ok = r->out && r->out_from && r->in && r->in_from && r->reaches && r->coming;
	for (size_t f = 0; ok && f < fronts; f++) {
		r->coming[f].item = calloc(n * classes + 1, sizeof(struct coming));
		r->coming[f].mean_ns = calloc(n * classes + 1, sizeof(double));
		ok = r->coming[f].item && r->coming[f].mean_ns;
	}
	return ok ? 0 : -1;
}

static int learn_shape(struct route *r)
{
	const struct route_shape *g = &r->shape;

	if (alloc_shape(r) != 0)
		return -1;
	index_links(g, false, r->out, r->out_from);
	index_links(g, true, r->in, r->in_from);
	for (int s = 0; s < g->n_stages; s++)
		if (g->stage[s].front >= 0)
			find_reaches(r, s, g->stage[s].front);
	return 0;
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
	if (r->share && r->handled && r->direct && r->ahead && r->rest_ns && r->pipeline_ns &&
	    learn_shape(r) == 0)
		return r;
	route_free(r);
	return NULL;
}

void route_free(struct route *r)
{
	if (!r)
		return;
	for (int f = 0; r->coming && f < r->shape.n_fronts; f++) {
		free(r->coming[f].item);
		free(r->coming[f].mean_ns);
	}
	free(r->coming);
	free(r->reaches);
	free(r->out);
	free(r->out_from);
	free(r->in);
	free(r->in_from);
	free(r->share);
	free(r->handled);
	free(r->direct);
	free(r->ahead);
	free(r->rest_ns);
	free(r->pipeline_ns);
	free(r);
}

bool route_reaches(const struct route *r, int s, int f)
{
	return r->reaches[s * r->shape.n_fronts + f];
}
