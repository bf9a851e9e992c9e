/* SPDX-License-Identifier: MIT */
/* Host names, before any server is asked. */
#ifndef WEIR_NET_RESOLVE_NAME_H
#define WEIR_NET_RESOLVE_NAME_H

#include "net/network.h"
#include "net/resolve.h"

/** What a name turns out to be. */
enum name_kind { NAME_BAD, NAME_ADDRESS, NAME_LOCALHOST, NAME_HOST };

/**
 * Examine `text`. For NAME_ADDRESS, `address` is set; for NAME_HOST, `name` has it in lower case. A final
 * dot is kept. A name whose last label is a number is bad unless it is an IPv4 address of four decimal
 * numbers, since other programs read such names as addresses (inet_aton).
 */
enum name_kind name_examine(
    const char *text, char name[RESOLVE_NAME_MAX + 1], struct net_address *address);

/** `text` without a port behind it. An IPv6 address has a port only if it is in brackets. */
struct weir_slice name_without_port(struct weir_slice text);

/** Whether `text` is the address of a name server, perhaps with a port. */
bool name_is_server(const char *text);

#endif
