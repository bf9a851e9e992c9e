/* SPDX-License-Identifier: MIT */
/*
 * digest: answer with the SHA-256 of what was uploaded. The stage to copy for taking a body part by part.
 *
 * It works on bodies of any length in the memory of a part: with `stream:` of http.server a body arrives while it is
 * hashed, and when nothing is there the stage lets go of the event and is called with it again. A handler is never
 * blocked by a slow client, and a client never sends more than the buffer holds beyond what was hashed.
 *
 *         stages:
 *           web:    { use: http.server, with: { listen: 127.0.0.1:8080, stream: 64KiB, max_body: 10GiB }, to: { request: digest } }
 *           digest: { use: digest }
 */
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>

#include <weir/http.h>
#include <weir/weir.h>

/* Parts in one call; then others have their turn. A guess: a buffer of 64 KiB is one or two. */
#define DIGEST_PARTS 16

enum { DIGEST_BYTES };

/* What is kept for an event between calls. The tap finds it again, and frees it however the event ends. */
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

/* "2cf24d...\n" */
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
		weir_http_wait(st, ev, WEIR_HTTP_BODY); /* *ev is NULL: it comes again */
	else if (rc == WEIR_HTTP_BODY_PART)
		weir_requeue(st, ev); /* likewise, behind those that wait */
	else if (rc == WEIR_HTTP_BODY_END)
		weir_event_finish(ev, answer(up, req));
	else
		weir_event_finish(ev, rc); /* the rest will never come */
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
