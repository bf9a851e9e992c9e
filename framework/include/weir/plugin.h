/* SPDX-License-Identifier: MIT */
/* Stage types: finding them by name, and loading plug-ins. For programs that embed weir. */
#ifndef WEIR_PLUGIN_H
#define WEIR_PLUGIN_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/annotate.h>
#include <weir/error.h>

WEIR_C_BEGIN

struct weir_stage_ops;

/** The built-in or loaded type called `name`, or NULL if none exists. Any thread. The type of a plug-in
 *  is valid until a later configuration has replaced it; see weir_stage_type_take. */
WEIR_API const struct weir_stage_ops *weir_stage_type_find(const char *name);

/** Like weir_stage_type_find, for threads other than the one that loads plug-ins: the plug-in of the
 *  type stays loaded until weir_stage_type_put. Any thread; does not block on code of plug-ins. */
WEIR_API const struct weir_stage_ops *weir_stage_type_take(const char *name);

/** Give a type back. If it was the last user of a plug-in that has been replaced, the plug-in is
 *  unloaded here. NULL is allowed. Any thread. */
WEIR_API void weir_stage_type_put(const struct weir_stage_ops *ops);

/** Type number `i`, from 0, in the order of names; NULL past the end. Any thread; the type is valid as
 *  that of weir_stage_type_find. */
WEIR_API const struct weir_stage_ops *weir_stage_type_at(int i);

/**
 * Load the plug-in at `path`: copy the file into memory, where it cannot change, dlopen the copy,
 * find its type, check the ABI, and register the type. The type is the symbol `weir_stage_<name>`,
 * where <name> is the file's base name up to the first dot. A file whose content is loaded
 * is not loaded again. Files that other users can write are refused (weir/trust.h). Returns
 * 0, or a WEIR_E code with `err` filled in. One thread at a time, before a build.
 */
WEIR_API int weir_stage_load(const char *path, struct weir_err *err);

/**
 * Load a plug-in that a configuration names, as weir_stage_load does. *id receives a hash of its
 * content, never 0. If `look` is set, no code is loaded: if the content is not loaded,
 * the newest loaded plug-in with the same symbol takes its place, and WEIR_ENOENT is returned if
 * none exists.
 */
WEIR_API int weir_stage_plugin(const char *path, bool look, uint64_t *id, struct weir_err *err);

/**
 * Call this before loading the plug-ins of a new configuration. Each type name can then be
 * reassigned once, from the plug-in of an earlier configuration to another one. Graphs keep the
 * types that they were built with. One thread at a time, like weir_stage_load.
 *
 * A plug-in is unloaded (dlclose) when no type name refers to it and the graphs that were built while
 * one did have been freed. Until weir_stage_plugins_keep, weir_stage_plugins_revert or the next
 * weir_stage_plugins_begin, it is kept for weir_stage_plugins_revert.
 */
WEIR_API void weir_stage_plugins_begin(void);

/** The configuration has taken effect: its type names are not reverted any more. One thread at a time,
 *  like weir_stage_load. */
WEIR_API void weir_stage_plugins_keep(void);

/** The number of shared objects that are loaded as plug-ins, including those that the dynamic loader
 *  has kept although they were closed (-z nodelete). Any thread. */
WEIR_API int weir_stage_plugins_loaded(void);

/** Undo the assignments since weir_stage_plugins_begin, if the configuration does not take effect:
 *  the type names refer to their former plug-ins again. One thread at a time, like
 *  weir_stage_load. */
WEIR_API void weir_stage_plugins_revert(void);

/** Whether `name` belongs to a plug-in that the configuration has not named since
 *  weir_stage_plugins_begin. One thread at a time, like weir_stage_load. */
WEIR_API bool weir_stage_type_left(const char *name);

/** Register a type of a program that embeds weir. `ops` must never be freed. Returns 0, or a WEIR_E
 *  code with `err` filled in. */
WEIR_API int weir_stage_register(const struct weir_stage_ops *ops, struct weir_err *err);

WEIR_C_END

#endif
