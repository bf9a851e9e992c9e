/* SPDX-License-Identifier: MIT */
#ifndef WEIR_SERVER_RUN_CONFIG_H
#define WEIR_SERVER_RUN_CONFIG_H

#include <jansson.h>

#include <weir/spec.h>

/** What is shown of the running configuration besides its files. */
struct run_config {
	const char *values; /* from config_values, or NULL */
	/* from report_hidden: the paths of hidden values; NULL hides all values */
	const json_t *hidden;
	/* removed from the beginning of file names; ends with '/', or is "" */
	const char *folder;
	int n_sets;
	const char *const *sets; /* the n_sets --set options, "stage.knob=value" */
};

/** Return the body of /api/v1/config for a spec that was loaded from files, to be freed by the
 *  caller; NULL if out of memory or if a file is not UTF-8. */
char *run_config_json(const struct weir_spec *spec, const struct run_config *runs);

#endif
