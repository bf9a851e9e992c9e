/* SPDX-License-Identifier: MIT */
/*
 * Loads YAML into a struct weir_spec, checks its structure and reports all mistakes together.
 *
 * Used by one thread at a time; there is no global state. Apart from reading the configuration
 * files and loading plug-ins, no call opens, starts or binds anything.
 */
#ifndef WEIR_CONFIG_CONFIG_H
#define WEIR_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <weir/error.h>
#include <weir/spec.h>

/** Limits of a configuration. A larger one is refused early, since libyaml's running time is
 *  quadratic in the nesting depth. */
#define CONFIG_DEPTH_MAX    32
#define CONFIG_BYTES_MAX    (1 << 20)
#define CONFIG_NODES_MAX    10000
#define CONFIG_INCLUDES_MAX 64

/**
 * Load `path` and what it includes. `sets[n_sets]` are overrides, "stage.knob=value". Plug-ins
 * named by `plugin:` are loaded (weir_stage_load). Only the structure is checked; weir_spec_check
 * does all other checks. Returns 0 with *spec owned by the caller (weir_spec_free), or WEIR_EINVAL,
 * WEIR_ENOENT, WEIR_ESYS (the file cannot be read) or WEIR_ENOMEM with `errs` filled in.
 */
int config_load(const char *path, const char *const *sets, int n_sets, struct weir_spec **spec,
    struct weir_errs *errs);

/** Like config_load, but loads no new plug-in files. A stage whose type comes from a plug-in is
 *  checked against the loaded plug-in; if this plug-in is not loaded, an error is reported. Used by
 *  a server that only reports what a reload would change. */
int config_look(const char *path, const char *const *sets, int n_sets, struct weir_spec **spec,
    struct weir_errs *errs);

/** Like config_load, but loads the text[0..n) from memory. Messages use `name` as the file name;
 *  `include:` is refused. */
int config_load_text(
    const char *text, size_t n, const char *name, struct weir_spec **spec, struct weir_errs *errs);

/**
 * Load the plug-ins named by the file `path` and by the files it includes. Ignores all other
 * sections, even if they have mistakes. Returns 0, or a code of config_load with `errs` filled in.
 */
int config_load_plugins(const char *path, struct weir_errs *errs);

/** Write the JSON Schema of the YAML, including all registered stage types. Returns 0 or
 * WEIR_ENOMEM. */
int config_schema(FILE *out);

/** Write what a stage type accepts: summary, outlets, knobs with unit, range and default, metrics,
 *  and an example. For a name from config_described, write its knobs only. Returns 0 or
 *  WEIR_ENOENT. */
int config_describe(const char *type, FILE *out);

/** Write the same facts as JSON (docs/json.md). Returns 0, WEIR_ENOENT or WEIR_ENOMEM. */
int config_describe_json(const char *type, FILE *out);

/** Return the name with index `i` (from 0) that config_describe accepts in addition to stage types
 * ("stage", "group", "admin" ...), or NULL after the last. The string is static. */
const char *config_described(int i);

/** Write the effective value of every key and its origin: file:line or "default". If `path` is not
 *  NULL ("stages.disk.threads"), write only the keys below it. Returns 0, WEIR_ENOENT (there is no
 *  such key) or WEIR_ENOMEM. */
int config_explain(const struct weir_spec *spec, const char *path, FILE *out);

/** A key, its effective value and where that comes from. All members are valid only during the
 *  call. */
struct config_value {
	const char *path;  /* "stages.disk.threads.max" */
	const char *value; /* as it is written in YAML */
	/* "file", "defaults", "set", "default" or "program"; "note" for an explanation in words, which
	 * is not a key */
	const char *origin;
	const char *file; /* for "file" and "defaults"; else NULL */
	int line;         /* from 1; 0 without a file */
};

typedef void config_value_fn(void *arg, const struct config_value *value);

/** Call `fn` with `arg` for each key that config_explain would write, in that order. "defaults" are
 *  the values that a stage takes from `defaults:`, "set" is --set. Returns as config_explain. */
int config_explain_each(
    const struct weir_spec *spec, const char *path, config_value_fn *fn, void *arg);

/** A key whose value comes from a file. All members are valid only during the call. */
struct config_said {
	const char *path;  /* "stages.disk.threads.max" */
	const char *value; /* effective; NULL if its line has ${}, which may be a secret */
	const char *file;
	int line; /* from 1 */
};

typedef void config_said_fn(void *arg, const struct config_said *said);

/** Call `fn` for every key of the spec whose value comes from a file and not from --set. Returns 0
 * or WEIR_ENOMEM. */
int config_said(const struct weir_spec *spec, config_said_fn *fn, void *arg);

/** Return the text of file `i` and its name. File 0 is the loaded file, and the files that it
 *  includes follow. The text is as it was read, but all lines end with '\n'; the caller frees
 *  *text. The spec owns *name. Returns 0, WEIR_ENOENT if there is no such file, or WEIR_ENOMEM. */
int config_text(const struct weir_spec *spec, int i, const char **name, char **text);

/** Write the effective value of every key as a line "path value". Two specs are equivalent if these
 *  lines are equal. Returns 0 or WEIR_ENOMEM. */
int config_values(const struct weir_spec *spec, FILE *out);

/** Return the output of config_values as a string, which the caller frees. Returns NULL if out of
 * memory. */
char *config_values_text(const struct weir_spec *spec);

/** A new value for a knob of `stage`, to be written into a file; `knob` is its path, as for
 * --set. */
struct config_change {
	const char *stage, *knob, *value;
	bool plain; /* `value` is a boolean, which needs no quotes */
};

/**
 * Return the text of the file `path` with change[0..n) applied and every other byte unchanged:
 * values are replaced in place, and missing knobs are added to their stage. The file is not
 * written. The caller frees *text, which is NUL-terminated; *size is its length. Returns 0 or
 *
 *   WEIR_EINVAL             a value cannot be replaced in the file (it comes from ${}, from an
 *                           included file, or from a number that sets several knobs); `errs` has
 *                           the position
 *   a code of config_load   the file cannot be read
 *   WEIR_ENOMEM
 */
int config_edit(const char *path, const struct config_change *change, int n, char **text,
    size_t *size, struct weir_errs *errs);

/** How config_save reads configurations: config_load or, in a server that runs, config_look; and
 *  weir_spec_check, which this folder does not use itself. */
typedef int config_load_fn(const char *path, const char *const *sets, int n_sets,
    struct weir_spec **spec, struct weir_errs *errs);
typedef int config_check_fn(const struct weir_spec *spec, struct weir_errs *errs);
struct config_reading {
	config_load_fn *load;
	config_check_fn *check;
};

/**
 * Write change[0..n) into the file `path` as config_edit does, unless `dry_run`. The file is replaced
 * atomically, keeps its mode and its group, and is replaced only if its effective values are those of
 * the old file with exactly these changes; `reading` reads and checks both. *changes are the lines that change, "- old"
 * and "+ new", to be freed by the caller. Blocks until the file is on the disk. Returns 0 or, with
 * `errs` filled in and nothing written,
 *
 *   WEIR_EINVAL             the file cannot be edited in this way
 *   WEIR_ESYS               it cannot be written
 *   WEIR_EBUSY              it was changed by another program in the meantime
 *   a code of config_edit
 */
int config_save(const char *path, const struct config_change *change, int n,
    const struct config_reading *reading, bool dry_run, char **changes, struct weir_errs *errs);

/** Write the graph in the format "text", "dot" or "mermaid". Returns 0 or WEIR_EINVAL. */
int config_graph(const struct weir_spec *spec, const char *format, FILE *out);

#endif
