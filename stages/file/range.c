/* SPDX-License-Identifier: MIT */
/*
 * Parses and merges byte ranges. See range.h.
 *
 * However a client repeats, nests or orders its ranges, the response never contains a byte of the
 * file twice and never has more than RANGE_MAX parts, because each range is merged with those it
 * touches as soon as it is parsed.
 */
#include "range.h"

#include <stdbool.h>
#include <strings.h>

#include "text/ows.h"

/* Parse the digits at *p into *value, saturating at INT64_MAX. Returns false if there are none. */
static bool range_number(const char **p, const char *end, int64_t *value)
{
	const char *start = *p;
	int64_t v = 0;

	for (; *p < end && **p >= '0' && **p <= '9'; (*p)++)
		if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, **p - '0', &v))
			v = INT64_MAX;
	*value = v;
	return *p > start;
}

/* Parse "first-last", "first-" or "-suffix" at *p; a missing number becomes -1. */
static bool range_one(const char **p, const char *end, int64_t *first, int64_t *last)
{
	if (!range_number(p, end, first))
		*first = -1;
	if (*p == end || **p != '-')
		return false;
	(*p)++;
	if (!range_number(p, end, last))
		*last = -1;
	return (*first >= 0 || *last >= 0) && (*first < 0 || *last < 0 || *first <= *last);
}

/* Clip [first, last] to the file. Returns false if nothing is left. */
static bool range_resolve(int64_t first, int64_t last, int64_t size_bytes, struct byte_range *r)
{
	if (first < 0) { /* a suffix: the last `last` bytes */
		first = last < size_bytes ? size_bytes - last : 0;
		last = last > 0 ? size_bytes - 1 : -1;
	} else if (last < 0 || last >= size_bytes) {
		last = size_bytes - 1;
	}
	*r = (struct byte_range){first, last - first + 1};
	return first < size_bytes && r->length > 0;
}

static bool range_meets(const struct byte_range *a, const struct byte_range *b)
{
	const struct byte_range *low = a->offset <= b->offset ? a : b, *high = low == a ? b : a;

	return high->offset <= low->offset + low->length;
}

static void range_join(struct byte_range *a, const struct byte_range *b)
{
	int64_t a_end = a->offset + a->length, b_end = b->offset + b->length;

	if (b->offset < a->offset)
		a->offset = b->offset;
	a->length = (a_end > b_end ? a_end : b_end) - a->offset;
}

/* Remove the first range that `r` overlaps or touches and merge it into `r`. Returns the index that
 * it had, or -1 if there is none. */
static int range_absorb(struct range_set *set, struct byte_range *r)
{
	for (int i = 0; i < set->n; i++) {
		if (!range_meets(&set->range[i], r))
			continue;
		range_join(r, &set->range[i]);
		for (int k = i + 1; k < set->n; k++)
			set->range[k - 1] = set->range[k];
		set->n--;
		return i;
	}
	return -1;
}

/* Add `r` at the position of the first range that it overlaps or touches. The set must have at most
 * RANGE_MAX - 1 ranges. */
static void range_add(struct range_set *set, struct byte_range r)
{
	int at = set->n;

	for (int i = range_absorb(set, &r); i >= 0; i = range_absorb(set, &r))
		at = i < at ? i : at;
	for (int k = set->n; k > at; k--)
		set->range[k] = set->range[k - 1];
	set->range[at] = r;
	set->n++;
}

/* Parse the list after "bytes=". Returns false if it is malformed or too long. */
static bool range_list(const char *p, const char *end, int64_t size_bytes, struct range_set *set)
{
	int asked = 0;

	if (p < end && ows_is(*p))
		return false;
	for (;;) {
		int64_t first, last;
		struct byte_range r;
		while (p < end && (ows_is(*p) || *p == ',')) /* empty elements are legal */
			p++;
		if (p == end)
			return asked > 0;
		if (++asked > RANGE_MAX || !range_one(&p, end, &first, &last))
			return false;
		if (range_resolve(first, last, size_bytes, &r))
			range_add(set, r);
		while (p < end && ows_is(*p))
			p++;
		if (p < end && *p != ',')
			return false;
	}
}

int range_read(struct weir_slice text, int64_t size_bytes, struct range_set *set)
{
	static const char unit[] = "bytes=";
	size_t n = sizeof(unit) - 1;

	set->n = 0;
	if (size_bytes == 0 || text.n <= n || strncasecmp(text.p, unit, n) != 0 ||
	    !range_list(text.p + n, text.p + text.n, size_bytes, set))
		return 200;
	if (set->n == 0)
		return 416;
	return 206;
}
