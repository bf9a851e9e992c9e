/* SPDX-License-Identifier: MIT */
/* Made-up run files for tests that look at reports from outside: make_runs FOLDER writes good.json,
 * slow.json, hostile.json, closed.json, void.json and single.json into it. */
#include <stdio.h>

#include "fixture/load/made_up_run.h"

#define MAKE_RUNS_START 1795000000000000000LL

static const struct {
	const char *file;
	struct made_up run;
} runs[] = {
    {"good.json", {.label = "weir",
		      .capacity_per_s = 1000,
		      .kept = 0.98,
		      .latency_s = 0.004,
		      .rounds = 3,
		      .phase_s = 6,
		      .n_loads = 10,
		      .seed = 1}},
    {"slow.json", {.label = "no admission",
		      .capacity_per_s = 1000,
		      .kept = 0.35,
		      .latency_s = 0.009,
		      .errors = 0.03,
		      .rounds = 3,
		      .phase_s = 6,
		      .n_loads = 10,
		      .seed = 2}},
    {"hostile.json",
	{.label = "<script>document.title='owned'</script><img src=x onerror=alert(1)>",
	    .capacity_per_s = 500,
	    .kept = 0.9,
	    .latency_s = 0.002,
	    .phase_s = 4,
	    .n_loads = 3,
	    .class_name = "\"><svg onload=x()>",
	    .stage_name = "'/><script>alert(2)</script>",
	    .voided = "<b>the generator was late</b>",
	    .seed = 3}},
    {"closed.json", {.label = "closed",
			.capacity_per_s = 800,
			.kept = 1,
			.latency_s = 0.003,
			.phase_s = 5,
			.n_loads = 2,
			.closed = true,
			.no_server = true,
			.seed = 4}},
    {"void.json", {.label = "void",
		      .capacity_per_s = 1000,
		      .kept = 0.98,
		      .latency_s = 0.004,
		      .phase_s = 5,
		      .n_loads = 2,
		      .no_server = true,
		      .voided = "the generator was 3 ms late at the 99th percentile",
		      .seed = 5}},
    {"single.json", {.label = "one rate",
			.capacity_per_s = 1000,
			.kept = 0.98,
			.latency_s = 0.004,
			.phase_s = 20,
			.n_loads = 1,
			.seed = 6}},
};

int main(int argc, char **argv)
{
	char path[1024];

	if (argc != 2) {
		fprintf(stderr, "usage: make_runs FOLDER\n");
		return 2;
	}
	for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
		struct made_up run = runs[i].run;
		run.started_unix_ns = MAKE_RUNS_START;
		snprintf(path, sizeof(path), "%s/%s", argv[1], runs[i].file);
		if (made_up_write(&run, path) != 0)
			return 1;
	}
	return 0;
}
