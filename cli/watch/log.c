/* SPDX-License-Identifier: MIT */
/*
 * log: print controller decisions and operator changes in chronological order. The server's journal
 * of decisions also contains the changes, but without their values. Changes are therefore read from
 * the list of changes, and their copies in the journal are skipped.
 */
#include "cli/act.h"
#include "cli/client/plain.h"

#include <stdlib.h>
#include <string.h>

/* Maximum value of -n. A server stores fewer entries. */
#define LOG_MAX 10000

struct entry {
	double at;
	int age; /* index in the list that the entry is from; the newest has index 0 */
	const json_t *decision, *act; /* exactly one of them is not NULL */
};

/* Compare entries by time. Two entries may have the same time, since the resolution of the clock
 * and the digits in the JSON are limited; they keep the server's order. */
static int by_time(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	if (!x->act != !y->act)
		return x->act ? 1 : -1;
	return y->age - x->age;
}

/* Whether the decision also appears in the list of changes. */
static bool is_act(const json_t *decision)
{
	const char *actor = act_text(decision, "actor");

	return strcmp(actor, "operator") == 0 || strcmp(actor, "expiry") == 0 ||
	       strcmp(actor, "drain") == 0 || strcmp(act_text(decision, "action"), "reload") == 0;
}

/* The mark of what happened in an earlier process. */
static const char *earlier(const json_t *entry)
{
	return json_is_true(json_object_get(entry, "before_restart")) ? "  (before the restart)"
								      : "";
}

static void print_act(const json_t *act)
{
	const json_t *expires = json_object_get(act, "expires_at");
	char at[32];

	const char *from = act_text(act, "from"), *to = act_text(act, "to");

	plain_print(stdout, "%-9s %-9s %s", act_text(act, "actor"), act_text(act, "what"),
	    act_text(act, "target"));
	if (*from)
		plain_print(stdout, ": %s -> %s", from, to);
	else if (*to) /* a reload that replaced the graph has no old value */
		plain_print(stdout, ": %s", to);
	if (json_is_number(expires))
		plain_print(stdout, ", until %s", act_time(at, json_number_value(expires)));
	plain_print(stdout, "%s%s\n",
	    json_is_true(json_object_get(act, "undone")) ? "  (undone)" : "", earlier(act));
}

static void print_decision(const json_t *d)
{
	long long from = json_integer_value(json_object_get(d, "from"));
	long long to = json_integer_value(json_object_get(d, "to"));

	plain_print(stdout, "%-9s %-9s %s: ", act_text(d, "actor"), act_text(d, "action"),
	    act_text(d, "stage"));
	if (from != to)
		plain_print(stdout, "%lld -> %lld, ", from, to);
	plain_print(stdout, "%s%s%s%s%s\n", act_text(d, "rule"), *act_text(d, "limit") ? " (" : "",
	    act_text(d, "limit"), *act_text(d, "limit") ? ")" : "", earlier(d));
}

static int collect(const json_t *decisions, const json_t *changes, struct entry *entry)
{
	int n = 0;

	for (size_t i = 0; i < json_array_size(decisions); i++) {
		const json_t *d = json_array_get(decisions, i);
		if (!is_act(d))
			entry[n++] = (struct entry){
			    json_number_value(json_object_get(d, "time")), (int)i, d, NULL};
	}
	for (size_t i = 0; i < json_array_size(changes); i++) {
		const json_t *a = json_array_get(changes, i);
		entry[n++] =
		    (struct entry){json_number_value(json_object_get(a, "at")), (int)i, NULL, a};
	}
	qsort(entry, (size_t)n, sizeof(*entry), by_time);
	return n;
}

static int print_json(const struct entry *entry, int n)
{
	json_t *list = json_array();

	for (int i = 0; i < n; i++) {
		const json_t *doc = entry[i].act ? entry[i].act : entry[i].decision;
		json_t *one = json_deep_copy(doc);
		json_object_set_new(one, "kind", json_string(entry[i].act ? "act" : "decision"));
		json_array_append_new(list, one);
	}
	return act_print(list);
}

static int print_log(
    const struct verb_args *args, const json_t *decisions, const json_t *changes, int most)
{
	size_t room = json_array_size(decisions) + json_array_size(changes) + 1;
	struct entry *entry = calloc(room, sizeof(*entry));
	char at[32];

	if (!entry)
		return VERB_FINDING;
	int n = collect(decisions, changes, entry), first = n > most ? n - most : 0;
	if (args->json)
		print_json(entry + first, n - first);
	for (int i = first; i < n && !args->json; i++) {
		plain_print(stdout, "%s  ", act_time(at, entry[i].at));
		if (entry[i].act)
			print_act(entry[i].act);
		else
			print_decision(entry[i].decision);
	}
	free(entry);
	return VERB_OK;
}

/* Read pages of `list`, beginning with `path`, until `most` rows have been read or there are no
 * more pages. Returns NULL with *rc set on failure. */
static json_t *read_pages(const struct verb *verb, const struct verb_args *args, const char *path,
    const char *list, size_t most, int *rc)
{
	json_t *all = json_array(), *page = NULL;
	char next[ACT_PATH_MAX];

	snprintf(next, sizeof(next), "%s", path);
	*rc = VERB_OK;
	while (*next && json_array_size(all) < most) {
		*rc = act_ask(verb, args, "GET", next, NULL, &page);
		if (*rc != VERB_OK) {
			json_decref(all);
			return NULL;
		}
		size_t before = json_array_size(all);
		json_array_extend(all, json_object_get(page, list));
		bool more = json_array_size(all) > before;
		snprintf(next, sizeof(next), "%s", more ? act_text(page, "next") : "");
		json_decref(page);
	}
	return all;
}

int verb_log(const struct verb *verb, const struct verb_args *args)
{
	int n = 50, rc;

	if (!act_count(verb, args, LOG_MAX, &n))
		return VERB_USAGE;
	if (args->all)
		n = LOG_MAX;
	/* Of the changes, the newest `n` are enough. Of the decisions, all are read: those that are
	 * copies of changes are skipped, and their number is unknown. */
	json_t *decisions = read_pages(
	    verb, args, "/api/v1/decisions?limit=500", "decisions", (size_t)n + LOG_MAX, &rc);
	if (!decisions)
		return rc;
	json_t *changes =
	    read_pages(verb, args, "/api/v1/changes?limit=500", "changes", (size_t)n, &rc);
	if (changes)
		rc = print_log(args, decisions, changes, n);
	json_decref(decisions);
	json_decref(changes);
	return rc;
}
