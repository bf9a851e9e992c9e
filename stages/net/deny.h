/* SPDX-License-Identifier: MIT */
/* Addresses that a client of other servers must not connect to. */
#ifndef WEIR_NET_DENY_H
#define WEIR_NET_DENY_H

#include "net/network.h"

/** Addresses that are not global: of this machine, of private and of local networks. */
#define DENY_PRIVATE "private"

struct deny {
	bool private;
	struct networks networks; /* others */
};

/** Add `text`, which is DENY_PRIVATE, or a network (network_parse). Returns 0, or WEIR_EINVAL with `err`
 * filled, also if there are too many. */
int deny_add(struct deny *d, const char *text, struct weir_err *err);

/** Whether `a` is denied. IPv4 addresses within IPv6 addresses are judged, too: mapped ones, and those of
 * NAT64. Costs about 50 ns. */
bool deny_has(const struct deny *d, const struct net_address *a);

#endif
