/* SPDX-License-Identifier: MIT */
/* pool: asks a database over a few connections, and gives up at a deadline. */
#include <weir/http.h>
#include <weir/io.h>
#include <weir/weir.h>

#define CONNECTIONS 4

struct conn {
	struct weir_timer answer; /* stands in for the socket; first member */
	uint64_t asked;           /* ticket of the request that was sent, 0 if none */
	int64_t until_ns;
};

struct pool {
	struct weir_loop *loop; /* its thread alone uses the connections */
	struct conn conn[CONNECTIONS];
};

static void respond(struct weir_event *ev, int status, const char *text, size_t n)
{
	struct weir_slice body = {text, n};
	int rc = weir_http_respond(weir_http_request(ev), status, "text/plain", body, NULL, NULL);

	weir_event_finish(&ev, rc);
}

static void answered(struct weir_loop *loop, struct weir_timer *t)
{
	struct conn *c = (struct conn *)t;
	struct weir_event *ev = weir_hold_claim(weir_loop_stage(loop), c->asked);

	c->asked = 0;
	if (ev) /* NULL if the event has expired */
		respond(ev, 200, "42\n", 3);
}

/* Return a connection that is free, or on which an event has expired. */
static struct conn *conn_for(struct pool *p, int64_t now_ns)
{
	for (int i = 0; i < CONNECTIONS; i++)
		if (p->conn[i].asked == 0 || p->conn[i].until_ns <= now_ns)
			return &p->conn[i];
	return NULL;
}

static void ask(struct pool *p, struct weir_event *ev)
{
	struct weir_stage *st = weir_loop_stage(p->loop);
	int64_t now_ns = weir_loop_now_ns(p->loop), until_ns = now_ns + 200000000;
	bool silent = weir_http_request(ev)->path.n == 7; /* "/silent" is never answered */
	struct conn *c = conn_for(p, now_ns);

	if (!c) { /* `width` is above the number of connections */
		weir_hold_refused(st, ev);
		weir_event_finish(&ev, WEIR_EPRESSURE);
		return;
	}
	weir_timer_cancel(p->loop, &c->answer); /* here the silent connection would be closed */
	c->until_ns = until_ns < ev->deadline_ns ? until_ns : ev->deadline_ns;
	c->asked = weir_hold_until(st, &ev, c->until_ns);
	if (!silent)
		weir_timer_set(p->loop, &c->answer, now_ns + 20000000);
}

static void pool_mail(struct weir_loop *loop, struct weir_event *list)
{
	while (list) {
		struct weir_event *ev = list;
		list = ev->next;
		ask(weir_loop_data(loop), ev);
	}
}

static void pool_turn_end(struct weir_loop *loop)
{
	(void)loop;
}

static const struct weir_loop_ops pool_loop = {.mail = pool_mail, .turn_end = pool_turn_end};

static int pool_start(struct weir_stage *st, struct weir_err *err)
{
	struct pool *p = weir_state(st);

	(void)err;
	for (int i = 0; i < CONNECTIONS; i++)
		p->conn[i].answer.fire = answered;
	return weir_loop_start(st, 0, &pool_loop, p, &p->loop);
}

static void pool_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	struct pool *p = weir_state(st);

	for (int i = 0; i < n; i++) {
		struct weir_event *e = ev[i];
		weir_hold(st, &ev[i]);
		weir_loop_send(p->loop, e);
	}
}

static void pool_expired(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	for (int i = 0; i < n; i++) {
		respond(ev[i], 504, "the database does not answer\n", 29);
		ev[i] = NULL;
	}
}

static void pool_fini(struct weir_stage *st)
{
	struct pool *p = weir_state(st);

	if (!p->loop)
		return;
	weir_loop_stop(p->loop);
	weir_loop_join(p->loop);
}

const struct weir_stage_ops weir_stage_pool = {
    .abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_HOLDS,
    .name = "pool",
    .summary = "Asks a database over a few connections",
    .accepts = &weir_http_request_type,
    .state_size = sizeof(struct pool),
    .start = pool_start,
    .handle = pool_handle,
    .expired = pool_expired,
    .fini = pool_fini,
};
