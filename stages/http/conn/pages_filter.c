/* SPDX-License-Identifier: MIT */
/*
 * Error pages in place of the errors of stages and origins (`intercept`).
 *
 * This filter is added before any stage's, so it is the last that sees an answer. A whole answer is only
 * marked, and pages_apply replaces it. The bytes of an answer in parts are swallowed, and the page follows
 * at the end.
 */
#include <stdlib.h>

#include "http/conn/io.h"
#include "http/conn/pages_set.h"
#include "http/request/filter.h"
#include "http/request/request.h"

struct intercept {
	struct http_filter filter; /* first */
	struct pages_site *site;
	char *text; /* the page, owned; NULL if the answer passes */
	size_t n;
};

/* Remove the fields that describe the body that is replaced. */
static int drop_fields(struct weir_http_request *req)
{
	static const char *const body_fields[] = {"Accept-Ranges", "Content-Disposition",
	    "Content-Encoding", "Content-Language", "Content-Location", "Content-MD5",
	    "Content-Range", "Content-Type", "ETag", "Last-Modified", "Trailer"};
	int rc = response_own_fields(req);

	for (size_t i = 0; rc == 0 && i < sizeof(body_fields) / sizeof(body_fields[0]); i++)
		request_field_drop(req, body_fields[i]);
	return rc;
}

static int head_in_parts(
    struct intercept *x, struct weir_http_request *req, const struct page *page, int64_t *length)
{
	x->text = pages_text(page, (struct http_req *)req, &x->n);
	if (!x->text)
		return 0; /* the answer passes */
	*length = (int64_t)x->n;
	return weir_http_add_field(req, "Content-Type", page->type);
}

static int intercept_head(struct http_filter *f, struct weir_http_request *req, int64_t *length)
{
	struct intercept *x = (struct intercept *)f;

	free(x->text); /* of an answer that could not begin */
	x->text = NULL;
	if (req->res.status < 400 || req->res.standard || req->res.no_length)
		return 0;
	struct pages *set = pages_now(x->site);
	const struct page *page = set ? pages_find(set, req->res.status) : NULL;
	int rc = page ? drop_fields(req) : 0;
	if (page && rc == 0 && length)
		rc = head_in_parts(x, req, page, length);
	if (page && !length)
		req->res.standard = true;
	pages_put(set);
	return rc;
}

static int64_t intercept_data(
    struct http_filter *f, struct weir_http_request *req, struct weir_slice data)
{
	const struct intercept *x = (struct intercept *)f;

	return x->text ? (int64_t)data.n : http_filter_write(f, req, data);
}

static void intercept_end(struct http_filter *f, struct weir_http_request *req, int status)
{
	struct intercept *x = (struct intercept *)f;

	if (x->text && status == WEIR_OK && req->res.streamed)
		http_filter_write(f, req, (struct weir_slice){x->text, x->n});
	free(x->text);
	free(x);
}

static const struct http_filter_ops ops = {
    .head = intercept_head, .data = intercept_data, .end = intercept_end};

void pages_watch(struct http_io *io, struct http_req *r)
{
	struct intercept *x = calloc(1, sizeof(*x));

	if (!x)
		return; /* the answer passes */
	x->filter.ops = &ops;
	x->site = &io->srv->pages;
	http_filter_add(&r->pub, &x->filter);
}
