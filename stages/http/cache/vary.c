/* SPDX-License-Identifier: MIT */
/*
 * Variants: which fields an answer depends on, and the values that a request has for them (RFC 9111, 4.1).
 *
 * Values are brought into a normal form where two spellings mean the same: lists of what a client accepts
 * are in lower case and sorted, since their order says nothing. A field that was sent in several lines is one
 * list. A field that is missing differs from one that is empty.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "http/cache/control.h"
#include "http/cache/key.h"
#include "http/message/guard.h"

/* Members of a list that are sorted; longer lists are compared as sent. */
#define MEMBERS_MAX 32

static bool is_one_of(struct weir_slice name, const char *const *names)
{
	for (; *names; names++)
		if (weir_slice_is(name, *names))
			return true;
	return false;
}

/* The position in v->names where `name` belongs, and whether it is there. */
static size_t place_of(const struct hcache_vary *v, struct weir_slice name, bool *there)
{
	size_t at = 0;

	*there = false;
	while (at < v->n) {
		const char *p = v->names + at;
		size_t n = (size_t)((const char *)memchr(p, '\n', v->n - at) - p);
		int order = strncasecmp(p, name.p, n < name.n ? n : name.n);
		if (order > 0 || (order == 0 && n > name.n))
			return at;
		if (order == 0 && n == name.n) {
			*there = true;
			return at;
		}
		at += n + 1;
	}
	return at;
}

static void insert(struct hcache_vary *v, struct weir_slice name)
{
	bool there;
	size_t at = place_of(v, name, &there), count = 0;

	if (there)
		return;
	for (size_t i = 0; i < v->n; i++)
		count += v->names[i] == '\n';
	if (count >= HCACHE_VARY_NAMES || name.n + 1 > sizeof(v->names) - v->n) {
		v->any = true;
		return;
	}
	memmove(v->names + at + name.n + 1, v->names + at, v->n - at);
	for (size_t i = 0; i < name.n; i++) {
		char c = name.p[i];
		v->names[at + i] = c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
	}
	v->names[at + name.n] = '\n';
	v->n += name.n + 1;
}

void hcache_vary_add(struct hcache_vary *v, struct weir_slice line)
{
	/* http.client writes these from host and scheme, which are in the key */
	static const char *const keyed[] = {"host", "x-forwarded-host", "x-forwarded-proto", NULL};
	/* and these from the address, or anew for each request */
	static const char *const each[] = {"*", "forwarded", "x-forwarded-for", "x-real-ip", "via",
	    "traceparent", "x-deadline-ms", NULL};
	struct weir_slice name;

	while (line.n > 0 && hcache_member_next(&line, &name)) {
		if (is_one_of(name, each) || guard_span(name.p, name.n, GUARD_TOKEN) != name.n)
			v->any = true;
		else if (!is_one_of(name, keyed) && !hcache_is_unkeyed(name))
			insert(v, name);
	}
}

void hcache_vary_join(struct hcache_vary *v, struct weir_slice names)
{
	while (names.n > 0) {
		const char *eol = memchr(names.p, '\n', names.n);
		size_t n = (size_t)(eol - names.p);
		insert(v, (struct weir_slice){names.p, n});
		names = (struct weir_slice){eol + 1, names.n - n - 1};
	}
}

/* ---- values ---- */

struct value {
	size_t n; /* bytes of `text` */
	bool sent;
	char text[HCACHE_KEY_MAX];
};

static bool value_put(struct value *v, const char *p, size_t n)
{
	if (n > sizeof(v->text) - v->n)
		return false;
	if (n > 0)
		memcpy(v->text + v->n, p, n);
	v->n += n;
	return true;
}

/* All lines of a field, as one list. */
static bool value_collect(
    struct value *v, const struct weir_http_request *req, struct weir_slice name)
{
	v->n = 0;
	v->sent = false;
	for (int i = 0; i < req->n_headers; i++) {
		const struct weir_http_header *h = &req->headers[i];
		if (h->name.n != name.n || strncasecmp(h->name.p, name.p, name.n) != 0)
			continue;
		if ((v->sent && !value_put(v, ",", 1)) || !value_put(v, h->value.p, h->value.n))
			return false;
		v->sent = true;
	}
	return true;
}

static int compare(const void *a, const void *b)
{
	const struct weir_slice *x = a, *y = b;
	int order = memcmp(x->p, y->p, x->n < y->n ? x->n : y->n);

	return order != 0 ? order : (x->n > y->n) - (x->n < y->n);
}

static bool is_delimiter(char c)
{
	return c == ',' || c == ';' || c == '=';
}

/* Remove white space at the ends and next to delimiters, and change letters to lower case, outside of
 * quotes. */
static void value_fold(struct value *v)
{
	size_t to = 0;
	bool quoted = false;

	for (size_t i = 0; i < v->n; i++) {
		char c = v->text[i];
		quoted ^= c == '"';
		if (!quoted && (c == ' ' || c == '\t')) {
			size_t next = i;
			while (next < v->n && (v->text[next] == ' ' || v->text[next] == '\t'))
				next++;
			i = next - 1;
			if (to == 0 || next == v->n || is_delimiter(v->text[to - 1]) ||
			    is_delimiter(v->text[next]))
				continue;
			c = ' ';
		}
		v->text[to++] = !quoted && c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
	}
	v->n = to;
}

/* Bring a list of what the client accepts into normal form. */
static void value_sort(struct value *v)
{
	static _Thread_local struct value sorted;
	struct weir_slice member[MEMBERS_MAX];
	int n = 0;

	value_fold(v);
	struct weir_slice rest = {v->text, v->n};
	while (rest.n > 0 && n < MEMBERS_MAX && hcache_member_next(&rest, &member[n]))
		n++;
	if (n == MEMBERS_MAX)
		return;
	qsort(member, (size_t)n, sizeof(member[0]), compare);
	sorted.n = 0;
	for (int i = 0; i < n; i++) {
		bool fits = (i == 0 || value_put(&sorted, ",", 1)) &&
			    value_put(&sorted, member[i].p, member[i].n);
		if (!fits)
			return;
	}
	memcpy(v->text, sorted.text, sorted.n);
	v->n = sorted.n;
}

static bool key_put(struct hcache_key *k, const char *p, size_t n)
{
	if (n > sizeof(k->p) - k->n)
		return false;
	if (n > 0)
		memcpy(k->p + k->n, p, n);
	k->n += n;
	return true;
}

static bool key_put_value(
    struct hcache_key *k, const struct weir_http_request *req, struct weir_slice name)
{
	/* not Accept-Language, of which many origins take the first */
	static const char *const lists[] = {"accept", "accept-charset", "accept-encoding", NULL};
	static _Thread_local struct value v;

	if (!value_collect(&v, req, name))
		return false;
	if (is_one_of(name, lists))
		value_sort(&v);
	return key_put(k, "\n", 1) && key_put(k, name.p, name.n) &&
	       (!v.sent || (key_put(k, ":", 1) && key_put(k, v.text, v.n)));
}

bool hcache_key_vary(
    struct hcache_key *k, const struct weir_http_request *req, struct weir_slice names, uint64_t id)
{
	size_t before = k->n;
	bool good = key_put(k, "\n#", 2) && key_put(k, (const char *)&id, sizeof(id));

	while (good && names.n > 0) {
		const char *eol = memchr(names.p, '\n', names.n);
		size_t n = (size_t)(eol - names.p);
		good = key_put_value(k, req, (struct weir_slice){names.p, n});
		names = (struct weir_slice){eol + 1, names.n - n - 1};
	}
	if (!good)
		k->n = before;
	return good;
}
