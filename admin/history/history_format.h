/* SPDX-License-Identifier: MIT */
/* The file format of the history; see history_file.h. Written by history_file.c, read by
 * history_load.c. */
#ifndef WEIR_ADMIN_HISTORY_FORMAT_H
#define WEIR_ADMIN_HISTORY_FORMAT_H

#include <stddef.h>
#include <stdint.h>

#include <weir/event.h>

#include "history.h"

#define HISTORY_MAGIC    "WEIRHIST" /* 8 bytes, without the NUL */
#define HISTORY_VERSION  1
#define HISTORY_NAME_MAX 256

struct history_head {
	char magic[8];
	uint32_t version, head_bytes; /* head_bytes includes the names */
	uint32_t n_stages, n_classes;
	uint32_t fields, class_fields;
	uint32_t slots[HISTORY_RINGS];
	uint64_t sum; /* of the head and the names, with this member as 0 */
};

struct history_slot_head {
	uint64_t sum; /* of the rest of the slot; 0 in a slot that was never written */
	int64_t label;
};

static inline uint64_t history_sum(const void *p, size_t n)
{
	return weir_hash((struct weir_slice){p, n});
}

static inline size_t history_slot_size(uint32_t n_stages, uint32_t n_classes)
{
	size_t record = SAMPLE_FIELDS + (size_t)n_classes * SAMPLE_CLASS_FIELDS;
	size_t n = sizeof(struct history_slot_head) + (size_t)n_stages * record * sizeof(uint16_t);

	return (n + 7) & ~(size_t)7;
}

static inline size_t history_file_size(size_t head_bytes, size_t slot_bytes)
{
	return head_bytes + slot_bytes * (HISTORY_SLOTS_1S + HISTORY_SLOTS_10S);
}

/** Load the `size` bytes of `fd` into `history`, which is empty. Returns NULL on success,
 *  kept_no_memory (kept_file.h) if memory ran out, or else the reason why the file is not a valid history.
 *  Defined in history_load.c. */
const char *history_load(int fd, uint64_t size, struct history *history);

#endif
