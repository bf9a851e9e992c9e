/* SPDX-License-Identifier: MIT */
/*
 * Lists directories as HTML or JSON. See listing.h.
 *
 * Names are not trusted, since anyone who may write to the directory chooses them. They are escaped
 * in text, and in links they are also percent-encoded. Links begin with "./", so that a browser
 * does not interpret "javascript:x" as a URL with a scheme. Names that file.read refuses in
 * requests (those with control bytes, a backslash or a leading dot) are left out.
 */
#include "listing.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "path.h"

/* Maximum number of entries examined, whether listed or not. It bounds the work for a directory
 * full of dot files. The factor 8 is a guess. */
#define LISTING_LOOKS (8 * LISTING_MAX)

struct entry {
	char name[NAME_MAX + 1];
	bool directory;
	int64_t bytes, modified_s;
};

struct listing {
	int root, dir;
	enum file_links links;
	const char *name;
	int n;
	bool truncated;
	struct entry entry[LISTING_MAX];
};

/* ---- gathering ---- */

static bool name_may_be_asked_for(const char *name)
{
	for (const unsigned char *p = (const unsigned char *)name; *p; p++)
		if (*p < 0x20 || *p == 0x7f || *p == '\\')
			return false;
	return name[0] != '.';
}

/* Stat `name` in the directory. Returns false if it may not be served. */
static bool look(const struct listing *l, const char *name, struct stat *st)
{
	char path[PATH_MAP_MAX];

	if (fstatat(l->dir, name, st, AT_SYMLINK_NOFOLLOW) == -1)
		return false;
	if (S_ISLNK(st->st_mode)) {
		int n = snprintf(path, sizeof(path), "%s/%s", l->name, name);
		if (l->links == FILE_LINKS_NO || n < 0 || (size_t)n >= sizeof(path) ||
		    file_look(l->root, l->links, path, st) == -1)
			return false;
	}
	return S_ISREG(st->st_mode) || S_ISDIR(st->st_mode);
}

static void gather(struct listing *l, DIR *d)
{
	int looks = 0;

	for (struct dirent *e = readdir(d); e; e = readdir(d)) {
		struct stat st;
		if (l->n == LISTING_MAX || ++looks > LISTING_LOOKS) {
			l->truncated = true;
			return;
		}
		if (!name_may_be_asked_for(e->d_name) || !look(l, e->d_name, &st))
			continue;
		struct entry *to = &l->entry[l->n++];
		snprintf(to->name, sizeof(to->name), "%s", e->d_name);
		to->directory = S_ISDIR(st.st_mode);
		to->bytes = st.st_size;
		to->modified_s = st.st_mtim.tv_sec;
	}
}

static int compare(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->directory != y->directory)
		return x->directory ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* ---- writing ---- */

static void put_html_char(FILE *f, char c)
{
	switch (c) {
	case '&':
		fputs("&amp;", f);
		break;
	case '<':
		fputs("&lt;", f);
		break;
	case '>':
		fputs("&gt;", f);
		break;
	case '"':
		fputs("&quot;", f);
		break;
	case '\'':
		fputs("&#39;", f);
		break;
	default:
		fputc(c, f);
	}
}

static void put_html(FILE *f, const char *text)
{
	for (; *text; text++)
		put_html_char(f, *text);
}

/* Write a name as a link, for HTML or JSON. All characters that are special in JSON are
 * percent-encoded. */
static void put_link(FILE *f, const char *name, enum listing_form form)
{
	for (const unsigned char *p = (const unsigned char *)name; *p; p++) {
		if (!path_is_plain(*p))
			fprintf(f, "%%%02X", *p);
		else if (form == LISTING_HTML)
			put_html_char(f, (char)*p);
		else
			fputc(*p, f);
	}
}

/* Length of the UTF-8 character at `p`; 0 if it is invalid, overlong or a surrogate (RFC 3629). */
static int utf8_length(const unsigned char *p)
{
	unsigned char low = 0x80, high = 0xbf;
	int n = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;

	if (n < 2 || p[0] > 0xf4)
		return n < 2 ? n : 0;
	if (p[0] == 0xe0)
		low = 0xa0;
	else if (p[0] == 0xed)
		high = 0x9f;
	else if (p[0] == 0xf0)
		low = 0x90;
	else if (p[0] == 0xf4)
		high = 0x8f;
	if (p[1] < low || p[1] > high)
		return 0;
	for (int i = 2; i < n; i++)
		if (p[i] < 0x80 || p[i] > 0xbf)
			return 0;
	return n;
}

static void put_json(FILE *f, const char *text)
{
	const unsigned char *p = (const unsigned char *)text;

	fputc('"', f);
	while (*p) {
		int n = utf8_length(p);
		if (n == 0)
			fputs("\\ufffd", f);
		else if (*p == '"' || *p == '\\')
			fprintf(f, "\\%c", *p);
		else
			fwrite(p, 1, (size_t)n, f);
		p += n > 0 ? n : 1;
	}
	fputc('"', f);
}

/* Write the path of the listing: "/" or "/a/b/". */
static void path_text(const struct listing *l, char out[PATH_MAP_MAX + 2])
{
	bool top = strcmp(l->name, ".") == 0;

	snprintf(out, PATH_MAP_MAX + 2, "/%s%s", top ? "" : l->name, top ? "" : "/");
}

static void write_html(const struct listing *l, FILE *f)
{
	char path[PATH_MAP_MAX + 2];

	path_text(l, path);
	fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>", f);
	put_html(f, path);
	fputs("</title></head>\n<body><h1>", f);
	put_html(f, path);
	fputs("</h1>\n<table>\n", f);
	if (strcmp(l->name, ".") != 0)
		fputs("<tr><td><a href=\"../\">../</a></td></tr>\n", f);
	for (int i = 0; i < l->n; i++) {
		const struct entry *e = &l->entry[i];
		fputs("<tr><td><a href=\"./", f);
		put_link(f, e->name, LISTING_HTML);
		fputs(e->directory ? "/\">" : "\">", f);
		put_html(f, e->name);
		if (e->directory)
			fputs("/</a></td></tr>\n", f);
		else
			fprintf(f, "</a></td><td>%" PRId64 "</td></tr>\n", e->bytes);
	}
	fputs("</table>\n", f);
	if (l->truncated)
		fputs("<p>This list is not complete.</p>\n", f);
	fputs("</body></html>\n", f);
}

static void write_json(const struct listing *l, FILE *f)
{
	char path[PATH_MAP_MAX + 2];

	path_text(l, path);
	fputs("{\"path\":", f);
	put_json(f, path);
	fprintf(f, ",\"truncated\":%s,\"entries\":[", l->truncated ? "true" : "false");
	for (int i = 0; i < l->n; i++) {
		const struct entry *e = &l->entry[i];
		fputs(i > 0 ? ",\n{\"name\":" : "\n{\"name\":", f);
		put_json(f, e->name);
		fputs(",\"href\":\"./", f);
		put_link(f, e->name, LISTING_JSON);
		fprintf(f, "%s\",\"type\":\"%s\"", e->directory ? "/" : "",
		    e->directory ? "directory" : "file");
		if (!e->directory)
			fprintf(f, ",\"bytes\":%" PRId64, e->bytes);
		fprintf(f, ",\"modified\":%" PRId64 "}", e->modified_s);
	}
	fputs("]}\n", f);
}

static int write_text(const struct listing *l, enum listing_form form, char **body, size_t *n)
{
	FILE *f = open_memstream(body, n);

	if (!f)
		return WEIR_ENOMEM;
	if (form == LISTING_JSON)
		write_json(l, f);
	else
		write_html(l, f);
	bool failed = ferror(f) != 0;
	if (fclose(f) == 0 && !failed)
		return 0;
	free(*body);
	*body = NULL;
	return WEIR_ENOMEM;
}

/* Return the error code for a directory that could not be opened. */
static int without(int error)
{
	bool short_of = error == EMFILE || error == ENFILE || error == ENOMEM || error == EAGAIN;

	return short_of ? WEIR_EPRESSURE : WEIR_ENOENT;
}

int listing_make(int root, enum file_links links, const char *name, enum listing_form form,
    char **body, size_t *n)
{
	int fd = file_open_directory(root, links, name);
	DIR *d = fd == -1 ? NULL : fdopendir(fd);
	struct listing *l = d ? malloc(sizeof(*l)) : NULL;
	int rc = fd == -1 ? without(errno) : WEIR_ENOMEM;

	if (l) {
		l->root = root;
		l->dir = fd;
		l->links = links;
		l->name = name;
		l->n = 0;
		l->truncated = false;
		gather(l, d);
		qsort(l->entry, (size_t)l->n, sizeof(l->entry[0]), compare);
		rc = write_text(l, form, body, n);
		free(l);
	}
	if (d)
		closedir(d);
	else if (fd != -1)
		close(fd);
	return rc;
}

const char *listing_type(enum listing_form form)
{
	return form == LISTING_JSON ? "application/json" : "text/html; charset=utf-8";
}
