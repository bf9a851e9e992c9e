/* SPDX-License-Identifier: MIT */
/*
 * drop: finish every event, as completed or as failed. It is the last stage of graphs in tests and
 * benchmarks, and the destination of events that need no further processing.
 */
#include <weir/weir.h>

/* In the order of the choices of the knob `status`. */
enum { DROP_OK, DROP_FAILED };

struct drop_conf {
	int status;
};

static void drop_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	const struct drop_conf *conf = weir_conf(st);
	int status = conf->status == DROP_OK ? WEIR_OK : WEIR_EFAILED;

	for (int i = 0; i < n; i++)
		weir_event_finish(&ev[i], status);
}

static const struct weir_knob drop_knobs[] = {
    {.name = "status",
	.type = WEIR_KNOB_ENUM,
	.offset = offsetof(struct drop_conf, status),
	.def = "ok",
	.flags = WEIR_KNOB_LIVE,
	.choices = "ok|failed",
	.help = "how events end: completed or failed"},
    {0},
};

const struct weir_stage_ops weir_stage_drop = {
    .abi = WEIR_STAGE_ABI,
    .name = "drop",
    .summary = "Ends every event",
    .accepts = WEIR_ANY_EVENT,
    .knobs = drop_knobs,
    .conf_size = sizeof(struct drop_conf),
    .handle = drop_handle,
};
