/* SPDX-License-Identifier: MIT */
/* Addresses of a name at once, for the start of a program, where no loop runs yet. */
#ifndef WEIR_NET_RESOLVE_NOW_H
#define WEIR_NET_RESOLVE_NOW_H

#include "net/resolve.h"

/**
 * Ask for `name` and wait at most *left_ns, which is lowered by the time taken. `conf` may have zero members
 * (resolve.h). Sets address[0..*n-1], at most RESOLVE_ADDRESSES_MAX of them. Returns "", or a static text
 * that says why there are none. Blocks. Any thread.
 */
const char *resolve_now(const struct resolve_conf *conf, const char *name, int64_t *left_ns,
    struct net_address *address, int *n);

#endif
