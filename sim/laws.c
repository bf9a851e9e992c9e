/* SPDX-License-Identifier: MIT */
/*
 * Checks invariants (docs/overload-derivation.md, "What must hold") after each step, at the stage
 * that the step changed. The last steps are recorded, so that the cause of a violation can be
 * found. Invariants over time are in laws_*.c (see laws.h). This file checks I1, I2 and the bounds
 * of I11, all of them without a tolerance:
 *
 * I1: at a stage and class, every offered event was refused, shed, completed or failed, or is
 * queued or in a handler. After a step each request in the server is queued or in a handler of
 * exactly one stage.
 *
 * I2: the queued work that a policy sees is the sum of the costs of the queued events, so it is
 * zero for an empty queue. The work on its way to a stage is never negative. The counters are
 * checked at each step; the sum over the events of the queue is computed every WALK_EVERY steps.
 *
 * I11: a pool's target is within its bounds, all targets are within the budget, and no event waits
 * while a thread of the stage is idle.
 *
 * S12 linger: a batch of a stage with `linger` begins if the queue has enough events for a full one, or
 * once the oldest event has waited for `linger`. I11 and S1 say that no thread idles after that.
 *
 * The counters and the queues and batches are updated by separate code. A difference between the
 * counters and the sums over queues and batches reveals a lost, duplicated or miscounted request at
 * the step that caused it.
 */
#include "world.h"

#include <stdarg.h>

#include "group.h"

/* Number of steps between walks of the queue. 4096 is a guess that keeps the check below 5 % of the
 * run time. */
#define WALK_EVERY 4096

void laws_note(struct sim *s, const char *what, int stage, int class_id, int n, int m)
{
	const struct stage *st = &s->stage[stage];

	s->note[s->n_notes++ % NOTES] = (struct step_note){.at_ns = s->now_ns,
	    .what = what,
	    .stage = stage,
	    .class_id = class_id,
	    .n = n,
	    .m = m,
	    .busy = st->busy,
	    .live = st->live,
	    .length = st->length,
	    .work_ns = queue_work_ns(s, st)};
}

static void write_trace(const struct sim *s, FILE *out)
{
	uint64_t first = s->n_notes > NOTES ? s->n_notes - NOTES : 0;

	fprintf(out, "# %s\n", s->r->breach);
	fputs("time_s,step,stage,class,n,entered,queued,queued_work_ms,busy,threads\n", out);
	for (uint64_t i = first; i < s->n_notes; i++) {
		const struct step_note *e = &s->note[i % NOTES];
		fprintf(out, "%.9f,%s,%s,%d,%d,%d,%u,%.3f,%d,%d\n", (double)e->at_ns * 1e-9,
		    e->what, s->conf->stage[e->stage].name, e->class_id, e->n, e->m, e->length,
		    (double)e->work_ns * 1e-6, e->busy, e->live);
	}
}

void laws_break(struct sim *s, enum sim_law law, int stage, const char *fmt, ...)
{
	const struct stage *st = &s->stage[stage];
	char why[256], policy[160] = "";
	va_list ap;

	s->r->law[__builtin_ctz((unsigned)law)].broken++;
	if (!laws_asked(s, law) || s->stop)
		return;
	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	if (st->conf->admission->explain)
		st->conf->admission->explain(
		    st->state, &st->conf->params, NULL, policy, sizeof(policy));
	snprintf(s->r->breach, sizeof(s->r->breach),
	    "seed %llu, %.6f s, stage '%s': %s (queue %u, busy %d of %d)%s%s",
	    (unsigned long long)s->conf->seed, (double)s->now_ns * 1e-9, st->conf->name, why,
	    st->length, st->busy, st->live, policy[0] ? "; " : "", policy);
	s->r->broken = (unsigned)law;
	s->stop = true;
	if (s->conf->trace)
		write_trace(s, s->conf->trace);
}

static void check_books(struct sim *s, int stage)
{
	const struct stage *st = &s->stage[stage];
	uint32_t length = 0, running = 0;

	for (int c = 0; c < s->conf->n_classes; c++) {
		const struct books *b = &st->books[c];
		uint64_t ended = b->refused + b->shed + b->completed + b->failed;
		uint32_t queued = st->lane[c].n + st->in_cells[c];
		if (b->offered != ended + queued + b->running)
			laws_break(s, SIM_LAW_BOOKS, stage,
			    "class %d: offered %llu, ended %llu, queued %u, running %u", c,
			    (unsigned long long)b->offered, (unsigned long long)ended, queued,
			    b->running);
		length += queued;
		running += b->running;
	}
	if (length != st->length || running != st->running)
		laws_break(s, SIM_LAW_BOOKS, stage,
		    "%u queued and %u running as the sum over classes, but %u and %u counted",
		    length, running, st->length, st->running);
}

/* Count the events of a list, and in `n` those of each class. */
static uint32_t walk_lane(const struct sim *s, const struct lane *l, uint32_t *n)
{
	uint32_t all = 0;

	for (uint32_t at = l->n ? l->head : NONE; at != NONE && all <= l->n;
	     at = s->req[at].next, all++)
		n[s->req[at].class_id] += s->req[at].in_server;
	return all;
}

/* The same for a queue with parts or bins. */
static void walk_parts(struct sim *s, int stage)
{
	const struct stage *st = &s->stage[stage];
	int parts = !st->part                                 ? 0
		    : st->conf->serial || st->conf->partition ? st->group->conf->cores
							      : group_copies(st->group);
	uint32_t n[WEIR_CLASSES_MAX] = {0};

	for (int k = 0; k < parts; k++) {
		uint32_t all = 0;
		for (int c = 0; c < s->conf->n_classes; c++)
			all += walk_lane(s, &st->part[k].lane[c], n);
		if (all != st->part[k].n)
			laws_break(s, SIM_LAW_WORK, stage,
			    "part %d: %u events in the queue, but %u counted", k, all,
			    st->part[k].n);
	}
	for (int c = 0; c < s->conf->n_classes; c++)
		if (stage_shortest(st) ? !waiting_sound(s, st, c) : n[c] != st->lane[c].n)
			laws_break(s, SIM_LAW_WORK, stage,
			    "class %d: %u events in all parts, but %u counted", c, n[c],
			    st->lane[c].n);
}

/* Check the work of the queue event by event, and that each event is in the right queue. */
static void walk_queue(struct sim *s, int stage)
{
	const struct stage *st = &s->stage[stage];

	if (st->part || stage_shortest(st)) {
		walk_parts(s, stage);
		return;
	}
	int64_t work_ns = 0;

	for (int c = 0; c < s->conf->n_classes; c++) {
		uint32_t n = 0;
		for (uint32_t at = st->lane[c].n ? st->lane[c].head : NONE; at != NONE;
		     at = s->req[at].next) {
			const struct request *r = &s->req[at];
			work_ns += st->cost_ns[c];
			if (++n > st->lane[c].n || r->class_id != c || !r->in_server)
				break;
		}
		work_ns += st->in_cells[c] * st->cost_ns[c];
		if (n != st->lane[c].n)
			laws_break(s, SIM_LAW_WORK, stage,
			    "class %d: %u events in the queue, but %u counted", c, n,
			    st->lane[c].n);
	}
	if (work_ns != queue_work_ns(s, st))
		laws_break(s, SIM_LAW_WORK, stage, "%lld ns of work in the queue, but %lld counted",
		    (long long)work_ns, (long long)queue_work_ns(s, st));
}

static void check_threads(struct sim *s, int stage)
{
	const struct stage *st = &s->stage[stage];
	int all = 0;

	for (int i = 0; i < s->conf->n_stages; i++)
		all += s->stage[i].conf->width || s->stage[i].group ? 0 : s->stage[i].target;
	if (st->target < st->conf->threads_min || st->target > st->conf->threads_max ||
	    (s->conf->thread_budget && all > s->conf->thread_budget))
		laws_break(s, SIM_LAW_THREADS, stage,
		    "the target is %d threads, but %d to %d are allowed; %d for all pools",
		    st->target, st->conf->threads_min, st->conf->threads_max, all);
	if (st->busy > st->live)
		laws_break(s, SIM_LAW_THREADS, stage, "%d threads are busy, but only %d exist",
		    st->busy, st->live);
	if (st->idle != NONE && st->length > 0 && !laws_may_linger(s, st))
		laws_break(
		    s, SIM_LAW_THREADS, stage, "%u events wait while a thread is idle", st->length);
}

bool laws_may_linger(const struct sim *s, const struct stage *st)
{
	uint32_t queued = st->length - st->celled;

	return st->conf->linger_ns > 0 && queued > 0 && queued < (uint32_t)st->conf->batch_max &&
	       s->now_ns - waiting_oldest_ns(s, st, 0) <= st->conf->linger_ns;
}

void laws_taken(struct sim *s, int stage)
{
	const struct stage *st = &s->stage[stage];
	uint32_t queued = st->length - st->celled;

	if (st->conf->linger_ns <= 0 || queued == 0)
		return;
	int64_t waited_ns = s->now_ns - waiting_oldest_ns(s, st, 0);
	laws_saw(s, SIM_LAW_LINGER, 0);
	if (queued < (uint32_t)st->conf->batch_max && waited_ns < st->conf->linger_ns)
		laws_break(s, SIM_LAW_LINGER, stage,
		    "a batch begins with %u events, the oldest of which waited %.3f ms", queued,
		    (double)waited_ns * 1e-6);
}

void laws_check(struct sim *s, int stage)
{
	const struct stage *st = &s->stage[stage];

	laws_saw(s, SIM_LAW_BOOKS, 0);
	laws_saw(s, SIM_LAW_WORK, 0);
	laws_saw(s, SIM_LAW_THREADS, 0);
	check_books(s, stage);
	check_threads(s, stage);
	if (st->length == 0 && queue_work_ns(s, st) != 0)
		laws_break(s, SIM_LAW_WORK, stage, "an empty queue has work");
	if (st->pipeline_ns < 0)
		laws_break(s, SIM_LAW_WORK, stage, "%lld ns of work is on its way",
		    (long long)st->pipeline_ns);
	if (s->r->events % WALK_EVERY == 0)
		walk_queue(s, stage);
	if (st->group)
		laws_group_check(s, st);
}

void laws_step(struct sim *s)
{
	uint32_t there = s->in_sockets;

	for (int i = 0; i < s->conf->n_stages; i++)
		there += s->stage[i].length + s->stage[i].running;
	if (there != s->in_server)
		laws_break(s, SIM_LAW_BOOKS, 0, "%u requests in the server, but %u at its stages",
		    s->in_server, there);
	if (s->now_ns < s->last_ns)
		laws_break(s, SIM_LAW_READS, 0, "the time went back by %lld ns",
		    (long long)(s->last_ns - s->now_ns));
	s->last_ns = s->now_ns;
	laws_group_step(s);
}

void laws_tick(struct sim *s)
{
	setting_tick(s);
	for (int i = 0; i < s->conf->n_stages; i++) {
		if (!s->lost_ticks)
			laws_check(s, i);
		laws_load_tick(s, i);
		laws_pool_tick(s, i);
		laws_state_tick(s, i);
	}
}

const char *sim_law_name(int i)
{
	static const char *const names[SIM_LAWS_COUNT] = {"I1 books", "I2 work", "I7 deadlines",
	    "I11 pools", "answers", "I3 idle threads", "I5 users", "I13 bound", "I4 waits",
	    "I6 guarantees", "I8 midway", "I9 calm", "I10 normal again", "I11 steady",
	    "I12 converges", "I14 returned", "I15 reads", "S1 shares", "S2 starved", "S3 gate",
	    "S6 urgent", "S9 table", "S10 limit", "S11 predicts", "S4 serial", "S5 alone",
	    "S12 linger"};

	return i >= 0 && i < SIM_LAWS_COUNT ? names[i] : NULL;
}
