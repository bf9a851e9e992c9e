/* SPDX-License-Identifier: MIT */
/* A stage type that calls a function which does not exist in this weir: detected when it is loaded,
 * not when it runs. */
#include <weir/weir.h>

void weir_call_of_the_future(struct weir_event **ev);

static void unresolved_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	for (int i = 0; i < n; i++)
		weir_call_of_the_future(&ev[i]);
}

const struct weir_stage_ops weir_stage_unresolved = {
    .abi = WEIR_STAGE_ABI,
    .name = "unresolved",
    .summary = "Calls what is not there",
    .handle = unresolved_handle,
};
