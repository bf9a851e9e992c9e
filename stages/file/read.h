/* SPDX-License-Identifier: MIT */
/*
 * What the parts of file.read share: read.c decides what a request leads to, answer.c makes answers
 * of files, refuse.c all others. All block on the disk; called by handlers, any number at once.
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

/* Statuses that may have a page: all that this stage itself refuses with and that are read by
 * people. */
#define READ_PAGES(X) X(400) X(403) X(404) X(405) X(406)

struct read_pages {
#define READ_PAGE(status) char *page_##status;
	READ_PAGES(READ_PAGE)
#undef READ_PAGE
};

/* A Cache-Control for some files. */
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
	bool nosniff;
};

struct read_state {
	int root;                         /* see file_root_follow */
	char *root_path;                  /* absolute */
	atomic_int_fast64_t root_look_ns; /* when to look where the path leads; moved by who does */
	size_t fields_bytes;              /* room for the fields of any answer */
	struct variant_order order;
};

/** Answer with the file `name`, whose descriptor v->file.fd is taken. Returns the outcome of the
 *  event. */
int answer_file(struct weir_stage *st, struct weir_http_request *req, const struct variant *v,
    const char *name);

/** Answer with `status` and `file`, whose descriptor is taken, as the body; `name` tells its type. */
int answer_page(struct weir_stage *st, struct weir_http_request *req, int status,
    const struct file *file, const char *name);

/** Answer with the listing `body`, which is malloc'd and taken, in the form that is configured. */
int answer_listing(struct weir_stage *st, struct weir_http_request *req, struct weir_slice body);

/** Answer a method that is not GET or HEAD: 204 to OPTIONS, else 405, both with Allow. */
int refuse_method(struct weir_stage *st, struct weir_http_request *req);

/** Answer with `status` (400, 403, 404, 405 or 406) and its page, if there is one. */
int refuse_status(struct weir_stage *st, struct weir_http_request *req, int status);

/** Log what the configuration of `st`, whose root is open, does not do though it seems to. At the end of init. */
void read_warn(struct weir_stage *st);

/** The directory `name` was asked for without its slash: say where it is. */
int refuse_redirect(struct weir_http_request *req, const char *name);

#endif
