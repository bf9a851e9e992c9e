/* SPDX-License-Identifier: MIT */
/* Reads lines of a file; see lines.h. */
#include "load/lines.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "load/sentence.h"

/* Maximum length of a path in a message. Only the end of a longer path is shown, since it is more
 * useful than the beginning. */
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

/* Read a line without its line ending, byte by byte, since fgets does not distinguish a NUL byte
 * from the end of the line. Returns the length of the line, -1 at the end of the file, or
 * LINES_BYTES if it is too long. */
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
	if (ferror(l->file)) /* for a directory, fopen succeeds and only reading fails */
		return sentence_errno(err, l->path);
	if (n < 0)
		return 0;
	if (memchr(l->text, '\0', (size_t)n))
		return lines_refuse(l, "the line contains a NUL byte", err);
	return 1;
}
