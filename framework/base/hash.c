/* SPDX-License-Identifier: MIT */
/* The hash of keys: XXH3, 64 bits, inlined from the library's header. */
#include <weir/event.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t weir_hash(struct weir_slice s)
{
	uint64_t h = XXH3_64bits(s.p, s.n);

	return h != 0 ? h : 1; /* 0 says "no key" */
}
