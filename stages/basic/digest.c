/* SPDX-License-Identifier: MIT */
/*
 * digest: answer with the SHA-256 of the uploaded body. THE STAGE TO COPY if yours receives bodies
 * in parts.
 *
 * The stage handles bodies of any length, with memory for only one part. With `stream:` of
 * http.server a body is hashed while it arrives. If no bytes are available, the stage releases the
 * event and is called with it again later, so a slow client never blocks a handler. The server
 * stops reading from a fast client when the buffer is full.
 *
 *         stages:
 *           web:
 *             use: http.server
 *             with: { listen: 127.0.0.1:8080, stream: 64KiB, max_body: 10GiB }
 *             to: { request: digest }
 *           digest: { use: digest }
 */
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>

#include <weir/http.h>
#include <weir/weir.h>

/* Maximum number of parts read per call, so that other events are not delayed. 16 is a guess. */
#define DIGEST_PARTS 16

enum { DIGEST_BYTES };

/* State that persists between the calls for one event. weir_http_find_tap finds it, and the tap
 * frees it when the event is finished, with any status. */
struct upload {
	struct weir_http_tap tap; /* first */
	EVP_MD_CTX *hash;
};

static void upload_ended(struct weir_http_tap *tap, struct weir_http_request *req, int status)
{
	struct upload *up = (struct upload *)tap;

	(void)req;
	(void)status;
	EVP_MD_CTX_free(up->hash);
	free(up);
}

static struct upload *upload_of(struct weir_http_request *req)
{
	struct upload *up = (struct upload *)weir_http_find_tap(req, upload_ended);

	if (up)
		return up;
	up = calloc(1, sizeof(*up));
	if (!up)
		return NULL;
	up->tap.fn = upload_ended;
	weir_http_add_tap(req, &up->tap);
	up->hash = EVP_MD_CTX_new();
	if (up->hash && EVP_DigestInit_ex(up->hash, EVP_sha256(), NULL) != 1) {
		EVP_MD_CTX_free(up->hash);
		up->hash = NULL;
	}
	return up;
}

/* Respond with the hash in hex, "2cf24d...\n". */
static int answer(struct upload *up, struct weir_http_request *req)
{
	unsigned char sum[EVP_MAX_MD_SIZE];
	char text[2 * EVP_MAX_MD_SIZE + 2];
	unsigned n = 0;

	if (EVP_DigestFinal_ex(up->hash, sum, &n) != 1)
		return WEIR_EFAILED;
	for (unsigned i = 0; i < n; i++)
		snprintf(text + 2 * i, 3, "%02x", sum[i]);
	text[2 * n] = '\n';
	return weir_http_respond_copy(req, 200, "text/plain", (struct weir_slice){text, 2 * n + 1});
}

static void digest_one(struct weir_stage *st, struct weir_event **ev)
{
	struct weir_http_request *req = weir_http_request(*ev);
	struct upload *up = upload_of(req);
	struct weir_slice part;
	int rc = WEIR_HTTP_BODY_PART;

	if (!up || !up->hash) {
		weir_event_finish(ev, WEIR_ENOMEM);
		return;
	}
	for (int i = 0; i < DIGEST_PARTS && rc == WEIR_HTTP_BODY_PART; i++) {
		rc = weir_http_body_next(req, &part);
		if (rc != WEIR_HTTP_BODY_PART)
			break;
		EVP_DigestUpdate(up->hash, part.p, part.n);
		weir_count(st, DIGEST_BYTES, (int64_t)part.n);
	}
	if (rc == WEIR_HTTP_BODY_WAIT)
		/* *ev is NULL afterwards; digest_one is called with the event again */
		weir_http_wait(st, ev, WEIR_HTTP_BODY);
	else if (rc == WEIR_HTTP_BODY_PART)
		weir_requeue(st, ev); /* *ev is NULL afterwards; the event is last in the queue */
	else if (rc == WEIR_HTTP_BODY_END)
		weir_event_finish(ev, answer(up, req));
	else
		weir_event_finish(ev, rc); /* the rest will never arrive */
}

static void digest_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++)
		digest_one(st, &ev[i]);
}

static const struct weir_metric digest_metrics[] = {
    [DIGEST_BYTES] = {"digest_bytes_total", WEIR_METRIC_COUNTER, "bytes", "Bytes of hashed bodies"},
    {0},
};

extern const struct weir_stage_ops weir_stage_digest;
const struct weir_stage_ops weir_stage_digest = {
    .abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_IN_PARTS,
    .name = "digest",
    .summary = "Answers with the SHA-256 of the body, however long it is",
    .accepts = &weir_http_request_type,
    .metrics = digest_metrics,
    .handle = digest_handle,
};
