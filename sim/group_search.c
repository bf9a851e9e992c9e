/* SPDX-License-Identifier: MIT */
/*
 * The site search engine of M. Gordon, Stage Scheduling for CPU-Intensive Servers, 2010, 4.3, as a
 * configuration of the simulator of groups.
 *
 * The stages and paths are his. His service times are not published, except that the combiner of
 * the sets of documents has most of the work. Guesses: the shares of the paths, and services that
 * give the combiner 84 % of the work, with a heavy tail.
 */
#include "base/clock.h"
#include "group.h"

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

static const struct group_stage stages[STAGES] = {
    [IO] = {"io", {SIM_EXP, 60000, 0, 0, 0}, 64, true},
    [DECODER] = {"decoder", {SIM_EXP, 10000, 0, 0, 0}, 64, true},
    [TITLES] = {"titles", {SIM_EXP, 200000, 0, 0, 0}, 64, true},
    [TOKENIZER] = {"tokenizer", {SIM_EXP, 50000, 0, 0, 0}, 64, true},
    [STOPWORDS] = {"stopwords", {SIM_EXP, 20000, 0, 0, 0}, 64, true},
    [SPELLING] = {"spelling", {SIM_EXP, 150000, 0, 0, 0}, 64, true},
    [STEMMER] = {"stemmer", {SIM_EXP, 20000, 0, 0, 0}, 64, true},
    [TERM] = {"term", {SIM_EXP, 300000, 0, 0, 0}, 64, true},
    [CACHE] = {"cache", {SIM_EXP, 15000, 0, 0, 0}, 64, true},
    [TERMS] = {"terms", {SIM_EXP, 900000, 0, 0, 0}, 64, true},
    [COMBINER] = {"combiner", {SIM_LOGNORMAL, 30000000, 0, 0, 1.5}, 64, true},
    [CONTENT] = {"content", {SIM_EXP, 400000, 0, 0, 0}, 64, true},
    [FORMATTER] = {"formatter", {SIM_EXP, 150000, 0, 0, 0}, 64, true},
    [DEFLATER] = {"deflater", {SIM_EXP, 300000, 0, 0, 0}, 64, true},
};

static const struct group_route routes[] = {
    {6, {IO, DECODER, TITLES, CONTENT, FORMATTER, DEFLATER}, 0.45},
    {11,
	{IO, DECODER, TITLES, TOKENIZER, STOPWORDS, SPELLING, STEMMER, TERM, CONTENT, FORMATTER,
	    DEFLATER},
	0.15},
    {8, {IO, DECODER, TITLES, TOKENIZER, STOPWORDS, SPELLING, STEMMER, CACHE}, 0.15},
    {13,
	{IO, DECODER, TITLES, TOKENIZER, STOPWORDS, SPELLING, STEMMER, CACHE, TERMS, COMBINER,
	    CONTENT, FORMATTER, DEFLATER},
	0.25},
};

#define ROUTES (int)(sizeof(routes) / sizeof(routes[0]))

void group_search_fill(
    uint64_t seed, const struct next_policy *policy, int cores, double load, struct group_config *c)
{
	*c = (struct group_config){.seed = seed,
	    .policy = policy,
	    .limits = {.gate = NEXT_ALL},
	    .cores = cores,
	    .n_stages = STAGES,
	    .n_routes = ROUTES,
	    .rate_per_s = 1,
	    .batch_ns = 200,
	    .switch_ns = 2000,
	    .wake_ns = 5000,
	    .deal = true,
	    .warmup = 5000,
	    .requests = 50000};
	for (int i = 0; i < STAGES; i++)
		c->stage[i] = stages[i];
	for (int i = 0; i < ROUTES; i++)
		c->route[i] = routes[i];
	for (int i = 0; i < STAGES; i++) /* as `local: auto`: long work waits in one queue */
		c->stage[i].local = stages[i].service.mean_ns <= 20000;
	c->rate_per_s = load / group_load(c);
}
