/* SPDX-License-Identifier: MIT */
/*
 * The header with which a proxy begins a connection to say whose connection it carries: the PROXY
 * protocol of HAProxy, versions 1 and 2 ("The PROXY protocol", 2020/03/05). The protocol of the
 * connection, be it TLS or HTTP, follows.
 */
#ifndef WEIR_NET_PROXY_HEADER_H
#define WEIR_NET_PROXY_HEADER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/** Longest header that is read. The specification asks for 232 bytes at least; certificates and
 * identifiers of cloud providers take some hundred more. */
#define PROXY_HEADER_MAX 2048

/** A header of which some bytes have arrived. Zeroed at first. */
struct proxy_header {
	uint32_t n;
	uint8_t bytes[PROXY_HEADER_MAX];
};

enum proxy_verdict {
	PROXY_MORE, /* not complete */
	PROXY_NAMED,
	PROXY_SELF, /* the proxy itself connects, or does not say for whom: its own address counts */
	PROXY_BAD,  /* not a header, or malformed, or too long */
	PROXY_ENDED /* the peer has closed before the end of the header, or the socket has failed */
};

/** Read from the non-blocking socket `fd` until the header is complete, and nothing beyond it. With
 * PROXY_NAMED, `client` is the address that the proxy names. Takes two to four system calls. */
enum proxy_verdict proxy_header_read(
    struct proxy_header *h, int fd, struct sockaddr_storage *client);

/** How many more bytes belong to the header for certain, at least 1 while `verdict` is PROXY_MORE: pure
 * part of proxy_header_read, which it calls after every read. In version 1, whose length is not known,
 * one byte at a time would do. */
enum proxy_verdict proxy_header_judge(
    const struct proxy_header *h, uint32_t *more, struct sockaddr_storage *client);

#endif
