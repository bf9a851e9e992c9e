/* SPDX-License-Identifier: MIT */
/*
 * The steps of writing, for who takes them with several connections at once (write_turn.c). A run is what one call sends of one
 * connection: gathered into the I/O thread's buffers, sent, booked, and done with, in this order. Between gathering and booking
 * the buffers behind a run belong to it. The I/O thread.
 */
#ifndef WEIR_HTTP_WRITE_H
#define WEIR_HTTP_WRITE_H

#include "http/conn.h"

/** One call's worth of answers. */
struct run {
	struct piece *piece; /* io->piece from here on, n_pieces of them */
	struct iovec *iov;   /* io->iov from here on */
	int n_pieces, n_iov;
	size_t out_n; /* bytes of io->out used, those of the runs in front included */
	size_t bytes; /* in all iovecs */
	ssize_t sent; /* of those, or -errno */
	bool shares;  /* runs of others are in the buffers: what finds no room is not too large */
	bool file;    /* the body of the last piece is a file, or in pieces */
	bool close;   /* the connection ends behind the last piece */
	bool client_done; /* and its client neither expects nor sends more */
};

/** A run that has all buffers for itself. */
static inline struct run write_alone(struct http_io *io)
{
	return (struct run){.piece = io->piece, .iov = io->iov};
}

/** Compose the answers whose turn it is, as many as there is room for; none is left out in between. */
void write_gather(struct conn *c, struct run *g);
/** Send them; one system call. */
void write_send(struct conn *c, struct run *g);
/** Drop what was sent, remember what of an answer was not. No connection is closed by this. */
enum conn_sent write_book(struct conn *c, const struct run *g);
/** Go on behind a run of which `rc` became: send what else there is, then parse what has been read, or end. */
void write_done(struct conn *c, struct run *g, enum conn_sent rc);

#endif
