/* SPDX-License-Identifier: MIT */
/* Live histograms: one writer, readers sum. */
#include "flow/local.h"

void hist_book_add(struct hist_book *h, int64_t ns, uint64_t n)
{
	book_add(&h->count[weir_hist_bucket(ns)], n);
	book_add(&h->sum_ns, (uint64_t)(ns > 0 ? ns : 0) * n);
}

void hist_book_sum(struct weir_hist *into, const struct hist_book *from)
{
	for (int i = 0; i < WEIR_HIST_BUCKETS; i++)
		into->count[i] += book_read(&from->count[i]);
	into->sum_ns += book_read(&from->sum_ns);
}
