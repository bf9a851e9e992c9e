/* SPDX-License-Identifier: MIT */
/* call: answers /N with the square of the square of N. */
#include "number.h"

enum { SQUARE };

static const struct weir_outlet call_outlets[] = {
    {"square", &number_type, false, "squares numbers"}, {.name = NULL}};

static void answered_twice(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	for (int i = 0; i < n; i++) {
		struct weir_event *c = weir_ended(ev[i]);
		number_answer(&ev[i], weir_ended_status(ev[i]), c ? number_of(c)->square : 0);
	}
}

static void answered(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		struct weir_event *c = weir_ended(ev[i]);
		if (weir_ended_status(ev[i]) != WEIR_OK) {
			weir_event_finish(&ev[i], weir_ended_status(ev[i]));
			continue;
		}
		number_ask(st, ev[i], SQUARE, number_of(c)->square);
		weir_await(st, &ev[i], answered_twice);
	}
}

static void call_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		weir_http_family(weir_http_request(ev[i])); /* ends when the client has gone */
		number_ask(st, ev[i], SQUARE, number_in(ev[i]));
		weir_await(st, &ev[i], answered);
	}
}

const struct weir_stage_ops weir_stage_call = {.abi = WEIR_STAGE_ABI,
    .name = "call",
    .summary = "Squares the number in the path twice",
    .accepts = &weir_http_request_type,
    .outlets = call_outlets,
    .children = 1 << SQUARE,
    .handle = call_handle};
