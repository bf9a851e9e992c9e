/* SPDX-License-Identifier: MIT */
/* The first bytes of a connection that is to speak TLS: what they are, before OpenSSL is given any. Pure, any thread. */
#ifndef WEIR_HTTP_TLS_HELLO_H
#define WEIR_HTTP_TLS_HELLO_H

#include <stddef.h>

/* A record's head, and how long a record may be: RFC 8446, 5.1. */
#define TLS_HELLO_HEAD   5
#define TLS_HELLO_TYPE   22
#define TLS_RECORD_BYTES 16384

enum tls_hello {
	TLS_HELLO_LATER, /* the first record is not there whole */
	TLS_HELLO_WHOLE,
	TLS_HELLO_PLAIN, /* HTTP without TLS */
	TLS_HELLO_BAD,   /* neither */
	TLS_HELLO_NONE,  /* the client has gone */
};

/** What the first `n` bytes say, 1 to TLS_HELLO_HEAD of them; `waiting` bytes are in the socket. Never TLS_HELLO_NONE. */
enum tls_hello tls_hello_judge(const unsigned char *head, size_t n, size_t waiting);

#endif
