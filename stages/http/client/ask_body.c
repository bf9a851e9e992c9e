/* SPDX-License-Identifier: MIT */
/*
 * Sends a request: its head, then its body as far as it has arrived.
 *
 *   head -> [ edge (size line) -> part -> tail (CRLF) ]* -> last chunk
 *
 * The head is made in the scratch memory of the loop. Only if the socket does not take all of it, the
 * rest is copied. A part of a streamed body stays where http.server has put it. The client's connection
 * is read on when the part has been sent, so a slow origin slows the client down.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/client/client.h"
#include "http/conn/await.h"

#define ASK_IOV 4

void ask_drop(struct asking *a)
{
	free(a->head);
	*a = (struct asking){.consumed = a->consumed};
}

static bool has_bytes(const struct asking *a)
{
	return a->head_at < a->head_n || a->edge_at < a->edge_n || a->part.n > 0 || a->tail > 0;
}

static int list(const struct asking *a, const char *head, struct iovec *iov)
{
	int n = 0;

	if (a->head_at < a->head_n)
		iov[n++] =
		    (struct iovec){(char *)(uintptr_t)head + a->head_at, a->head_n - a->head_at};
	if (a->edge_at < a->edge_n)
		iov[n++] = (struct iovec){
		    (char *)(uintptr_t)a->edge + a->edge_at, (size_t)(a->edge_n - a->edge_at)};
	if (a->part.n > 0)
		iov[n++] = (struct iovec){(char *)(uintptr_t)a->part.p, a->part.n};
	if (a->tail > 0)
		iov[n++] = (struct iovec){(char *)(uintptr_t) "\r\n" + 2 - a->tail, a->tail};
	return n;
}

static size_t take(size_t *sent, size_t most)
{
	size_t n = *sent < most ? *sent : most;

	*sent -= n;
	return n;
}

static void account(struct asking *a, size_t sent)
{
	a->head_at += take(&sent, a->head_n - a->head_at);
	a->edge_at += (uint8_t)take(&sent, (size_t)(a->edge_n - a->edge_at));
	size_t n = take(&sent, a->part.n);
	a->part.n -= n;
	a->part.p = a->part.n > 0 ? a->part.p + n : NULL;
	a->tail -= (uint8_t)take(&sent, a->tail);
}

/* Send what is listed. `head` is where the head is. Returns whether all was sent. */
static bool send_listed(struct exchange *x, const char *head)
{
	struct asking *a = &x->ask;

	while (has_bytes(a)) {
		struct iovec iov[ASK_IOV];
		int64_t n = upstream_send(x->up, iov, list(a, head, iov));
		if (n == 0)
			return false;
		if (n < 0) { /* the origin may have answered already */
			a->cut = a->done = true;
			return false;
		}
		account(a, (size_t)n);
		x->since_ns = client_now_ns(x->cl);
	}
	return true;
}

static void frame_part(struct asking *a, struct weir_slice part)
{
	a->part = part;
	a->edge_at = a->edge_n = 0;
	if (!a->chunked)
		return;
	a->edge_n = (uint8_t)snprintf(a->edge, sizeof(a->edge), "%zx\r\n", part.n);
	a->tail = 2;
}

/* Get the next bytes of the body. STEP_OVER if the exchange has ended; otherwise `done` or `waits` may
 * be set. */
static enum step next_part(struct exchange *x)
{
	struct asking *a = &x->ask;
	struct weir_slice part;
	int rc;

	if (a->ended) {
		a->done = true;
		return STEP_ON;
	}
	do
		rc = weir_http_body_next(x->req, &part);
	while (rc == WEIR_HTTP_BODY_WAIT && http_await_parts(x->req, WEIR_HTTP_BODY));
	if (rc < 0)
		return exchange_end(x, rc, 0);
	a->waits = rc == WEIR_HTTP_BODY_WAIT;
	if (rc == WEIR_HTTP_BODY_PART) {
		a->consumed = true;
		frame_part(a, part);
	}
	if (rc != WEIR_HTTP_BODY_END)
		return STEP_ON;
	a->ended = true;
	if (a->chunked)
		a->edge_n = (uint8_t)snprintf(a->edge, sizeof(a->edge), "0\r\n\r\n");
	a->edge_at = 0;
	return STEP_ON;
}

/* Send the head, and with it a body that has arrived as a whole. */
static enum step begin(struct exchange *x)
{
	struct asking *a = &x->ask;
	int n = ask_head(x);

	if (n == 0)
		return exchange_end(x, WEIR_EFAILED, 431);
	if (n < 0)
		return exchange_end(x, n, 0);
	a->head_n = (size_t)n;
	x->up->requests++;
	if (!weir_http_body_streamed(x->req)) {
		a->part = x->req->body;
		a->ended = true;
	}
	if (send_listed(x, x->cl->scratch) || a->cut || a->head_at == a->head_n) {
		a->head_n = a->head_at = 0;
		return STEP_ON;
	}
	a->head = malloc(a->head_n - a->head_at);
	if (!a->head)
		return exchange_end(x, WEIR_ENOMEM, 0);
	memcpy(a->head, x->cl->scratch + a->head_at, a->head_n - a->head_at);
	a->head_n -= a->head_at;
	a->head_at = 0;
	return STEP_ON;
}

enum step ask_run(struct exchange *x)
{
	struct asking *a = &x->ask;
	int64_t most = CLIENT_TURN_BYTES;

	if (!a->begun) {
		a->begun = true;
		if (begin(x) == STEP_OVER)
			return STEP_OVER;
	}
	while (!a->done && send_listed(x, a->head)) {
		if (most <= 0) {
			upstream_rearm(x->up);
			return STEP_ON;
		}
		if (next_part(x) == STEP_OVER)
			return STEP_OVER;
		if (a->waits)
			return STEP_ON;
		most -= (int64_t)a->part.n;
	}
	return STEP_ON;
}
