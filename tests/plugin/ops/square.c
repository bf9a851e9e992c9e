/* SPDX-License-Identifier: MIT */
/* square: squares numbers, after a delay if there is one. */
#include "number.h"

struct square_conf {
	int64_t delay_ns;
};

static void square_done(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	for (int i = 0; i < n; i++) {
		struct number *number = number_of(ev[i]);
		number->square = number->value * number->value;
		weir_event_finish(&ev[i], WEIR_OK);
	}
}

static void square_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	const struct square_conf *conf = weir_conf(st);

	if (conf->delay_ns == 0)
		square_done(st, ev, n);
	else
		for (int i = 0; i < n; i++)
			weir_hold_until(st, &ev[i], weir_now_ns(st) + conf->delay_ns);
}

static const struct weir_knob square_knobs[] = {
    {.name = "delay",
	.type = WEIR_KNOB_DURATION,
	.offset = offsetof(struct square_conf, delay_ns),
	.def = "0s",
	.help = "how long an answer takes"},
    {0},
};

const struct weir_stage_ops weir_stage_square = {.abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_HOLDS,
    .name = "square",
    .summary = "Squares numbers",
    .accepts = WEIR_ANY_EVENT, /* numbers: see below */
    .knobs = square_knobs,
    .conf_size = sizeof(struct square_conf),
    .handle = square_handle,
    .expired = square_done};
