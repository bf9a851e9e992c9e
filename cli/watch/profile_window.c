/* SPDX-License-Identifier: MIT */
/*
 * Subtracts two profiles; see profile.h and docs/api.md.
 *
 * The mean length of a queue is the sum of the waits that ended in the window, divided by its
 * length: the rate at which events are begun times their mean wait (Little's law, 1961). The longest
 * wait is the bound of the highest bucket that has grown.
 */
#include "profile.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "framework/base/json.h"

static double number(const json_t *map, const char *key)
{
	return json_number_value(json_object_get(map, key));
}

static const char *text(const json_t *map, const char *key)
{
	const char *s = json_string_value(json_object_get(map, key));

	return s ? s : "";
}

/* Return the growth of a total. It never shrinks in a server; a made-up answer must do no harm. */
static double grown(const json_t *then, const json_t *now, const char *key)
{
	double by = number(now, key) - number(then, key);

	return by > 0 ? by : 0;
}

/* Return a count as an integer; a value that no server counts to is replaced by the largest exact
 * integer. */
static json_int_t whole(double n)
{
	return n > 0 ? (json_int_t)(n < 9007199254740991.0 ? n : 9007199254740991.0) : 0;
}

static json_t *count(const json_t *then, const json_t *now, const char *key)
{
	return json_integer(whole(grown(then, now, key)));
}

static bool same(const json_t *a, const json_t *b, const char *const *keys)
{
	for (; *keys; keys++)
		if (strcmp(text(a, *keys), text(b, *keys)) != 0)
			return false;
	return true;
}

/* Return the element of `list` with the same values of `keys` as `like`, or NULL. */
static const json_t *find(const json_t *list, const json_t *like, const char *const *keys)
{
	for (size_t i = 0; i < json_array_size(list); i++)
		if (same(json_array_get(list, i), like, keys))
			return json_array_get(list, i);
	return NULL;
}

/* Return the number of events in the bucket with the bound of `like`. */
static double in_bucket(const json_t *buckets, const json_t *like)
{
	for (size_t i = 0; i < json_array_size(buckets); i++) {
		const json_t *b = json_array_get(buckets, i);
		if (json_equal(json_array_get(b, 0), json_array_get(like, 0)))
			return json_number_value(json_array_get(b, 1));
	}
	return 0;
}

/* Return the bound of the highest bucket that has grown: null if none has, or above 100 s. */
static json_t *longest(const json_t *then, const json_t *now)
{
	for (size_t i = json_array_size(now); i-- > 0;) {
		const json_t *b = json_array_get(now, i);
		if (json_number_value(json_array_get(b, 1)) > in_bucket(then, b))
			return json_is_number(json_array_get(b, 0))
				   ? json_copy(json_array_get(b, 0))
				   : json_null();
	}
	return json_null();
}

static json_t *mean(double sum, double n)
{
	return n > 0 ? json_real(sum / n) : json_null();
}

static json_t *row_window(const json_t *then, const json_t *now, double span_s)
{
	static const char *const counts[] = {"offered", "refused", "started", "restarted",
	    "put_back", "dropped", "completed", "failed", "shed", "spawned", "departed", "batches"};
	const json_t *a = json_object_get(then, "wait_seconds");
	const json_t *b = json_object_get(now, "wait_seconds");
	double waits = grown(a, b, "count"), again = grown(then, now, "restarted_total");
	json_t *row = json_pack("{s:s, s:s, s:f}", "on", text(now, "on"), "kind", text(now, "kind"),
	    "queue_mean", span_s > 0 ? grown(a, b, "sum") / span_s : 0.0);

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		char key[32];
		snprintf(key, sizeof(key), "%s_total", counts[i]);
		json_put(&row, counts[i], count(then, now, key));
	}
	json_put(&row, "busy_seconds", json_real(grown(then, now, "busy_seconds_total")));
	json_put(&row, "waits", json_integer(whole(waits)));
	json_put(&row, "wait_mean", mean(grown(a, b, "sum"), waits));
	json_put(&row, "restarted_wait_mean", mean(grown(a, b, "restarted_sum"), again));
	json_put(&row, "wait_longest",
	    longest(json_object_get(a, "buckets"), json_object_get(b, "buckets")));
	return row;
}

static json_t *stage_window(const json_t *then, const json_t *now, double span_s)
{
	static const char *const keys[] = {"on", NULL};
	const json_t *was = json_object_get(then, "rows"), *rows = json_object_get(now, "rows");
	json_t *list = json_array();

	for (size_t i = 0; i < json_array_size(rows); i++) {
		const json_t *row = json_array_get(rows, i);
		json_push(&list, row_window(find(was, row, keys), row, span_s));
	}
	return json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:o}", "name", text(now, "name"),
	    "placement", text(now, "placement"), "group", text(now, "group"), "waiting",
	    whole(number(now, "waiting")), "running", whole(number(now, "running")), "held",
	    whole(number(now, "held")), "awaiting", whole(number(now, "awaiting")), "rows", list);
}

static json_t *arc_window(const json_t *then, const json_t *now)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:o, s:o}", "from", text(now, "from"), "outlet",
	    text(now, "outlet"), "to", text(now, "to"), "on", text(now, "on"), "sent",
	    count(then, now, "sent_total"), "offered", count(then, now, "offered_total"));
}

json_t *profile_window(const json_t *then, const json_t *now)
{
	static const char *const name[] = {"name", NULL};
	static const char *const arc[] = {"from", "outlet", "on", NULL};
	const json_t *stages = json_object_get(now, "stages"), *arcs = json_object_get(now, "arcs");
	bool replaced = !json_equal(json_object_get(then, "since"), json_object_get(now, "since"));
	json_t *stage_list = json_array(), *arc_list = json_array();

	if (replaced)
		then = NULL;
	double span_s = number(now, "counted_seconds") - number(then, "counted_seconds");
	for (size_t i = 0; i < json_array_size(stages); i++) {
		const json_t *s = json_array_get(stages, i);
		json_push(&stage_list,
		    stage_window(find(json_object_get(then, "stages"), s, name), s, span_s));
	}
	for (size_t i = 0; i < json_array_size(arcs); i++) {
		const json_t *a = json_array_get(arcs, i);
		json_push(&arc_list, arc_window(find(json_object_get(then, "arcs"), a, arc), a));
	}
	json_t *doc = json_pack("{s:s, s:f, s:f, s:b, s:o, s:o}", "name", text(now, "name"), "time",
	    number(now, "time"), "seconds", span_s, "replaced", replaced, "stages", stage_list,
	    "arcs", arc_list);
	if (json_is_array(stages) && json_is_array(arcs))
		return doc;
	json_decref(doc);
	return NULL;
}
