/* SPDX-License-Identifier: MIT */
/*
 * Error pages: bodies for the answers that weir makes itself, read from files at the start and by reloads.
 *
 * A response is replaced in the I/O thread, just before it is written, if its body is the standard text of
 * its status (weir_http_response.standard). So one place serves refusals before the graph, failures of events
 * and answers of stages. Status and fields stay, except the type.
 *
 * A set of pages does not change. Responses that are being sent keep references to the set they come from.
 */
#ifndef WEIR_HTTP_PAGES_H
#define WEIR_HTTP_PAGES_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <weir/error.h>
#include <weir/http.h>
#include <weir/knob.h>

/* The statuses that weir and its stages answer with; others have the page of 4xx or 5xx. */
#define PAGES(X)                                                                                   \
	X(400)                                                                                     \
	X(403)                                                                                     \
	X(404)                                                                                     \
	X(405)                                                                                     \
	X(406)                                                                                     \
	X(408)                                                                                     \
	X(413)                                                                                     \
	X(414)                                                                                     \
	X(416)                                                                                     \
	X(417)                                                                                     \
	X(421)                                                                                     \
	X(429)                                                                                     \
	X(431)                                                                                     \
	X(500)                                                                                     \
	X(501)                                                                                     \
	X(502)                                                                                     \
	X(503)                                                                                     \
	X(504)                                                                                     \
	X(505)                                                                                     \
	X(4xx)                                                                                     \
	X(5xx)

enum page_id {
#define PAGE_ENUM(s) PAGE_##s,
	PAGES(PAGE_ENUM)
#undef PAGE_ENUM
	    N_PAGES
};

/** Largest file. */
#define PAGE_MAX_BYTES 65536

/** The values of `error_pages`. */
struct pages_conf {
	char *file[N_PAGES];
	bool intercept; /* also for the errors of stages and origins */
};

extern const struct weir_knob pages_knobs[];

struct http_io;
struct http_req;
struct pages;

/** The pages of a server; a reload may replace them. */
struct pages_site {
	pthread_mutex_t lock;
	struct pages *pages;      /* guarded by `lock`; NULL without pages */
	_Atomic unsigned version; /* changes with `pages`; 0 before the first ones */
};

/** Read the files that `conf` names. Called in ops->init of `st`; faults are attributed to its knobs.
 * Returns 0, WEIR_EINVAL with `err`, or WEIR_ENOMEM. */
int pages_init(struct pages_site *site, struct weir_stage *st, const struct pages_conf *conf,
    struct weir_err *err);
/** Free the pages, except those of responses that are being sent. */
void pages_fini(struct pages_site *site);
/** Exchange the pages of `site` for those that `from` has read. One thread at a time. */
void pages_reread(struct pages_site *site, struct pages_site *from);
/** Whether the pages of `from` have other bytes. `text` then says so. */
bool pages_renewed(struct pages_site *site, struct pages_site *from, char *text, size_t size);

/** Replace the body of the response of `r` by the page of its status, if there is one. I/O thread. */
void pages_apply(struct http_io *io, struct http_req *r);
/** Forget the pages that this I/O thread has used. */
void pages_leave(struct http_io *io);

/** With `intercept`, add the filter that replaces errors of stages and origins. I/O thread, before the
 * request is emitted. */
void pages_watch(struct http_io *io, struct http_req *r);

#endif
