/* SPDX-License-Identifier: MIT */
/*
 * Which origin gets a request.
 *
 * Of two origins drawn at random, the one with fewer requests under way is taken (Mitzenmacher, The Power
 * of Two Choices in Randomized Load Balancing, 2001): almost as good as the least busy of all, and without
 * the herd that runs to an origin that has just come back. An origin that has failed `fails` times in a
 * row is left out for `eject`. Then one request tries it: if the origin answers, it is back. While all are
 * out, the time is not waited for: one request at a time tries the one that has been out for longest. So a
 * single origin that is restarted is back with the first request after it, and an origin that hangs holds
 * one request; the others are answered with 502 at once. With health checks, the checks find out instead:
 * an origin that fails them may do so on purpose, so that it gets no requests.
 */
#include "http/client/client_calls.h"

#include <weir/random.h>

static bool usable(const struct origin *o, bool second, int64_t now_ns)
{
	return o->second == second && now_ns >= o->unwell_until_ns &&
	       (o->out_until_ns == 0 || (now_ns >= o->out_until_ns && !o->trial));
}

static int draw(struct client_loop *cl, int n)
{
	return (int)(weir_random_at(cl->seed, cl->draws++) % (uint64_t)n);
}

/* Of the usable ones but `avoid`. */
static struct origin *pick_of(struct client_loop *cl, const struct origin *avoid, bool second)
{
	int64_t now_ns = client_now_ns(cl);
	struct origin *a = NULL, *b = NULL;
	int n = 0, one, two;

	for (int i = 0; i < cl->n_live; i++)
		if (cl->live[i] != avoid && usable(cl->live[i], second, now_ns)) {
			a = cl->live[i];
			n++;
		}
	if (n <= 1)
		return a;
	one = draw(cl, n);
	two = draw(cl, n - 1);
	two += two >= one;
	for (int i = 0, k = 0; i < cl->n_live; i++) {
		struct origin *o = cl->live[i];
		if (o == avoid || !usable(o, second, now_ns))
			continue;
		a = k == one ? o : a;
		b = k == two ? o : b;
		k++;
	}
	return b && b->busy < a->busy ? b : a;
}

/* All are left out: the one that has been out for longest, if no request tries one already. */
static struct origin *pick_last(const struct client_loop *cl)
{
	struct origin *first = NULL;

	if (client_conf(cl)->health.path[0])
		return NULL;
	for (int i = 0; i < cl->n_live; i++) {
		if (cl->live[i]->trial)
			return NULL;
		if (!first || cl->live[i]->out_until_ns < first->out_until_ns)
			first = cl->live[i];
	}
	return first;
}

struct origin *pick_origin(struct client_loop *cl, const struct origin *avoid)
{
	struct origin *o = pick_of(cl, avoid, false);

	if (!o)
		o = pick_of(cl, avoid, true);
	if (!o && avoid)
		o = pick_origin(cl, NULL);
	return o ? o : pick_last(cl);
}

struct origin *pick_with_room(struct client_loop *cl, const struct origin *avoid)
{
	int64_t now_ns = client_now_ns(cl);
	struct origin *best = NULL;

	for (int i = 0; i < cl->n_live; i++) {
		struct origin *o = cl->live[i];
		if (o != avoid && usable(o, false, now_ns) && upstream_has_room(cl, o) &&
		    (!best || o->busy < best->busy))
			best = o;
	}
	return best;
}

void pick_begin(struct exchange *x, struct origin *o)
{
	o->busy++;
	rows_asked(o);
	x->trial = o->out_until_ns != 0;
	o->trial |= x->trial;
	if (x->trial)
		rows_trial(o, 1);
}

void pick_end(struct exchange *x, struct origin *o)
{
	o->busy--;
	rows_over(o);
	if (x->trial) {
		o->trial = false;
		rows_trial(o, -1);
	}
	x->trial = false;
}

void pick_succeeded(struct client_loop *cl, struct origin *o)
{
	o->fails = 0;
	if (o->out_until_ns == 0)
		return;
	o->out_until_ns = 0;
	client_count(cl, CLIENT_OUT, -1);
	rows_out(o, false);
}

void pick_forget(struct client_loop *cl, struct origin *o)
{
	o->trial = false;
	o->unwell_until_ns = 0;
	pick_succeeded(cl, o);
}

void pick_eject(struct client_loop *cl, struct origin *o)
{
	if (!o->live)
		return;
	if (o->out_until_ns == 0) {
		client_count(cl, CLIENT_OUT, 1);
		client_count(cl, CLIENT_EJECTIONS, 1);
		rows_out(o, true);
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
