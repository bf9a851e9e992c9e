/* SPDX-License-Identifier: MIT */
#include "http/conn/await.h"

#include <stdlib.h>

#include "http/conn/conn.h"
#include "http/request/transfer.h"
#include "http/request/waker.h"

struct http_waker *http_await_begin(struct weir_http_request *req, struct weir_loop *loop,
    void *owner, http_woken woken, void *context)
{
	struct http_req *r = (struct http_req *)req;
	struct http_waker *w = waker_new(loop, owner, woken, context);

	if (!w || !r->loop)
		return w;
	if (r->loop == loop)
		conn_not_awaited(r); /* no other thread works on it */
	/* conn_gone sets `gone` and then reads `waker`: at least one of the two threads wakes */
	atomic_store(&r->waker, w);
	if (atomic_load(&r->conn->gone))
		waker_wake(w);
	return w;
}

bool http_await_end(struct weir_http_request *req, struct http_waker *w)
{
	const struct http_req *r = (const struct http_req *)req;
	bool arrives = waker_over(w);

	if (!r->loop && !arrives)
		free(w);
	return arrives;
}

bool http_await_gone(const struct weir_http_request *req)
{
	const struct http_req *r = (const struct http_req *)req;

	return r->loop && atomic_load(&r->conn->gone);
}

bool http_await_parts(struct weir_http_request *req, unsigned what)
{
	struct transfer *t = ((struct http_req *)req)->transfer;
	bool due;

	pthread_mutex_lock(&t->lock);
	due = transfer_due_locked(t, what);
	t->awaits = (uint8_t)(due ? t->awaits & ~what : t->awaits | what);
	pthread_mutex_unlock(&t->lock);
	return due;
}
