/* SPDX-License-Identifier: MIT */
/*
 * Simulates threads and cores. A thread is idle (in the idle list), busy with a batch, or absent
 * (in the absent list).
 *
 *   take a batch -> compute -> block -> emit -> take the next, or become idle, or leave
 *
 * Each thread of a stage with a width stands for an event that the stage may have in progress.
 *
 * Cores are modelled as processor sharing: all computing handlers receive the same amount of CPU
 * time. cpu_time is the amount that a handler would have received if it had computed since the
 * start of the run. A handler that starts now and needs CPU time w is done when cpu_time has grown
 * by w, no matter how many handlers start or finish meanwhile. The heap `cpu` is ordered by this
 * value, so its entries never move. Only the wall-clock time of the first entry must be recomputed.
 */
#include "world.h"

#include <string.h>

#include "group.h"

/* Maximum duration of a batch if no cohorts are configured: COHORT_NS in stage/cohort.h. */
#define BATCH_NS 1000000

/* ---- cores ---- */

void cpu_advance(struct sim *s, int64_t to_ns)
{
	int64_t span_ns = to_ns - s->cpu_at_ns;
	int cores = s->conf->cores, used = s->computing < cores ? s->computing : cores;

	s->cpu_at_ns = to_ns;
	if (s->computing == 0 || span_ns == 0)
		return;
	s->cpu_used_ns += span_ns * used;
	s->cpu_time +=
	    s->computing <= cores ? span_ns * CPU_UNIT : span_ns * CPU_UNIT * cores / s->computing;
}

int64_t cpu_next_ns(struct sim *s)
{
	while (s->cpu.n && (!s->worker[s->cpu.e[0].what].computes ||
			       s->worker[s->cpu.e[0].what].order != s->cpu.e[0].order))
		heap_pop(&s->cpu); /* its thread has crashed */
	if (s->cpu.n == 0)
		return INT64_MAX;
	int64_t left = heap_first(&s->cpu) - s->cpu_time;
	int64_t cores = s->conf->cores, k = s->computing;
	if (left <= 0)
		return s->cpu_at_ns;
	int64_t wall = k <= cores ? left : (left * k + cores - 1) / cores;
	return s->cpu_at_ns + (wall + CPU_UNIT - 1) / CPU_UNIT;
}

/* Account for the computing part of a batch. It began with the batch and has just finished. */
static void stop_computing(struct sim *s, struct worker *w)
{
	struct stage *st = &s->stage[w->stage];

	w->computes = false;
	s->computing--;
	st->computing--;
	st->cpu_started_sum -= w->cpu_started;
	st->computing_sum_ns -= w->started_ns;
	st->cpu_time += s->cpu_time - w->cpu_started;
	st->computing_ns += s->now_ns - w->started_ns;
}

/* ---- batches ---- */

int batch_most(const struct stage *st)
{
	int max = st->conf->batch_max;

	if (st->conf->linger_ns == 0 && st->mean_cost_ns * max > BATCH_NS)
		max = st->mean_cost_ns >= BATCH_NS ? 1 : (int)(BATCH_NS / st->mean_cost_ns);
	return max;
}

static int batch_size(const struct stage *st)
{
	int max = batch_most(st), threads = st->target > 0 ? st->target : 1;
	int share = (int)((st->length + (uint32_t)threads - 1) / (uint32_t)threads);

	if (st->conf->linger_ns > 0) /* such a batch is not divided */
		share = (int)st->length;
	return share < max ? share : max;
}

/* The class whose first event has waited longest, or the highest class with events, as in
 * event/queue.c. */
int lanes_next(const struct sim *s, const struct stage *st, const struct lane *lane)
{
	bool fifo = st->conf->discipline == WEIR_DISCIPLINE_FIFO ||
		    (st->conf->discipline == WEIR_DISCIPLINE_AUTO && st->conf->admission->fifo);
	int best = -1;

	for (int c = 0; c < s->conf->n_classes && (best < 0 || fifo); c++)
		if (lane[c].n && (best < 0 || s->req[lane[c].head].queued_ns <
						  s->req[lane[best].head].queued_ns))
			best = c;
	return best;
}

uint32_t lane_pop(const struct sim *s, struct lane *l)
{
	uint32_t slot = l->head;

	l->head = s->req[slot].next;
	l->n--;
	return slot;
}

static uint32_t pop(struct sim *s, struct stage *st)
{
	st->length--;
	return waiting_pop(s, st, 0);
}

/* It may be too late by its deadline or by the policy. */
bool worker_shed(struct sim *s, struct stage *st, uint32_t slot)
{
	const struct admission_policy *p = st->conf->admission;
	struct request *r = &s->req[slot];
	struct books *b = &st->books[r->class_id];
	int mode = st->conf->params.mode;

	if (r->deadline_ns <= s->now_ns) {
		b->shed++;
		client_end(s, slot, WEIR_EDEADLINE, false);
		return true;
	}
	if (r->deadline_ns - s->now_ns < st->least_left_ns && mode == WEIR_ADMISSION_ENFORCE) {
		b->shed++;
		client_end(s, slot, WEIR_EHOPELESS, false);
		return true;
	}
	if (st->most_wait_ns && s->now_ns - r->queued_ns > st->most_wait_ns &&
	    mode == WEIR_ADMISSION_ENFORCE) {
		b->shed++;
		client_end(s, slot, WEIR_EDELAY, false);
		return true;
	}
	if (!p->drop || mode == WEIR_ADMISSION_OFF ||
	    !p->drop(st->state, &st->conf->params, s->now_ns, s->now_ns - r->queued_ns))
		return false;
	b->policy_refused++;
	if (mode != WEIR_ADMISSION_ENFORCE)
		return false;
	b->shed++;
	client_end(s, slot, WEIR_EDELAY, false);
	return true;
}

/* What an event does of its work before it yields. */
static int64_t until_yield_ns(struct stage *st, struct request *r, int64_t work_ns)
{
	const struct next_limits *l = &st->group->conf->limits;

	if (r->left_ns > 0) {
		work_ns = r->left_ns;
		st->again--;
	}
	r->left_ns = l->gate == NEXT_CUTOFF && work_ns > l->gate_ns ? work_ns - l->gate_ns : 0;
	return work_ns - r->left_ns;
}

int64_t worker_enter(struct sim *s, int stage, struct worker *w, uint32_t slot)
{
	struct stage *st = &s->stage[stage];
	struct request *r = &s->req[slot];
	struct books *b = &st->books[r->class_id];
	int64_t waited_ns = s->now_ns - r->queued_ns;

	laws_left_queue(s, stage, r);
	b->wait_ns += (uint64_t)waited_ns;
	b->wait.count[weir_hist_bucket(waited_ns)]++;
	b->handled++;
	b->running++;
	st->running++;
	if (st->group && r->worker != NONE && r->worker != (uint32_t)(w - s->worker))
		st->group->sum.strangers++;
	r->worker = (uint32_t)(w - s->worker);
	if (st->conf->serial || st->conf->partition)
		laws_serial_began(s, st, (uint32_t)(w - s->worker), slot);
	r->waited_ns += waited_ns;
	if (r->counted)
		hdr_add(&s->r->stage[stage].wait, waited_ns, 1);
	r->next = w->head;
	w->head = slot;
	w->n++;
	int64_t work_ns = sim_draw_ns(&st->conf->service, st->key, r->serial);
	if (st->group)
		work_ns = until_yield_ns(st, r, work_ns);
	r->alone_ns += (int64_t)((double)work_ns * st->slow);
	return work_ns;
}

/* Take a batch for `w`. Returns the work of the batch, or -1 if the batch is empty. */
static int64_t take(struct sim *s, int stage, struct worker *w)
{
	struct stage *st = &s->stage[stage];
	int64_t work_ns = st->conf->batch_fixed_ns;

	w->head = NONE;
	w->n = 0;
	laws_taken(s, stage);
	for (int left = batch_size(st); left > 0; left--) {
		uint32_t slot = pop(s, st);
		if (!worker_shed(s, st, slot))
			work_ns += worker_enter(s, stage, w, slot);
	}
	return w->n ? (int64_t)((double)work_ns * st->slow) : -1;
}

static void block(struct sim *s, uint32_t id)
{
	struct worker *w = &s->worker[id];

	w->computes = false;
	w->order =
	    heap_push(&s->heap, s->now_ns + w->block_ns, STEP_BLOCKED << STEP_SHIFT | id, &s->rc);
}

void worker_begin(struct sim *s, int stage, uint32_t id, int64_t work_ns, int64_t overhead_ns)
{
	struct stage *st = &s->stage[stage];
	struct worker *w = &s->worker[id];
	int64_t compute_ns = (int64_t)((double)work_ns * st->conf->cpu_share);

	if (st->free_ns)
		work_ns = servers_serve(s, st, work_ns);
	w->started_ns = s->now_ns;
	w->block_ns = work_ns - compute_ns;
	compute_ns += overhead_ns;
	st->busy++;
	st->started_sum_ns += s->now_ns;
	laws_note(s, "start", stage, -1, w->n, w->n);
	if (compute_ns == 0) {
		block(s, id);
		return;
	}
	cpu_advance(s, s->now_ns);
	w->computes = true;
	w->cpu_started = s->cpu_time;
	s->computing++;
	st->computing++;
	st->cpu_started_sum += s->cpu_time;
	st->computing_sum_ns += s->now_ns;
	w->order = heap_push(&s->cpu, s->cpu_time + compute_ns * CPU_UNIT, id, &s->rc);
}

void workers_start(struct sim *s, int stage)
{
	struct stage *st = &s->stage[stage];

	if (st->group)
		group_poke(s, stage);
	while (st->idle != NONE && st->length > 0 && !linger_waits(s, st)) {
		uint32_t id = st->idle;
		int64_t work_ns = take(s, stage, &s->worker[id]);
		if (work_ns < 0)
			continue; /* all events of the batch were shed */
		st->idle = s->worker[id].next;
		worker_begin(s, stage, id, work_ns, 0);
	}
}

/* ---- the end of a batch ---- */

static void list(struct sim *s, uint32_t *head, uint32_t id)
{
	s->worker[id].next = *head;
	*head = id;
}

/* Count the outcome of the batch; its requests stay in it. */
static void account(struct sim *s, struct stage *st, struct worker *w, bool failed)
{
	int64_t each_ns = w->n > 0 ? (s->now_ns - w->started_ns) / w->n : 0;

	for (uint32_t slot = w->head; slot != NONE; slot = s->req[slot].next) {
		struct request *r = &s->req[slot];
		struct books *b = &st->books[r->class_id];
		b->running--;
		b->completed += !failed;
		b->failed += failed;
		b->ran += !r->put_back;
		b->back -= r->put_back;
		b->service_ns += (uint64_t)each_ns;
		b->service.count[weir_hist_bucket(each_ns)]++;
		r->spent_ns += each_ns;
		if (st->conf->serial || st->conf->partition)
			laws_serial_ended(s, st, slot);
	}
	st->running -= (uint32_t)w->n;
	st->busy--;
	st->busy_ns += s->now_ns - w->started_ns;
	st->started_sum_ns -= w->started_ns;
}

/* Offer requests to the next stage of slot[0]: all those in slot[0..n) that have the same next
 * stage. The other requests are moved to the front of `slot`. Returns their number. */
static int send_on_one(struct sim *s, uint32_t *slot, int n)
{
	uint32_t run[WEIR_BATCH_MAX];
	const struct request *first = &s->req[slot[0]];
	int to = s->conf->route[first->route].stage[first->at], m = 0, left = 0;

	for (int i = 0; i < n; i++) {
		const struct request *r = &s->req[slot[i]];
		if (s->conf->route[r->route].stage[r->at] == to)
			run[m++] = slot[i];
		else
			slot[left++] = slot[i];
	}
	admit_offer(s, to, run, m);
	laws_check(s, to);
	return left;
}

static void send_on(struct sim *s, const struct stage *from, uint32_t head, int status)
{
	uint32_t further[WEIR_BATCH_MAX];
	int n = 0;

	for (uint32_t slot = head, next; slot != NONE; slot = next) {
		struct request *r = &s->req[slot];
		next = r->next;
		laws_serial_sent(s, from, slot);
		if (status == WEIR_OK && r->at + 1 < s->conf->route[r->route].n) {
			r->at++;
			further[n++] = slot;
		} else {
			client_end(s, slot, status, false);
		}
	}
	while (n > 0)
		n = send_on_one(s, further, n);
}

static void leave(struct sim *s, int stage, uint32_t id)
{
	workers_mark(s, stage);
	s->stage[stage].live--;
	list(s, &s->stage[stage].absent, id);
}

static void done(struct sim *s, uint32_t id)
{
	struct worker *w = &s->worker[id];
	int stage = w->stage;
	struct stage *st = &s->stage[stage];
	uint32_t head = w->head;

	laws_note(s, "done", stage, -1, w->n, w->n);
	if (st->group)
		head = group_yield(s, id);
	account(s, st, w, false);
	w->n = 0;
	w->head = NONE;
	send_on(s, st, head, WEIR_OK);
	if (st->group) {
		keys_deal(s, st->group, (int)(id - st->group->first));
		group_turn(s, id);
	} else if (st->live > st->target) {
		leave(s, stage, id);
	} else {
		list(s, &st->idle, id);
		workers_start(s, stage);
		st->meter.idle |= st->idle != NONE;
	}
	laws_check(s, stage);
}

void worker_blocked(struct sim *s, uint32_t id, uint32_t order)
{
	if (s->worker[id].n > 0 && !s->worker[id].computes && s->worker[id].order == order)
		done(s, id);
}

void worker_computed(struct sim *s)
{
	struct heap_entry e = heap_pop(&s->cpu);
	struct worker *w = &s->worker[e.what];

	if (e.at > s->cpu_time) /* a division was rounded down */
		s->cpu_time = e.at;
	stop_computing(s, w);
	if (w->block_ns > 0)
		block(s, e.what);
	else
		done(s, e.what);
}

/* ---- number of threads ---- */

void workers_mark(struct sim *s, int stage)
{
	struct stage *st = &s->stage[stage];

	st->threads_ns += st->live * (s->now_ns - st->threads_at_ns);
	st->threads_at_ns = s->now_ns;
}

void workers_mend(struct sim *s, int stage)
{
	struct stage *st = &s->stage[stage];

	workers_mark(s, stage);
	while (st->live < st->target) {
		uint32_t id = st->absent;
		st->absent = s->worker[id].next;
		list(s, &st->idle, id);
		st->live++;
	}
	while (st->live > st->target && st->idle != NONE) {
		uint32_t id = st->idle;
		st->idle = s->worker[id].next;
		leave(s, stage, id);
	}
	workers_start(s, stage);
}

void workers_resize(struct sim *s, int stage, int target)
{
	struct stage *st = &s->stage[stage];
	int direction = target > st->target ? 1 : -1;

	if (target == st->target)
		return;
	if (st->direction && st->direction != direction && s->now_ns >= s->conf->warmup_ns)
		s->r->stage[stage].reversals++;
	st->direction = direction;
	st->target = target;
	laws_note(s, direction > 0 ? "grow" : "shrink", stage, -1, target, st->live);
	workers_mend(s, stage);
	laws_check(s, stage);
}

void workers_crash(struct sim *s, int stage)
{
	struct stage *st = &s->stage[stage];
	uint32_t id = 0;

	if (st->busy == 0)
		return;
	while (s->worker[id].stage != stage || s->worker[id].n == 0)
		id++;
	struct worker *w = &s->worker[id];
	uint32_t head = w->head;
	if (w->computes) {
		cpu_advance(s, s->now_ns);
		stop_computing(s, w);
	}
	laws_note(s, "crash", stage, -1, w->n, 0);
	account(s, st, w, true);
	w->n = 0;
	w->order--; /* the heap entry for which the thread waited is now ignored */
	if (!st->group)
		leave(s, stage, id);
	send_on(s, st, head, WEIR_EDIED);
	if (st->group)
		group_died(s, id);
	laws_check(s, stage);
}

void workers_init(struct sim *s, int stage, uint32_t first)
{
	struct stage *st = &s->stage[stage];

	st->idle = st->absent = NONE;
	for (int i = 0; i < st->conf->threads_max && !st->group; i++) {
		s->worker[first + (uint32_t)i].stage = (uint16_t)stage;
		list(s, &st->absent, first + (uint32_t)i);
	}
	st->target = st->conf->threads_start;
	if (st->group)
		st->live = st->target;
	workers_mend(s, stage);
}
