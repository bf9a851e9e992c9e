/* SPDX-License-Identifier: MIT */
/*
 * Creates the requests of a class from a path, a folder of bodies, a log, or a synthetic static
 * site. The functions add requests to `cls->request`; load_class_seal completes the list.
 *
 * Errors: WEIR_EINVAL with the offending word (file, line) in err->text, WEIR_ESYS, WEIR_ENOMEM.
 * After an error, the class still has the requests that were added before it.
 */
#ifndef WEIR_LOAD_MIX_H
#define WEIR_LOAD_MIX_H

#include <weir/error.h>

#include "load/plan.h"

/** Maximum number of requests of a class and of files of a site. Both are guesses: at about 200
 * bytes each, the requests take 0.8 GB. */
#define MIX_REQUESTS_MAX (1 << 22)
#define MIX_FILES_MAX    1000000

/** Maximum size of a request body. 64 MiB is a guess. */
#define MIX_BODY_MAX_BYTES (64 << 20)

/** Parts of the request head that all requests of a class share. */
struct mix_head {
	const char *method; /* "GET"; any token but CONNECT */
	const char *host;   /* the Host field: "127.0.0.1:8080" */
	int n_headers;
	/* "Name: value" without control bytes except tab. A Host field here replaces `host`. Fields
	 * that the generator sets itself are rejected: Content-Length, Transfer-Encoding,
	 * Connection, Upgrade, Expect. */
	const char *const *header;
	bool close; /* Connection: close */
};

/** Adds one request for `path` with the given weight and body[0..n_body); `body` may be NULL. The
 * head of the request, bytes [0, n_head), always ends with an empty line, so fields can be inserted
 * before its last two bytes. */
int mix_add(struct load_class *cls, const struct mix_head *head, const char *path, double weight,
    const char *body, size_t n_body, struct weir_err *err);

/** Adds a request for `path` for each regular file in the folder `dir`, with the file as its body.
 * Files are added in the order of their names. Subfolders and files whose names begin with a dot
 * are ignored. All requests have the same weight. */
int mix_add_bodies(struct load_class *cls, const struct mix_head *head, const char *path,
    const char *dir, struct weir_err *err);

/** Adds a request for each line of `file`: a path, or a weight above 0 and a path ("3 /index.html"). The
 * weight is 1 if there is none. Empty lines and lines that begin with # are skipped.
 * An error names the line. */
int mix_add_paths(
    struct load_class *cls, const struct mix_head *head, const char *file, struct weir_err *err);

/**
 * Adds the requests of a log in common or combined log format, ordered by time, with the methods
 * and paths of the log; the method of `head` is ignored. Sets cls->in_order. A line in any other
 * format is an error, and the message names the line. Empty lines are skipped, and so are malformed
 * requests that the server answered with 4xx ("-", or TLS on a plain port). A log contains no
 * bodies, so POST and similar requests are sent with an empty body.
 *
 * Logs record whole seconds, so the requests of one second are spread evenly over it.
 */
int mix_add_log(
    struct load_class *cls, const struct mix_head *head, const char *file, struct weir_err *err);

/** One line of a log. */
struct mix_log_line {
	/* both in `buf`; NULL if the request was malformed and refused */
	const char *method, *path;
	int64_t at_s; /* seconds since 1970, UTC */
	int status;
	char buf[16384];
};

/** Parses a line. Returns 0, or WEIR_EINVAL with the reason in err->text. */
int mix_log_parse(const char *text, struct mix_log_line *line, struct weir_err *err);

/*
 * Synthetic sites from the literature, by `kind`.
 *
 * "specweb99": the static files of SPECweb99, in folders of 36 files: four classes (chosen with
 * probabilities of 35, 50, 14 and 1 %) of nine sizes each, 102 B to 900 KiB. Folders are chosen by
 * Zipf's law, and so are the nine files of a class. n_files is rounded up to a whole number of
 * folders. Files are named /specweb99/dNNNN/classC_F.
 *
 * "surge" (Barford and Crovella 1998): the sizes of 93 % of the files have a lognormal distribution
 * (mu 9.357, sigma 1.318), and those of the others a Pareto distribution with alpha 1.1 and a
 * minimum of 133 kB, truncated at 64 MiB. Popularity follows Zipf's law. Files are named
 * /surge/NNNNNN.
 */

/** Adds a request for each file of a site of `kind` with `n_files` files (1..MIX_FILES_MAX),
 * generated from `seed`. The paths begin with `prefix` ("" or "/static"). */
int mix_add_site(struct load_class *cls, const struct mix_head *head, const char *kind,
    const char *prefix, int n_files, uint64_t seed, struct weir_err *err);

/** Writes the files of a site of `kind` to the folder `dir`, which is created if necessary.
 * Existing files of the right size are not rewritten. */
int mix_write_site(
    const char *kind, int n_files, uint64_t seed, const char *dir, struct weir_err *err);

/** Converts the weights of the requests into cumulative shares. Call it once per class, after all
 * requests have been added. Returns 0, or WEIR_EINVAL if the class has no request. */
int load_class_seal(struct load_class *cls, struct weir_err *err);

#endif
