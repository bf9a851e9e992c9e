/* SPDX-License-Identifier: MIT */
/* Hashes keys with the 64-bit XXH3, inlined from the header of the library. */
#include <weir/event.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t weir_hash(struct weir_slice s)
{
	uint64_t h = XXH3_64bits(s.p, s.n);

	return h != 0 ? h : 1; /* 0 is reserved for "no key" */
}
