/* SPDX-License-Identifier: MIT */
/* Changes of the fields of a message: remove, set, add; with placeholders in the values. */
#ifndef WEIR_HTTP_SITE_FIELDS_H
#define WEIR_HTTP_SITE_FIELDS_H

#include <weir/http.h>
#include <weir/knob.h>
#include <weir/stage.h>

#include "http/message/template.h"

/** The values of `request` and `answer`: "Name: value" each, or names. */
struct fields_conf {
	struct weir_strings remove, set, add;
};

extern const struct weir_knob fields_knobs[];

/** One change. */
struct field_change {
	char *name;                 /* owned */
	struct http_template value; /* of the configuration's text; without pieces to remove only */
	bool drops;                 /* earlier fields of this name go */
	bool adds;
};

struct fields {
	int n;
	struct field_change *change;
	const struct weir_field *scheme, *address;
};

/** Check `conf`, whose strings must stay valid, and fill `f`. `side` is the knob. Returns 0, WEIR_EINVAL with
 * `err`, or WEIR_ENOMEM; free with fields_fini in each case. */
int fields_init(struct fields *f, struct weir_stage *st, const struct fields_conf *conf,
    const char *side, struct weir_err *err);
void fields_fini(struct fields *f);

/** Change the fields of the request. Adds to *left the number of fields whose value was not valid. Returns 0
 * or WEIR_ENOMEM. */
int fields_request(const struct fields *f, struct weir_http_request *req, int *left);

/** Change the fields of the answer, which must be its own (response_own_fields), before it begins. As
 * fields_request. */
int fields_answer(const struct fields *f, struct weir_http_request *req, int *left);

/** Whether the client has used HTTPS, as far as is known. */
bool fields_is_https(const struct fields *f, const struct weir_http_request *req);

#endif
