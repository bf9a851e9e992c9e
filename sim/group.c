/* SPDX-License-Identifier: MIT */
/* The cores of core groups; see group.h. */
#include "group.h"

#include <stdlib.h>
#include <string.h>

/* ---- set-up ---- */

int groups_new(struct sim *s)
{
	s->group = calloc((size_t)s->conf->n_groups + 1, sizeof(*s->group));
	if (!s->group)
		return WEIR_ENOMEM;
	for (int i = 0; i < s->conf->n_groups; i++) {
		s->group[i].conf = &s->conf->group[i];
		s->group[i].index = i;
		s->group[i].core =
		    calloc((size_t)s->conf->group[i].cores, sizeof(struct group_core));
		if (!s->group[i].core)
			return WEIR_ENOMEM;
	}
	return 0;
}

void groups_free(struct sim *s)
{
	for (int i = 0; s->group && i < s->conf->n_groups; i++)
		free(s->group[i].core);

	free(s->group);
}

static int bind_stage(struct sim *s, int i)
{
	struct stage *st = &s->stage[i];
	uint32_t limit = st->conf->queue_limit;

	st->own = limit;
	if (st->conf->group == 0)
		return 0;
	struct group *g = st->group = &s->group[st->conf->group - 1];
	st->first = g->first;
	g->stage[st->conf->place] = i;
	if (g->n_stages <= st->conf->place)
		g->n_stages = st->conf->place + 1;
	if (!st->conf->exclusive && !stage_shortest(st))
		st->cell_max = limit / (2 * (uint32_t)g->conf->cores);
	st->own = limit - st->cell_max * (uint32_t)g->conf->cores;
	if (st->conf->local == SIM_LOCAL_KEPT)
		g->kept |= UINT64_C(1) << st->conf->place;
	if (group_copies(g) > 1)
		st->part = calloc((size_t)group_copies(g), sizeof(*st->part));
	if (group_copies(g) > 1 && !st->part)
		return WEIR_ENOMEM;
	if (st->conf->partition)
		return parts_open(st);
	return st->conf->serial ? keys_open(s, st) : 0;
}

static void begin_cores(struct sim *s, struct group *g)
{
	g->present = g->n_idle = g->cores = sim_fewest_cores(g->conf);
	for (int k = 0; k < g->conf->cores; k++) {
		struct group_core *core = &g->core[k];
		next_core_init(&core->next, g->conf->policy);
		core->place = core->leases = -1;
		laws_group_new(core);
		for (int i = 0; i < SIM_RECENT; i++)
			core->recent[i] = -1;
		core->idle = k < g->cores;
		core->absent = !core->idle;
		s->worker[g->first + (uint32_t)k].group = g;
	}
	group_order(s, g, 0);
}

int groups_bind(struct sim *s, uint32_t *workers)
{
	uint32_t n = 0;
	int rc = 0;

	for (int i = 0; i < s->conf->n_groups; i++) {
		s->group[i].first = n;
		n += (uint32_t)s->conf->group[i].cores;
	}
	*workers = n;
	for (int i = 0; i < s->conf->n_stages && rc == 0; i++)
		rc = bind_stage(s, i);
	for (int i = 0; i < s->conf->n_groups && rc == 0; i++)
		begin_cores(s, &s->group[i]);
	return rc;
}

static int64_t busy_now(const struct sim *s, const struct group *g, int k)
{
	const struct worker *w = &s->worker[g->first + (uint32_t)k];

	return w->n > 0 ? s->now_ns - w->started_ns : 0;
}

void groups_mark(struct sim *s)
{
	for (int i = 0; i < s->conf->n_groups; i++) {
		struct group *g = &s->group[i];
		memset(&g->sum, 0, sizeof(g->sum));
		memset(g->at, 0, sizeof(g->at));
		group_count_cores(s, g);
		g->cores_ns = 0;
		for (int k = 0; k < g->conf->cores; k++)
			g->sum.busy_ns[k] = -busy_now(s, g, k);
	}
}

void groups_finish(struct sim *s)
{
	for (int i = 0; i < s->conf->n_groups; i++) {
		struct group *g = &s->group[i];
		group_count_cores(s, g);
		g->sum.cores_ns = g->cores_ns;
		g->sum.cores_end = g->cores;
		s->r->group[i] = g->sum;
		for (int k = 0; k < g->conf->cores; k++)
			s->r->group[i].busy_ns[k] += busy_now(s, g, k);
		for (int k = 0; k < g->n_stages; k++) {
			struct sim_stage_result *r = &s->r->stage[g->stage[k]];
			r->visits = g->at[k].visits;
			r->batches = g->at[k].batches;
			r->batched = g->at[k].batched;
			r->longest_ns = g->at[k].longest_ns;
		}
		laws_group_end(s, g);
	}
}

/* ---- a turn ---- */

static const struct request *first_of(
    const struct sim *s, const struct stage *st, const struct lane *lane)
{
	return &s->req[lane[lanes_next(s, st, lane)].head];
}

/* Number of events of the queue that core `k` may take. */
static uint32_t share_of(const struct sim *s, const struct group *g, const struct stage *st, int k)
{
	uint32_t n = group_queue_ready(s, st) ? group_queued(st) : 0, cores = (uint32_t)g->cores;

	if (st->conf->serial)
		return keys_inbox(st, k)->n;
	if (st->conf->partition)
		return parts_share(st, k);
	if (st->part) {
		n = st->part[group_part(st, k)].n;
		cores /= (uint32_t)group_copies(g);
	}

	bool whole = st->conf->exclusive || st->conf->linger_ns > 0;
	return whole ? n : (n + cores - 1) / cores;
}

static struct next_view look(struct sim *s, struct group *g, const struct group_core *core)
{
	struct next_view v = {
	    .n = g->n_stages, .stage = g->view, .order = &g->order, .now_ns = s->now_ns};

	for (int i = 0; i < g->n_stages; i++) {
		const struct stage *st = &s->stage[g->stage[i]];
		struct next_stage *view = &g->view[i];
		int k = group_core_number(g, core);
		uint32_t share = share_of(s, g, st, k);

		view->length = core->cell[i].n + share;
		if (view->length == 0)
			continue;
		v.ready |= UINT64_C(1) << i;
		view->oldest_ns = lanes_oldest_ns(s, core->cell[i].lane);
		view->service_ns = st->mean_cost_ns;
		view->rest_ns = g->rest_ns[i];
		int64_t queued_ns =
		    share > 0 ? waiting_oldest_ns(s, st, group_part(st, k)) : INT64_MAX;
		if (queued_ns < view->oldest_ns)
			view->oldest_ns = queued_ns;
	}
	return v;
}

/* Whether the next event comes from the cell: the one of the higher class, then the older one. Of a
 * serial stage, those in the cell are the older ones. */
static bool cell_is_first(
    const struct sim *s, const struct stage *st, const struct line *cell, int part, bool queue_too)
{
	if (cell->n == 0 || !queue_too || st->conf->serial)
		return cell->n > 0;
	const struct request *a = first_of(s, st, cell->lane),
			     *b = first_of(s, st, waiting_lanes(st, part));
	if (s->conf->n_classes > 1 && a->class_id != b->class_id)
		return a->class_id < b->class_id;
	return a->queued_ns <= b->queued_ns;
}

struct taken {
	uint32_t n, from_queue; /* n: with those that were shed */
	int64_t work_ns;
};

static struct taken take(
    struct sim *s, struct group *g, struct group_core *core, uint32_t id, int place, uint32_t gate)
{
	int stage = g->stage[place];
	struct stage *st = &s->stage[stage];
	struct worker *w = &s->worker[id];
	uint32_t share = share_of(s, g, st, (int)(id - g->first)), most = (uint32_t)batch_most(st);
	int part = group_part(st, (int)(id - g->first));
	struct taken t = {.work_ns = st->conf->batch_fixed_ns};

	w->head = NONE;
	w->n = 0;
	w->stage = (uint16_t)stage;
	most = most < gate ? most : gate;
	laws_taken(s, stage);
	while (t.n < most && (core->cell[place].n > 0 || t.from_queue < share)) {
		bool cell = cell_is_first(s, st, &core->cell[place], part, t.from_queue < share);
		uint32_t slot = cell ? group_pop(s, st, core) : waiting_pop(s, st, part);
		int64_t *longest_ns = &g->at[place].longest_ns;
		st->length--;
		t.n++;
		t.from_queue += !cell;
		if (s->now_ns - s->req[slot].queued_ns > *longest_ns)
			*longest_ns = s->now_ns - s->req[slot].queued_ns;
		laws_group_took(s, st, slot);
		bool again = s->req[slot].left_ns > 0;
		uint32_t *back = &st->books[s->req[slot].class_id].back;
		if (!worker_shed(s, st, slot)) {
			t.work_ns += worker_enter(s, stage, w, slot);
		} else {
			st->again -= again;
			*back -= again;
		}
	}
	if (st->conf->partition && w->n > 0)
		parts_lease(st, core, part);
	core->since_poll += t.n;
	t.work_ns = (int64_t)((double)t.work_ns * st->slow);
	next_took(&core->next, place, t.n, t.n - t.from_queue);
	return t;
}

/* Number of stages without events that a policy which polls would have looked at before `c`. An
 * estimate: as many as lie between two of those that have events. */
static int misses(const struct group *g, const struct next_view *v, const struct next_choice *c)
{
	int ready = __builtin_popcountll(v->ready), n = g->n_stages;
	const char *name = g->conf->policy->name;

	if (c->why != NEXT_POLICY || strcmp(name, "fifo") == 0 || strcmp(name, "color") == 0)
		return 0;
	if (strcmp(name, "srpt") == 0 || strcmp(name, "dbr") == 0) /* again from the first */
		return g->order.rank[c->stage];
	return (n - ready) / (ready + 1);
}

static int64_t overhead_ns(const struct group *g, const struct group_core *core,
    const struct next_view *v, const struct next_choice *c, const struct taken *t)
{
	const struct sim_group_costs *cost = &g->conf->cost;

	return cost->batch_ns + (core->place != c->stage ? cost->switch_ns : 0) +
	       t->n * cost->event_ns + t->from_queue * cost->queue_ns +
	       (cost->miss_ns ? misses(g, v, c) * cost->miss_ns : 0);
}

/* Move the stage to the front of those that the core has run last. */
static void remember(struct group *g, struct group_core *core, int place)
{
	int i = 0;

	g->sum.switched += core->recent[0] != place;
	while (i < SIM_RECENT - 1 && core->recent[i] != place)
		i++;
	g->sum.reloaded += core->recent[i] != place;
	for (; i > 0; i--)
		core->recent[i] = core->recent[i - 1];
	core->recent[0] = place;
}

static void count(
    struct group *g, const struct next_choice *c, const struct taken *t, int64_t spent_ns)
{
	g->sum.by_why[c->why]++;
	g->sum.from_queue += t->from_queue;
	g->sum.from_cell += t->n - t->from_queue;
	g->sum.overhead_ns += spent_ns;
	g->at[c->stage].visits += c->begins;
	g->at[c->stage].batches++;
	g->at[c->stage].batched += t->n;
}

static void begin_batch(struct sim *s, struct group *g, uint32_t id, const struct next_view *v,
    const struct next_choice *c, const struct taken *t)
{
	struct group_core *core = &g->core[id - g->first];
	int64_t spent_ns = overhead_ns(g, core, v, c, t);

	laws_group_chosen(s, g, core, v, c, t->n);
	core->place = c->stage;
	if (group_deal(s, g, core))
		spent_ns += g->conf->cost.deal_ns;
	spent_ns += core->owed_ns;
	core->owed_ns = 0;
	group_share(s, g, core);
	count(g, c, t, spent_ns);
	remember(g, core, c->stage);
	worker_begin(s, g->stage[c->stage], id, t->work_ns, spent_ns);
	laws_group_began(s, g, core, t->work_ns + spent_ns);
	laws_check(s, g->stage[c->stage]);
}

static struct next_choice choose(
    const struct group *g, struct group_core *core, const struct next_view *v)
{
	const struct next_limits *l = &g->conf->limits;
	struct next_choice c = next_choose(&core->next, l, v);
	int64_t later_ns = v->now_ns + l->starve_ns / 16;

	if (g->conf->mutant == SIM_LOOKS_LATE && core->next.starve_check_ns < later_ns)
		core->next.starve_check_ns = later_ns;
	return c;
}

void group_turn(struct sim *s, uint32_t id)
{
	struct group *g = s->worker[id].group;
	struct group_core *core = &g->core[id - g->first];

	if (core->waking)
		g->n_waking--;
	core->waking = false;
	g->law.woke = false;
	if (group_core_number(g, core) >= g->cores) {
		group_leave(s, g, core);
		return;
	}
	group_poll(s, g, core, false);
	for (;;) {
		struct next_view v = look(s, g, core);
		struct next_choice c = choose(g, core, &v);
		if (c.stage < 0 && group_poll(s, g, core, true))
			continue;
		if (c.stage < 0)
			break;
		struct taken t = take(s, g, core, id, c.stage, c.max);
		if (s->worker[id].n > 0) {
			begin_batch(s, g, id, &v, &c, &t);
			return;
		}
		/* all were shed, and the policy may choose again */
		laws_group_chosen(s, g, core, &v, &c, t.n);
	}
	g->sum.by_why[NEXT_NONE]++;
	core->idle = true;
	core->idle_ns = s->now_ns;
	g->n_idle++;
}

/* ---- the end of a batch ---- */

static void requeue(struct sim *s, struct stage *st, struct group_core *core, uint32_t slot)
{
	struct request *r = &s->req[slot];

	r->queued_ns = s->now_ns;
	struct books *b = &st->books[r->class_id];
	uint32_t *most = &st->law.most_back[r->class_id];
	b->ran += !r->put_back;
	b->back += !r->put_back;
	*most = b->back > *most ? b->back : *most;
	r->put_back = true;
	laws_serial_ended(s, st, slot);
	if (st->conf->local == SIM_LOCAL_KEPT)
		group_push(s, st, core, slot);
	else
		waiting_push(s, st, group_part(st, group_core_number(st->group, core)), slot);
	st->length++;
	st->again++;
	st->running--;
	st->books[r->class_id].running--;
}

uint32_t group_yield(struct sim *s, uint32_t id)
{
	struct worker *w = &s->worker[id];
	struct group *g = w->group;
	struct stage *st = &s->stage[w->stage];
	struct group_core *core = &g->core[id - g->first];

	parts_release(s, st, core);
	uint32_t ahead = core->cell[st->conf->place].n + share_of(s, g, st, (int)(id - g->first));
	uint32_t keep = NONE;
	int yielded = 0;

	g->sender = core;
	g->sum.busy_ns[id - g->first] += s->now_ns - w->started_ns;
	for (uint32_t slot = w->head, next; slot != NONE; slot = next) {
		next = s->req[slot].next;
		if (s->req[slot].left_ns > 0) {
			requeue(s, st, core, slot);
			yielded++;
		} else {
			s->req[slot].next = keep;
			keep = slot;
		}
	}
	w->head = keep;
	w->n -= yielded;
	if (yielded > 0) {
		next_yielded(&core->next, ahead, s->now_ns);
		laws_group_yielded(core, ahead);
	}
	g->sum.yielded += (uint64_t)yielded;
	return keep;
}

void group_died(struct sim *s, uint32_t id)
{
	struct group *g = s->worker[id].group;
	struct group_core *core = &g->core[id - g->first];

	g->sum.busy_ns[id - g->first] += s->now_ns - s->worker[id].started_ns;
	parts_release(s, &s->stage[s->worker[id].stage], core);
	if (g->serial)
		keys_died(s, g, (int)(id - g->first));
	for (int i = 0; i < g->n_stages; i++)
		group_give(s, g, core, i, UINT32_MAX);
	next_core_init(&core->next, g->conf->policy);
	laws_group_new(core);
	core->place = -1;
	group_turn(s, id);
}
