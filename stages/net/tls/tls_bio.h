/* SPDX-License-Identifier: MIT */
/*
 * The BIO between TLS and a socket, with two additions.
 *
 * - A write is always accepted as a whole: what the socket does not accept, at most one record, is
 *   stored here until tls_bio_flush. OpenSSL therefore never has a partly written record. For such
 *   a record it would require the same bytes again, but the heads of responses are composed anew
 *   after a short write.
 * - A read that returned fewer bytes than there was space for has emptied the socket. Further reads
 *   then return "would block" without a system call until tls_bio_ready. This saves one of two
 *   system calls per request.
 *
 * The BIO is a filter in front of OpenSSL's own socket BIO, which can pass keys to the kernel
 * (kTLS). Data that the kernel encrypts is passed on to the socket BIO.
 *
 * The owner of the SSL also owns its BIO. That is the I/O thread, or the stage during a handshake
 * step.
 */
#ifndef WEIR_NET_TLS_BIO_H
#define WEIR_NET_TLS_BIO_H

#include <stdbool.h>
#include <stdint.h>

#include <openssl/bio.h>

struct tls_bio {
	int fd;
	bool empty; /* the last read emptied the socket */
	/* the peer has shut its side down, so a short read does not show that the socket is
	 * empty */
	bool end_is_near;
	bool blocked;    /* the last read found no bytes */
	bool kernel_out; /* the kernel encrypts writes */
	uint32_t tail_n, tail_off;
	char *tail; /* owned; bytes [tail_off, tail_n) are not sent yet; NULL if none */
};

/** Create a BIO over `t->fd`, which the caller still owns; `t` must outlive the BIO. Returns NULL
 * if out of memory. Main or I/O thread. */
BIO *tls_bio_new(struct tls_bio *t);

/** Write the stored bytes. Returns 1 if none are left, 0 if the socket is full, -1 if it is
 * broken. */
int tls_bio_flush(struct tls_bio *t);

/** Allow reads again, because the socket may be readable. */
static inline void tls_bio_ready(struct tls_bio *t, bool end_is_near)
{
	t->empty = false;
	t->end_is_near = end_is_near;
}

/** Discard the stored bytes. */
void tls_bio_fini(struct tls_bio *t);

#endif
