/* SPDX-License-Identifier: MIT */
/*
 * Implements the history rings; see history.h. A series has one block of columns for its stage and
 * one for each class. A column holds the values of one field: first the slots of HISTORY_1S, then
 * those of HISTORY_10S. When the classes change, each class block moves with the name of its class.
 *
 * ring.at[slot] is the label of the step that a slot holds, in all series. The first record of a
 * new step therefore clears its slot in every series.
 */
#include "history.h"

#include <stdlib.h>
#include <string.h>

#define COLUMN_SLOTS (HISTORY_SLOTS_1S + HISTORY_SLOTS_10S)
/* Age in seconds at which a removed stage is dropped: by then even the longer ring holds no samples
 * of it. */
#define FORGET_S (HISTORY_SLOTS_10S * 10LL)

struct series {
	char *name;
	bool here;                                 /* present in the last view */
	int64_t newest_s;                          /* Unix time of its last sample */
	uint16_t *own;                             /* SAMPLE_FIELDS columns */
	uint16_t *class_columns[WEIR_CLASSES_MAX]; /* SAMPLE_CLASS_FIELDS columns each */
};

struct ring {
	struct sampler *sampler;
	bool fed;       /* the sampler has samples */
	int64_t newest; /* label of the newest step, INT64_MIN if there is none */
	int64_t *at;    /* label of each slot, INT64_MIN if empty */
};

struct history {
	struct ring ring[HISTORY_RINGS];
	int n_series;
	struct series *series[HISTORY_SERIES_MAX];
	int n_classes;
	char *class_name[WEIR_CLASSES_MAX];
	uint64_t shape;
};

static const int step_s[HISTORY_RINGS] = {1, 10};
static const int slots[HISTORY_RINGS] = {HISTORY_SLOTS_1S, HISTORY_SLOTS_10S};
static const int offset[HISTORY_RINGS] = {0, HISTORY_SLOTS_1S};

/* ---- blocks of columns ---- */

static uint16_t *block_new(int columns)
{
	size_t n = (size_t)columns * COLUMN_SLOTS;
	uint16_t *block = malloc(n * sizeof(*block));

	if (block)
		memset(block, 0xff, n * sizeof(*block)); /* COMPACT_NONE everywhere */
	return block;
}

static void series_free(struct series *s)
{
	if (!s)
		return;
	for (int c = 0; c < WEIR_CLASSES_MAX; c++)
		free(s->class_columns[c]);
	free(s->own);
	free(s->name);
	free(s);
}

static struct series *series_new(const char *name, int n_classes)
{
	struct series *s = calloc(1, sizeof(*s));
	bool ok = s;

	if (!s)
		return NULL;
	s->name = strdup(name);
	s->own = block_new(SAMPLE_FIELDS);
	ok = s->name && s->own;
	for (int c = 0; ok && c < n_classes; c++) {
		s->class_columns[c] = block_new(SAMPLE_CLASS_FIELDS);
		ok = s->class_columns[c];
	}
	if (ok)
		return s;
	series_free(s);
	return NULL;
}

/* Return the column of `field`, which has a number as in history_column. */
static uint16_t *column(const struct series *s, int field)
{
	int f = field - SAMPLE_FIELDS;

	if (f < 0)
		return s->own + (size_t)field * COLUMN_SLOTS;
	return s->class_columns[f / SAMPLE_CLASS_FIELDS] +
	       (size_t)(f % SAMPLE_CLASS_FIELDS) * COLUMN_SLOTS;
}

/* ---- slots ---- */

static int slot_of(enum history_ring r, int64_t label)
{
	int64_t s = label % slots[r];

	return (int)(s < 0 ? s + slots[r] : s);
}

/* Return the slot with the data of step `label`, or -1 if there is none. */
static int find_slot(const struct history *h, enum history_ring r, int64_t label)
{
	const struct ring *ring = &h->ring[r];
	int s = slot_of(r, label);

	if (ring->newest == INT64_MIN || label > ring->newest || label <= ring->newest - slots[r])
		return -1;
	return ring->at[s] == label ? s : -1;
}

static int take_slot(struct history *h, enum history_ring r, int64_t label)
{
	int s = slot_of(r, label), n = history_record(h);

	if (h->ring[r].at[s] == label)
		return s;
	h->ring[r].at[s] = label;
	for (int i = 0; i < h->n_series; i++)
		for (int f = 0; f < n; f++)
			column(h->series[i], f)[offset[r] + s] = COMPACT_NONE;
	return s;
}

static void put_record(struct history *h, enum history_ring r, int slot, struct series *s,
    int64_t label, const uint16_t *record)
{
	int n = history_record(h);

	for (int f = 0; f < n; f++)
		column(s, f)[offset[r] + slot] = record[f];
	if (label * step_s[r] > s->newest_s)
		s->newest_s = label * step_s[r];
}

/* ---- series and classes ---- */

int history_find(const struct history *h, const char *name)
{
	for (int i = 0; i < h->n_series; i++)
		if (strcmp(h->series[i]->name, name) == 0)
			return i;
	return -1;
}

/* Like history_find, but try series `near` first. With hundreds of stages, searching all series for
 * each stage would be expensive. */
static int find_near(const struct history *h, const char *name, int near)
{
	if (near < h->n_series && strcmp(h->series[near]->name, name) == 0)
		return near;
	return history_find(h, name);
}

static void drop_series(struct history *h, int i)
{
	series_free(h->series[i]);
	h->n_series--;
	memmove(&h->series[i], &h->series[i + 1], (size_t)(h->n_series - i) * sizeof(h->series[0]));
	h->shape++;
}

/* Make space for one more series. If the maximum is reached, drop the series whose stage was
 * removed first. Returns false if every series belongs to a stage that is still present. */
static bool make_room(struct history *h)
{
	int oldest = -1;

	if (h->n_series < HISTORY_SERIES_MAX)
		return true;
	for (int i = 0; i < h->n_series; i++)
		if (!h->series[i]->here &&
		    (oldest < 0 || h->series[i]->newest_s < h->series[oldest]->newest_s))
			oldest = i;
	if (oldest >= 0)
		drop_series(h, oldest);
	return oldest >= 0;
}

int history_add(struct history *h, const char *name)
{
	int i = history_find(h, name);

	if (i >= 0)
		return i;
	if (!make_room(h))
		return WEIR_EBUSY;
	struct series *s = series_new(name, h->n_classes);
	if (!s)
		return WEIR_ENOMEM;
	h->series[h->n_series] = s;
	h->shape++;
	return h->n_series++;
}

static bool has_classes(const struct history *h, const char *const *name, int n)
{
	bool same = h->n_classes == n;

	for (int c = 0; same && c < n; c++)
		same = strcmp(h->class_name[c], name[c]) == 0;
	return same;
}

static int find_class(const struct history *h, const char *name)
{
	for (int c = 0; c < h->n_classes; c++)
		if (strcmp(h->class_name[c], name) == 0)
			return c;
	return -1;
}

/* Put the blocks of `s` in the order of the classes name[0..n). fresh[c] is the block of class c if
 * `h` did not have that class, else NULL. Frees the blocks of classes that are gone. */
static void move_classes(
    const struct history *h, struct series *s, const char *const *name, int n, uint16_t **fresh)
{
	uint16_t *old[WEIR_CLASSES_MAX];

	memcpy(old, s->class_columns, sizeof(old));
	memset(s->class_columns, 0, sizeof(old));
	for (int c = 0; c < n; c++) {
		int was = find_class(h, name[c]);
		s->class_columns[c] = was >= 0 ? old[was] : fresh[c];
		if (was >= 0)
			old[was] = NULL;
	}
	for (int c = 0; c < WEIR_CLASSES_MAX; c++)
		free(old[c]);
}

static void free_blocks(uint16_t **block, size_t n)
{
	for (size_t i = 0; block && i < n; i++)
		free(block[i]);
	free(block);
}

int history_set_classes(struct history *h, const char *const *name, int n)
{
	char *copy[WEIR_CLASSES_MAX] = {0};
	size_t n_blocks = (size_t)h->n_series * WEIR_CLASSES_MAX;

	if (has_classes(h, name, n))
		return 0;
	uint16_t **fresh = calloc(n_blocks + 1, sizeof(*fresh));
	bool ok = fresh;
	for (int c = 0; ok && c < n; c++) {
		bool new = find_class(h, name[c]) < 0;
		copy[c] = strdup(name[c]);
		ok = copy[c];
		for (int i = 0; ok && new &&i < h->n_series; i++) {
			fresh[i * WEIR_CLASSES_MAX + c] = block_new(SAMPLE_CLASS_FIELDS);
			ok = fresh[i * WEIR_CLASSES_MAX + c];
		}
	}
	if (!ok) {
		free_blocks(fresh, n_blocks);
		for (int c = 0; c < n; c++)
			free(copy[c]);
		return WEIR_ENOMEM;
	}
	for (int i = 0; i < h->n_series; i++)
		move_classes(h, h->series[i], name, n, fresh + i * WEIR_CLASSES_MAX);
	free(fresh);
	for (int c = 0; c < h->n_classes; c++)
		free(h->class_name[c]);
	memcpy(h->class_name, copy, sizeof(copy));
	h->n_classes = n;
	h->shape++;
	return 0;
}

/* ---- feeding ---- */

static void pack(const struct sample *s, int n_classes, uint16_t *record)
{
	for (int f = 0; f < SAMPLE_FIELDS; f++)
		*record++ = compact_pack(s->v[f]);
	for (int c = 0; c < n_classes; c++)
		for (int f = 0; f < SAMPLE_CLASS_FIELDS; f++)
			*record++ = compact_pack(s->class_v[c][f]);
}

static bool feed_ring(struct history *h, enum history_ring r, const struct weir_graph_view *v)
{
	struct ring *ring = &h->ring[r];
	int64_t label = v->wall_ns / 1000000000 / step_s[r];
	uint16_t record[HISTORY_RECORD_MAX];

	if (ring->fed && label == ring->newest)
		return false;
	if (sampler_take(ring->sampler, v) != 0)
		return false;
	const struct sample *sample = sampler_samples(ring->sampler);
	int slot = take_slot(h, r, label);
	ring->newest = label;
	ring->fed = true;
	for (int i = 0; i < v->n_stages; i++) {
		int k = find_near(h, v->stages[i].name, i);
		if (k < 0 || !sample[i].known)
			continue;
		pack(&sample[i], h->n_classes, record);
		put_record(h, r, slot, h->series[k], label, record);
	}
	return true;
}

/* Record which stages are present, and drop the series of stages that were removed more than
 * FORGET_S ago. */
static void follow_stages(struct history *h, const struct weir_graph_view *v)
{
	for (int i = 0; i < h->n_series; i++)
		h->series[i]->here = false;
	/* Find known stages in the first pass and add new ones in the second. A new stage may drop
	 * series that are not marked `here`, so all known stages must have been marked by then. */
	for (int pass = 0; pass < 2; pass++) {
		for (int i = 0; i < v->n_stages; i++) {
			int k = find_near(h, v->stages[i].name, i);
			if (k < 0 && pass)
				k = history_add(h, v->stages[i].name);
			if (k >= 0)
				h->series[k]->here = true;
		}
	}
	for (int i = h->n_series - 1; i >= 0; i--) {
		struct series *s = h->series[i];
		int64_t now_s = v->wall_ns / 1000000000;
		if (s->newest_s > now_s) /* the clock was ahead and has been set back */
			s->newest_s = now_s;
		if (!s->here && s->newest_s < now_s - FORGET_S)
			drop_series(h, i);
	}
}

unsigned history_feed(struct history *h, const struct weir_graph_view *v)
{
	unsigned got = 0;

	if (history_set_classes(h, v->class_name, v->n_classes) != 0)
		return 0;
	follow_stages(h, v);
	for (int r = 0; r < HISTORY_RINGS; r++)
		got |= feed_ring(h, r, v) ? 1u << r : 0;
	return got;
}

const struct sample *history_samples(const struct history *h, enum history_ring r)
{
	return h->ring[r].fed ? sampler_samples(h->ring[r].sampler) : NULL;
}

/* ---- reading ---- */

int history_step_s(enum history_ring r)
{
	return step_s[r];
}

int history_slots(enum history_ring r)
{
	return slots[r];
}

int64_t history_newest(const struct history *h, enum history_ring r)
{
	return h->ring[r].newest;
}

int history_n_series(const struct history *h)
{
	return h->n_series;
}

const char *history_name(const struct history *h, int series)
{
	return h->series[series]->name;
}

int history_n_classes(const struct history *h)
{
	return h->n_classes;
}

const char *history_class_name(const struct history *h, int class)
{
	return h->class_name[class];
}

void history_column(const struct history *h, enum history_ring r, int series, int field,
    int64_t first, int n, uint16_t *out)
{
	const uint16_t *from = column(h->series[series], field) + offset[r];

	for (int i = 0; i < n; i++) {
		int s = find_slot(h, r, first + i);
		out[i] = s < 0 ? COMPACT_NONE : from[s];
	}
}

uint64_t history_shape(const struct history *h)
{
	return h->shape;
}

int history_record(const struct history *h)
{
	return SAMPLE_FIELDS + h->n_classes * SAMPLE_CLASS_FIELDS;
}

void history_get(
    const struct history *h, enum history_ring r, int64_t label, int series, uint16_t *record)
{
	int n = history_record(h), s = find_slot(h, r, label);

	for (int f = 0; f < n; f++)
		record[f] = s < 0 ? COMPACT_NONE : column(h->series[series], f)[offset[r] + s];
}

void history_put(
    struct history *h, enum history_ring r, int64_t label, int series, const uint16_t *record)
{
	if (label > h->ring[r].newest)
		h->ring[r].newest = label;
	put_record(h, r, take_slot(h, r, label), h->series[series], label, record);
}

size_t history_bytes(const struct history *h)
{
	size_t columns = (size_t)history_record(h) * COLUMN_SLOTS * sizeof(uint16_t);
	size_t n = sizeof(*h) + (size_t)h->n_series * (columns + sizeof(struct series));

	for (int r = 0; r < HISTORY_RINGS; r++)
		n += sampler_bytes(h->ring[r].sampler) + (size_t)slots[r] * sizeof(*h->ring[r].at);
	return n;
}

/* ---- create and free ---- */

struct history *history_new(void)
{
	struct history *h = calloc(1, sizeof(*h));
	bool ok = h;

	for (int r = 0; ok && r < HISTORY_RINGS; r++) {
		struct ring *ring = &h->ring[r];
		*ring = (struct ring){.newest = INT64_MIN, .sampler = sampler_new()};
		ring->at = malloc((size_t)slots[r] * sizeof(*ring->at));
		ok = ring->sampler && ring->at;
		for (int i = 0; ok && i < slots[r]; i++)
			ring->at[i] = INT64_MIN;
	}
	if (ok)
		return h;
	history_free(h);
	return NULL;
}

void history_free(struct history *h)
{
	if (!h)
		return;
	for (int r = 0; r < HISTORY_RINGS; r++) {
		sampler_free(h->ring[r].sampler);
		free(h->ring[r].at);
	}
	for (int i = 0; i < h->n_series; i++)
		series_free(h->series[i]);
	for (int c = 0; c < h->n_classes; c++)
		free(h->class_name[c]);
	free(h);
}
