/* SPDX-License-Identifier: MIT */
/*
 * The user as which a server runs. As root, the process reads the YAML, loads the plug-ins and
 * binds the ports that only root can bind. It does everything else as the user of `user:`, at
 * startup and in reloads alike. So a right that this user lacks is noticed at startup, not first in
 * a reload. Called by the main thread, before other threads exist.
 */
#ifndef WEIR_SERVER_USER_H
#define WEIR_SERVER_USER_H

#include <stdbool.h>

#include <weir/error.h>
#include <weir/spec.h>

/**
 * Become spec->user permanently, with the groups of that user, and without capabilities, new
 * privileges or core dumps. If `bind` is set, first bind the addresses of stages whose ports
 * require a privilege, and pass the sockets to the stages (weir_passed_add). Does nothing without
 * `user:`, with `user: root`, or if this process is not root. Returns 0, or WEIR_ENOENT, WEIR_ESYS
 * or WEIR_EBUSY with `errs` filled in. After an error the process must exit, since the change may
 * be incomplete.
 */
int user_become(const struct weir_spec *spec, bool bind, struct weir_errs *errs);

/** Log a warning if the server runs as root although its YAML does not request that, or if `user:`
 *  was not applied. */
void user_warn(const struct weir_spec *spec);

#endif
