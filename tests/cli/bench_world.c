/* SPDX-License-Identifier: MIT */
/* See bench_world.h. */
#include "bench_world.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cunit_main.h"
#include "load/joined.h"
#include "load/rng.h"

atomic_bool bench_stop_asked;

struct bench_world world;

struct bench_request req;
static char whole[] = "0.5x..10x";
struct bench *b;
struct weir_err err;

/* ---- the server ---- */

static double normal(void)
{
	double sum = 0;

	for (int i = 0; i < 12; i++)
		sum += weir_random_unit(weir_random_at(world.key, (uint64_t)(world.runs * 12 + i)));
	return sum - 6;
}

static double serves(double per_s)
{
	double capacity = world.capacity_per_s * (1 + world.drift * sin(world.runs / 7.0));

	if (world.slow_from > 0 && world.runs >= world.slow_from)
		capacity *= world.slow;
	if (world.slow_each > 0)
		capacity *= pow(world.slow, world.runs / world.slow_each);
	double over = fmin(log10(fmax(per_s / capacity, 1)), 1);
	double peak = capacity * (1 - (1 - world.kept) * over) * (1 + world.noise * normal());
	if (weir_random_unit(weir_random_at(world.key + 1, (uint64_t)world.runs)) < world.disturbed)
		peak *= 0.1;
	return fmax(fmin(per_s, peak), 0) * (1 - world.failing);
}

static void fill(struct load_result *r, int i, const struct load_phase *p)
{
	struct load_phase_result *out = &r->phase[i];
	struct load_class_result *c = &out->class[0];
	double seconds = (double)p->for_ns / 1e9;

	out->took_ns = p->for_ns;
	out->complete = true;
	if (!(p->from_per_s > 0))
		return;
	world.runs++;
	double good = serves(p->from_per_s);
	hdr_add(&out->lag, (int64_t)(world.lag_s * 1e9), 100);
	out->late = world.runs >= world.late_from && world.runs < world.late_from + world.late &&
		    !p->warmup;
	if (world.sends_per_s > 0 && p->from_per_s > world.sends_per_s)
		out->late = !p->warmup && (p->trial || !world.overloads);
	c->offered = (uint64_t)llround(p->from_per_s * seconds);
	c->outcome[LOAD_OK] = (uint64_t)llround(good * seconds);
	c->outcome[LOAD_ERROR] = (uint64_t)((double)c->offered * world.failing);
	if (c->outcome[LOAD_OK] + c->outcome[LOAD_ERROR] > c->offered)
		c->outcome[LOAD_OK] = c->offered - c->outcome[LOAD_ERROR];
	c->outcome[LOAD_SHED] = c->offered - c->outcome[LOAD_OK] - c->outcome[LOAD_ERROR];
	c->latency[LOAD_OK] = calloc(1, sizeof(struct hdr));
	CU_ASSERT_PTR_NOT_NULL_FATAL(c->latency[LOAD_OK]);
	uint64_t stalled = (uint64_t)llround((double)c->outcome[LOAD_OK] * world.stalls);
	hdr_add(c->latency[LOAD_OK], 5000000, c->outcome[LOAD_OK] - stalled);
	hdr_add(c->latency[LOAD_OK], world.stall_s > 0 ? (int64_t)(world.stall_s * 1e9) : 800000000,
	    stalled);
	for (int s = 0; s < (int)seconds; s++) {
		struct load_second *row = &r->second[r->n_seconds++];
		row->phase = i;
		row->class[0].outcome[LOAD_OK] = (uint64_t)good;
	}
	if (world.stop_after == world.runs)
		atomic_store(&bench_stop_asked, true);
}

int bench_run(
    struct bench *bench, struct bench_side *s, const struct load_plan *phases, struct weir_err *why)
{
	struct load_result r = {.n_phases = phases->n_phases};

	(void)bench;
	(void)why;
	if (++world.calls == world.fail_at)
		return WEIR_ENOMEM;
	r.phase = calloc((size_t)phases->n_phases, sizeof(*r.phase));
	r.second = calloc((size_t)phases->n_phases * 16, sizeof(*r.second));
	CU_ASSERT_FATAL(r.phase && r.second);
	for (int i = 0; i < phases->n_phases; i++)
		fill(&r, i, &phases->phase[i]);
	return load_join(&s->plan, &s->result, phases->phase, &r);
}

/* ---- a bench ---- */

void bench_end(void)
{
	if (b) {
		load_result_fini(&b->side[0].result);
		load_plan_fini(&b->side[0].plan);
		load_result_fini(&b->side[1].result);
		load_plan_fini(&b->side[1].plan);
	}
	free(b);
	b = NULL;
}

void bench_begin(void)
{
	bench_end();
	memset(&world, 0, sizeof(world));
	world.capacity_per_s = 1000;
	world.kept = 1;
	world.lag_s = 0.0001;
	atomic_store(&bench_stop_asked, false);
	memset(&req, 0, sizeof(req));
	req.opt = (struct bench_options){.find_capacity = true,
	    .quiet = true,
	    .rounds = 1,
	    .for_ns = 2000000000,
	    .pause_ns = 1000000000,
	    .sweep = whole};
	b = calloc(1, sizeof(*b));
	CU_ASSERT_PTR_NOT_NULL_FATAL(b);
	b->req = &req;
	b->slo = "p99=100ms";
	b->n_sides = 1;
	for (int i = 0; i < 2; i++)
		b->side[i].plan.n_classes = 1;
	CU_ASSERT_EQUAL(load_objective_parse(b->slo, &b->objective, &err), 0);
}

struct verdict bench_verdict(void)
{
	return verdict_of(&b->side[0].plan, &b->side[0].result);
}

struct verdict bench_whole(void)
{
	int rc = bench_search(b, 100, &err);

	if (rc == 0 && b->capacity_per_s > 0)
		rc = bench_sweep(b, &err);
	CU_ASSERT_EQUAL(rc, 0);
	return bench_verdict();
}

int bench_named(const char *word)
{
	int n = 0;

	for (int i = 0; i < b->side[0].plan.n_phases; i++)
		n += strncmp(b->side[0].plan.phase[i].name, word, strlen(word)) == 0;
	return n;
}

double bench_highest(void)
{
	double most = 0;

	for (int i = 0; i < b->side[0].plan.n_phases; i++)
		most = fmax(most, b->side[0].plan.phase[i].multiple);
	return most;
}
