/* SPDX-License-Identifier: MIT */
/*
 * From the merged tree to the spec: one function per section of the top level.
 *
 * Every section reports its mistakes to bind->errs and goes on; a section returns nothing but
 * whether memory ran out.
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
	const struct weir_node *defaults; /* NULL when there are none, or when they are wrong */
	bool from_file;
};

/** All sections of `root` into bind->spec. 0 or WEIR_ENOMEM. */
int bind_root(struct bind *bind, const struct weir_node *root);

/** Apply "stage.knob=value". 0 or WEIR_ENOMEM. */
int bind_set(struct bind *bind, const char *set);

/** Report what is wrong in `with:` of any stage, overrides included. 0 or WEIR_ENOMEM. */
int bind_check_with(struct bind *bind);

/* Sections; `name` is the key as written, `node` its value. */
int section_name(struct bind *bind, const struct weir_node *name, const struct weir_node *node);
int section_admin(struct bind *bind, const struct weir_node *name, const struct weir_node *node);
int section_drain(struct bind *bind, const struct weir_node *name, const struct weir_node *node);
int section_overload(struct bind *bind, const struct weir_node *name, const struct weir_node *node);
int section_log(struct bind *bind, const struct weir_node *name, const struct weir_node *node);
int section_trace(struct bind *bind, const struct weir_node *name, const struct weir_node *node);
int section_plugin(struct bind *bind, const struct weir_node *name, const struct weir_node *node);
int section_defaults(struct bind *bind, const struct weir_node *name, const struct weir_node *node);
int section_classes(struct bind *bind, const struct weir_node *name, const struct weir_node *node);
int section_groups(struct bind *bind, const struct weir_node *name, const struct weir_node *node);
int section_stages(struct bind *bind, const struct weir_node *name, const struct weir_node *node);
int section_alerts(struct bind *bind, const struct weir_node *name, const struct weir_node *node);

/* ---- shared by sections ---- */

/** Rows of `admin:` beside `tokens` and `users`, of one of these, of `drain:`, `overload:` and of one
 *  class beside `match`. */
extern const struct weir_knob config_admin_knobs[];
extern const struct weir_knob config_token_knobs[];
extern const struct weir_knob config_user_knobs[];
extern const struct weir_knob config_drain_knobs[];
extern const struct weir_knob config_overload_knobs[];
extern const struct weir_knob config_log_knobs[];
extern const struct weir_knob config_trace_knobs[];
extern const struct weir_knob config_class_knobs[];

/** Rows of `alerts:`, of one alert by enum weir_alert_kind, and of a stage of it (NULL: it has none). */
extern const struct weir_knob config_alerts_knobs[];
extern const struct weir_knob *const config_alert_knobs[];
extern const struct weir_knob *const config_alert_stage_knobs[];

/** Is `key` the name of a section of the top level? */
bool config_is_section(const char *key);

/** Is `key` one that a stage has (use, with, to, or a row of weir_stage_knobs)? */
bool config_is_stage_key(const char *key);

/** Is `key` a key of a stage that `defaults:` may give? */
bool config_is_default_key(const char *key);

/** Names that reach metrics, JSON and pages (reliability.md (b)): false after reporting. */
bool bind_check_name(struct bind *bind, const struct weir_node *name, const char *what);

/** How an entry of a map looks, for a hint: "write groups: { core: {} }". */
struct bind_form {
	const char *key, *name, *value;
};

/** Call `one` for each entry of the map `node`; else report that it must be a map, as in `form`. */
int bind_each(struct bind *bind, const struct weir_node *node, const struct bind_form *form,
    int (*one)(struct bind *bind, const struct weir_node *name, const struct weir_node *item));

/** `threads: 4` into `threads`; reports what is no number. */
void bind_threads_number(
    struct bind *bind, const struct weir_node *node, struct weir_threads_spec *threads);

/** Keep where the value `node` of a `threads:` says `min`, if it does. */
void bind_threads_mark(const struct weir_node *node, struct weir_threads_spec *threads);

/** The key `name` with the value `item` as if alone in a map: into `base` by `table`. */
void bind_one(struct bind *bind, const struct weir_knob *table, struct weir_node *name,
    struct weir_node *item, void *base, const char *where);

/** Does `item` hold the value of the stage knob `name` (`threads: inline` included)? Into `stage`.
 */
void bind_stage_knob(struct bind *bind, struct weir_node *name, struct weir_node *item,
    struct weir_stage_spec *stage, const char *where);

/** "did you mean 'x'?" for the one of `names[n]` nearest to `word`, else "known here: ..." with as
 * many as fit. Returns the nearest, NULL when there is none. */
const char *bind_hint(const char *word, const char *const *names, int n, char *hint, size_t size);

/** Report `name`, which is no key of a stage: nearest name, or the level where it would be right.
 */
void bind_unknown_stage_key(
    struct bind *bind, const struct weir_node *name, const struct weir_stage_spec *stage);

#endif
