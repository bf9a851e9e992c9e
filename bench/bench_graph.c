/* SPDX-License-Identifier: MIT */
#include "bench_graph.h"

#include <stdio.h>
#include <stdlib.h>

#include <weir/stage.h>

struct weir_graph *bench_graph_start(struct weir_spec *spec)
{
	struct weir_errs *errs = calloc(1, sizeof(*errs));
	struct weir_graph *g = NULL;

	if (!errs || weir_graph_build(spec, &g, errs) != 0 || weir_graph_start(g, errs) != 0 ||
	    weir_thread_attach(g, "bench") != 0) {
		fprintf(stderr, "graph: %s\n", errs ? errs->err[0].text : "out of memory");
		exit(1);
	}
	free(errs);
	return g;
}

void bench_graph_end(struct weir_graph *g)
{
	struct weir_drain_report r;

	weir_thread_detach();
	weir_graph_drain(g, 10000000000LL, &r);
	weir_graph_free(g);
	if (r.law_error != 0 || r.closed != 0) {
		fprintf(stderr, "events were lost (%ld) or closed\n", (long)r.law_error);
		exit(1);
	}
}
