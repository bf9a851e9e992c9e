/* SPDX-License-Identifier: MIT */
/*
 * Reads the history file as a whole. All sizes are computed from the header and checked against the
 * size of the file before any data is used.
 */
#include "history_format.h"

#include <stdlib.h>
#include <string.h>

#include "admin/text/utf8.h"
#include "kept_file.h"

/* Larger files are not read. A file with HISTORY_SERIES_MAX stages and 8 classes is smaller. */
#define FILE_BYTES_MAX (100 << 20)

static const char *check_head(const struct history_head *h, const char *data, size_t n)
{
	struct history_head zero = *h;

	if (memcmp(h->magic, HISTORY_MAGIC, sizeof(h->magic)) != 0)
		return "it is not a history of weir";
	if (h->version != HISTORY_VERSION || h->fields != SAMPLE_FIELDS ||
	    h->class_fields != SAMPLE_CLASS_FIELDS || h->slots[HISTORY_1S] != HISTORY_SLOTS_1S ||
	    h->slots[HISTORY_10S] != HISTORY_SLOTS_10S)
		return "it was written by another version";
	if (h->n_stages > HISTORY_SERIES_MAX || h->n_classes > WEIR_CLASSES_MAX ||
	    h->head_bytes < sizeof(*h) || h->head_bytes > n || h->head_bytes % 8 != 0 ||
	    n != history_file_size(h->head_bytes, history_slot_size(h->n_stages, h->n_classes)))
		return "its size does not match its header";
	zero.sum = 0;
	uint64_t sum = history_sum(&zero, sizeof(zero)) ^
		       history_sum(data + sizeof(zero), h->head_bytes - sizeof(zero));
	return sum == h->sum ? NULL : "its header is damaged";
}

/* Return the next name before `end`, or NULL if there is none or it is invalid. */
static const char *take_name(const char **p, const char *end)
{
	const char *name = *p;
	const char *nul = memchr(name, '\0', (size_t)(end - name));

	if (!nul || nul == name || nul - name >= HISTORY_NAME_MAX)
		return NULL;
	if (!utf8_whole(name)) /* could not be written as JSON */
		return NULL;
	*p = nul + 1;
	return name;
}

/* Add the names to `h`, and store the index of each stage in series[n_stages]. Returns NULL, or the
 * reason for a failure. */
static const char *take_names(
    struct history *h, const struct history_head *head, const char *data, int *series)
{
	const char *p = data + sizeof(*head), *end = data + head->head_bytes;
	const char *class[WEIR_CLASSES_MAX];

	for (uint32_t c = 0; c < head->n_classes; c++)
		if (!(class[c] = take_name(&p, end)))
			return "the names of its classes are damaged";
	if (history_set_classes(h, class, (int)head->n_classes) != 0)
		return kept_no_memory;
	for (uint32_t i = 0; i < head->n_stages; i++) {
		const char *name = take_name(&p, end);
		if (!name)
			return "the names of its stages are damaged";
		series[i] = history_add(h, name);
		if (series[i] < 0)
			return kept_no_memory;
	}
	return NULL;
}

/* Return whether the record has only gaps, because the stage did not exist. */
static bool is_empty(const uint16_t *record, int n)
{
	for (int i = 0; i < n; i++)
		if (record[i] != COMPACT_NONE)
			return false;
	return true;
}

static void take_slot(
    struct history *h, enum history_ring ring, const char *slot, size_t size, const int *series)
{
	struct history_slot_head head;
	uint16_t record[HISTORY_RECORD_MAX];
	int n = history_record(h), n_series = history_n_series(h);
	const char *p = slot + sizeof(head);

	memcpy(&head, slot, sizeof(head));
	if (head.sum != history_sum(slot + sizeof(head.sum), size - sizeof(head.sum)) ||
	    head.label < 0 || head.label > INT64_MAX / 100)
		return;
	for (int i = 0; i < n_series; i++, p += (size_t)n * sizeof(*record)) {
		memcpy(record, p, (size_t)n * sizeof(*record));
		if (!is_empty(record, n))
			history_put(h, ring, head.label, series[i], record);
	}
}

/* Load data[n] into `h`. Returns NULL, or the reason why the data is not a valid history. */
static const char *take_all(struct history *h, const char *data, size_t n)
{
	struct history_head head;
	int series[HISTORY_SERIES_MAX] = {0};

	if (n < sizeof(head))
		return "it is truncated";
	memcpy(&head, data, sizeof(head));
	const char *why = check_head(&head, data, n);
	if (!why)
		why = take_names(h, &head, data, series);
	if (why)
		return why;
	if (history_n_series(h) != (int)head.n_stages)
		return "its names are damaged";
	size_t size = history_slot_size(head.n_stages, head.n_classes);
	const char *p = data + head.head_bytes;
	for (int r = 0; r < HISTORY_RINGS; r++)
		for (int i = 0; i < history_slots(r); i++, p += size)
			take_slot(h, r, p, size, series);
	return NULL;
}

const char *history_load(int fd, uint64_t size, struct history *h)
{
	if (size > FILE_BYTES_MAX)
		return "it is larger than any history";
	char *data = malloc(size);
	const char *why = kept_no_memory;
	if (data)
		why = kept_read_all(fd, data, size) ? take_all(h, data, size) : "it cannot be read";
	free(data);
	return why;
}
