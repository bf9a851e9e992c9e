/* SPDX-License-Identifier: MIT */
/* hedge: asks two stages for the square of N, and takes the first answer. */
#include "number.h"

enum { ONE, OTHER };

static const struct weir_outlet hedge_outlets[] = {{"one", &number_type, false, "squares numbers"},
    {"other", &number_type, false, "squares numbers, too"}, {.name = NULL}};

static void answered(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	for (int i = 0; i < n; i++) {
		struct weir_event *c = weir_ended(ev[i]);
		number_answer(&ev[i], weir_ended_status(ev[i]), c ? number_of(c)->square : 0);
	}
}

static void hedge_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		number_ask(st, ev[i], ONE, number_in(ev[i]));
		number_ask(st, ev[i], OTHER, number_in(ev[i]));
		weir_await_first(st, &ev[i], answered);
	}
}

const struct weir_stage_ops weir_stage_hedge = {.abi = WEIR_STAGE_ABI,
    .name = "hedge",
    .summary = "Asks twice, and takes the first answer",
    .accepts = &weir_http_request_type,
    .outlets = hedge_outlets,
    .children = 1 << ONE | 1 << OTHER,
    .handle = hedge_handle};
