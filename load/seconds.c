/* SPDX-License-Identifier: MIT */
/* Collects one row per second; see seconds.h. The row of a second is built when every worker has
 * handed over its counters for that second, so rows are complete and in order. The lock is held
 * only to take the workers' counters and to return their memory. */
#include "load/seconds.h"

#include <stdlib.h>
#include <string.h>

struct collector {
	struct run_shared *run;
	struct worker *worker;
	int n;
	struct load_result *result;
	size_t room;
	struct hdr class[LOAD_CLASSES_MAX], all;
};

/* Whether `row` is a last row without any request. If a run ends exactly at the end of a second,
 * the workers also hand over the next second, in which nothing happened. */
static bool is_leftover(const struct collector *c, const struct load_second *row)
{
	uint64_t n = row->all.offered;

	for (int o = 0; o < LOAD_N_OUTCOMES; o++)
		n += row->all.outcome[o];
	return n == 0 && c->run->start_ns + row->at_ns >= c->run->end_ns;
}

/* Wait until every worker has handed over second `number` or has finished. Returns false if no
 * seconds are left. */
static bool await(struct collector *c, int64_t number)
{
	bool more = true;

	pthread_mutex_lock(&c->run->exchange.lock);
	for (int i = 0; i < c->n; i++)
		while (c->worker[i].tally.published <= number)
			pthread_cond_wait(&c->run->exchange.news, &c->run->exchange.lock);
	if (c->run->exchange.n_running == 0) {
		more = false;
		for (int i = 0; i < c->n; i++)
			more |= c->worker[i].tally.ready != NULL;
	}
	pthread_mutex_unlock(&c->run->exchange.lock);
	return more;
}

static void add_share(struct collector *c, struct load_second *row, const struct tally_second *s)
{
	row->in_flight += s->in_flight;
	row->connections += s->connections;
	if (row->lag_max_ns < s->lag_max_ns)
		row->lag_max_ns = s->lag_max_ns;
	for (int k = 0; k < c->run->plan->n_classes; k++) {
		const struct tally_second_class *from = &s->class[k];
		row->class[k].offered += from->offered;
		row->class[k].retries += from->retries;
		row->all.offered += from->offered;
		row->all.retries += from->retries;
		for (int o = 0; o < LOAD_N_OUTCOMES; o++) {
			row->class[k].outcome[o] += from->outcome[o];
			row->all.outcome[o] += from->outcome[o];
		}
		hdr_merge(&c->class[k], &from -> latency);
	}
}

/* Add a worker's share of second `number` to the row. A worker that finished earlier has no
 * share. */
static void take_share(
    struct collector *c, struct tally *t, int64_t number, struct load_second *row)
{
	struct tally_second *s = NULL;

	pthread_mutex_lock(&c->run->exchange.lock);
	if (t->ready && t->ready->number == number)
		s = tally_take(t);
	pthread_mutex_unlock(&c->run->exchange.lock);
	if (!s)
		return;
	add_share(c, row, s);
	pthread_mutex_lock(&c->run->exchange.lock);
	tally_give_back(t, s);
	pthread_mutex_unlock(&c->run->exchange.lock);
}

static void merge(struct collector *c, int64_t number, struct load_second *row)
{
	const struct load_plan *plan = c->run->plan;

	*row = (struct load_second){.at_ns = number * 1000000000};
	while (row->phase < plan->n_phases - 1 &&
	       c->run->start_ns + row->at_ns >= c->run->phase_end_ns[row->phase])
		row->phase++;
	memset(c->class, 0, sizeof(c->class));
	memset(&c->all, 0, sizeof(c->all));
	for (int i = 0; i < c->n; i++)
		take_share(c, &c->worker[i].tally, number, row);
	for (int k = 0; k < plan->n_classes; k++) {
		row->class[k].p50_ns = hdr_quantile_ns(&c->class[k], 0.5);
		row->class[k].p99_ns = hdr_quantile_ns(&c->class[k], 0.99);
		hdr_merge(&c->all, &c->class[k]);
	}
	row->all.p50_ns = hdr_quantile_ns(&c->all, 0.5);
	row->all.p99_ns = hdr_quantile_ns(&c->all, 0.99);
}

static bool grow(struct collector *c)
{
	size_t room = c->room ? c->room * 2 : 64;
	struct load_second *rows;

	if (c->result->n_seconds < c->room)
		return true;
	rows = realloc(c->result->second, room * sizeof(*rows));
	if (!rows)
		return false;
	c->result->second = rows;
	c->room = room;
	return true;
}

int seconds_collect(struct run_shared *run, struct worker *workers, int n,
    const struct load_hooks *hooks, struct load_result *result)
{
	struct collector *c = calloc(1, sizeof(*c));
	bool whole = c != NULL;

	if (c) {
		c->run = run;
		c->worker = workers;
		c->n = n;
		c->result = result;
	} else {
		atomic_store(&run->abort, true);
	}
	for (int64_t number = 0; c && await(c, number); number++) {
		struct load_second row;
		merge(c, number, &row);
		if (is_leftover(c, &row))
			continue;
		if (!whole || !grow(c)) {
			atomic_store(&run->abort, true);
			whole = false;
			continue;
		}
		result->second[result->n_seconds++] = row;
		if (hooks && hooks->second)
			hooks->second(hooks->arg, &row);
	}
	free(c);
	return whole ? 0 : WEIR_ENOMEM;
}
