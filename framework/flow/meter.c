/* SPDX-License-Identifier: MIT */
/* Samples of what happened at a stage; see meter.h. */
#include "flow/meter.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"

/* Weight of one completion in the mean service time: overload.md 3.1 (0.005 to 0.05 are as good). */
#define COST_WEIGHT 0.02
/* What was known of a class that does not come by any more becomes the mean, by that part a tick (10 s
 * until a third is left): it may have been a bad time. A guess: slow beside all else. */
#define COST_AGE 0.001
/* A handler under way counts with this share of what it has taken so far (overload.md 3.1). */
#define RUNNING_SHARE 0.5
/* But only when most of them have taken so many times what nearly all take: the long ones are those
 * that are seen under way, and with a factor of 1 a lognormal stage at 0.7 of its capacity refused 0.1 %. */
#define LATE 2
/* So many looks at which nothing had happened, half a second: whatever followed from the last event has. */
#define REST_LOOKS 50
/* Quantiles are refreshed every LOOK_NS over what came since at most HIST_NS ago, or longer ago until
 * there are HIST_EVENTS: "100 samples or 1 s" as SEDA's controller (overload.md, constants). */
#define LOOK_NS     (100 * NS_PER_MS)
#define HIST_NS     NS_PER_S
#define HIST_EVENTS 100

/* What all threads, live and gone, have counted. */
struct totals {
	struct meter_class class[WEIR_CLASSES_MAX];
	int64_t running_ns;    /* handle calls under way: time so far per event, summed */
	int n_running, n_long; /* how many; of them longer than nearly all take */
};

static void add(
    struct totals *t, const struct book *b, const struct time_book *times, int n_classes)
{
	for (int c = 0; c < n_classes; c++) {
		const struct class_book *cb = &b->class_book[c];
		struct meter_class *k = &t->class[c];
		k->completed += book_read(&cb->completed) + book_read(&cb->failed);
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
	for (struct thread *th = g->threads; th; th = th->next) {
		const struct local *l = th->local[id];
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

/* Follow `n` completions that took `took_ns` in all. */
static void follow(double *cost_ns, uint64_t n, uint64_t took_ns)
{
	if (n == 0)
		return;
	double mean_ns = (double)took_ns / (double)n;
	double weight = 1 - pow(1 - COST_WEIGHT, (double)n);
	*cost_ns = *cost_ns > 0 ? *cost_ns + weight * (mean_ns - *cost_ns) : mean_ns;
}

static void learn_costs(struct meter *m, struct sink *k, const struct totals *t, int n_classes)
{
	uint64_t n = 0, took_ns = 0;
	/* Only when most are later than nearly all are: one that hangs says nothing about the others, and
	 * those under way are the long ones by nature. */
	double so_far_ns =
	    2 * t->n_long > t->n_running ? RUNNING_SHARE * (double)t->running_ns / t->n_running : 0;

	for (int c = 0; c < n_classes; c++) {
		m->cost_ns[c] += COST_AGE * (m->mean_cost_ns - m->cost_ns[c]) * (m->cost_ns[c] > 0);
		m->done[c] += t->class[c].completed - m->then[c].completed;
		m->took_ns[c] += t->class[c].service_ns - m->then[c].service_ns;
		/* A handler may finish an event and work on: its time comes to the books later. */
		if (m->done[c] == 0 || m->took_ns[c] == 0)
			continue;
		follow(&m->cost_ns[c], m->done[c], m->took_ns[c]);
		n += m->done[c];
		took_ns += m->took_ns[c];
		m->done[c] = m->took_ns[c] = 0;
	}
	follow(&m->mean_cost_ns, n, took_ns);
	if (m->mean_cost_ns <= 0) /* what the first batch told still holds (sink_first_cost) */
		return;
	m->now_cost_ns = fmax(m->mean_cost_ns, so_far_ns);
	atomic_store_explicit(&k->mean_cost_ns, (int64_t)m->now_cost_ns, memory_order_relaxed);
	for (int c = 0; c < n_classes; c++) { /* a class not seen yet costs what others do */
		double cost_ns =
		    fmax(m->cost_ns[c] > 0 ? m->cost_ns[c] : m->mean_cost_ns, so_far_ns);
		atomic_store_explicit(&k->cost_ns[c], (int64_t)cost_ns, memory_order_relaxed);
	}
}

/* ---- quantiles ---- */

static void since(struct weir_hist *now, const struct weir_hist *then)
{
	for (int i = 0; i < WEIR_HIST_BUCKETS; i++)
		now->count[i] -= then->count[i];
}

static void learn_quantiles(struct meter *m, struct weir_graph *g, int id, int64_t now_ns)
{
	struct weir_class_view v[WEIR_CLASSES_MAX];
	struct weir_hist all = {0}, service = {0}, now[WEIR_CLASSES_MAX];
	struct book book = {0};

	memset(v, 0, sizeof(v[0]) * (size_t)g->n_classes);
	graph_sum(g, id, &book, v, NULL, NULL, NULL);
	m->looked_at_ns = now_ns;
	for (int c = 0; c < g->n_classes; c++) {
		now[c] = v[c].wait;
		weir_hist_add(&service, &v[c].service);
		since(&v[c].wait, &m->wait_then[c]);
		weir_hist_add(&all, &v[c].wait);
		m->response_p90_ns[c] =
		    weir_hist_total(&v[c].wait)
			? weir_hist_quantile_ns(&v[c].wait, 0.9) + (int64_t)m->cost_ns[c]
			: 0;
	}
	struct weir_hist service_now = service;
	since(&service, &m->service_then);
	m->service_p99_ns = weir_hist_total(&service) ? weir_hist_quantile_ns(&service, 0.99) : 0;
	bool some = weir_hist_total(&all) > 0;
	m->wait_p90_ns = some ? weir_hist_quantile_ns(&all, 0.9) : 0;
	m->all_response_p90_ns = some ? m->wait_p90_ns + (int64_t)m->mean_cost_ns : 0;
	if (now_ns - m->hist_at_ns >= HIST_NS &&
	    (weir_hist_total(&all) >= HIST_EVENTS || now_ns - m->hist_at_ns >= 2 * HIST_NS)) {
		m->service_then = service_now;
		memcpy(m->wait_then, now, sizeof(now[0]) * (size_t)g->n_classes);
		m->hist_at_ns = now_ns;
	}
}

/* ---- the sample ---- */

/* What the policy was asked, at whichever door. */
static void fill_asked(const struct sink *k, struct totals *t, int n_classes)
    WEIR_REQUIRES(&k->queue.lock)
{
	for (int c = 0; c < n_classes; c++) {
		t->class[c].offered = k->asked[c].asked;
		t->class[c].wanted = k->asked[c].wanted + atomic_load_explicit(&k->wanted_ahead[c],
							      memory_order_relaxed);
		t->class[c].refused = k->asked[c].turned;
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

bool meter_rests(struct meter *m, struct weir_stage *st)
{
	struct sink *k = &st->sink;
	uint64_t asked = 0, then = 0;

	lock_take(&k->queue.lock);
	for (int c = 0; c < st->graph->n_classes; c++)
		asked += k->asked[c].asked;
	lock_release(&k->queue.lock);
	for (int c = 0; c < st->graph->n_classes; c++)
		then += m->then[c].offered;
	bool quiet = queue_length(&k->queue) == 0 && asked == then &&
		     atomic_load_explicit(&k->running, memory_order_relaxed) == 0;
	m->quiet = quiet ? m->quiet + 1 : 0;
	return m->quiet > REST_LOOKS;
}

void meter_sample(struct meter *m, struct weir_graph *g, struct weir_stage *st, int64_t now_ns,
    struct admission_sample *out)
{
	struct sink *k = &st->sink;
	struct admission_view view = {.threads = 1};
	struct totals t;

	sum(g, st->id, LATE * fmax((double)m->service_p99_ns, m->mean_cost_ns), now_ns, &t);
	if (m->at_ns)
		learn_costs(m, k, &t, g->n_classes);
	if (now_ns - m->looked_at_ns >= LOOK_NS)
		learn_quantiles(m, g, st->id, now_ns);
	if (k->look)
		k->look(k, &view);
	*out = (struct admission_sample){.now_ns = now_ns,
	    .span_ns = m->at_ns ? now_ns - m->at_ns : ADMISSION_TICK_NS,
	    .n_classes = g->n_classes,
	    .threads = view.threads,
	    .idle = view.idle > 0,
	    .length = queue_length(&k->queue),
	    .limit = atomic_load(&k->queue.limit),
	    .cost_ns = (int64_t)m->now_cost_ns,
	    .slo_ns = k->slo_ns,
	    .wait_p90_ns = m->wait_p90_ns,
	    .service_p99_ns = m->service_p99_ns,
	    .response_p90_ns = m->all_response_p90_ns};
	lock_take(&k->queue.lock);
	out->work_ns = sink_work_ns_locked(k, view.threads);
	fill_asked(k, &t, g->n_classes);
	lock_release(&k->queue.lock);
	if (m->at_ns)
		fill_classes(m, st, &t, g->n_classes, out);
	memcpy(m->then, t.class, sizeof(m->then));
	m->at_ns = now_ns;
}
