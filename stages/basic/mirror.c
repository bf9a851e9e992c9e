/* SPDX-License-Identifier: MIT */
/*
 * mirror: send the body back as it comes. The stage to copy for answering part by part.
 *
 * It takes a body as digest.c does and writes each part to an answer of unknown length. When the client does not take
 * what comes back, the buffer of the answer fills, the stage waits for room and takes no more of the body, and the socket
 * is not read: a client is never ahead of itself by more than two buffers.
 */
#include <stdio.h>
#include <stdlib.h>

#include <weir/http.h>
#include <weir/weir.h>

/* Parts in one call; then others have their turn: as digest. */
#define MIRROR_PARTS 16

/* What is kept for an event between calls; see digest.c. */
struct mirror {
	struct weir_http_tap tap; /* first */
	struct weir_slice
	    rest; /* of the part that was not yet taken: good until the next body_next */
	bool begun;
};

static void mirror_ended(struct weir_http_tap *tap, struct weir_http_request *req, int status)
{
	(void)req;
	(void)status;
	free(tap);
}

static struct mirror *mirror_of(struct weir_http_request *req)
{
	struct mirror *m = (struct mirror *)weir_http_find_tap(req, mirror_ended);

	if (m)
		return m;
	m = calloc(1, sizeof(*m));
	if (!m)
		return NULL;
	m->tap.fn = mirror_ended;
	weir_http_add_tap(req, &m->tap);
	return m;
}

static int begin(struct weir_http_request *req)
{
	/* Who has one behind the end says so in front (RFC 9110, 6.6.2). */
	int rc = weir_http_add_field(req, "Trailer", "X-Bytes");

	return rc < 0 ? rc : weir_http_stream_begin(req, 200, "application/octet-stream");
}

/* The body has come to its end. */
static int end(struct weir_http_request *req)
{
	char text[24];

	snprintf(text, sizeof(text), "%lld", (long long)weir_http_stream_bytes(req));
	return weir_http_stream_trailer(req, "X-Bytes", text);
}

/* Write what is left of the part. 0: all of it, 1: there is no room, or a WEIR_E code. */
static int write_rest(struct mirror *m, struct weir_http_request *req)
{
	int64_t n = m->rest.n ? weir_http_stream_write(req, m->rest) : 0;

	if (n < 0)
		return (int)n;
	m->rest.p += n;
	m->rest.n -= (size_t)n;
	return m->rest.n > 0;
}

static void mirror_one(struct weir_stage *st, struct weir_event **ev)
{
	struct weir_http_request *req = weir_http_request(*ev);
	struct mirror *m = mirror_of(req);
	int rc = m ? 0 : WEIR_ENOMEM;

	for (int i = 0; rc == 0 && i < MIRROR_PARTS; i++) {
		rc = write_rest(m, req);
		if (rc > 0) {
			weir_http_wait(st, ev, WEIR_HTTP_ROOM);
			return;
		}
		if (rc == 0)
			rc = weir_http_body_next(req, &m->rest);
		if (rc == WEIR_HTTP_BODY_WAIT) {
			weir_http_wait(st, ev, WEIR_HTTP_BODY);
			return;
		}
		if (rc < 0)
			break;
		bool ends = rc == WEIR_HTTP_BODY_END;
		/* Not before there is something: a client that asks first is told to go on. */
		rc = m->begun ? 0 : begin(req);
		m->begun = m->begun || rc == 0;
		if (rc == 0 && ends) {
			weir_event_finish(ev, end(req));
			return;
		}
	}
	if (rc == 0)
		weir_requeue(st, ev);
	else
		weir_event_finish(ev, rc); /* what was begun is broken off */
}

static void mirror_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++)
		mirror_one(st, &ev[i]);
}

extern const struct weir_stage_ops weir_stage_mirror;
const struct weir_stage_ops weir_stage_mirror = {
    .abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_IN_PARTS,
    .name = "mirror",
    .summary = "Sends the body back as it comes, in an answer of unknown length",
    .accepts = &weir_http_request_type,
    .handle = mirror_handle,
};
