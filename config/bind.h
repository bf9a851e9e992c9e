/* SPDX-License-Identifier: MIT */
/*
 * Converts the merged tree to the spec, with one function per top-level section.
 *
 * Every section reports its mistakes to bind->errs and continues. The return value of a section
 * only says whether memory ran out.
 */
#ifndef WEIR_CONFIG_BIND_H
#define WEIR_CONFIG_BIND_H

#include <stdbool.h>

#include <weir/error.h>
#include <weir/knob.h>
#include <weir/spec.h>
#include <weir/stage.h>

#include "load.h"

struct bind {
	struct weir_spec *spec;
	struct weir_errs *errs;
	const struct weir_node *defaults; /* NULL if absent or invalid */
	bool from_file;                   /* the spec comes from a file, so it may load plug-ins */
	bool look;                        /* load no new plug-ins (config_look) */
};

/** Bind all sections of `root` to bind->spec. Returns 0 or WEIR_ENOMEM. */
int bind_root(struct bind *bind, const struct weir_node *root);

/** Apply an override, "stage.knob=value". Returns 0 or WEIR_ENOMEM. */
int bind_set(struct bind *bind, const char *set);

/** Report errors in the `with:` of all stages, including overrides. Returns 0 or WEIR_ENOMEM. */
int bind_check_with(struct bind *bind);

/* Sections; `name` is the key as written, `node` its value. */
int section_name(struct bind *bind, const struct weir_node *name, const struct weir_node *node);
int section_user(struct bind *bind, const struct weir_node *name, const struct weir_node *node);
int section_admin(struct bind *bind, const struct weir_node *name, const struct weir_node *node);
int section_drain(struct bind *bind, const struct weir_node *name, const struct weir_node *node);
int section_overload(struct bind *bind, const struct weir_node *name, const struct weir_node *node);
int section_payloads(struct bind *bind, const struct weir_node *name, const struct weir_node *node);
int section_log(struct bind *bind, const struct weir_node *name, const struct weir_node *node);
int section_trace(struct bind *bind, const struct weir_node *name, const struct weir_node *node);
int section_plugin(struct bind *bind, const struct weir_node *name, const struct weir_node *node);
int section_defaults(struct bind *bind, const struct weir_node *name, const struct weir_node *node);
int section_classes(struct bind *bind, const struct weir_node *name, const struct weir_node *node);
int section_groups(struct bind *bind, const struct weir_node *name, const struct weir_node *node);
int section_stages(struct bind *bind, const struct weir_node *name, const struct weir_node *node);
int section_alerts(struct bind *bind, const struct weir_node *name, const struct weir_node *node);

/* ---- shared by sections ---- */

/** Rows of `admin:` (except `tokens` and `users`), of a token and of a user, of `drain:`,
 *  `overload:`, `payloads:`, `log:` and `trace:`. */
extern const struct weir_knob config_admin_knobs[];
extern const struct weir_knob config_token_knobs[];
extern const struct weir_knob config_user_knobs[];
extern const struct weir_knob config_drain_knobs[];
extern const struct weir_knob config_overload_knobs[];
extern const struct weir_knob config_payloads_knobs[];
extern const struct weir_knob config_log_knobs[];
extern const struct weir_knob config_trace_knobs[];

/** Rows of `alerts:`, of each alert, and of a stage in an alert. The last two tables are indexed by
 *  enum weir_alert_kind. The rows of a stage are NULL if the alert has no `stages:`. */
extern const struct weir_knob config_alerts_knobs[];
extern const struct weir_knob *const config_alert_knobs[];
extern const struct weir_knob *const config_alert_stage_knobs[];

/** Return whether `key` is the name of a top-level section. */
bool config_is_section(const char *key);

/** Return whether `key` is a key of a stage (use, with, to, or a row of weir_stage_knobs). */
bool config_is_stage_key(const char *key);

/** Return whether `key` is a key of a stage that `defaults:` may set. */
bool config_is_default_key(const char *key);

/** Check a name that will appear in metrics, JSON and HTML. Returns false after reporting an
 *  error. */
bool bind_check_name(struct bind *bind, const struct weir_node *name, const char *what);

/** Example of a map entry for a hint, such as "groups: { core: {} }". */
struct bind_form {
	const char *key, *name, *value;
};

/** Call `one` for each entry of the map `node`. If `node` is not a map, report an error with a hint
 * from `form`. */
int bind_each(struct bind *bind, const struct weir_node *node, const struct bind_form *form,
    int (*one)(struct bind *bind, const struct weir_node *name, const struct weir_node *item));

/** Bind a number such as `threads: 4` to `threads`. Reports a value that is not a number. */
void bind_threads_number(
    struct bind *bind, const struct weir_node *node, struct weir_threads_spec *threads);

/** Set *mark to the position of the value of `key` in `node`, if `node` is a map that has it. */
void bind_mark(const struct weir_node *node, const char *key, struct weir_mark *mark);

/** Record the positions of `min` and `policy` in `node`, the value of a `threads:`, if it sets
 *  them. */
void bind_threads_mark(const struct weir_node *node, struct weir_threads_spec *threads);

/** Bind the key `name` with the value `item` to `base`, according to `table`. */
void bind_one(struct bind *bind, const struct weir_knob *table, struct weir_node *name,
    struct weir_node *item, void *base, const char *where);

/** Bind the stage knob `name` with the value `item` to `stage`. Also binds `threads: inline`. */
void bind_stage_knob(struct bind *bind, struct weir_node *name, struct weir_node *item,
    struct weir_stage_spec *stage, const char *where);

/** Write a hint to hint[size]: "did you mean 'x'?" if one of `names[n]` is similar to `word`, else
 *  "known here: " and as many names as fit. Returns the similar name, or NULL. */
const char *bind_hint(const char *word, const char *const *names, int n, char *hint, size_t size);

/** Report that `name` is not a key of a stage. The hint suggests the most similar key, or the level
 * of the file at which `name` is allowed. */
void bind_unknown_stage_key(
    struct bind *bind, const struct weir_node *name, const struct weir_stage_spec *stage);

#endif
