/* SPDX-License-Identifier: MIT */
/* Reads several run files and gives the runs distinct names; see rundata.h. */
#include "report/rundata.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Append the file's name to the name of the run, truncating the result if necessary. */
static void name_add_file(struct rundata *run)
{
	size_t n = strlen(run->name);

	snprintf(run->name + n, sizeof(run->name) - n, ", %s", run->file);
}

/* Make the names distinct by appending the file name to each name that several runs have. */
static void tell_apart(struct rundata *run, int n)
{
	for (int i = 0; i < n; i++) {
		bool twin = false;
		for (int k = i + 1; k < n; k++) {
			if (strcmp(run[i].name, run[k].name) != 0)
				continue;
			twin = true;
			name_add_file(&run[k]);
		}
		if (twin)
			name_add_file(&run[i]);
	}
}

int rundata_read_all(char *const *path, int n, struct rundata **runs, struct weir_err *err)
{
	struct rundata *run = calloc((size_t)n, sizeof(*run));
	int have = 0, rc = WEIR_ENOMEM;

	err->code = rc;
	snprintf(err->text, sizeof(err->text), "out of memory");
	while (run && have < n && (rc = rundata_read(path[have], &run[have], err)) == 0)
		have++;
	if (rc != 0) {
		rundata_free_all(run, have);
		return rc;
	}
	tell_apart(run, n);
	*runs = run;
	return 0;
}

void rundata_free_all(struct rundata *run, int n)
{
	for (int i = 0; i < n; i++)
		rundata_fini(&run[i]);
	free(run);
}
