/* SPDX-License-Identifier: MIT */
/*
 * The door of a stage, as framework/flow/sink.c has it: deadline, then class by class, the highest
 * first, the policy's verdict and the queue's room. And probes: sometimes a copy of the policy is
 * asked again about an earlier user and a higher class (laws I5).
 */
#include "world.h"

#include <string.h>

/* One admission of so many is probed: prime, so that it does not beat with the load. A guess: the
 * probes of a short run are hundreds, and cost 5 %. */
#define PROBE_EVERY 17

/* One class of a run, as the policy is asked about it. */
struct question {
	int class_id, n;
	uint32_t slot[WEIR_BATCH_MAX];
	uint16_t user[WEIR_BATCH_MAX];
	bool refused[WEIR_BATCH_MAX];
};

int64_t queue_work_ns(const struct sim *s, const struct stage *st)
{
	int64_t work_ns = 0;

	for (int c = 0; c < s->conf->n_classes; c++)
		work_ns += st->lane[c].n * st->cost_ns[c];
	return work_ns;
}

static void push(struct sim *s, struct stage *st, uint32_t slot)
{
	struct request *r = &s->req[slot];
	struct lane *l = &st->lane[r->class_id];

	r->queued_ns = s->now_ns;
	r->next = NONE;
	if (l->n++ == 0)
		l->head = slot;
	else
		s->req[l->tail].next = slot;
	l->tail = slot;
	st->length++;
	st->books[r->class_id].admitted++;
	if (r->at == 0 && r->counted)
		s->r->class[r->class_id].admitted++;
}

/* Does refusing for this reason say that the stage has too much to do? */
static bool over_load(int reason)
{
	return reason == WEIR_EQUEUE || reason == WEIR_ETHRESHOLD || reason == WEIR_EPRIORITY ||
	       reason == WEIR_EDELAY || reason == WEIR_ELIMIT;
}

static void refuse(struct sim *s, int stage, uint32_t slot, int reason)
{
	struct stage *st = &s->stage[stage];
	struct request *r = &s->req[slot];

	st->books[r->class_id].refused++;
	if (over_load(reason) && st->idle != NONE) {
		if (s->now_ns >= s->conf->warmup_ns)
			s->r->stage[stage].refused_idle++;
		laws_break(s, SIM_LAW_IDLE, stage, "class %d refused (%s) while a thread is idle",
		    r->class_id, weir_error_word(reason));
	}
	client_end(s, slot, reason, r->at > 0);
}

static void fill_view(struct sim *s, const struct stage *st, struct admission_view *v)
{
	*v = (struct admission_view){.now_ns = s->now_ns,
	    .length = st->length,
	    .limit = st->conf->queue_limit,
	    .running = st->running,
	    .n_classes = s->conf->n_classes,
	    .threads = st->target > 0 ? st->target : 1,
	    .idle = st->idle != NONE,
	    .work_ns = queue_work_ns(s, st),
	    .cost_ns = st->mean_cost_ns,
	    .slo_ns = st->conf->slo_ns};
}

/* ---- probes ---- */

static bool would_admit(const struct stage *st, const unsigned char *state,
    const struct admission_view *view, int class_id, uint16_t user)
{
	_Alignas(16) unsigned char copy[ADMISSION_STATE_MAX];
	struct admission_view v = *view;
	bool refused = false;
	int reason = 0;

	memcpy(copy, state, sizeof(copy));
	v.user = &user;
	return st->conf->admission->admit(
		   copy, &st->conf->params, &v, class_id, 1, &refused, &reason) == 1;
}

/* `view` and `state` were before the admission of q's only event. */
static void probe(struct sim *s, int stage, const struct question *q,
    const struct admission_view *view, const unsigned char *state)
{
	const struct stage *st = &s->stage[stage];
	struct sim_stage_result *r = &s->r->stage[stage];

	r->probes++;
	if (!would_admit(st, state, view, q->class_id, q->user[0] / 2)) {
		r->user_inversions++;
		laws_break(s, SIM_LAW_USER, stage,
		    "class %d: user %u admitted where user %u would not be", q->class_id,
		    q->user[0], q->user[0] / 2);
	}
	if (q->class_id > 0 && !would_admit(st, state, view, q->class_id - 1, q->user[0]))
		r->class_inversions++;
}

/* ---- the policy's verdict ---- */

static void check_sense(
    struct sim *s, int stage, const struct question *q, int *m, int reason, bool *flagged)
{
	int marked = 0;

	for (int i = 0; i < q->n; i++)
		marked += q->refused[i];
	*flagged = marked == q->n - *m;
	if (*m >= 0 && *m <= q->n && (marked == 0 || *flagged) &&
	    (*m == q->n || weir_shed_index(reason) >= 0))
		return;
	s->r->stage[stage].nonsense++;
	laws_break(s, SIM_LAW_SENSE, stage, "policy %s: %d of %d, %d marked, reason %d",
	    s->stage[stage].conf->admission->name, *m, q->n, marked, reason);
	*m = q->n;
	*flagged = false;
}

/* Which of the class may enter? Marks the others in q->refused. Returns how many the policy was
 * charged for, those that it would admit. */
static int ask(struct sim *s, int stage, struct question *q, int *reason)
{
	struct stage *st = &s->stage[stage];
	const struct admission_policy *p = st->conf->admission;
	_Alignas(16) unsigned char before[ADMISSION_STATE_MAX];
	struct admission_view view;
	bool flagged, probes = q->n == 1 && p->tick && st->asked++ % PROBE_EVERY == 0;

	fill_view(s, st, &view);
	if (probes)
		memcpy(before, st->state, sizeof(before));
	view.user = q->user;
	int m =
	    p->admit(st->state, &st->conf->params, &view, q->class_id, q->n, q->refused, reason);
	check_sense(s, stage, q, &m, *reason, &flagged);
	st->books[q->class_id].policy_refused += (uint64_t)(q->n - m);
	if (st->conf->params.mode != WEIR_ADMISSION_ENFORCE) {
		memset(q->refused, 0, sizeof(q->refused[0]) * (size_t)q->n);
		return m;
	}
	for (int i = m; !flagged && i < q->n; i++)
		q->refused[i] = true;
	if (probes && m == 1)
		probe(s, stage, q, &view, before);
	return m;
}

/* More work is waiting than the threads can do within the objective, by the costs that the policy
 * knows, and this came on top. An event or so more than the cap is no matter: hence the costs. */
static void check_bound(struct sim *s, int stage)
{
	struct stage *st = &s->stage[stage];
	int threads = st->target > 0 ? st->target : 1;
	int64_t bound_ns =
	    st->conf->slo_ns > 4 * st->mean_cost_ns ? st->conf->slo_ns : 4 * st->mean_cost_ns;

	int64_t wait_ns = queue_work_ns(s, st) / threads;
	if (st->mean_cost_ns == 0 || wait_ns <= bound_ns)
		return;
	s->r->stage[stage].over_bound++;
	laws_break(s, SIM_LAW_BOUND, stage,
	    "admitted with %.1f ms of work waiting, the objective is %.1f ms",
	    (double)wait_ns * 1e-6, (double)st->conf->slo_ns * 1e-6);
}

static void admit_class(struct sim *s, int stage, struct question *q)
{
	struct stage *st = &s->stage[stage];
	const struct admission_policy *p = st->conf->admission;
	bool asks = p != &admission_none && st->conf->params.mode != WEIR_ADMISSION_OFF;
	int reason = 0, charged = 0, entered = 0;
	int room =
	    st->conf->queue_limit > st->length ? (int)(st->conf->queue_limit - st->length) : 0;

	memset(q->refused, 0, sizeof(q->refused[0]) * (size_t)q->n);
	if (asks)
		charged = ask(s, stage, q, &reason);
	if (charged > room && p->give_back)
		p->give_back(st->state, charged - room);
	for (int i = 0; i < q->n; i++) {
		if (!q->refused[i] && entered < room) {
			push(s, st, q->slot[i]);
			entered++;
		} else {
			refuse(s, stage, q->slot[i], q->refused[i] ? reason : WEIR_EQUEUE);
		}
	}
	if (entered > 0)
		check_bound(s, stage);
	laws_note(s, "offer", stage, q->class_id, q->n, entered);
}

void door_offer(struct sim *s, int stage, const uint32_t *slot, int n)
{
	struct stage *st = &s->stage[stage];
	struct question q;
	uint32_t left[WEIR_BATCH_MAX];
	unsigned classes = 0;
	int n_left = 0;

	for (int i = 0; i < n; i++) {
		const struct request *r = &s->req[slot[i]];
		st->books[r->class_id].offered++;
		if (r->deadline_ns <= s->now_ns) {
			refuse(s, stage, slot[i], WEIR_EDEADLINE);
			continue;
		}
		classes |= 1u << r->class_id;
		left[n_left++] = slot[i];
	}
	for (int c = 0; classes >> c; c++) {
		if (!(classes >> c & 1))
			continue;
		q.class_id = c;
		q.n = 0;
		for (int i = 0; i < n_left; i++) {
			if (s->req[left[i]].class_id != c)
				continue;
			q.slot[q.n] = left[i];
			q.user[q.n++] = s->req[left[i]].place;
		}
		admit_class(s, stage, &q);
	}
	workers_start(s, stage);
}
