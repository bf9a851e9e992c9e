/* SPDX-License-Identifier: MIT */
/*
 * Graphs for the tests of admission/route.h, built stage by stage in stream order. A static struct
 * net is empty at first and after net_end(). net_pass() sets how many events pass a link, then
 * net_learn() makes the route and gives it these counts. For later ticks call route_learn(n.r,
 * n.look, n.tried).
 */
#ifndef WEIR_TESTS_ROUTE_NET_H
#define WEIR_TESTS_ROUTE_NET_H

#include <CUnit/CUnit.h>
#include <string.h>

#include "admission/route.h"

#define NET_STAGES 10
#define NET_LINKS  40

struct net {
	struct route_shape shape;
	struct route_stage stage[NET_STAGES];
	struct route_link link[NET_LINKS];
	int order[NET_STAGES];
	struct route_look look[NET_STAGES];
	uint64_t tried[NET_LINKS * WEIR_CLASSES_MAX];
	struct route *r;
};

static inline int net_stage(struct net *n, struct route_stage st)
{
	int id = n->shape.n_stages++;

	n->order[id] = id;
	n->stage[id] = st;
	return id;
}

static inline int net_source(struct net *n, int n_classes)
{
	n->shape.n_classes = n_classes;
	return net_stage(n, (struct route_stage){.source = true, .front = -1});
}

static inline int net_queued(struct net *n)
{
	return net_stage(n, (struct route_stage){.queued = true, .front = -1});
}

/* The first stage of a graph that is fed from outside. */
static inline int net_queued_of(struct net *n, int n_classes)
{
	n->shape.n_classes = n_classes;
	return net_queued(n);
}

static inline int net_inline(struct net *n)
{
	return net_stage(n, (struct route_stage){.front = -1});
}

static inline int net_front(struct net *n)
{
	return net_stage(n, (struct route_stage){.queued = true, .front = n->shape.n_fronts++});
}

static inline int net_link(struct net *n, int from, int to)
{
	for (int l = 0; l < n->shape.n_links; l++)
		if (n->link[l].from == from && n->link[l].to == to)
			return l;
	n->link[n->shape.n_links] = (struct route_link){.from = from, .to = to};
	return n->shape.n_links++;
}

/* The stage at the start of link `l` handled `handled` more events and sent `sent` down the
 * link. */
static inline void net_pass(struct net *n, int l, int class_id, unsigned handled, unsigned sent)
{
	n->look[n->link[l].from].handled[class_id] += handled;
	n->tried[l * WEIR_CLASSES_MAX + class_id] += sent;
}

static inline void net_times(struct net *n, int s, int64_t wait_ns, int64_t cost_ns)
{
	n->look[s].wait_ns = wait_ns;
	for (int c = 0; c < n->shape.n_classes; c++)
		n->look[s].cost_ns[c] = cost_ns;
}

static inline void net_learn(struct net *n)
{
	n->shape.stage = n->stage;
	n->shape.link = n->link;
	n->shape.order = n->order;
	n->r = route_new(&n->shape);
	CU_ASSERT_PTR_NOT_NULL_FATAL(n->r);
	route_learn(n->r, n->look, n->tried);
}

static inline void net_end(struct net *n)
{
	route_free(n->r);
	memset(n, 0, sizeof(*n));
}

#endif
