/* SPDX-License-Identifier: MIT */
/* Events by expected work; see bins.h. Entries are named by their index, so that they can move when
 * the bins grow. */
#include "event/bins.h"

#include <stdlib.h>
#include <string.h>

#define NONE  UINT32_MAX
#define WORDS (BINS / 64)

/* Smallest number of entries. 64 is a guess: one full batch. */
#define CAPACITY_MIN 64

/* Number of hashes of keys. 256 is a guess: with fewer waiting keys, most have one of their own. */
#define HASHES 256

struct entry {
	struct weir_event *ev;
	uint64_t key;
	int64_t queued_ns;     /* that of the event, but not before that of the older one */
	uint32_t next;         /* in its bin, or of the unused ones */
	uint32_t older, newer; /* by arrival */
	uint8_t bin;
};

struct bin {
	uint32_t first, last;
};

/* The waiting events whose keys have one hash. */
struct keyed {
	uint32_t n;
	uint8_t bin; /* the highest, while n > 0 */
};

struct bins {
	uint64_t filled[WORDS];
	struct bin bin[BINS]; /* valid if filled */
	uint32_t oldest, newest;
	uint32_t unused; /* list of entries */
	uint32_t n, capacity;
	struct entry *entry;
	bool ordered;
	struct keyed keyed[HASHES];
};

static void add_unused(struct bins *b, uint32_t from, uint32_t to)
{
	for (uint32_t i = to; i-- > from;) {
		b->entry[i].next = b->unused;
		b->unused = i;
	}
}

struct bins *bins_new(uint32_t capacity, bool ordered)
{
	struct bins *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->oldest = b->newest = b->unused = NONE;
	b->ordered = ordered;
	if (bins_reserve(b, capacity) == 0)
		return b;
	free(b);
	return NULL;
}

void bins_free(struct bins *b)
{
	if (!b)
		return;
	free(b->entry);
	free(b);
}

int bins_reserve(struct bins *b, uint32_t n)
{
	uint32_t capacity = b->capacity ? b->capacity : CAPACITY_MIN;

	if (b->n + n <= b->capacity)
		return 0;
	while (capacity < b->n + n)
		capacity *= 2;
	struct entry *more = realloc(b->entry, capacity * sizeof(*more));
	if (!more)
		return WEIR_ENOMEM;
	b->entry = more;
	add_unused(b, b->capacity, capacity);
	b->capacity = capacity;
	return 0;
}

static struct keyed *keyed_of(struct bins *b, uint64_t key)
{
	return &b->keyed[(key ^ key >> 8 ^ key >> 32) % HASHES];
}

/* Return the bin in which an event whose cost belongs in `bin` may wait: not below that of another
 * waiting event of its key. Counts the event. */
static uint8_t bin_behind(struct bins *b, uint64_t key, uint8_t bin)
{
	struct keyed *k = keyed_of(b, key);

	if (k->n++ == 0 || k->bin < bin)
		k->bin = bin;
	return k->bin;
}

void bins_put(struct bins *b, struct weir_event *ev)
{
	uint32_t i = b->unused;
	struct entry *e = &b->entry[i];
	uint8_t at = b->ordered ? bin_behind(b, ev->key, bin_noted(ev)) : bin_noted(ev);
	struct bin *bin = &b->bin[at];
	uint64_t bit = UINT64_C(1) << at % 64;

	b->unused = e->next;
	*e = (struct entry){.ev = ev,
	    .key = ev->key,
	    .queued_ns = ev->queued_ns,
	    .next = NONE,
	    .older = b->newest,
	    .newer = NONE,
	    .bin = at};
	if (b->newest != NONE && b->entry[b->newest].queued_ns > e->queued_ns)
		e->queued_ns = b->entry[b->newest].queued_ns;
	if (b->filled[at / 64] & bit)
		b->entry[bin->last].next = i;
	else
		bin->first = i;
	bin->last = i;
	b->filled[at / 64] |= bit;
	if (b->newest == NONE)
		b->oldest = i;
	else
		b->entry[b->newest].newer = i;
	b->newest = i;
	b->n++;
}

struct weir_event *bins_oldest(const struct bins *b)
{
	return b->n > 0 ? b->entry[b->oldest].ev : NULL;
}

/* Return the lowest bin from `from` on that has events, or BINS. */
static int next_bin(const struct bins *b, int from)
{
	for (int w = from / 64; w < WORDS; w++) {
		uint64_t left = b->filled[w];
		if (w == from / 64)
			left &= ~UINT64_C(0) << from % 64;
		if (left)
			return w * 64 + __builtin_ctzll(left);
	}
	return BINS;
}

/* Return the entry of the event that leaves first; there is one. */
static uint32_t first_entry(const struct bins *b, int64_t starved_ns)
{
	if (b->entry[b->oldest].queued_ns < starved_ns)
		return b->oldest;
	return b->bin[next_bin(b, 0)].first;
}

static void leave_arrivals(struct bins *b, const struct entry *e)
{
	if (e->older == NONE)
		b->oldest = e->newer;
	else
		b->entry[e->older].newer = e->newer;
	if (e->newer == NONE)
		b->newest = e->older;
	else
		b->entry[e->newer].older = e->older;
}

/* Remove entry `i`; `before` is the one before it in its bin, or NONE. Returns its event. */
static struct weir_event *remove_entry(struct bins *b, uint32_t i, uint32_t before)
{
	struct entry *e = &b->entry[i];
	struct bin *bin = &b->bin[e->bin];

	if (before != NONE)
		b->entry[before].next = e->next;
	else
		bin->first = e->next;
	if (e->next == NONE)
		bin->last = before;
	if (bin->last == NONE)
		b->filled[e->bin / 64] &= ~(UINT64_C(1) << e->bin % 64);
	leave_arrivals(b, e);
	if (b->ordered)
		keyed_of(b, e->key)->n--;
	e->next = b->unused;
	b->unused = i;
	b->n--;
	return e->ev;
}

int bins_take(struct bins *b, int max, int64_t starved_ns, struct weir_event **out)
{
	int n = 0;

	while (n < max && b->n > 0)
		out[n++] = remove_entry(b, first_entry(b, starved_ns), NONE);
	return n;
}

int bins_take_key(struct bins *b, int max, int64_t starved_ns, int window, struct weir_event **out)
{
	int n = 0;

	if (b->n == 0 || max == 0)
		return 0;
	uint32_t first = first_entry(b, starved_ns);
	uint64_t key = b->entry[first].key;
	out[n++] = remove_entry(b, first, NONE);
	for (int at = next_bin(b, 0); at < BINS && window > 0 && n < max;
	     at = at + 1 < BINS ? next_bin(b, at + 1) : BINS) {
		uint32_t before = NONE, next;
		for (uint32_t i = b->bin[at].first; i != NONE && window-- > 0 && n < max;
		     i = next) {
			next = b->entry[i].next;
			if (b->entry[i].key == key)
				out[n++] = remove_entry(b, i, before);
			else
				before = i;
		}
	}
	return n;
}

void bins_walk(const struct bins *b, int64_t starved_ns,
    bool (*look)(void *arg, const struct weir_event *ev), void *arg)
{
	bool more = true;

	for (uint32_t i = b->oldest; more && i != NONE; i = b->entry[i].newer) {
		if (b->entry[i].queued_ns >= starved_ns)
			break;
		more = look(arg, b->entry[i].ev);
	}
	for (int at = next_bin(b, 0); more && at < BINS;
	     at = at + 1 < BINS ? next_bin(b, at + 1) : BINS)
		for (uint32_t i = b->bin[at].first; more && i != NONE; i = b->entry[i].next)
			if (b->entry[i].queued_ns >= starved_ns)
				more = look(arg, b->entry[i].ev);
}
