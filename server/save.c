/* SPDX-License-Identifier: MIT */
/* Writes overridden knobs into the file; see save.h. config_save does the work. */
#include "save.h"

#include <stdlib.h>
#include <string.h>

#include <weir/graph.h>

#include "config.h"

/* As a server reads that runs: without new plug-ins. */
static const struct config_reading reading = {config_look, weir_spec_check};

/* Return the errors as text without the absolute folder; NULL if memory ran out. */
static char *errors_text(const struct weir_errs *errs, const char *folder)
{
	size_t n = strlen(folder), size = weir_errs_format(errs, NULL, 0) + 1;
	char *text = malloc(size);

	if (!text)
		return NULL;
	weir_errs_format(errs, text, size);
	for (char *at = text; n > 0 && (at = strstr(at, folder)) != NULL;)
		memmove(at, at + n, strlen(at + n) + 1);
	return text;
}

int save_values(const char *path, const char *folder, const struct admin_saved *saved, int n,
    bool preview, char **file, char **changes)
{
	struct config_change *change = calloc((size_t)n + 1, sizeof(*change));
	struct weir_errs errs = {0};
	size_t cut = strlen(folder);

	*file = strdup(strncmp(path, folder, cut) == 0 ? path + cut : path);
	*changes = NULL;
	if (!change)
		return WEIR_ENOMEM;
	for (int i = 0; i < n; i++)
		change[i] = (struct config_change){
		    saved[i].owner, saved[i].knob, saved[i].value, saved[i].plain};
	int rc = config_save(path, change, n, &reading, preview, changes, &errs);
	if (rc != 0)
		*changes = errors_text(&errs, folder);
	free(change);
	return rc;
}
