/* SPDX-License-Identifier: MIT */
/*
 * `weir simulate`: what a server would do under a load, from its YAML and the times its stages take.
 *
 *   simulate.c         the verb: options, the run
 *   simulate_plan.c    from a spec and times to the simulator's configuration, and the bottleneck
 *   simulate_cost.c    the times: given, from a running server, or those that burn and delay imitate
 *   simulate_print.c   tables and JSON
 *
 * What it leaves out, it says: an I/O thread costs nothing, a switch costs nothing, a group's stages
 * are one stage that takes what they take together, and how events part at a fork must be told
 * (--share) or is even.
 *
 * Main thread only.
 */
#ifndef WEIR_CLI_SIMULATE_H
#define WEIR_CLI_SIMULATE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <weir/error.h>
#include <weir/spec.h>

#include "sim/sim.h"

/** Words of one kind on a command line. */
#define SIMULATE_WORDS_MAX 64
struct simulate_words {
	int n;
	const char *word[SIMULATE_WORDS_MAX];
};

struct simulate_options {
	char *load, *admin, *output; /* "2x" or "500"; output NULL, "json" or "csv" */
	int64_t cores, seed, for_ns, deadline_ns;
	bool help;
	/* not rows, since they may stand several times */
	const char *file;
	struct simulate_words cost, share, classes, set;
};

/** Stages of a spec. */
#define SIMULATE_STAGES_MAX 256

enum simulate_from { SIMULATE_UNKNOWN, SIMULATE_KNOBS, SIMULATE_MEASURED, SIMULATE_GIVEN };

/** What an event takes at a stage of the spec. */
struct simulate_cost {
	enum simulate_from from;
	struct sim_dist dist;
	double cpu_share; /* of it, the rest blocks */
};

/** What the simulator's stages are, and what they can do at best. */
struct simulate_plan {
	struct sim_config config;
	struct simulate_cost cost[SIMULATE_STAGES_MAX];
	char label[SIM_STAGES_MAX][64];             /* "work", "core: parse, decide" */
	double visits[SIM_STAGES_MAX];              /* per event that the server is sent */
	double ceiling_per_s[SIM_STAGES_MAX];       /* of events sent to the server; 0: no bound */
	double cores_ceiling_per_s;                 /* of all cores together; 0: no bound */
	int bottleneck;                             /* stage; -1: the cores */
	double capacity_per_s, offered_per_s, load; /* load = offered / capacity */
	double in_front; /* share of events that end before any stage that takes time */
	char route_name[SIM_ROUTES_MAX][24];
};

/** The times of all stages of `spec` into plan->cost. 0 or a WEIR_E code with `err`; WEIR_ESYS: no
 *  server answers at --admin. */
int simulate_costs(const struct weir_spec *spec, const struct simulate_options *opt,
    struct simulate_plan *plan, struct weir_err *err);

/** The rest of the plan. 0 or WEIR_EINVAL with `err`. */
int simulate_plan(const struct weir_spec *spec, const struct simulate_options *opt,
    struct simulate_plan *plan, struct weir_err *err);

/** The stage called `name`, -1 when there is none. */
int simulate_stage(const struct weir_spec *spec, const char *name, size_t n);

/** Print what was planned and what came out. */
void simulate_print(const struct weir_spec *spec, const struct simulate_plan *plan,
    const struct sim_result *r, FILE *out);

/** The same as JSON. 0 or WEIR_ENOMEM. */
int simulate_print_json(const struct weir_spec *spec, const struct simulate_plan *plan,
    const struct sim_result *r, FILE *out);

/** Print all options with their defaults and meaning. */
void simulate_print_options(FILE *out);

#endif
