/* SPDX-License-Identifier: MIT */
#include "http/request/waker.h"

#include <stdlib.h>

#include "http/request/request.h"

static void arrive(struct weir_loop *loop, struct weir_event *ev)
{
	struct http_waker *w = (struct http_waker *)ev;
	http_woken woken = w->woken;
	void *context = w->context;

	(void)loop;
	woken(waker_arrived(w), context);
}

const struct weir_event_type http_waker_type = {
    .name = "http.waker", .size = sizeof(struct http_waker), .arrive = arrive};

struct http_waker *waker_new(struct weir_loop *loop, void *owner, http_woken woken, void *context)
{
	struct http_waker *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->ev.type = &http_waker_type;
	w->loop = loop;
	w->owner = owner;
	w->woken = woken;
	w->context = context;
	return w;
}

void waker_wake(struct http_waker *w)
{
	int idle = WAKER_IDLE;

	if (w && atomic_compare_exchange_strong(&w->state, &idle, WAKER_SENT))
		weir_loop_send(w->loop, &w->ev);
}

void *waker_arrived(struct http_waker *w)
{
	int sent = WAKER_SENT;

	if (atomic_compare_exchange_strong(&w->state, &sent, WAKER_IDLE))
		return w->owner;
	if (atomic_exchange(&w->state, WAKER_ARRIVED) == WAKER_DROPPED)
		free(w);
	return NULL;
}

bool waker_over(struct http_waker *w)
{
	int idle = WAKER_IDLE;

	w->owner = NULL;
	if (atomic_compare_exchange_strong(&w->state, &idle, WAKER_OVER))
		return false;
	atomic_store(&w->state, WAKER_LEFT);
	return true;
}

void waker_drop(struct http_req *r)
{
	struct http_waker *w = atomic_exchange(&r->waker, NULL);

	int was = atomic_exchange(&w->state, WAKER_DROPPED);

	if (was == WAKER_OVER || was == WAKER_ARRIVED)
		free(w);
}
