/* SPDX-License-Identifier: MIT */
/*
 * What is asked for: requests of a class from a path, a folder of bodies, a log, or a synthetic
 * static site. All functions add to `cls->request`; load_class_seal closes the list.
 *
 * Errors: WEIR_EINVAL with the offending word (file, line) in err->text, WEIR_ESYS, WEIR_ENOMEM.
 * After an error the class holds what was added before the word that was wrong.
 */
#ifndef WEIR_LOAD_MIX_H
#define WEIR_LOAD_MIX_H

#include <weir/error.h>

#include "load/plan.h"

/** Most requests of a class, and most files of a site. At about 200 bytes each, 0.8 GB. Guess. */
#define MIX_REQUESTS_MAX (1 << 22)
#define MIX_FILES_MAX    1000000

/** Longest request body. Guess. */
#define MIX_BODY_MAX_BYTES (64 << 20)

/** What all requests of a class have in common. */
struct mix_head {
	const char *method; /* "GET"; any token but CONNECT */
	const char *host;   /* the Host field: "127.0.0.1:8080" */
	int n_headers;
	/* "Name: value"; no control byte but tab. A Host of these replaces ours. Refused are those
	 * that say how the generator speaks: Content-Length, Transfer-Encoding, Connection,
	 * Upgrade, Expect. */
	const char *const *header;
	bool close; /* Connection: close */
};

/** One request for `path` with weight `weight` and body[0..n_body) (NULL: none). The head always
 *  ends the bytes [0, n_head) with an empty line, so a field may be put in before its last two. */
int mix_add(struct load_class *cls, const struct mix_head *head, const char *path, double weight,
    const char *body, size_t n_body, struct weir_err *err);

/** For each regular file in the folder `dir` (by name, not recursive, none that begins with a dot)
 *  a request for `path` with that body, of equal weight. */
int mix_add_bodies(struct load_class *cls, const struct mix_head *head, const char *path,
    const char *dir, struct weir_err *err);

/**
 * The requests of a log in common or combined log format, with their methods (that of `head` does
 * not count) and paths, ordered by time; the class becomes in_order. Lines that are none are an
 * error naming the line; empty lines, and requests that were answered 4xx because they are none
 * ("-", TLS on a plain port), are left out. A log knows no bodies: POST and the like are sent with
 * an empty one.
 *
 * Times in logs are whole seconds: the requests of one second are spread evenly over it.
 */
int mix_add_log(
    struct load_class *cls, const struct mix_head *head, const char *file, struct weir_err *err);

/** One line of a log. */
struct mix_log_line {
	const char *method, *path; /* in the buffer below, NULL: a refused request that is none */
	int64_t at_s;              /* since 1970, UTC */
	int status;
	char buf[16384];
};

/** Take a line apart. 0, or WEIR_EINVAL with the sentence in err->text. */
int mix_log_parse(const char *text, struct mix_log_line *line, struct weir_err *err);

/*
 * Synthetic sites of the literature, by `kind`.
 *
 * "specweb99": SPECweb99's static files: folders of 36, four classes (shares 35/50/14/1 %) of nine
 * sizes each, 102 B .. 900 KiB; folders chosen by Zipf's law, files of a class by one of nine
 * terms. n_files is rounded up to whole folders. Called /specweb99/dNNNN/classC_F.
 *
 * "surge": Barford and Crovella 1998: 93 % of the files have lognormal sizes (mu 9.357, sigma
 * 1.318), the others Pareto ones from 133 kB (alpha 1.1), cut at 64 MiB; popularity by Zipf's law.
 * Called /surge/NNNNNN.
 */

/** Requests for the site of `kind` of `n_files` files (1..MIX_FILES_MAX) by `seed`, below the path
 *  `prefix` ("" or "/static"). */
int mix_add_site(struct load_class *cls, const struct mix_head *head, const char *kind,
    const char *prefix, int n_files, uint64_t seed, struct weir_err *err);

/** Write that site's files below the folder `dir`, which is made. Existing files of the right size
 *  stay. */
int mix_write_site(
    const char *kind, int n_files, uint64_t seed, const char *dir, struct weir_err *err);

/** Weights become cumulative shares. Once per class. WEIR_EINVAL when the class has no request. */
int load_class_seal(struct load_class *cls, struct weir_err *err);

#endif
