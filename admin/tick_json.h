/* SPDX-License-Identifier: MIT */
/* The data of a `tick` (docs/api.md): all stages over the last step. Pure functions. */
#ifndef WEIR_ADMIN_TICK_JSON_H
#define WEIR_ADMIN_TICK_JSON_H

#include <jansson.h>

#include "sample.h"

/** What a tick says beside the samples. */
struct tick_about {
	int hz;
	enum weir_admission_mode overload;
	double self_cpu; /* of the admin thread, share of a core */
	int watchers;
};

/** `sample` has one element per stage of `view`. A new reference, NULL without memory. About 0.3 ms
 *  for 30 stages. */
json_t *tick_json(const struct tick_about *about, const struct weir_graph_view *view,
    const struct sample *sample);

#endif
