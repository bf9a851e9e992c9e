/* SPDX-License-Identifier: MIT */
/* Shared by test_serial and test_serial_moved: core groups of two cores with serial keys. */
#ifndef WEIR_TEST_SERIAL_RIG_H
#define WEIR_TEST_SERIAL_RIG_H

#include "fixture/graph/probes.h"

#include <sched.h>

#include "base/clock.h"
#include "event/local.h"
#include "graph/graph.h"
#include "sched/serial.h"

#define CORES 2

/* A group has two cores on every machine. */
#define FIXTURE_CPUS CORES
#include "fixture/graph/cpus.h"

/* Number of events that were handled in a wrong order. */
static atomic_int overtaken;

static struct core_group *group_of(struct weir_graph *g)
{
	return weir_graph_stage(g, "a")->pool->cores;
}

/* The threads have begun, and have their slots. */
static void both_begun(struct weir_graph *g)
{
	for (int k = 0; k < CORES; k++)
		FIXTURE_AWAIT(atomic_load(&group_of(g)->serial->state[k]) == SERIAL_OPEN);
}

static void finish(struct weir_graph *g, int n)
{
	FIXTURE_AWAIT(fixture_ended() == (uint64_t)n);
	check_each_once(n);
	CU_ASSERT_EQUAL(atomic_load(&overtaken), 0);
	for (int k = 0; k < CORES; k++)
		CU_ASSERT_EQUAL(group_of(g)->core[k].n, 0);
	weir_thread_detach();
	finish_graph(g, 0);
}

#endif
