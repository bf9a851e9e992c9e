/* SPDX-License-Identifier: MIT */
/* Builds the graph of a server from its configuration file: for `run`, `check` and reloads. May be
 * called by one thread at a time, since it changes the working directory of the process. */
#ifndef WEIR_SERVER_BUILD_H
#define WEIR_SERVER_BUILD_H

#include <stdbool.h>

#include <weir/error.h>
#include <weir/graph.h>

/** A configuration as given on a command line. Strings are borrowed. */
struct build_input {
	const char *path; /* of the YAML file */
	int n_sets;
	const char *const *sets; /* STAGE.KNOB=VALUE, as given by `--set` */
	bool preview;            /* run no code of plug-ins that are not loaded yet */
	bool serve;              /* refuse a file in which no stage is a source */
	bool become;             /* after loading the file, become the user that `user:` names */
	bool bind; /* before becoming that user, bind the addresses that only root can bind */
};

/**
 * Load the configuration and build its graph. Everything that can be checked before threads start
 * has then been checked. The working directory becomes the folder of the file, since paths in the
 * file are relative to it. If `values` is not NULL, *values is set to the result of
 * config_values_text, which the caller frees. Returns 0, or a WEIR_E code with `errs` filled in.
 */
int build_graph(
    const struct build_input *in, struct weir_graph **graph, char **values, struct weir_errs *errs);

struct json_t;

/** Return the errors as a JSON array of objects, as in `check -o json`. NULL if out of memory. */
struct json_t *build_errors_json(const struct weir_errs *errs);

#endif
