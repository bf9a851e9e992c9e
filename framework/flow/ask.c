/* SPDX-License-Identifier: MIT */
/* Asking admission policies; see ask.h. */
#include "flow/ask.h"

#include <string.h>

#include "admission/users.h"
#include "flow/shed_token.h"

void verdict_init(struct verdict *v, const struct sink *s, int from)
{
	memset(v, 0, offsetof(struct verdict, turned));
	if (WEIR_LIKELY(!s->ahead))
		return;
	memset(v->turned, 0, sizeof(v->turned));
	const struct ahead *before = from != WEIR_NO_STAGE ? s->sinks[from]->ahead : NULL;
	for (int c = 0; c < s->queue.n_classes; c++) {
		unsigned asks = atomic_load_explicit(&s->ahead->asks[c], memory_order_relaxed);
		unsigned judged =
		    before ? atomic_load_explicit(&before->judged[c], memory_order_relaxed) : 0;
		v->asks[c] = (uint16_t)(asks & ~judged);
		if (s->front >= 0)
			v->judged |= (uint16_t)((judged >> s->front & 1) << c);
	}
}

static void refuse(struct verdict *v, int n, int at, int reason)
{
	if (!v->refuses)
		memset(v->why, 0, (size_t)n * sizeof(v->why[0]));
	v->refuses = true;
	v->why[at] = reason;
}

/* Where the user of an event is in the turn; an event of nobody is a user of its own. */
static inline uint16_t place_of(const struct weir_event *ev, uint16_t fallen)
{
	uint64_t id = ev->session & ~WEIR_SESSION_RETRY;

	if (id == 0) {
		id = (uint64_t)(uintptr_t)ev ^ (uint64_t)ev->arrival_ns;
		id ^= id >> 32;
	}
	return (uint16_t)(users_first(id) - fallen);
}

void ask_mark(const struct sink *s, struct weir_event *ev, int reason, double part, int64_t wait_ns,
    int64_t now_ns)
{
	struct shed_token t = {.reason_index = (uint8_t)weir_shed_index(reason),
	    .stage = s->id,
	    .class_id = ev->class_id,
	    .user = (uint8_t)(place_of(ev, users_fallen(now_ns)) >> 8),
	    .part = shed_token_part(part),
	    .wait = shed_token_wait(wait_ns, s->slo_ns),
	    .at = shed_token_at(now_ns - s->started_ns)};

	ev->trace_id = shed_token_pack(&t);
}

void verdict_refuse_last(struct verdict *v, const struct sink *s, struct weir_event **ev, int n,
    int class_id, int many, int reason)
{
	v->want[class_id] -= many;
	for (int i = n - 1; many > 0 && i >= 0; i--) {
		if (ev[i]->class_id != class_id || (v->refuses && v->why[i]))
			continue;
		refuse(v, n, i, reason);
		ask_mark(s, ev[i], reason, 1, -1, ev[i]->queued_ns);
		many--;
	}
}

/* ---- what a policy may look at ---- */

/* Work that `threads` have taken in batches and not begun: it waits, too. */
static int64_t begun_ns(const struct sink *s, int threads)
{
	int64_t running = atomic_load_explicit(&s->running, memory_order_relaxed);

	return running > threads ? (running - threads) *
				       atomic_load_explicit(&s->mean_cost_ns, memory_order_relaxed)
				 : 0;
}

int64_t sink_work_ns_locked(const struct sink *s, int threads)
{
	int64_t work_ns = 0;

	for (int c = 0; queue_length(&s->queue) > 0 && c < s->queue.n_classes; c++)
		work_ns += queue_class_length_locked(&s->queue, c) * sink_cost_ns(s, c);
	return work_ns + begun_ns(s, threads);
}

/* How a policy is asked: where from, and about how much that is not in the books yet. */
struct asking {
	int class_id;
	int64_t now_ns, lead_ns, admitted_ns;
	int before; /* part of the pipeline that is ahead of this door, in AHEAD_ALLths */
	uint32_t length;
};

/* Cheap policies learn nothing and see nothing but lengths. */
static void fill_view(struct sink *s, const struct asking *a, struct admission_view *view)
    WEIR_REQUIRES(&s->queue.lock)
{
	*view = (struct admission_view){.now_ns = a->now_ns,
	    .length = a->length,
	    .limit = s->queue.limit,
	    .n_classes = s->queue.n_classes,
	    .threads = 1,
	    .slo_ns = s->slo_ns,
	    .lead_ns = a->lead_ns};
	if (!s->policy->tick)
		return;
	view->running = atomic_load_explicit(&s->running, memory_order_relaxed);
	if (s->look)
		s->look(s, view);
	view->work_ns = sink_work_ns_locked(s, view->threads) + a->admitted_ns;
	view->cost_ns = atomic_load_explicit(&s->mean_cost_ns, memory_order_relaxed);
	if (!s->ahead)
		return;
	int64_t coming_ns =
	    atomic_load_explicit(&s->pipeline_ns, memory_order_relaxed) * a->before / AHEAD_ALL;
	view->work_ns += coming_ns > 0 ? coming_ns : 0;
	view->rest_ns = atomic_load_explicit(&s->ahead->rest_ns[a->class_id], memory_order_relaxed);
	/* Idle now is not idle then, if enough is on its way. */
	if (coming_ns > 0 && view->work_ns / view->threads > view->lead_ns + view->cost_ns)
		view->idle = 0;
}

/* One class of a run, as a policy is asked about it. */
struct question {
	int n;
	bool timed;             /* some have deadlines */
	int at[WEIR_BATCH_MAX]; /* places in the run */
	uint16_t user[WEIR_BATCH_MAX];
	int64_t left_ns[WEIR_BATCH_MAX];
	bool refused[WEIR_BATCH_MAX];
};

static void collect(const struct sink *s, struct weir_event **ev, int n, const struct verdict *v,
    const struct asking *a, struct question *q)
{
	int64_t now_ns = a->now_ns;
	uint16_t fallen = users_fallen(now_ns);

	q->n = 0;
	q->timed = false;
	for (int i = 0; i < n; i++) {
		if (ev[i]->class_id != a->class_id || (v->refuses && v->why[i]))
			continue;
		q->at[q->n] = i;
		q->refused[q->n] = false;
		if (s->policy->tick) {
			q->user[q->n] = users_number(
			    place_of(ev[i], fallen), ev[i]->session & WEIR_SESSION_RETRY);
			q->left_ns[q->n] = weir_event_left_ns(ev[i], now_ns);
			q->timed |= ev[i]->deadline_ns != WEIR_NO_DEADLINE;
		}
		q->n++;
	}
}

/* ---- the answer ---- */

/* Which of the class may enter? What makes no sense is not obeyed but counted. Returns how many; those
 * that may not are marked in q->refused. */
static int answer(struct sink *s, const struct asking *a, struct question *q,
    const struct admission_view *view, int *reason) WEIR_REQUIRES(&s->queue.lock)
{
	int m = s->policy->admit(
	    s->admission_state, &s->admission, view, a->class_id, q->n, q->refused, reason);
	int marked = 0;

	for (int i = 0; i < q->n; i++)
		marked += q->refused[i];
	bool flagged = marked == q->n - m;
	if (m < 0 || m > q->n || (marked && !flagged) ||
	    (m < q->n && weir_shed_index(*reason) < 0)) {
		atomic_fetch_add_explicit(&s->nonsense, 1, memory_order_relaxed);
		memset(q->refused, 0, sizeof(q->refused[0]) * (size_t)q->n);
		return q->n;
	}
	for (int i = m; !flagged && i < q->n; i++) /* no marks: the last ones */
		q->refused[i] = true;
	return m;
}

/* Refuse what the policy of `s` refused, each with its token. */
static void obey(struct sink *s, struct weir_event **ev, int n, const struct asking *a,
    const struct question *q, const struct admission_view *view, int reason, struct verdict *v)
    WEIR_REQUIRES(&s->queue.lock)
{
	double part = s->policy->part ? s->policy->part(s->admission_state, a->class_id) : 1;
	int64_t wait_ns = view->cost_ns > 0 ? view->work_ns / view->threads - view->lead_ns : -1;

	for (int i = 0; i < q->n; i++) {
		if (!q->refused[i])
			continue;
		refuse(v, n, q->at[i], reason);
		v->want[a->class_id]--;
		ask_mark(s, ev[q->at[i]], reason, part,
		    wait_ns > 0   ? wait_ns
		    : wait_ns < 0 ? -1
				  : 0,
		    a->now_ns);
	}
}

/* Ask the policy of `s`. Returns how many it would admit; *would: refuses, if only in shadow mode. */
static int ask(struct sink *s, struct weir_event **ev, int n, const struct asking *a,
    struct verdict *v, int *would) WEIR_REQUIRES(&s->queue.lock)
{
	struct admission_view view;
	struct question q;
	int reason = 0;

	*would = 0;
	collect(s, ev, n, v, a, &q);
	if (q.n == 0)
		return 0;
	fill_view(s, a, &view);
	if (s->policy->tick)
		view.user = q.user;
	if (q.timed)
		view.left_ns = q.left_ns;
	bool shut =
	    s->queue.shut; /* drained by an operator: what goes there would be refused there */
	if (shut) {
		memset(q.refused, true, sizeof(q.refused[0]) * (size_t)q.n);
		reason = WEIR_EDRAINING;
	}
	int m = shut ? 0 : answer(s, a, &q, &view, &reason);
	*would = q.n - m;
	s->asked[a->class_id].turned += (uint64_t)*would;
	if (*would > 0 && (shut || sink_mode(s) == WEIR_ADMISSION_ENFORCE))
		obey(s, ev, n, a, &q, &view, reason, v);
	return m;
}

int ask_own(
    struct sink *s, struct weir_event **ev, int n, int class_id, int64_t now_ns, struct verdict *v)
{
	struct asking a = {.class_id = class_id,
	    .now_ns = now_ns,
	    .admitted_ns = v->admitted_ns,
	    .length = v->length};
	int would;

	s->asked[class_id].asked += (uint64_t)v->fresh[class_id];
	s->asked[class_id].wanted += (uint64_t)v->want[class_id];
	int m = ask(s, ev, n, &a, v, &would);
	if (sink_mode(s) != WEIR_ADMISSION_ENFORCE)
		v->shadow[class_id] = would;
	return m;
}

/* ---- ahead ---- */

static void ask_front(struct sink *gate, struct sink *front, struct weir_event **ev, int n,
    int64_t now_ns, struct verdict *v)
{
	struct asking a = {.now_ns = now_ns, .length = queue_length(&front->queue)};

	lock_take(&front->queue.lock);
	for (int c = 0; c < gate->queue.n_classes; c++) {
		int would;
		if (sink_mode(front) == WEIR_ADMISSION_OFF)
			v->asks[c] &= (uint16_t) ~(1U << front->front);
		if (!(v->asks[c] >> front->front & 1) || v->fresh[c] == 0)
			continue;
		a.class_id = c;
		a.lead_ns = atomic_load_explicit(
		    &gate->ahead->lead_ns[c][front->front], memory_order_relaxed);
		a.before = atomic_load_explicit(
		    &gate->ahead->before[c][front->front], memory_order_relaxed);
		front->asked[c].asked += (uint64_t)v->fresh[c];
		int before = v->want[c];
		ask(front, ev, n, &a, v, &would);
		int turned = before - v->want[c];
		v->turned[c][front->front] = (uint16_t)turned;
		if (would > turned)
			atomic_fetch_add_explicit(
			    &front->shadow_ahead[c], (uint64_t)would, memory_order_relaxed);
		if (turned)
			atomic_fetch_add_explicit(
			    &front->refused_ahead[c], (uint64_t)turned, memory_order_relaxed);
		a.admitted_ns += v->want[c] * sink_cost_ns(front, c);
		a.length += (uint32_t)v->want[c];
	}
	lock_release(&front->queue.lock);
}

static unsigned all_asks(const struct sink *s, const struct verdict *v)
{
	unsigned all = 0;

	for (int c = 0; c < s->queue.n_classes; c++)
		if (v->fresh[c])
			all |= v->asks[c];
	return all;
}

void ask_ahead(struct sink *gate, struct weir_event **ev, int n, int64_t now_ns, struct verdict *v)
{
	for (unsigned left = all_asks(gate, v); left; left &= left - 1)
		ask_front(gate, gate->fronts[__builtin_ctz(left)], ev, n, now_ns, v);
}

void ask_settle(struct sink *gate, const struct verdict *v)
{
	if (WEIR_LIKELY(!gate->ahead))
		return;
	for (int c = 0; c < gate->queue.n_classes; c++) {
		if (v->fresh[c] == 0)
			continue;
		int entered = v->want[c];
		if (v->judged >> c & 1)
			atomic_fetch_sub_explicit(&gate->pipeline_ns,
			    entered * sink_cost_ns(gate, c), memory_order_relaxed);
		for (unsigned left = v->asks[c]; left; left &= left - 1) {
			struct sink *front = gate->fronts[__builtin_ctz(left)];
			atomic_fetch_add_explicit(&front->wanted_ahead[c],
			    (uint64_t)(entered + v->turned[c][front->front]), memory_order_relaxed);
			atomic_fetch_add_explicit(&front->pipeline_ns,
			    entered * sink_cost_ns(front, c), memory_order_relaxed);
		}
	}
}
