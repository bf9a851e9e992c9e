/* SPDX-License-Identifier: MIT */
/*
 * mirror: send the body back as it arrives. THE STAGE TO COPY if yours responds in parts.
 *
 * The stage receives a body as digest.c does and writes each part to a response of unknown length.
 * If the client does not read the response, the response's buffer fills up. The stage then waits
 * for free space and reads no more of the body, so the server stops reading from the socket. At
 * most two buffers hold bytes that the client has sent but not read back.
 *
 * The response begins when more than MIRROR_AHEAD bytes or the whole body have arrived. Until then
 * a malformed body gets a proper error status. A response that has begun can only be aborted.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/http.h>
#include <weir/weir.h>

/* Maximum number of parts read per call, so that other events are not delayed; the same as
 * DIGEST_PARTS. */
#define MIRROR_PARTS 16

/* Bytes collected before the response begins. One page fits into the response's buffer, so a single
 * write accepts all of them. */
#define MIRROR_AHEAD 4096

/* State that persists between the calls for one event; see digest.c. */
struct mirror {
	struct weir_http_tap tap; /* first */
	/* the unwritten rest of the part; valid until the next weir_http_body_next */
	struct weir_slice rest;
	bool begun;
	size_t n_ahead;
	char ahead[MIRROR_AHEAD];
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
	m = malloc(sizeof(*m));
	if (!m)
		return NULL;
	m->rest = (struct weir_slice){NULL, 0};
	m->begun = false;
	m->n_ahead = 0;
	m->tap.fn = mirror_ended;
	weir_http_add_tap(req, &m->tap);
	return m;
}

static int begin(struct mirror *m, struct weir_http_request *req)
{
	/* A trailer must be announced in the header (RFC 9110, 6.6.2). */
	int rc = weir_http_add_field(req, "Trailer", "X-Bytes");

	if (rc == 0)
		rc = weir_http_stream_begin(req, 200, "application/octet-stream");
	if (rc < 0)
		return rc;
	m->begun = true;
	int64_t n = weir_http_stream_write(req, (struct weir_slice){m->ahead, m->n_ahead});
	return n == (int64_t)m->n_ahead ? 0 : n < 0 ? (int)n : WEIR_EFAILED;
}

/* Collect the part if the response need not begin yet. Returns false if it has begun or must begin
 * now. */
static bool keep_ahead(struct mirror *m)
{
	if (m->begun || m->rest.n > MIRROR_AHEAD - m->n_ahead)
		return false;
	memcpy(m->ahead + m->n_ahead, m->rest.p, m->rest.n);
	m->n_ahead += m->rest.n;
	m->rest.n = 0;
	return true;
}

/* End the response: the body is complete, so add its length as a trailer. */
static int end(struct weir_http_request *req)
{
	char text[24];

	snprintf(text, sizeof(text), "%lld", (long long)weir_http_stream_bytes(req));
	return weir_http_stream_trailer(req, "X-Bytes", text);
}

/* Write the rest of the part. Returns 0 if all is written, 1 if the buffer is full, or a WEIR_E
 * code. */
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
		/* Begin the response only after data has arrived: a client may send data only after
		 * "100 Continue", which cannot be sent once the response has begun. */
		bool kept = !ends && keep_ahead(m);
		rc = m->begun || kept ? 0 : begin(m, req);
		if (rc == 0 && ends) {
			weir_event_finish(ev, end(req));
			return;
		}
	}
	if (rc == 0)
		weir_requeue(st, ev);
	else
		weir_event_finish(ev, rc); /* a response that has begun is aborted */
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
    .summary = "Sends the body back as it arrives, in an answer of unknown length",
    .accepts = &weir_http_request_type,
    .handle = mirror_handle,
};
