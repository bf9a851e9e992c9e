/* SPDX-License-Identifier: MIT */
/* Internals of error pages, for pages.c and pages_filter.c. */
#ifndef WEIR_HTTP_PAGES_SET_H
#define WEIR_HTTP_PAGES_SET_H

#include "http/conn/pages.h"
#include "http/message/template.h"

struct page {
	char *text; /* owned; NULL if there is no page */
	size_t n;
	const char *type;              /* static */
	bool markup;                   /* HTML or XML: values are escaped */
	struct http_template template; /* without pieces if the page is no text */
};

struct pages {
	_Atomic int refs;
	struct page page[N_PAGES];
};

/** Take a reference; NULL is allowed. */
struct pages *pages_ref(struct pages *p);
/** Drop a reference; NULL is allowed. Any thread. */
void pages_put(struct pages *p);
/** The current pages, with a reference; NULL without any. Any thread; takes a lock. */
struct pages *pages_now(struct pages_site *site);
/** The page for `status`, or NULL. */
const struct page *pages_find(const struct pages *p, int status);
/** Whether the page is the same for all responses. */
bool page_is_fixed(const struct page *page);
/** The text of `page` for the response of `r`, *n bytes from malloc; NULL if out of memory. */
char *pages_text(const struct page *page, struct http_req *r, size_t *n);

#endif
