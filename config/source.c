/* SPDX-License-Identifier: MIT */
/*
 * Reads configuration texts and finds positions in them.
 *
 * Line numbers must agree with libyaml's. Lines therefore end as in YAML 1.1: with LF, CR, CRLF,
 * NEL (U+0085), LS (U+2028) or PS (U+2029). Columns differ: libyaml counts characters, and weir
 * reports bytes, as compilers and editors do.
 */
#include "source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weir/trust.h>

#include "config.h"

#define BOM       "\xef\xbb\xbf"
#define BOM_BYTES 3

int source_no_memory(struct weir_errs *errs)
{
	return weir_errs_add(errs, NULL, WEIR_ENOMEM, NULL, "out of memory");
}

bool source_lacked_memory(const struct weir_errs *errs)
{
	for (int i = 0; i < errs->n; i++)
		if (errs->err[i].code == WEIR_ENOMEM)
			return true;
	return false;
}

struct sources *sources_new(void)
{
	return calloc(1, sizeof(struct sources));
}

static void source_free(struct source *s)
{
	if (!s)
		return;
	weir_node_free(s->root);
	free(s->name);
	free(s->text);
	free(s->lines);
	free(s->line);
	free(s);
}

void sources_free(void *sources)
{
	struct sources *all = sources;

	if (!all)
		return;
	weir_node_free(all->root);
	for (int i = 0; i < all->n; i++)
		source_free(all->item[i]);
	for (int i = 0; i < all->n_sets; i++)
		free(all->sets[i]);
	free(all->item);
	free(all->sets);
	free(all);
}

/* Return the length in bytes of the line break at `p`, or 0 if there is none. */
static size_t break_bytes(const char *p, const char *end)
{
	size_t left = (size_t)(end - p);

	if (*p == '\r')
		return left > 1 && p[1] == '\n' ? 2 : 1;
	if (*p == '\n')
		return 1;
	if (left > 1 && memcmp(p, "\xc2\x85", 2) == 0)
		return 2;
	if (left > 2 && (memcmp(p, "\xe2\x80\xa8", 3) == 0 || memcmp(p, "\xe2\x80\xa9", 3) == 0))
		return 3;
	return 0;
}

static int count_lines(const struct source *s)
{
	const char *end = s->text + s->n;
	int n = 1;

	for (const char *p = s->text; p < end;) {
		size_t b = break_bytes(p, end);
		n += b > 0;
		p += b > 0 ? b : 1;
	}
	return n;
}

static int split_lines(struct source *s)
{
	s->n_lines = count_lines(s);
	s->lines = malloc(s->n + 1);
	s->line = calloc((size_t)s->n_lines, sizeof(*s->line));
	if (!s->lines || !s->line)
		return WEIR_ENOMEM;
	memcpy(s->lines, s->text, s->n + 1);
	char *end = s->lines + s->n;
	int i = 0;
	s->line[i++] = s->lines;
	for (char *p = s->lines; p < end;) {
		size_t b = break_bytes(p, end);
		if (b > 0) {
			*p = '\0';
			s->line[i++] = p + b;
		}
		p += b > 0 ? b : 1;
	}
	return 0;
}

/* Create a source from `text` and take ownership of it. */
static int adopt(struct sources *all, char *text, size_t n, const char *name, struct source **out)
{
	struct source **item = realloc(all->item, ((size_t)all->n + 1) * sizeof(struct source *));
	struct source *s = item ? calloc(1, sizeof(*s)) : NULL;

	all->item = item ? item : all->item;
	if (!s) {
		free(text);
		return WEIR_ENOMEM;
	}
	size_t bom = n >= BOM_BYTES && memcmp(text, BOM, BOM_BYTES) == 0 ? BOM_BYTES : 0;
	memmove(text, text + bom, n - bom);
	text[n - bom] = '\0';
	s->text = text;
	s->n = n - bom;
	s->name = strdup(name);
	all->item[all->n++] = s;
	*out = s;
	return s->name ? split_lines(s) : WEIR_ENOMEM;
}

int source_text(struct sources *all, const char *text, size_t n, const char *name,
    struct source **source, struct weir_errs *errs)
{
	struct weir_mark mark = {.file = name};

	if (n > CONFIG_BYTES_MAX)
		return weir_errs_add(errs, &mark, WEIR_EINVAL, NULL,
		    "the text has %zu bytes, at most %d are allowed", n, CONFIG_BYTES_MAX);
	char *copy = malloc(n + 1);
	if (!copy)
		return source_no_memory(errs);
	memcpy(copy, text, n);
	int rc = adopt(all, copy, n, name, source);
	return rc == 0 ? 0 : source_no_memory(errs);
}

/* ---- files ---- */

static int refuse(
    struct weir_errs *errs, const struct weir_mark *at, const char *path, const char *why)
{
	struct weir_mark mark = {.file = path};

	if (at)
		return weir_errs_add(errs, at, WEIR_EINVAL, NULL, "'%s' %s", path, why);
	return weir_errs_add(errs, &mark, WEIR_EINVAL, NULL, "the file %s", why);
}

static int cannot_open(struct weir_errs *errs, const struct weir_mark *at, const char *path)
{
	int code = errno == ENOENT || errno == ENOTDIR ? WEIR_ENOENT : WEIR_ESYS;
	struct weir_mark mark = {.file = path};

	if (at)
		return weir_errs_add(
		    errs, at, code, NULL, "'%s' cannot be read: %s", path, strerror(errno));
	return weir_errs_add(errs, &mark, code, NULL, "cannot be read: %s", strerror(errno));
}

/* Return the reason why a configuration may not be read from this file, or NULL if it may. */
static const char *objection(const struct stat *st)
{
	if (!S_ISREG(st->st_mode))
		return "is not a regular file";
	if (st->st_size > CONFIG_BYTES_MAX)
		return "is larger than 1 MiB";
	/* the file can name plug-ins, so whoever can write to it can run code */
	if (st->st_mode & S_IWOTH)
		return "is writable by every user of this host: chmod o-w";
	return NULL;
}

/* Read all of `fd` into a new buffer. Reads at most CONFIG_BYTES_MAX bytes, even if the file grows
 * meanwhile. */
static int read_all(int fd, char **text, size_t *n)
{
	char *buf = malloc(CONFIG_BYTES_MAX + 1);
	ssize_t got = 1;

	*n = 0;
	if (!buf)
		return WEIR_ENOMEM;
	while (got != 0 && *n < CONFIG_BYTES_MAX) {
		got = read(fd, buf + *n, CONFIG_BYTES_MAX - *n);
		if (got == -1 && errno != EINTR) {
			free(buf);
			return WEIR_ESYS;
		}
		*n += got > 0 ? (size_t)got : 0;
	}
	*text = buf; /* the buffer is larger than needed, but it is freed after parsing */
	return 0;
}

/* Reopen the path with the checks of weir_trust_open, and replace *fd by the new descriptor. If
 * root reads a configuration, every user who can write to it can run code as root. */
static int trust(struct weir_errs *errs, const struct weir_mark *at, const char *path, int *fd)
{
	struct weir_mark mark = {.file = path};
	struct weir_err err;

	close(*fd);
	*fd = -1;
	int rc = weir_trust_open(path, fd, &err);
	return rc == 0 ? 0
		       : weir_errs_add(errs, at ? at : &mark, rc, err.hint,
			     "%s, and root runs this server", err.text);
}

/* Check whether the file open as `fd` may be used as a configuration, and fill in *st. Returns 0,
 * or the code of the reported error. */
static int look(
    struct weir_errs *errs, const struct weir_mark *at, const char *path, int fd, struct stat *st)
{
	if (fd == -1 || fstat(fd, st) != 0)
		return cannot_open(errs, at, path);
	const char *why = objection(st);
	return why ? refuse(errs, at, path, why) : 0;
}

/* Open the file if it may be used as a configuration, and fill in *st. Returns the descriptor, or
 * -1 with the code in *rc. */
static int open_source(
    struct weir_errs *errs, const struct weir_mark *at, const char *path, struct stat *st, int *rc)
{
	/* O_NONBLOCK, since opening a FIFO would otherwise wait for its writer. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	*rc = look(errs, at, path, fd, st);
	if (*rc == 0 && geteuid() == 0) {
		*rc = trust(errs, at, path, &fd);
		*rc = *rc == 0 ? look(errs, at, path, fd, st) : *rc;
	}
	if (*rc == 0)
		return fd;
	if (fd != -1)
		close(fd);
	return -1;
}

int source_read(struct sources *all, const char *path, const struct weir_mark *at,
    struct source **source, struct weir_errs *errs)
{
	struct stat st;
	char *text;
	size_t n;
	int rc;

	int fd = open_source(errs, at, path, &st, &rc);
	if (fd == -1)
		return rc;
	rc = read_all(fd, &text, &n);
	if (rc == WEIR_ESYS)
		cannot_open(errs, at, path);
	if (rc == 0)
		rc = adopt(all, text, n, path, source);
	if (rc == WEIR_ENOMEM)
		source_no_memory(errs);
	close(fd);
	if (rc != 0)
		return rc;
	(*source)->on_disk = true;
	(*source)->dev = st.st_dev;
	(*source)->ino = st.st_ino;
	return 0;
}

/* ---- positions ---- */

const char *source_line(const struct source *s, int line)
{
	return line >= 1 && line <= s->n_lines ? s->line[line - 1] : "";
}

/* Return the length in bytes of the first `chars` characters of `s`, or of all of `s` if it is
 * shorter. */
static size_t bytes_of(const char *s, size_t chars)
{
	size_t i = 0;

	while (s[i] && chars > 0) {
		i++;
		while (((unsigned char)s[i] & 0xc0) == 0x80)
			i++;
		chars--;
	}
	return i;
}

/* Return the number of bytes before character `col` of line `line` (both from 0). */
static size_t byte_at(struct source *s, int line, size_t col)
{
	if (s->seen_line != line || s->seen_char > col) {
		s->seen_line = line;
		s->seen_char = s->seen_byte = 0;
	}
	s->seen_byte += bytes_of(s->line[line] + s->seen_byte, col - s->seen_char);
	s->seen_char = col;
	return s->seen_byte;
}

struct weir_mark source_mark(struct source *s, size_t line, size_t col, size_t len_chars)
{
	/* libyaml reports the end of a text without a final line break as one line further down */
	bool behind = line >= (size_t)s->n_lines;
	int at = behind ? s->n_lines - 1 : (int)line;
	size_t from = behind ? strlen(s->line[at]) : byte_at(s, at, col);
	size_t len = bytes_of(s->line[at] + from, len_chars);

	return (struct weir_mark){.file = s->name,
	    .excerpt = s->line[at],
	    .line = at + 1,
	    .col = (int)from + 1,
	    .len = len > 0 ? (int)len : 1};
}

struct weir_mark source_line_mark(struct source *s, size_t line)
{
	size_t last = (size_t)s->n_lines - 1;

	while (line < last && s->line[line][strspn(s->line[line], " \t")] == '\0')
		line++;
	line = line < last ? line : last;
	size_t indent = strspn(s->line[line], " \t");
	return source_mark(s, line, indent, s->n);
}

struct weir_mark source_mark_at(const struct source *s, size_t offset)
{
	const char *place = s->lines + (offset < s->n ? offset : s->n);
	int lo = 0, hi = s->n_lines - 1;

	while (lo < hi) {
		int mid = (lo + hi + 1) / 2;
		if (s->line[mid] <= place)
			lo = mid;
		else
			hi = mid - 1;
	}
	return (struct weir_mark){.file = s->name,
	    .excerpt = s->line[lo],
	    .line = lo + 1,
	    .col = (int)(place - s->line[lo]) + 1,
	    .len = 1};
}

int config_text(const struct weir_spec *spec, int i, const char **name, char **text)
{
	const struct sources *all = spec->free_sources == sources_free ? spec->sources : NULL;
	size_t n = 1;

	if (!all || i < 0 || i >= all->n)
		return WEIR_ENOENT;
	const struct source *s = all->item[i];
	for (int k = 0; k < s->n_lines; k++)
		n += strlen(s->line[k]) + 1;
	char *p = *text = malloc(n);
	if (!p)
		return WEIR_ENOMEM;
	for (int k = 0; k < s->n_lines; k++)
		p += sprintf(p, "%s\n", s->line[k]);
	*p = '\0';
	*name = s->name;
	return 0;
}
