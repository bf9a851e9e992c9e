/* SPDX-License-Identifier: MIT */
/* Finds certificates by name; see tls_names.h. */
#include "net/tls/tls_names.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

const char *tls_names_add(struct tls_names *names, int cert, const char *p, size_t n)
{
	struct tls_name *more = realloc(names->name, ((size_t)names->n + 1) * sizeof(*more));
	char *text = strndup(p, n);

	if (more)
		names->name = more;
	if (!more || !text) {
		free(text);
		return NULL;
	}
	for (char *c = text; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	names->name[names->n++] = (struct tls_name){text, cert};
	return text;
}

static int by_text(const void *a, const void *b)
{
	const struct tls_name *x = a, *y = b;
	int order = strcmp(x->text, y->text);

	return order != 0 ? order : x->cert - y->cert;
}

void tls_names_sort(struct tls_names *names)
{
	if (names->n > 0)
		qsort(names->name, (size_t)names->n, sizeof(*names->name), by_text);
}

/* Return the index of the first name that is not sorted before `text` of `cert`. */
static int lower_bound(const struct tls_names *names, const char *text, int cert)
{
	const struct tls_name wanted = {(char *)(size_t)text, cert};
	int from = 0, to = names->n;

	while (from < to) {
		int mid = from + (to - from) / 2;
		if (by_text(&names->name[mid], &wanted) < 0)
			from = mid + 1;
		else
			to = mid;
	}
	return from;
}

static bool is_at(const struct tls_names *names, int i, const char *text)
{
	return i < names->n && strcmp(names->name[i].text, text) == 0;
}

/* Return the first certificate that has the name `text`, or -1 if there is none. */
static int find(const struct tls_names *names, const char *text)
{
	int i = lower_bound(names, text, 0);

	return is_at(names, i, text) ? names->name[i].cert : -1;
}

int tls_names_find(const struct tls_names *names, const char *name, size_t n)
{
	char text[TLS_NAME_MAX + 1];
	char *dot;
	int found;

	if (n == 0 || n > TLS_NAME_MAX)
		return -1;
	for (size_t i = 0; i < n; i++)
		text[i] = (char)tolower((unsigned char)name[i]);
	text[n] = '\0';
	found = find(names, text);
	dot = strchr(text, '.');
	if (found < 0 && dot && dot != text) {
		*--dot = '*';
		found = find(names, dot);
	}
	return found;
}

static bool has(const struct tls_names *names, int cert, const char *text)
{
	int i = lower_bound(names, text, cert);

	return is_at(names, i, text) && names->name[i].cert == cert;
}

static bool has_all_of(const struct tls_names *names, int cert, int other)
{
	for (int i = 0; i < names->n; i++)
		if (names->name[i].cert == other && !has(names, cert, names->name[i].text))
			return false;
	return true;
}

int tls_names_peers(const struct tls_names *names, int cert, int *peer, int max)
{
	const char *text;
	int i = 0, n = 0;

	while (i < names->n && names->name[i].cert != cert)
		i++;
	if (i == names->n)
		return 0;
	text = names->name[i].text;
	for (i = lower_bound(names, text, 0); n < max && is_at(names, i, text); i++) {
		int other = names->name[i].cert;
		bool again =
		    n > 0 && peer[n - 1] == other; /* a certificate may have a name twice */
		if (other != cert && !again && has_all_of(names, other, cert))
			peer[n++] = other;
	}
	return n;
}

void tls_names_free(struct tls_names *names)
{
	for (int i = 0; i < names->n; i++)
		free(names->name[i].text);
	free(names->name);
	*names = (struct tls_names){0};
}
