/* SPDX-License-Identifier: MIT */
/* The table of rates; see rates.h. */
#include "http/site/rates.h"

#include <pthread.h>
#include <stdlib.h>

#include <weir/annotate.h>

/* Number of locks, a power of two. 64 is a guess: several times the number of I/O threads. */
#define PARTS 64
/* Entries of a set: two cache lines. */
#define WAYS 8
/* Longest time that a bucket takes to fill, about 127 years: sums with the clock fit an int64_t. */
#define FULL_MAX_NS 4e18

struct entry {
	uint64_t hash;   /* meaningless if the bucket is full */
	int64_t full_ns; /* when the bucket is full again */
};

struct set {
	struct entry entry[WAYS];
};

struct part {
	WEIR_ALIGNED pthread_mutex_t lock;
};

struct rates {
	uint64_t n_sets; /* a power of two, at least PARTS */
	struct set *sets;
	struct part part[PARTS];
};

struct rates *rates_new(int64_t keys)
{
	struct rates *t = aligned_alloc(_Alignof(struct rates), sizeof(*t));

	if (!t)
		return NULL;
	t->n_sets = PARTS;
	while (t->n_sets * WAYS < (uint64_t)keys)
		t->n_sets *= 2;
	t->sets = calloc(t->n_sets, sizeof(*t->sets));
	if (!t->sets) {
		free(t);
		return NULL;
	}
	for (int i = 0; i < PARTS; i++)
		pthread_mutex_init(&t->part[i].lock, NULL);
	return t;
}

void rates_free(struct rates *t)
{
	if (!t)
		return;
	for (int i = 0; i < PARTS; i++)
		pthread_mutex_destroy(&t->part[i].lock);
	free(t->sets);
	free(t);
}

/* Return the entry of `hash`, or the one that it may take: the first to be full. */
static struct entry *find(struct set *s, uint64_t hash, int64_t now_ns)
{
	struct entry *least = &s->entry[0];

	for (int i = 0; i < WAYS; i++) {
		struct entry *e = &s->entry[i];
		if (e->hash == hash && e->full_ns > now_ns)
			return e;
		if (e->full_ns < least->full_ns)
			least = e;
	}
	return least;
}

static struct rates_verdict take(
    struct set *s, uint64_t hash, int64_t each_ns, int64_t burst_ns, int64_t now_ns)
{
	struct entry *e = find(s, hash, now_ns);
	bool known = e->hash == hash && e->full_ns > now_ns;
	int64_t full_ns = (known ? e->full_ns : now_ns) + each_ns;

	if (full_ns - now_ns > burst_ns)
		return (struct rates_verdict){full_ns - now_ns - burst_ns, false};
	bool evicted = !known && e->full_ns > now_ns;
	*e = (struct entry){hash, full_ns};
	return (struct rates_verdict){0, evicted};
}

struct rates_verdict rates_take(
    struct rates *t, uint64_t hash, double per_s, int64_t burst, int64_t now_ns)
{
	double each = 1e9 / per_s, full = each * (double)burst;
	struct part *part = &t->part[hash & (PARTS - 1)];
	struct rates_verdict v;

	full = full < FULL_MAX_NS ? full : FULL_MAX_NS;
	each = each < full ? each : full; /* a first request is always within the rate */
	pthread_mutex_lock(&part->lock);
	v = take(&t->sets[hash & (t->n_sets - 1)], hash, (int64_t)each, (int64_t)full, now_ns);
	pthread_mutex_unlock(&part->lock);
	return v;
}
