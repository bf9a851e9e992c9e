/* SPDX-License-Identifier: MIT */
/* Internals of a TLS connection, for its files: tls_conn.c (states), tls_step.c (handshakes),
 * tls_io.c (bytes). */
#ifndef WEIR_NET_TLS_INTERNAL_H
#define WEIR_NET_TLS_INTERNAL_H

#include <openssl/ssl.h>

#include <weir/event.h>
#include <weir/io.h>

#include "net/tls/tls_conn.h"
#include "net/tls/tls_bio.h"

struct tls_certs;
struct tls_tickets;

enum tls_phase { TLS_HELLO, TLS_SHAKING, TLS_OPEN, TLS_SHUT };

struct tls_conn {
	struct weir_event ev; /* first member: a step of the handshake */
	/* Constant while `away` is set (the state AWAY of tls_conn.h). `certs` and `tickets` hold
	 * references; `tickets` may be NULL. */
	struct tls_user user;
	struct tls_certs *certs;
	struct tls_tickets *tickets;
	/* Only for the I/O thread. */
	uint8_t phase;  /* enum tls_phase */
	bool away;      /* the stage has the SSL */
	bool edge;      /* the socket became ready while AWAY */
	bool peer_done; /* the client has shut its side down, as last seen in the handshake */
	bool left;      /* reading can continue without a new edge from epoll */
	bool ended;     /* the client has sent close_notify */
	bool broken;    /* nothing more can be read or written */
	bool owed;      /* OpenSSL has accepted a byte that is not reported as sent yet: tls_io.c */
	uint8_t vain;   /* consecutive reads without a byte of data: VAIN_MAX in tls_io.c */
	int closing_fd; /* descriptor to close when the event returns; -1 if none */
	uint32_t held;  /* bytes of incomplete records, as last counted by tls_tell */
	const char *version;
	char *sni; /* the name that the client requested; NULL if none */
	/* For the I/O thread or, while AWAY, for the stage. */
	WEIR_ALIGNED SSL *ssl; /* NULL once the connection is closed */
	struct tls_bio bio;
	uint8_t verdict; /* enum tls_verdict, of the last step */
	/* the status with which the event was finished; written by the finishing thread */
	int16_t status;
};

/** Update the memory counted for incomplete records, both partly read and unsent. I/O thread
 * only. */
void tls_tell(struct tls_conn *t);

#endif
