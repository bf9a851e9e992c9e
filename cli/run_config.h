/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CLI_RUN_CONFIG_H
#define WEIR_CLI_RUN_CONFIG_H

#include <weir/spec.h>

/** The body of /api/v1/config for a spec that was loaded from files; the caller's to free, NULL without memory (or when a
 *  file is no UTF-8). Main thread. */
char *run_config_json(const struct weir_spec *spec);

#endif
