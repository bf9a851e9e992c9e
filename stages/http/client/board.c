/* SPDX-License-Identifier: MIT */
/*
 * What the health checks say, for the loops that make none.
 *
 * The first loop of the stage checks all addresses. Each verdict changes the version of the board, also if
 * it is the same as before, since a loop that leaves an address out does so for `eject` from the last
 * failed check on.
 */
#include <stdlib.h>
#include <string.h>

#include "http/client/client.h"

struct verdict {
	const struct origin_spec *spec;
	struct address address;
	bool out;
};

void board_init(struct board *b)
{
	pthread_mutex_init(&b->lock, NULL);
	atomic_init(&b->version, 1);
}

void board_free(struct board *b)
{
	pthread_mutex_destroy(&b->lock);
	free(b->verdict);
}

static struct verdict *find(struct board *b, const struct origin *o) WEIR_REQUIRES(&b->lock)
{
	for (int i = 0; i < b->n; i++) {
		struct verdict *v = &b->verdict[i];
		if (v->spec == o->spec && v->address.n == o->address.n &&
		    memcmp(&v->address.addr, &o->address.addr, v->address.n) == 0)
			return v;
	}
	return NULL;
}

static struct verdict *add(struct board *b, const struct origin *o) WEIR_REQUIRES(&b->lock)
{
	struct verdict *more = realloc(b->verdict, ((size_t)b->n + 1) * sizeof(*more));

	if (!more)
		return NULL;
	b->verdict = more;
	b->verdict[b->n] = (struct verdict){.spec = o->spec, .address = o->address};
	return &b->verdict[b->n++];
}

void board_publish(struct client_loop *cl, const struct origin *o, bool out)
{
	struct board *b = &cl->client->board;

	pthread_mutex_lock(&b->lock);
	struct verdict *v = find(b, o);
	if (!v)
		v = add(b, o); /* without memory, the other loops find out by themselves */
	if (v)
		v->out = out;
	atomic_fetch_add(&b->version, 1);
	pthread_mutex_unlock(&b->lock);
}

void board_forget(struct client_loop *cl, const struct origin *o)
{
	struct board *b = &cl->client->board;

	pthread_mutex_lock(&b->lock);
	struct verdict *v = find(b, o);
	if (v)
		*v = b->verdict[--b->n];
	pthread_mutex_unlock(&b->lock);
}

static void follow(struct client_loop *cl, struct origin *o, const struct verdict *v)
{
	if (v && v->out) {
		o->unwell_until_ns = client_now_ns(cl) + client_conf(cl)->eject_ns;
		return;
	}
	o->unwell_until_ns = 0;
	if (v && o->out_until_ns != 0)
		pick_succeeded(cl, o);
}

void board_follow(struct client_loop *cl)
{
	struct board *b = &cl->client->board;
	unsigned version = atomic_load_explicit(&b->version, memory_order_relaxed);

	if (WEIR_LIKELY(version == cl->board_seen) || cl->probes)
		return;
	pthread_mutex_lock(&b->lock);
	for (int i = 0; i < cl->n_live; i++)
		follow(cl, cl->live[i], find(b, cl->live[i]));
	pthread_mutex_unlock(&b->lock);
	cl->board_seen = version;
}
