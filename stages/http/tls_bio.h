/* SPDX-License-Identifier: MIT */
/*
 * What TLS reads from and writes to: a socket, with two things added.
 *
 * - A write is always taken whole: what the socket does not take is kept here, a record at most, until tls_bio_flush. So no
 *   record is ever half written for OpenSSL, which else would want the very same bytes again, and answers are composed anew.
 * - A read that got less than there was room for has emptied the socket: the next one says "would block" without asking,
 *   until tls_bio_ready. One system call per request instead of two.
 *
 * It is a filter in front of OpenSSL's own socket BIO, since that one knows how to hand keys to the kernel (kTLS); what
 * the kernel encrypts goes through it.
 *
 * Whoever has the SSL has its BIO: the I/O thread or the handshake's stage, never both.
 */
#ifndef WEIR_HTTP_TLS_BIO_H
#define WEIR_HTTP_TLS_BIO_H

#include <stdbool.h>
#include <stdint.h>

#include <openssl/bio.h>

struct tls_bio {
	int fd;
	bool empty;       /* the socket was, when it was last read */
	bool end_is_near; /* the peer has shut its side: a short read says nothing */
	bool blocked;     /* the last read had nothing */
	bool kernel_out;  /* the kernel encrypts what is written */
	uint32_t tail_n, tail_off;
	char *tail; /* what the socket did not take, owned */
};

/** A BIO over `t->fd`, which stays the caller's; `t` outlives it. NULL without memory. Main or I/O thread. */
BIO *tls_bio_new(struct tls_bio *t);

/** Write what is kept. 1: nothing is kept any more; 0: the socket is full; -1: it is broken. */
int tls_bio_flush(struct tls_bio *t);

/** There may be something to read again. */
static inline void tls_bio_ready(struct tls_bio *t, bool end_is_near)
{
	t->empty = false;
	t->end_is_near = end_is_near;
}

/** Forget what is kept. */
void tls_bio_fini(struct tls_bio *t);

#endif
