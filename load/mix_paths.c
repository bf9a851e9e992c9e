/* SPDX-License-Identifier: MIT */
/* Reads the weighted paths of a file; see mix.h. */
#include <stdlib.h>
#include <string.h>

#include "load/lines.h"
#include "load/mix.h"

/* Read "PATH" or "WEIGHT PATH". Returns the path, or NULL. */
static const char *split(char *line, double *weight)
{
	char *end = line;

	*weight = 1;
	if (*line != '/') {
		*weight = strtod(line, &end);
		if (end == line || !(*weight > 0) || *weight > 1e9)
			return NULL;
		if (*end != ' ' && *end != '\t')
			return NULL;
	}
	end += strspn(end, " \t");
	return *end == '/' ? end : NULL;
}

int mix_add_paths(
    struct load_class *cls, const struct mix_head *head, const char *file, struct weir_err *err)
{
	struct lines lines;
	int rc = lines_open(&lines, file, err);

	if (rc != 0)
		return rc;
	while ((rc = lines_next(&lines, err)) == 1) {
		double weight;
		const char *path = split(lines.text, &weight);
		struct weir_err why = {0};
		if (lines.text[0] == '#')
			continue;
		if (!path)
			rc = lines_refuse(&lines,
			    "write /PATH, or a weight above 0 and at most 1e9, and /PATH", err);
		else if ((rc = mix_add(cls, head, path, weight, NULL, 0, &why)) != 0)
			rc = rc == WEIR_EINVAL ? lines_refuse(&lines, why.text, err)
					       : (*err = why, rc);
		if (rc != 0)
			break;
	}
	lines_close(&lines);
	return rc;
}
