/* SPDX-License-Identifier: MIT */
/* The event loops of http.client: mail, and the end. */
#include <stdlib.h>

#include "http/client/client.h"
#include "http/request/waker.h"

void client_released(struct client *c, int64_t n)
{
	if (n > 0 && atomic_fetch_sub(&c->held, n) == n && atomic_load(&c->closing))
		sem_post(&c->ended);
}

static struct client_loop *of(struct weir_loop *loop)
{
	return weir_loop_data(loop);
}

static void mail(struct weir_loop *loop, struct weir_event *list)
{
	while (list) {
		struct weir_event *ev = list;
		list = ev->next;
		if (ev->type != &http_waker_type) {
			exchange_new(of(loop), ev);
			continue;
		}
		struct exchange *x = waker_arrived((struct http_waker *)ev);
		if (x)
			exchange_woken(x);
		else
			client_released(of(loop)->client, 1);
	}
}

static void turn_end(struct weir_loop *loop)
{
	struct client_loop *cl = of(loop);

	if (cl->room && cl->waiting)
		exchange_admit(cl);
	if (!atomic_load_explicit(&cl->client->closing, memory_order_relaxed))
		return;
	if (atomic_load(&cl->client->hurry))
		while (cl->all)
			exchange_end(cl->all, WEIR_ECLOSED, 0);
	if (atomic_load(&cl->client->held) == 0)
		sem_post(&cl->client->ended);
}

static int start(struct weir_loop *loop)
{
	struct client_loop *cl = of(loop);
	int rc;

	cl->loop = loop;
	rc = health_start(cl);
	return rc != 0 ? rc : names_start(cl);
}

static void stop(struct weir_loop *loop)
{
	struct client_loop *cl = of(loop);

	names_stop(cl);
	health_stop(cl);
	for (int i = 0; i < cl->n_slots; i++)
		upstream_close_idle(cl, &cl->origin[i]);
}

const struct weir_loop_ops client_loop_ops = {
    .start = start, .stop = stop, .mail = mail, .turn_end = turn_end};

struct client_loop *client_loop_new(struct client *c, int index)
{
	struct client_loop *cl = calloc(1, sizeof(*cl));

	if (!cl)
		return NULL;
	cl->client = c;
	if (names_new(cl) != 0) {
		names_free(cl);
		free(cl);
		return NULL;
	}
	cl->waiting_end = &cl->waiting;
	cl->tokens = CLIENT_TOKENS_FIRST;
	cl->seed = (uint64_t)index + 1;
	return cl;
}

void client_loop_free(struct client_loop *cl)
{
	while (cl->n_kept > 0)
		free(cl->kept[--cl->n_kept]);
	names_free(cl);
	free(cl);
}
