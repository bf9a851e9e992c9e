/* SPDX-License-Identifier: MIT */
/* Resolves the host of a plan to the single address that a run connects to. */
#ifndef WEIR_LOAD_RESOLVE_H
#define WEIR_LOAD_RESOLVE_H

#include <sys/socket.h>

#include <weir/error.h>

#include "load/plan.h"

/** Resolve the host. Called once per run, so that name servers do not affect the measurement. If
 * the host has several addresses, the result is the first one that accepts a connection, or the
 * first of all if none does (localhost has two addresses, and servers often listen on only one).
 * Blocks. Returns 0, or WEIR_EINVAL with err filled in. */
int resolve(const struct load_plan *plan, struct sockaddr_storage *address, socklen_t *n,
    struct weir_err *err);

#endif
