/* SPDX-License-Identifier: MIT */
/*
 * Binds a map in the configuration to the struct that a knob table describes. Every error is
 * reported with its position; a member whose value is refused keeps its old value. A key without a
 * value (`key:`) is an error: to get the default, the key must be left out.
 */
#include "base/knob_in.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Maximum number of names considered for "did you mean". 64 is more than any table has. */
#define NAMES_MAX 64

/* If no known name is spelt like an unknown key, names that share at least RELATED_WORDS words with
 * the key are suggested, unless there are more than RELATED_MAX of them. Both are guesses. */
#define RELATED_WORDS 2
#define RELATED_MAX   3

/* Size of a text such as "'queue' of stage 'disk'", which tells in messages where an error is. */
#define WHERE_BYTES 200

static int bind_map(const struct weir_knob *table, const struct weir_node *node, void *base,
    const char *where, struct weir_errs *errs);

static const char *kind_words(enum weir_node_kind kind)
{
	return kind == WEIR_NODE_MAP    ? "a map"
	       : kind == WEIR_NODE_LIST ? "a list"
					: "a single value";
}

static const char *wanted_words(enum weir_knob_type type)
{
	return knob_is_scalar(type)        ? "a single value"
	       : type == WEIR_KNOB_RECORDS ? "a list of maps"
					   : "a list";
}

static bool is_empty(const struct weir_node *node)
{
	return node->kind == WEIR_NODE_SCALAR && !node->quoted && node->text[0] == '\0';
}

/* Report the error `what`. A value with a position is shown with its source line, so `where` is
 * used only for values without a position (--set). */
static int bind_error(const struct weir_node *node, int code, const char *where, const char *what,
    struct weir_errs *errs)
{
	if (node->mark.line > 0)
		return weir_errs_add(errs, &node->mark, code, NULL, "%s", what);
	return weir_errs_add(errs, &node->mark, code, NULL, "%s: %s", where, what);
}

/* Whether `text` is a valid value of `row`. */
static bool takes(const struct weir_knob *row, const char *text)
{
	struct weir_knob here = *row;
	int64_t member[2] = {0}; /* larger than the member of any scalar */
	char why[8];

	here.offset = 0;
	if (!knob_is_scalar(row->type) || weir_knob_parse(&here, text, member, why, sizeof(why)))
		return false;
	knob_clear(&here, member);
	return true;
}

/* Write a hint such as "write queue: { limit: 100 }" for a value that should be a map. Assumes that
 * the value was meant for the first row that accepts it. `key` is "" if the message already names
 * the key. */
static void map_hint(const struct weir_knob *table, const char *key, const struct weir_node *node,
    char *hint, size_t size)
{
	const struct weir_knob *meant = NULL;
	bool one = node->kind == WEIR_NODE_SCALAR && !is_empty(node);

	for (const struct weir_knob *row = table; one && !meant && row->name; row++)
		meant = takes(row, node->text) ? row : NULL;
	snprintf(hint, size, "write %.40s%s{ %.40s: %.60s }", key, *key ? ": " : "",
	    meant ? meant->name : table->name, meant ? node->text : "...");
}

static int wrong_kind(const struct weir_knob *row, const struct weir_node *node, const char *where,
    struct weir_errs *errs)
{
	char hint[sizeof(errs->err[0].hint)];

	if (row->type == WEIR_KNOB_MAP && !is_empty(node)) {
		map_hint(row->fields, row->name, node, hint, sizeof(hint));
		return weir_errs_add(errs, &node->mark, WEIR_EINVAL, hint,
		    "'%s' of %s takes a map, not %s", row->name, where, kind_words(node->kind));
	}
	if (is_empty(node))
		return weir_errs_add(errs, &node->mark, WEIR_EINVAL,
		    row->type == WEIR_KNOB_STRING ? "write \"\" for an empty string" : NULL,
		    "'%s' of %s has no value", row->name, where);
	return weir_errs_add(errs, &node->mark, WEIR_EINVAL, NULL, "'%s' of %s takes %s, not %s",
	    row->name, where, wanted_words(row->type), kind_words(node->kind));
}

/* Free what `value` owns, and zero `value`. The value has the type of `row`, but is not a member of
 * a struct. */
static void clear_value(const struct weir_knob *row, void *value)
{
	struct weir_knob here = *row;

	here.offset = 0;
	knob_clear(&here, value);
}

static int bind_string(const struct weir_knob *row, const struct weir_node *item,
    struct weir_strings *list, const char *where, struct weir_errs *errs)
{
	if (item->kind != WEIR_NODE_SCALAR || is_empty(item))
		return weir_errs_add(errs, &item->mark, WEIR_EINVAL, NULL,
		    "an entry of '%s' of %s must be a string", row->name, where);
	if (knob_strings_add(list, item->text, strlen(item->text)) != 0)
		return bind_error(item, WEIR_ENOMEM, where, weir_error_text(WEIR_ENOMEM), errs);
	return 0;
}

static int bind_strings(const struct weir_knob *row, const struct weir_node *node, void *base,
    const char *where, struct weir_errs *errs)
{
	struct weir_strings list = {0};
	int rc = 0;

	if (node->kind == WEIR_NODE_SCALAR) /* a single string is treated as a list of one */
		rc = bind_string(row, node, &list, where, errs);
	for (int i = 0; node->kind == WEIR_NODE_LIST && i < node->n; i++) {
		int one = bind_string(row, node->item[i], &list, where, errs);
		rc = rc != 0 ? rc : one;
	}
	if (rc != 0) {
		clear_value(row, &list);
		return rc;
	}
	knob_clear(row, base);
	*(struct weir_strings *)knob_member(row, base) = list;
	return 0;
}

static int bind_record(const struct weir_knob *row, const struct weir_node *item, int number,
    void *record, const char *where, struct weir_errs *errs)
{
	char here[WHERE_BYTES];

	snprintf(here, sizeof(here), "entry %d of '%.40s' of %.120s", number, row->name, where);
	if (item->kind != WEIR_NODE_MAP)
		return weir_errs_add(
		    errs, &item->mark, WEIR_EINVAL, NULL, "%s must be a map", here);
	int rc = weir_knobs_init(row->fields, record);
	if (rc != 0)
		return bind_error(item, rc, where, weir_error_text(rc), errs);
	return bind_map(row->fields, item, record, here, errs);
}

static int bind_records(const struct weir_knob *row, const struct weir_node *node, void *base,
    const char *where, struct weir_errs *errs)
{
	struct weir_records list = {0};
	int rc = 0;

	if (node->n > 0) {
		list.items = calloc((size_t)node->n, row->record_size);
		if (!list.items)
			return bind_error(
			    node, WEIR_ENOMEM, where, weir_error_text(WEIR_ENOMEM), errs);
	}
	for (; list.n < node->n; list.n++) {
		int one = bind_record(row, node->item[list.n], list.n + 1,
		    list.items + (size_t)list.n * row->record_size, where, errs);
		rc = rc != 0 ? rc : one;
	}
	if (rc != 0) {
		clear_value(row, &list);
		return rc;
	}
	knob_clear(row, base);
	*(struct weir_records *)knob_member(row, base) = list;
	return 0;
}

static int bind_scalar(const struct weir_knob *row, const struct weir_node *node, void *base,
    const char *where, struct weir_errs *errs)
{
	char why[sizeof(errs->err[0].text)], here[WHERE_BYTES];

	int rc = weir_knob_parse(row, node->text, base, why, sizeof(why));
	snprintf(here, sizeof(here), "'%.40s' of %.120s", row->name, where);
	return rc == 0 ? 0 : bind_error(node, rc, here, why, errs);
}

static int bind_row(const struct weir_knob *row, const struct weir_node *node, void *base,
    const char *where, struct weir_errs *errs)
{
	bool scalar = node->kind == WEIR_NODE_SCALAR && !is_empty(node);
	char here[WHERE_BYTES];

	if (knob_is_scalar(row->type) && scalar)
		return bind_scalar(row, node, base, where, errs);
	if (row->type == WEIR_KNOB_STRINGS && (scalar || node->kind == WEIR_NODE_LIST))
		return bind_strings(row, node, base, where, errs);
	if (row->type == WEIR_KNOB_RECORDS && node->kind == WEIR_NODE_LIST)
		return bind_records(row, node, base, where, errs);
	if (row->type != WEIR_KNOB_MAP || node->kind != WEIR_NODE_MAP)
		return wrong_kind(row, node, where, errs);
	snprintf(here, sizeof(here), "'%.40s' of %.120s", row->name, where);
	return bind_map(row->fields, node, knob_member(row, base), here, errs);
}

/* Return the length of the first word of a name such as max_per_address. */
static size_t word_of(const char *s)
{
	return strcspn(s, "_");
}

/* Whether two words are equal, or one is a prefix of at least three letters of the other, as "conn"
 * is of "connections". */
static bool is_word(const char *a, size_t na, const char *b, size_t nb)
{
	size_t n = na < nb ? na : nb;

	return n > 0 && (na == nb || n >= 3) && strncasecmp(a, b, n) == 0;
}

/* Return the number of words of `key` that match a word of `name` (is_word). */
static int words_shared(const char *key, const char *name)
{
	int shared = 0;

	for (const char *k = key; *k; k += word_of(k), k += *k == '_') {
		bool found = false;
		for (const char *w = name; *w && !found; w += word_of(w), w += *w == '_')
			found = is_word(k, word_of(k), w, word_of(w));
		shared += found;
	}
	return shared;
}

/* Suggest the names that share the most words with `key`, at least RELATED_WORDS, unless there are
 * more than RELATED_MAX. Returns whether it suggested any. */
static bool related_hint(struct text_out *out, const char *const *names, int n, const char *key)
{
	int best = RELATED_WORDS, count = 0;

	for (int i = 0; i < n; i++) {
		int shared = words_shared(key, names[i]);
		count = shared > best ? 1 : count + (shared == best);
		best = shared > best ? shared : best;
	}
	if (count == 0 || count > RELATED_MAX)
		return false;
	for (int i = 0, k = 0; i < n; i++) {
		if (words_shared(key, names[i]) != best)
			continue;
		text_put(out, k == 0 ? "did you mean '" : k + 1 == count ? "' or '" : "', '");
		text_put(out, names[i]);
		k++;
	}
	text_put(out, "'?");
	text_end(out);
	return true;
}

/* List as many of the known names as fit without being truncated. */
static void known_hint(struct text_out *out, const char *const *names, int n)
{
	static const char more[] = ", ...";

	text_put(out, n > 0 ? "known here: " : "no keys are allowed here");
	for (int i = 0; i < n; i++) {
		size_t need = out->len + 2 + strlen(names[i]) + (i + 1 < n ? sizeof(more) - 1 : 0);
		if (i > 0 && need >= out->size) {
			text_put(out, more);
			break;
		}
		text_put(out, i > 0 ? ", " : "");
		text_put(out, names[i]);
	}
	text_end(out);
}

/* Suggest the known key that is spelt most like `key`. If there is none, suggest related keys
 * (related_hint), or else list the known keys. No similar spelling is suggested for a number, since
 * 500 is not a typo for 400. */
static void unknown_hint(const struct weir_knob *table, const char *key, char *hint, size_t size)
{
	struct text_out out = {hint, size, 0};
	const char *names[NAMES_MAX];
	int n = 0;

	for (const struct weir_knob *row = table; row && row->name && n < NAMES_MAX; row++)
		names[n++] = row->name;
	bool number = key[strspn(key, "0123456789")] == '\0';
	const char *nearest = number ? NULL : weir_nearest(key, names, n);
	if (nearest)
		snprintf(hint, size, "did you mean '%s'?", nearest);
	else if (!related_hint(&out, names, n, key))
		known_hint(&out, names, n);
}

static int unknown_key(const struct weir_knob *table, const struct weir_node *name,
    const char *where, struct weir_errs *errs)
{
	char hint[sizeof(errs->err[0].hint)];

	unknown_hint(table, name->text, hint, sizeof(hint));
	return weir_errs_add(
	    errs, &name->mark, WEIR_EINVAL, hint, "unknown key '%s' in %s", name->text, where);
}

static int find_missing(const struct weir_knob *table, const struct weir_node *node,
    const char *where, struct weir_errs *errs)
{
	char hint[sizeof(errs->err[0].hint)];
	int rc = 0;

	for (const struct weir_knob *row = table; row && row->name; row++) {
		if (!(row->flags & WEIR_KNOB_REQUIRED) || weir_node_get(node, row->name))
			continue;
		snprintf(hint, sizeof(hint), "%s: %s", row->name, row->help ? row->help : "");
		rc = weir_errs_add(errs, node ? &node->mark : NULL, WEIR_EINVAL,
		    row->help ? hint : NULL, "%s needs the key '%s'", where, row->name);
	}
	return rc;
}

static int bind_map(const struct weir_knob *table, const struct weir_node *node, void *base,
    const char *where, struct weir_errs *errs)
{
	int rc = 0;

	for (int i = 0; node && i < node->n; i++) {
		const struct weir_knob *row = weir_knob_find(table, node->name[i]->text);
		if (!row && strncmp(node->name[i]->text, "x-", 2) == 0)
			continue; /* keys that begin with "x-" are notes of the user */
		int one = row ? bind_row(row, node->item[i], base, where, errs)
			      : unknown_key(table, node->name[i], where, errs);
		rc = rc != 0 ? rc : one;
	}
	int missing = find_missing(table, node, where, errs);
	return rc != 0 ? rc : missing;
}

int weir_knobs_bind(const struct weir_knob *table, const struct weir_node *node, void *base,
    const char *where, struct weir_errs *errs)
{
	char hint[sizeof(errs->err[0].hint)] = "";

	if (node && node->kind != WEIR_NODE_MAP) {
		if (table && table->name)
			map_hint(table, "", node, hint, sizeof(hint));
		return weir_errs_add(errs, &node->mark, WEIR_EINVAL, hint,
		    "%s must be a map, not %s", where,
		    is_empty(node) ? "empty" : kind_words(node->kind));
	}
	return bind_map(table, node, base, where, errs);
}
