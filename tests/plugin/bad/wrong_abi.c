/* SPDX-License-Identifier: MIT */
/* A stage type for another version: refused by its ABI number before anything else is read. */
#include <weir/weir.h>

static void wrong_abi_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	for (int i = 0; i < n; i++)
		weir_event_finish(&ev[i], WEIR_OK);
}

const struct weir_stage_ops weir_stage_wrong_abi = {
    .abi = WEIR_STAGE_ABI + 1,
    .name = "wrong_abi",
    .summary = "Is from the future",
    .handle = wrong_abi_handle,
};
