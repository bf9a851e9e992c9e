/* SPDX-License-Identifier: MIT */
/* Classifies the first bytes of a connection on a TLS port, before OpenSSL gets any of them. A pure
 * function, for any thread. */
#ifndef WEIR_NET_TLS_HELLO_H
#define WEIR_NET_TLS_HELLO_H

#include <stddef.h>

/* Size of a record header, type of a handshake record, and size of the longest record: RFC 8446,
 * 5.1. */
#define TLS_HELLO_HEAD   5
#define TLS_HELLO_TYPE   22
#define TLS_RECORD_BYTES 16384

enum tls_hello {
	TLS_HELLO_LATER, /* the first record is not complete */
	TLS_HELLO_WHOLE,
	TLS_HELLO_PLAIN, /* HTTP without TLS */
	TLS_HELLO_BAD,   /* neither TLS nor HTTP */
	TLS_HELLO_NONE,  /* the client has disconnected */
};

/** Classify a connection by its first `n` bytes, 1 to TLS_HELLO_HEAD of them; `waiting` is the
 * number of bytes that can be read from the socket. Never returns TLS_HELLO_NONE. */
enum tls_hello tls_hello_judge(const unsigned char *head, size_t n, size_t waiting);

#endif
