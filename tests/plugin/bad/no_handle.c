/* SPDX-License-Identifier: MIT */
/* A stage type that cannot handle events. */
#include <weir/weir.h>

const struct weir_stage_ops weir_stage_no_handle = {
    .abi = WEIR_STAGE_ABI,
    .name = "no_handle",
    .summary = "Has forgotten to handle",
};
