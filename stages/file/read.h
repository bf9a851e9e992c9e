/* SPDX-License-Identifier: MIT */
/*
 * Shared by the parts of file.read: read.c decides how a request is answered, answer.c builds
 * responses from files, and refuse.c builds all other responses. Every call may block on the disk.
 * Handlers may call these functions concurrently.
 */
#ifndef WEIR_STAGES_FILE_READ_H
#define WEIR_STAGES_FILE_READ_H

#include <stdatomic.h>

#include <weir/http.h>
#include <weir/weir.h>

#include "path.h"
#include "variant.h"

/* outlets */
enum { READ_MISSING };

/* metrics */
enum {
	READ_FILES,
	READ_BYTES,
	READ_SENDFILES,
	READ_REFUSED,
	READ_PRECOMPRESSED,
	READ_LISTINGS,
};

/* Statuses that may have an error page: those that this stage sends and that users see. */
#define READ_PAGES(X) X(400) X(403) X(404) X(405) X(406)

struct read_pages {
#define READ_PAGE(status) char *page_##status;
	READ_PAGES(READ_PAGE)
#undef READ_PAGE
};

/* Cache-Control for files that match a pattern. */
struct read_rule {
	char *match;
	char *value;
};

struct read_conf {
	char *root;
	char *index;
	int64_t max_read_bytes;
	char *cache_control;
	struct weir_records rules; /* struct read_rule */
	struct weir_strings precompressed;
	int listing; /* enum listing_form */
	struct read_pages pages;
	int symlinks; /* enum file_links */
	int etag;     /* enum file_etags */
	bool nosniff;
};

struct read_state {
	int root;        /* a directory; see file_root_follow */
	char *root_path; /* absolute */
	/* time of the next call of file_root_follow; the thread that advances it makes the call */
	atomic_int_fast64_t root_look_ns;
	size_t fields_bytes; /* space for the fields of any response */
	struct variant_order order;
};

/** Respond with the file `name`, opened as v->file. Takes over the descriptor v->file.fd. Returns
 * the status to finish the event with. */
int answer_file(struct weir_stage *st, struct weir_http_request *req, const struct variant *v,
    const char *name);

/** Respond with `status` and `file` as the body. Takes over the file's descriptor; `name`
 * determines the media type. */
int answer_page(struct weir_stage *st, struct weir_http_request *req, int status,
    const struct file *file, const char *name);

/** Respond with the listing `body`, in the configured form. Takes over `body`, which is
 * malloc'd. */
int answer_listing(struct weir_stage *st, struct weir_http_request *req, struct weir_slice body);

/** Answer a method other than GET and HEAD: 204 for OPTIONS, 405 for all others, both with
 * Allow. */
int refuse_method(struct weir_stage *st, struct weir_http_request *req);

/** Respond with `status` (400, 403, 404, 405 or 406) and its error page, if one is configured. */
int refuse_status(struct weir_stage *st, struct weir_http_request *req, int status);

/** Warn about settings of `st` that are valid but have a surprising effect. Called at the end of
 * init, after the root was opened. */
void read_warn(struct weir_stage *st);

/** Redirect a request whose path names the directory `name`, but lacks the final slash. */
int refuse_redirect(struct weir_http_request *req, const char *name);

#endif
