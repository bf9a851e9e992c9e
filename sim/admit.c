/* SPDX-License-Identifier: MIT */
/*
 * Decides on admission to a stage, in the same order as framework/stage/sink.c and admit.c: first
 * the deadlines of all events, then class by class, from the highest, these checks:
 *
 *   1. the policies of the later stages on whose behalf this stage decides (admission upstream)
 *   2. the stage's own policy
 *   3. the free space in its queue
 *
 * Of the admissions of single events, one in PROBE_EVERY is probed: the policy is queried again,
 * with a copy of its state, for a user that is earlier in the rotation of users and for the next
 * higher class. The earlier user must be admitted as well (law I5). A refusal of the higher class
 * is only counted, since guarantees may require it.
 */
#include "world.h"

#include <string.h>

#include "admission/judge.h"
#include "admission/room.h"
#include "group.h"

/* Interval between probed admissions. 17 is a guess: a short run still has hundreds of probes,
 * which cost 5 % of its time. It is prime, so that probes do not fall into step with periodic
 * loads. */
#define PROBE_EVERY 17

/* The events of one class in a batch, for which the policies are queried. */
struct question {
	int class_id, n;
	uint32_t slot[WEIR_BATCH_MAX];
	int from;                /* the stage that offers the events, -1 for clients */
	bool judged;             /* no policy has to decide on them here */
	int why[WEIR_BATCH_MAX]; /* 0, or the reason for the refusal */
	/* the stage whose policy refused the event; set only if `why` is not 0 */
	int by[WEIR_BATCH_MAX];
};

/* Those events of a question that no policy has refused so far, in the form that a policy takes. */
struct part {
	struct judge_run run;
	int at[WEIR_BATCH_MAX];
};

int64_t queue_work_ns(const struct sim *s, const struct stage *st)
{
	int64_t work_ns = 0;

	for (int c = 0; c < s->conf->n_classes; c++)
		work_ns += (st->lane[c].n + st->in_cells[c]) * st->cost_ns[c];
	return work_ns;
}

void lane_push(struct sim *s, struct lane *l, uint32_t slot)
{
	s->req[slot].next = NONE;
	if (l->n++ == 0)
		l->head = slot;
	else
		s->req[l->tail].next = slot;
	l->tail = slot;
}

/* Put the request into the cell of a core, or into the queue if `core` is NULL. */
static void push(struct sim *s, struct stage *st, struct group_core *core, uint32_t slot)
{
	struct request *r = &s->req[slot];

	r->queued_ns = s->now_ns;
	if (core)
		group_push(s, st, core, slot);
	else if (st->part)
		keys_push(s, st, slot);
	else
		lane_push(s, &st->lane[r->class_id], slot);
	st->length++;
	st->books[r->class_id].admitted++;
	if (r->at == 0 && r->counted)
		s->r->class[r->class_id].admitted++;
}

/* Whether the reason for a refusal is overload of the stage. */
static bool over_load(int reason)
{
	return reason == WEIR_EQUEUE || reason == WEIR_ETHRESHOLD || reason == WEIR_EPRIORITY ||
	       reason == WEIR_EDELAY || reason == WEIR_ELIMIT;
}

/* `slot`: one of the events, which all have one owner if the stage is serial. */
static void fill_view(struct sim *s, int entry, int stage, uint32_t slot, struct admission_view *v)
{
	int class_id = s->req[slot].class_id;
	const struct stage *st = &s->stage[stage];
	int64_t coming_ns = routes_coming_ns(s, entry, stage, class_id);
	int64_t waiting_ns = queue_work_ns(s, st), own_ns = 0;

	if (st->part && entry == stage) { /* as of all cores, if all had as much */
		own_ns = keys_work_ns(s, st, slot);
		waiting_ns = own_ns * st->target;
	}
	*v = (struct admission_view){.now_ns = s->now_ns,
	    .length = st->length,
	    .limit = st->own,
	    .running = st->running,
	    .n_classes = s->conf->n_classes,
	    .threads = st->target > 0 ? st->target : 1,
	    .work_ns = waiting_ns + coming_ns,
	    .cost_ns = st->mean_cost_ns,
	    .slo_ns = st->conf->slo_ns,
	    .lead_ns = routes_lead_ns(s, entry, stage, class_id),
	    .rest_ns = routes_rest_ns(s, stage, class_id)};
	int idle = st->live > st->busy ? st->live - st->busy : 0;
	if (st->group)
		idle = st->group->n_idle;
	v->idle = own_ns > 0 ? 0 : judge_idle(v, idle, coming_ns);
	v->work_ns = group_work_ns(s, st, v->work_ns); /* stage_beside of framework/sched */
}

static void refuse(struct sim *s, int stage, uint32_t slot, int reason, int by)
{
	struct request *r = &s->req[slot];
	int for_whom = by >= 0 ? by : stage;
	struct admission_view view;

	s->stage[stage].books[r->class_id].refused++;
	if (for_whom != stage)
		s->stage[for_whom].turned_ahead++;
	laws_refused(s, stage, by, r, reason);
	laws_saw(s, SIM_LAW_IDLE, 0);
	if (over_load(reason))
		fill_view(s, stage, for_whom, slot, &view);
	if (over_load(reason) && view.idle > 0) {
		if (s->now_ns >= s->conf->warmup_ns)
			s->r->stage[for_whom].refused_idle++;
		laws_break(s, SIM_LAW_IDLE, for_whom,
		    "class %d refused (%s) while a thread is idle", r->class_id,
		    weir_error_word(reason));
	}
	client_end(s, slot, reason, r->at > 0);
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

/* Check whether the policy would also admit an earlier user and the next higher class. `view` and
 * `state` are those of the admission of one event, from before the decision. */
static void probe(struct sim *s, int stage, int class_id, uint16_t user,
    const struct admission_view *view, const unsigned char *state)
{
	const struct stage *st = &s->stage[stage];
	struct sim_stage_result *r = &s->r->stage[stage];

	r->probes++;
	laws_saw(s, SIM_LAW_USER, 0);
	if (!would_admit(st, state, view, class_id, user / 2)) {
		r->user_inversions++;
		laws_break(s, SIM_LAW_USER, stage,
		    "class %d: user %u is admitted, but user %u would be refused", class_id, user,
		    user / 2);
	}
	if (class_id > 0 && !would_admit(st, state, view, class_id - 1, user))
		r->class_inversions++;
}

/* ---- the verdict of the policy ---- */

static void survivors(const struct sim *s, const struct question *q, struct part *part)
{
	part->run.n = 0;
	part->run.timed = false;
	for (int i = 0; i < q->n; i++) {
		const struct request *r = &s->req[q->slot[i]];
		if (q->why[i])
			continue;
		part->at[part->run.n] = i;
		judge_add(&part->run, r->user == NO_USER ? 0 : r->user + 1, r->place,
		    r->attempt > 0,
		    r->deadline_ns == WEIR_NO_DEADLINE ? INT64_MAX : r->deadline_ns - s->now_ns);
	}
}

/* Query the policy of `stage` for the remaining events, at the admission of `entry`. Returns the
 * number of events that the policy would admit and has charged for. */
static int ask(struct sim *s, int entry, int stage, struct question *q)
{
	struct stage *st = &s->stage[stage];
	const struct admission_policy *p = st->conf->admission;
	_Alignas(16) unsigned char before[ADMISSION_STATE_MAX];
	struct judge judge = {p, st->state, &st->conf->params, st->fair};
	struct admission_view view;
	struct part part;
	int reason = 0;
	bool nonsense;

	survivors(s, q, &part);
	int n = part.run.n;
	if (n == 0)
		return 0;
	bool probes = n == 1 && p->tick && (s->conf->probe_all || st->asked++ % PROBE_EVERY == 0);
	fill_view(s, entry, stage, q->slot[0], &view);
	if (probes)
		memcpy(before, st->state, sizeof(before));
	judge_view(&judge, q->class_id, &part.run, &view);
	int m = judge_ask(&judge, q->class_id, &part.run, &view, &reason, &nonsense);
	laws_saw(s, SIM_LAW_SENSE, 0);
	if (nonsense) {
		s->r->stage[stage].nonsense++;
		laws_break(s, SIM_LAW_SENSE, stage,
		    "the verdict of policy %s is inconsistent: %d of %d admitted, %d marked as "
		    "refused, reason %d",
		    p->name, part.run.said, n, part.run.marked, reason);
	} else if (probes) {
		laws_asked_again(s, stage, q->class_id, &view, before, m, reason);
	}
	st->books[q->class_id].policy_refused += (uint64_t)(n - m);
	if (st->conf->params.mode != WEIR_ADMISSION_ENFORCE)
		return m;
	for (int i = 0; i < n; i++) {
		if (part.run.refused[i]) {
			q->why[part.at[i]] = reason;
			q->by[part.at[i]] = stage;
		}
	}
	if (probes && m == 1)
		probe(s, stage, q->class_id, part.run.user[0], &view, before);
	return m;
}

/* Check the law SIM_LAW_BOUND after an admission. At the costs known to the policy, the threads
 * must finish the waiting work within the objective or within four service times, whichever is
 * longer. The four service times are needed if the objective is short: a single event may then
 * exceed it. */
static void check_bound(struct sim *s, int stage)
{
	struct stage *st = &s->stage[stage];
	int threads = st->target > 0 ? st->target : 1;
	int64_t bound_ns =
	    st->conf->slo_ns > 4 * st->mean_cost_ns ? st->conf->slo_ns : 4 * st->mean_cost_ns;

	int64_t wait_ns = queue_work_ns(s, st) / threads;
	if (st->mean_cost_ns == 0)
		return;
	laws_saw(s, SIM_LAW_BOUND, (double)wait_ns / (double)bound_ns);
	if (wait_ns <= bound_ns)
		return;
	s->r->stage[stage].over_bound++;
	laws_break(s, SIM_LAW_BOUND, stage,
	    "an event is admitted while %.1f ms of work is waiting; the objective is %.1f ms",
	    (double)wait_ns * 1e-6, (double)st->conf->slo_ns * 1e-6);
}

/* Update the counters `asked` and `wanted` of the stage. An offered event is wanted unless another
 * stage refused it. */
static void count_wanted(struct sim *s, int stage, const struct question *q)
{
	struct books *b = &s->stage[stage].books[q->class_id];

	b->asked += (uint64_t)q->n;
	for (int i = 0; i < q->n; i++)
		b->wanted += q->why[i] == 0 || q->by[i] == stage;
}

/* Return the number of free queue slots for events of the class, as in sink.c. */
static int64_t room_for(const struct sim *s, const struct stage *st, int class_id)
{
	uint8_t rank[WEIR_CLASSES_MAX] = {0};
	uint32_t in[WEIR_CLASSES_MAX];
	struct room r = {.limit = st->own,
	    .n_classes = s->conf->n_classes,
	    .n_ranks = room_ranks(s->conf->priority, s->conf->n_classes, rank),
	    .rank = rank,
	    .wait_ns = st->wait_ns,
	    .slo_ns = st->conf->slo_ns};

	for (int c = 0; c < s->conf->n_classes; c++)
		in[c] = st->lane[c].n;
	return room_left(&r, class_id, in);
}

/* Push the remaining events while there is free space. Returns the number of events pushed. */
static int enter_queue(struct sim *s, int stage, struct question *q, unsigned asked_for)
{
	struct stage *st = &s->stage[stage];
	struct group_core *core = q->judged ? group_cell(s, st, q->from, q->n, q->slot[0]) : NULL;
	int64_t cell = core ? group_room(st, core) : 0;
	int64_t room = room_for(s, st, q->class_id) + cell;
	int entered = 0;

	for (int i = 0; i < q->n; i++) {
		if (q->why[i] == 0 && entered < room) {
			if (q->from < 0 || s->stage[q->from].group != st->group)
				laws_group_entered(s, st, q->slot[i]);
			push(s, st, entered < cell ? core : NULL, q->slot[i]);
			s->req[q->slot[i]].asked_for |= asked_for;
			entered++;
		} else if (q->why[i] == 0) {
			refuse(s, stage, q->slot[i], WEIR_EQUEUE, -1);
		} else {
			refuse(s, stage, q->slot[i], q->why[i], q->by[i]);
		}
	}
	return entered;
}

static void admit_class(struct sim *s, int stage, struct question *q)
{
	struct stage *st = &s->stage[stage];
	const struct admission_policy *p = st->conf->admission;
	bool judged = routes_judged(s, q->from, stage, q->class_id);
	bool asks = p != &admission_none && st->conf->params.mode != WEIR_ADMISSION_OFF && !judged;
	int ahead[SIM_STAGES_MAX], charged = 0;
	int n_ahead = routes_ahead(s, stage, q->from, q->class_id, ahead);
	unsigned asked_for = 0;

	for (int i = 0; i < n_ahead; i++) {
		ask(s, stage, ahead[i], q);
		asked_for |= 1u << ahead[i];
	}
	if (asks)
		charged = ask(s, stage, stage, q);
	for (int i = 0; i < n_ahead; i++)
		count_wanted(s, ahead[i], q);
	if (asks)
		count_wanted(s, stage, q);
	q->judged = !asks && n_ahead == 0;
	int entered = enter_queue(s, stage, q, asked_for);
	if (charged > entered && p->give_back)
		p->give_back(st->state, charged - entered);
	for (int i = 0; i < n_ahead; i++)
		s->stage[ahead[i]].pipeline_ns += entered * s->stage[ahead[i]].cost_ns[q->class_id];
	if (judged) {
		st->pipeline_ns -= entered * st->cost_ns[q->class_id];
		st->pipeline_ns = st->pipeline_ns > 0 ? st->pipeline_ns : 0;
	}
	if (entered > 0 && !judged)
		check_bound(s, stage);
	laws_note(s, "offer", stage, q->class_id, q->n, entered);
}

/* A serial stage keeps the order of the batch: one question for each run of one class and one owner. */
static void admit_in_order(
    struct sim *s, int stage, struct question *q, const uint32_t *slot, int n)
{
	const struct stage *st = &s->stage[stage];

	for (int i = 0; i < n;) {
		const struct request *first = &s->req[slot[i]];
		int owner = keys_owner(s, st, first);
		q->class_id = first->class_id;
		for (q->n = 0; i < n && s->req[slot[i]].class_id == q->class_id &&
			       keys_owner(s, st, &s->req[slot[i]]) == owner;
		     i++) {
			q->slot[q->n] = slot[i];
			q->why[q->n++] = 0;
		}
		admit_class(s, stage, q);
	}
}

static void admit_by_class(
    struct sim *s, int stage, struct question *q, const uint32_t *slot, int n, unsigned classes)
{
	for (int c = 0; classes >> c; c++) {
		if (!(classes >> c & 1))
			continue;
		q->class_id = c;
		q->n = 0;
		for (int i = 0; i < n; i++) {
			if (s->req[slot[i]].class_id != c)
				continue;
			q->slot[q->n] = slot[i];
			q->why[q->n++] = 0;
		}
		admit_class(s, stage, q);
	}
}

void admit_offer(struct sim *s, int stage, const uint32_t *slot, int n)
{
	struct stage *st = &s->stage[stage];
	struct question q; /* 3 KB, so not cleared: only members that were set are read */
	uint32_t left[WEIR_BATCH_MAX];
	unsigned classes = 0;
	int n_left = 0;

	q.from = -1;
	if (s->req[slot[0]].at > 0) /* a batch may have several routes, but comes from one stage */
		q.from = s->conf->route[s->req[slot[0]].route].stage[s->req[slot[0]].at - 1];
	for (int i = 0; i < n; i++) {
		const struct request *r = &s->req[slot[i]];
		st->books[r->class_id].offered++;
		routes_tried(s, q.from, stage, r->class_id);
		if (q.from >= 0)
			laws_arrived(s, stage, r);
		if (r->deadline_ns <= s->now_ns) {
			refuse(s, stage, slot[i], WEIR_EDEADLINE, -1);
			continue;
		}
		classes |= 1u << r->class_id;
		left[n_left++] = slot[i];
	}
	if (st->part)
		admit_in_order(s, stage, &q, left, n_left);
	else
		admit_by_class(s, stage, &q, left, n_left, classes);
	workers_start(s, stage);
}
