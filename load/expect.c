/* SPDX-License-Identifier: MIT */
/* Expected responses; see expect.h. */
#include "load/expect.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "load/sentence.h"

static bool take_status(struct load_expect *e, const char *value)
{
	const bool good = strlen(value) == 3 && strspn(value, "0123456789") == 3 && *value >= '2' &&
			  *value <= '5' && e->status == 0;

	e->status = (uint16_t)(good ? strtoul(value, NULL, 10) : e->status);
	return good;
}

static bool take_type(struct load_expect *e, const char *value)
{
	const size_t n = strlen(value);
	const char *slash = strchr(value, '/');

	if (!slash || slash == value || !slash[1] || n > EXPECT_TYPE_MAX || e->type[0] ||
	    strpbrk(value, " ;\t"))
		return false;
	for (size_t i = 0; i <= n; i++)
		e->type[i] = (char)tolower((unsigned char)value[i]);
	return true;
}

static bool take_hash(struct load_expect *e, const char *value)
{
	const bool good =
	    strlen(value) == 16 && strspn(value, "0123456789abcdefABCDEF") == 16 && !e->hashed;

	if (good)
		e->hash = strtoull(value, NULL, 16);
	e->hashed |= good;
	return good;
}

int expect_parse(const char *text, struct load_expect *e, struct weir_err *err)
{
	static const struct {
		const char *key;
		bool (*take)(struct load_expect *e, const char *value);
	} row[] = {{"status=", take_status}, {"type=", take_type}, {"hash=", take_hash}};
	char word[160];

	*e = (struct load_expect){0};
	do {
		const size_t n = strcspn(text, ",");
		bool good = false;
		snprintf(word, sizeof(word), "%.*s", (int)n, text);
		for (size_t i = 0; n < sizeof(word) && i < sizeof(row) / sizeof(row[0]); i++)
			if (strncmp(word, row[i].key, strlen(row[i].key)) == 0)
				good = row[i].take(e, word + strlen(row[i].key));
		if (!good)
			return sentence(err, WEIR_EINVAL,
			    "'%.60s' is no expectation: write status=200, type=text/html, or "
			    "hash= and the 16 digits of xxhsum -H64, each once, between commas",
			    word);
		text += n;
	} while (*text++ == ',');
	return 0;
}

void expect_text(const struct load_expect *e, char *buf, size_t size)
{
	int n = 0;

	*buf = '\0';
	if (e->status)
		n = snprintf(buf, size, "status=%d", e->status);
	if (e->type[0])
		n += snprintf(buf + n, size - (size_t)n, "%stype=%s", n ? "," : "", e->type);
	if (e->hashed)
		snprintf(buf + n, size - (size_t)n, "%shash=%016" PRIx64, n ? "," : "", e->hash);
}

bool expect_type(const struct load_expect *e, const char *value, size_t n)
{
	const size_t m = strlen(e->type);

	return n >= m && strncasecmp(value, e->type, m) == 0 &&
	       (n == m || value[m] == ';' || value[m] == ' ' || value[m] == '\t');
}
