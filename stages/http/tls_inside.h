/* SPDX-License-Identifier: MIT */
/* The inside of a TLS connection, for the files of it: tls_conn.c (states), tls_step.c (handshakes), tls_io.c (bytes). */
#ifndef WEIR_HTTP_TLS_INSIDE_H
#define WEIR_HTTP_TLS_INSIDE_H

#include <openssl/ssl.h>

#include <weir/event.h>
#include <weir/io.h>

#include "http/tls_bio.h"
#include "http/tls_conn.h"

struct tls_certs;
struct tls_tickets;

enum tls_phase { TLS_HELLO, TLS_SHAKING, TLS_OPEN, TLS_SHUT };

/** What a step has come to. */
enum tls_verdict {
	TLS_DONE,
	TLS_WANT_READ,
	TLS_WANT_WRITE,
	/* and why it failed, in the order of the rows SERVER_TLS_FAILED_ */
	TLS_FAILED_CLOSED,   /* the client went away */
	TLS_FAILED_VERSION,  /* no version, cipher or protocol in common */
	TLS_FAILED_ALERT,    /* the client refused */
	TLS_FAILED_PROTOCOL, /* what came is no TLS, or bad */
	TLS_FAILED_PLAIN,    /* it was HTTP without TLS */
	TLS_FAILED_TIMEOUT,
	TLS_FAILED_SHED,     /* the stage refused */
	TLS_FAILED_INTERNAL, /* no memory, and the like */
};

struct tls_conn {
	struct weir_event ev; /* first: a step of the handshake */
	/* Constant while AWAY */
	struct conn *conn;
	struct weir_loop *loop;
	struct tls_certs *certs;     /* a reference */
	struct tls_tickets *tickets; /* likewise, or NULL */
	/* The I/O thread's */
	uint8_t phase;  /* enum tls_phase */
	bool away;      /* the stage has the SSL */
	bool edge;      /* the socket was ready meanwhile */
	bool left;      /* reading would go on without an edge */
	bool ended;     /* close_notify has come */
	bool broken;    /* nothing can be read or written any more */
	bool owed;      /* a byte that was taken is not told yet: tls_io.c */
	uint8_t vain;   /* reads in a row that had something else than bytes */
	int closing_fd; /* to be closed when it is home, -1 none */
	uint32_t held;  /* bytes of records on their way, as counted: tls_tell */
	const char *version;
	char *sni; /* NULL: none */
	/* The I/O thread's, the stage's while AWAY */
	WEIR_ALIGNED SSL *ssl; /* NULL: closed */
	struct tls_bio bio;
	uint8_t verdict; /* enum tls_verdict, of the last step */
	int16_t status;  /* how the event was finished; written by whoever does */
};

/** What there is of records, half read or not sent, counts in the memory of the connection from now on. The I/O thread. */
void tls_tell(struct tls_conn *t);

#endif
