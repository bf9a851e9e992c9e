/* SPDX-License-Identifier: MIT */
/*
 * The steps of writing. write_turn.c performs each step for several connections before the next
 * step. A run is the group of responses of one connection that one system call sends. write_gather
 * composes it in the I/O thread's buffers, write_send sends it, and write_book records the result.
 * write_done then sends the responses that are left. From write_gather to write_book, the run owns
 * the part of the buffers that it has filled. I/O thread only.
 */
#ifndef WEIR_HTTP_WRITE_H
#define WEIR_HTTP_WRITE_H

#include "http/conn/conn.h"

/** The responses that one system call sends. */
struct run {
	struct piece *piece; /* n_pieces pieces in io->scratch.piece */
	struct iovec *iov;   /* n_iov entries of io->scratch.iov */
	int n_pieces, n_iov;
	size_t out_n; /* bytes of io->scratch.out used, including those of earlier runs */
	size_t bytes; /* bytes in all iovecs */
	ssize_t sent; /* bytes sent, or -errno */
	/* the buffers are shared with other runs, so a response that does not fit is not
	 * necessarily too large */
	bool shares;
	bool file;  /* the body of the last piece is a file, or in pieces */
	bool close; /* the connection is closed after the last piece */
	/* the connection is closed, and its client neither expects nor sends more */
	bool client_done;
};

/** Return an empty run that may use all of the buffers. */
static inline struct run write_alone(struct http_io *io)
{
	return (struct run){.piece = io->scratch.piece, .iov = io->scratch.iov};
}

/** Compose the responses of `c` that are next in order, as many as fit; none is skipped. */
void write_gather(struct conn *c, struct run *g);
/** Compose the head of the response of `first` as the next bytes to send, unless some of it has
 * been sent already. `first` must be answered. Returns false if out of memory. */
bool write_begin_part(struct conn *c);
/** Send the run, with one system call. */
void write_send(struct conn *c, struct run *g);
/** Record the result of a run: drop the responses that were sent, and store the unsent rest of a
 * response. Closes no connection. */
enum conn_sent write_book(struct conn *c, const struct run *g);
/** Complete a run whose result was `rc`: send the remaining responses. */
enum conn_next write_done(struct conn *c, struct run *g, enum conn_sent rc);

#endif
