/* SPDX-License-Identifier: MIT */
/*
 * The queue of a stage: rings of pointers under one mutex. See queue.h for the design and the
 * locking rules.
 *
 * A cohort by key is the largest group of events with the same key in a window at the head of the
 * highest non-empty lane. But if the first event of the lane has waited longer than the linger
 * time, or COHORT_PASSES batches of other keys have been taken since its key was last served, the
 * events with its key are served, so that a rare key does not starve (Larus & Parkes do not specify
 * this bound). The window has a fixed size, which bounds the scan under the lock.
 */
#include "event/bins.h"
#include "event/cell.h"
#include "event/lane.h"
#include "event/queue.h"

#include <stdlib.h>
#include <string.h>

/* Number of events at the head of a lane from which a cohort by key is chosen. 256 is a guess: four
 * of the largest useful batches (measured: gains flatten at 64). The scan costs about 1 ns per
 * event. */
#define COHORT_WINDOW 256

/* Largest number of batches of other keys before the head's key is served. 8 is a guess. */
#define COHORT_PASSES 8

/* Smallest size of a lane, in events. 64 is a guess: one full batch. */
#define LANE_FIRST 64

static uint32_t round_up_pow2(uint32_t v)
{
	uint32_t p = LANE_FIRST;

	while (p < v)
		p *= 2;
	return p;
}

static int lane_grow(struct lane *l, uint32_t capacity, bool keyed)
{
	struct weir_event **slot = malloc(capacity * sizeof(*slot));
	uint64_t *key = keyed ? malloc(capacity * sizeof(*key)) : NULL;

	if (!slot || (keyed && !key)) {
		free(slot);
		free(key);
		return WEIR_ENOMEM;
	}
	for (uint32_t i = 0; i < l->n; i++) {
		uint32_t at = (l->head + i) & (l->capacity - 1);
		slot[i] = l->slot[at];
		if (keyed)
			key[i] = l->key[at];
	}
	free(l->slot);
	free(l->key);
	l->slot = slot;
	l->key = key;
	l->head = 0;
	l->capacity = capacity;
	return 0;
}

int queue_init(
    struct queue *q, int n_classes, int n_parts, uint32_t limit, bool keyed, bool leasing)
{
	memset(q, 0, sizeof(*q));
	q->part = aligned_alloc(WEIR_CACHE_LINE, (size_t)n_parts * sizeof(*q->part));
	if (!q->part)
		return WEIR_ENOMEM;
	memset(q->part, 0, (size_t)n_parts * sizeof(*q->part));
	q->n_parts = n_parts;
	q->n_classes = n_classes;
	q->keyed = keyed;
	q->leasing = leasing;
	q->limit = q->own = limit;
	q->oldest_ns = INT64_MAX;
	lock_init(&q->lock);
	if (lane_grow(&q->part[0].lane[n_classes - 1], round_up_pow2(limit), keyed) == 0)
		return 0;
	queue_fini(q);
	return WEIR_ENOMEM;
}

void queue_fini(struct queue *q)
{
	if (!q->part)
		return;
	WEIR_ASSERT(queue_length(q) == 0 && atomic_load(&q->n_back) == 0);
	for (int p = 0; p < q->n_parts; p++) {
		for (int c = 0; c < q->n_classes; c++) {
			free(q->part[p].lane[c].slot);
			free(q->part[p].lane[c].key);
			bins_free(q->part[p].lane[c].bins);
		}
	}
	free(q->part);
	q->part = NULL;
	lock_fini(&q->lock);
}

int lane_reserve(struct lane *l, uint32_t n, bool keyed)
{
	return l->n + n > l->capacity ? lane_grow(l, round_up_pow2(l->n + n), keyed) : 0;
}

int lane_append(struct queue *q, struct lane *l, struct weir_event **ev, uint32_t n)
{
	if (WEIR_UNLIKELY(q->shortest))
		return queue_bins_append(q, l, ev, n);
	if (lane_reserve(l, n, q->keyed) != 0)
		return 0;
	uint32_t mask = l->capacity - 1, tail = (l->head + l->n) & mask;
	uint32_t first = l->capacity - tail < n ? l->capacity - tail : n;
	memcpy(&l->slot[tail], ev, first * sizeof(*ev));
	if (WEIR_UNLIKELY(first < n))
		memcpy(l->slot, ev + first, (n - first) * sizeof(*ev));
	if (WEIR_UNLIKELY(q->keyed))
		for (uint32_t i = 0; i < n; i++)
			l->key[(tail + i) & mask] = q->map ? q->behind++ : ev[i]->key;
	l->n += n;
	return (int)n;
}

uint32_t queue_rank_length_locked(const struct queue *q, int class_id, int rank, int n_ranks)
{
	uint32_t n = 0;

	for (int p = rank; p < q->n_parts; p += n_ranks)
		n += q->part[p].lane[class_id].n;
	return n;
}

void queue_lease_locked(struct queue *q, struct partition *part, bool leased)
{
	int n = atomic_load_explicit(&q->leased, memory_order_relaxed);

	if (!q->leasing)
		return;
	part->leased = leased;
	atomic_store_explicit(&q->leased, leased ? n + 1 : n - 1, memory_order_relaxed);
}

static void note_queued(struct queue *q, int64_t queued_ns)
{
	if (queued_ns < atomic_load_explicit(&q->oldest_ns, memory_order_relaxed))
		atomic_store_explicit(&q->oldest_ns, queued_ns, memory_order_relaxed);
}

int queue_push_locked(struct queue *q, struct weir_event **ev, int n)
{
	int done = 0;

	lock_assert_held(&q->lock);
	while (done < n) {
		int part = queue_part_of(q, ev[done]), run = 1;
		uint8_t class_id = ev[done]->class_id;
		while (done + run < n && ev[done + run]->class_id == class_id &&
		       queue_part_of(q, ev[done + run]) == part)
			run++;
		if (lane_append(q, &q->part[part].lane[class_id], ev + done, (uint32_t)run) == 0)
			break;
		if (q->dated)
			note_queued(q, ev[done]->queued_ns);
		part_add(&q->part[part], run);
		done += run;
	}
	/* seq_cst: pairs with the read of the length in queue_due, which handler_park (sched/rest.c)
	 * calls */
	atomic_store(&q->length, queue_length(q) + (uint32_t)done);
	return done;
}

int lane_take(struct lane *l, int max, struct weir_event **out)
{
	uint32_t n = l->n < (uint32_t)max ? l->n : (uint32_t)max;
	uint32_t first = l->capacity - l->head < n ? l->capacity - l->head : n;

	if (n == 0)
		return 0;
	memcpy(out, &l->slot[l->head], first * sizeof(*out));
	if (WEIR_UNLIKELY(first < n))
		memcpy(out + first, l->slot, (n - first) * sizeof(*out));
	l->head = (l->head + n) & (l->capacity - 1);
	l->n -= n;
	return (int)n;
}

/* Choose the key to serve: the head's key if the head is overdue, otherwise the most frequent key
 * in the window. Keys are counted in an open-addressing table of twice the window's size. */
static uint64_t choose_key(const struct lane *l, uint32_t window, bool overdue)
{
	struct {
		uint64_t key;
		uint16_t n, used;
	} seen[2 * COHORT_WINDOW];
	uint64_t best = l->key[l->head];
	uint16_t most = 0;

	if (overdue)
		return best;
	memset(seen, 0, sizeof(seen));
	for (uint32_t i = 0; i < window; i++) {
		uint64_t key = l->key[(l->head + i) & (l->capacity - 1)];
		uint32_t at = (uint32_t)(key ^ key >> 32) % (2 * COHORT_WINDOW);
		while (seen[at].used && seen[at].key != key)
			at = (at + 1) % (2 * COHORT_WINDOW);
		seen[at].used = 1;
		seen[at].key = key;
		if (++seen[at].n > most) {
			most = seen[at].n;
			best = key;
		}
	}
	return best;
}

/* Take up to `max` events of one key. The remaining events of the window keep their order. */
static int lane_take_key(struct lane *l, int max, bool overdue, struct weir_event **out)
{
	uint32_t window = l->n < COHORT_WINDOW ? l->n : COHORT_WINDOW, mask = l->capacity - 1;
	uint64_t key = window ? choose_key(l, window, overdue || l->passes >= COHORT_PASSES) : 0;
	int n = 0;
	uint32_t last = 0;

	l->passes = window && key == l->key[l->head] ? 0 : l->passes + 1;

	for (uint32_t i = 0; i < window && n < max; i++) {
		uint32_t at = (l->head + i) & mask;
		if (l->key[at] == key) {
			out[n++] = l->slot[at];
			l->slot[at] = NULL;
			last = i;
		}
	}
	/* Close the gaps by moving the remaining events towards the tail, then advance the head. */
	uint32_t to = last;
	for (uint32_t i = last + 1; n > 0 && i-- > 0;) {
		uint32_t from_at = (l->head + i) & mask, to_at = (l->head + to) & mask;
		if (!l->slot[from_at])
			continue;
		l->slot[to_at] = l->slot[from_at];
		l->key[to_at] = l->key[from_at];
		to--;
	}
	l->head = (l->head + (uint32_t)n) & mask;
	l->n -= (uint32_t)n;
	return n;
}

static const struct weir_event *lane_head(const struct lane *l)
{
	return WEIR_UNLIKELY(l->bins != NULL) ? queue_bins_oldest(l) : l->slot[l->head];
}

static const struct weir_event *part_head(const struct partition *part, int n_classes)
{
	const struct weir_event *oldest = NULL;

	for (int c = 0; c < n_classes; c++) {
		const struct lane *l = &part->lane[c];
		if (l->n && (!oldest || lane_head(l)->queued_ns < oldest->queued_ns))
			oldest = lane_head(l);
	}
	return oldest;
}

/* Whether a batch of `part` is due now. If not, lowers take->ready_ns to the time at which a batch
 * will be due. */
static bool part_ready(
    const struct queue *q, const struct partition *part, struct queue_take *take, bool *overdue)
{
	if (take->linger_ns <= 0) {
		*overdue = false;
		return true;
	}
	int64_t due_ns = part_head(part, q->n_classes)->queued_ns + take->linger_ns;
	*overdue = take->now_ns >= due_ns;
	if (*overdue || part->n >= (uint32_t)take->max || q->closed)
		return true;
	if (due_ns < take->ready_ns)
		take->ready_ns = due_ns;
	return false;
}

/* Return the partition to serve: among those of this rank (struct queue_take) in which a batch is
 * due, the one served least recently. NULL if no batch is due. */
static struct partition *part_due(struct queue *q, struct queue_take *take, bool *overdue)
{
	struct partition *best = NULL;
	int first = q->n_parts == 1 ? 0 : take->rank;

	for (int p = first; p < q->n_parts; p += take->n_ranks) {
		struct partition *part = &q->part[p];
		bool late;
		if (!part->n || part->leased || !part_ready(q, part, take, &late))
			continue;
		if (!best || (int32_t)(part->served - best->served) < 0) {
			best = part;
			take->part = p;
			*overdue = late;
		}
	}
	return best;
}

/* Return the lane whose head has waited longest, or NULL if all lanes are empty. */
static struct lane *oldest_lane(struct partition *part, int n_classes)
{
	struct lane *oldest = NULL;

	for (int c = 0; c < n_classes; c++) {
		struct lane *l = &part->lane[c];
		if (l->n && (!oldest || l->slot[l->head]->queued_ns <
					    oldest->slot[oldest->head]->queued_ns))
			oldest = l;
	}
	return oldest;
}

/* Take up to `max` events, oldest first across classes. Events of a lane that were queued together
 * are taken together. */
static int part_take_oldest(
    struct queue *q, struct partition *part, int max, struct weir_event **out)
{
	struct lane *l;
	int n = 0;

	while (n < max && (l = oldest_lane(part, q->n_classes))) {
		int64_t queued_ns = l->slot[l->head]->queued_ns;
		uint32_t run = 1;
		while (run < l->n && n + (int)run < max &&
		       l->slot[(l->head + run) & (l->capacity - 1)]->queued_ns == queued_ns)
			run++;
		n += lane_take(l, (int)run, out + n);
	}
	return n;
}

/* Take the events that belong into a batch of take->max with those of take->cell: higher classes
 * first, and in a class those whose head was queued first. */
static int part_take_beside(struct queue *q, struct partition *part, const struct queue_take *take,
    int max, struct weir_event **out)
{
	int n = 0, room = take->max;

	for (int c = 0; c < q->n_classes && n < max && room > 0; c++) {
		struct lane *l = &part->lane[c];
		int theirs = (int)cell_class(take->cell, c);
		int first =
		    theirs && l->n &&
			    l->slot[l->head]->queued_ns < cell_oldest_class_ns(take->cell, c)
			? 0
			: theirs;
		int most = room - first < max - n ? room - first : max - n;
		int m = most > 0 ? lane_take(l, most, out + n) : 0;
		n += m;
		room -= m + theirs;
	}
	return n;
}

static int part_take(struct queue *q, struct partition *part, const struct queue_take *take,
    int max, bool overdue, struct weir_event **out)
{
	bool oldest = q->fifo && !take->by_key && q->n_classes > 1;
	bool beside = take->cell;
	int n = oldest   ? (q->map ? queue_take_in_order(q, part, max, out)
				   : part_take_oldest(q, part, max, out))
		: beside ? part_take_beside(q, part, take, max, out)
			 : 0;

	for (int c = 0; !oldest && !beside && c < q->n_classes && n < max; c++) {
		struct lane *l = &part->lane[c];
		n += WEIR_UNLIKELY(q->shortest)
			 ? queue_bins_take(q, l, take, max - n, COHORT_WINDOW, out + n)
		     : take->by_key ? lane_take_key(l, max - n, overdue, out + n)
				    : lane_take(l, max - n, out + n);
		if (take->by_key && n > 0)
			break; /* a cohort has one key and one class */
	}
	part_add(part, -n);
	atomic_store_explicit(&q->length, queue_length(q) - (uint32_t)n, memory_order_relaxed);
	return n;
}

static void note_lengths(const struct queue *q, const struct partition *part, uint32_t *lengths)
    WEIR_REQUIRES(&q->lock)
{
	memset(lengths, 0, WEIR_CLASSES_MAX * sizeof(*lengths));
	for (int c = 0; c < q->n_classes; c++)
		lengths[c] = part->lane[c].n;
}

/* Count the events that have been taken since the lanes had the lengths `before` in `keep`. Their
 * number follows from the lengths, because no event may be touched under the lock. */
static void count_taken(struct queue *q, const struct partition *part, const uint32_t *before)
    WEIR_REQUIRES(&q->lock)
{
	for (int c = 0; c < q->n_classes; c++)
		if (before[c] > part->lane[c].n)
			queue_taken(q, c, (int)(before[c] - part->lane[c].n));
}

static void note_oldest(struct queue *q, const struct partition *part)
{
	const struct weir_event *head = part_head(part, q->n_classes);

	atomic_store_explicit(
	    &q->oldest_ns, head ? head->queued_ns : INT64_MAX, memory_order_relaxed);
}

int queue_pop(struct queue *q, struct queue_take *take, struct weir_event **out)
{
	int n = 0;
	bool overdue = false;
	uint32_t before[WEIR_CLASSES_MAX];

	take->ready_ns = INT64_MAX;
	take->part = 0;
	take->counted = false;
	lock_take(&q->lock);
	int left = q->closed ? INT_MAX : queue_width_left(q);
	struct partition *part = queue_paused(q) || left == 0 ? NULL : part_due(q, take, &overdue);
	if (!part)
		goto out;
	take->ready_ns = INT64_MAX;
	int share = (int)((part->n + (uint32_t)take->sharers - 1) / (uint32_t)take->sharers);
	/* what has been waited for is not divided */
	bool whole = take->by_key || take->linger_ns > 0;
	int max = share < take->max && !whole ? share : take->max;
	max = max < left ? max : left;
	take->counted = queue_keeps(q);
	if (WEIR_UNLIKELY(take->counted))
		note_lengths(q, part, before);
	n = part_take(q, part, take, max, overdue, out);
	if (q->dated)
		note_oldest(q, part);
	if (WEIR_UNLIKELY(q->copy_cores > 0))
		atomic_store_explicit(&part->shown, part->n, memory_order_relaxed);
	if (WEIR_UNLIKELY(take->counted))
		count_taken(q, part, before);
	if (WEIR_UNLIKELY(q->leasing))
		queue_lease_locked(q, part, true);
	part->served = ++q->served;
out:
	lock_release(&q->lock);
	return n;
}

bool queue_unlease(struct queue *q, int part)
{
	lock_take(&q->lock);
	queue_lease_locked(q, &q->part[part], false);
	bool more = q->part[part].n > 0 || q->part[part].back;
	lock_release(&q->lock);
	return more;
}

bool queue_due(struct queue *q, int rank, int n_ranks, uint32_t least)
{
	bool due = false;

	if (WEIR_UNLIKELY(atomic_load(&q->n_back) > 0) && queue_back_due(q, rank, n_ranks))
		return true;
	if (atomic_load(&q->length) < least || queue_paused(q) || queue_width_left(q) == 0)
		return false;
	if (q->n_parts == 1 && !q->leasing)
		return true;
	/* the length has been read with seq_cst, after which all that was pushed before is seen */
	if (q->map)
		return queue_part_length(q, rank) >= least;
	lock_take(&q->lock);
	for (int p = q->n_parts == 1 ? 0 : rank; p < q->n_parts && !due; p += n_ranks)
		due = q->part[p].n >= least && !q->part[p].leased;
	lock_release(&q->lock);
	return due;
}

int64_t queue_oldest_ns(struct queue *q, uint64_t *n)
{
	int64_t oldest = 0;

	lock_take(&q->lock);
	for (int c = 0; n && c < q->n_classes; c++)
		n[c] = 0;
	for (int p = 0; p < q->n_parts; p++) {
		const struct weir_event *head = part_head(&q->part[p], q->n_classes);
		if (head && (oldest == 0 || head->queued_ns < oldest))
			oldest = head->queued_ns;
		for (int c = 0; n && c < q->n_classes; c++)
			n[c] += q->part[p].lane[c].n;
	}
	lock_release(&q->lock);
	return oldest;
}
