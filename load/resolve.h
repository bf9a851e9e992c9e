/* SPDX-License-Identifier: MIT */
/* Resolves the host of a plan to the single address that a run connects to. */
#ifndef WEIR_LOAD_RESOLVE_H
#define WEIR_LOAD_RESOLVE_H

#include <sys/socket.h>

#include <weir/error.h>

#include "load/plan.h"

/** Resolve the host once per run, so that no name server affects the measurement. If there are
 * several addresses, use the first that accepts a connection (localhost has two, and servers often
 * listen on one), or the first one if none accepts. Blocks. Returns 0, or WEIR_EINVAL with err
 * filled in. */
int resolve(const struct load_plan *plan, struct sockaddr_storage *address, socklen_t *n,
    struct weir_err *err);

#endif
