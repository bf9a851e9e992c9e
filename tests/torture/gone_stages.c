/* SPDX-License-Identifier: MIT */
#include "torture/gone_stages.h"

#include <weir/hold.h>
#include <weir/op.h>

#define TICKETS 256
#define ROUNDS  3
/* Longest waits: 5 ms, and 0.4 s, which is longer than a family takes to end. */
#define REQUEST_NS 5000000
#define PART_NS    400000000

struct part {
	struct weir_event ev;
	struct weir_op op;
	char *text; /* allocated with the part, so that a leak is found */
	int rounds;
};

atomic_ullong gone_made, gone_ended, gone_requests;
static _Atomic uint64_t tickets[2][TICKETS]; /* of requests, of parts */
static atomic_uint draws;

void gone_reset(void)
{
	gone_made = gone_ended = gone_requests = 0;
	memset(tickets, 0, sizeof(tickets));
}

static unsigned draw(unsigned n)
{
	uint64_t x = atomic_fetch_add_explicit(&draws, 1, memory_order_relaxed) *
		     UINT64_C(0x9e3779b97f4a7c15);

	return (unsigned)((x ^ x >> 29) * UINT64_C(0xbf58476d1ce4e5b9) >> 33) % n;
}

static void part_finish(struct weir_event *ev, int status)
{
	struct part *p = (struct part *)ev;

	(void)status;
	free(p->text);
	atomic_fetch_add_explicit(&gone_ended, 1, memory_order_relaxed);
}

static const struct weir_event_type part_type = {.name = "t.part",
    .size = sizeof(struct part),
    .finish = part_finish,
    .op = offsetof(struct part, op)};

static void give(struct weir_stage *st, struct weir_event *ev, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct weir_event *c = weir_event_new(st, &part_type);
		if (c) {
			((struct part *)c)->text = malloc(1);
			atomic_fetch_add_explicit(&gone_made, 1, memory_order_relaxed);
		}
		weir_child(st, ev, 0, &c);
	}
}

/* Let `*ev` wait with a ticket, and resume another event that waits. Only a request with a family may wait
 * for ever. A part may be an orphan: if its request has been answered, its family ends no more. */
static void wait_for(struct weir_stage *st, struct weir_event **ev, weir_next *next, int kind)
{
	int64_t until_ns = weir_now_ns(st) + (int64_t)draw(kind == 1 ? PART_NS : REQUEST_NS);

	if (kind == 0 && weir_family_of(*ev) && draw(8) > 0)
		until_ns = WEIR_NO_DEADLINE;
	uint64_t ticket = weir_wait(st, ev, next, until_ns);
	uint64_t other = atomic_exchange(&tickets[kind][draw(TICKETS)], ticket);

	if (other)
		weir_resume(st, other);
}

/* ---- requests ---- */

static void again(struct weir_stage *st, struct weir_event **ev, int n);

static void answer(struct weir_event **ev, int status)
{
	struct weir_http_request *req = weir_http_request(*ev);

	if (status == WEIR_OK)
		weir_http_respond_copy(req, 200, "text/plain", (struct weir_slice){"ok\n", 3});
	weir_event_finish(ev, status);
}

/* What happens to a request next. */
static void go_on(struct weir_stage *st, struct weir_event **ev)
{
	unsigned what = draw(8);

	if (what < 6)
		give(st, *ev, draw(5));
	if (what < 2)
		weir_await(st, ev, again);
	else if (what < 5)
		weir_await_first(st, ev, again);
	else if (what < 7)
		wait_for(st, ev, again, 0); /* its parts are orphans */
	else
		answer(ev, WEIR_OK);
}

static void again(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		for (struct weir_event *c = weir_ended(ev[i]); c; c = c->next)
			((struct part *)c)->text[0] = 'x';
		if (draw(3) == 0)
			go_on(st, &ev[i]);
		else
			answer(&ev[i], weir_ended_status(ev[i]));
	}
}

static void gone_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	atomic_fetch_add_explicit(&gone_requests, (unsigned)n, memory_order_relaxed);
	for (int i = 0; i < n; i++) {
		if (draw(8) > 0)
			weir_http_family(weir_http_request(ev[i]));
		go_on(st, &ev[i]);
	}
}

/* ---- parts ---- */

static void part_again(struct weir_stage *st, struct weir_event **ev, int n);

static void part_go_on(struct weir_stage *st, struct weir_event **ev)
{
	struct part *p = (struct part *)*ev;
	unsigned what = p->rounds++ < ROUNDS ? draw(8) : 7;

	if (what < 3) {
		give(st, *ev, draw(3));
		(what == 0 ? weir_await_first : weir_await)(st, ev, part_again);
	} else if (what < 5) {
		wait_for(st, ev, part_again, 1);
	} else if (what == 5) {
		weir_requeue(st, ev);
	} else {
		weir_event_finish(ev, what == 6 ? WEIR_EFAILED : WEIR_OK);
	}
}

static void part_again(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++)
		part_go_on(st, &ev[i]);
}

static void leaf_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	for (int i = 0; i < n; i++)
		weir_event_finish(&ev[i], WEIR_OK);
}

static const struct weir_outlet part_outlet[] = {
    {"part", &part_type, false, "parts of the request"}, {.name = NULL}};
static const struct weir_outlet leaf_outlet[] = {
    {"leaf", &part_type, false, "parts of the part"}, {.name = NULL}};

static const struct weir_stage_ops gone_ops = {.abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_HOLDS,
    .name = "t.gone",
    .summary = "splits requests, waits, and answers",
    .accepts = &weir_http_request_type,
    .outlets = part_outlet,
    .children = 1,
    .handle = gone_handle};
static const struct weir_stage_ops part_ops = {.abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_HOLDS,
    .name = "t.part",
    .summary = "splits parts, waits, and ends them",
    .accepts = &part_type,
    .outlets = leaf_outlet,
    .children = 1,
    .handle = part_again};
static const struct weir_stage_ops loop_ops = {.abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_HOLDS | WEIR_STAGE_LOOP,
    .name = "t.part.loop",
    .summary = "splits parts in a loop",
    .accepts = &part_type,
    .outlets = leaf_outlet,
    .children = 1,
    .handle = part_again};
static const struct weir_stage_ops leaf_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.leaf",
    .summary = "ends parts",
    .accepts = &part_type,
    .handle = leaf_handle};

void gone_register(void)
{
	fixture_register(&gone_ops);
	fixture_register(&part_ops);
	fixture_register(&loop_ops);
	fixture_register(&leaf_ops);
}
