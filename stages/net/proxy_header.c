/* SPDX-License-Identifier: MIT */
/*
 * The header of the PROXY protocol; see proxy_header.h.
 *
 * The socket must not be read beyond the header, since TLS reads from it, too. Version 2 says how long
 * it is. The line of version 1 ends somewhere in the next 107 bytes, so these are looked at before they
 * are read (MSG_PEEK). The first 12 bytes tell the version; no header is shorter.
 */
#include "net/proxy_header.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#define SIGNATURE "\r\n\r\n\0\r\nQUIT\n"
enum {
	SIGNATURE_N = 12,
	HEAD_N = 16,      /* of version 2: signature, version and command, family, length */
	LINE_BYTES = 107, /* of version 1, with its line end */
};

/* ---- version 1 ---- */

/* Cut the next word off *line. The words are separated by one space each. */
static const char *word(char **line)
{
	char *begin = *line, *space = strchr(begin, ' ');

	*line = space ? space + 1 : begin + strlen(begin);
	if (space)
		*space = '\0';
	return begin;
}

static bool is_port(const char *text)
{
	const size_t n = strspn(text, "0123456789");
	unsigned value = 0;

	for (size_t i = 0; i < n && i < 5; i++)
		value = 10 * value + (unsigned)(text[i] - '0');
	return n > 0 && n <= 5 && text[n] == '\0' && value <= 65535 && (n == 1 || *text != '0');
}

static bool read_ip(int family, const char *text, struct sockaddr_storage *out)
{
	void *to = family == AF_INET ? (void *)&((struct sockaddr_in *)out)->sin_addr
				     : (void *)&((struct sockaddr_in6 *)out)->sin6_addr;

	out->ss_family = (sa_family_t)family;
	return inet_pton(family, text, to) == 1;
}

/* "PROXY TCP4 CLIENT SERVER PORT PORT" without its line end. */
static enum proxy_verdict judge_words(char *line, struct sockaddr_storage *client)
{
	struct sockaddr_storage server = {0};

	word(&line);
	const char *kind = word(&line);
	if (strcmp(kind, "UNKNOWN") == 0)
		return PROXY_SELF;
	const int family = strcmp(kind, "TCP4") == 0 ? AF_INET : AF_INET6;
	if (family == AF_INET6 && strcmp(kind, "TCP6") != 0)
		return PROXY_BAD;
	const bool addresses =
	    read_ip(family, word(&line), client) && read_ip(family, word(&line), &server);
	if (!addresses || !is_port(word(&line)) || strchr(line, ' ') || !is_port(line))
		return PROXY_BAD;
	return PROXY_NAMED;
}

static enum proxy_verdict judge_line(
    const struct proxy_header *h, uint32_t *more, struct sockaddr_storage *client)
{
	const uint8_t *end = memchr(h->bytes, '\n', h->n);
	const uint32_t n = end ? (uint32_t)(end - h->bytes) + 1 : h->n;
	char line[LINE_BYTES + 1];

	*more = 1;
	if (!end)
		return h->n < LINE_BYTES ? PROXY_MORE : PROXY_BAD;
	if (n < 2 || n > LINE_BYTES || h->bytes[n - 2] != '\r' || memchr(h->bytes, '\0', n))
		return PROXY_BAD;
	memcpy(line, h->bytes, n - 2);
	line[n - 2] = '\0';
	return judge_words(line, client);
}

/* ---- version 2 ---- */

/* CRC32c (RFC 3720, B.4), bit by bit: few headers have a checksum. The bytes [from, from + 4), which hold
 * it, count as zero. */
static uint32_t crc32c(const uint8_t *p, uint32_t n, uint32_t from)
{
	uint32_t crc = UINT32_MAX;

	for (uint32_t i = 0; i < n; i++) {
		crc ^= i - from < 4 ? 0 : p[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
	}
	return ~crc;
}

static uint32_t read16(const uint8_t *p)
{
	return (uint32_t)p[0] << 8 | p[1];
}

/* Whether the records behind the addresses, from `at` on, are well-formed, and the checksum right. */
static bool records_good(const struct proxy_header *h, uint32_t at, uint32_t end)
{
	enum { CHECKSUM = 0x03 };

	while (at < end) {
		if (end - at < 3 || end - at - 3 < read16(h->bytes + at + 1))
			return false;
		const uint32_t n = read16(h->bytes + at + 1);
		if (h->bytes[at] == CHECKSUM) {
			const uint8_t *p = h->bytes + at + 3;
			if (n != 4 ||
			    (read16(p) << 16 | read16(p + 2)) != crc32c(h->bytes, end, at + 3))
				return false;
		}
		at += 3 + n;
	}
	return true;
}

/* The number of bytes of the addresses of a family, 0 if it is not specified; -1 if there is no such
 * family or transport. */
static int address_bytes(uint8_t family)
{
	switch (family >> 4) {
	case 0:
		return (family & 15) <= 2 ? 0 : -1;
	case 1:
		return (family & 15) <= 2 ? 12 : -1;
	case 2:
		return (family & 15) <= 2 ? 36 : -1;
	case 3:
		return (family & 15) <= 2 ? 216 : -1;
	default:
		return -1;
	}
}

static enum proxy_verdict judge_addresses(
    const struct proxy_header *h, uint32_t end, struct sockaddr_storage *client)
{
	const uint8_t command = h->bytes[12], family = h->bytes[13];
	const int n = address_bytes(family);
	enum { LOCAL = 0x20, PROXY = 0x21, TCP4 = 0x11, TCP6 = 0x21 };

	if ((command != LOCAL && command != PROXY) || n < 0)
		return PROXY_BAD;
	if (command == LOCAL) /* its addresses mean nothing, and may be left out */
		return PROXY_SELF;
	if (HEAD_N + (uint32_t)n > end || !records_good(h, HEAD_N + (uint32_t)n, end))
		return PROXY_BAD;
	if (family == TCP4) {
		client->ss_family = AF_INET;
		memcpy(&((struct sockaddr_in *)client)->sin_addr, h->bytes + HEAD_N, 4);
		return PROXY_NAMED;
	}
	if (family == TCP6) {
		client->ss_family = AF_INET6;
		memcpy(&((struct sockaddr_in6 *)client)->sin6_addr, h->bytes + HEAD_N, 16);
		return PROXY_NAMED;
	}
	return PROXY_SELF; /* datagrams, unix sockets, unspecified: as the specification asks */
}

static enum proxy_verdict judge_binary(
    const struct proxy_header *h, uint32_t *more, struct sockaddr_storage *client)
{
	*more = HEAD_N - h->n;
	if (h->n < HEAD_N)
		return PROXY_MORE;
	const uint32_t end = HEAD_N + read16(h->bytes + 14);
	*more = end - h->n;
	if (end > PROXY_HEADER_MAX)
		return PROXY_BAD;
	return h->n < end ? PROXY_MORE : judge_addresses(h, end, client);
}

/* ---- both ---- */

static bool begins(const struct proxy_header *h, const char *text, uint32_t n)
{
	return memcmp(h->bytes, text, h->n < n ? h->n : n) == 0;
}

enum proxy_verdict proxy_header_judge(
    const struct proxy_header *h, uint32_t *more, struct sockaddr_storage *client)
{
	*client = (struct sockaddr_storage){0};
	*more = SIGNATURE_N - h->n;
	const bool binary = begins(h, SIGNATURE, SIGNATURE_N);
	if (!binary && !begins(h, "PROXY ", 6))
		return PROXY_BAD;
	if (h->n < SIGNATURE_N)
		return PROXY_MORE;
	return binary ? judge_binary(h, more, client) : judge_line(h, more, client);
}

static ssize_t receive(struct proxy_header *h, int fd, uint32_t n, int flags)
{
	return TEMP_FAILURE_RETRY(recv(fd, h->bytes + h->n, n, flags | MSG_DONTWAIT));
}

/* The number of bytes of version 1 that are there, up to the end of its line. */
static ssize_t look_for_end(struct proxy_header *h, int fd)
{
	const ssize_t n = receive(h, fd, LINE_BYTES - h->n, MSG_PEEK);
	const uint8_t *end = n > 0 ? memchr(h->bytes + h->n, '\n', (size_t)n) : NULL;

	return end ? end - (h->bytes + h->n) + 1 : n;
}

enum proxy_verdict proxy_header_read(
    struct proxy_header *h, int fd, struct sockaddr_storage *client)
{
	uint32_t more;
	enum proxy_verdict verdict;

	while ((verdict = proxy_header_judge(h, &more, client)) == PROXY_MORE) {
		const bool line = h->n >= SIGNATURE_N && h->bytes[0] == 'P';
		ssize_t n = line ? look_for_end(h, fd) : (ssize_t)more;
		if (n > 0)
			n = receive(h, fd, (uint32_t)n, 0);
		if (n == -1 && errno == EAGAIN)
			return PROXY_MORE;
		if (n <= 0)
			return PROXY_ENDED;
		h->n += (uint32_t)n;
	}
	return verdict;
}
