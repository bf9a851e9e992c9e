/* SPDX-License-Identifier: MIT */
/* Bins against a list that is searched from end to end. */
#include "event/bins.h"

#include <stdlib.h>
#include <string.h>

#include "cunit_main.h"

#define EVENTS 512
#define BATCH  64

struct item {
	struct weir_event ev;
	uint64_t cost, number;
	uint8_t bin; /* in which it waits */
	bool waits;
};

/* The events that wait, by arrival. */
static struct item items[EVENTS];
static struct item *line[EVENTS];
static int n_line;
static uint64_t n_arrived;
static int64_t now_ns;
static unsigned rnd;

static unsigned below(unsigned n)
{
	return (unsigned)rand_r(&rnd) % n;
}

/* A cost of any size, or one of a few, so that many events share a bin. */
static uint64_t draw_cost(void)
{
	uint64_t any = (uint64_t)rand_r(&rnd) << 33 ^ (uint64_t)rand_r(&rnd) << 12 ^ below(4096);

	return below(2) ? below(6) * 100 : any >> below(64);
}

/* The highest bin of the waiting events with this key. */
static uint8_t bin_of_key(uint64_t key)
{
	uint8_t bin = 0;

	for (int i = 0; i < n_line; i++)
		if (line[i]->ev.key == key && line[i]->bin > bin)
			bin = line[i]->bin;
	return bin;
}

static void put(struct bins *b, int keys, bool ordered)
{
	struct item *it = &items[below(EVENTS)];

	if (it->waits)
		return;
	it->cost = draw_cost();
	it->ev.key = below((unsigned)keys);
	it->ev.queued_ns = now_ns;
	it->number = n_arrived++;
	it->waits = true;
	bin_note(&it->ev, below(16) ? bin_of(it->cost) : BIN_UNKNOWN);
	if (bin_noted(&it->ev) == BIN_UNKNOWN)
		it->cost = UINT64_MAX;
	it->bin = bin_noted(&it->ev);
	if (ordered && bin_of_key(it->ev.key) > it->bin)
		it->bin = bin_of_key(it->ev.key);
	CU_ASSERT_EQUAL_FATAL(bins_reserve(b, 1), 0);
	bins_put(b, &it->ev);
	line[n_line++] = it;
}

/* Index in `line` of the event that must leave first. */
static int first_of(int64_t starved_ns)
{
	int best = 0;

	if (line[0]->ev.queued_ns < starved_ns)
		return 0;
	for (int i = 1; i < n_line; i++)
		if (line[i]->bin < line[best]->bin)
			best = i;
	return best;
}

static void remove_at(int i)
{
	line[i]->waits = false;
	memmove(&line[i], &line[i + 1], (size_t)(--n_line - i) * sizeof(*line));
}

/* last[k] is the number of the last event of key k that has left; NULL: they leave in any order. */
static void take(struct bins *b, int64_t starved_ns, uint64_t *last)
{
	struct weir_event *out[BATCH];
	int max = 1 + (int)below(BATCH), n = bins_take(b, max, starved_ns, out);

	CU_ASSERT_EQUAL(n, max < n_line ? max : n_line);
	for (int k = 0; k < n; k++) {
		int i = first_of(starved_ns);
		CU_ASSERT_PTR_EQUAL_FATAL(out[k], &line[i]->ev);
		if (last) {
			CU_ASSERT_TRUE(line[i]->number > last[out[k]->key]);
			last[out[k]->key] = line[i]->number;
		}
		remove_at(i);
	}
}

static int index_of(const struct weir_event *ev)
{
	for (int i = 0; i < n_line; i++)
		if (&line[i]->ev == ev)
			return i;
	return -1;
}

/* The first that leaves, and others with its key: of each bin, in order. */
static void take_key(struct bins *b, int64_t starved_ns)
{
	struct weir_event *out[BATCH];
	int max = 1 + (int)below(BATCH), had = n_line, same = 0;

	if (n_line == 0) {
		CU_ASSERT_EQUAL(bins_take_key(b, max, starved_ns, EVENTS, out), 0);
		return;
	}
	int i = first_of(starved_ns);
	uint64_t key = line[i]->ev.key;
	for (int k = 0; k < had; k++)
		same += line[k]->ev.key == key;
	int n = bins_take_key(b, max, starved_ns, EVENTS, out);
	CU_ASSERT_EQUAL(n, max < same ? max : same);
	CU_ASSERT_PTR_EQUAL(out[0], &line[i]->ev);
	for (int k = 0; k < n; k++) {
		CU_ASSERT_EQUAL(out[k]->key, key);
		if (k > 1) {
			const struct item *a = (const struct item *)out[k - 1];
			const struct item *c = (const struct item *)out[k];
			uint8_t ba = bin_noted(&a->ev), bc = bin_noted(&c->ev);
			CU_ASSERT_TRUE(ba < bc || (ba == bc && a->number < c->number));
		}
	}
	for (int k = 0; k < n; k++)
		remove_at(index_of(out[k]));
}

struct walk {
	int n, most;
	const struct weir_event *seen[EVENTS];
};

static bool see(void *arg, const struct weir_event *ev)
{
	struct walk *w = arg;

	w->seen[w->n++] = ev;
	return w->n < w->most;
}

/* What is shown is what leaves. */
static void walk(struct bins *b, int64_t starved_ns)
{
	struct walk w = {.most = 1 + (int)below(BATCH)};
	struct item *keep[EVENTS];
	int had = n_line;

	memcpy(keep, line, sizeof(line));
	bins_walk(b, starved_ns, see, &w);
	CU_ASSERT_EQUAL(w.n, w.most < n_line ? w.most : n_line);
	for (int k = 0; k < w.n; k++) {
		int i = first_of(starved_ns);
		CU_ASSERT_PTR_EQUAL(w.seen[k], &line[i]->ev);
		remove_at(i);
	}
	memcpy(line, keep, sizeof(line));
	n_line = had;
	for (int i = 0; i < n_line; i++)
		line[i]->waits = true;
}

static void check_oldest(const struct bins *b)
{
	const struct weir_event *oldest = bins_oldest(b);

	CU_ASSERT_PTR_EQUAL(oldest, n_line ? &line[0]->ev : NULL);
}

static void begin(unsigned seed)
{
	rnd = seed;
	n_line = 0;
	now_ns = 1000;
	memset(items, 0, sizeof(items));
}

static void test_oracle(void)
{
	for (unsigned seed = 1; seed <= 10; seed++) {
		struct bins *b = bins_new(below(2) ? 1 : EVENTS, false);

		CU_ASSERT_PTR_NOT_NULL_FATAL(b);
		begin(seed);
		for (int step = 0; step < 2000; step++) {
			int64_t starved_ns = below(3) ? now_ns - (int64_t)below(200) : INT64_MIN;
			now_ns += below(10);
			for (unsigned k = below(20); k > 0; k--)
				put(b, 5, false);
			if (below(4) == 0)
				take_key(b, starved_ns);
			else if (below(4) == 0)
				walk(b, starved_ns);
			else if (below(2))
				take(b, starved_ns, NULL);
			check_oldest(b);
		}
		while (n_line > 0)
			take(b, INT64_MIN, NULL);
		CU_ASSERT_PTR_NULL(bins_oldest(b));
		bins_free(b);
	}
}

/* Events of one key leave in order, whatever they cost and however they are taken. */
static void test_ordered(void)
{
	uint64_t last[300];
	struct weir_event *out[BATCH];

	for (unsigned seed = 1; seed <= 10; seed++) {
		struct bins *b = bins_new(1, true);
		/* with so few keys, no two have one hash */
		unsigned keys = seed % 3 == 0 ? 3 : seed % 3 == 1 ? 100 : 300;

		CU_ASSERT_PTR_NOT_NULL_FATAL(b);
		begin(seed);
		memset(last, 0, sizeof(last));
		n_arrived = 1;
		for (int step = 0; step < 2000 || n_line > 0; step++) {
			int64_t starved_ns = below(2) ? now_ns - (int64_t)below(200) : INT64_MIN;
			now_ns += below(10);
			for (unsigned k = step < 2000 ? below(20) : 0; k > 0; k--)
				put(b, (int)keys, true);
			if (keys < 300 && below(2)) {
				take(b, starved_ns, last);
				continue;
			}
			int max = 1 + (int)below(BATCH);
			int n = below(2) ? bins_take(b, max, starved_ns, out)
					 : bins_take_key(b, max, starved_ns, 16, out);
			for (int k = 0; k < n; k++) {
				const struct item *it = (const struct item *)out[k];
				CU_ASSERT_TRUE(it->number > last[it->ev.key]);
				last[it->ev.key] = it->number;
				remove_at(index_of(out[k]));
			}
		}
		bins_free(b);
	}
}

/* Bins grow with the cost, and those of one bin differ by less than a quarter. */
static void test_bin_of(void)
{
	uint64_t cost = 0, first = 0;

	CU_ASSERT_EQUAL(bin_of(0), 0);
	CU_ASSERT_TRUE(bin_of(UINT64_MAX) < BIN_UNKNOWN);
	for (uint64_t step = 1; cost < UINT64_MAX - step; step = cost / 64 + 1) {
		uint8_t before = bin_of(cost);
		cost += step;
		CU_ASSERT_TRUE(
		    bin_of(cost) == before || bin_of(cost) == before + 1 || step > cost / 80);
		CU_ASSERT_TRUE(bin_of(cost) >= before);
		if (bin_of(cost) != bin_of(first))
			first = cost;
		CU_ASSERT_TRUE(cost - first <= cost / 4);
	}
}

CUNIT_MAIN("bins", {"oracle", test_oracle}, {"ordered", test_ordered}, {"bin of", test_bin_of})
