/* SPDX-License-Identifier: MIT */
/* Networks of addresses; see network.h. */
#include "net/network.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

/* The first bytes of an IPv4-mapped address. */
static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

static void map(struct net_address *out, const void *ipv4)
{
	memcpy(out->bytes, mapped, sizeof(mapped));
	memcpy(out->bytes + sizeof(mapped), ipv4, 4);
}

static bool is_mapped(const struct net_address *a)
{
	return memcmp(a->bytes, mapped, sizeof(mapped)) == 0;
}

bool net_address_of(const struct sockaddr_storage *addr, struct net_address *out)
{
	switch (addr->ss_family) {
	case AF_INET:
		map(out, &((const struct sockaddr_in *)addr)->sin_addr);
		return true;
	case AF_INET6:
		memcpy(out->bytes, &((const struct sockaddr_in6 *)addr)->sin6_addr, 16);
		return true;
	default:
		return false;
	}
}

bool net_address_read(struct weir_slice text, struct net_address *out)
{
	char copy[INET6_ADDRSTRLEN];
	struct in_addr ipv4;

	if (text.n == 0 || text.n >= sizeof(copy) || memchr(text.p, '\0', text.n))
		return false;
	memcpy(copy, text.p, text.n);
	copy[text.n] = '\0';
	if (inet_pton(AF_INET, copy, &ipv4) == 1) {
		map(out, &ipv4);
		return true;
	}
	return inet_pton(AF_INET6, copy, out->bytes) == 1;
}

int net_address_text(const struct net_address *a, char text[INET6_ADDRSTRLEN])
{
	const bool ipv4 = is_mapped(a);

	inet_ntop(ipv4 ? AF_INET : AF_INET6, ipv4 ? a->bytes + sizeof(mapped) : a->bytes, text,
	    INET6_ADDRSTRLEN);
	return (int)strlen(text);
}

/* Whether the first `bits` bits are equal. */
static bool equal(const uint8_t *a, const uint8_t *b, unsigned bits)
{
	const unsigned whole = bits / 8, rest = bits % 8;

	return memcmp(a, b, whole) == 0 &&
	       (rest == 0 || ((a[whole] ^ b[whole]) & (0xff00 >> rest & 0xff)) == 0);
}

static int fail(struct weir_err *err, const char *text, const char *why, const char *hint)
{
	err->code = WEIR_EINVAL;
	snprintf(err->text, sizeof(err->text), "'%.80s' is not a network: %s", text, why);
	snprintf(err->hint, sizeof(err->hint), "%s", hint);
	return WEIR_EINVAL;
}

/* The length of a prefix, at most `most`, or -1. */
static int bits_of(const char *text, int most)
{
	const size_t n = strspn(text, "0123456789");
	int bits = 0;

	if (n == 0 || n > 3 || text[n] != '\0' || (n > 1 && *text == '0'))
		return -1;
	for (size_t i = 0; i < n; i++)
		bits = 10 * bits + (text[i] - '0');
	return bits <= most ? bits : -1;
}

/* Clear what is beyond the prefix. */
static void clear_rest(struct network *net)
{
	for (unsigned i = 0; i < 16; i++) {
		const int left = (int)net->bits - 8 * (int)i;
		if (left < 8)
			net->address.bytes[i] &= left > 0 ? (uint8_t)(0xff00 >> left) : 0;
	}
}

int network_parse(const char *text, struct network *out, struct weir_err *err)
{
	static const char form[] =
	    "write ADDRESS or ADDRESS/BITS, as in 10.0.0.0/8, 192.0.2.7 or fd00::/8";
	const char *slash = strchr(text, '/');
	const size_t n = slash ? (size_t)(slash - text) : strlen(text);
	const bool ipv4 = !memchr(text, ':', n);
	char whole[INET6_ADDRSTRLEN + 4], hint[sizeof(err->hint)];
	int bits = ipv4 ? 32 : 128;

	if (!net_address_read((struct weir_slice){text, n}, &out->address))
		return fail(err, text, "it has no address", form);
	if (slash && (bits = bits_of(slash + 1, bits)) == -1)
		return fail(err, text,
		    ipv4 ? "a prefix has 0 to 32 bits" : "a prefix has 0 to 128 bits", form);
	out->bits = (uint8_t)(ipv4 ? bits + 96 : bits);
	const struct net_address given = out->address;
	clear_rest(out);
	if (memcmp(&given, &out->address, sizeof(given)) == 0)
		return 0;
	const int length = net_address_text(&out->address, whole);
	snprintf(whole + length, sizeof(whole) - (size_t)length, "/%d", bits);
	snprintf(hint, sizeof(hint), "write %s for the network, or %.*s for the one address", whole,
	    (int)n, text);
	return fail(err, text, "bits beyond the prefix are set", hint);
}

bool network_has(const struct network *net, const struct net_address *a)
{
	return equal(net->address.bytes, a->bytes, net->bits);
}

bool networks_have(const struct networks *list, const struct net_address *a)
{
	for (int i = 0; i < list->n; i++)
		if (network_has(&list->item[i], a))
			return true;
	return false;
}
