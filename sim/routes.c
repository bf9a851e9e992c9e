/* SPDX-License-Identifier: MIT */
/*
 * The simulator's counterpart of framework/graph/route.c: builds the graph for
 * framework/admission/route.h from the configured routes, and reads its counters at each tick.
 * Unlike in the server, all stages have queues, and clients are not a stage, so no decision
 * precedes their events.
 */
#include "world.h"

#include <string.h>

static int find_link(const struct sim *s, int from, int to)
{
	for (int l = 0; l < s->n_links; l++)
		if (s->link[l].from == from && s->link[l].to == to)
			return l;
	return -1;
}

static void add_links(struct sim *s)
{
	for (int i = 0; i < s->conf->n_routes; i++) {
		const struct sim_route *r = &s->conf->route[i];
		for (int at = 1; at < r->n; at++) {
			int from = r->stage[at - 1], to = r->stage[at];
			if (find_link(s, from, to) < 0 && s->n_links < SIM_LINKS_MAX)
				s->link[s->n_links++] = (struct route_link){.from = from, .to = to};
		}
	}
}

/* Order the stages by the longest path to each. A link to an earlier stage closes a cycle. */
static void put_in_order(struct sim *s)
{
	int depth[SIM_STAGES_MAX] = {0}, n = s->conf->n_stages, k = 0;

	for (int round = 0; round < n; round++)
		for (int l = 0; l < s->n_links; l++)
			if (depth[s->link[l].to] <= depth[s->link[l].from] &&
			    depth[s->link[l].from] < n)
				depth[s->link[l].to] = depth[s->link[l].from] + 1;
	for (int l = 0; l < s->n_links; l++)
		s->link[l].loop = depth[s->link[l].to] <= depth[s->link[l].from];
	for (int d = 0; d <= n; d++)
		for (int i = 0; i < n; i++)
			if (depth[i] == d)
				s->order[k++] = i;
}

int routes_init(struct sim *s)
{
	int n_fronts = 0;

	for (int i = 0; i < s->conf->n_stages; i++) {
		const struct sim_stage *st = &s->conf->stage[i];
		bool front = st->admission->front && st->params.mode != WEIR_ADMISSION_OFF;
		s->shape[i] = (struct route_stage){.queued = true, .front = front ? n_fronts : -1};
		n_fronts += front;
	}
	add_links(s);
	if (n_fronts == 0 || s->n_links == 0)
		return 0;
	put_in_order(s);
	struct route_shape shape = {.n_stages = s->conf->n_stages,
	    .n_classes = s->conf->n_classes,
	    .n_links = s->n_links,
	    .n_fronts = n_fronts,
	    .stage = s->shape,
	    .link = s->link,
	    .order = s->order};
	s->route = route_new(&shape);
	return s->route ? 0 : WEIR_ENOMEM;
}

void routes_tried(struct sim *s, int from, int to, int class_id)
{
	int l = from >= 0 ? find_link(s, from, to) : -1;

	if (l >= 0)
		s->tried[l * WEIR_CLASSES_MAX + class_id]++;
}

bool routes_judged(const struct sim *s, int from, int to, int class_id)
{
	int f = s->shape[to].front;

	return s->route && from >= 0 && f >= 0 && route_judged(s->route, from, f, class_id);
}

int routes_ahead(const struct sim *s, int entry, int from, int class_id, int *stage)
{
	int n = 0;

	for (int i = 0; s->route && i < s->conf->n_stages; i++) {
		int f = s->shape[i].front;
		if (f < 0 || !route_enters(s->route, entry, f, class_id))
			continue;
		if (from < 0 || !route_judged(s->route, from, f, class_id))
			stage[n++] = i;
	}
	return n;
}

int64_t routes_lead_ns(const struct sim *s, int entry, int stage, int class_id)
{
	return s->route && entry != stage
		   ? route_lead_ns(s->route, entry, s->shape[stage].front, class_id)
		   : 0;
}

int64_t routes_coming_ns(const struct sim *s, int entry, int stage, int class_id)
{
	if (!s->route || entry == stage)
		return 0;
	double before = route_before(s->route, entry, s->shape[stage].front, class_id);
	return (int64_t)(before * (double)s->stage[stage].pipeline_ns);
}

/* The wait and the service at `stage` itself are subtracted, since its policy already considers
 * them. */
int64_t routes_rest_ns(const struct sim *s, int stage, int class_id)
{
	const struct stage *st = &s->stage[stage];

	if (!s->route)
		return 0;
	int64_t own_ns = st->look_wait_ns + st->cost_ns[class_id];
	int64_t rest_ns = route_rest_ns(s->route, stage, class_id) - own_ns;
	return rest_ns > 0 ? rest_ns : 0;
}

void routes_tick(struct sim *s)
{
	struct route_look look[SIM_STAGES_MAX];

	if (!s->route || (s->routes_at_ns && s->now_ns - s->routes_at_ns < ROUTE_TICK_NS))
		return;
	s->routes_at_ns = s->now_ns;
	memset(look, 0, sizeof(look));
	for (int i = 0; i < s->conf->n_stages; i++) {
		struct stage *st = &s->stage[i];
		int threads = st->target > 0 ? st->target : 1;
		st->look_wait_ns = look[i].wait_ns = queue_work_ns(s, st) / threads;
		for (int c = 0; c < s->conf->n_classes; c++) {
			look[i].handled[c] = st->books[c].handled - st->books[c].running;
			look[i].in_flight[c] =
			    st->lane[c].n + st->in_cells[c] + st->books[c].running;
			look[i].cost_ns[c] = st->cost_ns[c];
			look[i].offered[c] = st->books[c].offered;
		}
	}
	route_learn(s->route, look, s->tried);
	for (int i = 0; i < s->conf->n_stages; i++)
		if (s->shape[i].front >= 0)
			s->stage[i].pipeline_ns = route_pipeline_ns(s->route, s->shape[i].front);
}
