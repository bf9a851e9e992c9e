/* SPDX-License-Identifier: MIT */
/*
 * Writes the report on an overload evaluation: reads rows and writes one HTML page.
 *
 *   overload_report [-o FILE] ROWS...
 *
 * ROWS are files from bench/overload --report and overload_sim --json (report/overload/rows.h).
 * Exit codes: 0 success, 1 the report could not be written, 2 the rows or the command line are
 * invalid.
 */
#include <stdio.h>
#include <string.h>

#include "report/overload/page.h"

static int fail(const char *what, int code)
{
	fprintf(stderr, "overload_report: %s\n", what);
	return code;
}

static int write_page(const struct over_rows *rows, const char *path)
{
	FILE *out = path ? fopen(path, "w") : stdout;

	if (!out)
		return fail("the report file cannot be opened", 1);
	int rc = over_page(rows, out);
	bool lost = fflush(out) != 0 || ferror(out);
	if (path && fclose(out) != 0)
		lost = true;
	if (rc != 0)
		return fail("out of memory", 1);
	return lost ? fail("the report could not be written", 1) : 0;
}

int main(int argc, char **argv)
{
	struct over_rows rows = {0};
	struct weir_err err = {0};
	const char *path = NULL;
	int rc = 0, files = 0;

	for (int i = 1; i < argc && rc == 0; i++) {
		if (strcmp(argv[i], "-o") == 0 && i + 1 < argc) {
			path = argv[++i];
			continue;
		}
		files++;
		rc = over_rows_read(argv[i], &rows, &err);
	}
	if (rc != 0)
		rc = fail(err.text, 2);
	else if (files == 0)
		rc = fail("usage: overload_report [-o FILE] ROWS...", 2);
	else if (rows.n == 0)
		rc = fail("there are no runs in these rows", 2);
	else
		rc = write_page(&rows, path);
	over_rows_fini(&rows);
	return rc;
}
