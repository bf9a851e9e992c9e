/* SPDX-License-Identifier: MIT */
/*
 * Drains and frees replaced graphs while another graph runs; see retire.h.
 *
 * Each graph has a thread, retire_main, which takes it through these states:
 *
 *   waiting --retire_begin--> draining --note_drained--> drained --note_alone--> being freed
 *           --retire_none--> ended, without a graph
 *
 * A drained graph waits until the graph before it has been freed. Freeing a graph waits for
 * handlers that have not returned; when they have, note_back removes their events from the
 * losses.
 */
#include "retire.h"

#include <stdlib.h>
#include <string.h>

#include <weir/log.h>

#include "base/task.h"

/** A graph that was replaced. */
struct retired {
	/* the graph that was replaced before this one and must be freed first; under the lock */
	struct retired *before;
	struct retirees *all;
	bool told; /* retire_begin or retire_none has been called; under the lock */
	/* NULL before retire_begin and after note_alone; under the lock */
	struct weir_graph *graph;
	int64_t grace_ns;  /* how long its requests may take; under the lock */
	struct otlp *otlp; /* its trace export */
	/* result of the drain; its `left` is set to 0 when all threads have returned; under the
	 * lock */
	struct weir_drain_report report;
	struct task task;
};

static void say(const struct weir_drain_report *d)
{
	if (d->closed || d->law_error || d->left)
		weir_log(WEIR_LOG_WARN,
		    "in the previous graph, %llu events ended unfinished, %llu were lost in %d "
		    "handlers that did not return, and the counters are off by %lld",
		    (unsigned long long)d->closed, (unsigned long long)d->lost, d->left,
		    (long long)d->law_error);
}

/* Wait for retire_begin and return the graph to drain, or NULL after retire_none. */
static struct weir_graph *wait_told(struct retired *me, int64_t *grace_ns)
{
	struct retirees *all = me->all;

	pthread_mutex_lock(&all->lock);
	while (!me->told)
		pthread_cond_wait(&all->told, &all->lock);
	struct weir_graph *graph = me->graph;
	*grace_ns = me->grace_ns;
	pthread_mutex_unlock(&all->lock);
	return graph;
}

/* Record that the graph has been drained, except for events in handlers that have not returned.
 * Returns the graph that was retired before it, or NULL if there is none. */
static struct retired *note_drained(struct retired *me, const struct weir_drain_report *d)
{
	struct retirees *all = me->all;

	pthread_mutex_lock(&all->lock);
	me->report = *d;
	all->closed += d->closed;
	all->n_left += d->left > 0;
	all->n_busy--;
	struct retired *before = me->before;
	pthread_cond_broadcast(&all->told);
	pthread_mutex_unlock(&all->lock);
	return before;
}

/* Record that no earlier graph is left and that this graph is about to be freed. From now on,
 * retire_end does not access this graph. */
static void note_alone(struct retired *me)
{
	struct retirees *all = me->all;

	pthread_mutex_lock(&all->lock);
	me->graph = NULL;
	me->before = NULL;
	all->n -= me->report.left == 0;
	pthread_mutex_unlock(&all->lock);
}

/* Record that all threads have returned. The events in their handlers no longer count as lost. */
static void note_back(struct retired *me)
{
	struct retirees *all = me->all;

	pthread_mutex_lock(&all->lock);
	if (me->report.left > 0) {
		all->n_left--;
		all->n--;
	}
	me->report.left = 0;
	pthread_mutex_unlock(&all->lock);
}

/* Drain and free one graph. An earlier graph hands its connections over to this one. If a handler
 * of the earlier graph returns late, the I/O threads of that graph may still access this one, so
 * the earlier graph must be freed first. */
static void *retire_main(void *arg)
{
	struct retired *me = arg;
	int64_t grace_ns;
	struct weir_graph *graph = wait_told(me, &grace_ns);
	struct weir_drain_report d = {0};

	if (!graph)
		return NULL;
	weir_graph_drain(graph, grace_ns, &d);
	otlp_stop(me->otlp);
	say(&d);
	struct retired *before = note_drained(me, &d);
	if (before)
		task_join(&before->task);
	note_alone(me);
	free(before);
	weir_graph_free(graph); /* waits for threads that have not returned */
	note_back(me);
	return NULL;
}

struct retired *retire_new(struct retirees *all)
{
	struct retired *me = calloc(1, sizeof(*me));

	if (!me)
		return NULL;
	me->all = all;
	if (task_start(&me->task, "retire", retire_main, me) == 0)
		return me;
	free(me);
	return NULL;
}

void retire_none(struct retired *me)
{
	if (!me)
		return;
	pthread_mutex_lock(&me->all->lock);
	me->told = true;
	pthread_cond_broadcast(&me->all->told);
	pthread_mutex_unlock(&me->all->lock);
	task_join(&me->task);
	free(me);
}

void retire_begin(struct retired *me, struct weir_graph *graph, int64_t grace_ns, struct otlp *otlp)
{
	struct retirees *all = me->all;

	pthread_mutex_lock(&all->lock);
	me->told = true;
	me->graph = graph;
	me->grace_ns = grace_ns;
	me->otlp = otlp;
	me->before = all->last;
	all->last = me;
	all->n++;
	all->n_busy++;
	pthread_cond_broadcast(&all->told);
	pthread_mutex_unlock(&all->lock);
}

int retire_count(struct retirees *all)
{
	pthread_mutex_lock(&all->lock);
	int n = all->n_left > 0 ? all->n_busy : all->n;
	pthread_mutex_unlock(&all->lock);
	return n;
}

bool retire_too_many(struct retirees *all)
{
	pthread_mutex_lock(&all->lock);
	bool many = all->n_busy >= RETIRE_BUSY_MAX || all->n - all->n_busy >= RETIRE_WAITING_MAX;
	pthread_mutex_unlock(&all->lock);
	return many;
}

/* Add the losses in handlers that have not returned. The caller holds the lock. */
static void add_left(const struct retirees *all, struct retire_losses *losses)
{
	for (const struct retired *me = all->last; me; me = me->before) {
		const struct weir_drain_report *d = &me->report;
		if (d->left == 0)
			continue;
		losses->left += d->left;
		losses->lost += d->lost;
		if (!losses->left_text[0])
			memcpy(losses->left_text, d->left_text, sizeof(d->left_text));
	}
}

void retire_end(struct retirees *all, struct retire_losses *losses)
{
	*losses = (struct retire_losses){0};
	pthread_mutex_lock(&all->lock);
	for (struct retired *me = all->last; me; me = me->before)
		if (me->graph)
			weir_graph_hurry(me->graph);
	while (all->n_busy > 0)
		pthread_cond_wait(&all->told, &all->lock);
	losses->closed = all->closed;
	add_left(all, losses);
	struct retired *last = all->last;
	pthread_mutex_unlock(&all->lock);
	if (losses->left > 0)
		return;
	if (last)
		task_join(&last->task);
	free(last);
}

void retirees_init(struct retirees *all)
{
	memset(all, 0, sizeof(*all));
	pthread_mutex_init(&all->lock, NULL);
	pthread_cond_init(&all->told, NULL);
}

void retirees_fini(struct retirees *all)
{
	pthread_cond_destroy(&all->told);
	pthread_mutex_destroy(&all->lock);
}
