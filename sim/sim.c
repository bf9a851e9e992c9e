/* SPDX-License-Identifier: MIT */
/* Runs a simulation: set-up, the loop over steps of virtual time, and the final results; see sim.h.
 *
 * Two heaps hold what happens next: `heap` by virtual time, and `cpu` by the CPU time at which a
 * thread's computing is done. Each iteration of go() advances the clock to the earlier of the two,
 * performs one step, and checks the laws. No request is sent after end_ns; the run ends when the
 * server is empty or DRAIN_NS have passed. There is only one thread, and all state is in struct
 * sim. */
#include "world.h"

#include <stdarg.h>
#include <stdlib.h>

#include "admission/fair.h"
#include "base/clock.h"
#include "group.h"
#include "load/rng.h"

/* Time limit after the last arrival, since without overload control a queue may take forever to
 * drain. */
#define DRAIN_NS (60 * NS_PER_S)

/* ---- validation of the configuration ---- */

static int wrong(struct sim_result *r, const char *fmt, ...) WEIR_PRINTF(2, 3);

static int wrong(struct sim_result *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(r->breach, sizeof(r->breach), fmt, ap);
	va_end(ap);
	return WEIR_EINVAL;
}

static int check_stage(const struct sim_stage *st, struct sim_result *r)
{
	if (!st->name || !st->admission)
		return wrong(r, "a stage has no name or no admission policy");
	if (st->threads_min < 1 || st->threads_start < st->threads_min ||
	    st->threads_max < st->threads_start || st->threads_max > 65536)
		return wrong(r, "stage '%s': the threads are out of range: %d to %d, initially %d",
		    st->name, st->threads_min, st->threads_max, st->threads_start);
	if (st->batch_max < 1 || st->batch_max > WEIR_BATCH_MAX || st->queue_limit < 1)
		return wrong(r,
		    "stage '%s': the batch size %d or the queue limit %u is out of range", st->name,
		    st->batch_max, st->queue_limit);
	if (st->servers < 0 || (st->width && (st->batch_max != 1 || st->cpu_share > 0)))
		return wrong(r,
		    "stage '%s': the servers are out of range, or it has a width and uses CPU time "
		    "or batches",
		    st->name);
	if (st->group && (st->width || st->resize || st->place < 0 || st->place >= SIM_STAGES_MAX))
		return wrong(
		    r, "stage '%s' of a group has a place, a width or a resize policy", st->name);
	if (st->linger_ns < 0 ||
	    (st->linger_ns > 0 && (st->width || st->serial || st->local == SIM_LOCAL_KEPT)))
		return wrong(r, "stage '%s' cannot linger", st->name);
	if (st->serial && (!st->group || st->exclusive))
		return wrong(r, "stage '%s' is serial, but exclusive or in no group", st->name);
	if (st->cpu_share < 0 || st->cpu_share > 1 || st->service.mean_ns < 0)
		return wrong(r, "stage '%s': the service is out of range", st->name);
	return 0;
}

static int check_source(
    const struct sim_config *c, const struct sim_source *s, struct sim_result *r)
{
	if (s->class_id < 0 || s->class_id >= c->n_classes || s->route < 0 ||
	    s->route >= c->n_routes)
		return wrong(r, "source '%s': class %d or route %d does not exist", s->name,
		    s->class_id, s->route);
	if (s->arrivals == SIM_BURSTS && s->burst_factor * s->burst_share > 1)
		return wrong(r, "source '%s': the bursts have more than all arrivals", s->name);
	if (s->group < 0 || s->group > c->n_groups)
		return wrong(r, "source '%s': group %d does not exist", s->name, s->group);
	if (s->retries < 0 || s->retries > 20)
		return wrong(r, "source '%s': %d retries are out of range", s->name, s->retries);
	return 0;
}

static int check_fault(const struct sim_config *c, const struct sim_fault *f, struct sim_result *r)
{
	if (f->stage < 0 || f->stage >= c->n_stages)
		return wrong(r, "a fault has stage %d, which does not exist", f->stage);
	if (f->kind == SIM_SLOW && !(f->factor > 0))
		return wrong(r, "a fault has the factor %g, which is not above 0", f->factor);
	if (f->kind == SIM_CRASH && f->period_ns < 1)
		return wrong(
		    r, "a fault has the period %lld ns, which is below 1", (long long)f->period_ns);
	return 0;
}

/* Whether the stages of a group with replicas may be in copies. */
static bool stages_fit(const struct sim_config *c, int group)
{
	bool copied = c->group[group].replicas > 1, fit = true;
	int fewest = c->group[group].cores_min;

	if (fewest < 0 || fewest > c->group[group].cores || (fewest > 0 && copied))
		return false;
	for (int i = 0; i < c->n_sources && i < SIM_SOURCES_MAX; i++)
		fit &= fewest == 0 || c->source[i].group != group + 1;
	if (c->group[group].replicas < 0 ||
	    (copied && c->group[group].cores % c->group[group].replicas != 0))
		return false;
	for (int i = 0; i < c->n_stages && i < SIM_STAGES_MAX; i++) {
		const struct sim_stage *st = &c->stage[i];
		bool shortest = st->discipline == WEIR_DISCIPLINE_SHORTEST;
		if (st->group == group + 1)
			fit &= !(copied && (st->exclusive || st->serial || shortest ||
					       st->linger_ns > 0)) &&
			       !(shortest && (st->serial || st->local == SIM_LOCAL_KEPT));
	}
	return fit;
}

/* Whether the groups of all stages exist and have as many cores as the stages have threads. */
static bool groups_fit(const struct sim_config *c)
{
	bool fit = true;

	for (int i = 0; i < c->n_groups; i++)
		fit &= c->group[i].cores >= 1 && c->group[i].cores <= SIM_CORES_MAX &&
		       c->group[i].policy && stages_fit(c, i);
	for (int i = 0; i < c->n_stages && fit; i++)
		fit = c->stage[i].group == 0 ||
		      (c->stage[i].group > 0 && c->stage[i].group <= c->n_groups &&
			  c->stage[i].threads_max == c->group[c->stage[i].group - 1].cores &&
			  c->stage[i].threads_min == c->stage[i].threads_start &&
			  c->stage[i].threads_start ==
			      sim_fewest_cores(&c->group[c->stage[i].group - 1]));
	return fit;
}

/* Whether the stage may be partitioned, if it is. */
static bool parts_fit(const struct sim_config *c, const struct sim_stage *st)
{
	bool group = st->group > 0 && st->group <= c->n_groups && st->group <= SIM_GROUPS_MAX;

	return st->partition == 0 ||
	       (group && c->group[st->group - 1].replicas <= 1 && !st->exclusive && !st->serial &&
		   st->local == SIM_LOCAL_NEVER && st->linger_ns == 0 &&
		   st->discipline != WEIR_DISCIPLINE_SHORTEST);
}

/* Whether the fields of all serial and partitioned stages exist. */
static bool fields_fit(const struct sim_config *c)
{
	bool fit = true;

	for (int i = 0; i < c->n_fields; i++)
		fit &= c->field[i].values <= SIM_VALUES_MAX;
	for (int i = 0; i < c->n_stages && i < SIM_STAGES_MAX; i++) {
		const struct sim_stage *st = &c->stage[i];
		bool newest =
		    st->group > 0 && st->group <= SIM_GROUPS_MAX && c->group[st->group - 1].newest;
		fit &= st->serial >= 0 && st->serial <= c->n_fields && !(st->serial && newest);
		fit &= st->partition >= 0 && st->partition <= c->n_fields && parts_fit(c, st);
	}
	return fit;
}

static int check_config(const struct sim_config *c, struct sim_result *r)
{
	int rc = 0;

	if (c->n_fields < 0 || c->n_fields > SIM_FIELDS_MAX || !fields_fit(c))
		return wrong(r, "a number of fields or of their values is out of range, or a group "
				"with serial stages serves the newest event first");
	if (c->cores < 1 || c->n_classes < 1 || c->n_classes > WEIR_CLASSES_MAX ||
	    c->n_stages < 1 || c->n_stages > SIM_STAGES_MAX || c->n_routes < 1 ||
	    c->n_routes > SIM_ROUTES_MAX || c->n_sources < 1 || c->n_sources > SIM_SOURCES_MAX ||
	    c->n_faults < 0 || c->n_faults > SIM_FAULTS_MAX)
		return wrong(r, "a number of cores, classes, stages, routes, sources or faults is "
				"out of range");
	if (c->n_groups < 0 || c->n_groups > SIM_GROUPS_MAX || !groups_fit(c))
		return wrong(r, "a number of groups or of their cores is out of range, or a group "
				"has stages that it cannot have");
	if (c->bin_ns < ADMISSION_TICK_NS || c->warmup_ns < 0 || c->measured_ns < c->bin_ns)
		return wrong(r, "the run or its bins are too short");
	for (int i = 0; i < c->n_stages && rc == 0; i++)
		rc = check_stage(&c->stage[i], r);
	for (int i = 0; i < c->n_sources && rc == 0; i++)
		rc = check_source(c, &c->source[i], r);
	for (int i = 0; i < c->n_faults && rc == 0; i++)
		rc = check_fault(c, &c->fault[i], r);
	for (int i = 0; i < c->n_routes && rc == 0; i++) {
		if (c->route[i].n < 1 || c->route[i].n > SIM_STAGES_MAX)
			return wrong(
			    r, "route %d has %d stages, which is out of range", i, c->route[i].n);
		for (int k = 0; k < c->route[i].n; k++)
			if (c->route[i].stage[k] < 0 || c->route[i].stage[k] >= c->n_stages)
				return wrong(r, "route %d has a stage that does not exist", i);
	}
	return rc;
}

void sim_class_defaults(struct sim_config *c)
{
	for (int k = 0; k < c->n_classes; k++) {
		c->priority[k] = k;
		c->guarantee[k] = k == 0 ? 0 : 0.02; /* the default of the server */
	}
}

/* ---- set-up ---- */

static int count_workers(const struct sim_config *c)
{
	int n = 0;

	for (int i = 0; i < c->n_stages; i++)
		n += c->stage[i].group ? 0 : c->stage[i].threads_max;
	for (int i = 0; i < c->n_groups; i++)
		n += c->group[i].cores;
	return n;
}

static bool has_users(const struct sim_config *c)
{
	bool any = false;

	for (int i = 0; i < c->n_sources; i++)
		any |= c->source[i].users > 0;
	return any;
}

static int init_users(struct sim *s)
{
	for (int i = 0; i < s->conf->n_stages && has_users(s->conf); i++) {
		struct stage *st = &s->stage[i];
		if (!st->conf->admission->fair)
			continue;
		st->fair = fair_new(st->key);
		if (!st->fair)
			return WEIR_ENOMEM;
	}
	return 0;
}

static int init_stages(struct sim *s)
{
	uint32_t first;
	int rc = groups_bind(s, &first);

	for (int i = 0; i < s->conf->n_stages && rc == 0; i++) {
		struct stage *st = &s->stage[i];
		st->key = rng_key(s->conf->seed, 1000 + (uint64_t)i);
		st->slow = 1;
		st->conf->admission->init(st->state, &st->conf->params, 0);
		if (!st->group)
			st->first = first;
		workers_init(s, i, first);
		first += st->group ? 0 : (uint32_t)st->conf->threads_max;
	}
	return rc;
}

static int init_servers(struct sim *s)
{
	for (int i = 0; i < s->conf->n_stages; i++) {
		struct stage *st = &s->stage[i];
		if (s->conf->stage[i].servers == 0)
			continue;
		st->free_ns = calloc((size_t)s->conf->stage[i].servers, sizeof(*st->free_ns));
		if (!st->free_ns)
			return WEIR_ENOMEM;
	}
	return 0;
}

static int init(struct sim *s, const struct sim_config *c, struct sim_result *r)
{
	s->conf = c;
	s->r = r;
	s->end_ns = c->warmup_ns + c->measured_ns;
	s->free_req = NONE;
	r->n_bins = (int)((s->end_ns + c->bin_ns - 1) / c->bin_ns);
	r->bin = calloc((size_t)r->n_bins, sizeof(*r->bin));
	s->worker = calloc((size_t)count_workers(c), sizeof(*s->worker));
	if (!r->bin || !s->worker || init_servers(s) != 0 || groups_new(s) != 0)
		return WEIR_ENOMEM;
	for (int i = 0; i < c->n_stages; i++)
		s->stage[i].conf = &c->stage[i];
	s->serial_key = rng_key(c->seed, 3);
	int rc = init_stages(s);
	if (rc == 0)
		rc = laws_serial_init(s);
	if (rc == 0)
		rc = init_users(s);
	if (rc == 0)
		rc = routes_init(s);
	if (rc != 0)
		return rc;
	setting_init(s);
	laws_state_init(s);
	clients_start(s);
	sim_at(s, ADMISSION_TICK_NS, STEP_TICK, 0);
	sim_at(s, c->warmup_ns, STEP_MARK, 0);
	for (int i = 0; i < c->n_faults; i++)
		sim_at(s, c->fault[i].from_ns, STEP_FAULT, (uint32_t)i);
	return s->rc;
}

/* ---- steps ---- */

static void fault(struct sim *s, uint32_t i)
{
	const struct sim_fault *f = &s->conf->fault[i];
	struct stage *st = &s->stage[f->stage];
	bool begins = s->now_ns < f->to_ns;

	switch (f->kind) {
	case SIM_SLOW:
		st->slow = begins ? f->factor : 1;
		laws_slowed(s, f->stage);
		break;
	case SIM_LOST_TICKS:
		s->lost_ticks += begins ? 1 : -1;
		break;
	case SIM_CRASH:
		workers_crash(s, f->stage);
		if (s->now_ns + f->period_ns < f->to_ns)
			sim_at(s, s->now_ns + f->period_ns, STEP_FAULT, i);
		return;
	}
	if (begins)
		sim_at(s, f->to_ns, STEP_FAULT, i);
}

static void mark(struct sim *s)
{
	for (int i = 0; i < s->conf->n_stages; i++) {
		struct stage *st = &s->stage[i];
		st->busy_mark_ns = st->busy_ns + st->busy * s->now_ns - st->started_sum_ns;
		st->served_mark_ns = servers_busy_ns(s, st);
		workers_mark(s, i);
		st->threads_ns = 0;
		for (int c = 0; c < s->conf->n_classes; c++)
			st->completed_mark += st->books[c].completed;
	}
	groups_mark(s);
}

/* Compute the results of stages at the end of the measured time. */
static void finish(struct sim *s)
{
	for (int i = 0; i < s->conf->n_stages; i++) {
		struct stage *st = &s->stage[i];
		struct sim_stage_result *r = &s->r->stage[i];
		workers_mark(s, i);
		r->busy_ns =
		    st->busy_ns + st->busy * s->now_ns - st->started_sum_ns - st->busy_mark_ns;
		r->served_ns = servers_busy_ns(s, st) - st->served_mark_ns;
		r->threads_ns = st->threads_ns;
		r->threads_end = st->live;
		if (st->conf->width && st->conf->width->explain)
			st->conf->width->explain(
			    st->width_state, r->width_why, sizeof(r->width_why));
		for (int c = 0; c < s->conf->n_classes; c++)
			r->completed += st->books[c].completed;
		r->completed -= st->completed_mark;
	}
	s->r->cpu_ns = s->cpu_used_ns;
	groups_finish(s);
}

static void step(struct sim *s, struct heap_entry e)
{
	uint32_t what = e.what & STEP_MASK;

	switch ((enum step_kind)(e.what >> STEP_SHIFT)) {
	case STEP_ARRIVE:
		client_arrive(s, what);
		break;
	case STEP_SEND:
		client_send(s, what);
		break;
	case STEP_TIMEOUT:
		client_timeout(s, what, e.order);
		break;
	case STEP_BLOCKED:
		worker_blocked(s, what, e.order);
		break;
	case STEP_TICK:
		meter_tick(s);
		break;
	case STEP_FAULT:
		fault(s, what);
		break;
	case STEP_MARK:
		mark(s);
		break;
	case STEP_WOKEN:
		group_turn(s, what);
		break;
	case STEP_DUE:
		linger_due(s, (int)what);
		break;
	}
}

static void go(struct sim *s)
{
	bool measured = false;

	while (!s->stop && s->rc == 0) {
		int64_t cpu_ns = cpu_next_ns(s), heap_ns = heap_first(&s->heap);
		int64_t next_ns = cpu_ns <= heap_ns ? cpu_ns : heap_ns;
		if (!measured && next_ns >= s->end_ns) {
			cpu_advance(s, s->end_ns);
			s->now_ns = s->end_ns;
			finish(s);
			measured = true;
		}
		if (measured && (s->in_server == 0 || next_ns > s->end_ns + DRAIN_NS))
			break;
		cpu_advance(s, next_ns);
		s->now_ns = next_ns;
		s->r->events++;
		if (cpu_ns <= heap_ns)
			worker_computed(s);
		else
			step(s, heap_pop(&s->heap));
		laws_step(s);
	}
	s->r->ended_ns = s->now_ns;
	s->routes_at_ns = 0; /* makes routes_tick update even if the last update was very recent */
	routes_tick(s);
	for (int i = 0; i < s->conf->n_stages; i++)
		s->r->stage[i].pipeline_end_ns = s->stage[i].pipeline_ns;
}

int sim_run(const struct sim_config *config, struct sim_result **result)
{
	struct sim *s = calloc(1, sizeof(*s));
	struct sim_result *r = calloc(1, sizeof(*r));

	*result = NULL;
	int rc = s && r ? check_config(config, r) : WEIR_ENOMEM;
	if (rc == 0)
		rc = init(s, config, r);
	if (rc == 0) {
		go(s);
		rc = s->rc ? s->rc : r->broken ? WEIR_EFAILED : 0;
	}
	if (s) {
		for (int i = 0; i < SIM_STAGES_MAX; i++) {
			fair_free(s->stage[i].fair);
			waiting_close(&s->stage[i]);
			free(s->stage[i].free_ns);
		}
		laws_serial_free(s);
		groups_free(s);
		route_free(s->route);
		heap_fini(&s->heap);
		heap_fini(&s->cpu);
		for (uint32_t i = 0; s->chunk && i < s->n_req; i += 1024)
			free(s->chunk[i / 1024]);
		free(s->chunk);
		free(s->req);
		free(s->worker);
	}
	free(s);
	if (rc == WEIR_ENOMEM) {
		sim_result_free(r);
		return rc;
	}
	*result = r;
	return rc;
}
