/* SPDX-License-Identifier: MIT */
/* report: write load runs as one HTML file. */
#include "cli/verb.h"

#include "load/outfile.h"
#include "report/html.h"

static int report_failed(const struct weir_err *err, int code)
{
	fprintf(stderr, "weir report: %s\n", err->text);
	return code;
}

static int report_write(const struct rundata *run, int n, const struct verb_args *args)
{
	struct weir_err err = {0};
	struct outfile out;

	if (outfile_open(&out, args->output, &err) != 0)
		return report_failed(&err, VERB_FINDING);
	if (report_html(run, n, args->force, out.file) != 0) {
		outfile_abandon(&out);
		snprintf(err.text, sizeof(err.text), "out of memory");
		return report_failed(&err, VERB_FINDING);
	}
	if (outfile_commit(&out, &err) != 0)
		return report_failed(&err, VERB_FINDING);
	return VERB_OK;
}

int verb_report(const struct verb *verb, const struct verb_args *args)
{
	struct rundata *run;
	struct weir_err err = {0};

	if (!args->output)
		return verb_misused(
		    verb, "-o FILE.html is missing; '-o -' writes to standard output");
	if (rundata_read_all(args->operand, args->n, &run, &err) != 0)
		return report_failed(&err, VERB_USAGE);
	int rc = report_write(run, args->n, args);
	rundata_free_all(run, args->n);
	return rc;
}
