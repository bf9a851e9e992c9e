/* SPDX-License-Identifier: MIT */
/* Reads error pages and puts them into responses; see pages.h. */
#include "http/conn/pages.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weir/log.h>
#include <weir/stage.h>

#include "file/mime.h"
#include "http/conn/io.h"
#include "http/conn/pages_set.h"
#include "http/message/put.h"
#include "http/request/refusal.h"
#include "http/request/request.h"

enum name { STATUS, REASON, TRACE };

static const char *const names[] = {"status", "reason", "trace", NULL};

static const char *const keys[] = {
#define PAGE_KEY(s) #s,
    PAGES(PAGE_KEY)
#undef PAGE_KEY
};

/* ---- sets ---- */

struct pages *pages_ref(struct pages *p)
{
	if (p)
		atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
	return p;
}

void pages_put(struct pages *p)
{
	if (!p || atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) > 1)
		return;
	for (int i = 0; i < N_PAGES; i++) {
		http_template_fini(&p->page[i].template);
		free(p->page[i].text);
	}
	free(p);
}

const struct page *pages_find(const struct pages *p, int status)
{
	for (int i = 0; i < PAGE_4xx; i++)
		if (atoi(keys[i]) == status && p->page[i].text)
			return &p->page[i];
	const struct page *class = &p->page[status < 500 ? PAGE_4xx : PAGE_5xx];
	return status >= 400 && class->text ? class : NULL;
}

/* ---- files ---- */

static int bad_page(
    struct weir_stage *st, struct weir_err *err, const char *key, const char *file, const char *why)
{
	char at[40];

	snprintf(at, sizeof(at), "error_pages.%s", key);
	weir_blame(st, at);
	snprintf(err->text, sizeof(err->text), "the error page '%.120s' %s", file, why);
	return WEIR_EINVAL;
}

/* Read `fd` to *page. Returns NULL, or the reason for a failure. */
static const char *read_page(int fd, struct page *page)
{
	struct stat s;
	ssize_t n;

	if (fstat(fd, &s) != 0)
		return strerror(errno);
	if (!S_ISREG(s.st_mode))
		return "is not a file";
	if (s.st_size > PAGE_MAX_BYTES)
		return "is longer than 64KiB";
	page->text = malloc((size_t)s.st_size + 1);
	if (!page->text)
		return "needs more memory than there is";
	while ((n = read(fd, page->text + page->n, (size_t)s.st_size - page->n)) > 0)
		page->n += (size_t)n;
	return n < 0 ? strerror(errno) : NULL;
}

static bool is_text(const char *type)
{
	return strncmp(type, "text/", 5) == 0 || strstr(type, "xml") || strstr(type, "json");
}

static int load(struct weir_stage *st, struct page *page, const char *key, const char *file,
    struct weir_err *err)
{
	char why[80];
	int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0) {
		snprintf(why, sizeof(why), "cannot be read: %.60s", strerror(errno));
		return bad_page(st, err, key, file, why);
	}
	const char *failed = read_page(fd, page);
	close(fd);
	if (failed)
		return bad_page(st, err, key, file, failed);
	page->type = mime_type(file);
	page->markup = strstr(page->type, "html") || strstr(page->type, "xml");
	if (!is_text(page->type))
		return 0;
	return http_template_parse(
	    &page->template, page->text, page->n, names, false, err->hint, sizeof(err->hint));
}

int pages_init(struct pages_site *site, struct weir_stage *st, const struct pages_conf *conf,
    struct weir_err *err)
{
	struct pages *p = NULL;
	int rc = 0;

	pthread_mutex_init(&site->lock, NULL);
	for (int i = 0; rc == 0 && i < N_PAGES; i++) {
		if (!conf->file[i] || !conf->file[i][0])
			continue;
		p = p ? p : calloc(1, sizeof(*p));
		if (!p)
			return WEIR_ENOMEM;
		rc = load(st, &p->page[i], keys[i], conf->file[i], err);
	}
	if (p)
		atomic_init(&p->refs, 1);
	if (rc != 0) {
		pages_put(p);
		return rc;
	}
	site->pages = p;
	atomic_init(&site->version, p != NULL);
	return 0;
}

void pages_fini(struct pages_site *site)
{
	pages_put(site->pages);
	pthread_mutex_destroy(&site->lock);
}

void pages_reread(struct pages_site *site, struct pages_site *from)
{
	pthread_mutex_lock(&site->lock);
	struct pages *before = site->pages;
	site->pages = from->pages;
	from->pages = before;
	atomic_fetch_add(&site->version, 1);
	pthread_mutex_unlock(&site->lock);
}

bool pages_renewed(struct pages_site *site, struct pages_site *from, char *text, size_t size)
{
	const struct pages *a = site->pages, *b = from->pages;

	for (int i = 0; a && b && i < N_PAGES; i++) {
		const struct page *x = &a->page[i], *y = &b->page[i];
		if (x->n == y->n && (x->n == 0 || memcmp(x->text, y->text, x->n) == 0))
			continue;
		snprintf(text, size, "the error page of %s has other bytes", keys[i]);
		return true;
	}
	return false;
}

struct pages *pages_now(struct pages_site *site)
{
	pthread_mutex_lock(&site->lock);
	struct pages *p = pages_ref(site->pages);
	pthread_mutex_unlock(&site->lock);
	return p;
}

/* ---- responses ---- */

/* Append `s`, escaped for HTML and XML if `markup`. `at` may be NULL, to measure. Returns the length. */
static size_t put_value(char *at, const char *s, bool markup)
{
	size_t n = 0;

	for (; *s; s++) {
		const char *entity = !markup      ? NULL
				     : *s == '&'  ? "&amp;"
				     : *s == '<'  ? "&lt;"
				     : *s == '>'  ? "&gt;"
				     : *s == '"'  ? "&quot;"
				     : *s == '\'' ? "&#39;"
						  : NULL;
		size_t m = entity ? strlen(entity) : 1;
		if (at)
			memcpy(at + n, entity ? entity : s, m);
		n += m;
	}
	return n;
}

static size_t expand(const struct page *page, const char *const values[], char *out)
{
	size_t n = 0;

	for (int i = 0; i < page->template.n; i++) {
		const struct template_piece *x = &page->template.piece[i];
		if (x->name >= 0) {
			n += put_value(out ? out + n : NULL, values[x->name], page->markup);
			continue;
		}
		if (out)
			memcpy(out + n, x->p, x->n);
		n += x->n;
	}
	return n;
}

char *pages_text(const struct page *page, struct http_req *r, size_t *n)
{
	char status[8], trace[WEIR_TRACE_ID_BYTES] = "";
	const char *const values[] = {status, weir_http_reason(r->pub.res.status), trace};

	snprintf(status, sizeof(status), "%d", r->pub.res.status);
	if (!r->refusal) /* its event was never begun */
		refusal_trace_text(&r->pub.ev, trace);
	*n = expand(page, values, NULL);
	char *text = malloc(*n + 1);
	if (text)
		expand(page, values, text);
	return text;
}

bool page_is_fixed(const struct page *page)
{
	for (int i = 0; i < page->template.n; i++)
		if (page->template.piece[i].name >= 0)
			return false;
	return true;
}

static void put_pages(void *arg)
{
	pages_put(arg);
}

static int set_body(const struct page *page, struct pages *set, struct http_req *r)
{
	if (page_is_fixed(page))
		return response_replace_body(
		    &r->pub, (struct weir_slice){page->text, page->n}, put_pages, pages_ref(set));
	size_t n;
	char *text = pages_text(page, r, &n);
	return text ? response_replace_body(&r->pub, (struct weir_slice){text, n}, free, text)
		    : WEIR_ENOMEM;
}

/* Follow reloads. */
static struct pages *current(struct http_io *io)
{
	struct pages_site *site = &io->srv->pages;
	unsigned version = atomic_load(&site->version);

	if (io->pages_version != version) {
		pages_put(io->pages);
		io->pages = pages_now(site);
		io->pages_version = version;
	}
	return io->pages;
}

void pages_apply(struct http_io *io, struct http_req *r)
{
	struct pages *set = current(io);
	const struct page *page = set ? pages_find(set, r->pub.res.status) : NULL;

	if (!page || set_body(page, set, r) != 0)
		return;
	request_field_drop(&r->pub, "Content-Type");
	weir_http_add_field(&r->pub, "Content-Type", page->type);
}

void pages_leave(struct http_io *io)
{
	pages_put(io->pages);
	io->pages = NULL;
}

/* ---- knobs ---- */

const struct weir_knob pages_knobs[] = {
#define PAGE_ROW(s)                                                                                \
	{.name = #s,                                                                               \
	    .type = WEIR_KNOB_STRING,                                                              \
	    .offset = offsetof(struct pages_conf, file) + PAGE_##s * sizeof(char *),               \
	    .def = "",                                                                             \
	    .help =                                                                                \
		"file with the body of answers " #s ", of at most 64KiB; empty: a line of text"},
    PAGES(PAGE_ROW)
#undef PAGE_ROW
	{.name = "intercept",
	    .type = WEIR_KNOB_BOOL,
	    .offset = offsetof(struct pages_conf, intercept),
	    .def = "false",
	    .help =
		"also replace error answers of stages and origins that have bodies of their own"},
    {.name = NULL},
};
