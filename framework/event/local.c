/* SPDX-License-Identifier: MIT */
/* Updates the histograms and service times of a thread's local; see local.h. */
#include "event/local.h"

_Static_assert(1 << (WEIR_COHORT_BUCKETS - 1) == WEIR_BATCH_MAX, "each size has a bucket");

WEIR_HOT void hist_book_add(struct hist_book *h, int64_t ns, uint64_t n)
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

WEIR_HOT void service_record(
    struct local *l, const struct served *b, int n_classes, int64_t behind_ns)
{
	int64_t took_ns = b->n > 1 ? b->took_ns / b->n : b->took_ns;
	int64_t each_ns = behind_ns ? (b->took_ns + behind_ns) / b->n : took_ns;

	for (int c = 0; c < n_classes; c++)
		if (b->per_class[c]) {
			hist_book_add(&l->times[c].service, took_ns, (uint64_t)b->per_class[c]);
			book_add(&l->book.class_book[c].handled,
			    (uint64_t)(b->per_class[c] - b->again[c]));
		}
	if (WEIR_UNLIKELY(l->service_ns < 0))
		l->service_ns = each_ns;
	l->service_ns += (each_ns - l->service_ns) / SERVICE_SMOOTH;
	book_add(&l->book.busy_ns, (uint64_t)b->took_ns);
	book_add(&l->book.batches, 1);
	book_add(&l->book.batch_events, (uint64_t)b->n);
	book_add(&l->book.cohorts[weir_cohort_bucket(b->n)], 1);
}
