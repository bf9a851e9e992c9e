/* SPDX-License-Identifier: MIT */
/* Checks what a stage type says about payloads. */
#ifndef WEIR_STAGE_PAYLOAD_H
#define WEIR_STAGE_PAYLOAD_H

#include <weir/stage.h>

/** Whether the payloads of the stage type `ops` are well-formed: names, fields, outlets. If not, write
 *  what is wrong to text[size]. */
bool payload_validate(const struct weir_stage_ops *ops, char *text, size_t size);

#endif
