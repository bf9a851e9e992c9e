/* SPDX-License-Identifier: MIT */
/* Made-up runs, read as reports do it; for tests of reports. */
#ifndef WEIR_TESTS_REPORT_READING_H
#define WEIR_TESTS_REPORT_READING_H

#include <unistd.h>

#include "cunit_main.h"
#include "fixture/load/made_up_run.h"
#include "report/rundata.h"

/** A plain run with `label`: a server that keeps its goodput under overload. */
static inline struct made_up reading_plain(const char *label, uint64_t seed)
{
	return (struct made_up){.label = label,
	    .capacity_per_s = 1000,
	    .kept = 0.98,
	    .latency_s = 0.004,
	    .phase_s = 8,
	    .n_loads = 3,
	    .started_unix_ns = 1795000000000000000LL,
	    .seed = seed};
}

/** Write the run, read it, and remove the file. Ends the test when that fails. */
static inline void reading_read(const struct made_up *m, struct rundata *run)
{
	char path[64];
	struct weir_err err = {0};

	snprintf(path, sizeof(path), "reading_%ld.json", (long)getpid());
	CU_ASSERT_EQUAL_FATAL(made_up_write(m, path), 0);
	int rc = rundata_read(path, run, &err);
	unlink(path);
	if (rc != 0)
		fprintf(stderr, "\n%s\n", err.text);
	CU_ASSERT_EQUAL_FATAL(rc, 0);
}

#endif
