/* SPDX-License-Identifier: MIT */
/*
 * YAML to struct weir_spec: load, check the shape, say every mistake at once.
 *
 * All calls: one thread at a time, no globals. Nothing here starts, opens or binds anything but the
 * configuration files themselves.
 */
#ifndef WEIR_CONFIG_CONFIG_H
#define WEIR_CONFIG_CONFIG_H

#include <stddef.h>
#include <stdio.h>

#include <weir/error.h>
#include <weir/spec.h>

/** Limits of a configuration; beyond them it is refused early (libyaml is quadratic in nesting). */
#define CONFIG_DEPTH_MAX    32
#define CONFIG_BYTES_MAX    (1 << 20)
#define CONFIG_NODES_MAX    10000
#define CONFIG_INCLUDES_MAX 64

/**
 * Load `path` and what it includes. `sets[n_sets]` are "stage.knob=value" overrides. On success
 * *spec is the caller's (weir_spec_free). Plug-ins named by `plugin:` are loaded (weir_stage_load).
 * The result has passed shape checks only: weir_spec_check does the rest. 0 or WEIR_EINVAL,
 * WEIR_ENOENT, WEIR_ENOMEM with `errs` filled.
 */
int config_load(const char *path, const char *const *sets, int n_sets, struct weir_spec **spec,
    struct weir_errs *errs);

/** The same from memory; `name` stands for the file in messages; `include:` is refused. */
int config_load_text(
    const char *text, size_t n, const char *name, struct weir_spec **spec, struct weir_errs *errs);

/**
 * Load the plug-ins that `path` and what it includes name, and nothing else of it: what is wrong
 * elsewhere does not matter. 0 or a code of config_load with `errs` filled.
 */
int config_load_plugins(const char *path, struct weir_errs *errs);

/** Write the JSON Schema of the YAML, all registered stage types included. 0 or WEIR_ENOMEM. */
int config_schema(FILE *out);

/** Write what a stage type takes: summary, outlets, knobs with unit, range, default, metrics, an
 *  example; of what config_described names the knobs. 0 or WEIR_ENOENT. */
int config_describe(const char *type, FILE *out);

/** The i-th thing from 0 that config_describe knows beside stage types ("stage", "group", "admin" ...); NULL behind the
 *  last. A constant. */
const char *config_described(int i);

/** Write the effective value of every key (or of those below `path`, "stages.disk.threads") and
 *  where it comes from: file:line or "default". 0 or WEIR_ENOENT. */
int config_explain(const struct weir_spec *spec, const char *path, FILE *out);

/** A key that a file says. All of it lives as long as the call. */
struct config_said {
	const char *path;  /* "stages.disk.threads.max" */
	const char *value; /* in effect; NULL: its line has ${}, which may be a secret */
	const char *file;
	int line; /* from 1 */
};

typedef void config_said_fn(void *arg, const struct config_said *said);

/** Call `fn` for every key of the spec whose value a file says, and no --set. 0 or WEIR_ENOMEM. */
int config_said(const struct weir_spec *spec, config_said_fn *fn, void *arg);

/** The text of file `i` (0 the one that was named, then what it includes) as it was read, lines ended by '\n', and
 *  its name, which the spec keeps; *text is the caller's to free. 0, WEIR_ENOENT (no more) or WEIR_ENOMEM. */
int config_text(const struct weir_spec *spec, int i, const char **name, char **text);

/** Write the effective value of every key, one "path value" a line: what two specs have to have in common
 *  to mean the same. 0 or WEIR_ENOMEM. */
int config_values(const struct weir_spec *spec, FILE *out);

/** The same as a text, malloc'ed; NULL without memory. */
char *config_values_text(const struct weir_spec *spec);

/** A knob to be written into a file: of stage `stage`, `knob` as for --set. */
struct config_change {
	const char *stage, *knob, *value;
};

/**
 * The text of the file `path` with change[0..n) made and every other byte as it was: values are
 * replaced where they stand, knobs that are not there are added to their stage. Nothing is written.
 * *text (NUL behind it) is the caller's to free, *size its bytes. 0; WEIR_EINVAL when a value has no
 * place of its own (it comes from ${}, from an included file, from a number that says more than one
 * knob), with the place in `errs`; a code of config_load when the file can not be read; WEIR_ENOMEM.
 */
int config_edit(const char *path, const struct config_change *change, int n, char **text,
    size_t *size, struct weir_errs *errs);

/** Write the graph: format "text", "dot" or "mermaid". 0 or WEIR_EINVAL. */
int config_graph(const struct weir_spec *spec, const char *format, FILE *out);

#endif
