/* SPDX-License-Identifier: MIT */
/* Host names; see resolve_name.h. */
#include "net/resolve_name.h"

#include <string.h>

/* Longest label (RFC 1035, 2.3.4). */
#define LABEL_MAX 63

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Letters, digits, and the underscores of names that are no hosts but have addresses. */
static bool is_good(char c)
{
	return (c >= 'a' && c <= 'z') || is_digit(c) || c == '-' || c == '_';
}

/* Whether a label is a number, also a hexadecimal one. */
static bool is_number(const char *label, size_t n)
{
	const bool hex = n >= 2 && label[0] == '0' && label[1] == 'x';

	for (size_t i = hex ? 2 : 0; i < n; i++)
		if (!is_digit(label[i]) && !(hex && label[i] >= 'a' && label[i] <= 'f'))
			return false;
	return true;
}

/* Check the labels of `name`, n bytes without a final dot. */
static bool labels_good(const char *name, size_t n)
{
	size_t begin = 0;

	for (size_t i = 0; i < n; i++) {
		if (name[i] != '.' && !is_good(name[i]))
			return false;
		if (name[i] == '.' && (i == begin || i - begin > LABEL_MAX))
			return false;
		if (name[i] == '.')
			begin = i + 1;
	}
	return n > begin && n - begin <= LABEL_MAX && !is_number(name + begin, n - begin);
}

static bool is_localhost(const char *name, size_t n)
{
	static const char text[] = "localhost";
	const size_t m = sizeof(text) - 1;

	return n >= m && memcmp(name + n - m, text, m) == 0 && (n == m || name[n - m - 1] == '.');
}

enum name_kind name_examine(
    const char *text, char name[RESOLVE_NAME_MAX + 1], struct net_address *address)
{
	size_t n = strlen(text), whole;
	const bool brackets = n >= 2 && text[0] == '[' && text[n - 1] == ']';
	const struct weir_slice inner = {text + brackets, n - 2 * (size_t)brackets};

	if ((!brackets || memchr(inner.p, ':', inner.n)) && net_address_read(inner, address))
		return NAME_ADDRESS;
	if (n > RESOLVE_NAME_MAX)
		return NAME_BAD;
	for (size_t i = 0; i < n; i++)
		name[i] = lower(text[i]);
	name[n] = '\0';
	whole = n > 0 && name[n - 1] == '.' ? n - 1 : n;
	if (!labels_good(name, whole))
		return NAME_BAD;
	return is_localhost(name, whole) ? NAME_LOCALHOST : NAME_HOST;
}

struct weir_slice name_without_port(struct weir_slice text)
{
	const char *colon = text.n > 0 ? memchr(text.p, ':', text.n) : NULL;
	const char *bracket = text.n > 0 ? memchr(text.p, ']', text.n) : NULL;

	if (bracket && text.p[0] == '[')
		text.n = (size_t)(bracket - text.p) + 1;
	else if (colon && !memchr(colon + 1, ':', text.n - (size_t)(colon - text.p) - 1))
		text.n = (size_t)(colon - text.p);
	return text;
}

bool name_is_server(const char *text)
{
	const struct weir_slice host = name_without_port((struct weir_slice){text, strlen(text)});
	const bool brackets = host.n > 2 && host.p[0] == '[';
	struct net_address ignored;

	return net_address_read(
	    (struct weir_slice){host.p + brackets, host.n - 2 * (size_t)brackets}, &ignored);
}
