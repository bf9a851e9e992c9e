/* SPDX-License-Identifier: MIT */
/* A stage type whose symbol does not match the name of its file. */
#include <weir/weir.h>

static void other_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	for (int i = 0; i < n; i++)
		weir_event_finish(&ev[i], WEIR_OK);
}

const struct weir_stage_ops weir_stage_other = {
    .abi = WEIR_STAGE_ABI,
    .name = "other",
    .summary = "Has another name than its file",
    .handle = other_handle,
};
