/* SPDX-License-Identifier: MIT */
/*
 * The file format of decisions and changes; see past_file.h. Written by past_file.c, read by
 * past_load.c. All members have fixed sizes, and there is no padding; texts end with a NUL.
 */
#ifndef WEIR_ADMIN_PAST_FORMAT_H
#define WEIR_ADMIN_PAST_FORMAT_H

#include <stdint.h>

#include "past_file.h"

#define PAST_MAGIC   "WEIRPAST" /* 8 bytes, without the NUL */
#define PAST_VERSION 1

struct past_head {
	char magic[8];
	uint32_t version, decisions, changes; /* the numbers of slots */
	uint32_t decision_bytes, change_bytes;
	uint32_t zero;
	uint64_t sum; /* of the head, with this member as 0 */
};

/* A decision with the id N is in slot N % PAST_DECISIONS; so are changes in theirs. */
struct past_decision {
	uint64_t sum; /* of the rest of the slot; 0 in a slot that was never written */
	uint64_t id;
	int64_t wall_ns;
	int32_t from, to;
	char stage[72], actor[24], action[24], rule[96], limit[48], inputs[160];
	char outcome_5s[12], outcome_30s[12];
};

struct past_change {
	uint64_t sum, id;
	int64_t wall_ns, expires_wall_ns;
	uint64_t undone;
	char actor[24], what[16], target[192], from[96], to[96];
};

#define PAST_BYTES                                                                                 \
	(sizeof(struct past_head) + PAST_DECISIONS * sizeof(struct past_decision) +                \
	    PAST_CHANGES * sizeof(struct past_change))

/** Return the checksum of a slot of `n` bytes, or of a head whose sum is 0. */
uint64_t past_sum(const void *slot, size_t n);

/** Fill in `head`. */
void past_head(struct past_head *head);

/** Load the `size` bytes of `fd` into `past`, which is empty. Returns NULL on success, kept_no_memory
 *  (kept_file.h) if memory ran out, or else the reason why the file is not valid. Damaged slots are left out.
 *  Defined in past_load.c. */
const char *past_load(int fd, uint64_t size, struct past *past);

#endif
