/* SPDX-License-Identifier: MIT */
/* Lives of a graph in which the n-th call of some kind fails, for all n (inject.h). */
#ifndef WEIR_TESTS_FAULT_LIVES_H
#define WEIR_TESTS_FAULT_LIVES_H

#include "fixture/graph/probes.h"

#include "base/clock.h"
#include "fault/inject.h"
#include "graph/graph.h"

struct lives {
	struct weir_spec *(*spec)(void); /* of the graph */
	/* Offer events to the graph, which has started, and wait until they have ended. */
	void (*traffic)(struct weir_graph *g);
	/* Check the graph after its drain; may be NULL. */
	void (*check)(struct weir_graph *g);
	void (*end)(void); /* called when it has been freed, or was not built; may be NULL */
};

/* One life in which call n fails. Returns whether that call was reached. */
static inline bool lives_one(const struct lives *l, atomic_long *which, long n)
{
	static struct weir_errs errs;
	struct weir_spec *spec = l->spec();
	struct weir_graph *g = NULL;
	struct weir_drain_report r;

	memset(&errs, 0, sizeof(errs));
	atomic_store(&fault_fired, 0);
	atomic_store(which, n);
	int rc = weir_graph_build(spec, &g, &errs);
	if (rc != 0)
		weir_spec_free(spec);
	else
		rc = weir_graph_start(g, &errs);
	CU_ASSERT_EQUAL(rc == 0, errs.total == 0);
	if (rc == 0) {
		l->traffic(g);
		weir_graph_drain(g, 600 * NS_PER_S, &r);
		CU_ASSERT_EQUAL(r.law_error, 0);
	}
	if (rc == 0 && l->check) {
		long left = atomic_exchange(which, -1); /* a check may allocate */
		l->check(g);
		atomic_store(which, left);
	}
	weir_graph_free(g);
	atomic_store(which, -1);
	if (l->end)
		l->end();
	return atomic_load(&fault_fired) > 0;
}

/* All lives until one ends before the n-th call; there must be more than `at_least`. */
static inline void lives_sweep(const struct lives *l, atomic_long *which, long at_least)
{
	long n = 0;

	atomic_store(&fault_of_mine, false);
	atomic_store(&fault_goes_on, false);
	weir_log_set_fd(-1);
	while (lives_one(l, which, n))
		n++;
	printf("(%ld failures) ", n);
	CU_ASSERT(n >= at_least);
	weir_log_set_fd(2);
}

#endif
