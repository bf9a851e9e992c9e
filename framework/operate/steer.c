/* SPDX-License-Identifier: MIT */
/*
 * Pauses, drains and resumes stages. A stage with a queue is controlled by flags of the queue,
 * which handlers and admission check. A source is paused by its own `pause` callback.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "operate/changes.h"
#include "sched/cores.h"

const char *graph_steer_word(int how)
{
	static const char *const word[] = {
	    [WEIR_STEER_RUN] = "running",
	    [WEIR_STEER_PAUSE] = "paused",
	    [WEIR_STEER_DRAIN] = "draining",
	};

	return word[how];
}

void graph_steer_turn(struct weir_stage *st, int how)
{
	atomic_store(&st->steer, how);
	if (!st->pool) {
		st->ops->pause(st, how == WEIR_STEER_PAUSE);
		return;
	}
	if (st->pool->cores)
		cores_halt(st->pool->cores, &st->sink, how == WEIR_STEER_PAUSE);
	queue_steer(&st->sink.queue, how == WEIR_STEER_PAUSE, how == WEIR_STEER_DRAIN);
	if (how != WEIR_STEER_PAUSE)
		pool_wake_all(st->pool);
}

void graph_steer_begin(struct weir_graph *g)
{
	lock_take(&g->lock);
	g->steerable = true;
	lock_release(&g->lock);
}

static bool successor_is_paused(const struct weir_stage *st)
{
	return st->successor && atomic_load(&st->successor->steer) == WEIR_STEER_PAUSE;
}

void graph_steer_end(struct weir_graph *g)
{
	lock_take(&g->lock);
	g->steerable = false;
	for (int k = g->n_stages; k-- > 0;) { /* downstream first, sources last */
		struct weir_stage *st = g->stages[g->order[k]];
		int how = atomic_load(&st->steer);
		struct weir_change act = {.actor = "drain", .what = "resume"};
		bool source = st->ops->flags & WEIR_STAGE_SOURCE;
		/* a source stays paused if its successor is also paused */
		if (how == WEIR_STEER_RUN || (source && successor_is_paused(st)))
			continue;
		graph_cut(act.target, sizeof(act.target), st->name);
		graph_cut(act.from, sizeof(act.from), graph_steer_word(how));
		graph_cut(act.to, sizeof(act.to), graph_steer_word(WEIR_STEER_RUN));
		graph_steer_turn(st, WEIR_STEER_RUN);
		graph_change_noted(g, &act, NULL, st->name,
		    g->succeeded ? "the replaced graph drains, so the stage runs again"
				 : "the server stops, so the stage runs again");
	}
	lock_release(&g->lock);
}

int graph_can_steer(const struct weir_stage *st, enum weir_steer how, char *why, size_t size)
{
	const char *word = how == WEIR_STEER_DRAIN ? "drained" : "paused";

	if (st->ops->flags & WEIR_STAGE_SOURCE) {
		if (how == WEIR_STEER_DRAIN)
			return graph_say(why, size, WEIR_EINVAL,
			    "'%s' is a source and has no queue to drain; pause it instead: its "
			    "events in progress then complete",
			    st->name);
		if (!st->ops->pause)
			return graph_say(why, size, WEIR_EINVAL,
			    "'%s' is a source of type %s, which cannot be paused", st->name,
			    st->ops->name);
	} else if (!st->pool) {
		return graph_say(why, size, WEIR_EINVAL,
		    "'%s' is inline: it runs in the thread of its sender and cannot be %s; pause "
		    "the stage before it",
		    st->name, word);
	}
	return 0;
}

int graph_may_steer(const struct weir_graph *g, const struct weir_stage *st, enum weir_steer how,
    char *why, size_t size)
{
	int rc = graph_can_steer(st, how, why, size);

	if (rc != 0)
		return rc;
	if (!g->steerable)
		return graph_say(
		    why, size, WEIR_EBUSY, "the server is not running, or is stopping");
	return graph_changes_open(g, why, size);
}

static void record(struct weir_graph *g, struct weir_stage *st, int before, int how)
    WEIR_REQUIRES(&g->lock)
{
	static const char *const what[] = {"resume", "pause", "drain"};
	static const char *const rule[] = {
	    [WEIR_STEER_RUN] = "handlers take batches again",
	    [WEIR_STEER_PAUSE] = "handlers take no more batches; new events wait",
	    [WEIR_STEER_DRAIN] = "new events are refused while the queue empties",
	};
	struct weir_change act = {.actor = "operator"};
	struct before *b = calloc(1, sizeof(*b));

	if (b) { /* if out of memory, the change cannot be undone */
		b->kind = BEFORE_STEER;
		b->of = owner_stage(st);
		b->state = before;
	}
	graph_cut(act.what, sizeof(act.what), what[how]);
	graph_cut(act.target, sizeof(act.target), st->name);
	graph_cut(act.from, sizeof(act.from), graph_steer_word(before));
	graph_cut(act.to, sizeof(act.to), graph_steer_word(how));
	bool source = !st->pool;
	graph_change_noted(g, &act, b, st->name,
	    !source                   ? rule[how]
	    : how == WEIR_STEER_PAUSE ? "the source accepts and reads nothing new"
				      : "the source accepts and reads again");
}

int weir_graph_steer(
    struct weir_graph *g, const char *stage, enum weir_steer how, char *why, size_t size)
{
	struct weir_stage *st = graph_find_stage(g, stage, why, size);

	if (!st)
		return WEIR_ENOENT;
	WEIR_ASSERT(how >= WEIR_STEER_RUN && how <= WEIR_STEER_DRAIN);
	lock_take(&g->lock);
	int rc = graph_may_steer(g, st, how, why, size), before = atomic_load(&st->steer);
	if (rc == 0 && before != (int)how) {
		graph_steer_turn(st, how);
		record(g, st, before, how);
	}
	lock_release(&g->lock);
	return rc;
}

void weir_purges(struct weir_stage *st, weir_purge_fn *purge)
{
	st->purge = purge;
}

/* Purge all stages that store something, under the lock of the graph. */
static int64_t purge_stages(struct weir_graph *g, const char *what, char *why, size_t size)
{
	int64_t n = 0;
	bool any = false;

	for (int i = 0; i < g->n_stages; i++) {
		struct weir_stage *st = g->stages[i];
		int64_t one = st->purge ? st->purge(st, what, why, size) : 0;
		if (one < 0)
			return one;
		n += one;
		any |= st->purge != NULL;
	}
	if (any)
		return n;
	snprintf(why, size, "no stage of this server stores answers");
	return WEIR_ENOENT;
}

int64_t weir_graph_purge(struct weir_graph *g, const char *what, char *why, size_t size)
{
	int64_t n = WEIR_EBUSY;

	lock_take(&g->lock);
	if (g->steerable)
		n = purge_stages(g, what, why, size);
	else
		snprintf(why, size, "the server is starting, stopping or reloading; try again");
	lock_release(&g->lock);
	return n;
}

int weir_graph_queue(const struct weir_graph *g, const char *stage, struct weir_queued *out, int n)
{
	struct weir_stage *st = weir_graph_stage(g, stage);

	if (!st)
		return WEIR_ENOENT;
	const struct sink *s = &st->sink;
	int64_t now_ns = clock_now_ns();
	int max = n < QUEUE_PEEK_MAX ? n : QUEUE_PEEK_MAX;
	n = queue_peek(&st->sink.queue, now_ns, out, max);
	if (sink_in_cells(s) > 0)
		n = cores_peek(((struct pool *)s->pool)->cores, s, now_ns, out, n, max);
	for (int i = 0; i < n; i++)
		out[i].class_name = g->classes[out[i].class_id].name;
	return n;
}
