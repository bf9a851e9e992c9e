/* SPDX-License-Identifier: MIT */
/* Shows payloads that stages were refused (weir/payload.h). */
#ifndef WEIR_CLI_PAYLOADS_H
#define WEIR_CLI_PAYLOADS_H

#include <stddef.h>

#include <jansson.h>

/** Describe in text[size] what `stage`, an element of `stages` in the answer `doc` of /api/v1/stages,
 *  was refused since startup: "decode was refused payloads: 12 over payloads.memory (768.0 of 1024.0
 *  MiB reserved)"; "" if nothing was. */
void payloads_text(const json_t *doc, const json_t *stage, char *text, size_t size);

/** Print that for each stage to which it applies, or only for the one called `only`, if that is not
 *  NULL. */
void payloads_print(const json_t *doc, const char *only);

#endif
