/* SPDX-License-Identifier: MIT */
/*
 * Consults admission policies about events; see admit.h.
 *
 * For the offered events of one class, collect() selects those that are not refused yet,
 * fill_view() describes the load of the stage, judge_ask() (admission/judge.h) lets the policy
 * decide, and obey() applies the result to the verdict. The verdict belongs to the offering thread.
 * Members of a sink that are read or written here are either atomic or under the lock of its queue.
 */
#include "stage/admit_internal.h"

#include <string.h>

#include "admission/judge.h"
#include "stage/shed_token.h"

static void refuse(struct verdict *v, int n, int at, int reason)
{
	if (!v->refuses)
		memset(v->why, 0, (size_t)n * sizeof(v->why[0]));
	v->refuses = true;
	v->why[at] = reason;
}

/* Current position of the event's user in the rota (users.h); `fallen` is users_fallen now. Each
 * event without a user gets a position of its own. */
static inline uint16_t place_of(const struct weir_event *ev, uint16_t fallen)
{
	uint64_t id = ev->session & ~WEIR_SESSION_RETRY;

	if (id == 0) {
		id = (uint64_t)(uintptr_t)ev ^ (uint64_t)ev->arrival_ns;
		id ^= id >> 32;
	}
	return (uint16_t)(users_first(id) - fallen);
}

/* Return the token of events that `s` refuses at `now_ns`. Their class and user are not set yet. */
static struct shed_token token_of(
    const struct sink *s, int reason, double part, int64_t wait_ns, int64_t now_ns)
{
	return (struct shed_token){.reason_index = (uint8_t)weir_shed_index(reason),
	    .stage = s->id,
	    .part = shed_token_part(part),
	    .wait = shed_token_wait(wait_ns, sink_slo_ns(s)),
	    .at = shed_token_at(now_ns - s->started_ns)};
}

/* Store the token `t` in `ev`; `fallen` is users_fallen at the time of the refusal. */
static void mark(struct weir_event *ev, struct shed_token *t, uint16_t fallen)
{
	t->class_id = ev->class_id;
	t->user = (uint8_t)(place_of(ev, fallen) >> 8);
	ev->trace_id = shed_token_pack(t);
}

void admit_mark(const struct sink *s, struct weir_event *ev, int reason, double part,
    int64_t wait_ns, int64_t now_ns)
{
	struct shed_token t = token_of(s, reason, part, wait_ns, now_ns);

	mark(ev, &t, users_fallen(now_ns));
}

/* ---- the view of a policy ---- */

static int ranks_of(const struct sink *s)
{
	return s->ranks ? s->ranks(s) : 1;
}

/* Largest number of batches of the stage that can run at the same time. */
static int most_batches(const struct sink *s)
{
	int n = ranks_of(s);

	return s->queue.leasing && s->queue.n_parts < n ? s->queue.n_parts : n;
}

/* Service time of the events that have left the queue in a batch, but still wait for their turn in
 * it. `running` is the number of events in handler calls, of which each batch serves one at a
 * time. */
static int64_t begun_ns(const struct sink *s, int64_t running)
{
	if (running <= 1)
		return 0;
	if (atomic_load_explicit(&s->queue.width, memory_order_relaxed) > 0)
		return 0; /* the handler does not serve the events, but holds them and returns */
	int64_t at_once = most_batches(s);

	return running > at_once ? (running - at_once) * sink_mean_cost_ns(s) : 0;
}

/* Service time of the events in the queue and in cells. */
static int64_t queued_work_ns(const struct sink *s) WEIR_REQUIRES(&s->queue.lock)
{
	int64_t work_ns = (int64_t)sink_in_cells(s) * sink_mean_cost_ns(s);

	if (queue_length(&s->queue) == 0)
		return work_ns;
	for (int c = 0; c < s->queue.n_classes; c++)
		work_ns += queue_class_length_locked(&s->queue, c) * sink_cost_ns(s, c);
	return work_ns;
}

int64_t sink_work_ns_locked(const struct sink *s)
{
	return queued_work_ns(s) +
	       begun_ns(s, atomic_load_explicit(&s->running, memory_order_relaxed));
}

/* Service time of the events that wait for thread `rank`. */
static int64_t rank_work_ns_locked(const struct sink *s, int rank, int n_ranks)
    WEIR_REQUIRES(&s->queue.lock)
{
	int64_t work_ns = 0;

	for (int c = 0; queue_length(&s->queue) > 0 && c < s->queue.n_classes; c++)
		work_ns +=
		    queue_rank_length_locked(&s->queue, c, rank, n_ranks) * sink_cost_ns(s, c);
	if (s->queue.map && s->n_cells > 0) /* the rank is the number of a core */
		work_ns += cell_length(&s->cells[rank * s->cells_apart]) * sink_mean_cost_ns(s);
	return work_ns;
}

static uint32_t held_by(const struct sink *s)
{
	int64_t n = 0;

	if (WEIR_LIKELY(!queue_keeps(&s->queue)))
		return 0;
	for (int c = 0; c < s->queue.n_classes; c++)
		n += queue_held(&s->queue, c);
	return (uint32_t)n;
}

/* Describe the load of `s` for its policy. Policies without `tick` do not learn, so they need only
 * the lengths. */
static void fill_view(const struct sink *s, const struct admit_call *a, struct admission_view *view)
    WEIR_REQUIRES(&s->queue.lock)
{
	*view = (struct admission_view){.now_ns = a->now_ns,
	    .length = a->length,
	    .limit = s->queue.own,
	    .held = held_by(s),
	    .n_classes = s->queue.n_classes,
	    .threads = 1,
	    .slo_ns = sink_slo_ns(s),
	    .lead_ns = a->lead_ns};
	if (!s->policy->tick)
		return;
	view->running = atomic_load_explicit(&s->running, memory_order_relaxed);
	if (s->look)
		s->look(s, a->rank, view);
	if (WEIR_LIKELY(a->rank == ANY_RANK)) {
		view->work_ns = queued_work_ns(s) + begun_ns(s, view->running) + a->admitted_ns;
	} else {
		int64_t waits_ns = rank_work_ns_locked(s, a->rank, a->n_ranks) + a->admitted_ns;
		view->work_ns = waits_ns * most_batches(s) + begun_ns(s, view->running);
		if (waits_ns > 0) /* the thread of this rank is busy, or soon will be */
			view->idle = 0;
	}
	view->cost_ns = sink_mean_cost_ns(s);
	if (WEIR_UNLIKELY(a->fan > 1)) { /* the last child waits for the others, too */
		view->work_ns += (int64_t)((a->fan - 1) * (double)view->cost_ns);
		view->cost_ns = (int64_t)(a->fan * (double)view->cost_ns);
	}
	if (WEIR_UNLIKELY(s->beside != NULL) && view->cost_ns > 0)
		view->work_ns = s->beside(s, view);
	if (!s->ahead)
		return;
	int64_t coming_ns =
	    atomic_load_explicit(&s->pipeline_ns, memory_order_relaxed) * a->before / AHEAD_ALL;
	view->work_ns += coming_ns > 0 ? coming_ns : 0;
	view->rest_ns = atomic_load_explicit(&s->ahead->rest_ns[a->class_id], memory_order_relaxed);
	view->idle = judge_idle(view, view->idle, coming_ns);
}

/* Predicted wait of an event that `view` describes, -1 if unknown. */
static int64_t wait_of(const struct admission_view *view)
{
	if (view->cost_ns <= 0)
		return -1;
	return (int64_t)((double)view->work_ns / view->threads) - view->lead_ns;
}

/* Predicted wait behind the queue and the events of the batch that are admitted, -1 if unknown. */
static int64_t full_wait_ns(const struct sink *s, const struct verdict *v, int c)
    WEIR_REQUIRES(&s->queue.lock)
{
	struct admit_call a = {.class_id = c,
	    .rank = ANY_RANK,
	    .fan = 1,
	    .admitted_ns = v->admitted_ns + v->want[c] * sink_cost_ns(s, c)};
	struct admission_view view;

	if (!s->policy->tick || !s->look || queue_paused(&s->queue))
		return -1;
	if (queue_length(&s->queue) == 0 && a.admitted_ns == 0) /* held events fill the limit */
		return -1;
	fill_view(s, &a, &view);
	return wait_of(&view);
}

void verdict_refuse_last(struct verdict *v, const struct sink *s, struct weir_event **ev, int n,
    int class_id, int many, int reason)
{
	v->want[class_id] -= many;
	int64_t wait_ns = reason == WEIR_EQUEUE ? full_wait_ns(s, v, class_id) : -1;
	for (int i = n - 1; many > 0 && i >= 0; i--) {
		if (ev[i]->class_id != class_id || (v->refuses && v->why[i]))
			continue;
		refuse(v, n, i, reason);
		admit_mark(s, ev[i], reason, 1, wait_ns, ev[i]->queued_ns);
		many--;
	}
}

/* The events of one class in a batch, and their indexes in the batch. */
struct question {
	struct judge_run run;
	int at[WEIR_BATCH_MAX];
};

/* Rank of the thread that serves the event's partition. */
static int rank_of(const struct sink *s, const struct weir_event *ev, int n_ranks)
{
	return queue_part(&s->queue, ev->key) % n_ranks;
}

/* Whether the query is about event `i` of the batch. */
static bool concerns(const struct sink *s, const struct admit_call *a, int i)
{
	const struct weir_event *ev = a->ev[i];

	return ev->class_id == a->class_id && !(a->v->refuses && a->v->why[i]) &&
	       (a->rank == ANY_RANK || rank_of(s, ev, a->n_ranks) == a->rank);
}

static void collect(const struct sink *s, const struct admit_call *a, struct question *q)
{
	bool learns = s->policy->tick != NULL;
	bool all = a->v->fresh[a->class_id] == a->n && !a->v->refuses && a->rank == ANY_RANK;
	uint16_t fallen = learns ? users_fallen(a->now_ns) : 0;

	q->run.n = 0;
	q->run.timed = false;
	for (int i = 0; i < a->n; i++) {
		const struct weir_event *ev = a->ev[i];
		if (!all && !concerns(s, a, i))
			continue;
		q->at[q->run.n] = i;
		if (learns) {
			judge_add(&q->run, ev->session & ~WEIR_SESSION_RETRY, place_of(ev, fallen),
			    ev->session & WEIR_SESSION_RETRY, weir_event_left_ns(ev, a->now_ns));
			continue;
		}
		/* the policy uses neither users nor deadlines */
		q->run.id[q->run.n] = 0;
		q->run.refused[q->run.n++] = false;
	}
}

/* Remember whether an event has a user, so that the next tick allocates the table of users. */
static void want_fair(struct sink *s, const struct judge_run *q) WEIR_REQUIRES(&s->queue.lock)
{
	for (int i = 0; i < q->n; i++)
		s->fair_wanted |= q->id[i] != 0;
}

/* ---- the result ---- */

/* Mark, in the verdict, the events that the policy of `s` has refused, and store a shed token in
 * each of them. */
static void obey(struct sink *s, const struct admit_call *a, const struct question *q,
    const struct admission_view *view, int reason) WEIR_REQUIRES(&s->queue.lock)
{
	double share = s->policy->part ? s->policy->part(s->admission_state, a->class_id) : 1;
	struct shed_token t = token_of(s, reason, share, wait_of(view), a->now_ns);
	uint16_t fallen = users_fallen(a->now_ns);

	for (int i = 0; i < q->run.n; i++) {
		if (!q->run.refused[i])
			continue;
		if (view->fair)
			t.part = shed_token_part(
			    fair_part(view->fair, a->class_id, share, view->demand[i]));
		refuse(a->v, a->n, q->at[i], reason);
		a->v->want[a->class_id]--;
		mark(a->ev[q->at[i]], &t, fallen);
	}
}

int admit_ask(struct sink *s, struct admit_call *a)
{
	struct judge judge = {s->policy, s->admission_state, &s->admission, s->fair};
	struct admission_view view;
	struct question q;
	int reason = 0;
	bool nonsense = false;

	a->would = 0;
	collect(s, a, &q);
	if (q.run.n == 0)
		return 0;
	fill_view(s, a, &view);
	if (s->policy->fair && !s->fair && view.idle == 0)
		want_fair(s, &q.run);
	judge_view(&judge, a->class_id, &q.run, &view);
	/* A stage that is being drained would refuse the events when they arrive. */
	bool shut = s->queue.shut;
	if (WEIR_UNLIKELY(shut)) {
		memset(q.run.refused, true, sizeof(q.run.refused[0]) * (size_t)q.run.n);
		reason = WEIR_EDRAINING;
	}
	int m = shut ? 0 : judge_ask(&judge, a->class_id, &q.run, &view, &reason, &nonsense);
	if (WEIR_UNLIKELY(nonsense))
		atomic_fetch_add_explicit(&s->nonsense, 1, memory_order_relaxed);
	a->would = q.run.n - m;
	if (a->would == 0)
		return m;
	s->decided[a->class_id].refused += fanned(a->fan, a->would);
	if (shut || sink_mode(s) == WEIR_ADMISSION_ENFORCE)
		obey(s, a, &q, &view, reason);
	return m;
}

/* Service time of the events of higher classes that have been admitted from this batch for thread
 * a->rank. */
static int64_t admitted_for(const struct sink *s, const struct admit_call *a)
{
	const struct verdict *v = a->v;
	int64_t work_ns = 0;

	for (int i = 0; i < a->n; i++)
		if (a->ev[i]->class_id < a->class_id && !(v->refuses && v->why[i]) &&
		    rank_of(s, a->ev[i], a->n_ranks) == a->rank)
			work_ns += sink_cost_ns(s, a->ev[i]->class_id);
	return work_ns;
}

/* Consult the policy once for each thread that will serve the events. A partition is served by one
 * thread, so only the work that waits for that thread matters. */
static int admit_by_rank(struct sink *s, struct admit_call *a) WEIR_REQUIRES(&s->queue.lock)
{
	uint64_t ranks = 0;
	int m = 0, would = 0;

	a->n_ranks = ranks_of(s);
	for (int i = 0; i < a->n; i++)
		if (a->ev[i]->class_id == a->class_id)
			ranks |= 1ULL << rank_of(s, a->ev[i], a->n_ranks);
	for (; ranks; ranks &= ranks - 1) {
		a->rank = __builtin_ctzll(ranks);
		a->admitted_ns = admitted_for(s, a);
		int in = admit_ask(s, a);
		m += in;
		a->length += (uint32_t)in;
		would += a->would;
	}
	a->would = would;
	return m;
}

int admit_own(
    struct sink *s, struct weir_event **ev, int n, int class_id, int64_t now_ns, struct verdict *v)
{
	struct admit_call a = {.ev = ev,
	    .n = n,
	    .v = v,
	    .class_id = class_id,
	    .rank = ANY_RANK,
	    .fan = 1,
	    .now_ns = now_ns,
	    .admitted_ns = v->admitted_ns,
	    .length = v->length};

	s->decided[class_id].offered += (uint64_t)v->fresh[class_id];
	s->decided[class_id].wanted += (uint64_t)v->want[class_id];
	int m = WEIR_UNLIKELY(queue_parted(&s->queue)) && s->policy->tick ? admit_by_rank(s, &a)
									  : admit_ask(s, &a);
	if (a.would > 0 && sink_mode(s) != WEIR_ADMISSION_ENFORCE) {
		v->shadow[class_id] = a.would;
		v->shadows = true;
	}
	return m;
}
