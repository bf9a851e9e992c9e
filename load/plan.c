/* SPDX-License-Identifier: MIT */
/* Frees plans; see plan.h. */
#include "load/plan.h"

#include <stdlib.h>
#include <string.h>

void load_plan_fini(struct load_plan *plan)
{
	for (int c = 0; c < plan->n_classes; c++) {
		struct load_class *cls = &plan->class[c];
		for (int i = 0; i < cls->n_requests; i++)
			free(cls->request[i].bytes);
		free(cls->request);
	}
	free(plan->trace_ns);
	free(plan->url);
	memset(plan, 0, sizeof(*plan));
}
