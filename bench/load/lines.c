/* SPDX-License-Identifier: MIT */
/* Lines of a file; see lines.h. */
#include "load/lines.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "load/sentence.h"

/* Of a path in a message: its end says more than its beginning. */
#define PATH_SHOWN 100

int lines_open(struct lines *l, const char *path, struct weir_err *err)
{
	*l = (struct lines){.path = path, .text = malloc(LINES_BYTES)};
	if (!l->text)
		return sentence_nomem(err);
	l->file = fopen(path, "re");
	if (l->file)
		return 0;
	int rc = sentence_errno(err, path);
	lines_close(l);
	return rc;
}

void lines_close(struct lines *l)
{
	if (l->file)
		fclose(l->file);
	free(l->text);
	*l = (struct lines){0};
}

int lines_refuse(const struct lines *l, const char *why, struct weir_err *err)
{
	size_t n = strlen(l->path);
	bool cut = n > PATH_SHOWN;

	return sentence(err, WEIR_EINVAL, "%s%s:%ld: %s", cut ? "..." : "",
	    cut ? l->path + n - PATH_SHOWN : l->path, l->number, why);
}

/* Without its end. By bytes, since fgets cannot tell a NUL from the end of the line. Returns
 * its length, -1: end of file, LINES_BYTES: too long. */
static long read_line(struct lines *l)
{
	long n = 0;
	int c;

	while ((c = getc_unlocked(l->file)) != EOF && c != '\n') {
		if (n == LINES_BYTES - 1)
			return LINES_BYTES;
		l->text[n++] = (char)c;
	}
	if (n == 0 && c == EOF)
		return -1;
	if (n > 0 && l->text[n - 1] == '\r')
		n--;
	l->text[n] = '\0';
	return n;
}

int lines_next(struct lines *l, struct weir_err *err)
{
	long n;

	do {
		n = read_line(l);
		l->number++;
	} while (n == 0);
	if (n == LINES_BYTES)
		return lines_refuse(l, "the line is longer than 64KiB", err);
	if (ferror(l->file)) /* a folder opens, too, and fails here */
		return sentence_errno(err, l->path);
	if (n < 0)
		return 0;
	if (memchr(l->text, '\0', (size_t)n))
		return lines_refuse(l, "a NUL byte: this is no text", err);
	return 1;
}
