/* SPDX-License-Identifier: MIT */
/* Builds the JSON with which a running server shows its configuration: its files as they were read,
 * and the value that each line sets. Values of lines with ${} are omitted, since they come from the
 * environment and may be secrets. */
#include "run_config.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/json.h"
#include "config.h"

/* Return the file name as the user gave it when the working directory was `folder`. */
static const char *given(const char *name, const char *folder)
{
	size_t n = strlen(folder);

	return strncmp(name, folder, n) == 0 ? name + n : name;
}

struct adding {
	json_t *lines; /* NULL if out of memory */
	const char *folder;
};

static void add_line(void *arg, const struct config_said *said)
{
	struct adding *a = arg;

	json_push(
	    &a->lines, json_pack("{s:s, s:i, s:s, s:s?}", "file", given(said->file, a->folder),
			   "line", said->line, "path", said->path, "value", said->value));
}

static json_t *files_json(const struct weir_spec *spec, const char *folder)
{
	json_t *files = json_array();
	const char *name;
	char *text;
	int rc;

	for (int i = 0; (rc = config_text(spec, i, &name, &text)) == 0; i++) {
		json_push(
		    &files, json_pack("{s:s, s:s}", "file", given(name, folder), "text", text));
		free(text);
	}
	if (rc == WEIR_ENOENT)
		return files;
	json_decref(files);
	return NULL;
}

/* Turn lines of "path value" into an object, in which hidden values are null. Returns NULL if out
 * of memory. */
static json_t *values_json(const struct run_config *runs)
{
	json_t *values = json_object();

	for (const char *line = runs->values; values && line && *line; line++) {
		size_t n = strcspn(line, "\n"), path = strcspn(line, " \n");
		char *key = strndup(line, path);
		bool hidden = !key || !runs->hidden || json_object_get(runs->hidden, key);
		const char *value = line + path + (path < n);
		json_t *item =
		    hidden ? json_null() : json_stringn(value, (size_t)(line + n - value));
		if (!key || json_object_set_new(values, key, item) != 0) {
			json_decref(values);
			values = NULL;
		}
		free(key);
		line += n - !line[n];
	}
	return values;
}

/* Return the names set by --set; their values are in `values`. */
static json_t *sets_json(const struct run_config *runs)
{
	json_t *sets = json_array();

	for (int i = 0; sets && i < runs->n_sets; i++)
		json_push(&sets, json_stringn(runs->sets[i], strcspn(runs->sets[i], "=")));
	return sets;
}

char *run_config_json(const struct weir_spec *spec, const struct run_config *runs)
{
	struct adding a = {json_array(), runs->folder};

	if (config_said(spec, add_line, &a) != 0) {
		json_decref(a.lines);
		a.lines = NULL;
	}
	json_t *doc = json_pack("{s:o, s:o, s:o, s:o}", "files", files_json(spec, runs->folder),
	    "lines", a.lines, "values", values_json(runs), "sets", sets_json(runs));
	char *text = doc ? json_dumps(doc, JSON_COMPACT) : NULL;
	json_decref(doc);
	return text;
}
