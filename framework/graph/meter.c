/* SPDX-License-Identifier: MIT */
/*
 * Samples what has happened at a stage; see meter.h.
 *
 * The file has sections on costs, quantiles, samples and resting stages. Only the control thread
 * uses a meter. It reads the counters of all threads under threads_lock and the totals of the
 * policy under the queue's lock, and publishes costs in the sink as relaxed atomics.
 */
#include "graph/meter.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

/* Weight of one completion in the mean service time; see docs/overload.md. Values from 0.005 to
 * 0.05 work equally well. */
#define COST_WEIGHT 0.02
/* At each tick, the cost of a class moves towards the mean cost by this fraction of the difference.
 * So the cost of a class that no longer occurs is forgotten. 0.001 is a guess: a third of the
 * difference remains after 10 s, which is slow compared with everything else. */
#define COST_AGE 0.001
/* Weight of the time that handler calls in progress have taken so far (docs/overload.md). */
#define RUNNING_SHARE 0.5
/* Calls in progress affect the costs only if most of them have taken longer than LATE times the
 * 99th percentile of the service time, or its mean if that is larger. Calls seen in progress tend
 * to be the long ones: with a factor of 1, a stage with lognormal service times at 0.7 of its
 * capacity refused 0.1 % of the events. */
#define LATE 2
/* Number of consecutive checks without a change before a stage rests. 50 checks take half a second,
 * after which the last event no longer has any effect. */
#define REST_LOOKS 50
/* Quantiles are refreshed every LOOK_NS. They cover a window of HIST_NS, or of up to twice that
 * time if it has fewer than HIST_EVENTS events. SEDA's controller also uses "100 samples or 1
 * s". */
#define LOOK_NS     (100 * NS_PER_MS)
#define HIST_NS     NS_PER_S
#define HIST_EVENTS 100

/* Totals over all threads, including those that have exited. */
struct totals {
	struct meter_class class[WEIR_CLASSES_MAX];
	/* sum, over the handle calls in progress, of the time per event so far */
	int64_t running_ns;
	/* number of calls in progress, and of those that took longer than `long_ns` so far */
	int n_running, n_long;
	uint64_t busy_ns;  /* time in handlers */
	uint64_t refusals; /* events refused by what the stage waits for (weir_hold_refused) */
};

static void add(
    struct totals *t, const struct book *b, const struct time_book *times, int n_classes)
{
	t->busy_ns += book_read(&b->busy_ns);
	t->refusals += book_read(&b->refusals);
	for (int c = 0; c < n_classes; c++) {
		const struct class_book *cb = &b->class_book[c];
		struct meter_class *k = &t->class[c];
		k->completed += book_read(&cb->completed) + book_read(&cb->failed);
		k->handled += book_read(&cb->handled);
		k->service_ns += book_read(&cb->behind_ns);
		if (times) {
			k->service_ns += book_read(&times[c].service.sum_ns);
			k->wait_ns += book_read(&times[c].wait.sum_ns);
		}
	}
}

static void sum(struct weir_graph *g, int id, double long_ns, int64_t now_ns, struct totals *t)
{
	memset(t, 0, sizeof(*t));
	lock_take(&g->threads_lock);
	add(t, &g->gone[id].book, g->gone[id].times, g->n_classes);
	for (const struct local *l = g->gone[id].books; l; l = l->next) {
		int64_t since_ns =
		    atomic_load_explicit(&l->book.running_since_ns, memory_order_relaxed);
		add(t, &l->book, l->times, g->n_classes);
		int n = atomic_load_explicit(&l->book.running_n, memory_order_relaxed);
		if (since_ns && now_ns > since_ns && n > 0) {
			int64_t each_ns = (now_ns - since_ns) / n;
			t->running_ns += each_ns;
			t->n_running++;
			t->n_long += (double)each_ns > long_ns;
		}
	}
	lock_release(&g->threads_lock);
}

/* Update a mean with `n` completions that took `took_ns` in total. The first 1 / COST_WEIGHT
 * completions have equal weights; otherwise the very first would dominate them. */
static void follow(double *cost_ns, double *known, uint64_t n, uint64_t took_ns)
{
	if (n == 0)
		return;
	double mean_ns = (double)took_ns / (double)n;
	double weight = 1 - pow(1 - COST_WEIGHT, (double)n);
	if (*cost_ns > 0 && *known == 0) /* the cost comes from the previous graph */
		*known = 1 / COST_WEIGHT;
	double even = (double)n / (*known + (double)n);
	*known = fmin(*known + (double)n, 1 / COST_WEIGHT);
	*cost_ns += fmax(weight, even) * (mean_ns - *cost_ns);
}

/* Age the costs by `ticks` ticks. */
static void age_costs(struct meter *m, int64_t ticks, int n_classes)
{
	double part = ticks == 1 ? COST_AGE : 1 - pow(1 - COST_AGE, (double)ticks);

	for (int c = 0; c < n_classes; c++)
		m->cost_ns[c] += part * (m->mean_cost_ns - m->cost_ns[c]) * (m->cost_ns[c] > 0);
}

/* Publish the costs in the sink. `so_far_ns`, derived from the time that calls in progress have
 * taken so far, is a lower bound on all costs. */
static void publish_costs(struct meter *m, struct sink *k, double so_far_ns, int n_classes)
{
	if (m->mean_cost_ns <= 0) /* leave the cost set by sink_first_cost */
		return;
	m->now_cost_ns = fmax(m->mean_cost_ns, so_far_ns);
	atomic_store_explicit(&k->mean_cost_ns, (int64_t)m->now_cost_ns, memory_order_relaxed);
	for (int c = 0; c < n_classes; c++) { /* a class without completions has the mean cost */
		double cost_ns =
		    fmax(m->cost_ns[c] > 0 ? m->cost_ns[c] : m->mean_cost_ns, so_far_ns);
		atomic_store_explicit(&k->cost_ns[c], (int64_t)cost_ns, memory_order_relaxed);
	}
}

/* For a stage with a width, learn and publish what share of a service is spent in the handler.
 * `ended` events have ended since the last tick. */
static void learn_share(struct meter *m, struct weir_stage *st, uint64_t busy_ns, uint64_t ended)
{
	if (!stage_has_width(st) || ended == 0 || m->mean_cost_ns <= 0)
		return;
	follow(&m->handler_ns, &m->handler_known, ended, busy_ns - m->busy_ns);
	m->busy_ns = busy_ns;
	double share = m->handler_ns / m->mean_cost_ns;
	atomic_store_explicit(&st->sink.handler_share, share < 1 ? share : 1, memory_order_relaxed);
}

/* For a stage with a width, return a lower bound on the service time if most events in work have
 * taken far longer than usual; otherwise 0. Since no event has ended after m->ended_ns, all events
 * that were in work then still are. */
static double held_so_far_ns(
    struct meter *m, struct weir_stage *st, uint64_t ended, double long_ns, int64_t now_ns)
{
	int64_t in_work = stage_has_width(st) ? queue_kept_all(&st->sink.queue) : 0;

	if (ended > 0 || m->in_work == 0 || in_work == 0) {
		m->ended_ns = now_ns;
		m->in_work = in_work;
		return 0;
	}
	double each_ns = (double)(now_ns - m->ended_ns);
	return 2 * m->in_work > in_work && each_ns > long_ns ? RUNNING_SHARE * each_ns : 0;
}

static void learn_costs(struct meter *m, struct weir_stage *st, const struct totals *t,
    int n_classes, double long_ns, int64_t now_ns)
{
	uint64_t n = 0, took_ns = 0;
	/* Use calls in progress only if most of them are late. A single hanging call does not show
	 * that other calls are slow, and calls seen in progress tend to be long. */
	double so_far_ns =
	    2 * t->n_long > t->n_running ? RUNNING_SHARE * (double)t->running_ns / t->n_running : 0;

	age_costs(m, 1, n_classes);
	for (int c = 0; c < n_classes; c++) {
		m->done[c] += t->class[c].handled - m->then[c].handled;
		m->took_ns[c] += t->class[c].service_ns - m->then[c].service_ns;
		/* If a thread has recorded a time but not yet its event, took_ns is kept for the
		 * next sample. */
		if (m->done[c] == 0)
			continue;
		follow(&m->cost_ns[c], &m->known[c], m->done[c], m->took_ns[c]);
		n += m->done[c];
		took_ns += m->took_ns[c];
		m->done[c] = m->took_ns[c] = 0;
	}
	follow(&m->mean_cost_ns, &m->all_known, n, took_ns);
	learn_share(m, st, t->busy_ns, n);
	so_far_ns =
	    fmax(so_far_ns, held_so_far_ns(m, st, n + t->refusals - m->refusals, long_ns, now_ns));
	m->refusals = t->refusals;
	publish_costs(m, &st->sink, so_far_ns, n_classes);
}

/* ---- quantiles ---- */

static void since(struct weir_hist *now, const struct weir_hist *then)
{
	for (int i = 0; i < WEIR_HIST_BUCKETS; i++)
		now->count[i] -= then->count[i];
}

/* Return the window, or NULL if there has been no event or memory is short. The window is allocated
 * after the first event. */
static struct meter_window *window_of(struct meter *m, const struct weir_class_view *v, int n)
{
	uint64_t events = 0;

	for (int c = 0; !m->window && c < n; c++)
		events += weir_hist_total(&v[c].wait) + weir_hist_total(&v[c].service);
	if (events > 0)
		m->window = calloc(1, sizeof(*m->window) + (size_t)n * sizeof(m->window->wait[0]));
	return m->window;
}

static void forget_quantiles(struct meter *m)
{
	m->wait_p90_ns = m->all_response_p90_ns = m->service_p99_ns = 0;
	memset(m->response_p90_ns, 0, sizeof(m->response_p90_ns));
}

/* Whether the window ends: after HIST_NS if it has HIST_EVENTS events, otherwise after twice that
 * time. */
static bool window_ends(const struct meter *m, uint64_t events, int64_t now_ns)
{
	int64_t length_ns = now_ns - m->hist_at_ns;

	return length_ns >= HIST_NS && (events >= HIST_EVENTS || length_ns >= 2 * HIST_NS);
}

/* Mean time per event, in the window, that inline stages took. The service histograms do not
 * include this time. *handled and *behind_ns receive the current totals. */
static int64_t mean_behind_ns(const struct meter *m, const struct book *b, int n_classes,
    uint64_t *handled, uint64_t *behind_ns)
{
	*handled = *behind_ns = 0;
	for (int c = 0; c < n_classes; c++) {
		*handled += book_read(&b->class_book[c].handled);
		*behind_ns += book_read(&b->class_book[c].behind_ns);
	}
	uint64_t n = *handled - m->window->handled;
	return n > 0 ? (int64_t)((*behind_ns - m->window->behind_ns) / n) : 0;
}

static void measure_quantiles(struct meter *m, const struct book *book, struct weir_class_view *v,
    int n_classes, int64_t now_ns)
{
	struct meter_window *w = m->window;
	struct weir_hist all = {0}, service = {0}, now[WEIR_CLASSES_MAX];
	uint64_t handled, behind_ns;
	int64_t mean_ns = mean_behind_ns(m, book, n_classes, &handled, &behind_ns);

	for (int c = 0; c < n_classes; c++) {
		now[c] = v[c].wait;
		weir_hist_add(&service, &v[c].service);
		since(&v[c].wait, &w->wait[c]);
		weir_hist_add(&all, &v[c].wait);
		m->response_p90_ns[c] =
		    weir_hist_total(&v[c].wait)
			? weir_hist_quantile_ns(&v[c].wait, 0.9) + (int64_t)m->cost_ns[c]
			: 0;
	}
	struct weir_hist service_now = service;
	since(&service, &w->service);
	m->service_p99_ns =
	    weir_hist_total(&service) ? weir_hist_quantile_ns(&service, 0.99) + mean_ns : 0;
	bool some = weir_hist_total(&all) > 0;
	m->wait_p90_ns = some ? weir_hist_quantile_ns(&all, 0.9) : 0;
	m->all_response_p90_ns = some ? m->wait_p90_ns + (int64_t)m->mean_cost_ns : 0;
	if (window_ends(m, weir_hist_total(&all), now_ns)) {
		w->service = service_now;
		w->handled = handled;
		w->behind_ns = behind_ns;
		memcpy(w->wait, now, sizeof(now[0]) * (size_t)n_classes);
		m->hist_at_ns = now_ns;
	}
}

static void learn_quantiles(struct meter *m, struct weir_graph *g, int id, int64_t now_ns)
{
	struct weir_class_view v[WEIR_CLASSES_MAX];
	struct book book = {0};

	memset(v, 0, sizeof(v[0]) * (size_t)g->n_classes);
	graph_sum(g, id, &book, v, NULL, NULL, NULL);
	m->looked_at_ns = now_ns;
	if (window_of(m, v, g->n_classes)) {
		measure_quantiles(m, &book, v, g->n_classes, now_ns);
		return;
	}
	forget_quantiles(m);
	if (window_ends(m, 0, now_ns))
		m->hist_at_ns = now_ns;
}

/* Account for the refreshes that were skipped until `now_ns` because there were no events: set the
 * start of the window to the value that it would have without skips. */
static void pass_windows(struct meter *m, int64_t now_ns)
{
	m->looked_at_ns += (now_ns - m->looked_at_ns) / LOOK_NS * LOOK_NS;
	if (window_ends(m, 0, m->looked_at_ns))
		m->hist_at_ns += (m->looked_at_ns - m->hist_at_ns) / (2 * HIST_NS) * (2 * HIST_NS);
}

static bool no_quantiles(const struct meter *m)
{
	int64_t any = m->wait_p90_ns | m->all_response_p90_ns | m->service_p99_ns;

	for (int c = 0; c < WEIR_CLASSES_MAX; c++)
		any |= m->response_p90_ns[c];
	return any == 0;
}

/* ---- the sample ---- */

/* Fill in the totals of the policy's decisions, at this stage and upstream. */
static void fill_decided(const struct sink *k, struct totals *t, int n_classes)
    WEIR_REQUIRES(&k->queue.lock)
{
	for (int c = 0; c < n_classes; c++) {
		t->class[c].offered = k->decided[c].offered;
		t->class[c].wanted =
		    k->decided[c].wanted +
		    atomic_load_explicit(&k->wanted_ahead[c], memory_order_relaxed);
		t->class[c].refused = k->decided[c].refused;
	}
}

static void fill_classes(const struct meter *m, const struct weir_stage *st, const struct totals *t,
    int n_classes, struct admission_sample *out)
{
	const struct sink *k = &st->sink;
	uint64_t wait_ns = 0;

	for (int c = 0; c < n_classes; c++) {
		const struct meter_class *now = &t->class[c], *then = &m->then[c];
		out->class[c].offered = now->offered - then->offered;
		out->class[c].wanted = now->wanted - then->wanted;
		out->class[c].priority = st->graph->class_priority[c];
		out->class[c].guarantee = st->graph->class_guarantee[c];
		out->class[c].refused = now->refused - then->refused;
		out->class[c].completed = now->completed - then->completed;
		out->class[c].cost_ns = atomic_load_explicit(&k->cost_ns[c], memory_order_relaxed);
		out->class[c].response_p90_ns = m->response_p90_ns[c];
		out->completed += out->class[c].completed;
		wait_ns += now->wait_ns - then->wait_ns;
	}
	if (out->completed > 0) {
		out->wait_mean_ns = (int64_t)(wait_ns / out->completed);
		out->response_mean_ns = out->wait_mean_ns + (int64_t)m->mean_cost_ns;
	}
}

/* Fill in the current values of gauges. fill_classes adds the differences of totals. */
static void fill_now(const struct meter *m, struct weir_stage *st, int64_t now_ns,
    struct admission_view *view, struct admission_sample *out)
{
	struct sink *k = &st->sink;

	*view = (struct admission_view){.threads = 1};
	if (k->look)
		k->look(k, ANY_RANK, view);
	*out = (struct admission_sample){.now_ns = now_ns,
	    .span_ns = m->at_ns ? now_ns - m->at_ns : ADMISSION_TICK_NS,
	    .n_classes = st->graph->n_classes,
	    .threads = view->threads,
	    .idle = view->idle > 0,
	    .length = sink_waiting(k),
	    .limit = atomic_load(&k->queue.own),
	    .cost_ns = (int64_t)m->now_cost_ns,
	    .slo_ns = sink_slo_ns(k),
	    .wait_p90_ns = m->wait_p90_ns,
	    .service_p99_ns = m->service_p99_ns,
	    .response_p90_ns = m->all_response_p90_ns};
}

void meter_sample(struct meter *m, struct weir_graph *g, struct weir_stage *st, int64_t now_ns,
    struct admission_sample *out)
{
	struct sink *k = &st->sink;
	struct admission_view view;
	struct totals t;

	double long_ns = LATE * fmax((double)m->service_p99_ns, m->mean_cost_ns);
	sum(g, st->id, long_ns, now_ns, &t);
	if (m->at_ns)
		learn_costs(m, st, &t, g->n_classes, long_ns, now_ns);
	if (now_ns - m->looked_at_ns >= LOOK_NS)
		learn_quantiles(m, g, st->id, now_ns);
	fill_now(m, st, now_ns, &view, out);
	lock_take(&k->queue.lock);
	out->work_ns = sink_work_ns_locked(k);
	fill_decided(k, &t, g->n_classes);
	lock_release(&k->queue.lock);
	view.work_ns = out->work_ns;
	if (k->beside)
		out->work_ns = k->beside(k, &view);
	if (m->at_ns)
		fill_classes(m, st, &t, g->n_classes, out);
	memcpy(m->then, t.class, sizeof(m->then));
	m->at_ns = now_ns;
}

/* ---- resting stages ---- */

void meter_idle(struct meter *m, struct weir_stage *st, int64_t until_ns)
{
	int64_t span_ns = until_ns - m->at_ns;
	int n_classes = st->graph->n_classes;
	struct admission_sample sample;
	struct admission_view view;
	struct totals same;

	if (span_ns <= 0)
		return;
	age_costs(m, (span_ns + ADMISSION_TICK_NS / 2) / ADMISSION_TICK_NS, n_classes);
	publish_costs(m, &st->sink, 0, n_classes);
	pass_windows(m, until_ns);
	fill_now(m, st, until_ns, &view, &sample);
	/* an event that is queued now arrived after until_ns and belongs to the next sample */
	sample.length = 0;
	memcpy(same.class, m->then, sizeof(same.class));
	fill_classes(m, st, &same, n_classes, &sample);
	sink_tick(&st->sink, &sample);
	m->at_ns = until_ns;
}

/* Whether the stage rests: no change for REST_LOOKS checks, and the policy has confirmed that ticks
 * would not change its state. */
static bool rests(struct meter *m, struct weir_stage *st, uint64_t changes)
{
	const struct sink *k = &st->sink;
	bool quiet = changes == m->changes && sink_waiting(k) == 0 &&
		     atomic_load_explicit(&k->running, memory_order_relaxed) == 0;

	m->quiet = quiet ? m->quiet + (m->quiet <= REST_LOOKS) : 0;
	m->changes = changes;
	bool may = m->quiet > REST_LOOKS && m->at_ns && no_quantiles(m);
	m->resting = may && (m->resting || sink_rested(&st->sink));
	return m->resting;
}

bool meter_look(struct meter *m, struct weir_stage *st, uint64_t changes, int64_t now_ns)
{
	struct admission_sample sample;

	if (rests(m, st, changes)) {
		m->looked_ns = now_ns;
		if (now_ns - m->at_ns >= METER_REST_NS)
			meter_idle(m, st, now_ns);
		return true;
	}
	if (m->at_ns && m->looked_ns > m->at_ns) /* the stage rested until the last check */
		meter_idle(m, st, m->looked_ns);
	meter_sample(m, st->graph, st, now_ns, &sample);
	sink_tick(&st->sink, &sample);
	return false;
}

void meter_free(struct meter *m)
{
	if (m)
		free(m->window);
	free(m);
}
