/* SPDX-License-Identifier: MIT */
/* A stage type with the name of a built-in one. */
#include <weir/weir.h>

static void taken_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	for (int i = 0; i < n; i++)
		weir_event_finish(&ev[i], WEIR_OK);
}

const struct weir_stage_ops weir_stage_taken = {
    .abi = WEIR_STAGE_ABI,
    .name = "echo",
    .summary = "Has the name of another",
    .handle = taken_handle,
};
