/* SPDX-License-Identifier: MIT */
/*
 * `weir simulate`: predicts how a server would behave under a load, from its YAML and the service
 * times of its stages.
 *
 *   simulate.c        the verb: options, the run
 *   simulate_plan.c   from a spec and times to the simulator's configuration, and the bottleneck
 *   simulate_load.c   the load of each class and route
 *   simulate_cost.c   the times: given, from a running server, or configured (burn, delay, hold)
 *   simulate_width.c  stages with a width
 *   simulate_children.c  shares of links; links of children
 *   simulate_group.c  core groups
 *   simulate_print.c  tables and JSON
 *   simulate_left.c   which keys of the YAML have no effect in the model
 *
 * The model is simplified: I/O threads and thread switches cost nothing. A core group is simulated
 * with its cores, cells and schedule (sim/group.h). Any other group is simulated as one stage that
 * takes as long as all its stages together. A stage with a width is simulated on its own, even in a group, since it needs hardly any thread time. If a stage has several outlets,
 * events are distributed evenly unless --share is given. The children of an event are a part of its path,
 * as one visit of the time of all of them. Main thread only.
 */
#ifndef WEIR_CLI_SIMULATE_H
#define WEIR_CLI_SIMULATE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <weir/error.h>
#include <weir/spec.h>

#include "sim/sim.h"

/** Maximum number of values of a repeated option on a command line. */
#define SIMULATE_WORDS_MAX 64
struct simulate_words {
	int n;
	const char *word[SIMULATE_WORDS_MAX];
};

struct simulate_options {
	char *load, *admin, *output; /* load is "2x" or "500"; output is NULL, "json" or "csv" */
	int64_t cores, seed, keys, for_ns, deadline_ns;
	bool help;
	const char *file;
	/* options that may be repeated, so they are not in the table of knobs */
	struct simulate_words cost, share, classes, set;
};

/** Maximum number of stages in a spec. */
#define SIMULATE_STAGES_MAX 256

enum simulate_from { SIMULATE_UNKNOWN, SIMULATE_KNOBS, SIMULATE_MEASURED, SIMULATE_GIVEN };

/** The service time of an event at a stage of the spec. */
struct simulate_cost {
	enum simulate_from from;
	struct sim_dist dist;
	/* share of the service time that uses a core; for the rest, the thread blocks */
	double cpu_share;
};

/** The simulator's stages and their maximum throughput. */
struct simulate_plan {
	struct sim_config config;
	struct simulate_cost cost[SIMULATE_STAGES_MAX];
	char label[SIM_STAGES_MAX][64]; /* "work", "core: parse, decide" */
	double visits[SIM_STAGES_MAX];  /* visits to the stage per event sent to the server */
	/* maximum throughput, in events sent to the server per second; 0 if unbounded */
	double ceiling_per_s[SIM_STAGES_MAX];
	/* the ceiling of the stage is that of one batch at a time, which is below that of its group */
	bool alone[SIM_STAGES_MAX];
	bool keyed[SIM_STAGES_MAX]; /* likewise, since its key has fewer values than cores */
	double cores_ceiling_per_s; /* of all cores together; 0 if unbounded */
	int bottleneck;             /* index of a stage, or -1 for the cores */
	double capacity_per_s, offered_per_s, load; /* load = offered / capacity */
	double events;                              /* expected number of simulated events */
	double in_front; /* share of events that end before they reach a stage that takes time */
	char route_name[SIM_ROUTES_MAX][24];
	/* by route: the stage of the spec that is its source, if the cores of a group read its
	 * requests; else -1 */
	int route_source[SIM_ROUTES_MAX];
};

/** Set plan->cost to the service times of all stages of `spec`. Returns 0, or a WEIR_E code with a
 *  message in `err`; WEIR_ESYS if no server answers at --admin. */
int simulate_costs(const struct weir_spec *spec, const struct simulate_options *opt,
    struct simulate_plan *plan, struct weir_err *err);

/** The share of class `name` according to --class, or -1 if none is given. */
double simulate_class_share(const struct simulate_options *opt, const char *name);
/** Add the sources of all classes to plan->config. route_share[i] is the share of events on route
 *  i. Returns 0, or WEIR_EINVAL with a message in `err`. */
int simulate_load(const struct weir_spec *spec, const struct simulate_options *opt,
    const double *route_share, struct simulate_plan *plan, struct weir_err *err);

/** Fill in the plan except plan->cost, which simulate_costs has set. Calls simulate_load. Returns
 *  0, or a WEIR_E code with a message in `err`. */
int simulate_plan(const struct weir_spec *spec, const struct simulate_options *opt,
    struct simulate_plan *plan, struct weir_err *err);

/** Return whether stages of the type of `st` hold events (WEIR_STAGE_HOLDS), so that `st` has a
 *  width. */
bool simulate_holds(const struct weir_stage_spec *st);

/** If `st` has a width, turn `to` into a stage of the simulator with that width. */
void simulate_width(const struct weir_stage_spec *st, struct sim_stage *to);

/** Return the index of the core group in `c`, which is created on first use with as many cores as it
 *  has on a machine with `machine` cores. -1: too many groups. */
int simulate_group(const struct weir_group_spec *gs, int machine, struct sim_config *c);
/** Turn `to`, a pool, into a stage of core group `group`. */
void simulate_join(
    const struct weir_stage_spec *st, int group, struct sim_config *c, struct sim_stage *to);
/** All stages and routes exist: give the stages of core groups their places and limits. Returns 0, or
 *  WEIR_EINVAL with a message in `err`. */
int simulate_groups(const struct weir_spec *spec, struct sim_config *c, struct weir_err *err);
/** `to` stands for the threads of source `st`: if it is the source of a core group, turn it into a
 *  stage of the group. Returns 0, or -1 if there are too many groups. */
int simulate_front(const struct weir_spec *spec, const struct weir_stage_spec *st, int machine,
    struct sim_config *c, struct sim_stage *to);
/** Whether `st` is a source whose requests the cores of a group read. */
bool simulate_reads(const struct weir_spec *spec, const struct weir_stage_spec *st);
/** Whether the cores of `gs` read the requests of a source. */
bool simulate_read(const struct weir_spec *spec, const struct weir_group_spec *gs);
/** 1 + the index in `c` of the group whose cores read the requests of `st`, or 0. */
int simulate_source(
    const struct weir_spec *spec, const struct weir_stage_spec *st, const struct sim_config *c);
/** Set the order in which `to` serves its events. */
void simulate_queue(
    const struct weir_spec *spec, const struct weir_stage_spec *st, struct sim_stage *to);
/** Whether the model knows the discipline of the stage's queue. */
bool simulate_ordered(const struct weir_spec *spec, const struct weir_stage_spec *st);

/** The share of link `k` of `st` according to --share, or -1 if none is given. For a link of children, it is
 *  their number for each event. */
double simulate_share(const struct simulate_options *opt, const struct weir_stage_spec *st, int k);
/** Whether `st` awaits the events of link `k`, which are children of its events. */
bool simulate_awaits(const struct weir_stage_spec *st, int k);
/** Whether it awaits the events of any link. */
bool simulate_splits(const struct weir_stage_spec *st);

/** Return the field of the stage's serial key, or NULL. */
const char *simulate_serial(const struct weir_spec *spec, const struct weir_stage_spec *st);
/** Whether batches of the stage wait for more events in the model, if it has a `linger`. */
bool simulate_lingers(const struct weir_spec *spec, const struct weir_stage_spec *st);

/** Give the stages of core groups their serial keys. Returns 0, or WEIR_EINVAL with a message in `err` if
 *  --keys is given, but has no effect. */
int simulate_keys(const struct weir_spec *spec, const struct simulate_options *opt,
    struct sim_config *c, struct weir_err *err);

/** Fill in service times, ceilings, the bottleneck and the capacity. By stage of the simulator, per event
 *  sent to the server: work_ns is its work, cpu_ns the part of it that uses a core. */
void simulate_capacity(
    struct simulate_plan *plan, const double *work_ns, const double *cpu_ns, int cores);

/** Name what limits the capacity: "the cores", "stage work", "group core". */
void simulate_bottleneck(const struct simulate_plan *plan, char *text, size_t size);

/** Return the index of the stage whose name is name[0..n), or -1 if there is none. */
int simulate_stage(const struct weir_spec *spec, const char *name, size_t n);

/** A key of the YAML that the model leaves out or treats differently. */
struct simulate_left {
	const char *group, *stage; /* where it is written: one of them is NULL */
	const char *key, *why;
};

/** Call `put` for each key of `spec` that the model leaves out. */
void simulate_left_out(const struct weir_spec *spec,
    void (*put)(const struct simulate_left *left, void *arg), void *arg);

/** Print the plan and the results. */
void simulate_print(const struct weir_spec *spec, const struct simulate_plan *plan,
    const struct sim_result *r, FILE *out);

/** Print the plan and the results as JSON. Returns 0 or WEIR_ENOMEM. */
int simulate_print_json(const struct weir_spec *spec, const struct simulate_plan *plan,
    const struct sim_result *r, FILE *out);

/** Print all options with their meanings and defaults. */
void simulate_print_options(FILE *out);

#endif
