/* SPDX-License-Identifier: MIT */
/*
 * Which origin gets a request.
 *
 * Of two origins drawn at random, the one with fewer requests under way is taken (Mitzenmacher, The Power
 * of Two Choices in Randomized Load Balancing, 2001): almost as good as the least busy of all, and without
 * the herd that runs to an origin that has just come back. An origin that has failed `fails` times in a
 * row is left out for `eject`. Then one request tries it: if the origin answers, it is back.
 */
#include "http/client/client.h"

#include <weir/random.h>

static bool usable(const struct origin *o, int64_t now_ns)
{
	return now_ns >= o->unwell_until_ns &&
	       (o->out_until_ns == 0 || (now_ns >= o->out_until_ns && !o->trial));
}

/* The `k`-th usable origin but `avoid`. */
static struct origin *nth(struct client_loop *cl, const struct origin *avoid, int k)
{
	int64_t now_ns = client_now_ns(cl);

	for (int i = 0; i < cl->client->n_origins; i++) {
		struct origin *o = &cl->origin[i];
		if (o != avoid && usable(o, now_ns) && k-- == 0)
			return o;
	}
	return NULL;
}

static int draw(struct client_loop *cl, int n)
{
	return (int)(weir_random_at(cl->seed, cl->draws++) % (uint64_t)n);
}

struct origin *pick_origin(struct client_loop *cl, const struct origin *avoid)
{
	int64_t now_ns = client_now_ns(cl);
	int n = 0;

	for (int i = 0; i < cl->client->n_origins; i++)
		n += &cl->origin[i] != avoid && usable(&cl->origin[i], now_ns);
	if (n == 0)
		return avoid ? pick_origin(cl, NULL) : NULL;
	if (n == 1)
		return nth(cl, avoid, 0);
	int one = draw(cl, n), two = draw(cl, n - 1);
	struct origin *a = nth(cl, avoid, one), *b = nth(cl, avoid, two + (two >= one));
	return b->busy < a->busy ? b : a;
}

struct origin *pick_with_room(struct client_loop *cl, const struct origin *avoid)
{
	int64_t now_ns = client_now_ns(cl);
	struct origin *best = NULL;

	for (int i = 0; i < cl->client->n_origins; i++) {
		struct origin *o = &cl->origin[i];
		if (o != avoid && usable(o, now_ns) && upstream_has_room(cl, o) &&
		    (!best || o->busy < best->busy))
			best = o;
	}
	return best;
}

void pick_begin(struct exchange *x, struct origin *o)
{
	o->busy++;
	x->trial = o->out_until_ns != 0;
	o->trial |= x->trial;
}

void pick_end(struct exchange *x, struct origin *o)
{
	o->busy--;
	if (x->trial)
		o->trial = false;
	x->trial = false;
}

void pick_succeeded(struct client_loop *cl, struct origin *o)
{
	o->fails = 0;
	if (o->out_until_ns == 0)
		return;
	o->out_until_ns = 0;
	client_count(cl, CLIENT_OUT, -1);
}

void pick_eject(struct client_loop *cl, struct origin *o)
{
	if (o->out_until_ns == 0) {
		client_count(cl, CLIENT_OUT, 1);
		client_count(cl, CLIENT_EJECTIONS, 1);
	}
	o->out_until_ns = client_now_ns(cl) + client_conf(cl)->eject_ns;
}

void pick_failed(struct client_loop *cl, struct origin *o)
{
	const struct client_conf *conf = client_conf(cl);

	o->fails += o->fails < INT32_MAX;
	if (conf->fails > 0 && (o->fails >= conf->fails || o->out_until_ns != 0))
		pick_eject(cl, o);
}

bool pick_retry(struct client_loop *cl)
{
	if (cl->tokens < 1) {
		client_count(cl, CLIENT_NO_RETRIES, 1);
		return false;
	}
	cl->tokens -= 1;
	client_count(cl, CLIENT_RETRIES, 1);
	return true;
}
