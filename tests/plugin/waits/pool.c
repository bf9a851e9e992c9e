/* SPDX-License-Identifier: MIT */
/* pool: asks a database over a few connections, and gives up at a deadline. */
#include <string.h>
#include <weir/http.h>
#include <weir/weir.h>

#define CONNECTIONS 4

struct conn {
	struct weir_timer answer; /* stands in for the socket; first member */
	struct weir_stage *stage;
	uint64_t asked; /* ticket of the request that was sent, 0 if none */
	int64_t until_ns;
};

struct pool {
	struct conn conn[CONNECTIONS];
};

static void respond(struct weir_event **ev, int status, const char *text)
{
	struct weir_slice body = {text, strlen(text)};
	int rc = weir_http_respond(weir_http_request(*ev), status, "text/plain", body, NULL, NULL);

	weir_event_finish(ev, rc);
}

static void answered(struct weir_loop *loop, struct weir_timer *t)
{
	struct conn *c = (struct conn *)t;
	struct weir_event *ev = weir_hold_claim(c->stage, c->asked);

	(void)loop;
	c->asked = 0;
	if (ev) /* NULL if the event has expired */
		respond(&ev, 200, "42\n");
}

/* Return a connection that is free, or on which an event has expired. */
static struct conn *conn_for(struct pool *p, int64_t now_ns)
{
	for (int i = 0; i < CONNECTIONS; i++)
		if (p->conn[i].asked == 0 || p->conn[i].until_ns <= now_ns)
			return &p->conn[i];
	return NULL;
}

static void ask(struct weir_stage *st, struct weir_event **ev)
{
	int64_t now_ns = weir_now_ns(st), until_ns = now_ns + 200000000;
	struct conn *c = conn_for(weir_state(st), now_ns);
	bool silent = weir_http_request(*ev)->path.n == 7; /* "/silent" is never answered */

	if (!c) { /* `width` is above the number of connections */
		weir_hold_refused(st, *ev);
		weir_event_finish(ev, WEIR_EPRESSURE);
		return;
	}
	weir_timer_cancel(
	    weir_loop_here(), &c->answer); /* here the silent connection would be closed */
	c->answer.fire = answered;
	c->stage = st;
	c->until_ns = until_ns < (*ev)->deadline_ns ? until_ns : (*ev)->deadline_ns;
	c->asked = weir_hold_until(st, ev, c->until_ns);
	if (!silent)
		weir_timer_set(weir_loop_here(), &c->answer, now_ns + 20000000);
}

static void pool_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++)
		ask(st, &ev[i]);
}

static void pool_expired(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	for (int i = 0; i < n; i++)
		respond(&ev[i], 504, "the database does not answer\n");
}

const struct weir_stage_ops weir_stage_pool = {.abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_HOLDS | WEIR_STAGE_LOOP,
    .name = "pool",
    .summary = "Asks a database over a few connections",
    .accepts = &weir_http_request_type,
    .state_size = sizeof(struct pool),
    .handle = pool_handle,
    .expired = pool_expired};
