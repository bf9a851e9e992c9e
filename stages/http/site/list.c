/* SPDX-License-Identifier: MIT */
/* Splits lists; see list.h. */
#include "http/site/list.h"

#include "text/ows.h"

/* Return the length of the first member of p[0..n), up to its comma. */
static size_t span(const char *p, size_t n)
{
	bool quoted = false;
	size_t i = 0;

	for (; i < n && (quoted || p[i] != ','); i++) {
		if (p[i] == '"')
			quoted = !quoted;
		else if (quoted && p[i] == '\\' && i + 1 < n)
			i++;
	}
	return i;
}

bool list_next(struct weir_slice *list, struct weir_slice *member)
{
	while (list->n > 0) {
		size_t n = span(list->p, list->n);
		*member = ows_trim(list->p, list->p + n);
		size_t skip = n < list->n ? n + 1 : n;
		list->p += skip;
		list->n -= skip;
		if (member->n > 0)
			return true;
	}
	return false;
}

bool list_has(struct weir_slice list, const char *name)
{
	struct weir_slice m;

	while (list_next(&list, &m)) {
		size_t n = 0;
		while (n < m.n && m.p[n] != ';')
			n++;
		while (n > 0 && ows_is(m.p[n - 1]))
			n--;
		if (weir_slice_is((struct weir_slice){m.p, n}, name))
			return true;
	}
	return false;
}
