/* SPDX-License-Identifier: MIT */
/* Listen addresses as people write them. */
#ifndef WEIR_HTTP_ADDRESS_H
#define WEIR_HTTP_ADDRESS_H

#include <sys/socket.h>

#include <weir/error.h>

struct address {
	struct sockaddr_storage addr;
	socklen_t n;
};

/** Parse "HOST:PORT"; HOST is a name, an address, "[IPv6]" or empty for all of IPv4; port 0 is any
 *  free one. On failure fills `err` and returns WEIR_EINVAL. May block to look a name up. */
int http_address_parse(const char *text, struct address *out, struct weir_err *err);

#endif
