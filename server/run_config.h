/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CLI_RUN_CONFIG_H
#define WEIR_CLI_RUN_CONFIG_H

#include <jansson.h>

#include <weir/spec.h>

/** The running configuration, shown in addition to the files. */
struct run_config {
	const char *values;   /* from config_values, or NULL */
	const json_t *hidden; /* from report_hidden: paths of hidden values; NULL hides all */
	const char *folder;   /* ends with '/', removed from file names; "" for none */
	int n_sets;
	const char *const *sets; /* n_sets "stage.knob=value" of the command line */
};

/** Build the body of /api/v1/config for a spec that was loaded from files. The caller frees it;
 *  NULL if out of memory or if a file is not UTF-8. Reads only. */
char *run_config_json(const struct weir_spec *spec, const struct run_config *runs);

#endif
