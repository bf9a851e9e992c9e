/* SPDX-License-Identifier: MIT */
/* PROXY headers of both versions: complete, in pieces, malformed, and what follows them. */
#include "net/proxy_header.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cunit_main.h"
#include "net/network.h"

static const char *const names[] = {"more", "named", "self", "bad", "ended"};

/* The verdict, and the client with "named". Static memory. */
static const char *told(enum proxy_verdict v, const struct sockaddr_storage *client)
{
	static char out[100];
	struct net_address a;
	char text[INET6_ADDRSTRLEN] = "";

	if (v == PROXY_NAMED && net_address_of(client, &a))
		net_address_text(&a, text);
	snprintf(out, sizeof(out), "%s%s%s", names[v], *text ? " " : "", text);
	return out;
}

/* Send `p[n]` followed by "rest", `step` bytes at a time. Returns what is told at the end; "rest" must
 * still be there then, unless the header is bad. */
static const char *arrives(const void *p, size_t n, size_t step)
{
	int pair[2];
	struct proxy_header h = {0};
	struct sockaddr_storage client;
	enum proxy_verdict v = PROXY_MORE;
	char all[PROXY_HEADER_MAX + 100], rest[8] = "";

	CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	memcpy(all, p, n);
	memcpy(all + n, "rest", 4);
	for (size_t at = 0; at < n + 4 && v == PROXY_MORE; at += step) {
		size_t part = n + 4 - at < step ? n + 4 - at : step;
		CU_ASSERT_EQUAL(send(pair[0], all + at, part, 0), (ssize_t)part);
		v = proxy_header_read(&h, pair[1], &client);
		if (v == PROXY_MORE)
			CU_ASSERT(at + part < n + 4);
		if (v == PROXY_MORE || v == PROXY_BAD)
			continue;
		send(pair[0], all + at + part, n + 4 - at - part, 0);
	}
	if (v == PROXY_NAMED || v == PROXY_SELF) {
		CU_ASSERT_EQUAL(recv(pair[1], rest, sizeof(rest), MSG_DONTWAIT), 4);
		CU_ASSERT_STRING_EQUAL(rest, "rest");
	}
	close(pair[0]);
	close(pair[1]);
	return told(v, &client);
}

/* The same for every size of the pieces. */
static const char *read_n(const void *p, size_t n)
{
	static char first[100];

	snprintf(first, sizeof(first), "%s", arrives(p, n, n + 4));
	for (size_t step = 1; step < n + 4; step++)
		CU_ASSERT_STRING_EQUAL(arrives(p, n, step), first);
	return first;
}

static const char *line(const char *text)
{
	return read_n(text, strlen(text));
}

static void test_line(void)
{
	CU_ASSERT_STRING_EQUAL(
	    line("PROXY TCP4 192.0.2.1 10.0.0.1 56324 443\r\n"), "named 192.0.2.1");
	CU_ASSERT_STRING_EQUAL(line("PROXY TCP6 2001:db8::1 ::1 0 65535\r\n"), "named 2001:db8::1");
	CU_ASSERT_STRING_EQUAL(line("PROXY UNKNOWN\r\n"), "self");
	CU_ASSERT_STRING_EQUAL(line("PROXY UNKNOWN a b c\r\n"), "self");
	/* the longest, of 107 bytes */
	CU_ASSERT_STRING_EQUAL(line("PROXY UNKNOWN ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff "
				    "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n"),
	    "self");
}

static void test_bad_line(void)
{
	static const char *const bad[] = {
	    "GET / HTTP/1.1\r\n",
	    "proxy TCP4 192.0.2.1 10.0.0.1 1 2\r\n",
	    "PROXY TCP4 192.0.2.1 10.0.0.1 1 2\n",
	    "PROXY TCP4  192.0.2.1 10.0.0.1 1 2\r\n",
	    "PROXY TCP4 192.0.2.1 10.0.0.1 1 2 \r\n",
	    "PROXY TCP4 192.0.2.1 10.0.0.1 1\r\n",
	    "PROXY TCP4 192.0.2.1 10.0.0.1 1 65536\r\n",
	    "PROXY TCP4 192.0.2.1 10.0.0.1 01 2\r\n",
	    "PROXY TCP4 192.0.2.1 10.0.0.1 1 2 3\r\n",
	    "PROXY TCP4 ::1 ::1 1 2\r\n",
	    "PROXY TCP6 192.0.2.1 10.0.0.1 1 2\r\n",
	    "PROXY TCP4 192.0.2.1 10.0.0 1 2\r\n",
	    "PROXY UDP4 192.0.2.1 10.0.0.1 1 2\r\n",
	    "PROXY TCP4\r\n      ",
	    "PROXY \r\n          ",
	    "PROXY TCP4 192.0.2.1 10.0.0.1 x 2\r\n",
	    "PROXY TCP4 192.0.2.1 10.0.0.1 1 -2\r\n",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CU_ASSERT_STRING_EQUAL(line(bad[i]), "bad");
	CU_ASSERT_STRING_EQUAL(line("PROXY UNKNOWN ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff "
				    "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 655355\r\n"),
	    "bad"); /* a byte longer than the longest */
	CU_ASSERT_STRING_EQUAL(read_n("PROXY UNKNOWN\0\r\n", 16), "bad");
}

/* A header of version 2 with `n` bytes behind its first 16. Returns its length. */
static size_t binary(uint8_t *out, uint8_t command, uint8_t family, const void *p, size_t n)
{
	memcpy(out, "\r\n\r\n\0\r\nQUIT\n", 12);
	out[12] = command;
	out[13] = family;
	out[14] = (uint8_t)(n >> 8);
	out[15] = (uint8_t)n;
	memcpy(out + 16, p, n);
	return 16 + n;
}

static const char *binary_is(uint8_t command, uint8_t family, const void *p, size_t n)
{
	uint8_t all[PROXY_HEADER_MAX + 16];

	return read_n(all, binary(all, command, family, p, n));
}

static void test_binary(void)
{
	uint8_t bytes[300] = {192, 0, 2, 1, 10, 0, 0, 1, 1, 2, 3, 4};
	uint8_t six[36] = {0x20, 0x01, 0x0d, 0xb8, [15] = 1, [31] = 1};

	CU_ASSERT_STRING_EQUAL(binary_is(0x21, 0x11, bytes, 12), "named 192.0.2.1");
	CU_ASSERT_STRING_EQUAL(binary_is(0x21, 0x21, six, 36), "named 2001:db8::1");
	CU_ASSERT_STRING_EQUAL(binary_is(0x20, 0x11, bytes, 12), "self");
	CU_ASSERT_STRING_EQUAL(binary_is(0x20, 0x00, bytes, 0), "self");
	CU_ASSERT_STRING_EQUAL(binary_is(0x21, 0x00, bytes, 0), "self");
	CU_ASSERT_STRING_EQUAL(binary_is(0x21, 0x12, bytes, 12), "self");
	CU_ASSERT_STRING_EQUAL(binary_is(0x21, 0x31, bytes, 216), "self");
}

static void test_bad_binary(void)
{
	uint8_t bytes[300] = {192, 0, 2, 1, 10, 0, 0, 1, 1, 2, 3, 4},
		long_one[PROXY_HEADER_MAX] = {0};

	CU_ASSERT_STRING_EQUAL(binary_is(0x21, 0x11, bytes, 11), "bad");
	CU_ASSERT_STRING_EQUAL(binary_is(0x21, 0x21, bytes, 35), "bad");
	CU_ASSERT_STRING_EQUAL(binary_is(0x22, 0x11, bytes, 12), "bad");
	CU_ASSERT_STRING_EQUAL(binary_is(0x11, 0x11, bytes, 12), "bad");
	CU_ASSERT_STRING_EQUAL(binary_is(0x21, 0x13, bytes, 12), "bad");
	CU_ASSERT_STRING_EQUAL(binary_is(0x21, 0x41, bytes, 216), "bad");
	CU_ASSERT_STRING_EQUAL(
	    binary_is(0x21, 0x00, long_one, PROXY_HEADER_MAX - 15), "bad"); /* a byte too long */
}

/* Records behind the addresses, and a checksum. */
static void test_records(void)
{
	uint8_t bytes[64] = {192, 0, 2, 1, 10, 0, 0, 1, 1, 2, 3, 4, 0x04, 0, 2, 'a', 'b'};
	uint8_t all[100];
	uint32_t sum = UINT32_MAX;

	CU_ASSERT_STRING_EQUAL(binary_is(0x21, 0x11, bytes, 17), "named 192.0.2.1");
	CU_ASSERT_STRING_EQUAL(
	    binary_is(0x21, 0x11, bytes, 15), "bad"); /* longer than the header */
	CU_ASSERT_STRING_EQUAL(binary_is(0x21, 0x11, bytes, 14), "bad"); /* no length */
	memcpy(bytes + 17, "\3\0\4\0\0\0\0", 7);
	size_t n = binary(all, 0x21, 0x11, bytes, 24);
	for (size_t i = 0; i < n;
	     i++) /* the polynomial of RFC 3720, highest bit first, on mirrored bytes */
		for (int bit = 0; bit < 8; bit++) {
			bool in = (all[i] >> bit & 1) != (sum >> 31);
			sum = sum << 1 ^ (in ? 0x1edc6f41 : 0);
		}
	uint32_t mirrored = 0;
	for (int bit = 0; bit < 32; bit++)
		mirrored |= (~sum >> bit & 1) << (31 - bit);
	for (int i = 0; i < 4; i++)
		all[n - 4 + (size_t)i] = (uint8_t)(mirrored >> (24 - 8 * i));
	CU_ASSERT_STRING_EQUAL(read_n(all, n), "named 192.0.2.1");
	all[16]++;
	CU_ASSERT_STRING_EQUAL(read_n(all, n), "bad");
}

/* The peer closes before the end of the header. */
static void test_ended(void)
{
	static const char text[] = "PROXY TCP4 192.0.2.1 10.0.0.1 1 2\r\n";

	for (size_t n = 0; n < sizeof(text) - 1; n++) {
		int pair[2];
		struct proxy_header h = {0};
		struct sockaddr_storage client;
		CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
		CU_ASSERT_EQUAL(send(pair[0], text, n, 0), (ssize_t)n);
		CU_ASSERT_EQUAL(proxy_header_read(&h, pair[1], &client), PROXY_MORE);
		CU_ASSERT_EQUAL(h.n, n);
		close(pair[0]);
		CU_ASSERT_EQUAL(proxy_header_read(&h, pair[1], &client), PROXY_ENDED);
		close(pair[1]);
	}
}

CUNIT_MAIN("proxy_header", {"version 1", test_line}, {"bad lines", test_bad_line},
    {"version 2", test_binary}, {"bad bytes", test_bad_binary}, {"records", test_records},
    {"ended", test_ended})
