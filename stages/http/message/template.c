/* SPDX-License-Identifier: MIT */
/* Splits texts at their placeholders; see template.h. */
#include "http/message/template.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/error.h>

/* Return the length of the word in braces at the start of text[0..n), with its braces; 0 if there is
 * none. */
static size_t braced(const char *text, size_t n)
{
	size_t i = 1;

	while (i < n && ((text[i] >= 'a' && text[i] <= 'z') || text[i] == '_'))
		i++;
	return i > 1 && i < n && text[i] == '}' ? i + 1 : 0;
}

static int find(const char *const *names, const char *name, size_t n)
{
	for (int i = 0; names[i]; i++)
		if (strlen(names[i]) == n && memcmp(names[i], name, n) == 0)
			return i;
	return -1;
}

static void list_names(const char *const *names, char *hint, size_t size)
{
	size_t n = (size_t)snprintf(hint, size, "there are");

	for (int i = 0; names[i] && n < size; i++)
		n += (size_t)snprintf(hint + n, size - n, "%s {%s}",
		    i == 0         ? ""
		    : names[i + 1] ? ","
				   : " and",
		    names[i]);
}

static int add(struct http_template *t, const char *p, size_t n, int name)
{
	struct template_piece *more;

	if (n == 0 && name < 0)
		return 0;
	more = reallocarray(t->piece, (size_t)t->n + 1, sizeof(*more));
	if (!more)
		return WEIR_ENOMEM;
	t->piece = more;
	t->piece[t->n++] = (struct template_piece){p, n, name};
	return 0;
}

int http_template_parse(struct http_template *t, const char *text, size_t n,
    const char *const *names, bool strict, char *hint, size_t size)
{
	const char *at = text, *end = text + n, *brace = text;
	int rc = 0;

	*t = (struct http_template){0};
	while (rc == 0 && (brace = memchr(brace, '{', (size_t)(end - brace))) != NULL) {
		size_t word = braced(brace, (size_t)(end - brace));
		int name = word > 0 ? find(names, brace + 1, word - 2) : -1;
		if (name >= 0) {
			rc = add(t, at, (size_t)(brace - at), -1);
			rc = rc == 0 ? add(t, brace + 1, word - 2, name) : rc;
			at = brace + word;
		} else if (word > 0 && strict) {
			list_names(names, hint, size);
			rc = WEIR_EINVAL;
		}
		brace += word > 0 ? word : 1;
	}
	rc = rc == 0 ? add(t, at, (size_t)(end - at), -1) : rc;
	if (rc != 0)
		http_template_fini(t);
	return rc;
}

void http_template_fini(struct http_template *t)
{
	free(t->piece);
	*t = (struct http_template){0};
}

bool http_template_has(const struct http_template *t, int name)
{
	for (int i = 0; i < t->n; i++)
		if (t->piece[i].name == name)
			return true;
	return false;
}
