/* SPDX-License-Identifier: MIT */
/* The control thread; see control.h. */
#include "control/control.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/log.h>

#include "base/clock.h"
#include "base/task.h"

struct pool_control {
	struct control_pool pool;
	_Alignas(16) unsigned char state[RESIZE_STATE_MAX];
	uint64_t deaths; /* already journalled */
	int limited;     /* wish that the bounds forbade and that is journalled, 0 none */
};

struct control {
	const struct control_ops *ops;
	void *ctx;
	struct pool_control *pools;
	int n;
	struct journal journal;
	struct task task;
	bool started;
	pthread_mutex_t mutex; /* with cond: ends the sleep between ticks */
	pthread_cond_t cond;
	bool stop;
};

int control_new(const struct control_ops *ops, void *ctx, const struct control_pool *pool, int n,
    struct control **out)
{
	struct control *c = calloc(1, sizeof(*c));
	pthread_condattr_t attr;

	if (!c)
		return WEIR_ENOMEM;
	c->pools = calloc((size_t)n + 1, sizeof(*c->pools));
	if (!c->pools) {
		free(c);
		return WEIR_ENOMEM;
	}
	c->ops = ops;
	c->ctx = ctx;
	c->n = n;
	for (int i = 0; i < n; i++)
		c->pools[i].pool = pool[i];
	journal_init(&c->journal);
	pthread_mutex_init(&c->mutex, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&c->cond, &attr);
	pthread_condattr_destroy(&attr);
	*out = c;
	return 0;
}

struct journal *control_journal(struct control *c)
{
	return &c->journal;
}

static void describe(struct weir_decision *d, const struct resize_view *v)
{
	snprintf(d->inputs, sizeof(d->inputs),
	    "queue=%u/%u threads=%d busy=%d offered=%llu completed=%llu cpu=%.0f%%",
	    v->queue_length, v->queue_limit, v->live, v->busy, (unsigned long long)v->offered_total,
	    (unsigned long long)v->completed_total, v->cpu_ratio * 100);
}

static void fill(struct control *c, int i, const struct resize_view *v, struct weir_decision *d,
    const char *actor, const char *action)
{
	snprintf(d->stage, sizeof(d->stage), "%s", c->pools[i].pool.name);
	snprintf(d->actor, sizeof(d->actor), "%s", actor);
	snprintf(d->action, sizeof(d->action), "%s", action);
	describe(d, v);
	journal_add(&c->journal, *d);
}

/* Ask the policy of pool `i` and do what it wants, within the bounds. A wish that the bounds forbid
 * altogether is journalled once, not at each sample that repeats it. */
static void resize(struct control *c, int i, const struct resize_view *v, int64_t now_ns)
{
	struct pool_control *p = &c->pools[i];
	const char *name = p->pool.policy->name;
	struct resize_decision want = {0};
	struct weir_decision d = {.from = v->target, .to = v->target};

	if (!p->pool.policy->decide(p->state, v, now_ns, &want) || want.target == v->target)
		return;
	int target = want.target > v->max ? v->max : want.target < v->min ? v->min : want.target;
	memcpy(d.rule, want.rule, sizeof(d.rule));
	if (target != want.target)
		snprintf(d.limit, sizeof(d.limit), "wanted %d, %s %d", want.target,
		    want.target > v->max ? "max" : "min", target);
	if (target == v->target) {
		if (p->limited != want.target)
			fill(c, i, v, &d, name, "limit");
		p->limited = want.target;
		return;
	}
	p->limited = 0;
	d.to = c->ops->resize(c->ctx, i, target);
	fill(c, i, v, &d, name, d.to > d.from ? "grow" : "shrink");
}

static void note_repair(struct control *c, int i, const struct resize_view *v, const char *action,
    int count, const char *what)
{
	struct weir_decision d = {.from = v->live, .to = v->live};

	snprintf(d.rule, sizeof(d.rule), "%d %s", count, what);
	fill(c, i, v, &d, "repair", action);
	weir_log(WEIR_LOG_WARN, "pool '%s': %s", d.stage, d.rule);
}

static void mend(struct control *c, int i, const struct resize_view *v, int64_t now_ns)
{
	struct pool_control *p = &c->pools[i];
	struct control_repairs r = c->ops->repair(c->ctx, i, now_ns);

	if (r.deaths > p->deaths)
		note_repair(c, i, v, "thread_died", (int)(r.deaths - p->deaths),
		    "handler thread(s) ended inside a handler");
	p->deaths = r.deaths;
	if (r.failed)
		note_repair(c, i, v, "spawn_failed", r.failed,
		    "thread(s) could not be created; trying again later");
}

void control_step(struct control *c, int64_t now_ns, double cpu_ratio)
{
	for (int i = 0; i < c->n; i++) {
		struct resize_view v = {0};
		c->ops->view(c->ctx, i, &v);
		v.cpu_ratio = cpu_ratio;
		mend(c, i, &v, now_ns);
		resize(c, i, &v, now_ns);
	}
}

/* Sleep to `at_ns` or until stopped; true when stopped. */
static bool sleep_until(struct control *c, int64_t at_ns)
{
	struct timespec ts = {at_ns / NS_PER_S, at_ns % NS_PER_S};
	int rc = 0;

	pthread_mutex_lock(&c->mutex);
	while (!c->stop && rc == 0)
		rc = pthread_cond_timedwait(&c->cond, &c->mutex, &ts);
	bool stop = c->stop;
	pthread_mutex_unlock(&c->mutex);
	return stop;
}

static void *control_main(void *arg)
{
	struct control *c = arg;
	int64_t now_ns = clock_now_ns(), cpu_ns = clock_of(CLOCK_PROCESS_CPUTIME_ID);

	while (!sleep_until(c, now_ns + CONTROL_TICK_NS)) {
		int64_t then_ns = now_ns, cpu_then_ns = cpu_ns;
		now_ns = clock_now_ns();
		cpu_ns = clock_of(CLOCK_PROCESS_CPUTIME_ID);
		control_step(c, now_ns,
		    (double)(cpu_ns - cpu_then_ns) / (double)(now_ns - then_ns) / task_cores());
	}
	return NULL;
}

int control_start(struct control *c)
{
	int rc = task_start(&c->task, "control", control_main, c);

	c->started = rc == 0;
	return rc;
}

void control_stop(struct control *c)
{
	if (!c || !c->started)
		return;
	pthread_mutex_lock(&c->mutex);
	c->stop = true;
	pthread_cond_signal(&c->cond);
	pthread_mutex_unlock(&c->mutex);
	task_join(&c->task);
	c->started = false;
}

void control_free(struct control *c)
{
	if (!c)
		return;
	journal_fini(&c->journal);
	pthread_cond_destroy(&c->cond);
	pthread_mutex_destroy(&c->mutex);
	free(c->pools);
	free(c);
}
