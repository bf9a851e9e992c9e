/* SPDX-License-Identifier: MIT */
/* Prints the configuration on the page of `weir snapshot`; see snapshot.h. Text that might be a
 * secret is left out. */
#include "snapshot.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <weir/error.h>

static const char *const words[] = {"password", "passwd", "passphrase", "secret", "token",
    "credential", "api_key", "apikey", "api-key", "private_key", "access_key", "authorization",
    "cookie", "bearer"};
#define WORDS (sizeof(words) / sizeof(words[0]))

/* Return the end of the first word in p[0..n) that names a secret, or NULL if there is none. A word
 * that ends in "_file" does not name a secret but a file. */
static const char *find_word(const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (size_t w = 0; w < WORDS; w++) {
			size_t len = strlen(words[w]);
			if (i + len > n || strncasecmp(p + i, words[w], len) != 0)
				continue;
			size_t end = i + len;
			while (end < n && (isalnum((unsigned char)p[end]) || p[end] == '_'))
				end++;
			if (end - i < 5 || strncasecmp(p + end - 5, "_file", 5) != 0)
				return p + end;
		}
	return NULL;
}

bool snapshot_is_secret(const char *key)
{
	return find_word(key, strlen(key)) != NULL;
}

/* Remove "user:password@" from URLs, in place; returns the new length. */
static size_t cut_users(char *p, size_t n)
{
	for (size_t i = 0; i + 3 < n; i++) {
		if (strncmp(p + i, "://", 3) != 0)
			continue;
		size_t from = i + 3, at = from + strcspn(p + from, "@/ \t\"'");
		if (at < n && p[at] == '@') {
			memmove(p + from, p + at + 1, n - at);
			n -= at + 1 - from;
		}
	}
	return n;
}

static int indent_of(const char *line, size_t n)
{
	size_t k = 0;

	while (k < n && line[k] == ' ')
		k++;
	return k < n && line[k] != '\r' ? (int)k : -1; /* -1 for an empty line */
}

char *snapshot_line(const char *line, size_t n, int *indent)
{
	char *out = malloc(n + sizeof(SNAPSHOT_LEFT_OUT) + 2);
	int own = indent_of(line, n);

	if (!out)
		return NULL;
	/* The value of a key may continue on the following lines, as a block scalar or a list. If
	 * the value is left out, so are these lines. */
	if (*indent >= 0 && (own < 0 || own > *indent)) {
		*out = '\0';
		return out;
	}
	*indent = -1;
	const char *word = find_word(line, n);
	if (!word) {
		memcpy(out, line, n);
		out[n] = '\0';
		out[cut_users(out, n)] = '\0';
		return out;
	}
	/* Everything after the word is dropped: the secret may be a quoted text that ends on a
	 * later line, and a flow mapping may contain more secrets. */
	size_t kept = (size_t)(word - line);
	memcpy(out, line, kept);
	kept = cut_users(out, (out[kept] = '\0', kept));
	strcpy(out + kept, ": " SNAPSHOT_LEFT_OUT);
	*indent = own;
	return out;
}

static int put_file(FILE *out, const char *text)
{
	int indent = -1;

	fputs("<pre>", out);
	while (*text) {
		size_t n = strcspn(text, "\n");
		int was = indent;
		char *line = snapshot_line(text, n, &indent);
		if (!line)
			return WEIR_ENOMEM;
		markup_text(out, line);
		if (*line || was < 0) /* a line that was dropped does not become an empty line */
			fputc('\n', out);
		free(line);
		text += n + (text[n] == '\n');
	}
	fputs("</pre>\n", out);
	return 0;
}

int snapshot_config(FILE *out, const json_t *config)
{
	const json_t *files = json_object_get(config, "files");
	int rc = 0;

	if (json_array_size(files) == 0)
		return 0;
	fputs("<section><h2>Configuration</h2>\n<p class=soft>The configuration as the server read "
	      "it, without anything that looks like a secret. Check this page before you share "
	      "it.</p>\n",
	    out);
	for (size_t i = 0; rc == 0 && i < json_array_size(files); i++) {
		const json_t *file = json_array_get(files, i);
		const char *name = json_string_value(json_object_get(file, "file"));
		const char *text = json_string_value(json_object_get(file, "text"));
		fputs("<h3>", out);
		markup_text(out, name ? name : "");
		fputs("</h3>\n", out);
		rc = put_file(out, text ? text : "");
	}
	fputs("</section>\n", out);
	return rc;
}
