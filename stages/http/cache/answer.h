/* SPDX-License-Identifier: MIT */
/*
 * What an answer of an origin says about being stored (RFC 9111, 3). Only the owner of the request may call
 * these functions.
 */
#ifndef WEIR_STAGES_HTTP_CACHE_ANSWER_H
#define WEIR_STAGES_HTTP_CACHE_ANSWER_H

#include <weir/http.h>

#include "file/cache_answer.h"
#include "http/cache/control.h"
#include "http/cache/fresh.h"
#include "http/cache/key.h"

struct hcache_answer {
	int status;
	struct cache_fields fields; /* point into the request */
	struct hcache_control control;
	struct hcache_times times;
	struct hcache_vary vary;
	bool sets_cookie, has_validator, has_range;
	/* set by hcache_answer_time */
	int64_t age_s, lifetime_s;
};

/** What to do with an answer. */
enum hcache_verdict {
	HCACHE_STORE,
	HCACHE_REFUSE, /* it must not be stored, nor will the next one be */
	HCACHE_IGNORE, /* it must not be stored, and nothing is known about the next one */
};

/** What the request was like, whose answer is judged. */
struct hcache_asker {
	bool authorized; /* it had Authorization */
	bool cookie;     /* it had Cookie */
};

/** Read the fields of the answer in `req`, but for the first `start` bytes of req->fields. */
void hcache_answer_read(
    struct hcache_answer *a, const struct weir_http_request *req, uint32_t start);

/** Take from `old`, the lines of a stored answer, what `a`, a 304 that confirms it, does not say. */
void hcache_answer_inherit(struct hcache_answer *a, struct weir_slice old);

/** Read the lists of fields in Cache-Control again, after the fields were copied to another place. */
void hcache_answer_relist(struct hcache_answer *a);

/** Whether the answer has a field called `name`. */
bool hcache_answer_names(const struct hcache_answer *a, struct weir_slice name);

/** Compute age and lifetime. `delay_ns` is the time since the request was sent, `now_s` the time by
 * CLOCK_REALTIME. */
void hcache_answer_time(
    struct hcache_answer *a, const struct hcache_heuristic *h, int64_t now_s, int64_t delay_ns);

/** Judge an answer whose time has been computed. */
enum hcache_verdict hcache_answer_judge(
    const struct hcache_answer *a, const struct hcache_asker *asker);

/** Whether the line may be stored: it is none that concerns one answer, one client or one hop. */
bool hcache_answer_keeps(const struct hcache_answer *a, const struct cache_line *l);

#endif
