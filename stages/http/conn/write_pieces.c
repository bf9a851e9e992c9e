/* SPDX-License-Identifier: MIT */
/*
 * Writes a body that consists of pieces of memory and of a file: adjacent pieces of memory in one
 * call, pieces of the file by sendfile. The list in the response holds the remaining pieces: a sent
 * piece is removed, a partly sent one is shortened.
 */
#include "http/conn/conn.h"

#include <errno.h>

#include "http/conn/wire_io.h"

/* Maximum number of bytes sent per iteration and connection, as for files (write.c). */
#define PIECES_TURN_BYTES (1 << 20)
/* Maximum number of pieces sent in one call: that of a response with the maximum number of ranges
 * (stages/file/range.h), so that a response that is entirely in memory takes one call. */
#define PIECES_IOV 17

/* Remove `n` sent bytes from the front of the list, and empty pieces after them. */
static void pieces_sent(struct weir_http_response *res, int64_t n)
{
	while (res->n_pieces > 0 && n >= res->piece->n) {
		n -= res->piece->n;
		res->piece++;
		res->n_pieces--;
	}
	if (n > 0) {
		res->piece->p += res->piece->p ? n : 0;
		res->piece->offset += n;
		res->piece->n -= n;
	}
}

static ssize_t send_memory(struct conn *c, const struct weir_http_response *res)
{
	struct iovec iov[PIECES_IOV];
	int n = 0;

	for (; n < res->n_pieces && n < PIECES_IOV && res->piece[n].p; n++)
		iov[n] = (struct iovec){.iov_base = (void *)(uintptr_t)res->piece[n].p,
		    .iov_len = (size_t)res->piece[n].n};
	return wire_send(c, iov, n, n < res->n_pieces);
}

static ssize_t send_file(struct conn *c, const struct weir_http_response *res, int64_t budget)
{
	off_t offset = res->piece->offset;
	int64_t n = res->piece->n < budget ? res->piece->n : budget;

	return wire_sendfile(c, res->fd, &offset, (size_t)n);
}

enum conn_sent conn_send_pieces(struct conn *c)
{
	struct weir_http_response *res = &c->first->pub.res;
	int64_t budget = PIECES_TURN_BYTES;

	for (pieces_sent(res, 0); res->n_pieces > 0;) {
		if (budget <= 0)
			return SENT_BLOCKED;
		ssize_t n = res->piece->p ? send_memory(c, res) : send_file(c, res, budget);
		if (n == -1 && errno == EAGAIN)
			return SENT_BLOCKED;
		if (n <= 0) /* the file became shorter, or the connection is broken */
			return SENT_BROKEN;
		conn_moved(c, n);
		pieces_sent(res, n);
		budget -= n;
	}
	conn_pop(c);
	return SENT;
}
