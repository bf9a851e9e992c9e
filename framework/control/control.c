/* SPDX-License-Identifier: MIT */
/*
 * The control thread; see control.h.
 *
 * Only the control thread uses `pools` and next_tick_ns. Other threads use only the journal, which
 * has its own lock, and `stop`, under `mutex`.
 */
#include "control/control.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/log.h>

#include "base/clock.h"
#include "base/task.h"
#include "control/outcome.h"

struct pool_control {
	struct control_pool pool;
	_Alignas(16) unsigned char state[RESIZE_STATE_MAX];
	uint64_t deaths;     /* number of thread deaths already in the journal */
	bool was_paused;     /* at the last tick */
	uint64_t paused_set; /* at the last tick */
	int limited;         /* last forbidden target in the journal, or 0 */
	int64_t limited_ns;  /* when the policy last requested a forbidden target */
	struct outcomes outcomes;
};

/* A request that the bounds forbid is journalled once while the policy repeats it. After this much
 * time without the request, it counts as a new one. 60 s is a guess. */
#define LIMITED_OLD_NS (60 * NS_PER_S)

struct control {
	const struct control_ops *ops;
	void *ctx;
	struct pool_control *pools;
	int n;
	struct journal journal;
	struct task task;
	bool started;
	int64_t next_tick_ns;  /* used by the control thread only */
	pthread_mutex_t mutex; /* with cond, interrupts the sleep between ticks */
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

static void describe_decision(struct weir_decision *d, const struct resize_view *v)
{
	snprintf(d->inputs, sizeof(d->inputs),
	    "queue=%u/%u threads=%d busy=%d offered=%llu completed=%llu cpu=%.0f%%",
	    v->queue_length, v->queue_limit, v->live, v->busy, (unsigned long long)v->offered_total,
	    (unsigned long long)v->completed_total, v->cpu_ratio * 100);
}

static uint64_t fill(struct control *c, int i, const struct resize_view *v, struct weir_decision *d,
    const char *actor, const char *action)
{
	snprintf(d->stage, sizeof(d->stage), "%s", c->pools[i].pool.name);
	snprintf(d->actor, sizeof(d->actor), "%s", actor);
	snprintf(d->action, sizeof(d->action), "%s", action);
	describe_decision(d, v);
	return journal_add(&c->journal, *d);
}

/* Clamp `want` to the bounds and the thread budget. `limit` receives the name of the bound that
 * applied, if any. */
static int clamp(const struct resize_view *v, int want, char *limit, size_t size)
{
	int left = v->budget_left > 0 ? v->budget_left : 0, target = want;
	const char *bound = "";

	if (want > v->max) {
		target = v->max;
		bound = "max";
	} else if (want < v->min) {
		target = v->min;
		bound = "min";
	}
	if (target > v->target && target - v->target > left) {
		target = v->target + left;
		bound = "thread budget allows";
	}
	if (target != want)
		snprintf(limit, size, "wanted %d, %s %d", want, bound, target);
	return target;
}

/* Journal a request that the bounds forbid altogether, but not each time that the policy repeats it
 * with a similar target. */
static void note_limited(struct control *c, int i, const struct resize_view *v, int want,
    int64_t now_ns, struct weir_decision *d)
{
	struct pool_control *p = &c->pools[i];
	bool news = p->limited == 0 || (want > v->target) != (p->limited > v->target) ||
		    want > p->limited + p->limited / 2 || now_ns - p->limited_ns > LIMITED_OLD_NS;

	p->limited_ns = now_ns;
	if (!news)
		return;
	p->limited = want;
	fill(c, i, v, d, p->pool.policy->name, "limit");
}

/* Call the policy of pool `i`, and carry out its decision within the bounds. */
static void resize(struct control *c, int i, const struct resize_view *v, int64_t now_ns)
{
	struct pool_control *p = &c->pools[i];
	struct resize_decision want = {0};
	struct weir_decision d = {.from = v->target, .to = v->target};

	if (!p->pool.policy->decide(p->state, v, now_ns, &want) || want.target == v->target)
		return;
	memcpy(d.rule, want.rule, sizeof(d.rule));
	int target = clamp(v, want.target, d.limit, sizeof(d.limit));
	if (target == v->target) {
		note_limited(c, i, v, want.target, now_ns, &d);
		return;
	}
	p->limited = 0;
	d.to = c->ops->resize(c->ctx, i, target);
	/* equal if the bounds have changed since the view was taken; the next tick sees the new
	 * ones */
	if (d.to == d.from)
		return;
	uint64_t id = fill(c, i, v, &d, p->pool.policy->name, d.to > d.from ? "grow" : "shrink");
	outcomes_expect(&p->outcomes, id, d.from, d.to, now_ns);
}

/* Report a repair in the journal and the log. `why` may be ""; the journal truncates it. */
static void note_repair(struct control *c, int i, const struct resize_view *v, const char *action,
    const char *what, const char *why)
{
	struct weir_decision d = {.from = v->live, .to = v->live};

	snprintf(d.rule, sizeof(d.rule), "%.70s%s%.20s", what, *why ? ": " : "", why);
	fill(c, i, v, &d, "repair", action);
	weir_log(WEIR_LOG_WARN, "pool '%s': %s%s%s", d.stage, what, *why ? ": " : "", why);
}

static void repair(struct control *c, int i, const struct resize_view *v, int64_t now_ns)
{
	struct pool_control *p = &c->pools[i];
	struct control_repairs r = c->ops->repair(c->ctx, i, now_ns);
	char what[96];

	if (r.deaths > p->deaths) {
		snprintf(what, sizeof(what),
		    "%d handler thread(s) ended inside a handler of stage '%.24s'",
		    (int)(r.deaths - p->deaths), r.died_in ? r.died_in : "?");
		note_repair(c, i, v, "thread_died", what, "");
	}
	p->deaths = r.deaths;
	if (r.failed) {
		snprintf(what, sizeof(what),
		    "%d thread(s) could not be created; trying again later", r.failed);
		note_repair(c, i, v, "spawn_failed", what, r.why);
	}
}

void control_step(struct control *c, int64_t now_ns, double cpu_ratio)
{
	for (int i = 0; i < c->n; i++) {
		struct resize_view v = {0};
		c->ops->view(c->ctx, i, &v);
		v.cpu_ratio = cpu_ratio;
		repair(c, i, &v, now_ns);
		if (v.paused) { /* nothing can be learned from a paused pool */
			c->pools[i].was_paused = true;
			continue;
		}
		/* measurements across a pause are useless, so reset the policy */
		if (c->pools[i].was_paused || v.paused_set != c->pools[i].paused_set)
			memset(c->pools[i].state, 0, sizeof(c->pools[i].state));
		c->pools[i].was_paused = false;
		c->pools[i].paused_set = v.paused_set;
		outcomes_step(&c->pools[i].outcomes, &v, now_ns, &c->journal);
		if (!v.fixed)
			resize(c, i, &v, now_ns);
	}
	if (c->ops->watch)
		c->ops->watch(c->ctx, now_ns, &c->journal);
}

/* Sleep until `at_ns` or until the thread must stop. Returns true if it must stop. */
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

/* Tick the admission policies until `at_ns` or until the thread must stop. Returns true if it must
 * stop. */
static bool ticks_until(struct control *c, int64_t at_ns)
{
	int64_t next_ns = c->ops->tick ? c->next_tick_ns : INT64_MAX;

	while (next_ns < at_ns) {
		if (sleep_until(c, next_ns))
			return true;
		next_ns = c->ops->tick(c->ctx, clock_now_ns());
	}
	c->next_tick_ns = next_ns;
	return sleep_until(c, at_ns);
}

static void *control_main(void *arg)
{
	struct control *c = arg;
	int64_t now_ns = clock_now_ns(), cpu_ns = weir_clock_ns(CLOCK_PROCESS_CPUTIME_ID);

	while (!ticks_until(c, now_ns + CONTROL_TICK_NS)) {
		int64_t then_ns = now_ns, cpu_then_ns = cpu_ns;
		now_ns = clock_now_ns();
		cpu_ns = weir_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
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
