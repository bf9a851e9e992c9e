/* SPDX-License-Identifier: MIT */
/* Cross-origin requests (the WHATWG's Fetch standard, 3.2): which origins may read answers. */
#ifndef WEIR_HTTP_SITE_CORS_H
#define WEIR_HTTP_SITE_CORS_H

#include <weir/http.h>
#include <weir/knob.h>
#include <weir/stage.h>

/** The values of `cors`. */
struct cors_conf {
	struct weir_strings origins; /* none: no CORS */
	struct weir_strings methods, headers, expose;
	bool credentials;
	int64_t max_age_ns;
};

extern const struct weir_knob cors_knobs[];

/** The fields that do not depend on the request; owned. */
struct cors {
	bool on, any; /* any: the only origin is '*' */
	char *methods, *headers, *expose;
	char max_age[24];
};

/** Check `conf` and fill `c`. Returns 0, WEIR_EINVAL with `err`, or WEIR_ENOMEM. */
int cors_init(
    struct cors *c, struct weir_stage *st, const struct cors_conf *conf, struct weir_err *err);
void cors_fini(struct cors *c);

/** What a request is for CORS. */
enum cors_kind {
	CORS_NONE,      /* no cross-origin request, or CORS is off */
	CORS_REFUSED,   /* of an origin that is not listed */
	CORS_ALLOWED,   /* of a listed origin */
	CORS_PREFLIGHT, /* asks for permission, and gets it */
	CORS_DENIED,    /* asks for permission, and does not get it */
};
enum cors_kind cors_kind(
    const struct cors *c, const struct cors_conf *conf, const struct weir_http_request *req);

/** Set the fields of the answer to a request of `kind`. Returns 0 or an error of weir_http_add_field. */
int cors_answer(const struct cors *c, const struct cors_conf *conf, enum cors_kind kind,
    struct weir_http_request *req);

/** Add the name `name` to the Vary field of the answer, unless it has it. Errors as for
 * weir_http_add_field. */
int vary_on(struct weir_http_request *req, const char *name);

#endif
