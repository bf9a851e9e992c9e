/* SPDX-License-Identifier: MIT */
/*
 * Which addresses are denied; see deny.h.
 *
 * The table has what IANA lists as not globally reachable (RFC 6890 and its successors), multicast, and the
 * IPv6 networks whose addresses lead to an IPv4 address of their choice (6to4, Teredo).
 */
#include "net/deny.h"

#include <stdio.h>
#include <string.h>

/* An IPv4 network has the bits of its mapped address. */
#define V4(a, b, c, d, bits)                                                                       \
	{                                                                                          \
		{{[10] = 0xff, [11] = 0xff, a, b, c, d}}, 96 + (bits)                              \
	}
#define V6(bits, ...)                                                                              \
	{                                                                                          \
		{{__VA_ARGS__}}, bits                                                              \
	}

static const struct network not_global[] = {
    V4(0, 0, 0, 0, 8),        /* this network */
    V4(10, 0, 0, 0, 8),       /* private */
    V4(100, 64, 0, 0, 10),    /* of carriers (CGNAT) */
    V4(127, 0, 0, 0, 8),      /* this machine */
    V4(169, 254, 0, 0, 16),   /* of the link; clouds have their metadata at 169.254.169.254 */
    V4(172, 16, 0, 0, 12),    /* private */
    V4(192, 0, 0, 0, 24),     /* protocol assignments; 192.0.0.192 has metadata, too */
    V4(192, 0, 2, 0, 24),     /* documentation */
    V4(192, 88, 99, 0, 24),   /* 6to4 relays */
    V4(192, 168, 0, 0, 16),   /* private */
    V4(198, 18, 0, 0, 15),    /* measurements */
    V4(198, 51, 100, 0, 24),  /* documentation */
    V4(203, 0, 113, 0, 24),   /* documentation */
    V4(224, 0, 0, 0, 4),      /* multicast */
    V4(240, 0, 0, 0, 4),      /* reserved, and broadcast */
    V6(96, 0),                /* none, this machine, and IPv4-compatible */
    V6(96, [8] = 0xff, 0xff), /* IPv4-translated */
    V6(48, 0, 0x64, 0xff, 0x9b, 0, 1), /* local NAT64 */
    V6(64, 1, 0),                      /* discard */
    V6(23, 0x20, 0x01),                /* protocol assignments, Teredo */
    V6(32, 0x20, 0x01, 0x0d, 0xb8),    /* documentation */
    V6(16, 0x20, 0x02),                /* 6to4 */
    V6(20, 0x3f, 0xff),                /* documentation */
    V6(16, 0x5f),                      /* segment routing */
    V6(7, 0xfc),                       /* unique local */
    V6(10, 0xfe, 0x80),                /* of the link */
    V6(10, 0xfe, 0xc0),                /* of the site */
    V6(8, 0xff),                       /* multicast */
};

int deny_add(struct deny *d, const char *text, struct weir_err *err)
{
	if (strcmp(text, DENY_PRIVATE) == 0) {
		d->private = true;
		return 0;
	}
	if (d->networks.n < NETWORKS_MAX)
		return network_parse(text, &d->networks.item[d->networks.n++], err);
	err->code = WEIR_EINVAL;
	snprintf(err->text, sizeof(err->text), "there are more than %d networks", NETWORKS_MAX);
	return WEIR_EINVAL;
}

static bool judge(const struct deny *d, const struct net_address *a)
{
	if (networks_have(&d->networks, a))
		return true;
	for (size_t i = 0; d->private && i < sizeof(not_global) / sizeof(not_global[0]); i++)
		if (network_has(&not_global[i], a))
			return true;
	return false;
}

bool deny_has(const struct deny *d, const struct net_address *a)
{
	static const uint8_t nat64[12] = {0, 0x64, 0xff, 0x9b};
	struct net_address inner = {{[10] = 0xff, [11] = 0xff}};

	if (judge(d, a))
		return true;
	if (memcmp(a->bytes, nat64, sizeof(nat64)) != 0)
		return false;
	memcpy(inner.bytes + 12, a->bytes + 12, 4);
	return judge(d, &inner);
}
