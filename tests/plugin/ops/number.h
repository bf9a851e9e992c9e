/* SPDX-License-Identifier: MIT */
/* number: a question to another stage, the square of a number. */
#include <stdio.h>
#include <weir/http.h>
#include <weir/op.h>
#include <weir/weir.h>

struct number {
	struct weir_event ev; /* first member */
	struct weir_op op;    /* so that it can be a child */
	long value, square;
};

static const struct weir_event_type number_type = {
    .name = "number", .size = sizeof(struct number), .op = offsetof(struct number, op)};

static inline struct number *number_of(struct weir_event *ev)
{
	return (struct number *)ev;
}

/* Make a child of `ev` that asks for the square of `value`. */
static inline void number_ask(struct weir_stage *st, struct weir_event *ev, int outlet, long value)
{
	struct weir_event *c = weir_event_new(st, &number_type);

	if (c)
		number_of(c)->value = value;
	weir_child(st, ev, outlet, &c); /* without memory, it is a child that has failed */
}

/* The number in the path: 12 for "/12". */
static inline long number_in(struct weir_event *ev)
{
	const struct weir_http_request *req = weir_http_request(ev);
	long value = 0;

	for (size_t i = 1; i < req->path.n && i < 6; i++)
		value = value * 10 + (req->path.p[i] - '0');
	return value;
}

static inline void number_answer(struct weir_event **ev, int status, long value)
{
	char text[32];
	struct weir_slice body = {text, (size_t)snprintf(text, sizeof(text), "%ld\n", value)};

	if (status == WEIR_OK)
		status = weir_http_respond_copy(weir_http_request(*ev), 200, "text/plain", body);
	weir_event_finish(ev, status);
}
