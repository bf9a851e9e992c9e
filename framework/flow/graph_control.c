/* SPDX-License-Identifier: MIT */
/* What the control thread sees of pools, and how its decisions reach them. */
#include <stdlib.h>
#include <string.h>

#include "control/control.h"
#include "flow/graph.h"
#include "sched/pool.h"

static void pool_view(void *ctx, int i, struct resize_view *v)
{
	struct weir_graph *g = ctx;
	const struct pool *pool = g->pools[i];
	int states[WEIR_THREAD_STATES];

	v->live = pool_read(pool, states);
	v->busy = states[WEIR_THREAD_BUSY];
	v->target = atomic_load(&pool->target);
	v->min = atomic_load(&pool->min);
	v->max = atomic_load(&pool->max);
	for (int s = 0; s < pool->n_sinks; s++) {
		struct book book = {0};
		int64_t running_ns = 0;
		graph_sum(g, pool->sinks[s]->id, &book, NULL, NULL, &running_ns, NULL);
		v->queue_length += queue_length(&pool->sinks[s]->queue);
		v->queue_limit += atomic_load(&pool->sinks[s]->queue.limit);
		for (int c = 0; c < g->n_classes; c++) {
			v->offered_total += book_read(&book.class_book[c].offered);
			v->completed_total += book_read(&book.class_book[c].completed);
		}
		v->busy_ns_total += book_read(&book.busy_ns) + (uint64_t)running_ns;
	}
}

static int pool_resize(void *ctx, int i, int target)
{
	struct weir_graph *g = ctx;

	return pool_set_target(g->pools[i], target);
}

static struct control_repairs repair(void *ctx, int i, int64_t now_ns)
{
	struct weir_graph *g = ctx;
	struct pool_repairs r = pool_repair(g->pools[i], now_ns);

	return (struct control_repairs){.joined = r.joined,
	    .spawned = r.spawned,
	    .failed = r.failed,
	    .deaths = atomic_load(&g->pools[i]->deaths)};
}

static const struct control_ops graph_control_ops = {
    .view = pool_view, .resize = pool_resize, .repair = repair};

static const char *policy_of(const struct weir_graph *g, const struct pool *pool)
{
	for (int k = 0; k < g->spec->n_groups; k++)
		if (strcmp(g->spec->groups[k].name, pool->name) == 0)
			return g->spec->groups[k].threads.policy;
	for (int s = 0; s < g->n_stages; s++)
		if (g->stages[s]->pool == pool)
			return g->stages[s]->spec->threads.policy;
	return "static";
}

int graph_control_new(struct weir_graph *g)
{
	struct control_pool *pools = calloc((size_t)g->n_pools + 1, sizeof(*pools));

	if (!pools)
		return WEIR_ENOMEM;
	for (int i = 0; i < g->n_pools; i++)
		pools[i] = (struct control_pool){
		    .name = g->pools[i]->name, .policy = resize_find(policy_of(g, g->pools[i]))};
	int rc = control_new(&graph_control_ops, g, pools, g->n_pools, &g->control);
	free(pools);
	return rc;
}

int weir_graph_decisions(const struct weir_graph *g, struct weir_decision *out, int n)
{
	return journal_read(control_journal(g->control), out, n);
}
