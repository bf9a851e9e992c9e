/* SPDX-License-Identifier: MIT */
/*
 * Writes a streamed response: its head, then the bytes that the stage has put into the ring. The
 * bytes found at each check of the ring are sent as one chunk.
 *
 *   text (head) -> [ edge (size line) -> bytes of the ring -> tail (CRLF) ]*
 *               -> text (last chunk, trailers)
 *
 * For HTTP/1.0 the bytes are sent without chunks, and closing the connection ends the response. The
 * frame records the progress of a short write. Bytes are sent from the ring without copying; their
 * space becomes available to the stage once they have been sent.
 */
#include "http/conn/conn.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/conn/wire_io.h"
#include "http/request/transfer.h"

/* Maximum number of bytes sent per iteration and connection, as for files (write.c). */
#define PARTS_TURN_BYTES (1 << 20)
#define PARTS_IOV        5

static bool set_text(struct transfer_frame *f, const char *p, size_t n)
{
	char *text = malloc(n);

	if (!text)
		return false;
	memcpy(text, p, n);
	free(f->text);
	f->text = text;
	f->text_n = (uint32_t)n;
	f->text_at = 0;
	return true;
}

/* Whether the client of `r` waits for a "100 Continue", which can no longer be sent after this
 * head. The client may then send either the body or another request, so the connection must be
 * closed. */
static bool is_unasked(const struct conn *c, const struct http_req *r)
{
	return c->stream.filling == r && stream_wants_continue(&c->stream);
}

static bool make_head(struct conn *c, struct http_req *r, struct transfer *t)
{
	struct http_io *io = c->io;
	size_t n;

	t->close = (!t->chunked && !t->bodiless && t->length < 0) || conn_closes_behind(c, r) ||
		   is_unasked(c, r);
	n = compose_head(io, r, t->close, io->scratch.out, sizeof(io->scratch.out));
	t->head_made = true;
	return n > 0 && set_text(&t->frame, io->scratch.out, n);
}

static bool make_last(struct http_io *io, struct transfer *t)
{
	size_t n = t->n_trailers;

	t->last_made = true;
	if (!t->chunked)
		return true;
	memcpy(io->scratch.out, "0\r\n", 3);
	if (n > 0)
		memcpy(io->scratch.out + 3, t->trailers, n);
	memcpy(io->scratch.out + 3 + n, "\r\n", 2);
	return set_text(&t->frame, io->scratch.out, n + 5);
}
_Static_assert(RESPONSE_FIELDS_MAX + 5 <= SERVER_OUT_BYTES, "trailers fit");

static bool is_empty(const struct transfer_frame *f)
{
	return f->text_at == f->text_n && f->left == 0 && f->tail == 0;
}

/* Begin a chunk of the `n` bytes that are available. */
static void begin_chunk(struct transfer *t, uint64_t n)
{
	struct transfer_frame *f = &t->frame;

	f->left = n;
	if (!t->chunked)
		return;
	f->edge_n = (uint8_t)snprintf(f->edge, sizeof(f->edge), "%llx\r\n", (unsigned long long)n);
	f->edge_at = 0;
	f->tail = 2;
}

/* List what must be sent next, in order. Returns the number of iovecs. */
static int list(const struct transfer_frame *f, const struct weir_slice seg[2], struct iovec *iov)
{
	int n = 0;
	uint64_t left = f->left;

	if (f->text_at < f->text_n)
		iov[n++] = (struct iovec){f->text + f->text_at, f->text_n - f->text_at};
	if (f->edge_at < f->edge_n)
		iov[n++] = (struct iovec){
		    (char *)(uintptr_t)f->edge + f->edge_at, (size_t)(f->edge_n - f->edge_at)};
	for (int i = 0; i < 2 && left > 0; i++) {
		size_t m = seg[i].n < left ? seg[i].n : (size_t)left;
		if (m > 0)
			iov[n++] = (struct iovec){(char *)(uintptr_t)seg[i].p, m};
		left -= m;
	}
	if (f->tail > 0)
		iov[n++] = (struct iovec){(char *)(uintptr_t) "\r\n" + 2 - f->tail, f->tail};
	return n;
}

static size_t take(size_t *sent, size_t most)
{
	size_t n = *sent < most ? *sent : most;

	*sent -= n;
	return n;
}

/* Record that `sent` bytes of the frame have been sent. */
static void account(struct transfer *t, size_t sent)
{
	struct transfer_frame *f = &t->frame;

	f->text_at += (uint32_t)take(&sent, f->text_n - f->text_at);
	f->edge_at += (uint8_t)take(&sent, (size_t)(f->edge_n - f->edge_at));
	size_t n = take(&sent, f->left);
	f->left -= n;
	f->tail -= (uint8_t)take(&sent, f->tail);
	if (n > 0)
		transfer_sent(t, n);
}

static enum conn_sent send_frame(
    struct conn *c, struct transfer *t, const struct weir_slice seg[2], int64_t *budget)
{
	struct iovec iov[PARTS_IOV];
	int n_iov = list(&t->frame, seg, iov);
	ssize_t n = *budget > 0 ? wire_send(c, iov, n_iov, false) : -1;

	if (*budget <= 0 || (n == -1 && errno == EAGAIN))
		return SENT_BLOCKED;
	if (n == -1)
		return SENT_BROKEN;
	conn_moved(c, n);
	*budget -= n;
	account(t, (size_t)n);
	return is_empty(&t->frame) ? SENT : SENT_BLOCKED;
}

/* Drop the response, all of which has been sent. *close is set if the connection must be closed. */
static void end_answer(struct conn *c, struct transfer *t, bool *close)
{
	const struct http_io *io = c->io;

	*close = t->close;
	conn_pop(c);
	/* if a drain has begun since the head was sent, the connection must also be closed */
	if (io->net.drain.phase != NET_RUNNING && !io_is_leaving(io) && !c->first &&
	    !stream_partial(&c->stream))
		*close = true;
}

enum conn_sent conn_write_parts(struct conn *c, bool *close)
{
	struct http_req *r = c->first;
	struct transfer *t = r->known_transfer;
	int64_t budget = PARTS_TURN_BYTES;

	if (!t->head_made && !make_head(c, r, t))
		return SENT_BROKEN;
	for (;;) {
		struct weir_slice seg[2];
		enum transfer_out state = transfer_look(t, seg);
		if (state == TRANSFER_ABORTED)
			return SENT_BROKEN;
		if (is_empty(&t->frame) && seg[0].n > 0)
			begin_chunk(t, seg[0].n + seg[1].n);
		else if (is_empty(&t->frame) && state == TRANSFER_DONE && !t->last_made &&
			 !make_last(c->io, t))
			return SENT_BROKEN;
		if (is_empty(&t->frame))
			break;
		enum conn_sent rc = send_frame(c, t, seg, &budget);
		if (rc != SENT)
			return rc;
	}
	if (!r->answered || !t->last_made)
		return SENT_WAITS;
	end_answer(c, t, close);
	return SENT;
}
