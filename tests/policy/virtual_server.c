/* SPDX-License-Identifier: MIT */
#include "policy/virtual_server.h"

#include <math.h>

#include "graph/meter.h"
#include "stage/cohort.h"

static double vs_random(struct vs *s)
{
	s->rng ^= s->rng << 13;
	s->rng ^= s->rng >> 7;
	s->rng ^= s->rng << 17;
	return ((double)(s->rng >> 11) + 0.5) / 9007199254740992.0;
}

static int64_t vs_exponential(struct vs *s, double mean_ns)
{
	return (int64_t)(-log(vs_random(s)) * mean_ns) + 1;
}

static void vs_no_wake(struct sink *s, uint32_t before, uint32_t length, uint64_t parts)
{
	(void)s, (void)before, (void)length, (void)parts;
}

/* ---- threads ---- */

static void vs_add_threads(struct vs *s, struct pool *pool)
{
	for (int rank = 0; rank < atomic_load(&pool->target); rank++) {
		struct handler *h = calloc(1, sizeof(*h));
		CU_ASSERT_FATAL(h != NULL && s->n_threads < VS_THREADS);
		h->pool = pool;
		h->rank = rank;
		h->view = calloc((size_t)pool->n_sinks, sizeof(*h->view));
		h->ready_ns = calloc((size_t)pool->n_sinks, sizeof(*h->ready_ns));
		atomic_store(&h->state, WEIR_THREAD_IDLE);
		atomic_store(&h->slot, HANDLER_LIVE);
		atomic_store(&pool->handler[rank], h);
		atomic_store(&pool->n_slots, rank + 1);
		pool_deal(pool);
		atomic_fetch_add(&pool->n_idle, 1);
		s->ends_ns[s->n_threads] = INT64_MAX;
		s->thread[s->n_threads++] = h;
	}
}

static struct vs_stage *vs_of(struct vs *s, const struct sink *k)
{
	for (int i = 0; i < s->n_stages; i++)
		if (&s->at[i].stage->sink == k)
			return &s->at[i];
	return NULL;
}

/* Like take() of sched/handler.c. */
static int vs_take(struct vs *s, struct handler *h)
{
	struct pool *pool = h->pool;
	int at;

	for (int i = 0; i < pool->n_sinks; i++)
		h->view[i].length = queue_ready(&pool->sinks[i]->queue);
	while ((at = pool->policy->pick(h->policy_state, h->view, pool->n_sinks, s->now_ns)) >= 0) {
		struct sink *k = pool->sinks[at];
		local_find(thread_self(), k->id)->service_ns = vs_of(s, k)->service_ns;
		struct cohort c;
		h->n_batch = cohort_take(k, h->rank, atomic_load(&pool->target), WEIR_BATCH_MAX,
		    s->now_ns, NULL, h->batch, &c, &h->ready_ns[at]);
		h->sink = k;
		h->part = c.part;
		if (h->n_batch > 0)
			return h->n_batch;
		h->view[at].length = 0;
	}
	return 0;
}

static void vs_end_event(struct vs *s, struct vs_stage *v, struct weir_event **ev, int status)
{
	v->lost[(*ev)->class_id] += status != WEIR_OK && (*ev)->arrival_ns >= s->warm_ns;
	s->unused[s->n_unused++] = (struct probe *)*ev;
	weir_event_finish(ev, status);
}

/* Shed what stage_run() would shed before the handler. Returns how many events are left. */
static int vs_shed(struct vs *s, struct handler *h)
{
	struct sink *k = h->sink;
	int64_t most_ns = atomic_load(&k->most_wait_ns);
	struct book *book = &local_find(thread_self(), k->id)->book;
	int kept = 0, dropped;

	book_add(&book->running, (uint64_t)h->n_batch);
	for (int i = 0; i < h->n_batch; i++) {
		h->batch[i]->state = WEIR_EVENT_RUNNING;
		if (s->now_ns - h->batch[i]->queued_ns > most_ns)
			vs_end_event(s, vs_of(s, k), &h->batch[i], WEIR_EDELAY);
		else
			h->batch[kept++] = h->batch[i];
	}
	dropped = kept ? sink_drop(k, h->batch, kept, s->now_ns, book) : 0;
	for (int i = 0; i < dropped; i++)
		vs_end_event(s, vs_of(s, k), &h->batch[i], WEIR_EDELAY);
	memmove(h->batch, h->batch + dropped, (size_t)(kept - dropped) * sizeof(h->batch[0]));
	book_changed(book);
	return kept - dropped;
}

/* Let idle thread `i` start a batch if there is one for it. */
static bool vs_begin(struct vs *s, int i)
{
	struct handler *h = s->thread[i];
	struct sink *k;
	int64_t took_ns = 0;

	do {
		if (vs_take(s, h) == 0)
			return false;
		k = h->sink;
		h->n_batch = vs_shed(s, h);
		if (h->n_batch == 0)
			queue_release(&k->queue, h->part);
	} while (h->n_batch == 0);
	for (int e = 0; e < h->n_batch; e++)
		took_ns += vs_exponential(s, (double)vs_of(s, k)->service_ns);
	s->began_ns[i] = s->now_ns;
	s->ends_ns[i] = s->now_ns + took_ns;
	if (k->policy->tick)
		atomic_fetch_add(&k->running, (unsigned)h->n_batch);
	atomic_store(&h->state, WEIR_THREAD_BUSY);
	atomic_fetch_sub(&h->pool->n_idle, 1);
	return true;
}

static void vs_begin_all(struct vs *s)
{
	for (int i = 0; i < s->n_threads; i++)
		if (s->ends_ns[i] == INT64_MAX)
			vs_begin(s, i);
}

static void vs_count(struct vs *s, struct vs_stage *v, const struct weir_event *ev, int64_t each_ns)
{
	int64_t response_ns = s->now_ns - ev->arrival_ns;

	if (ev->arrival_ns < s->warm_ns)
		return;
	if (v->n_responses < VS_RESPONSES)
		v->response_ns[v->n_responses++] = response_ns;
	if (response_ns > s->slo_ns)
		v->lost[ev->class_id]++;
	else
		v->work_ns += (double)each_ns;
}

static void vs_end(struct vs *s, int i)
{
	struct handler *h = s->thread[i];
	struct sink *k = h->sink;
	struct time_book *times = s->g->gone[k->id].times;
	struct book *book = &local_find(thread_self(), k->id)->book;
	int64_t took_ns = s->now_ns - s->began_ns[i], each_ns = took_ns / h->n_batch;

	if (k->policy->tick)
		atomic_fetch_sub(&k->running, (unsigned)h->n_batch);
	if (!sink_mean_cost_ns(k))
		sink_first_cost(k, each_ns);
	book_add(&book->busy_ns, (uint64_t)took_ns);
	book_add(&book->batches, 1);
	book_add(&book->batch_events, (uint64_t)h->n_batch);
	for (int e = 0; e < h->n_batch; e++) {
		struct weir_event *ev = h->batch[e];
		hist_book_add(&times[ev->class_id].wait, s->began_ns[i] - ev->queued_ns, 1);
		hist_book_add(&times[ev->class_id].service, each_ns, 1);
		book_add(&book->class_book[ev->class_id].handled, 1);
		vs_count(s, vs_of(s, k), ev, each_ns);
		vs_end_event(s, vs_of(s, k), &h->batch[e], WEIR_OK);
	}
	book_changed(book);
	queue_release(&k->queue, h->part);
	s->ends_ns[i] = INT64_MAX;
	atomic_store(&h->state, WEIR_THREAD_IDLE);
	atomic_fetch_add(&h->pool->n_idle, 1);
	vs_begin_all(s);
}

/* ---- clients and ticks ---- */

static void vs_arrive(struct vs *s, struct vs_stage *v)
{
	struct sink *k = &v->stage->sink;
	int class_id = vs_random(s) < v->high ? 0 : k->queue.n_classes - 1, reason;

	v->next_ns += vs_exponential(s, 1e9 / v->rate_per_s);
	CU_ASSERT_FATAL(s->n_unused > 0);
	struct probe *p = s->unused[--s->n_unused];
	memset(&p->ev, 0, sizeof(p->ev));
	weir_event_init(&p->ev, &probe_type, s->now_ns);
	p->ev.class_id = (uint8_t)class_id;
	/* Not derived from the event's address, which does not depend on the seed. */
	p->ev.session = 1 + (uint32_t)(vs_random(s) * 1e9);
	p->producer = vs_random(s) < v->hot ? 7 : (int)(vs_random(s) * 10000);
	struct weir_event *ev = &p->ev;
	v->sent[class_id] += s->now_ns >= s->warm_ns;
	if (sink_offer(k, &ev, 1, WEIR_NO_STAGE, s->now_ns, &local_find(thread_self(), k->id)->book,
		&reason) == 0)
		vs_end_event(s, v, &ev, reason);
	else
		vs_begin_all(s);
}

static void vs_tick(struct vs *s)
{
	struct admission_sample sample;

	for (int i = 0; i < s->g->n_stages; i++) {
		if (!s->g->meters[i])
			continue;
		meter_sample(s->g->meters[i], s->g, s->g->stages[i], s->now_ns, &sample);
		sink_tick(&s->g->stages[i]->sink, &sample);
	}
	if (s->g->shares)
		graph_share_tick(s->g, s->now_ns);
}

/* ---- a run ---- */

struct vs *vs_new(struct weir_graph *g, int64_t slo_ns)
{
	struct vs *s = calloc(1, sizeof(*s));

	CU_ASSERT_PTR_NOT_NULL_FATAL(s);
	s->g = g;
	s->slo_ns = slo_ns;
	s->rng = 0x9e3779b97f4a7c15ULL;
	prepare(N);
	for (s->n_unused = 0; s->n_unused < N; s->n_unused++)
		s->unused[s->n_unused] = &probes[s->n_unused];
	weir_thread_attach(g, "test");
	thread_self()->pool = g->pools[0];    /* its counters serve for the handlers */
	for (int i = 0; i < g->n_stages; i++) /* these serve as the histograms of the handlers */
		g->gone[i].times = calloc((size_t)g->n_classes, sizeof(*g->gone[i].times));
	for (int i = 0; i < g->n_pools; i++)
		vs_add_threads(s, g->pools[i]);
	return s;
}

struct vs_stage *vs_load(struct vs *s, const char *stage, double rate_per_s, int64_t service_ns)
{
	struct vs_stage *v = &s->at[s->n_stages++];

	*v = (struct vs_stage){.stage = weir_graph_stage(s->g, stage),
	    .rate_per_s = rate_per_s,
	    .service_ns = service_ns,
	    .high = 1};
	v->stage->sink.wake = vs_no_wake;
	struct weir_admission_spec admission = v->stage->sink.admission;
	sink_set_admission(&v->stage->sink, &admission, 0); /* time starts at 0 */
	return v;
}

void vs_run(struct vs *s, int64_t warm_ns, int64_t end_ns)
{
	int64_t tick_ns = ADMISSION_TICK_NS;

	s->warm_ns = warm_ns;
	while (s->now_ns < end_ns) {
		struct vs_stage *sends = &s->at[0];
		int ends = 0;
		for (int i = 1; i < s->n_stages; i++)
			sends = s->at[i].next_ns < sends->next_ns ? &s->at[i] : sends;
		for (int i = 1; i < s->n_threads; i++)
			ends = s->ends_ns[i] < s->ends_ns[ends] ? i : ends;
		int64_t next_ns = sends->next_ns < tick_ns ? sends->next_ns : tick_ns;
		s->now_ns = s->ends_ns[ends] < next_ns ? s->ends_ns[ends] : next_ns;
		if (s->ends_ns[ends] == s->now_ns) {
			vs_end(s, ends);
		} else if (tick_ns == s->now_ns) {
			vs_tick(s);
			tick_ns += ADMISSION_TICK_NS;
		} else {
			vs_arrive(s, sends);
		}
	}
}

void vs_free(struct vs *s)
{
	for (int i = 0; i < s->n_stages; i++)
		s->at[i].next_ns = INT64_MAX;
	for (bool some = true; some;) {
		some = false;
		for (int i = 0; i < s->n_threads; i++) {
			if (s->ends_ns[i] == INT64_MAX)
				continue;
			s->now_ns = s->ends_ns[i] > s->now_ns ? s->ends_ns[i] : s->now_ns;
			vs_end(s, i);
			some = true;
		}
	}
	for (int i = 0; i < s->n_threads; i++) /* no thread is to be joined */
		atomic_store(&s->thread[i]->slot, HANDLER_EMPTY);
	weir_thread_detach();
	weir_graph_free(s->g);
	free(s);
}

/* ---- figures ---- */

static int vs_compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

int64_t vs_p99_ns(struct vs_stage *v)
{
	qsort(v->response_ns, (size_t)v->n_responses, sizeof(v->response_ns[0]), vs_compare);
	return v->n_responses ? v->response_ns[(size_t)v->n_responses * 99 / 100] : 0;
}

double vs_good_threads(const struct vs *s, const struct vs_stage *v)
{
	return v->work_ns / (double)(s->now_ns - s->warm_ns);
}
