/* SPDX-License-Identifier: MIT */
/*
 * Networks of addresses, such as 10.0.0.0/8, and lists of them. An IPv4 address is kept as its
 * IPv4-mapped IPv6 address (RFC 4291, 2.5.5.2), so one comparison serves both families.
 */
#ifndef WEIR_NET_NETWORK_H
#define WEIR_NET_NETWORK_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include <weir/error.h>
#include <weir/event.h>

/** Maximum number of networks in a list. A cloud provider publishes some twenty. */
#define NETWORKS_MAX 64

struct net_address {
	uint8_t bytes[16];
};

struct network {
	struct net_address address; /* zero beyond `bits` */
	uint8_t bits;               /* length of the prefix, 0 to 128 */
};

struct networks {
	int n;
	struct network item[NETWORKS_MAX];
};

/** The address of a socket. Returns false for families other than IPv4 and IPv6. */
bool net_address_of(const struct sockaddr_storage *addr, struct net_address *out);

/** Parse an IPv4 address, or an IPv6 address without brackets and zone. Returns false if `text` is
 * neither. */
bool net_address_read(struct weir_slice text, struct net_address *out);

/** Write the address in its canonical spelling (RFC 5952); an IPv4-mapped one as IPv4. Returns the
 * length. */
int net_address_text(const struct net_address *a, char text[INET6_ADDRSTRLEN]);

/** Parse ADDRESS or ADDRESS/BITS. Returns 0, or WEIR_EINVAL with `err` filled, also if bits of the
 * address beyond the prefix are set, since that is usually a mistake. */
int network_parse(const char *text, struct network *out, struct weir_err *err);

/** Whether `net` contains `a`. */
bool network_has(const struct network *net, const struct net_address *a);

/** Whether one of the networks contains `a`. Costs about 2 ns for each network. */
bool networks_have(const struct networks *list, const struct net_address *a);

#endif
