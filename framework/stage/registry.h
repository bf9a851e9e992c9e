/* SPDX-License-Identifier: MIT */
/*
 * The table of stage types (registry.c) and its plug-ins (plugins.c). weir/plugin.h has the calls of
 * programs.
 *
 * registry.c knows a plug-in by its address only. All its calls may be made by any thread, except
 * those that a comment restricts.
 */
#ifndef WEIR_STAGE_REGISTRY_H
#define WEIR_STAGE_REGISTRY_H

#include <stdbool.h>

#include <weir/error.h>
#include <weir/stage.h>

struct plugin;

/** Check that this program can run the stage type `ops`. Returns 0, or a WEIR_E code with `err` filled
 *  in. */
int stage_type_check(const struct weir_stage_ops *ops, struct weir_err *err);

/** Give the name of `ops` to the type `ops` of `plugin`. An earlier configuration's type of another
 *  plug-in is replaced until registry_revert. Returns 0, or a WEIR_E code with `err` filled in. Only
 *  the thread that loads plug-ins. */
int registry_enter(
    const struct weir_stage_ops *ops, const struct plugin *plugin, struct weir_err *err);

/** Begin another configuration: see weir_stage_plugins_begin. Only the thread that loads plug-ins. */
void registry_begin(void);

/** Names that the newest configuration has reassigned refer to their former types again. */
void registry_revert(void);

/** The former types of reassigned names are no longer needed for registry_revert. */
void registry_keep(void);

/** Whether the type of a name belongs to `plugin`. */
bool registry_names(const struct plugin *plugin);

/** Whether registry_revert would give a name back to `plugin`. Call registry_names before. */
bool registry_may_revert(const struct plugin *plugin);

/**
 * Plug-ins that stay loaded: those of all type names at the time of the call. A graph holds them from
 * its build until it has been freed, since its stages, events and metrics point into them.
 *
 * plugins_hold returns 0 or WEIR_ENOMEM. plugins_release unloads the plug-ins that are no longer
 * needed, which runs their destructors. NULL is allowed.
 */
struct plugin_hold;
int plugins_hold(struct plugin_hold **hold);
void plugins_release(struct plugin_hold *hold);

#endif
