/* SPDX-License-Identifier: MIT */
/* Parses the listen addresses of a configuration. An address is HOST:PORT or a socket file. */
#ifndef WEIR_NET_ADDRESS_H
#define WEIR_NET_ADDRESS_H

#include <sys/socket.h>
#include <sys/un.h>

#include <weir/error.h>

struct address {
	struct sockaddr_storage addr;
	socklen_t n;
};

/** Parse "HOST:PORT" or "unix:/PATH". HOST is a name, an address, "[IPv6]", or empty for all IPv4
 * addresses; port 0 means any free port. PATH has at most 107 bytes. On failure fills `err` and returns
 * WEIR_EINVAL. May block for a name lookup. */
int address_parse(const char *text, struct address *out, struct weir_err *err);

/** Return the path of a socket file, or NULL if `a` is an IP address. */
static inline const char *address_file(const struct address *a)
{
	return a->addr.ss_family == AF_UNIX
		   ? ((const struct sockaddr_un *)(const void *)&a->addr)->sun_path
		   : NULL;
}

#endif
