/* SPDX-License-Identifier: MIT */
/*
 * The life of an exchange: its start, its times, its failures, its end.
 *
 * Times. An exchange has one lazy timer, which triggers a check. Until the answer begins, the deadline of
 * the request applies. A connection must be open within `connect_timeout`. The head of the answer must be
 * complete within `timeout` after the last byte of the request was taken; afterwards a pause may last as
 * long. Time in which the client is waited for does not count.
 *
 * Failures and retries are in tries.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/client/client.h"
#include "http/conn/await.h"
#include "http/message/status.h"

/* ---- waiting for a connection ---- */

static void line_join(struct exchange *x, bool first)
{
	struct client_loop *cl = x->cl;
	struct exchange **at = first ? &cl->waiting : cl->waiting_end;

	x->in_line = true;
	x->before = at;
	x->behind = *at;
	if (x->behind)
		x->behind->before = &x->behind;
	else
		cl->waiting_end = &x->behind;
	*at = x;
}

static void line_leave(struct exchange *x)
{
	*x->before = x->behind;
	if (x->behind)
		x->behind->before = x->before;
	else
		x->cl->waiting_end = x->before;
	x->in_line = false;
}

void exchange_admit(struct client_loop *cl)
{
	while (cl->waiting) {
		struct exchange *x = cl->waiting;
		line_leave(x);
		x->was_in_line = true;
		exchange_start(x);
		if (cl->waiting == x)
			return;
	}
}

/* ---- times ---- */

/* Also within the answer, since the origin may wait for the body. http.server limits how long a client may
 * pause. */
static bool client_blamed(const struct exchange *x)
{
	return x->blocked || x->ask.waits;
}

/* When the origin has taken too long. */
static int64_t late_ns(const struct exchange *x)
{
	const struct client_conf *conf = client_conf(x->cl);

	if (x->up && x->up->state < UPSTREAM_BUSY)
		return x->up->since_ns + conf->connect_timeout_ns;
	if (client_blamed(x))
		return client_now_ns(x->cl) + conf->timeout_ns;
	int64_t late = x->since_ns + conf->timeout_ns, slow = answer_slow_ns(x);
	return slow < late ? slow : late;
}

static int64_t deadline_ns(const struct exchange *x)
{
	return x->begun ? WEIR_NO_DEADLINE : x->ev->deadline_ns;
}

void exchange_time(struct exchange *x)
{
	int64_t late = late_ns(x), deadline = deadline_ns(x);

	weir_timer_set(
	    x->cl->loop, x->up ? &x->up->timer : &x->timer, late < deadline ? late : deadline);
}

void exchange_timed(struct exchange *x)
{
	int64_t now_ns = client_now_ns(x->cl);

	if (now_ns >= deadline_ns(x))
		exchange_end(x, WEIR_EDEADLINE, 0);
	else if (now_ns < late_ns(x))
		exchange_time(x);
	else if (!x->up)
		exchange_end(x, WEIR_EFAILED, 504);
	else if (x->up->state < UPSTREAM_BUSY)
		exchange_failed(x, FAILURE_CONNECT);
	else
		exchange_failed(x, now_ns < answer_slow_ns(x) ? FAILURE_TIME : FAILURE_SLOW);
}

static void timed(struct weir_loop *loop, struct weir_timer *t)
{
	(void)loop;
	exchange_timed((struct exchange *)((char *)t - offsetof(struct exchange, timer)));
}

/* ---- start and end ---- */

/* The request is finished as failed: answer with the status of a gateway instead of 500. */
static void set_status(struct weir_http_tap *tap, struct weir_http_request *req, int status)
{
	const struct exchange *x =
	    (const struct exchange *)((char *)tap - offsetof(struct exchange, tap));
	const struct status *s = status_find(x->fail_status);

	(void)status;
	if (req->res.streamed || !s || req->res.release)
		return;
	req->res.status = x->fail_status;
	req->res.body = s->text;
	if (x->why) {
		char text[WEIR_NAME_MAX + 64];
		snprintf(text, sizeof(text), "stage=%s; reason=%s",
		    weir_stage_name(x->cl->client->st), x->why);
		weir_http_add_field(req, "X-Weir-Failed", text);
	}
}

static bool is_idempotent(const struct weir_http_request *req)
{
	switch (req->method) {
	case WEIR_HTTP_GET:
	case WEIR_HTTP_HEAD:
	case WEIR_HTTP_PUT:
	case WEIR_HTTP_DELETE:
	case WEIR_HTTP_OPTIONS:
		return true;
	default:
		return false;
	}
}

/* Whether the request has passed this stage before. */
static bool is_loop(const struct exchange *x)
{
	const char *via = x->cl->client->via + 4; /* behind "1.1 " */
	struct weir_slice name = {via, strlen(via)};

	for (int i = 0; i < x->req->n_headers; i++)
		if (weir_slice_is(x->req->headers[i].name, "via") &&
		    client_lists(x->req->headers[i].value, name))
			return true;
	return false;
}

/* A request that arrives while others wait does not overtake them. */
static void arrive(struct exchange *x)
{
	if (!x->cl->waiting) {
		exchange_start(x);
		return;
	}
	line_join(x, false);
	exchange_time(x);
	client_loop_room(x->cl); /* an origin may be back since the line was tried */
}

/* Count the upgrade that `x` asks for. */
static bool reserve(struct exchange *x)
{
	x->upgrade = tunnel_reserve(x->cl->client, client_conf(x->cl)->upgrades);
	if (x->upgrade)
		return true;
	x->why = "upgrades";
	client_count(x->cl, CLIENT_UPGRADES_FULL, 1);
	return false;
}

static struct exchange *exchange_take(struct client_loop *cl)
{
	struct exchange *x = cl->spare;

	if (!x)
		return calloc(1, sizeof(*x));
	cl->spare = x->next;
	cl->n_spare--;
	memset(x, 0, sizeof(*x));
	return x;
}

static void exchange_free(struct client_loop *cl, struct exchange *x)
{
	if (cl->n_spare == CLIENT_EXCHANGES_KEPT) {
		free(x);
		return;
	}
	x->next = cl->spare;
	cl->spare = x;
	cl->n_spare++;
}

void exchange_new(struct client_loop *cl, struct weir_event *ev)
{
	struct exchange *x = exchange_take(cl);
	double tokens = cl->tokens + client_conf(cl)->retry_budget;

	cl->tokens = tokens < CLIENT_TOKENS_MAX ? tokens : CLIENT_TOKENS_MAX;
	if (!x) {
		weir_event_finish(&ev, WEIR_ENOMEM);
		client_released(cl);
		return;
	}
	if (!cl->shares) {
		cl->shares = true;
		atomic_fetch_add(&cl->client->sharers, 1);
	}
	health_follow(cl);
	x->cl = cl;
	x->ev = ev;
	x->req = weir_http_request(ev);
	x->timer.fire = timed;
	x->since_ns = client_now_ns(cl);
	x->idempotent = is_idempotent(x->req);
	x->next = cl->all;
	x->prev = &cl->all;
	if (x->next)
		x->next->prev = &x->next;
	cl->all = x;
	x->waker = http_await_begin(x->req, cl->loop, x, exchange_woken, cl);
	if (!x->waker)
		exchange_end(x, WEIR_ENOMEM, 0);
	else if (WEIR_UNLIKELY(atomic_load_explicit(&cl->client->hurry, memory_order_relaxed)))
		exchange_end(x, WEIR_ECLOSED, 0);
	else if (is_loop(x))
		exchange_end(x, WEIR_EFAILED, 508);
	else if (tunnel_wanted(x) && !reserve(x))
		exchange_end(x, WEIR_EFAILED, 503);
	else
		arrive(x);
}

enum step exchange_end(struct exchange *x, int status, int code)
{
	struct client_loop *cl = x->cl;
	bool arrives;

	if (status == WEIR_EGONE)
		client_count(cl, CLIENT_GONE, 1);
	if (x->up)
		upstream_close(x->up);
	if (x->in_line)
		line_leave(x);
	if (x->upgrade)
		atomic_fetch_sub(&cl->client->upgrades, 1);
	weir_timer_cancel(cl->loop, &x->timer);
	*x->prev = x->next;
	if (x->next)
		x->next->prev = x->prev;
	ask_drop(&x->ask);
	free(x->trailer);
	if (status != WEIR_OK && !x->begun)
		weir_http_response_reset(x->req); /* also drops the fields of the origin */
	if (status == WEIR_EFAILED) {
		x->fail_status = (uint16_t)code;
		x->tap.fn = set_status;
		weir_http_add_tap(x->req, &x->tap);
	}
	arrives = x->waker && http_await_end(x->req, x->waker);
	weir_event_finish(&x->ev, status);
	if (!arrives)
		client_released(cl);
	exchange_free(cl, x);
	return STEP_OVER;
}

enum step exchange_done(struct exchange *x)
{
	struct upstream *u = x->up;

	pick_succeeded(x->cl, u->origin);
	if (x->keep && x->ask.done && !x->ask.cut && !upstream_is_surplus(u) &&
	    upstream_is_used_up(u))
		upstream_keep(u);
	return exchange_end(x, WEIR_OK, 0);
}

/* ---- tries ---- */

/* The origin to ask: if the one that is picked is full, another one. */
static struct origin *choose(const struct exchange *x)
{
	struct origin *o = pick_origin(x->cl, x->failed), *other = NULL;

	if (o && !upstream_has_room(x->cl, o))
		other = pick_with_room(x->cl, x->failed);
	return other ? other : o;
}

enum step exchange_start(struct exchange *x)
{
	struct origin *o = choose(x);
	bool broken;

	ask_drop(&x->ask);
	x->phase = EXCHANGE_HEAD;
	x->whole = false;
	x->interim = 0;
	x->heard = false;
	x->timed = false;
	if (!o && names_pending(x->cl)) {
		line_join(x, x->was_in_line);
		exchange_time(x);
		return STEP_ON;
	}
	if (!o) {
		x->why = names_why_none(x->cl);
		client_count(x->cl, CLIENT_NONE, 1);
		return exchange_end(x, WEIR_EFAILED, 502);
	}
	if (!upstream_get(x, o, &broken)) {
		line_join(x, x->was_in_line);
		exchange_time(x);
		return STEP_ON;
	}
	if (broken && upstream_lacks_descriptor())
		return exchange_end(x, WEIR_EFAILED, 502);
	if (broken)
		return tries_failed(x, o, FAILURE_CONNECT);
	weir_timer_cancel(x->cl->loop, &x->timer);
	x->was_in_line = false;
	x->since_ns = client_now_ns(x->cl);
	exchange_time(x);
	exchange_run(x);
	return STEP_ON;
}

void exchange_run(struct exchange *x)
{
	if (x->up->state < UPSTREAM_BUSY)
		return;
	if (ask_run(x) == STEP_ON)
		answer_run(x);
}

void exchange_opened(struct exchange *x)
{
	x->since_ns = client_now_ns(x->cl);
	exchange_time(x);
	exchange_run(x);
}

void exchange_woken(void *owner, void *cl)
{
	struct exchange *x = owner;

	if (!x) {
		client_released(cl);
		return;
	}
	if (http_await_gone(x->req)) {
		exchange_end(x, WEIR_EGONE, 0);
		return;
	}
	if (!x->up)
		return;
	if (client_blamed(x))
		x->since_ns = client_now_ns(x->cl);
	exchange_run(x);
}
