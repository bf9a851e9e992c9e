/* SPDX-License-Identifier: MIT */
/*
 * Gordon's misses of the search engine (tables 4.12, 4.13, 4.17, 4.18) in virtual time.
 *
 * The model has no caches. It counts what causes the misses that a schedule can change, for each
 * request of a closed loop with 4 clients per core: handing over, which is an event that another core
 * handled at the stage before, so that its data come from that core's cache; and loads of code, which
 * are batches of a stage that the core has not run last, or not among the last four.
 */
#include <stdio.h>

#include "tables.h"

#define CLIENTS 4 /* per core, as in search.c */

static void print_row(const char *name, struct sim_config *c, int seeds, struct outcome *first)
{
	close_loop(c, CLIENTS * c->cores);
	struct outcome o = run_seeds(c, seeds);

	if (first->per_s <= 0)
		*first = o;
	printf("| %d | %s | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f |\n", c->cores, name,
	    o.strangers, o.strangers / first->strangers, o.switched, o.switched / first->switched,
	    o.reloaded, o.reloaded / first->reloaded);
	fflush(stdout);
}

static void print_schedules(int cores, int seeds)
{
	static const char *const order[] = {"color", "srpt", "mg1", "wavefront", "dbr", "fifo"};
	struct outcome first = {0};

	for (size_t i = 0; i < 6; i++) {
		struct sim_config c;
		group_search_fill(1, next_policy_find(order[i]), cores, 0.85, &c);
		print_row(order[i], &c, seeds, &first);
	}
}

static void print_balance(int cores, int seeds)
{
	static const int first2[] = {0, 10}, first4[] = {0, 3, 10, 11};
	int two[] = {cores * 10 / 64, cores - cores * 10 / 64};
	int four[] = {cores / 16, cores / 16, cores - cores / 16 * 3, cores / 16};
	struct outcome first = {0};
	struct sim_config c;

	for (int n = 1; n <= 8; n *= 2) {
		char name[64];
		group_search_fill(1, &next_wavefront, cores, 0.7, &c);
		c.group[0].replicas = n;
		snprintf(name, sizeof(name), n > 1 ? "%d replicas" : "one group", n);
		print_row(name, &c, seeds, &first);
	}
	if (cores < 16)
		for (int p = 0; p < 4; p++)
			four[p] = p == 2 ? cores - 3 : 1;
	group_search_fill(1, &next_wavefront, cores, 0.7, &c);
	make_parts(&c, 2, first2, two);
	print_row("2 parts", &c, seeds, &first);
	group_search_fill(1, &next_wavefront, cores, 0.7, &c);
	make_parts(&c, 4, first4, four);
	print_row("4 parts", &c, seeds, &first);
}

void table_misses(int seeds)
{
	printf("Of each request, and as a ratio to the first row.\n\n"
	       "| cores | | handed over | ratio | code switched | ratio | not among 4 | ratio |\n"
	       "|---|---|---|---|---|---|---|---|\n");
	print_schedules(8, seeds);
	print_schedules(64, seeds);
	print_balance(8, seeds);
	print_balance(64, seeds);
}
