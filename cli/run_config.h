/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CLI_RUN_CONFIG_H
#define WEIR_CLI_RUN_CONFIG_H

#include <jansson.h>

#include <weir/spec.h>

/** What is shown beside the files: what runs. */
struct run_config {
	const char *values; /* config_values of what runs; NULL: none */
	const json_t
	    *hidden;        /* report_hidden: paths whose values are not told; NULL: all are such */
	const char *folder; /* with '/' behind it, left out of names of files; "" for none */
	int n_sets;
	const char *const *sets; /* n_sets "stage.knob=value" of the command line */
};

/** The body of /api/v1/config for a spec that was loaded from files; the caller's to free, NULL without memory (or when a
 *  file is no UTF-8). One thread; only reads. */
char *run_config_json(const struct weir_spec *spec, const struct run_config *runs);

#endif
