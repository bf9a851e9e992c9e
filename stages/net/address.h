/* SPDX-License-Identifier: MIT */
/* Parses the listen addresses of a configuration. */
#ifndef WEIR_NET_ADDRESS_H
#define WEIR_NET_ADDRESS_H

#include <sys/socket.h>

#include <weir/error.h>

struct address {
	struct sockaddr_storage addr;
	socklen_t n;
};

/** Parse "HOST:PORT". HOST is a name, an address, "[IPv6]", or empty for all IPv4 addresses; port 0
 * means any free port. On failure fills `err` and returns WEIR_EINVAL. May block for a name
 * lookup. */
int address_parse(const char *text, struct address *out, struct weir_err *err);

#endif
