/* SPDX-License-Identifier: MIT */
/* From the host of a plan to the one address that a run connects to. */
#ifndef WEIR_LOAD_RESOLVE_H
#define WEIR_LOAD_RESOLVE_H

#include <sys/socket.h>

#include <weir/error.h>

#include "load/plan.h"

/** Ask once, so that no name server takes part in what is measured. Of several addresses it is
 *  the first that a connection can be made to (localhost has two, and servers often listen on
 *  one), else the first. Blocks. 0 or WEIR_EINVAL with err filled. */
int resolve(const struct load_plan *plan, struct sockaddr_storage *address, socklen_t *n,
    struct weir_err *err);

#endif
