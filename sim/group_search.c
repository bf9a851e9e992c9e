/* SPDX-License-Identifier: MIT */
/*
 * The site search engine of M. Gordon, Stage Scheduling for CPU-Intensive Servers, 2010, 4.3, as a
 * configuration of the simulator of groups.
 *
 * The stages and paths are his. His service times are not published, except that the combiner of
 * the sets of documents has most of the work. Guesses: the shares of the paths, and services that
 * give the combiner 84 % of the work, with a heavy tail.
 */
#include "group_search.h"

#include <string.h>

enum {
	IO,
	DECODER,
	TITLES,
	TOKENIZER,
	STOPWORDS,
	SPELLING,
	STEMMER,
	TERM,
	CACHE,
	TERMS,
	COMBINER,
	CONTENT,
	FORMATTER,
	DEFLATER,
	STAGES
};

static const struct {
	const char *name;
	struct sim_dist service;
} stages[STAGES] = {
    [IO] = {"io", {SIM_EXP, 60000, 0, 0, 0}},
    [DECODER] = {"decoder", {SIM_EXP, 10000, 0, 0, 0}},
    [TITLES] = {"titles", {SIM_EXP, 200000, 0, 0, 0}},
    [TOKENIZER] = {"tokenizer", {SIM_EXP, 50000, 0, 0, 0}},
    [STOPWORDS] = {"stopwords", {SIM_EXP, 20000, 0, 0, 0}},
    [SPELLING] = {"spelling", {SIM_EXP, 150000, 0, 0, 0}},
    [STEMMER] = {"stemmer", {SIM_EXP, 20000, 0, 0, 0}},
    [TERM] = {"term", {SIM_EXP, 300000, 0, 0, 0}},
    [CACHE] = {"cache", {SIM_EXP, 15000, 0, 0, 0}},
    [TERMS] = {"terms", {SIM_EXP, 900000, 0, 0, 0}},
    [COMBINER] = {"combiner", {SIM_LOGNORMAL, 30000000, 0, 0, 1.5}},
    [CONTENT] = {"content", {SIM_EXP, 400000, 0, 0, 0}},
    [FORMATTER] = {"formatter", {SIM_EXP, 150000, 0, 0, 0}},
    [DEFLATER] = {"deflater", {SIM_EXP, 300000, 0, 0, 0}},
};

static const struct sim_route routes[] = {
    {"titles", 6, {IO, DECODER, TITLES, CONTENT, FORMATTER, DEFLATER}},
    {"term", 11,
	{IO, DECODER, TITLES, TOKENIZER, STOPWORDS, SPELLING, STEMMER, TERM, CONTENT, FORMATTER,
	    DEFLATER}},
    {"cached", 8, {IO, DECODER, TITLES, TOKENIZER, STOPWORDS, SPELLING, STEMMER, CACHE}},
    {"terms", 13,
	{IO, DECODER, TITLES, TOKENIZER, STOPWORDS, SPELLING, STEMMER, CACHE, TERMS, COMBINER,
	    CONTENT, FORMATTER, DEFLATER}},
};

static const double share[] = {0.45, 0.15, 0.15, 0.25};

#define ROUTES (int)(sizeof(routes) / sizeof(routes[0]))

struct sim_group_costs group_costs(void)
{
	return (struct sim_group_costs){
	    /* micro_cells: 68 ns a hop in a cell for a run of one event, 7 to 12 in longer runs */
	    .batch_ns = 60,
	    .event_ns = 10,
	    .switch_ns = 0,    /* next_choose takes 8 to 70 ns (micro_next), within batch_ns */
	    .queue_ns = 20,    /* micro_group: a hop through the queue of a group, less a cell's */
	    .deal_ns = 800,    /* a guess, part of a dealt run in micro_cells on two cores */
	    .poll_ns = 100,    /* a line that another core has written (bench.h: 86 ns) */
	    .spin_ns = 20000,  /* the longest spin of a thread (SPIN_MAX_NS, sched/pool.c) */
	    .wake_ns = 21000}; /* a wake-up (see SPIN_MAX_NS) */
}

double group_load(const struct sim_config *c, int group)
{
	double work_ns = 0;

	for (int i = 0; i < c->n_sources; i++) {
		const struct sim_route *r = &c->route[c->source[i].route];
		for (int k = 0; k < r->n; k++)
			if (c->stage[r->stage[k]].group == group + 1)
				work_ns += c->source[i].rate_per_s *
					   (double)c->stage[r->stage[k]].service.mean_ns;
	}
	return work_ns / 1e9 / c->group[group].cores;
}

static struct sim_stage stage_of(int i, int cores)
{
	return (struct sim_stage){.name = stages[i].name,
	    .service = stages[i].service,
	    .cpu_share = 1,
	    .batch_max = 64,
	    .queue_limit = 1u << 24, /* no limit is ever reached below saturation */
	    .threads_min = cores,
	    .threads_max = cores,
	    .threads_start = cores,
	    .admission = &admission_none,
	    .params = sim_admission_defaults(),
	    .group = 1,
	    .place = i};
}

void group_search_fill(
    uint64_t seed, const struct next_policy *policy, int cores, double load, struct sim_config *c)
{
	memset(c, 0, sizeof(*c));
	c->seed = seed;
	c->cores = cores;
	c->n_classes = 1;
	c->n_groups = 1;
	c->group[0] = (struct sim_group){.name = "search",
	    .policy = policy,
	    .limits = {.gate = NEXT_ALL},
	    .cores = cores,
	    .cost = group_costs()};
	c->n_stages = STAGES;
	c->n_routes = c->n_sources = ROUTES;
	for (int i = 0; i < STAGES; i++)
		c->stage[i] = stage_of(i, cores);
	for (int i = 0; i < ROUTES; i++) {
		c->route[i] = routes[i];
		c->source[i] = (struct sim_source){.name = routes[i].name,
		    .route = i,
		    .arrivals = SIM_POISSON,
		    .rate_per_s = share[i]};
	}
	double scale = load / group_load(c, 0), per_s = 0;
	for (int i = 0; i < ROUTES; i++)
		per_s += c->source[i].rate_per_s *= scale;
	c->bin_ns = 100000000;
	c->warmup_ns = (int64_t)(5000 / per_s * 1e9) + c->bin_ns;
	c->measured_ns = (int64_t)(50000 / per_s * 1e9) + c->bin_ns;
	c->laws = SIM_LAWS_SERVER;
}
