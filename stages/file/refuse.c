/* SPDX-License-Identifier: MIT */
/*
 * Builds the responses of file.read that are not files: refusals, listings, redirects and OPTIONS.
 *
 * An error page is a file of the site, but the response is not about that file. It has the status
 * of the error and no ETag, ranges or conditions (RFC 9110, 13.2.1: conditions apply to 2xx only).
 * If the page cannot be opened, plain text is sent, never another page.
 */
#include "read.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "condition.h"
#include "listing.h"

#define ALLOWED "GET, HEAD, OPTIONS"

int refuse_method(struct weir_stage *st, struct weir_http_request *req)
{
	bool asks = req->method == WEIR_HTTP_OPTIONS;
	int rc = asks ? weir_http_respond(req, 204, NULL, (struct weir_slice){NULL, 0}, NULL, NULL)
		      : refuse_status(st, req, 405);

	return rc < 0 ? rc : weir_http_add_field(req, "Allow", ALLOWED);
}

static const char *page_of(const struct read_pages *pages, int status)
{
	switch (status) {
#define READ_PAGE(s)                                                                               \
	case s:                                                                                    \
		return pages->page_##s;
		READ_PAGES(READ_PAGE)
#undef READ_PAGE
	default:
		return "";
	}
}

int refuse_status(struct weir_stage *st, struct weir_http_request *req, int status)
{
	const struct read_conf *conf = weir_conf(st);
	const struct read_state *state = weir_state(st);
	const char *page = page_of(&conf->pages, status);
	char name[PATH_MAP_MAX];
	struct file file;

	weir_count(st, READ_REFUSED, 1);
	if (*page &&
	    path_map((struct weir_slice){page, strlen(page)}, "", name, sizeof(name)) == 0 &&
	    file_open(state->root, (enum file_links)conf->symlinks, name, &file) == 0)
		return answer_page(st, req, status, &file, name);
	return weir_http_respond_status(req, status);
}

/* Write the ETag of a listing. It is weak, since a later version may render the same directory
 * differently. The hash has 64 bits, so the probability that a revalidating client misses a change
 * is 2^-64. */
static void listing_etag(struct weir_slice body, char etag[FILE_ETAG_SIZE])
{
	snprintf(etag, FILE_ETAG_SIZE, "W/\"%zx-%" PRIx64 "\"", body.n, weir_hash(body));
}

int answer_listing(struct weir_stage *st, struct weir_http_request *req, struct weir_slice body)
{
	const struct read_conf *conf = weir_conf(st);
	char etag[FILE_ETAG_SIZE];
	struct condition asked;

	listing_etag(body, etag);
	struct condition_file file = {.etag = {etag, strlen(etag)},
	    .modified_s = -1,
	    .size_bytes = (int64_t)body.n,
	    .no_ranges = true};
	condition_scan(req, &asked);
	int status = condition_judge_whole(&asked, &file);
	int rc;
	if (status == 200) {
		const char *type = listing_type((enum listing_form)conf->listing);
		rc = weir_http_respond(req, 200, type, body, free, (void *)(uintptr_t)body.p);
	} else {
		free((void *)(uintptr_t)body.p);
		rc = weir_http_respond_status(req, status);
	}
	if (rc == 0 && status != 412)
		rc = weir_http_add_field(req, "ETag", etag);
	if (rc == 0 && status == 200) /* file.cache then sends no ranges of it, either */
		rc = weir_http_add_field(req, "Accept-Ranges", "none");
	/* A listing needs no other resources. With this policy, even a name that is escaped wrongly
	 * cannot load or run anything. */
	if (rc == 0 && status == 200)
		rc = weir_http_add_field(req, "Content-Security-Policy", "default-src 'none'");
	if (rc == 0 && status == 200 && conf->nosniff)
		rc = weir_http_add_field(req, "X-Content-Type-Options", "nosniff");
	return rc;
}

int refuse_redirect(struct weir_http_request *req, const char *name)
{
	char directory[3 * PATH_MAP_MAX + 3];

	if (path_directory(name, directory, sizeof(directory)) < 0)
		return weir_http_respond_status(req, 404);
	size_t size = strlen(directory) + req->query.n + 2;
	char *location = malloc(size);
	if (!location)
		return WEIR_EPRESSURE;
	snprintf(location, size, "%s%s%.*s", directory, req->query.n ? "?" : "", (int)req->query.n,
	    req->query.n ? req->query.p : "");
	int rc = weir_http_respond_status(req, 301);
	if (rc == 0)
		rc = weir_http_add_field(req, "Location", location);
	free(location);
	return rc;
}
