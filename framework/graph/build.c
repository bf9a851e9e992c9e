/* SPDX-License-Identifier: MIT */
/*
 * Builds a graph from a plan (stages, sinks, pools and control), and frees it.
 *
 * The plan has checked everything that can be checked without acquiring resources. This file
 * allocates memory and calls ops->init of each stage, downstream stages first. On failure
 * weir_graph_free() releases everything.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admission/fair.h"
#include "admission/room.h"
#include "base/clock.h"
#include "base/task.h"
#include "control/control.h"
#include "graph/graph.h"
#include "graph/group.h"
#include "graph/reload_state.h"
#include "plan/plan.h"
#include "stage/registry.h"
#include "stage/replica.h"
#include "stage/thread.h"
#include "sched/cores.h"

int weir_spec_check(const struct weir_spec *spec, struct weir_errs *errs)
{
	struct plan plan;
	int rc = plan_make(spec, &plan, errs);

	plan_free(&plan);
	return rc;
}

static int no_memory(struct weir_errs *errs)
{
	return weir_errs_add(errs, NULL, WEIR_ENOMEM, NULL, "out of memory");
}

static int make_outlets(struct weir_graph *g, struct weir_stage *st, const struct plan_stage *ps)
{
	st->outlets = calloc((size_t)ps->n_outlets + 1, sizeof(*st->outlets));
	if (!st->outlets)
		return WEIR_ENOMEM;
	st->n_outlets = ps->n_outlets;
	for (int i = 0; i < ps->n_outlets; i++) {
		const struct plan_outlet *o = &ps->outlets[i];
		st->outlets[i] = (struct outlet){
		    .name = o->name,
		    .to = o->to >= 0 ? g->stages[o->to] : NULL,
		    .type = o->type,
		    .optional = o->optional,
		    .any = o->any,
		    .loop = o->loop,
		};
	}
	return 0;
}

static int partitions_of(
    const struct weir_graph *g, const struct plan *plan, const struct plan_stage *ps)
{
	const struct weir_group_spec *gs = ps->group >= 0 ? &g->spec->groups[ps->group] : NULL;
	int min, max, cpu[POOL_THREADS_MAX];
	bool listed;

	if (gs && gs->replicas > 1 && next_policy_find(gs->schedule)) /* one for each copy */
		return (int)gs->replicas;
	if (ps->serial)
		return plan_cores_most(plan, ps->group);
	if (ps->spec->mode != WEIR_MODE_PARTITIONED)
		return 1;
	if (gs && next_policy_find(gs->schedule))
		max = cores_parse(gs->cores, cpu, &listed);
	else
		pool_bounds(gs ? &gs->threads : &ps->spec->threads, task_cores(), &min, &max);
	return max > PARTITIONS_MAX ? PARTITIONS_MAX : max;
}

/* Share of the objective that an event may wait before it is served first, whatever its work. An
 * admitted event waits for at most as much work as fills half of the objective (policy `weir`), plus
 * this time. */
#define STARVE_SHARE 0.5

/* Let the queue give the events with the least work first. */
static int make_shortest(struct weir_stage *st, const struct plan_stage *ps)
{
	struct sink *k = &st->sink;
	int64_t starve_ns = ps->spec->queue.starve_ns;

	k->cost = ps->cost;
	if (ps->cost.field.arg) {
		st->cost_arg = strdup(ps->cost.field.arg);
		k->cost.field.arg = st->cost_arg;
		if (!st->cost_arg)
			return WEIR_ENOMEM;
	}
	if (starve_ns < 0)
		starve_ns = (int64_t)((double)k->slo_ns * STARVE_SHARE);
	return queue_set_shortest(&k->queue, starve_ns, ps->spec->mode == WEIR_MODE_PARTITIONED);
}

/* Initialise the sink: queue, admission and key. For uniformity, a source also has a queue, but no
 * event is ever offered to it. */
static int make_sink(struct weir_graph *g, struct weir_stage *st, const struct plan *plan,
    const struct plan_stage *ps)
{
	const struct weir_stage_spec *s = ps->spec;
	struct sink *k = &st->sink;
	bool one_each = s->mode == WEIR_MODE_EXCLUSIVE || s->mode == WEIR_MODE_PARTITIONED;
	bool exclusive = one_each || st->ops->flags & WEIR_STAGE_SINGLE;

	k->stage = st;
	k->name = st->name;
	k->id = (uint16_t)st->id;
	k->inlined = s->inlined && !stage_has_width(st);
	k->direct = s->inlined && !k->inlined;
	k->key = ps->key;
	k->stage_key = st->ops->key;
	k->cohort_by_key = s->cohort.by && s->cohort.by[0];
	k->serial = ps->serial;
	k->run = stage_run;
	k->wake = stage_wake;
	bool queued = !k->inlined && !(st->ops->flags & WEIR_STAGE_SOURCE);
	k->slo_ns = weir_spec_slo_ns(g->spec, s);
	k->front = -1;
	k->n_ranks = room_ranks(g->class_priority, g->n_classes, k->rank);
	k->policy = admission_find(weir_spec_admission(s, queued));
	atomic_init(&k->most_wait_ns, INT64_MAX);
	atomic_init(&k->cohort_max, (int)s->cohort.max);
	atomic_init(&k->linger_ns, s->cohort.linger_ns);
	if (ps->key.field.arg) {
		st->key_arg = strdup(ps->key.field.arg);
		k->key.field.arg = st->key_arg;
		if (!st->key_arg)
			return WEIR_ENOMEM;
	}
	if (queued) {
		k->look = stage_look;
		k->ranks = stage_ranks;
		k->beside = ps->group >= 0 ? stage_beside : NULL;
	}
	int rc = queue_init(&k->queue, g->n_classes, partitions_of(g, plan, ps),
	    queued ? (uint32_t)s->queue.limit : 1, k->cohort_by_key || k->serial, exclusive);
	/* the queue of an inline stage stays empty; its limit applies to the events that the stage
	 * holds */
	if (k->inlined && rc == 0)
		queue_set_limit(&k->queue, (uint32_t)s->queue.limit);
	if (rc == 0 && s->queue.discipline == WEIR_DISCIPLINE_SHORTEST)
		rc = make_shortest(st, ps);
	k->queue.fifo = s->queue.discipline == WEIR_DISCIPLINE_FIFO ||
			(s->queue.discipline == WEIR_DISCIPLINE_AUTO && k->policy->fifo) ||
			k->serial;
	if (rc == 0)
		sink_set_admission(k, &s->admission, clock_now_ns());
	return rc;
}

static int make_state(struct weir_stage *st)
{
	size_t n = (st->ops->state_size + WEIR_CACHE_LINE - 1) & -(size_t)WEIR_CACHE_LINE;

	/* the group makes the replicas, since it knows the cores */
	if (n == 0 || st->spec->mode == WEIR_MODE_REPLICATED)
		return 0;
	st->state = aligned_alloc(WEIR_CACHE_LINE, n);
	if (!st->state)
		return WEIR_ENOMEM;
	memset(st->state, 0, n);
	return 0;
}

static int make_stage(struct weir_graph *g, struct weir_stage *st, const struct plan *plan,
    const struct plan_stage *ps, struct weir_errs *errs)
{
	WEIR_ASSERT(st != NULL);
	st->depth = ps->depth;
	st->type = ps->type;
	atomic_init(&st->children, (unsigned)ps->spec->children);
	st->stuck_ns = ps->group >= 0 ? g->spec->groups[ps->group].threads.stuck_ns
				      : ps->spec->threads.stuck_ns;
	st->per_loop = ps->per_loop;
	if (make_outlets(g, st, ps) != 0 || make_sink(g, st, plan, ps) != 0 ||
	    make_state(st) != 0 || graph_batch_new(st) != 0 || graph_width_new(st) != 0 ||
	    graph_tickets_new(st) != 0)
		return no_memory(errs);
	return conf_new(st->ops, ps->spec->with, st->name, &st->conf, errs);
}

static int alloc_stages(struct weir_graph *g, const struct plan *plan)
{
	size_t size = (sizeof(struct weir_stage) + WEIR_CACHE_LINE - 1) & -(size_t)WEIR_CACHE_LINE;

	g->stages = calloc((size_t)plan->n, sizeof(*g->stages));
	g->order = calloc((size_t)plan->n, sizeof(*g->order));
	g->gone = calloc((size_t)plan->n, sizeof(*g->gone));
	if (!g->stages || !g->order || !g->gone)
		return WEIR_ENOMEM;
	memcpy(g->order, plan->order, (size_t)plan->n * sizeof(*g->order));
	for (int i = 0; i < plan->n; i++) {
		struct weir_stage *st = aligned_alloc(WEIR_CACHE_LINE, size);
		if (!st)
			return WEIR_ENOMEM;
		memset(st, 0, size);
		st->id = i;
		st->graph = g;
		st->payloads = g->payloads;
		st->ops = plan->stages[i].ops;
		st->flags = st->ops->flags;
		st->spec = &g->spec->stages[i];
		st->name = st->spec->name;
		lock_init(&st->conf_lock);
		g->stages[g->n_stages++] = st;
		g->gone[i].link_events =
		    calloc((size_t)plan->stages[i].n_outlets + 1, sizeof(book_counter));
		g->gone[i].link_made =
		    calloc((size_t)plan->stages[i].n_outlets + 1, sizeof(book_counter));
		g->gone[i].link_tried = calloc(
		    (size_t)plan->stages[i].n_outlets * WEIR_CLASSES_MAX + 1, sizeof(book_counter));
		g->gone[i].first_times = calloc((size_t)g->n_classes, sizeof(struct time_book));
		if (!g->gone[i].link_events || !g->gone[i].link_made || !g->gone[i].link_tried ||
		    !g->gone[i].first_times)
			return WEIR_ENOMEM;
		if (st->ops->flags & WEIR_STAGE_SOURCE)
			g->gone[i].answers =
			    calloc((size_t)g->n_classes, sizeof(struct answer_book));
		if (st->ops->flags & WEIR_STAGE_SOURCE && !g->gone[i].answers)
			return WEIR_ENOMEM;
	}
	return 0;
}

static int make_group_pools(struct weir_graph *g, const struct plan *plan)
{
	for (int k = 0; k < g->spec->n_groups; k++) {
		const struct weir_group_spec *gs = &g->spec->groups[k];
		struct pool *pool;
		if (next_policy_find(gs->schedule)) {
			int made = graph_group_new(g, plan, k, &pool);
			if (made != 0)
				return made;
			continue;
		}
		int rc =
		    pool_new(g, gs->name, &gs->threads, sched_policy_find(gs->schedule), &pool);
		if (rc != 0)
			return rc;
		g->pools[g->n_pools++] = pool;
		for (int i = 0; i < plan->n; i++) {
			if (plan->stages[i].group != k)
				continue;
			g->stages[i]->pool = pool;
			if ((rc = pool_add(pool, &g->stages[i]->sink, g->stages[i]->depth)) != 0)
				return rc;
		}
	}
	return 0;
}

/* The pool of an inline stage with a width. Its thread takes the events that no thread of a sender
 * takes: queued events after a pause or when the width is raised, and events whose tickets
 * expire. */
static char direct_policy[] = "static";
static const struct weir_threads_spec direct_threads = {
    .min = 1, .max = 1, .start = -1, .policy = direct_policy};

static int make_pools(struct weir_graph *g, const struct plan *plan)
{
	g->pools = calloc((size_t)g->n_stages + (size_t)g->spec->n_groups, sizeof(struct pool *));
	if (!g->pools)
		return WEIR_ENOMEM;
	int rc = make_group_pools(g, plan);
	for (int i = 0; rc == 0 && i < g->n_stages; i++) {
		struct weir_stage *st = g->stages[i];
		if (st->pool || st->sink.inlined || st->ops->flags & WEIR_STAGE_SOURCE)
			continue;
		rc = pool_new(g, st->name, st->sink.direct ? &direct_threads : &st->spec->threads,
		    &sched_shared, &st->pool);
		if (rc != 0)
			break;
		g->pools[g->n_pools++] = st->pool;
		rc = pool_add(st->pool, &st->sink, st->depth);
	}
	return rc;
}

/* Call ops->init of all stages, downstream first. Errors are reported with the stage's name and its
 * position in the configuration. */
static int init_stages(struct weir_graph *g, struct weir_errs *errs)
{
	int failed = 0;

	for (int k = g->n_stages; k-- > 0;) {
		struct weir_stage *st = g->stages[g->order[k]];
		struct weir_err err = {0};
		int rc = stage_init(st, &err);
		if (rc != 0) {
			failed = rc;
			weir_errs_add(errs, st->blamed ? st->blamed : &st->spec->mark, rc,
			    err.hint[0] ? err.hint : NULL, "stage '%s' (%s): %s", st->name,
			    st->ops->name, err.text[0] ? err.text : weir_error_text(rc));
		}
	}
	return failed;
}

static int build(struct weir_graph *g, const struct plan *plan, struct weir_errs *errs)
{
	int rc = graph_classes_bind(g, plan, errs);

	if (rc != 0)
		return rc;
	g->payloads =
	    payload_budget_new((uint64_t)g->spec->payload_bytes, (uint64_t)g->spec->family_bytes);
	if (!g->payloads || alloc_stages(g, plan) != 0)
		return no_memory(errs);
	for (int i = 0; i < g->n_stages && rc == 0; i++)
		rc = make_stage(g, g->stages[i], plan, &plan->stages[i], errs);
	if (rc != 0)
		return rc;
	graph_overload_init(g);
	if (make_pools(g, plan) != 0)
		return no_memory(errs);
	rc = graph_route_new(g);
	if (rc == 0)
		rc = graph_control_new(g);
	if (rc != 0)
		return no_memory(errs);
	return init_stages(g, errs);
}

static struct weir_graph *graph_alloc(struct weir_spec *spec)
{
	struct weir_graph *g = calloc(1, sizeof(*g));
	pthread_condattr_t attr;

	if (!g)
		return NULL;
	g->spec = spec;
	g->built_ns = clock_now_ns();
	g->built_wall_ns = clock_wall_ns();
	lock_init(&g->lock);
	lock_init(&g->threads_lock);
	graph_operator.init(g);
	pthread_mutex_init(&g->drain.mutex, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&g->drain.cond, &attr);
	pthread_condattr_destroy(&attr);
	return g;
}

int weir_graph_build(struct weir_spec *spec, struct weir_graph **out, struct weir_errs *errs)
{
	struct plan plan;
	struct weir_graph *g = NULL;
	int rc = plan_make(spec, &plan, errs);

	if (rc == 0) {
		g = graph_alloc(spec);
		rc = g && plugins_hold(&g->plugins) == 0 ? build(g, &plan, errs) : no_memory(errs);
		if (rc == 0) {
			plan_serial_warn(&plan);
			plan_cores_warn(&plan);
			plan_per_loop_warn(&plan);
		}
	}
	plan_free(&plan);
	if (rc != 0 && g) {
		g->spec = NULL; /* on failure the spec still belongs to the caller */
		weir_graph_free(g);
	}
	if (rc == 0)
		*out = g;
	return rc;
}

/* Call ops->fini of all stages, sources first, because their threads may still access any stage. */
static void fini_stages(struct weir_graph *g)
{
	for (int pass = 0; pass < 2; pass++) {
		for (int k = 0; k < g->n_stages; k++) {
			struct weir_stage *st = g->stages[g->order[k]];
			bool source = st->ops->flags & WEIR_STAGE_SOURCE;
			if (source == (pass == 0))
				graph_loop_end(st);
			if (source == (pass == 0))
				stage_fini(st);
		}
	}
}

static void free_stage(struct weir_graph *g, struct weir_stage *st)
{
	conf_put(st->conf);
	graph_batch_free(st);
	graph_width_free(st);
	graph_tickets_free(st);
	queue_fini(&st->sink.queue);
	fair_free(st->sink.fair);
	lock_fini(&st->conf_lock);
	free(st->outlets);
	free(st->key_arg);
	free(st->cost_arg);
	free(st->state);
	replicas_free(st);
	free(g->gone[st->id].link_events);
	free(g->gone[st->id].link_made);
	free(g->gone[st->id].link_tried);
	free(g->gone[st->id].times);
	free(g->gone[st->id].first_times);
	free(g->gone[st->id].answers);
	graph_books_forget(&g->gone[st->id]);
	free(st);
}

void weir_graph_free(struct weir_graph *g)
{
	if (!g)
		return;
	int phase = atomic_load(&g->phase);
	WEIR_ASSERT(phase == GRAPH_BUILT || phase == GRAPH_DRAINED);
	/* Wait for the threads that the drain left behind in handlers. */
	for (int i = 0; i < g->n_pools; i++)
		pool_join(g->pools[i], INT64_MAX);
	reload_state_end(g);
	reload_state_drop(g);
	fini_stages(g);
	thread_spare_free(g->drain_thread);
	WEIR_ASSERT(g->threads == NULL);
	for (int i = 0; i < g->n_pools; i++)
		pool_free(g->pools[i]);
	graph_route_free(g);
	graph_operator.fini(g);
	for (int i = 0; i < g->n_stages; i++)
		free_stage(g, g->stages[i]);
	graph_control_free(g);
	graph_groups_free(g);
	graph_classes_free(g);
	payload_budget_put(g->payloads);
	free(g->pools);
	free(g->stages);
	free(g->order);
	free(g->gone);
	pthread_cond_destroy(&g->drain.cond);
	pthread_mutex_destroy(&g->drain.mutex);
	lock_fini(&g->threads_lock);
	lock_fini(&g->lock);
	weir_spec_free(g->spec);
	plugins_release(g->plugins); /* after everything that points into them */
	free(g);
}

const struct weir_spec *weir_graph_spec(const struct weir_graph *g)
{
	return g->spec;
}

struct weir_stage *weir_graph_stage(const struct weir_graph *g, const char *name)
{
	for (int i = 0; i < g->n_stages; i++)
		if (strcmp(g->stages[i]->name, name) == 0)
			return g->stages[i];
	return NULL;
}
