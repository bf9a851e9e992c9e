/* SPDX-License-Identifier: MIT */
/*
 * The laws of core groups (sim/laws_group.c) in virtual time: each policy with each gate, on 2 to 64
 * cores, with admission control in front of and within the group, urgent and starved stages, full
 * queues, crashes, and services of 1 us to 2 ms. The configurations are drawn by number; LAW_SEEDS
 * (CMakeLists.txt) or the environment variable WEIR_NEXT_SEEDS is how many there are of each pair.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "load/rng.h"
#include "sim/group_search.h"
#include "unit/cunit_main.h"

#define STAGES      6
#define SIZED_SEEDS 180

static const int cores_of[] = {2, 3, 4, 8, 16, 64};
static const char *const gates[] = {"all", "arrived", "events", "time", "cutoff"};

struct draw {
	uint64_t key, n;
};

static int one_of(struct draw *d, int n)
{
	return (int)(weir_random_at(d->key, d->n++) % (uint64_t)n);
}

static void draw_stage(struct draw *d, struct sim_config *c, int i)
{
	static const int64_t mean_ns[] = {1000, 3000, 8000, 15000, 40000, 200000, 2000000};
	static const uint32_t limit[] = {16, 200, 10000};
	struct sim_stage *st = &c->stage[i];
	struct next_limits *l = &c->group[0].limits;

	st->service.mean_ns = mean_ns[one_of(d, 7)];
	st->service.kind = one_of(d, 2) ? SIM_EXP : SIM_LOGNORMAL;
	st->batch_max = 1 << one_of(d, 7);
	st->queue_limit = limit[one_of(d, 3)];
	st->local = (enum sim_local)one_of(d, 3);
	st->exclusive = one_of(d, 8) == 0;
	st->admission = one_of(d, 3) ? &admission_none : &admission_weir;
	st->slo_ns = 20 * NS_PER_MS;
	if (one_of(d, 3) == 0) {
		l->urgent[i] = (struct next_urgent){
		    .events = 4 + (uint32_t)one_of(d, 64), .wait_ns = one_of(d, 3) * NS_PER_MS};
		l->urgent_set |= UINT64_C(1) << i;
	}
}

/* `load` is that of the cores. Two classes, clients with and without deadlines. */
static void draw_sources(struct draw *d, struct sim_config *c, double load)
{
	c->n_classes = 2;
	sim_class_defaults(c);
	c->n_routes = c->n_sources = 3;
	for (int i = 0; i < 3; i++) {
		struct sim_route *r = &c->route[i];
		r->n = 0;
		for (int k = 0; k < STAGES; k++)
			if (k == 0 || one_of(d, 3))
				r->stage[r->n++] = k;
		c->source[i] = (struct sim_source){.name = "clients",
		    .class_id = i % 2,
		    .route = i,
		    .arrivals = one_of(d, 2) ? SIM_POISSON : SIM_BURSTS,
		    .rate_per_s = 1 + one_of(d, 3),
		    .burst_factor = 3,
		    .burst_share = 0.2,
		    .burst_ns = NS_PER_MS,
		    .deadline_ns = i * 10 * NS_PER_MS};
	}
	double scale = load / group_load(c, 0), per_s = 0;
	for (int i = 0; i < 3; i++)
		per_s += c->source[i].rate_per_s *= scale;
	c->measured_ns = (int64_t)(600 / per_s * 1e9) + ADMISSION_TICK_NS;
	c->measured_ns = c->measured_ns > NS_PER_S ? NS_PER_S : c->measured_ns;
	c->warmup_ns = c->measured_ns / 4;
	c->bin_ns = ADMISSION_TICK_NS;
}

/* In half of the runs, some stages are serial, by one of three fields. */
static void draw_keys(struct draw *d, struct sim_config *c)
{
	static const uint32_t values[] = {1, 3, 20, 1000};

	c->n_fields = 3;
	c->field[0] = (struct sim_field){.values = values[one_of(d, 4)], .first_share = 0.3};
	c->field[1] = (struct sim_field){.values = 100};
	if (c->group[0].newest || one_of(d, 2))
		return;
	for (int i = 0; i < STAGES; i++)
		if (!c->stage[i].exclusive && one_of(d, 4))
			c->stage[i].serial = one_of(d, 3) ? 1 : 1 + one_of(d, 3);
}

/* A batch of the stage may wait for more events. */
static void draw_linger(struct draw *d, struct sim_config *c, int i)
{
	struct sim_stage *st = &c->stage[i];
	bool may = !st->serial && st->local != SIM_LOCAL_KEPT && c->group[0].replicas <= 1;

	st->linger_ns = may && one_of(d, 5) == 0 ? (1 + one_of(d, 20)) * 100 * NS_PER_US : 0;
}

/* The queue of the stage may be partitioned. */
static void draw_parts(struct draw *d, struct sim_config *c, int i)
{
	struct sim_stage *st = &c->stage[i];
	bool may = !st->serial && !st->exclusive && st->linger_ns == 0 &&
		   st->discipline != WEIR_DISCIPLINE_SHORTEST && c->group[0].replicas <= 1;

	if (!may || one_of(d, 4))
		return;
	st->partition = 1 + one_of(d, 3);
	st->local = SIM_LOCAL_NEVER;
}

/* Replicated stages, replicas, queues with `shortest`, and sources whose requests the cores read. */
static void draw_rest(struct draw *d, struct sim_config *c)
{
	bool copied = one_of(d, 4) == 0;

	for (int i = 0; i < STAGES; i++) {
		struct sim_stage *st = &c->stage[i];
		if (!st->exclusive && !st->serial && one_of(d, 6) == 0)
			st->local = SIM_LOCAL_KEPT;
		else if (!copied && !st->serial && one_of(d, 6) == 0)
			st->discipline = WEIR_DISCIPLINE_SHORTEST;
		st->queue_starve_ns = one_of(d, 2) * 5 * NS_PER_MS;
		copied &= !st->exclusive && !st->serial;
	}
	for (int i = 0; i < c->n_sources; i++)
		c->source[i].group = !copied && one_of(d, 3) == 0;
	c->group[0].replicas = !copied ? 1 : c->group[0].cores % 4 == 0 && one_of(d, 2) ? 4 : 2;
	if (c->group[0].cores % c->group[0].replicas != 0)
		c->group[0].replicas = 1;
}

/* In some runs, the last two stages are a group of their own, with its own cores, and requests are
 * read by either group, or by none. */
static void draw_second(struct draw *d, struct sim_config *c)
{
	if (c->group[0].replicas > 1 || one_of(d, 3))
		return;
	c->n_groups = 2;
	struct sim_group *g = &c->group[1];
	*g = c->group[0];
	g->name = "second";
	g->policy = next_policy_at(one_of(d, 6));
	g->cores = 1 + one_of(d, 4);
	g->limits.urgent_set = c->group[0].limits.urgent_set >> (STAGES - 2);
	for (int i = 0; i < 2; i++) {
		struct sim_stage *st = &c->stage[STAGES - 2 + i];
		g->limits.urgent[i] = c->group[0].limits.urgent[STAGES - 2 + i];
		st->group = 2;
		st->place = i;
		st->threads_min = st->threads_start = st->threads_max = g->cores;
	}
	c->cores += g->cores;
	for (int i = 0; i < c->n_sources; i++)
		c->source[i].group = one_of(d, 3);
}

static void draw(
    uint64_t seed, const struct next_policy *policy, enum next_gate gate, struct sim_config *c)
{
	struct draw d = {.key = rng_key(seed, 77)};
	int cores = cores_of[seed % 6];

	group_search_fill(seed, policy, cores, 0.5, c);
	struct sim_group *g = &c->group[0];
	c->n_stages = STAGES;
	for (int i = 0; i < STAGES; i++)
		draw_stage(&d, c, i);
	g->limits.gate = gate;
	g->limits.gate_events = 1 + (uint32_t)one_of(&d, 40);
	g->limits.gate_ns = (1 + one_of(&d, 20)) * 100 * NS_PER_US;
	g->limits.starve_ns = one_of(&d, 3) ? (1 + one_of(&d, 10)) * NS_PER_MS : 0;
	g->newest = one_of(&d, 6) == 0;
	g->unbalanced = one_of(&d, 6) == 0;
	draw_sources(&d, c, 0.3 + 0.3 * one_of(&d, 5));
	c->laws = SIM_LAWS_SERVER | SIM_LAWS_GROUPS;
	c->n_faults = one_of(&d, 3) == 0;
	c->fault[0] = (struct sim_fault){.kind = SIM_CRASH,
	    .stage = one_of(&d, STAGES),
	    .from_ns = c->warmup_ns,
	    .to_ns = c->warmup_ns + c->measured_ns,
	    .period_ns = c->measured_ns / 20 + 1};
	draw_keys(&d, c);
	draw_rest(&d, c);
	draw_second(&d, c);
	for (int i = 0; i < STAGES; i++)
		draw_linger(&d, c, i);
	for (int i = 0; i < STAGES; i++)
		draw_parts(&d, c, i);
}

static void run_one(const struct next_policy *policy, enum next_gate gate, uint64_t seed,
    struct sim_group_result *sum, uint64_t *checked)
{
	struct sim_config c;
	struct sim_result *r = NULL;

	draw(seed, policy, gate, &c);
	int rc = sim_run(&c, &r);
	if (rc != 0)
		printf("%s, gate %s, %d cores, seed %llu: %s\n", policy->name, gates[gate],
		    c.group[0].cores, (unsigned long long)seed, r ? r->breach : "memory");
	CU_ASSERT_EQUAL(rc, 0);
	for (int i = 0; r && i < 5; i++)
		sum->by_why[i] += r->group[0].by_why[i];
	for (int i = 0; r && i < SIM_LAWS_COUNT; i++)
		checked[i] += r->law[i].checked;
	sum->dealt += r ? r->group[0].dealt : 0;
	sum->yielded += r ? r->group[0].yielded : 0;
	sum->from_cell += r ? r->group[0].from_cell : 0;
	sum->moved += r ? r->group[0].moved : 0;
	sim_result_free(r);
}

static void test_all_pairs(void)
{
	const char *env = getenv("WEIR_NEXT_SEEDS");
	uint64_t seeds = env ? strtoull(env, NULL, 10) : LAW_SEEDS;

	for (int p = 0; next_policy_at(p); p++) {
		struct sim_group_result sum = {0};
		uint64_t checked[SIM_LAWS_COUNT] = {0};

		for (enum next_gate gate = NEXT_ALL; gate <= NEXT_CUTOFF; gate++)
			for (uint64_t seed = 0; seed < seeds; seed++)
				run_one(next_policy_at(p), gate, seed, &sum, checked);
		/* the runs mean something only if all of it happens */
		for (int i = 0; i < 5; i++)
			CU_ASSERT(sum.by_why[i] > 100);
		CU_ASSERT(sum.dealt > 100 && sum.yielded > 100 && sum.from_cell > 1000);
		CU_ASSERT(sum.moved > 20);
		for (int i = 17; i < SIM_LAWS_COUNT; i++)
			CU_ASSERT(checked[i] > 100 || 1 << i == SIM_LAW_TABLE ||
				  1 << i == SIM_LAW_PREDICTS);
		CU_ASSERT(checked[21] > 100 || next_policy_at(p) != &next_mg1);
	}
}

/* A resize policy that draws the number of cores anew each time. */
static bool decide_restless(
    void *state, const struct resize_view *v, int64_t now_ns, struct resize_decision *d)
{
	(void)state;
	d->target =
	    v->min + (int)(weir_random_at(7, (uint64_t)now_ns) % (uint64_t)(v->max - v->min + 1));
	return true;
}

/* A group of which cores leave and join every 100 ms, for a second with at most 3,000 requests. */
static void draw_sized(uint64_t seed, struct sim_config *c)
{
	static const struct resize_policy restless = {
	    .name = "restless", .decide = decide_restless};
	struct sim_group *g = &c->group[0];
	double per_s = 0;

	draw(seed, next_policy_at((int)(seed / 6 % 6)), (enum next_gate)(seed / 36 % 5), c);
	g->replicas = 1;
	g->cores_min = 1 + (int)(seed / 7 % 2) * g->cores / 2;
	g->resize = &restless;
	for (int i = 0; i < c->n_stages; i++)
		if (c->stage[i].group == 1)
			c->stage[i].threads_min = c->stage[i].threads_start = g->cores_min;
	for (int i = 0; i < c->n_sources; i++)
		per_s += c->source[i].rate_per_s;
	for (int i = 0; i < c->n_sources; i++) {
		c->source[i].rate_per_s *= fmin(1, 3000 / per_s);
		c->source[i].group = c->source[i].group == 2 ? 2 : 0;
	}
	c->measured_ns = NS_PER_S;
}

static void test_sized(void)
{
	uint64_t resized = 0, checked = 0, moved = 0;

	for (uint64_t seed = 0; seed < SIZED_SEEDS; seed++) {
		struct sim_config c;
		struct sim_result *r = NULL;
		draw_sized(seed, &c);
		int rc = sim_run(&c, &r);
		if (rc != 0)
			printf("%d to %d cores, seed %llu: %s\n", c.group[0].cores_min,
			    c.group[0].cores, (unsigned long long)seed, r ? r->breach : "memory");
		CU_ASSERT_EQUAL(rc, 0);
		resized += r ? (uint64_t)r->group[0].resized : 0;
		moved += r ? r->group[0].moved : 0;
		checked += r ? r->law[__builtin_ctz(SIM_LAW_THREADS)].checked : 0;
		sim_result_free(r);
	}
	CU_ASSERT(resized > 3 * SIZED_SEEDS && moved > 1000 && checked > 10000);
}

/* S11: three loaded stages of one group, clients that wait for the response. */
static void test_predicts(void)
{
	for (int p = 0; next_policy_at(p); p++)
		for (int i = 0; i < 3; i++) {
			struct sim_config c;
			struct sim_result *r = NULL;

			group_search_fill(5, next_policy_at(p), cores_of[2 * i], 0.5, &c);
			c.n_stages = 3;
			c.n_routes = c.n_sources = 1;
			c.route[0] = (struct sim_route){.n = 3, .stage = {0, 1, 2}};
			for (int k = 0; k < 3; k++)
				c.stage[k].service.mean_ns = (1 + k) * 40 * NS_PER_US;
			c.source[0].arrivals = SIM_CLOSED;
			c.source[0].clients = 100 * c.group[0].cores;
			c.warmup_ns = c.measured_ns = NS_PER_S / (1 + i * i);
			c.bin_ns = ADMISSION_TICK_NS;
			c.laws |= SIM_LAWS_GROUPS | SIM_LAW_PREDICTS;
			int rc = sim_run(&c, &r);
			if (rc != 0)
				printf("%s, %d cores: %s\n", next_policy_at(p)->name,
				    c.group[0].cores, r ? r->breach : "memory");
			CU_ASSERT_EQUAL_FATAL(rc, 0);
			CU_ASSERT(r->law[23].checked > 0);
			sim_result_free(r);
		}
}

CUNIT_MAIN("laws of core groups in virtual time", {"each policy with each gate", test_all_pairs},
    {"cores that leave and join", test_sized}, {"the predicted wait", test_predicts})
