/* SPDX-License-Identifier: MIT */
/* split: answers /N with the sum of the squares of 1 to N. */
#include "number.h"

enum { SQUARE };

static const struct weir_outlet split_outlets[] = {
    {"square", &number_type, false, "squares numbers"}, {.name = NULL}};

static void joined(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	for (int i = 0; i < n; i++) {
		long sum = 0;
		for (struct weir_event *c = weir_ended(ev[i]); c; c = c->next)
			sum += number_of(c)->square;
		number_answer(&ev[i], weir_ended_status(ev[i]), sum);
	}
}

static void split_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		for (long value = number_in(ev[i]); value > 0; value--)
			number_ask(st, ev[i], SQUARE, value);
		weir_await(st, &ev[i], joined);
	}
}

const struct weir_stage_ops weir_stage_split = {.abi = WEIR_STAGE_ABI,
    .name = "split",
    .summary = "Adds the squares of the numbers up to the one in the path",
    .accepts = &weir_http_request_type,
    .outlets = split_outlets,
    .children = 1 << SQUARE,
    .handle = split_handle};
