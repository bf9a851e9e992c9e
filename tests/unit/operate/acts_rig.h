/* SPDX-License-Identifier: MIT */
/* A graph of two stages, first -> last, for tests of operator changes (acts). */
#ifndef WEIR_TESTS_FLOW_ACTS_RIG_H
#define WEIR_TESTS_FLOW_ACTS_RIG_H

#include "fixture/graph/probes.h"

/* Number of events of a test. */
#define MANY 64

static char why[300];

static inline struct weir_spec *two_stages(void)
{
	struct weir_spec *spec = weir_spec_new("acts");

	fixture_set(fixture_stage(spec, "first", "t.pass", "last"), "threads.max", "2");
	fixture_set(fixture_stage(spec, "last", "t.end", NULL), "threads.max", "2");
	prepare(MANY);
	return spec;
}

static inline struct weir_graph *started(void)
{
	struct weir_graph *g = fixture_start(two_stages());

	weir_thread_attach(g, "test");
	return g;
}

static inline void finished(struct weir_graph *g)
{
	weir_thread_detach();
	finish_graph(g, 0);
}

static inline const char *value_of(struct weir_graph *g, const char *knob)
{
	static char text[200];

	CU_ASSERT_EQUAL(weir_graph_get(g, "last", knob, text, sizeof(text)), 0);
	return text;
}

static inline int set_for(struct weir_graph *g, const char *knob, const char *value, int64_t for_ns)
{
	return weir_graph_set_for(g, "last", knob, value, for_ns, why, sizeof(why));
}

static inline struct weir_override layers_of(struct weir_graph *g, const char *knob)
{
	struct weir_override l;

	CU_ASSERT_EQUAL(weir_graph_override(g, "last", knob, &l), 0);
	return l;
}

static inline struct weir_change newest(struct weir_graph *g)
{
	struct weir_change act = {0};

	CU_ASSERT_EQUAL(weir_graph_changes(g, &act, 1), 1);
	return act;
}

static inline struct weir_stage_spec *stage_of(struct weir_spec *spec, const char *name)
{
	for (int i = 0; i < spec->n_stages; i++)
		if (strcmp(spec->stages[i].name, name) == 0)
			return &spec->stages[i];
	abort();
}

#endif
