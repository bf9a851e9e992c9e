/* SPDX-License-Identifier: MIT */
/*
 * Rates of many keys in a table of fixed size.
 *
 * Each key has a token bucket, kept as one time: the generic cell rate algorithm (ITU-T I.371). A key whose
 * bucket is full needs no entry. If all 8 entries of a key's set are in use, the one whose bucket is nearest
 * to full is dropped, so a flood of new keys displaces others of the flood, not the keys over their rates.
 *
 * Concurrency: every call except new and free may run in any number of threads at once.
 */
#ifndef WEIR_HTTP_SITE_RATES_H
#define WEIR_HTTP_SITE_RATES_H

#include <stdbool.h>
#include <stdint.h>

struct rates;

/** Bytes of memory for each key. */
#define RATES_KEY_BYTES 16

/** Create a table for about `keys` >= 1 keys that are over or near their rates at the same time. Returns
 * NULL if there is no memory. */
struct rates *rates_new(int64_t keys);
/** Free the table; NULL is allowed. */
void rates_free(struct rates *t);

/** What rates_take has done. */
struct rates_verdict {
	/* ns until the next request of the key is within its rate; 0 if this one was, and is counted */
	int64_t wait_ns;
	bool evicted; /* the entry of another key that was not idle was dropped */
};

/** Take a token for the key with this hash at `now_ns`: `per_s` > 0 tokens arrive each second, and at most
 * `burst` >= 1 are kept. Takes the lock of one of 64 parts of the table; about 50 ns. */
struct rates_verdict rates_take(
    struct rates *t, uint64_t hash, double per_s, int64_t burst, int64_t now_ns);

#endif
