/* SPDX-License-Identifier: MIT */
/*
 * The user that a server runs as. Root reads the YAML, loads the plug-ins and binds what only root
 * can bind. Everything else is done as the user of `user:`, so that whatever works at startup also
 * works in a reload. Called by the main thread, before other threads exist.
 */
#ifndef WEIR_CLI_USER_H
#define WEIR_CLI_USER_H

#include <stdbool.h>

#include <weir/error.h>
#include <weir/spec.h>

/**
 * Become spec->user permanently: its groups, no capabilities, no new privileges, no core dump. With
 * `bind`, first bind the addresses of stages whose port needs a privilege, and pass them
 * (weir_passed_add). Does nothing without `user:`, or if this process already is that user or
 * cannot become another. 0, or WEIR_ENOENT, WEIR_ESYS, WEIR_EBUSY with `errs` filled; then the
 * process must end, since the change may be partial.
 */
int user_become(const struct weir_spec *spec, bool bind, struct weir_errs *errs);

/** Log a warning when root runs a server whose YAML does not request it, or when `user:` could not
 *  be applied. */
void user_warn(const struct weir_spec *spec);

#endif
