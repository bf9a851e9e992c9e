/* SPDX-License-Identifier: MIT */
/*
 * Runs the filters of an answer; see request/filter.h.
 */
#include "http/request/filter.h"

#include "http/conn/parts.h"
#include "http/request/request.h"
#include "http/request/transfer.h"

static struct http_req *req_of(struct weir_http_request *req)
{
	return weir_event_cast(&req->ev, &weir_http_request_type);
}

void http_filter_add(struct weir_http_request *req, struct http_filter *f)
{
	struct http_req *r = req_of(req);

	WEIR_ASSERT(!req->res.streamed);
	f->next = r->filters;
	r->filters = f;
}

struct http_filter *http_filter_find(
    const struct weir_http_request *req, const struct http_filter_ops *ops)
{
	struct http_filter *f = ((const struct http_req *)req)->filters;

	while (f && f->ops != ops)
		f = f->next;
	return f;
}

int filters_head(struct weir_http_request *req, int64_t *length)
{
	int rc = 0;

	for (struct http_filter *f = req_of(req)->filters; f && rc == 0; f = f->next)
		if (f->ops->head)
			rc = f->ops->head(f, req, length);
	return rc;
}

int64_t filters_write(struct http_filter *f, struct weir_http_request *req, struct weir_slice data)
{
	while (f && !f->ops->data)
		f = f->next;
	return f ? f->ops->data(f, req, data) : parts_write(req, data);
}

int64_t http_filter_write(
    struct http_filter *f, struct weir_http_request *req, struct weir_slice data)
{
	return filters_write(f->next, req, data);
}

void http_filter_lost(struct weir_http_request *req)
{
	struct http_req *r = req_of(req);
	struct transfer *t = r->transfer;

	r->lost = true;
	if (!t) /* there is no client */
		return;
	pthread_mutex_lock(&t->lock);
	t->tail_lost = true;
	pthread_mutex_unlock(&t->lock);
}

void http_stream_flush(struct weir_http_request *req)
{
	struct http_req *r = req_of(req);

	if (!r->filters || !req->res.streamed || !r->transfer)
		return;
	r->transfer->keeps_all = true;
	for (struct http_filter *f = r->filters; f; f = f->next)
		if (f->ops->flush)
			f->ops->flush(f, req);
	r->transfer->keeps_all = false;
}

void filters_end(struct weir_http_request *req, int status)
{
	struct http_req *r = req_of(req);

	if (req->res.streamed && r->transfer)
		r->transfer->keeps_all = true;
	while (r->filters) {
		struct http_filter *f = r->filters;
		r->filters = f->next;
		f->ops->end(f, req, status);
	}
}
