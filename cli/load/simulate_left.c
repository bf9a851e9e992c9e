/* SPDX-License-Identifier: MIT */
/* Finds the keys of the YAML that have no effect in `weir simulate`, or another one than in a server;
 * see simulate.h. */
#include "simulate.h"

#include <stdlib.h>
#include <string.h>

#include <weir/stage.h>

#include "sched/next.h"

struct finder {
	void (*put)(const struct simulate_left *left, void *arg);
	void *arg;
	const char *group, *stage; /* the present one */
};

static void find(const struct finder *f, bool left_out, const char *key, const char *why)
{
	const struct simulate_left left = {f->group, f->stage, key, why};

	if (left_out)
		f->put(&left, f->arg);
}

static bool is_set(const char *text)
{
	return text && text[0] && strcmp(text, "none") != 0;
}

static bool is_core_group(const struct weir_group_spec *gs)
{
	return gs->schedule && next_policy_find(gs->schedule);
}

static void find_in_group(
    struct finder *f, const struct weir_spec *spec, const struct weir_group_spec *gs)
{
	f->group = gs->name;
	f->stage = NULL;

	find(f, gs->cores && strstr(gs->cores, "..") && simulate_read(spec, gs), "cores",
	    "with a source, the number of cores is always the largest");
	find(f, gs->gate.cutoff_ns > 0, "gate.cutoff",
	    "handlers that do not yield; in the model, those of all stages do");
}

static bool in_core_group(const struct weir_spec *spec, const struct weir_stage_spec *st)
{
	for (int i = 0; st->group && i < spec->n_groups; i++)
		if (strcmp(spec->groups[i].name, st->group) == 0)
			return is_core_group(&spec->groups[i]);
	return false;
}

/* Whether the key `name` of `with` is a number, and not 0. */
static bool is_number(const struct weir_stage_spec *st, const char *name)
{
	const struct weir_node *node = weir_node_get(st->with, name);

	return node && node->kind == WEIR_NODE_SCALAR && atoi(node->text) != 0;
}

static void find_in_stage(
    struct finder *f, const struct weir_spec *spec, const struct weir_stage_spec *st)
{
	const struct weir_stage_ops *ops = weir_stage_type_find(st->use);
	bool ordered = simulate_ordered(spec, st);
	bool cores = in_core_group(spec, st), source = ops && ops->flags & WEIR_STAGE_SOURCE;

	f->group = NULL;
	f->stage = st->name;
	find(f, cores && simulate_holds(st), "group", "a stage with a width is outside the group");
	find(f, source && !cores && is_number(st, "threads"), "with.threads",
	    "it has an I/O thread per core");
	find(f, source && is_number(st, "per_thread"), "with.per_thread",
	    "a thread has any number of clients");

	find(f, st->mode == WEIR_MODE_PARTITIONED && !cores, "mode: partitioned",
	    "any thread takes any event of the stage");
	find(f, st->queue.discipline != WEIR_DISCIPLINE_AUTO && !ordered, "queue.discipline",
	    "the order is that of auto");
	find(f, st->queue.discipline == WEIR_DISCIPLINE_SHORTEST && ordered, "queue.by",
	    "the expected work of an event is its service time");
	find(f, st->cohort.linger_ns > 0 && !simulate_lingers(spec, st), "cohort.linger",
	    "no batch waits for more events");
	find(f, is_set(st->cohort.policy) && strcmp(st->cohort.policy, "static") != 0,
	    "cohort.policy", "batches have up to cohort.max events, or as many as take 1 ms");
	find(f, is_set(st->cohort.by), "cohort.by", "a batch may have events of several keys");
	find(f, st->degrade.above < 1, "degrade", "the stage does not reduce its quality");
}

void simulate_left_out(const struct weir_spec *spec,
    void (*put)(const struct simulate_left *left, void *arg), void *arg)
{
	struct finder f = {.put = put, .arg = arg};

	for (int i = 0; i < spec->n_groups; i++)
		if (is_core_group(&spec->groups[i]))
			find_in_group(&f, spec, &spec->groups[i]);
	for (int i = 0; i < spec->n_stages; i++)
		if (!spec->stages[i].inlined)
			find_in_stage(&f, spec, &spec->stages[i]);
}
